"""What a driver needs of a joint path beyond its points: velocities, and the rest of one that was interrupted."""

from __future__ import annotations

from typing import Iterator, Optional, Sequence, Tuple

import numpy as np

from iter_runner.robot.arm import JointPath, Vector

SOFT_START = 0.4
"""Seconds over which the resumed path comes up to its speed."""
REJOIN_SPEED = 0.5
"""rad/s of the fastest joint at most on the way back to a path that the arm stands off."""


def central_velocities(path: JointPath) -> Vector:
    """Velocities (N, n) rad/s at the path's points by central differences, zero at its ends.

    With them a controller interpolates by cubics, which follow the path smoothly between its points.
    """
    velocities = np.zeros_like(path.positions)
    if len(path.times) > 2:
        velocities[1:-1] = (path.positions[2:] - path.positions[:-2]) / (path.times[2:] - path.times[:-2])[:, None]
    return velocities


def steps_between(
    before: Vector, target: Vector, period: float, fixed_period: Optional[float]
) -> Iterator[Tuple[Vector, float]]:
    """Streamed targets (n,) rad, each with its period, that lead from ``before`` to ``target`` in ``period`` s.

    One; or, for a transport with a ``fixed_period``, as many on the straight way as fill ``period``.
    """
    if fixed_period is None:
        yield target, period
        return
    count = max(1, round(period / fixed_period))
    for index in range(1, count):
        yield before + index / count * (target - before), fixed_period
    yield target, fixed_period


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


def in_turns_of(path: JointPath, positions: Vector, continuous: Sequence[bool]) -> Vector:
    """``positions`` (n,) rad with every continuous joint on the full turn on which ``path`` passes it closest."""
    turned = nearest_turns(positions, path.positions, continuous)
    closest: Vector = turned[int(np.argmin(np.linalg.norm(turned - path.positions, axis=1)))]
    return closest


def distance_from(path: JointPath, positions: Vector) -> float:
    """How far ``positions`` (n,) rad are from the closest place on ``path``, rad (Euclidean in joint space)."""
    moment = closest_time(path, positions)
    here = np.array([np.interp(moment, path.times, column) for column in path.positions.T])
    return float(np.linalg.norm(here - positions))


def nearest_turns(positions: Vector, reference: Vector, continuous: Sequence[bool]) -> Vector:
    """``positions`` (n,) rad with every continuous joint on the full turn that is nearest to ``reference`` (…, n) rad.

    ``continuous`` (n,) says which joints are: a driver may count their turns from another zero than a plan does.
    """
    turns = np.round((reference - positions) / (2.0 * np.pi)) * 2.0 * np.pi
    return np.where(np.asarray(continuous, dtype=bool), positions + turns, positions)


def remaining_path(path: JointPath, positions: Vector) -> JointPath:
    """What is left of ``path`` for an arm that was stopped on it at ``positions`` (n,) rad, from standstill.

    The same joint path from the point closest to ``positions`` on; time runs slower at first (by a quadratic ramp of
    :data:`SOFT_START`), because the path's own speed there is not zero. An arm off the path comes back to it by
    :data:`REJOIN_SPEED` at most.
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
    stretched += max(0.0, float(np.max(np.abs(rest[0] - positions))) / REJOIN_SPEED - stretched[0])
    return JointPath(np.vstack([positions, rest]), np.concatenate([[0.0], stretched]))
