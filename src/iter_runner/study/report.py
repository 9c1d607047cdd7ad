"""A run's report: the summary drawn from its events, for programs (JSON) and for people (tables and a timeline).

The summary is a mapping of plain values in the shape of its JSON, times in seconds on the study clock unless a field
says otherwise; ``docs/timing.md`` explains every field.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from iter_runner.events import Event, EventKind
from iter_runner.study.sessions import Session, SessionError, read_journal
from iter_runner.timing.intervals import Interval, IntervalKind, human_waits, intervals
from iter_runner.timing.metrics import fluency_of, metrics

Summary = Dict[str, Any]

CUT_SHORT = "cut_short"
"""Outcome of a run whose events end without run_finished: the power went, or the runner was killed."""

ORIGINAL_VERSION = "0.0.1"
"""What plans of the original ITER carry, or none."""

_GRASPING = ("grasp", "pick_and_place_static", "pick_and_place_vision")


def summarise_session(session: Session) -> Summary:
    """The summary of a session on disk, whatever state its run ended in.

    Raises:
        SessionError: its journal can't be read, holds no event, or holds what no run writes.
    """
    events = read_journal(session.journal)
    if not events:
        raise SessionError(f"{session.journal} holds no event: the run ended before it began")
    try:
        return summarise(events, session.directory)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise SessionError(
            f"{session.journal} holds a field that no run writes ({type(error).__name__}: {error}): was it edited?"
        ) from error


def summarise(events: Sequence[Event], directory: Optional[Path] = None) -> Summary:
    """The summary of a run's events.

    Args:
        events: of one session, in order, from its run_started on.
        directory: the session's folder; its ``plan.json`` says which objects the plan was to place.

    Raises:
        ValueError: there is no event.
    """
    if not events:
        raise ValueError("no event to draw a report from")
    first = next((event for event in events if event.kind is EventKind.RUN_STARTED), events[0])
    begun: Mapping[str, Any] = first.data if first.kind is EventKind.RUN_STARTED else {}
    last = next((event for event in reversed(events) if event.kind is EventKind.RUN_FINISHED), None)
    ended: Mapping[str, Any] = last.data if last is not None else {}
    plan = _plan_of(directory)
    numbers = metrics(events)
    fluent = fluency_of(events)
    presses = _presses(events)
    responses = [press["response_time"] for press in presses if press["used"] and press["response_time"] is not None]
    summary: Summary = {
        "outcome": ended.get("outcome", CUT_SHORT),
        "message": ended.get("message", ""),
        "title": begun.get("title", ""),
        "session": first.session,
        "session_directory": str(directory) if directory is not None else None,
        "study": begun.get("study", ""),
        "participant_id": begun.get("participant_id", ""),
        "condition": begun.get("condition", ""),
        "robot": begun.get("robot", ""),
        "planner": begun.get("planner", ""),
        "mode": begun.get("mode", ""),
        "plan_hash": begun.get("plan_hash", ""),
        "started": datetime.fromtimestamp(first.wall_time, timezone.utc).isoformat(timespec="milliseconds"),
        "clock_started": first.time,
        "duration": numbers.length,
        "first_step": begun.get("first_step", 0),
        "steps_done": ended.get("steps_done", _steps_done(events)),
        "steps": begun.get("steps", 0),
        "moves": _moves(events),
        "waits": _waits(events),
        "presses": presses,
        "faults": [
            {
                "time": event.time,
                "step": event.step,
                "code": event.data.get("code"),
                "message": event.data.get("message"),
            }
            for event in events
            if event.kind is EventKind.FAULT
        ],
        "intervals": [_interval(interval) for interval in intervals(events)],
        "robot_idle": numbers.robot_idle,
        "neglect": numbers.neglect,
        "suspended": numbers.suspended,
        "rad": numbers.rad,
        "fan_out": numbers.fan_out,
        "functional_delay": numbers.functional_delay,
        "fluency": asdict(fluent) if fluent is not None else None,
        "objects_placed": _objects_placed(events, plan),
        "objects_planned": _objects_planned(plan),
    }
    if responses:
        summary["simulated_responses"] = math.fsum(responses)
    return {name: _finite(value) for name, value in summary.items()}


def to_json(summary: Summary) -> str:
    """The summary as JSON; what is not a finite number is null in it."""
    return json.dumps(_finite(summary), indent=2, allow_nan=False, ensure_ascii=False)


def _finite(value: Any) -> Any:
    """The value with every NaN and infinity replaced by None, however deep."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _steps_done(events: Sequence[Event]) -> int:
    return len({event.step for event in events if event.kind is EventKind.STEP_FINISHED})


def _moves(events: Sequence[Event]) -> List[Dict[str, Any]]:
    return [
        {
            "step": event.step,
            "pointer": event.pointer,
            "path_hash": event.data.get("path_hash", ""),
            "duration": event.data.get("duration"),
            "position_error": event.data.get("position_error"),
            "orientation_error": event.data.get("orientation_error"),
            "commanded_path": event.data.get("commanded_path"),
            "finished": event.time,
        }
        for event in events
        if event.kind is EventKind.MOVE_FINISHED
    ]


def _waits(events: Sequence[Event]) -> List[Dict[str, Any]]:
    expected: Dict[int, Any] = {}
    for event in events:
        rad = event.data.get("rad") if event.kind is EventKind.STEP_STARTED else None
        if isinstance(rad, Mapping) and rad.get("expected_interaction_time") is not None:
            expected[event.step] = rad["expected_interaction_time"]
    return [
        {
            "step": wait.step,
            "pointer": wait.pointer,
            "started": wait.started,
            "ended": wait.ended,
            "duration": wait.duration,
            "condition": wait.condition,
            "message": wait.message,
            "by": wait.by,
            "answer": wait.answer,
            "open": wait.open,
            "expected": expected.get(wait.step),
        }
        for wait in human_waits(events)
    ]


def _presses(events: Sequence[Event]) -> List[Dict[str, Any]]:
    presses = []
    for event in events:
        if event.kind is not EventKind.PRESS:
            continue
        detail = event.data.get("detail")
        if isinstance(detail, str):
            try:
                detail = json.loads(detail)
            except ValueError:
                detail = None
        response = detail.get("response_time") if isinstance(detail, Mapping) else None
        presses.append(
            {
                "time": event.data.get("time", event.time),
                "source": event.data.get("source", ""),
                "used": bool(event.data.get("used", False)),
                "reason": event.data.get("reason") or "",
                "step": event.step,
                "response_time": float(response) if isinstance(response, (int, float)) else None,
            }
        )
    return presses


def _interval(interval: Interval) -> Dict[str, Any]:
    return {
        "kind": interval.kind.value,
        "start": interval.start,
        "end": interval.end,
        "step": interval.step,
        "pointer": interval.pointer,
        "open": interval.open,
    }


def _objects_placed(events: Sequence[Event], plan: Optional[Mapping[str, Any]]) -> int:
    """How often the hand closed on something and let go of it again.

    Fingers that reached where they were sent closed on nothing, unless they were sent no closer than the object that
    the plan connects is wide (original plans give tokens, or positions beside the blocks): then the plan's word counts.
    """
    widths = _widths(plan)
    placed, holding, connected = 0, False, ""
    for event in events:
        if event.kind is EventKind.OBJECT_ATTACHED:
            holding, connected = True, str(event.data.get("object_name"))
        elif event.kind is EventKind.OBJECT_DETACHED:
            connected = ""
        elif event.kind is EventKind.GRIPPER_FINISHED and event.data.get("action") == "grasp":
            stopped = bool(event.data.get("stalled")) or event.data.get("reached_goal") is False
            opening = event.data.get("opening")
            holding = stopped or (opening is not None and opening >= widths.get(connected, math.inf))
        elif event.kind is EventKind.GRIPPER_FINISHED and event.data.get("action") == "release":
            placed += holding
            holding = False
    return placed


def _plan_of(directory: Optional[Path]) -> Optional[Mapping[str, Any]]:
    """The plan of a session's folder; None where it can't be read."""
    if directory is None:
        return None
    try:
        plan = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return plan if isinstance(plan, Mapping) else None


def _widths(plan: Optional[Mapping[str, Any]]) -> Dict[str, float]:
    """How wide the plan's objects are between the fingers, m: they take neither the longest edge nor a low height.

    In original plans, whose objects are turned as their flange is, they may take any edge.
    """
    taken = 0 if (plan or {}).get("version", ORIGINAL_VERSION) == ORIGINAL_VERSION else 1
    widths: Dict[str, float] = {}
    for item in (plan or {}).get("environment") or ():
        try:
            widths[item["name"]] = sorted(float(item["size"][axis]) for axis in "xyz")[taken]
        except (KeyError, TypeError, ValueError):
            continue
    return widths


def _objects_planned(plan: Optional[Mapping[str, Any]]) -> Optional[int]:
    """How many grasps the plan holds; None where there is no plan."""
    try:
        return sum(1 for step in (plan or {})["task"] if isinstance(step, Mapping) and step.get("name") in _GRASPING)
    except (KeyError, TypeError):
        return None


def timeline(summary: Summary, width: int = 78, unicode: bool = True) -> str:
    """The run's intervals as one line of ``width`` characters: neglect, interaction (solid), suspended.

    An interval that is shorter than a character still shows if it is an interaction.
    """
    solid, thin, empty = ("█", "─", "·") if unicode else ("#", "-", ".")
    found = summary["intervals"]
    if not found or summary["duration"] <= 0:
        return ""
    start, length = found[0]["start"], found[-1]["end"] - found[0]["start"]
    line = [thin] * width
    for kind, symbol in ((IntervalKind.SUSPENDED.value, empty), (IntervalKind.INTERACTION.value, solid)):
        for interval in found:
            if interval["kind"] == kind:
                left = min(width - 1, int((interval["start"] - start) / length * width))
                right = max(left + 1, round((interval["end"] - start) / length * width))
                line[left:right] = symbol * (right - left)
    return "".join(line[:width])
