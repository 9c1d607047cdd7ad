"""What a plan's ``rad`` fields expect: the run's intervals in advance, and what is left of the present one.

A step's ``rad`` says how long it is expected to take, ``neglect_time`` where the robot works by itself and
``expected_interaction_time`` where it waits on the human. Neglect times of steps that follow each other add up to one
interval, as in the original ITER: whether each step carries its own time, or the first one that of all, the interval is
the same. Steps without a time add nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from iter_runner.timing.intervals import Interval, IntervalKind
from iter_runner.timing.metrics import robot_attention_demand, total


@dataclass(frozen=True)
class ExpectedStep:
    """What a plan expects of one step of the flat list.

    Attributes:
        interaction: the robot waits on the human.
        seconds: None where the plan does not say.
    """

    index: int
    pointer: str
    interaction: bool
    seconds: Optional[float]


def expected_step(index: int, pointer: str, rad: Optional[Mapping[str, Any]]) -> ExpectedStep:
    """The expectation that a step's ``rad`` object (as in the plan's JSON, or None) states."""
    rad = rad or {}
    interaction_time, neglect_time = rad.get("expected_interaction_time"), rad.get("neglect_time")
    interaction = bool(rad.get("is_interaction", False)) or interaction_time is not None
    seconds = interaction_time if interaction else neglect_time
    return ExpectedStep(index, pointer, interaction, None if seconds is None else float(seconds))


def expected_intervals(steps: Sequence[ExpectedStep]) -> List[Interval]:
    """The run's intervals as expected, in seconds from its start, contiguous; empty where the plan has no times.

    Each interaction is an interval of its own; what the steps between two of them are expected to take is one neglect
    interval, of the first of them that has a time. Intervals of no length are left out.
    """
    found: List[Interval] = []
    now = 0.0
    for step in steps:
        if not step.seconds:
            continue
        kind = IntervalKind.INTERACTION if step.interaction else IntervalKind.NEGLECT
        until = now + step.seconds
        last = found[-1] if found else None
        if last is not None and kind is IntervalKind.NEGLECT and last.kind is kind:
            found[-1] = Interval(kind, last.start, until, last.step, last.pointer)
        else:
            found.append(Interval(kind, now, until, step.index, step.pointer))
        now = until
    return found


@dataclass(frozen=True)
class Countdown:
    """Expected seconds left of the present interval; the other kind's are 0."""

    neglect: float
    interaction: float


def countdown(expected: Sequence[Interval], measured: Sequence[Interval]) -> Countdown:
    """What is left of the present interval, by expectation; never below 0.

    Where the run is suspended the countdown stands still.

    Args:
        expected: see :func:`expected_intervals`.
        measured: the run's intervals up to now, see :func:`iter_runner.timing.intervals.intervals`.
    """
    if not measured or not measured[-1].open:
        return Countdown(0.0, 0.0)
    match, _ = _place(expected, measured)
    left = max(0.0, match.duration - _spent(measured)) if match is not None else 0.0
    if measured[-1].kind is IntervalKind.INTERACTION:
        return Countdown(0.0, left)
    return Countdown(left, 0.0)


def expected_rad(expected: Sequence[Interval]) -> float:
    """The robot attention demand that the plan expects, 0...1; NaN where it has no times."""
    return robot_attention_demand(total(expected, IntervalKind.INTERACTION), total(expected, IntervalKind.NEGLECT))


def projected_rad(expected: Sequence[Interval], measured: Sequence[Interval]) -> float:
    """The robot attention demand of the whole run as it looks now: measured so far, expected from here on.

    It is the plan's own at the start and the run's own at the end; NaN where nothing is measured or expected.

    Args:
        expected: see :func:`expected_intervals`.
        measured: the run's intervals up to now.
    """
    rest: Sequence[Interval] = expected if not measured else []
    left = Countdown(0.0, 0.0)
    if measured and measured[-1].open:
        rest = _place(expected, measured)[1]
        left = countdown(expected, measured)
    return robot_attention_demand(
        total(measured, IntervalKind.INTERACTION) + left.interaction + total(rest, IntervalKind.INTERACTION),
        total(measured, IntervalKind.NEGLECT) + left.neglect + total(rest, IntervalKind.NEGLECT),
    )


def _place(expected: Sequence[Interval], measured: Sequence[Interval]) -> Tuple[Optional[Interval], Sequence[Interval]]:
    """The expected interval that is under way (None where the plan has none there), and those that follow it."""
    present = measured[-1]
    if present.kind is IntervalKind.INTERACTION:
        for k, interval in enumerate(expected):
            if interval.kind is present.kind and interval.step == present.step:
                return interval, expected[k + 1 :]
        return None, [interval for interval in expected if interval.step > present.step]
    # Neglect lies between two interactions: after the last one that was, before the next one expected.
    waited = [interval.step for interval in measured if interval.kind is IntervalKind.INTERACTION]
    after = waited[-1] if waited else present.step - 1
    following = next(
        (k for k, i in enumerate(expected) if i.kind is IntervalKind.INTERACTION and i.step > after), len(expected)
    )
    match = expected[following - 1] if following > 0 else None
    if match is not None and (match.kind is not IntervalKind.NEGLECT or (waited and match.step <= after)):
        match = None
    return match, expected[following:]


def _spent(measured: Sequence[Interval]) -> float:
    """Seconds of the present interval so far, across suspensions."""
    spent: List[float] = []
    for interval in reversed(measured):
        if measured[-1].kind is IntervalKind.INTERACTION:
            return interval.duration
        if interval.kind is IntervalKind.INTERACTION:
            break
        if interval.kind is IntervalKind.NEGLECT:
            spent.append(interval.duration)
    return math.fsum(spent)
