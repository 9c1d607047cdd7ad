"""How far the runs of one planner are apart."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Dict, List, Sequence

import numpy as np

from iter_runner.repeatability.rehearsal import MotionRecord, Rehearsal
from iter_runner.robot.arm import Vector

PHASES = 101
"""Moments of a move, from its start to its end at equal shares of its duration, at which runs are compared."""


@dataclass(frozen=True)
class MoveSpread:
    """One move over all runs that made it.

    Attributes:
        key: which move of the plan.
        runs: how many made it.
        equal: how many of them made the most frequent motion, to the bit.
        joint_range: (PHASES, n) rad, between the outermost runs, joint by joint.
        mean_deviation: rad, between two runs, over all pairs, joints and moments.
        tool_spread: m, between the two runs whose tools are the farthest apart at any moment.
    """

    key: str
    runs: int
    equal: int
    joint_range: Vector
    mean_deviation: float
    tool_spread: float


@dataclass(frozen=True)
class Comparison:
    """All runs of one planner.

    Attributes:
        planner: its name.
        runs: how many there were.
        failures: why those that did not finish failed, with how often.
        identical: the largest number of finished runs whose motions are all equal to the bit.
        maximum_deviation: rad, the largest difference of a joint between two runs at the same share of a move.
        mean_deviation: rad, over all pairs of runs, moves, joints and moments.
        tool_spread: m, the largest distance between two runs' tools at the same share of a move.
        path_length: m of the tool, summed over a finished run's moves: mean over the runs.
        joint_travel: rad, the same of all joints together.
        motion_time: s, the same of the moves' durations.
        planning_time: s of wall time, the same; NaN where the planner does not say.
        moves: one a move of the plan.
    """

    planner: str
    runs: int
    failures: Dict[str, int]
    identical: int
    maximum_deviation: float
    mean_deviation: float
    tool_spread: float
    path_length: float
    joint_travel: float
    motion_time: float
    planning_time: float
    moves: Sequence[MoveSpread]

    @property
    def finished(self) -> int:
        """Runs that came to the plan's end."""
        return self.runs - sum(self.failures.values())


def compare(planner: str, rehearsals: Sequence[Rehearsal]) -> Comparison:
    """The comparison of a planner's runs of one plan; numbers that no run gives are NaN."""
    finished = [rehearsal for rehearsal in rehearsals if not rehearsal.failure]
    hashes = Counter(tuple(motion.path_hash for motion in rehearsal.motions) for rehearsal in finished)
    moves = [
        _spread(key, [motion for rehearsal in rehearsals for motion in rehearsal.motions if motion.key == key])
        for key in _keys(rehearsals)
    ]
    compared = [move for move in moves if move.runs > 1]
    return Comparison(
        planner=planner,
        runs=len(rehearsals),
        failures=dict(Counter(rehearsal.failure for rehearsal in rehearsals if rehearsal.failure)),
        identical=max(hashes.values(), default=0),
        maximum_deviation=max((float(np.max(move.joint_range)) for move in compared), default=math.nan),
        mean_deviation=_mean([move.mean_deviation for move in compared]),
        tool_spread=max((move.tool_spread for move in compared), default=math.nan),
        path_length=_mean([sum(_length(motion.tool_path) for motion in run.motions) for run in finished]),
        joint_travel=_mean(
            [
                sum(float(np.sum(np.abs(np.diff(motion.positions, axis=0)))) for motion in run.motions)
                for run in finished
            ]
        ),
        motion_time=_mean([sum(float(motion.times[-1]) for motion in run.motions) for run in finished]),
        planning_time=_mean([sum(motion.planning_time for motion in run.motions) for run in finished]),
        moves=moves,
    )


def at_phases(times: Vector, values: Vector) -> Vector:
    """(PHASES, k) of values (N, k) at times (N,) s, at equal shares of the duration."""
    shares = np.linspace(0.0, float(times[-1]), PHASES)
    return np.column_stack([np.interp(shares, times, column) for column in values.T])


def _keys(rehearsals: Sequence[Rehearsal]) -> List[str]:
    """The moves that any run made, in the order of the run that came the farthest."""
    longest = max(rehearsals, key=lambda rehearsal: len(rehearsal.motions), default=Rehearsal())
    return [motion.key for motion in longest.motions]


def _spread(key: str, motions: Sequence[MotionRecord]) -> MoveSpread:
    equal = max(Counter(motion.path_hash for motion in motions).values())
    first = motions[0]
    if equal == len(motions):  # to the bit: not even rounding is to show
        return MoveSpread(key, len(motions), equal, np.zeros((PHASES, first.positions.shape[1])), 0.0, 0.0)
    joints = np.array([at_phases(motion.times, motion.positions) for motion in motions])
    tools = np.array([at_phases(motion.times, motion.tool_path) for motion in motions])
    apart = [np.abs(joints[i + 1 :] - joints[i]) for i in range(len(motions) - 1)]
    tools_apart = [np.linalg.norm(tools[i + 1 :] - tools[i], axis=2) for i in range(len(motions) - 1)]
    return MoveSpread(
        key=key,
        runs=len(motions),
        equal=equal,
        joint_range=np.asarray(np.ptp(joints, axis=0)),
        mean_deviation=float(np.mean(np.concatenate([part.reshape(-1) for part in apart]))),
        tool_spread=float(max(np.max(part) for part in tools_apart)),
    )


def _length(points: Vector) -> float:
    return float(np.sum(np.linalg.norm(np.diff(points, axis=0), axis=1)))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
