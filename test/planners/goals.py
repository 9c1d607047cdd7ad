"""Goals spread over an arm's workspace, the same ones every time."""

from __future__ import annotations

from typing import List

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics.rotations import rotation_vector_to_matrix

Pose = NDArray[np.float64]

TOOL_DOWN = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])


def pose(x: float, y: float, z: float, yaw: float = 0.0) -> Pose:
    """The flange at (x, y, z) m, pointing down, turned by ``yaw`` rad about the vertical."""
    result = np.eye(4)
    result[:3, :3] = rotation_vector_to_matrix([0.0, 0.0, yaw]) @ TOOL_DOWN
    result[:3, 3] = x, y, z
    return result


def spread(reach: float, count: int, seed: int) -> List[Pose]:
    """``count`` poses within ``reach`` m of the base, most pointing down, some tilted."""
    random = np.random.default_rng(seed)
    poses: List[Pose] = []
    while len(poses) < count:
        x, y, z = random.uniform([-reach, -reach, -0.1], [reach, reach, 0.5])
        if np.hypot(x, y) < 0.22 or np.linalg.norm([x, y, z]) > reach:
            continue
        goal = pose(x, y, z, random.uniform(-np.pi, np.pi))
        if random.random() < 0.3:
            goal[:3, :3] = goal[:3, :3] @ rotation_vector_to_matrix(random.normal(size=3) * 0.4)
        poses.append(goal)
    return poses


def reach_of(robot_name: str) -> float:
    """m from the base that tool-down poses surely are within."""
    return {"ur5": 0.80, "ur3e": 0.43}[robot_name]
