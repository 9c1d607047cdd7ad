"""The straight line between two poses: position along a segment, orientation about one fixed axis, in proportion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics.rotations import matrix_to_rotation_vector
from iter_runner.robot.arm import Vector

Pose = NDArray[np.float64]


class Line:
    """From ``start`` to ``target``, (4, 4) poses in one frame.

    Attributes:
        length: m between the positions.
        angle: rad between the orientations, 0 to π.
    """

    def __init__(self, start: Pose, target: Pose) -> None:
        self.start = start
        self.target = target
        self._step = target[:3, 3] - start[:3, 3]
        rotation = matrix_to_rotation_vector(start[:3, :3].T @ target[:3, :3])
        self.length = float(np.linalg.norm(self._step))
        self.angle = float(np.linalg.norm(rotation))
        x, y, z = rotation / self.angle if self.angle > 0.0 else (0.0, 0.0, 0.0)
        self._cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        self._cross_squared = self._cross @ self._cross

    def pose(self, phase: float) -> Pose:
        """The (4, 4) pose at ``phase``, 0 at the start to 1 at the target; exactly the target from 1 on."""
        return self.poses(np.array([phase]))[0]

    def poses(self, phases: Vector) -> NDArray[np.float64]:
        """The poses (N, 4, 4) at phases (N,)."""
        poses = np.zeros((len(phases), 4, 4))
        poses[:, 3, 3] = 1.0
        poses[:, :3, 3] = self.start[:3, 3] + phases[:, None] * self._step
        angles = phases[:, None, None] * self.angle
        turns = np.eye(3) + np.sin(angles) * self._cross + (1.0 - np.cos(angles)) * self._cross_squared  # Rodrigues
        poses[:, :3, :3] = self.start[:3, :3] @ turns
        poses[phases >= 1.0] = self.target
        return poses

    def intervals(self, step: float, turn: float) -> int:
        """How many equal parts make each at most ``step`` m and ``turn`` rad; at least one."""
        return max(1, int(np.ceil(self.length / step - 1e-9)), int(np.ceil(self.angle / turn - 1e-9)))


def pose_error(measured: Pose, wanted: Pose) -> tuple[float, float]:
    """Distance (m) and angle (rad) between two poses."""
    turn = matrix_to_rotation_vector(measured[:3, :3].T @ wanted[:3, :3])
    return float(np.linalg.norm(measured[:3, 3] - wanted[:3, 3])), float(np.linalg.norm(turn))
