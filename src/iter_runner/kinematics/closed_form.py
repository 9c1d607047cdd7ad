"""Closed-form inverse kinematics of UR-type arms: all eight branches of a pose at once."""

from __future__ import annotations

from typing import Tuple

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
