"""Timing of a joint path: as fast as its limits allow, from standstill to standstill (TOPP-RA)."""

from __future__ import annotations

import math
from typing import Optional, Tuple

import numpy as np
import toppra
from toppra import algorithm, constraint

from iter_runner.robot.arm import Vector

GRID = 200
"""Intervals at which limits are held, over a path's whole length (fewer points make for fewer intervals)."""


class Profile:
    """A path with its timing.

    Attributes:
        duration: s.
    """

    def __init__(self, trajectory: object, duration: float, scale: float) -> None:
        self._trajectory = trajectory
        self._scale = scale
        self.duration = duration * scale

    def at(self, time: float) -> Tuple[float, Vector]:
        """Phase (0 to 1) and joint positions (n,) rad at ``time`` s from the start."""
        sample = self._trajectory(min(time / self._scale, self.duration / self._scale))  # type: ignore[operator]
        return float(min(max(sample[-1], 0.0), 1.0)), np.array(sample[:-1])

    def sample(self, period: float) -> Tuple[Vector, Vector]:
        """Times (N,) from 0 to the duration, at most ``period`` s apart and equally spaced, and positions (N, n)."""
        count = max(2, math.ceil(self.duration / period - 1e-9))
        times = np.linspace(0.0, self.duration, count + 1)
        samples = self._trajectory(np.minimum(times / self._scale, self.duration / self._scale))  # type: ignore[operator]
        return times, np.array(samples[:, :-1])


def time_optimal(
    positions: Vector,
    velocity: Vector,
    acceleration: Vector,
    phase_velocity: Optional[float] = None,
    phase_acceleration: Optional[float] = None,
    stretch: float = 1.0,
) -> Profile:
    """The fastest timing of a path within its limits, then ``stretch`` times as long.

    Args:
        positions: (N, n) rad, N at least 2, at equal steps of the phase, which runs from 0 to 1; a cubic spline
            interpolates them.
        velocity, acceleration: (n,) limits, rad/s and rad/s².
        phase_velocity, phase_acceleration: limits of the phase, 1/s and 1/s²: a ceiling of the flange's speed.
        stretch: 1 or more.

    Raises:
        ValueError: the path can't be timed (it bends too sharply for the spline).
    """
    phases = np.linspace(0.0, 1.0, len(positions))
    # The phase travels along as one joint more: its limits are the flange's, and its value can be read off later.
    columns = np.column_stack([positions, phases])
    speed = np.append(velocity, 1e3 if phase_velocity is None else phase_velocity)
    rise = np.append(acceleration, 1e6 if phase_acceleration is None else phase_acceleration)
    path = toppra.SplineInterpolator(phases, columns, bc_type="not-a-knot" if len(positions) > 3 else "natural")
    constraints = [
        constraint.JointVelocityConstraint(np.column_stack([-speed, speed])),
        constraint.JointAccelerationConstraint(
            np.column_stack([-rise, rise]), discretization_scheme=constraint.DiscretizationType.Interpolation
        ),
    ]
    grid = np.linspace(0.0, 1.0, GRID + 1)
    solver = algorithm.TOPPRA(constraints, path, gridpoints=grid, parametrizer="ParametrizeConstAccel")
    trajectory = solver.compute_trajectory(0.0, 0.0)
    if trajectory is None:
        raise ValueError("the path can't be timed within the joints' limits")
    profile = Profile(trajectory, float(trajectory.duration), 1.0)
    return Profile(trajectory, float(trajectory.duration), stretch * _excess(profile, velocity, acceleration))


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
