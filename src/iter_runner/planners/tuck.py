"""The straight joint path to the tucked pose, and whether it is safe to take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence

import numpy as np

from iter_runner.kinematics import contact_on_way
from iter_runner.planners.profile import straight
from iter_runner.robot.arm import JointPath, Vector
from iter_runner.robot.joint_paths import nearest_turns

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain

CHECK_STEP = 0.02
"""rad of the fastest joint between two positions that are checked."""
ACCELERATION = 0.5
"""rad/s², of the fastest joint: nobody is to be startled."""


def nearest_turn(tuck: Vector, measured: Vector, continuous: Sequence[bool]) -> Vector:
    """``tuck`` (n,) rad with every continuous joint on the full turn nearest to ``measured``.

    A joint with limits goes to the very angle of its row: on another turn the cables hang differently, and a later
    motion would not be the same.
    """
    return nearest_turns(tuck, measured, continuous)


def straight_way(start: Vector, end: Vector) -> Vector:
    """Positions (N, n) rad on the straight line in joint space, ends included, :data:`CHECK_STEP` apart."""
    count = max(2, math.ceil(float(np.max(np.abs(end - start))) / CHECK_STEP))
    way = start + np.linspace(0.0, 1.0, count + 1)[:, None] * (end - start)
    way[-1] = end
    return way


def lowest_points(chain: Chain, q: Vector) -> Dict[str, float]:
    """Height (m, in the chain's base) of the lowest point of every link that the joints raise or lower.

    What only the first joint turns is left out: it stands on the base.
    """
    frames = chain.frames(q)
    heights: Dict[str, float] = {}
    for capsule in chain.capsules:
        if capsule.frame < 2:
            continue
        frame = frames[capsule.frame]
        lowest = min(float(frame[2, :3] @ point + frame[2, 3]) for point in (capsule.start, capsule.end))
        heights[capsule.link] = min(heights.get(capsule.link, math.inf), lowest - capsule.radius)
    return heights


def what_is_unsafe(
    chain: Chain, way: Vector, table_height: Optional[float] = None, obstacles: Sequence[Any] = ()
) -> str:
    """Why the joint path ``way`` (N, n) rad is not safe, for a person; empty where it is.

    Checked at every position: joint limits, clearance of the arm and hand from itself and from ``obstacles``, and that
    nothing that moves gets below ``table_height`` (m, in the chain's base). An arm that already is in a forbidden place
    may leave it, but not go deeper.
    """
    lower = np.minimum(chain.lower, way[0]) - 1e-9
    upper = np.maximum(chain.upper, way[0]) + 1e-9
    floor = {link: min(table_height or 0.0, height) for link, height in lowest_points(chain, way[0]).items()}
    contact = contact_on_way(chain, way, obstacles)
    if contact is not None:
        share = f"at {100.0 * contact.row / (len(way) - 1):.0f} % of the way to the tucked pose"
        return f"{share} {contact.a} and {contact.b} collide (overlap {contact.depth * 1e3:.0f} mm)"
    for index, q in enumerate(way):
        share = f"at {100.0 * index / (len(way) - 1):.0f} % of the way to the tucked pose"
        outside = np.flatnonzero((q < lower) | (q > upper))
        if len(outside):
            joint = int(outside[0])
            return (
                f"{share} {chain.joint_names[joint]} is at {q[joint]:.2f} rad, outside its limits "
                f"{chain.lower[joint]:.2f} to {chain.upper[joint]:.2f}"
            )
        if table_height is not None:
            for link, height in lowest_points(chain, q).items():
                if height < floor[link] - 1e-6:
                    return f"{share} {link} is at a height of {height:.3f} m, below the table at {table_height:.3f} m"
    return ""


def slow_path(chain: Chain, way: Vector, speed: float, rate: float = 50.0) -> JointPath:
    """The straight ``way`` (N, n) rad, at most ``speed`` rad/s (and what the joints may), ``rate`` points a second."""
    count = way.shape[1]
    velocity = np.minimum(np.full(count, speed), 0.8 * np.asarray(chain.velocity_limits))
    times, positions = straight(way[0], way[-1], velocity, np.full(count, ACCELERATION)).sample(1.0 / rate)
    positions[0], positions[-1] = way[0], way[-1]
    return JointPath(positions, times)
