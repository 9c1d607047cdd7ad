"""RelaxedIK: a stream of joint solutions that trades accuracy, smoothness and clearance."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

import iter_core
from iter_runner.kinematics.chain import Chain
from iter_runner.kinematics.obstacles import Obstacle, Obstacles, as_obstacles, collision_bodies

Array = NDArray[np.float64]

DEFAULT_WEIGHTS: Dict[str, float] = {
    "position": 50.0,
    "orientation": 49.0,
    "velocity": 0.03,
    "acceleration": 0.01,
    "jerk": 0.02,
    "joint_limits": 10.0,
    "self_collision": 2.0,
    "obstacles": 2.0,
    "elbow_up": 0.02,
}

SELF_MARGIN = 0.005
"""m: links that are nearer to each other are pushed apart."""
OBSTACLE_MARGIN = 0.003
"""m: links nearer to an obstacle are pushed away."""
STIFFNESS = 1e6
"""Parabola of the two collision grooves: at contact they outweigh the pull of a goal far behind the obstacle."""


class RelaxedIK:
    """Solves one pose after another, each near the last solution.

    Args:
        chain: from load_chain().
        weights: objective name -> weight, over the chain's (its row's ``objectives``) and DEFAULT_WEIGHTS; 0 is off.
        obstacles: what to stay clear of; ``.obstacles`` is the collection, to be changed between two solves.
        period: s between two solutions; no joint then moves farther in one than its speed limit allows. None: no bound.
        max_iterations: evaluations of the objective a solve, at most.
        reconfigure: with a period: where the stream is stuck off its goal (a joint at its limit, the wrong branch) and
            another branch reaches it, the joints move there at half their speed limits; ``report.reconfiguring``.

    Raises:
        ValueError: an unknown objective's name (lists the names), or a weight that is not a number >= 0.
    """

    def __init__(
        self,
        chain: Chain,
        weights: Optional[Mapping[str, float]] = None,
        obstacles: Union[Obstacles, Iterable[Obstacle], None] = None,
        period: Optional[float] = None,
        max_iterations: int = 30,
        reconfigure: bool = True,
    ) -> None:
        self.chain = chain
        merged = dict(DEFAULT_WEIGHTS)
        for source in (chain.objectives, weights or {}):
            for name, weight in source.items():
                if name not in DEFAULT_WEIGHTS:
                    raise ValueError(f"no objective '{name}'; objectives are {', '.join(DEFAULT_WEIGHTS)}")
                if not 0 <= weight < float("inf"):
                    raise ValueError(f"objective '{name}': a weight >= 0 expected, found {weight}")
                merged[name] = float(weight)
        self.obstacles = as_obstacles(obstacles)
        self.objectives: List[Any] = self._objectives(merged)
        self._core = iter_core.RelaxedIk(chain.core, self.objectives, period or 0.0, max_iterations, reconfigure)

    def _objectives(self, weights: Mapping[str, float]) -> List[Any]:
        terms = [
            iter_core.position_objective("position", weights["position"], 0.1, 10.0),
            iter_core.orientation_objective("orientation", weights["orientation"], 0.1, 10.0),
            iter_core.smoothness_objective("velocity", weights["velocity"], 0.1, 10.0, 1),
            iter_core.smoothness_objective("acceleration", weights["acceleration"], 0.1, 10.0, 2),
            iter_core.smoothness_objective("jerk", weights["jerk"], 0.1, 10.0, 3),
            iter_core.joint_limit_objective("joint_limits", weights["joint_limits"], 1.0, 0.5, 0.05),
        ]
        if self.chain.elbow is not None:
            frame, offset = self.chain.elbow
            terms.append(
                iter_core.attraction_objective("elbow_up", weights["elbow_up"], 0.2, 1.0, frame, offset, (0, 0, 2.0))
            )
        bodies = collision_bodies(self.chain).core
        # Stiff and shallow: clearance is only paid for where there is nearly none left.
        terms += [
            iter_core.self_collision_objective(
                "self_collision", weights["self_collision"], 1.0, STIFFNESS, SELF_MARGIN, bodies
            ),
            iter_core.obstacle_objective(
                "obstacles", weights["obstacles"], 1.0, STIFFNESS, OBSTACLE_MARGIN, bodies, self.obstacles.core
            ),
        ]
        return terms

    def reset(self, q: ArrayLike) -> None:
        """Starts a new stream at q (n,) rad, standing still; q is clipped to the joint limits."""
        self._core.reset(q)

    def solve(self, target: ArrayLike) -> Array:
        """The next joint positions (n,) rad, for the tip at ``target`` (4, 4) in the base, m."""
        return self._core.solve(target)

    def solve_path(self, targets: ArrayLike) -> Array:
        """The joint positions (N, n) of targets (N, 4, 4), solved one after the other."""
        return self._core.solve_path(targets)

    @property
    def report(self) -> Any:
        """Of the last solve: position_error (m), orientation_error (rad), objective, evaluations, reconfiguring."""
        return self._core.report
