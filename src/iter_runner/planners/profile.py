"""Timing of a joint path: as fast as its limits allow, from standstill to standstill (TOPP-RA)."""

from __future__ import annotations

import logging
import math
from functools import lru_cache
from typing import Any, Callable, List, Optional, Tuple

import numpy as np
import toppra
from toppra import algorithm, constraint

from iter_runner.robot.arm import Vector

GRID = 100
"""Intervals at which limits are held, over a path's whole length."""

# It formats whole arrays for messages that nobody reads; what fails is returned as well.
logging.getLogger("toppra").setLevel(logging.ERROR)


class Profile:
    """A path with its timing: the phase's acceleration is constant between any two of some phases.

    Args:
        path: phases (N,), 0 to 1, to joint positions (N, n) rad.
        phases: (M,) from 0 to 1, rising.
        speeds: (M,) 1/s, the phase's at these, at rest at both ends.
        stretch: how much longer than this it takes, 1 or more.

    Attributes:
        duration: s.

    Raises:
        ValueError: it stands in the midst of it.
    """

    def __init__(self, path: Callable[[Vector], Vector], phases: Vector, speeds: Vector, stretch: float = 1.0) -> None:
        self._path = path
        self._phases = phases
        self._speeds = speeds
        self._stretch = stretch
        sums = speeds[1:] + speeds[:-1]
        if not np.all(sums > 0.0):
            raise ValueError("the path can't be timed: it comes to a standstill on the way")
        self._times = np.concatenate([[0.0], np.cumsum(2.0 * np.diff(phases) / sums)])
        self._rises = 0.5 * np.diff(speeds**2) / np.diff(phases)
        self.duration = float(self._times[-1]) * stretch

    def stretched(self, factor: float) -> Profile:
        """The same, ``factor`` times as long."""
        return Profile(self._path, self._phases, self._speeds, self._stretch * factor)

    def phases(self, times: Vector) -> Vector:
        """The phases (N,), 0 to 1, at times (N,) s from the start."""
        own = np.clip(times / self._stretch, 0.0, self._times[-1])
        index = np.clip(np.searchsorted(self._times, own, side="right") - 1, 0, len(self._rises) - 1)
        late = own - self._times[index]
        phases = self._phases[index] + late * self._speeds[index] + 0.5 * late**2 * self._rises[index]
        return np.clip(phases, 0.0, 1.0)

    def positions(self, times: Vector) -> Vector:
        """Joint positions (N, n) rad at times (N,) s from the start."""
        return self._path(self.phases(times))

    def sample(self, period: float) -> Tuple[Vector, Vector]:
        """Times (N,) from 0 to the duration, at most ``period`` s apart and equally spaced, and positions (N, n)."""
        count = max(2, math.ceil(self.duration / period - 1e-9))
        times = np.linspace(0.0, self.duration, count + 1)
        return times, self.positions(times)


def straight(start: Vector, end: Vector, velocity: Vector, acceleration: Vector, stretch: float = 1.0) -> Profile:
    """The fastest timing of the straight way between two joint positions (n,) rad within (n,) limits, stretched.

    Raises:
        ValueError: they are the same.
    """
    way = end - start
    distance = np.abs(way)
    if not np.any(distance > 0.0):
        raise ValueError("there is no way to be timed")
    with np.errstate(divide="ignore"):
        speed = float(np.min(velocity / distance))
        rise = float(np.min(acceleration / distance))
    speed = min(speed, math.sqrt(rise))  # without a part at constant speed
    ramp = 0.5 * speed**2 / rise
    phases, speeds = np.array([0.0, ramp, 1.0 - ramp, 1.0]), np.array([0.0, speed, speed, 0.0])
    if 1.0 - 2.0 * ramp < 1e-9:
        phases, speeds = np.array([0.0, 0.5, 1.0]), np.array([0.0, speed, 0.0])
    return Profile(lambda phase: start + phase[:, None] * way, phases, speeds, stretch)


def time_optimal(
    positions: Vector,
    velocity: Vector,
    acceleration: Vector,
    phase_velocity: Optional[float] = None,
    phase_acceleration: Optional[float] = None,
    stretch: float = 1.0,
    intervals: int = GRID,
) -> Profile:
    """The fastest timing of a path within its limits, then ``stretch`` times as long.

    Args:
        positions: (N, n) rad, N at least 2, at equal steps of the phase, which runs from 0 to 1; a cubic spline
            interpolates them.
        velocity, acceleration: (n,) limits, rad/s and rad/s².
        phase_velocity, phase_acceleration: limits of the phase, 1/s and 1/s²: a ceiling of the flange's speed.
        stretch: 1 or more.
        intervals: at whose ends the limits are held: more for a long path with tight bends.

    Raises:
        ValueError: the path can't be timed (it bends too sharply for the spline).
    """
    phases = np.linspace(0.0, 1.0, len(positions))
    # The phase travels along as one joint more: its limits are the flange's.
    columns = np.column_stack([positions, phases])
    speed = np.append(velocity, 1e3 if phase_velocity is None else phase_velocity)
    rise = np.append(acceleration, 1e6 if phase_acceleration is None else phase_acceleration)
    path = toppra.SplineInterpolator(phases, columns, bc_type="not-a-knot" if len(positions) > 3 else "natural")
    grid = np.linspace(0.0, 1.0, intervals + 1)
    solver = algorithm.TOPPRA(_constraints(tuple(speed), tuple(rise)), path, gridpoints=grid, solver_wrapper="seidel")
    _, speeds, _ = solver.compute_parameterization(0.0, 0.0)
    if speeds is None or not np.all(np.isfinite(speeds)):
        raise ValueError("the path can't be timed within the joints' limits")
    profile = Profile(lambda phase: np.asarray(path(phase))[:, :-1], grid, np.asarray(speeds))
    return profile.stretched(stretch * _excess(profile, velocity, acceleration))


@lru_cache(maxsize=64)
def _constraints(speed: Tuple[float, ...], rise: Tuple[float, ...]) -> List[Any]:
    """TOPP-RA's constraints, which hold nothing but these limits."""
    most, hardest = np.array(speed), np.array(rise)
    return [
        constraint.JointVelocityConstraint(np.column_stack([-most, most])),
        constraint.JointAccelerationConstraint(
            np.column_stack([-hardest, hardest]), discretization_scheme=constraint.DiscretizationType.Interpolation
        ),
    ]


def _excess(profile: Profile, velocity: Vector, acceleration: Vector) -> float:
    """By how much a profile has to be stretched to keep its limits between the grid's points, too; 1 or more."""
    times, positions = profile.sample(0.008)
    period = times[1] - times[0]
    speeds = np.diff(positions, axis=0) / period
    rises = np.diff(speeds, axis=0) / period
    too_fast = float(np.max(np.abs(speeds) / velocity))
    too_hard = float(np.max(np.abs(rises) / acceleration))
    slack = 1.05  # a bend between two samples counts for more than it is
    return max(1.0, too_fast / slack, math.sqrt(too_hard / slack))
