"""The simulated workcell's bodies. Kinematic: a body moves only while the hand holds it, and stays where it is let go.

A physical world may take this one's place behind the same few calls. Poses are (4, 4) matrices in the robot's base
frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics.rotations import inverse

Matrix = NDArray[np.float64]

REACH = 0.02
"""m around a body's box within which the fingertips grasp it: hands are not placed more exactly by people either."""


@dataclass
class Body:
    """A body.

    Attributes:
        name: unique in the world.
        pose: (4, 4) of its centre.
        size: m along its own axes; of a sphere or cylinder the box around it.
        graspable: the hand may take it; otherwise an obstacle.
        source: whatever the caller keeps of it (its shape and colour).
    """

    name: str
    pose: Matrix
    size: Tuple[float, float, float]
    graspable: bool
    source: Any = field(default=None, compare=False)


class World:
    """The bodies, and which of them the hand holds.

    Args:
        tip_offset: m, from the flange to between the fingertips along the flange's z.
        finger_axis: (3,) in the flange, along which the fingers close.
    """

    def __init__(self, tip_offset: float, finger_axis: Sequence[float] = (1.0, 0.0, 0.0)) -> None:
        self.bodies: Dict[str, Body] = {}
        self.held: Optional[str] = None
        self.changes = 0
        """Counts up whenever a body was added, taken, moved by hand, or let go."""
        self._flange_from_tip = np.eye(4)
        self._flange_from_tip[2, 3] = tip_offset
        self._finger_axis = np.asarray(finger_axis, dtype=float)
        self._held_in_flange: Matrix = np.eye(4)

    def replace(self, bodies: Sequence[Body], flange: Optional[Matrix] = None) -> None:
        """Takes over a new scene in the place of the old.

        What the hand held is gone with it, unless the scene has that body still between the fingers of the hand at
        ``flange``: then the hand goes on holding it.
        """
        held = self.held
        self.bodies = {body.name: body for body in bodies}
        self.held = None
        self.changes += 1
        if held is not None and flange is not None:
            body = self.between_fingers(flange)
            if body is not None and body.name == held:
                self.grasp(flange)

    def update(self, bodies: Sequence[Body], changed: Sequence[str]) -> None:
        """Takes over a scene in which only the bodies named in ``changed`` are others: the rest stays where it is.

        A held body that was changed or is gone has left the hand.
        """
        now = {}
        for body in bodies:
            known = self.bodies.get(body.name)
            now[body.name] = body if known is None or body.name in changed else known
        if self.held is not None and (self.held in changed or self.held not in now):
            self.held = None
        self.bodies = now
        self.changes += 1

    def between_fingers(self, flange: Matrix) -> Optional[Body]:
        """The graspable body around the fingertips, the one whose centre is nearest where several are."""
        tip = (flange @ self._flange_from_tip)[:3, 3]
        nearest: Optional[Body] = None
        shortest = np.inf
        for body in self.bodies.values():
            if not body.graspable:
                continue
            local = body.pose[:3, :3].T @ (tip - body.pose[:3, 3])
            distance = float(np.linalg.norm(local))
            if bool(np.all(np.abs(local) <= np.asarray(body.size) / 2 + REACH)) and distance < shortest:
                nearest, shortest = body, distance
        return nearest

    def width_between(self, flange: Matrix) -> Optional[float]:
        """How wide that body is across the fingers, m; None where there is none."""
        body = self.between_fingers(flange)
        if body is None:
            return None
        # The box's extent along the axis on which the fingers close.
        axis = body.pose[:3, :3].T @ flange[:3, :3] @ self._finger_axis
        extents = [side / abs(share) for side, share in zip(body.size, axis) if abs(share) > 1e-9]
        return float(min(extents))

    def grasp(self, flange: Matrix) -> Optional[str]:
        """The hand closes: it holds what is between its fingers, from now on; its name."""
        if self.held is not None:
            return self.held
        body = self.between_fingers(flange)
        if body is None:
            return None
        self.held = body.name
        self._held_in_flange = inverse(flange) @ body.pose
        self.changes += 1
        return body.name

    def release(self, flange: Matrix) -> Optional[str]:
        """The hand opens: what it held stays where it is; its name."""
        name = self.held
        if name is not None:
            self.carry(flange)
            self.held = None
            self.changes += 1
        return name

    def carry(self, flange: Matrix) -> None:
        """Brings the held body to where the hand has it."""
        if self.held is not None:
            pose = flange @ self._held_in_flange
            body = self.bodies[self.held]
            if not np.array_equal(pose, body.pose):
                body.pose = pose
                self.changes += 1

    def listing(self) -> List[Body]:
        """The bodies, in the order in which the scene gave them."""
        return list(self.bodies.values())
