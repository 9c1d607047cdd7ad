"""What a session's record holds of its motions, for a run that repeats them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.events import Event, EventKind
from iter_runner.study.sessions import Session, SessionError, load_path, path_joints, read_journal

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RecordedMotion:
    """A move's commanded path as it was recorded.

    Attributes:
        positions: (N, n) rad, in the order of ``joint_names``.
        times: (N,) s from its start.
        path_hash: as the journal has it.
        file: relative to the session's folder.
    """

    positions: Array
    times: Array
    joint_names: Sequence[str]
    path_hash: str
    file: str


@dataclass(frozen=True)
class RecordedRun:
    """A session as one that repeats its motions needs it.

    Attributes:
        name: the session's.
        robot, plan_hash, tool_frame: of its run.
        planner: that its motions were made by; of a session that was a replay itself, the first one's.
        outcome: finished, stopped or aborted; empty where the record ends without one.
        first_step: the index of the step that it began with.
        done: the indices of the steps that it finished.
        motions: by key: the step's index, and behind ``_`` the move's count where the step moved more than once. Of a
            step that was repeated after a fault, those of the attempt that finished it.
        repeated: the indices of the steps that were repeated after a fault.
    """

    name: str
    robot: str
    planner: str
    plan_hash: str
    tool_frame: str
    outcome: str
    first_step: int
    done: Sequence[int]
    motions: Mapping[str, RecordedMotion]
    repeated: Sequence[int] = field(default_factory=list)


def recorded_run(session: Session) -> RecordedRun:
    """Reads a session's journal and commanded paths.

    Raises:
        SessionError: one of them can't be read, or the journal has no beginning.
    """
    events = read_journal(session.journal)
    begun = next((event for event in events if event.kind is EventKind.RUN_STARTED), None)
    if begun is None:
        raise SessionError(f"{session.journal} has no beginning: no run was started in this session")
    ended = next((event for event in events if event.kind is EventKind.RUN_FINISHED), None)
    moves, done, repeated = _steps(events)
    motions = {}
    for step in done:
        for count, event in enumerate(moves.get(step, []), start=1):
            motions[str(step) if count == 1 else f"{step}_{count}"] = _motion(session, event)
    header = begun.data
    first_step = header.get("first_step", 0)
    if not isinstance(first_step, int):
        raise SessionError(f"{session.journal}: first_step is {first_step!r}, expected a whole number")
    return RecordedRun(
        name=session.name,
        robot=str(header.get("robot", "")),
        planner=str(header.get("replayed_planner") or header.get("planner", "")),
        plan_hash=str(header.get("plan_hash", "")),
        tool_frame=str(header.get("tool_frame", "")),
        outcome="" if ended is None else str(ended.data.get("outcome", "")),
        first_step=first_step,
        done=done,
        motions=motions,
        repeated=repeated,
    )


def _steps(events: Sequence[Event]) -> Tuple[Dict[int, List[Event]], List[int], List[int]]:
    """The moves of each step's last attempt, the steps that were finished, and those that took more than one."""
    moves: Dict[int, List[Event]] = {}
    done: List[int] = []
    repeated: List[int] = []
    for event in events:
        if event.kind is EventKind.STEP_STARTED:
            if event.step in moves:
                repeated.append(event.step)
            moves[event.step] = []
        elif event.kind is EventKind.MOVE_FINISHED:
            moves.setdefault(event.step, []).append(event)
        elif event.kind is EventKind.STEP_FINISHED:
            done.append(event.step)
    return moves, done, sorted(set(repeated))


def _motion(session: Session, event: Event) -> RecordedMotion:
    file = event.data.get("commanded_path")
    path_hash: Optional[str] = event.data.get("path_hash")
    if not isinstance(file, str) or not path_hash:
        raise SessionError(f"{session.journal}: the move of step {event.step} has no commanded path")
    positions, times = load_path(session.directory / file)
    whole = positions.ndim == 2 and len(positions) > 0 and times.shape == positions.shape[:1]
    if not whole or not np.all(np.isfinite(positions)) or not np.all(np.diff(times) > 0.0):
        raise SessionError(f"{session.directory / file} is no commanded path: positions at rising times expected")
    return RecordedMotion(positions, times, path_joints(session.directory / file), str(path_hash), file)
