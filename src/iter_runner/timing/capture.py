"""Writes a run's measured times into its plan, so that a later run can count down to them.

Every entry of the plan's ``task`` that the run finished gets a ``rad`` object, as the original ITER wrote it (what the
plan says of the human stays):

* an entry that waited on the human: ``{"is_interaction": true, "expected_interaction_time": the wait, s}``;
* any other: ``{"is_interaction": false, "neglect_time": how long it took, s}``.

The times are shares of the run's intervals, so that the plan's neglect times between two waits add up to the measured
neglect interval to the last digit that matters: what passes between two steps (publication, the journal's writes, the
wake-up after a press) is counted to the step that follows, and after the last step to the last step. A composite entry
(pick and place, an entry with several waypoints) gets the time of all the simple steps that it stands for.
"""

from __future__ import annotations

import copy
import math
import re
from typing import Any, Dict, List, Mapping, Sequence, Set

from iter_runner.events import Event, EventKind
from iter_runner.timing.intervals import IntervalKind, human_waits, intervals, is_human, run_span

DIGITS = 6
"""Times are written in seconds with this many decimals."""

_ENTRY = re.compile(r"^/task/(\d+)(?:/|$)")


def captured_plan(plan: Mapping[str, Any], events: Sequence[Event]) -> Dict[str, Any]:
    """The plan's JSON with the times that ``events`` measured; entries that the run did not finish stay as they are.

    Args:
        plan: the plan as it was run.
        events: of the whole run, or of one that was stopped.
    """
    written = copy.deepcopy(dict(plan))
    task = written.get("task")
    if not isinstance(task, list):
        return written
    for entry, rad in entry_times(events).items():
        if entry < len(task) and isinstance(task[entry], dict):
            before = task[entry].get("rad")
            kept = {"human_active": before["human_active"]} if _says_human_active(before) else {}
            task[entry]["rad"] = {**rad, **kept}
    return written


def entry_times(events: Sequence[Event]) -> Dict[int, Dict[str, Any]]:
    """The ``rad`` object of each finished entry of the plan's ``task``, by its index."""
    if not events:
        return {}
    finished = _finished_entries(events)
    waits = human_waits(events)
    interactions = {_entry(wait.pointer) for wait in waits}
    neglect = [interval for interval in intervals(events) if interval.kind is IntervalKind.NEGLECT]
    start, run_end = run_span(events)
    stretch: Dict[int, float] = {}  # entries since the last wait, each with the time it was finished
    times: Dict[int, Dict[str, Any]] = {}

    def close(end: float) -> None:
        begin = start
        for number, (entry, done) in enumerate(stretch.items(), start=1):
            until = end if number == len(stretch) else done
            seconds = math.fsum(max(0.0, min(i.end, until) - max(i.start, begin)) for i in neglect)
            times[entry] = {"is_interaction": False, "neglect_time": round(seconds, DIGITS)}
            begin = until
        stretch.clear()

    following = iter(waits)
    for event in events:
        if event.kind is EventKind.WAIT_STARTED and is_human(event):
            wait = next(following)
            close(wait.started)
            start = wait.ended
            entry = _entry(wait.pointer)
            if entry in finished:
                before = times.get(entry, {}).get("expected_interaction_time", 0.0)
                seconds = round(before + wait.duration, DIGITS)
                times[entry] = {"is_interaction": True, "expected_interaction_time": seconds}
        elif event.kind is EventKind.STEP_FINISHED:
            entry = _entry(event.pointer)
            if entry in finished and entry not in interactions:
                stretch[entry] = event.time
    # What a run that ended early was in the middle of is none of the last finished entry's time.
    ended_well = any(
        event.kind is EventKind.RUN_FINISHED and event.data.get("outcome") == "finished" for event in events
    )
    close(run_end if ended_well else max(stretch.values(), default=run_end))
    return times


def _says_human_active(rad: Any) -> bool:
    return isinstance(rad, dict) and rad.get("human_active") is not None


def _entry(pointer: str) -> int:
    match = _ENTRY.match(pointer)
    return int(match.group(1)) if match else -1


def _finished_entries(events: Sequence[Event]) -> Set[int]:
    """Entries whose last step ended: one after which another entry began, or the run finished."""
    open_steps: Set[int] = set()
    begun: List[int] = []
    ended_well = False
    for event in events:
        if event.kind is EventKind.STEP_STARTED:
            open_steps.add(event.step)
            begun.append(_entry(event.pointer))
        elif event.kind is EventKind.STEP_FINISHED:
            open_steps.discard(event.step)
        elif event.kind is EventKind.RUN_FINISHED:
            ended_well = event.data.get("outcome") == "finished"
    unfinished = {-1}
    if begun and not ended_well:
        # A composite entry that the run ended in has steps that were not even begun.
        composite = any(event.pointer != f"/task/{begun[-1]}" for event in events if _entry(event.pointer) == begun[-1])
        if composite or open_steps:
            unfinished.add(begun[-1])
    return set(begun) - unfinished
