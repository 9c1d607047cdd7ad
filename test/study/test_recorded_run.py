"""What a run that repeats a session finds in its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Tuple

import numpy as np
import pytest

from iter_runner.events import Event, EventKind
from iter_runner.study import sessions
from iter_runner.study.recorded_run import recorded_run
from iter_runner.study.sessions import Session, SessionError

HEADER = {"robot": "ur5", "planner": "static", "plan_hash": "abc", "tool_frame": "tool0", "first_step": 0}
Happening = Tuple[EventKind, int, Mapping[str, Any]]


def write(folder: Path, happenings: Sequence[Happening]) -> Session:
    session = sessions.create_session("{}", folder=folder)
    lines = [
        Event(number, session.name, kind, float(number), float(number), step, "", data).to_json()
        for number, (kind, step, data) in enumerate(happenings)
    ]
    session.journal.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return session


def keep(session: Session, name: str, value: float) -> None:
    sessions.save_path(session, name, np.full((2, 3), value), np.array([0.0, 1.0]), ["a", "b", "c"])


def moved(step: int, name: str) -> Happening:
    return EventKind.MOVE_FINISHED, step, {"path_hash": f"hash of {name}", "commanded_path": f"paths/{name}.npz"}


def started(step: int, attempt: int = 1) -> Happening:
    return EventKind.STEP_STARTED, step, {"name": "move", "attempt": attempt}


def done(step: int) -> Happening:
    return EventKind.STEP_FINISHED, step, {"name": "move"}


BEGIN: Happening = (EventKind.RUN_STARTED, -1, HEADER)
END: Happening = (EventKind.RUN_FINISHED, -1, {"outcome": "finished"})


def test_motions_by_step_and_count(tmp_path: Path) -> None:
    happenings = [BEGIN, started(0), moved(0, "0"), done(0), started(1), moved(1, "1"), moved(1, "1_2"), done(1), END]
    session = write(tmp_path, happenings)
    for name, value in (("0", 0.0), ("1", 1.0), ("1_2", 2.0)):
        keep(session, name, value)
    run = recorded_run(session)
    assert (run.name, run.robot, run.planner, run.plan_hash) == (session.name, "ur5", "static", "abc")
    assert (run.outcome, run.first_step, list(run.done), list(run.repeated)) == ("finished", 0, [0, 1], [])
    assert list(run.motions) == ["0", "1", "1_2"]
    assert run.motions["1_2"].positions[0, 0] == 2.0
    assert list(run.motions["0"].joint_names) == ["a", "b", "c"]
    assert run.motions["1"].path_hash == "hash of 1"


def test_the_attempt_that_finished_a_step_counts(tmp_path: Path) -> None:
    fault: Happening = (EventKind.FAULT, 4, {"code": "bump", "message": "bump"})
    happenings = [
        BEGIN,
        started(4),
        moved(4, "4"),
        fault,
        started(4, 2),
        moved(4, "4_2"),
        moved(4, "4_3"),
        done(4),
        END,
    ]
    session = write(tmp_path, happenings)
    for name, value in (("4", 1.0), ("4_2", 2.0), ("4_3", 3.0)):
        keep(session, name, value)
    run = recorded_run(session)
    assert {key: motion.positions[0, 0] for key, motion in run.motions.items()} == {"4": 2.0, "4_2": 3.0}
    assert list(run.repeated) == [4]


@pytest.mark.parametrize(
    ("end", "outcome"), [(None, ""), ({"outcome": "stopped"}, "stopped"), ({"outcome": "aborted"}, "aborted")]
)
def test_a_run_that_did_not_finish(end: Optional[Mapping[str, Any]], outcome: str, tmp_path: Path) -> None:
    happenings = [BEGIN, started(0), moved(0, "0"), done(0), started(1), moved(1, "1")]
    session = write(tmp_path, [*happenings, *([] if end is None else [(EventKind.RUN_FINISHED, -1, end)])])
    keep(session, "0", 0.0)
    run = recorded_run(session)
    assert (run.outcome, list(run.done), list(run.motions)) == (outcome, [0], ["0"])


def test_a_replay_has_the_planner_of_the_first_session(tmp_path: Path) -> None:
    header = {**HEADER, "planner": "replay", "replay_of": "earlier", "replayed_planner": "relaxed_ik"}
    assert recorded_run(write(tmp_path, [(EventKind.RUN_STARTED, -1, header), END])).planner == "relaxed_ik"


def test_records_that_can_not_be_read(tmp_path: Path) -> None:
    session = write(tmp_path, [BEGIN, started(0), moved(0, "0"), done(0), END])
    with pytest.raises(SessionError, match=r"can't read the commanded path .*0\.npz"):
        recorded_run(session)
    (session.paths / "0.npz").write_bytes(b"torn")
    with pytest.raises(SessionError, match=r"can't read the commanded path"):
        recorded_run(session)
    sessions.save_path(session, "0", np.zeros((2, 3)), np.array([0.0, 0.0]), ["a", "b", "c"])
    with pytest.raises(SessionError, match="is no commanded path"):
        recorded_run(session)
    with pytest.raises(SessionError, match="first_step is 'x'"):
        recorded_run(write(tmp_path, [(EventKind.RUN_STARTED, -1, {**HEADER, "first_step": "x"})]))
    with pytest.raises(SessionError, match="has no beginning"):
        recorded_run(write(tmp_path, []))
