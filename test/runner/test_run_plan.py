from __future__ import annotations

import json
from pathlib import Path

import pytest

from iter_runner.events import Event, EventKind
from iter_runner.nodes.run_plan import Failure, make_goal, parse_arguments
from iter_runner.plan import load_plan, plan_hash
from iter_runner.primitives import REGISTRY
from iter_runner.runner.journal import Journal
from iter_runner.study.sessions import Session, create_session

TASK = [{"name": "logger", "msg": str(number)} for number in range(4)]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"version": "1.0.0", "task": TASK}))
    return file


@pytest.fixture
def session(tmp_path: Path, plan: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A run that was cut short in step 2."""
    monkeypatch.setenv("ITER_RUNNER_SESSIONS", str(tmp_path / "sessions"))
    session = create_session(plan.read_text())
    header = {"plan_hash": plan_hash(load_plan(plan, REGISTRY)), "plan_file": str(plan), "steps": 4, "first_step": 0}
    header.update(study="houses", participant_id="P07", condition="", mode="capture")
    kinds = [(EventKind.RUN_STARTED, -1, header), *[(EventKind.STEP_STARTED, step, {}) for step in range(3)]]
    Journal(session.journal).append(
        [Event(number, session.name, kind, 0.0, 0.0, step, "", data) for number, (kind, step, data) in enumerate(kinds)]
    )
    return session


def test_a_plan_is_found_from_where_the_launch_was_called(plan: Path) -> None:
    goal = make_goal(parse_arguments(["plan.json", "--folder", str(plan.parent), "--first-step", "2"]))
    assert (goal.plan_path, goal.first_step, goal.mode) == (str(plan), 2, "run")


def test_resume_takes_the_sessions_plan_and_step(plan: Path, session: Session) -> None:
    for arguments in (["--resume"], ["--resume", session.name], [str(plan), "--resume", session.name[:12]]):
        goal = make_goal(parse_arguments(arguments))
        assert (goal.plan_path, goal.first_step) == (str(plan), 2)
    goal = make_goal(parse_arguments(["--resume", session.name, "--first-step", "1"]))
    assert goal.first_step == 1


def test_a_resumed_run_is_filed_beside_the_first(session: Session) -> None:
    goal = make_goal(parse_arguments(["--resume", "--condition", "pooled"]))
    assert (goal.study, goal.participant_id, goal.condition) == ("houses", "P07", "pooled")
    assert make_goal(parse_arguments(["--resume", "--participant-id", "P08"])).participant_id == "P08"


def test_a_resumed_run_keeps_its_mode(plan: Path, session: Session) -> None:
    assert make_goal(parse_arguments(["--resume"])).mode == "capture"
    assert make_goal(parse_arguments(["--resume", "--mode", "run"])).mode == "run"
    assert make_goal(parse_arguments([str(plan)])).mode == "run"


def test_resume_falls_back_on_the_sessions_copy_of_the_plan(plan: Path, session: Session) -> None:
    plan.unlink()
    assert make_goal(parse_arguments(["--resume"])).plan_path == str(session.plan)


def test_a_plan_that_has_changed_is_not_resumed(plan: Path, session: Session) -> None:
    plan.write_text(json.dumps({"version": "1.0.0", "task": TASK[1:]}))
    with pytest.raises(Failure, match="no longer, the plan of session"):
        make_goal(parse_arguments(["--resume"]))


def test_a_finished_session_has_nothing_to_resume(session: Session) -> None:
    events = [
        Event(9, "", EventKind.STEP_FINISHED, 0.0, 0.0, 3),
        Event(10, "", EventKind.RUN_FINISHED, 0.0, 0.0, -1, "", {"outcome": "finished"}),
    ]
    with session.journal.open("a") as stream:
        stream.writelines(event.to_json() + "\n" for event in events)
    with pytest.raises(Failure, match="nothing to resume"):
        make_goal(parse_arguments(["--resume"]))


@pytest.mark.parametrize("arguments", [[], ["x.json", "--mode", "fast"], ["x.json", "--first-step", "one"]])
def test_wrong_usage_ends_with_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(arguments)
    assert caught.value.code == 2


def test_a_plan_that_is_not_there_is_a_failure_that_names_it() -> None:
    with pytest.raises(Failure, match="nowhere"):
        make_goal(parse_arguments(["/nowhere.json"]))
