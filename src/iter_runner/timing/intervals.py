"""Events in, intervals out: when the robot worked by itself and when it waited on the human.

A run is cut without gaps or overlaps into three kinds of interval:

* *interaction*: the robot can do nothing more without the human, from the moment a wait for the button or for an answer
  begins (the arm is still) to the press or the answer that lets it go on;
* *suspended*: the operator paused the run, or a fault did; nobody works and nobody waits on the participant;
* *neglect*: all the rest, in which the robot works by itself (Olsen and Goodrich 2003).

A wait on the human goes on while the run is paused: what the participant was asked for has not changed.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum
from typing import List, Optional, Sequence, Tuple

from iter_runner.events import Event, EventKind

HUMAN_CONDITIONS = ("button", "prompt")
"""Conditions of a wait that a person ends; a wait for a time is the robot's own."""


class IntervalKind(str, Enum):
    """What the robot does in an interval."""

    NEGLECT = "neglect"
    INTERACTION = "interaction"
    SUSPENDED = "suspended"


@dataclass(frozen=True)
class Interval:
    """A stretch of a run.

    Attributes:
        start, end: study clock, s.
        step: the step that waits, for an interaction; the first step, for neglect; -1 before the first.
        pointer: of that step, as written in the plan.
        open: the run's events end before the interval does.
    """

    kind: IntervalKind
    start: float
    end: float
    step: int = -1
    pointer: str = ""
    open: bool = False

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.end - self.start


@dataclass(frozen=True)
class HumanWait:
    """One wait on the human.

    Attributes:
        step, pointer: of the step that waits.
        condition: button or prompt.
        message: what a prompt asks.
        started, ended: study clock, s; ``ended`` is the stamp of the press at its source.
        by: press, answer, timeout or stop; empty while it is open.
        answer: what a prompt was answered with.
        open: nothing in the events ends it; ``ended`` is then the time of the last event.
    """

    step: int
    pointer: str
    condition: str
    message: str
    started: float
    ended: float
    by: str = ""
    answer: Optional[str] = None
    open: bool = False

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.ended - self.started


def run_span(events: Sequence[Event], now: Optional[float] = None) -> Tuple[float, float]:
    """Start and end of a run on the study clock, s.

    The end of a run without its last event is ``now`` where that is given, for a run that is under way, and otherwise
    the time of the last event there is, for one that was cut short.

    Raises:
        ValueError: there is no event.
    """
    if not events:
        raise ValueError("a run without an event has no span")
    start = next((event.time for event in events if event.kind is EventKind.RUN_STARTED), events[0].time)
    finished = [event.time for event in events if event.kind is EventKind.RUN_FINISHED]
    end = finished[-1] if finished else max(event.time for event in events)
    if not finished and now is not None:
        end = max(end, now)
    return start, max(start, end)


def is_human(event: Event) -> bool:
    """Whether a WAIT_STARTED or WAIT_ENDED event is of a wait that a person ends."""
    return event.data.get("condition") in HUMAN_CONDITIONS


def human_waits(events: Sequence[Event], now: Optional[float] = None) -> List[HumanWait]:
    """Every wait on the human in the order of the run; at most the last one is open. ``now``: see :func:`run_span`."""
    waits: List[HumanWait] = []
    begun: Optional[Event] = None

    def close(start: Event, ended: float, *, by: str = "", answer: Optional[str] = None, open_: bool = False) -> None:
        waits.append(
            HumanWait(
                step=start.step,
                pointer=start.pointer,
                condition=str(start.data.get("condition", "")),
                message=str(start.data.get("message") or ""),
                started=start.time,
                # A press is never earlier than the wait it ends; clocks of two machines may say so.
                ended=max(start.time, ended),
                by=by,
                answer=answer,
                open=open_,
            )
        )

    for event in events:
        if event.kind is EventKind.WAIT_STARTED and is_human(event):
            if begun is not None:
                close(begun, event.time, by="interrupted")
            begun = event
        elif event.kind is EventKind.WAIT_ENDED and is_human(event) and begun is not None:
            ended = event.data.get("ended")
            answer = event.data.get("answer")
            close(
                begun,
                event.time if ended is None else float(ended),
                by=str(event.data.get("by", "")),
                answer=None if answer is None else str(answer),
            )
            begun = None
        elif event.kind is EventKind.STEP_STARTED and begun is not None:
            # Only a fault leaves a wait without its end and a step (the same or another) begun after it.
            close(begun, event.time, by="interrupted")
            begun = None
    if begun is not None:
        close(begun, run_span(events, now)[1], open_=True)
    return waits


def suspensions(events: Sequence[Event], now: Optional[float] = None) -> List[Tuple[float, float]]:
    """Stretches in which the run was paused or faulted, (start, end) on the study clock, s."""
    stretches: List[Tuple[float, float]] = []
    since: Optional[float] = None
    for event in events:
        if event.kind in (EventKind.PAUSED, EventKind.FAULT):
            since = event.time if since is None else since
        elif event.kind in (EventKind.RESUMED, EventKind.RUN_FINISHED) and since is not None:
            stretches.append((since, max(since, event.time)))
            since = None
    if since is not None:
        stretches.append((since, max(since, run_span(events, now)[1])))
    return stretches


def intervals(events: Sequence[Event], now: Optional[float] = None) -> List[Interval]:
    """The run cut into intervals: contiguous, in order, from its start to its end; their durations add up to its own.

    ``now``: see :func:`run_span`; the last interval of a run that is under way is open.

    Two waits without a moment between them stay two interactions; intervals of no length are left out.
    """
    if not events:
        return []
    start, end = run_span(events, now)
    finished = any(event.kind is EventKind.RUN_FINISHED for event in events)
    waits = human_waits(events, now)
    pauses = suspensions(events, now)
    steps = sorted((e.time, e.step, e.pointer) for e in events if e.kind is EventKind.STEP_STARTED)

    edges = {start, end}
    edges.update(edge for wait in waits for edge in (wait.started, wait.ended))
    edges.update(edge for pause in pauses for edge in pause)
    cuts = sorted(edge for edge in edges if start <= edge <= end)

    found: List[Interval] = []
    source_before: Optional[Tuple[IntervalKind, int]] = None
    wait = pause = 0
    for left, right in zip(cuts, cuts[1:]):
        while wait < len(waits) and waits[wait].ended <= left:
            wait += 1
        while pause < len(pauses) and pauses[pause][1] <= left:
            pause += 1
        if wait < len(waits) and waits[wait].started <= left:
            source = (IntervalKind.INTERACTION, wait)
        elif pause < len(pauses) and pauses[pause][0] <= left:
            source = (IntervalKind.SUSPENDED, pause)
        else:
            source = (IntervalKind.NEGLECT, -1)
        kind = source[0]
        if source == source_before:
            last = found[-1]
            found[-1] = Interval(kind, last.start, right, last.step, last.pointer)
        elif kind is IntervalKind.INTERACTION:
            found.append(Interval(kind, left, right, waits[wait].step, waits[wait].pointer))
        else:
            found.append(Interval(kind, left, right, *_first_step(left, right, steps)))
        source_before = source
    if found and not finished:
        last = found[-1]
        found[-1] = Interval(last.kind, last.start, last.end, last.step, last.pointer, open=True)
    return found


def _first_step(left: float, right: float, steps: Sequence[Tuple[float, int, str]]) -> Tuple[int, str]:
    """The first step begun in [left, right), or the one under way at ``left``."""
    following = bisect_left(steps, (left, -1, ""))
    if following < len(steps) and steps[following][0] < right:
        return steps[following][1:]
    return steps[following - 1][1:] if following > 0 else (-1, "")
