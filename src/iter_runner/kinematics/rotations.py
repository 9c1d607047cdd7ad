"""Rotations between matrix, quaternion, rotation vector, roll-pitch-yaw and z-y-z Euler angles.

Quaternions are (x, y, z, w), as in ROS messages. Angles are in rad. Everything is right to 1e-12 at the conversions'
singular cases too: no rotation, half a turn, and pitch at +-90 degrees.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def _floats(values: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
    return array


def quaternion_to_matrix(quaternion: ArrayLike) -> Array:
    """The rotation matrix (3, 3) of a quaternion (x, y, z, w) of any length but zero. Raises ValueError."""
    x, y, z, w = _floats(quaternion, (4,), "quaternion")
    squared = x * x + y * y + z * z + w * w
    if not (0 < squared < math.inf):
        raise ValueError(f"quaternion {[float(v) for v in (x, y, z, w)]} has no direction; expected x, y, z, w")
    s = 2 / squared
    return np.array(
        [
            [1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
            [s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)],
            [s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)],
        ]
    )


def matrix_to_quaternion(matrix: ArrayLike) -> Array:
    """The unit quaternion (x, y, z, w), w >= 0, of a rotation matrix (3, 3).

    Divides by the largest component (Shepperd 1978), so that no rotation loses digits.
    """
    r = _floats(matrix, (3, 3), "matrix")
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    largest = int(np.argmax([r[0, 0], r[1, 1], r[2, 2], trace]))
    q = np.empty(4)
    if largest == 3:
        q[:] = r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], 1 + trace
    else:
        i, j, k = largest, (largest + 1) % 3, (largest + 2) % 3
        q[i] = 1 + r[i, i] - r[j, j] - r[k, k]
        q[j] = r[j, i] + r[i, j]
        q[k] = r[k, i] + r[i, k]
        q[3] = r[k, j] - r[j, k]
    q /= math.copysign(float(np.linalg.norm(q)), q[3])
    return q


def rotation_vector_to_matrix(vector: ArrayLike) -> Array:
    """The rotation matrix (3, 3) of a rotation vector (3,): axis times angle."""
    v = _floats(vector, (3,), "rotation vector")
    angle = float(np.linalg.norm(v))
    # sin(a)/a and (1 - cos(a))/a^2 by half angles: no cancellation for small ones.
    half = np.sinc(angle / (2 * math.pi))
    a, b = float(np.sinc(angle / math.pi)), 0.5 * float(half) ** 2
    x, y, z = v
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + a * cross + b * (cross @ cross)


def matrix_to_rotation_vector(matrix: ArrayLike) -> Array:
    """The rotation vector (3,), of length at most pi, of a rotation matrix (3, 3)."""
    q = matrix_to_quaternion(matrix)
    length = float(np.linalg.norm(q[:3]))
    if length == 0:
        return np.zeros(3)
    return q[:3] * (2 * math.atan2(length, q[3]) / length)


def rpy_to_matrix(rpy: ArrayLike) -> Array:
    """The rotation matrix (3, 3) of roll, pitch, yaw about fixed x, y, z (URDF): Rz(yaw) Ry(pitch) Rx(roll)."""
    roll, pitch, yaw = _floats(rpy, (3,), "roll, pitch, yaw")
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def matrix_to_rpy(matrix: ArrayLike) -> Array:
    """Roll, pitch in [-pi/2, pi/2], yaw of a rotation matrix (3, 3). At pitch +-90 degrees roll is 0."""
    r = _floats(matrix, (3, 3), "matrix")
    level = math.hypot(r[0, 0], r[1, 0])
    pitch = math.atan2(-r[2, 0], level)
    if level < 1e-13:
        return np.array([0.0, pitch, math.atan2(-r[0, 1], r[1, 1])])
    yaw = math.atan2(r[1, 0], r[0, 0])
    # What is left after yaw: right however badly yaw itself is determined.
    s, c = math.sin(yaw), math.cos(yaw)
    return np.array([math.atan2(s * r[0, 2] - c * r[1, 2], c * r[1, 1] - s * r[0, 1]), pitch, yaw])


def zyz_to_matrix(zyz: ArrayLike) -> Array:
    """The rotation matrix (3, 3) of z-y-z Euler angles: Rz(first) Ry(second) Rz(third)."""
    first, second, third = _floats(zyz, (3,), "z-y-z angles")
    return rpy_to_matrix([0, second, first]) @ rpy_to_matrix([0, 0, third])


def matrix_to_zyz(matrix: ArrayLike) -> Array:
    """Z-y-z Euler angles of a rotation matrix (3, 3), the second in [0, pi]; where it is 0 or pi the third is 0."""
    r = _floats(matrix, (3, 3), "matrix")
    level = math.hypot(r[0, 2], r[1, 2])
    second = math.atan2(level, r[2, 2])
    if level < 1e-13:
        return np.array([math.atan2(-r[0, 1], r[1, 1]), second, 0.0])
    first = math.atan2(r[1, 2], r[0, 2])
    s, c = math.sin(first), math.cos(first)
    return np.array([first, second, math.atan2(c * r[1, 0] - s * r[0, 0], c * r[1, 1] - s * r[0, 1])])


def pose(position: ArrayLike, quaternion: ArrayLike = (0.0, 0.0, 0.0, 1.0)) -> Array:
    """The homogeneous matrix (4, 4) of a position (3,) m and a quaternion (x, y, z, w)."""
    matrix = np.eye(4)
    matrix[:3, :3] = quaternion_to_matrix(quaternion)
    matrix[:3, 3] = _floats(position, (3,), "position")
    return matrix


def inverse(matrix: ArrayLike) -> Array:
    """The inverse of a rigid transform (4, 4)."""
    m = _floats(matrix, (4, 4), "pose")
    result = np.eye(4)
    result[:3, :3] = m[:3, :3].T
    result[:3, 3] = -m[:3, :3].T @ m[:3, 3]
    return result


def angle_between(first: ArrayLike, second: ArrayLike) -> float:
    """The angle (rad, 0 to pi) of the rotation from one matrix (3, 3) to another; exact for small angles too."""
    difference = _floats(first, (3, 3), "first").T @ _floats(second, (3, 3), "second")
    return float(np.linalg.norm(matrix_to_rotation_vector(difference)))
