"""Joint positions for a pose: refined from a guess, or all that there are."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, List, NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics import ClosedFormIK, GeometryError, NumericIK
from iter_runner.kinematics.numeric import MOST_STARTS
from iter_runner.kinematics.rotations import matrix_to_rotation_vector
from iter_runner.planners.line import Pose, pose_error
from iter_runner.robot.arm import Vector

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain

Flags = NDArray[np.bool_]

EXACT = 1e-9
"""m and rad within which a refined solution counts as the pose itself."""


class Solution(NamedTuple):
    """Joint positions (n,) rad and how far (m, rad) their pose is from the one asked for."""

    positions: Vector
    position_error: float
    orientation_error: float

    @property
    def exact(self) -> bool:
        """Whether the pose is reached."""
        return self.position_error < EXACT and self.orientation_error < EXACT


def refine(chain: Chain, guess: Vector, target: Pose, iterations: int = 30) -> Solution:
    """The solution next to ``guess`` (n,) rad, by damped Gauss-Newton steps inside the joint limits.

    The damping shrinks with the error (Sugihara 2011), so that steps are bounded near singularities and the last
    ones converge quadratically.
    """
    q = np.array(guess, dtype=np.float64)
    best: Optional[Solution] = None
    for _ in range(iterations):
        pose = chain.fk(q)
        error = np.concatenate(
            [target[:3, 3] - pose[:3, 3], pose[:3, :3] @ matrix_to_rotation_vector(pose[:3, :3].T @ target[:3, :3])]
        )
        solution = Solution(q, float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:])))
        size = solution.position_error + solution.orientation_error
        if best is not None and size >= best.position_error + best.orientation_error:
            if size < 1e-11:  # as good as rounding allows
                break
        else:
            best = solution
        if size < 1e-14:
            break
        jacobian = chain.jacobian(q)
        damped = jacobian.T @ jacobian + (0.5 * float(error @ error) + 1e-12) * np.eye(len(q))
        step = np.linalg.solve(damped, jacobian.T @ error)
        q = np.clip(q + step, chain.lower, chain.upper)
    assert best is not None
    return best


class Branches:
    """All joint solutions of a pose on one chain: closed form where its geometry has one, else a numeric search.

    Deterministic to the bit, either way.

    Args:
        chain: any chain.
        most_starts: of the numeric search, before a pose counts as out of reach.
    """

    def __init__(self, chain: Chain, most_starts: int = MOST_STARTS) -> None:
        self._chain = chain
        self._closed_form: Optional[ClosedFormIK] = None
        with contextlib.suppress(GeometryError):
            self._closed_form = ClosedFormIK(chain)
        self._numeric = NumericIK(chain) if self._closed_form is None else None
        self._most_starts = most_starts

    def follow(self, poses: Vector, start: Vector) -> Tuple[Vector, Flags]:
        """The branch of ``start`` (n,) rad along poses (N, 4, 4): joints (N, n) rad, continuous, and which are exact.

        Without a closed form the arm stays where the first pose that it does not reach leaves it.
        """
        if self._closed_form is None:
            assert self._numeric is not None
            reached = self._numeric.follow(poses, start)
            stays = np.repeat(np.vstack([start[None, :], reached])[-1:], len(poses) - len(reached), axis=0)
            return np.vstack([reached, stays]), np.arange(len(poses)) < len(reached)
        joints, exact = self._closed_form.solve_batch(poses)
        full = 2.0 * np.pi
        away = (joints[0] - start + np.pi) % full - np.pi
        branch = int(np.argmin(np.max(np.abs(away), axis=1) + np.where(exact[0], 0.0, 1e3)))
        way = np.vstack([start[None, :], joints[:, branch]])
        way = np.unwrap(way, axis=0)
        return way[1:], np.asarray(exact[:, branch], dtype=np.bool_)

    def solve(self, target: Pose, near: Vector) -> List[Solution]:
        """Solutions within the limits, each joint on the turn nearest to ``near`` (n,) rad, in a fixed order.

        Where none is exact the list holds the nearest misses. It is empty where no solution is within the limits.
        """
        if self._closed_form is None:
            assert self._numeric is not None
            return [Solution(*found) for found in self._numeric.search(target, near, most_starts=self._most_starts)]
        candidates, exact = self._closed_form.solve(target)
        solutions: List[Solution] = []
        for start in candidates[exact] if np.any(exact) else candidates:
            turned = nearest_turn(self._chain, start, near)
            if turned is None:
                continue
            solution = Solution(turned, *pose_error(self._chain.fk(turned), target))
            if solution.position_error < 1e-3:
                solution = refine(self._chain, turned, target)
            if not any(np.allclose(solution.positions, other.positions, atol=1e-6) for other in solutions):
                solutions.append(solution)
        exact_ones = [solution for solution in solutions if solution.exact]
        return exact_ones or solutions


def nearest_turn(chain: Chain, positions: Vector, near: Vector) -> Optional[Vector]:
    """``positions`` with every joint on the full turn within its limits that is nearest to ``near``, or None."""
    turned = np.array(positions, dtype=np.float64)
    full = 2.0 * np.pi
    for i, (lower, upper) in enumerate(zip(chain.lower, chain.upper)):
        turn = round((near[i] - turned[i]) / full)
        options = [turned[i] + full * k for k in (turn, turn - 1, turn + 1)]
        inside = [value for value in options if lower - 1e-9 <= value <= upper + 1e-9]
        if not inside:
            return None
        turned[i] = min(max(min(inside, key=lambda value: abs(value - near[i])), lower), upper)
    return turned
