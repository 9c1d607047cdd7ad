"""Which joint positions, and which straight ways between two of them, are clear of everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

import numpy as np

from iter_runner.kinematics import Obstacle, Obstacles
from iter_runner.kinematics.obstacles import collision_bodies
from iter_runner.planners.contact import TOUCH
from iter_runner.robot.arm import Vector

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain

FINEST = 0.005
"""rad of the fastest joint: a way is not looked at more closely than this."""
COARSEST = 0.2
"""rad of the fastest joint between two positions that are looked at first."""


class FreeSpace:
    """Answers by distances, so that nothing thin is stepped over.

    Between two positions no point of the arm moves farther than the sum over the joints of their turn times the length
    that hangs on them, so that a distance changes by no more than that. A way is clear where the distances at both its
    ends forbid a contact between them (Schwarzer, Saha and Latombe 2005), else where both its halves are, down to
    :data:`FINEST`.

    Args:
        chain: with revolute joints.
        obstacles: in the chain's base.

    Attributes:
        margin: m that everything has to be apart; below 0, that it may overlap: a touch.
        positions_checked: how many joint positions were looked at so far: the work done, whatever the machine does.
    """

    def __init__(self, chain: Chain, obstacles: Sequence[Obstacle] = ()) -> None:
        self._bodies = collision_bodies(chain)
        self._obstacles = Obstacles(obstacles)
        self._reach = _reach(chain)
        self.margin = -TOUCH
        self.positions_checked = 0

    def distance(self, positions: Vector) -> float:
        """The smallest distance at (n,) rad, m, negative in contact."""
        return float(self._distances(positions[None, :])[0])

    def clear(self, positions: Vector) -> bool:
        """Whether everything is apart at (n,) rad by the margin."""
        return self.distance(positions) >= self.margin

    def clear_between(self, start: Vector, end: Vector) -> bool:
        """Whether everything stays apart on the straight way between two positions (n,) rad, ends included."""
        way = end - start
        turn, motion = float(np.max(np.abs(way))), float(self._reach @ np.abs(way))
        count = max(1, int(np.ceil(turn / COARSEST)))
        phases = np.linspace(0.0, 1.0, count + 1)
        distances = self._distances(start + phases[:, None] * way)
        while True:
            if np.min(distances) < self.margin:
                return False
            widths = np.diff(phases)
            doubtful = 0.5 * (distances[:-1] + distances[1:] - motion * widths) < self.margin
            doubtful &= turn * widths > FINEST
            places = np.flatnonzero(doubtful)
            if len(places) == 0:
                return True
            between = 0.5 * (phases[places] + phases[places + 1])
            distances = np.insert(distances, places + 1, self._distances(start + between[:, None] * way))
            phases = np.insert(phases, places + 1, between)

    def clear_along(self, positions: Vector) -> bool:
        """Whether everything stays apart on the straight ways from row to row of (N, n) rad."""
        return all(self.clear_between(a, b) for a, b in zip(positions[:-1], positions[1:]))

    def _distances(self, positions: Vector) -> Vector:
        self.positions_checked += len(positions)
        return np.asarray(self._bodies.distances(np.ascontiguousarray(positions), self._obstacles))


def _reach(chain: Chain) -> Vector:
    """(n,) m: how far from each joint's axis a point of the arm can be, however the joints behind it turn."""
    origins = chain.frames(np.zeros(len(chain)))[1:, :3, 3]
    links = np.linalg.norm(np.diff(origins, axis=0), axis=1)
    reach = np.zeros(len(chain))
    for capsule in chain.capsules:
        size = max(float(np.linalg.norm(capsule.start)), float(np.linalg.norm(capsule.end))) + capsule.radius
        for joint in range(capsule.frame):
            reach[joint] = max(reach[joint], float(np.sum(links[joint : capsule.frame - 1])) + size)
    return reach
