"""What a driver needs of a joint path beyond its points: velocities, and the rest of one that was interrupted."""

from __future__ import annotations

import numpy as np

from iter_runner.robot.arm import JointPath, Vector

SOFT_START = 0.4
"""Seconds over which the resumed path comes up to its speed."""


def central_velocities(path: JointPath) -> Vector:
    """Velocities (N, n) rad/s at the path's points by central differences, zero at its ends.

    With them a controller interpolates by cubics, which follow the path smoothly between its points.
    """
    velocities = np.zeros_like(path.positions)
    if len(path.times) > 2:
        velocities[1:-1] = (path.positions[2:] - path.positions[:-2]) / (path.times[2:] - path.times[:-2])[:, None]
    return velocities


def closest_time(path: JointPath, positions: Vector) -> float:
    """The time (s from its start) at which ``path`` passes closest to ``positions`` (n,) rad, the last such time."""
    starts, ends = path.positions[:-1], path.positions[1:]
    steps = ends - starts
    lengths = np.einsum("ij,ij->i", steps, steps)
    along = np.einsum("ij,ij->i", positions - starts, steps) / np.where(lengths > 0, lengths, 1.0)
    along = np.clip(np.where(lengths > 0, along, 1.0), 0.0, 1.0)
    distances = np.linalg.norm(starts + along[:, None] * steps - positions, axis=1)
    segment = len(distances) - 1 - int(np.argmin(distances[::-1]))
    return float(path.times[segment] + along[segment] * (path.times[segment + 1] - path.times[segment]))


def remaining_path(path: JointPath, positions: Vector) -> JointPath:
    """What is left of ``path`` for an arm that was stopped on it at ``positions`` (n,) rad, from standstill.

    The same joint path from the point closest to ``positions`` on; time runs slower at first (by a quadratic ramp of
    :data:`SOFT_START`), because the path's own speed there is not zero.
    """
    begin = closest_time(path, positions)
    times = path.times[path.times > begin + 1e-6]
    if len(times) == 0:
        times = path.times[-1:]
        begin = min(begin, float(times[0]) - 1e-3)
    phase = times - begin
    # phase(t) = t²/(2·ramp) until t = ramp, then t - ramp/2.
    stretched = np.where(phase < SOFT_START / 2, np.sqrt(2 * SOFT_START * phase), phase + SOFT_START / 2)
    rest = path.positions[-len(times) :]
    return JointPath(np.vstack([positions, rest]), np.concatenate([[0.0], stretched]))
