"""URScript's poses, ``p[x, y, z, rx, ry, rz]``: metres and a rotation vector, against (4, 4) matrices."""

from __future__ import annotations

from typing import Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics.rotations import matrix_to_rotation_vector, rotation_vector_to_matrix

Matrix = NDArray[np.float64]


class Pose(Tuple[float, ...]):
    """Six numbers: position in m, rotation vector in rad."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"p[{', '.join(f'{value:.6g}' for value in self)}]"


def pose_of(matrix: Matrix) -> Pose:
    """The pose of a (4, 4) matrix."""
    return Pose(float(value) for value in (*matrix[:3, 3], *matrix_to_rotation_vector(matrix[:3, :3])))


def matrix_of(pose: Sequence[float]) -> Matrix:
    """The (4, 4) matrix of a pose."""
    matrix = np.eye(4)
    matrix[:3, 3] = pose[:3]
    matrix[:3, :3] = rotation_vector_to_matrix(pose[3:])
    return matrix
