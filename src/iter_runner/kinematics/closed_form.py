"""Closed-form inverse kinematics of UR-type arms: all eight branches of a pose at once."""

from __future__ import annotations

from itertools import product
from typing import List, Optional, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import iter_core
from iter_runner.kinematics.chain import Chain

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


class GeometryError(ValueError):
    """The chain has no closed form of this kind; the message says which part of its geometry does not fit."""


class ClosedFormIK:
    """Closed-form solver of a six-joint chain with axes 2, 3, 4 parallel and axes 5, 6 meeting.

    Args:
        chain: its geometry is checked, not its name.

    Raises:
        GeometryError: the geometry does not fit.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        try:
            self._core = iter_core.ClosedForm(chain.core)
        except ValueError as error:
            raise GeometryError(f"no closed form for {chain.base} -> {chain.tip}: {error}") from None

    def solve(self, target: ArrayLike) -> Tuple[Array, Flags]:
        """Joint positions (8, 6) rad in [-pi, pi] and which rows are exact (8,), for the tip at ``target`` (4, 4).

        Rows are in the order shoulder, wrist, elbow: row = 4 * shoulder + 2 * wrist + elbow. A branch without an exact
        solution has the least-squares one, which is continuous in the target: orientation exact, position nearest.
        """
        return self._core.solve(target)

    def solve_batch(self, targets: ArrayLike) -> Tuple[Array, Flags]:
        """As solve(), for targets (N, 4, 4): (N, 8, 6) and (N, 8)."""
        return self._core.solve_batch(targets)

    def within_limits(self, target: ArrayLike) -> Array:
        """Every exact solution inside the joint limits, (N, 6) rad, with all its variants by whole turns."""
        solutions, exact = self.solve(target)
        rows = [turns for row in solutions[exact] for turns in self._turns(row)]
        return np.array(rows, dtype=np.float64).reshape(-1, 6)

    def nearest(self, target: ArrayLike, q: ArrayLike) -> Optional[Array]:
        """The exact solution (6,) inside the limits with the smallest largest joint change from q (6,), or None."""
        rows = self.within_limits(target)
        if len(rows) == 0:
            return None
        return np.asarray(rows[np.argmin(np.abs(rows - np.asarray(q, dtype=np.float64)).max(axis=1))])

    def elbow_up(self, solutions: ArrayLike) -> Flags:
        """Which rows of solve() have the elbow higher (along the base's z) than their other elbow branch has it, (8,).

        Where arm and forearm are in line both are equally high, and both are True.
        """
        heights = np.array([self.chain.frames(row)[3, 2, 3] for row in np.asarray(solutions, dtype=np.float64)])
        return np.asarray(heights >= heights.reshape(4, 2).max(axis=1).repeat(2) - 1e-12)

    def _turns(self, q: Array) -> List[Array]:
        """q and all that differs from it by whole turns of its joints, inside the limits."""
        turn = 2 * np.pi
        choices = []
        for value, lower, upper in zip(q, self.chain.lower, self.chain.upper):
            first, last = int(np.ceil((lower - value) / turn)), int(np.floor((upper - value) / turn))
            choices.append([value + k * turn for k in range(first, last + 1)])
        return [np.array(values) for values in product(*choices)]
