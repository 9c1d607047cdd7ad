"""Inverse kinematics of any chain, by damped Gauss-Newton steps from many fixed starting points."""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import iter_core
from iter_runner.kinematics.chain import Chain

Array = NDArray[np.float64]

STARTS = 96
"""Starting points that are always tried: on a Mico they find the branch that a pose was made with 999 times in 1000."""
MOST_STARTS = 2048
"""Starting points that are tried before a pose counts as out of reach; some 0.1 s."""


class NumericSolution(NamedTuple):
    """Joint positions (n,) rad within the limits, and how far (m, rad) their pose is from the one asked for."""

    positions: Array
    position_error: float
    orientation_error: float


class NumericIK:
    """Solver of any chain, with joints to spare or without; deterministic to the bit.

    The starting points are a Kronecker sequence over the joint space (Roberts 2018), those whose pose is nearest first;
    the steps are damped by the error (Sugihara 2011) and kept inside the limits of joints with less than a whole turn.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._core = iter_core.NumericIk(chain.core)

    def search(
        self, target: ArrayLike, near: ArrayLike, starts: int = STARTS, most_starts: int = MOST_STARTS
    ) -> List[NumericSolution]:
        """The exact solutions found for the tip at ``target`` (4, 4), each joint on the turn next to ``near``.

        The one that ``near`` (n,) rad leads to comes first; of a chain with joints to spare, solutions are at least
        0.2 rad apart. Where none is exact: the nearest miss of all starts alone, if there is one within the limits.
        """
        return [NumericSolution(*row) for row in self._core.search(target, near, starts, most_starts)]

    def follow(self, targets: ArrayLike, start: ArrayLike) -> Array:
        """Joints (m, n) rad, continuous from ``start`` (n,), for targets (N, 4, 4) until one is not reached."""
        return np.asarray(self._core.follow(targets, start))

    def refine(self, guess: ArrayLike, target: ArrayLike, iterations: int = 60) -> NumericSolution:
        """The solution next to ``guess`` (n,) rad inside the limits, or the nearest miss on the way."""
        found: Tuple[Array, float, float] = self._core.refine(guess, target, iterations)
        return NumericSolution(*found)
