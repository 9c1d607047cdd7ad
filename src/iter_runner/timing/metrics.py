"""What a run's intervals say about the human and the robot: robot idle, RAD, fan-out, collaborative fluency.

Sources: D. R. Olsen and M. A. Goodrich, "Metrics for evaluating human-robot interactions" (PerMIS 2003); G. Hoffman,
"Evaluating fluency in human-robot collaboration" (IEEE Transactions on Human-Machine Systems 49(3), 2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import List, Mapping, Optional, Sequence, Tuple

from iter_runner.events import Event, EventKind
from iter_runner.timing.intervals import HumanWait, Interval, IntervalKind, human_waits, intervals, run_span

Span = Tuple[float, float]
"""(start, end) on the study clock, s."""


@dataclass(frozen=True)
class Metrics:
    """A run in a few numbers, seconds where no unit is given.

    Attributes:
        length: the run, from its start to its end: robot_idle + neglect + suspended.
        robot_idle: the sum of the interaction intervals, the robot's waits on the human.
        neglect: in which the robot works by itself.
        suspended: paused by the operator or by a fault; part of neither.
        rad: robot attention demand, interaction / (interaction + neglect), 0...1; NaN for a run of no length.
        fan_out: (interaction + neglect) / interaction, 1 or more; infinite where the robot never waited.
        functional_delay: from each press or answer to the robot's next step, summed.
    """

    length: float
    robot_idle: float
    neglect: float
    suspended: float
    rad: float
    fan_out: float
    functional_delay: float


def robot_attention_demand(interaction: float, neglect: float) -> float:
    """RAD: the share of its time in which a robot needs its human, 0...1; NaN where both are 0."""
    total = interaction + neglect
    return interaction / total if total > 0 else math.nan


def fan_out(interaction: float, neglect: float) -> float:
    """How many such robots one human could serve: 1 / RAD; infinite without interaction, NaN where both are 0."""
    total = interaction + neglect
    if interaction > 0:
        return total / interaction
    return math.inf if total > 0 else math.nan


def total(found: Sequence[Interval], kind: IntervalKind) -> float:
    """The summed duration of the intervals of one kind, s."""
    return math.fsum(interval.duration for interval in found if interval.kind is kind)


def functional_delay(events: Sequence[Event], waits: Sequence[HumanWait]) -> float:
    """From each press or answer to the start of the robot's next step, summed, s: what software adds to a hand-over.

    This is the human-to-robot half of Hoffman's functional delay; the other half needs the human's own stamps, see
    :func:`fluency`.
    """
    starts = [event.time for event in events if event.kind is EventKind.STEP_STARTED]
    delays: List[float] = []
    for wait in waits:
        if wait.by in ("press", "answer"):
            following = next((time for time in starts if time > wait.started and time >= wait.ended), None)
            if following is not None:
                delays.append(following - wait.ended)
    return math.fsum(delays)


def metrics(events: Sequence[Event]) -> Metrics:
    """The numbers of one run.

    Raises:
        ValueError: there is no event.
    """
    if not events:
        raise ValueError("a run without an event has no metrics")
    found = intervals(events)
    idle = total(found, IntervalKind.INTERACTION)
    neglect = total(found, IntervalKind.NEGLECT)
    return Metrics(
        length=math.fsum(interval.duration for interval in found),
        robot_idle=idle,
        neglect=neglect,
        suspended=total(found, IntervalKind.SUSPENDED),
        rad=robot_attention_demand(idle, neglect),
        fan_out=fan_out(idle, neglect),
        functional_delay=functional_delay(events, human_waits(events)),
    )


@dataclass(frozen=True)
class Fluency:
    """Hoffman's objective fluency measures, each a fraction of the task's time.

    Attributes:
        robot_idle, human_idle: that one is not active.
        concurrent_activity: that both are active at once.
        functional_delay: from the end of one's activity to the start of the other's next; negative where they overlap.
    """

    robot_idle: float
    human_idle: float
    concurrent_activity: float
    functional_delay: float


def fluency(robot: Sequence[Span], human: Sequence[Span], task: Span) -> Fluency:
    """The fluency measures of two agents' activities in a task (Hoffman 2019, section III).

    Args:
        robot, human: when each is active; the spans of one agent do not overlap.
        task: the whole task; activities are clipped to it.

    Raises:
        ValueError: the task has no length.
    """
    start, end = task
    length = end - start
    if length <= 0:
        raise ValueError(f"the task has no length: it starts at {start} s and ends at {end} s")
    robot = _clip(robot, task)
    human = _clip(human, task)
    both = math.fsum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in robot for b in human)
    return Fluency(
        robot_idle=1.0 - math.fsum(b - a for a, b in robot) / length,
        human_idle=1.0 - math.fsum(b - a for a, b in human) / length,
        concurrent_activity=both / length,
        functional_delay=_hand_over_delay(robot, human) / length,
    )


def human_activity(events: Sequence[Event]) -> Optional[List[Span]]:
    """When the plan says that the human is at work; None where it does not say.

    ``human_active`` in a step's ``rad`` holds from that step on until another one says otherwise. A press or an answer
    that ends a wait ends what the human was doing; the next step begins it anew.
    """
    says, active = False, False
    since: Optional[float] = None
    spans: List[Span] = []
    ends = {wait.step: wait.ended for wait in human_waits(events) if wait.by in ("press", "answer")}

    def close(time: float) -> None:
        nonlocal since
        if since is not None and time > since:
            spans.append((since, time))
        since = None

    for event in events:
        if event.kind is EventKind.STEP_STARTED:
            rad = event.data.get("rad")
            stated = rad.get("human_active") if isinstance(rad, Mapping) else None
            if stated is not None:
                says, active = True, bool(stated)
            if not active:
                close(event.time)
            elif since is None:
                since = event.time
        elif event.kind is EventKind.STEP_FINISHED and event.step in ends:
            close(ends[event.step])
    close(run_span(events)[1])
    return spans if says else None


def fluency_of(events: Sequence[Event]) -> Optional[Fluency]:
    """The fluency measures of a run whose plan says what the human is doing; None for others.

    The robot is active in its neglect intervals.
    """
    human = human_activity(events) if events else None
    if human is None:
        return None
    robot = [(i.start, i.end) for i in intervals(events) if i.kind is IntervalKind.NEGLECT]
    start, end = run_span(events)
    return fluency(robot, human, (start, end)) if end > start else None


def _clip(spans: Sequence[Span], task: Span) -> List[Span]:
    start, end = task
    return sorted((max(a, start), min(b, end)) for a, b in spans if min(b, end) > max(a, start))


def _hand_over_delay(robot: Sequence[Span], human: Sequence[Span]) -> float:
    """Summed over every change of agent in the order of the activities' starts: next start - previous end, s."""
    activities = sorted([(a, b, "robot") for a, b in robot] + [(a, b, "human") for a, b in human])
    delay = 0.0
    before: Optional[Tuple[float, float, str]] = None
    for activity in activities:
        if before is not None and before[2] != activity[2]:
            delay += activity[0] - before[1]
        before = activity
    return delay
