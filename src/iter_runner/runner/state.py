"""What a run is doing at one moment, as ``/runner/state`` shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import List, Optional, Sequence

from iter_runner.plan.step import Rad


class State(IntEnum):
    """The values of ``msg/RunnerState.msg``."""

    IDLE = 0
    WAITING_FOR_ARM = 1
    RUNNING = 2
    WAITING_FOR_HUMAN = 3
    PAUSED = 4
    FAULTED = 5


@dataclass(frozen=True)
class RunState:
    """See ``msg/RunnerState.msg`` for the fields."""

    state: State = State.IDLE
    session: str = ""
    title: str = ""
    step: int = -1
    steps: int = 0
    step_name: str = ""
    doing: str = ""
    waiting_for: str = ""
    fault: str = ""
    started: float = 0.0
    remaining: float = math.nan


def expected_remaining(rads: Sequence[Optional[Rad]]) -> List[float]:
    """For each step, the expected seconds from its beginning to the end of the plan.

    (n + 1,) values for n steps; all NaN where no step carries a time.
    """
    expected = [_expected_duration(rad) for rad in rads]
    if all(value is None for value in expected):
        return [math.nan] * (len(expected) + 1)
    remaining = [0.0]
    for value in reversed(expected):
        remaining.append(remaining[-1] + (value or 0.0))
    return remaining[::-1]


def _expected_duration(rad: Optional[Rad]) -> Optional[float]:
    if rad is None:
        return None
    return rad.neglect_time if rad.neglect_time is not None else rad.expected_interaction_time
