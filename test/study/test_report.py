"""The report: its JSON, its tables, and what it says about sessions that can't be read."""

import io
import json
import math

import pytest
from hypothesis import given
from rich.console import Console
from run_strategies import RUNS
from scripted_runs import ScriptedRun

from iter_runner.events import EventKind
from iter_runner.study.report import summarise, timeline, to_json
from iter_runner.study.report_tool import main
from iter_runner.study.report_view import print_report

PROMISED = (
    "outcome",
    "robot",
    "planner",
    "plan_hash",
    "steps_done",
    "steps",
    "moves",
    "waits",
    "presses",
    "robot_idle",
    "neglect",
    "rad",
    "fan_out",
    "title",
    "session",
    "session_directory",
    "started",
    "duration",
    "objects_placed",
    "objects_planned",
)


def house(session="20261130T190000.000Z_house_p01_1a2b"):
    run = ScriptedRun(session).start(title="House", steps=10)
    for seconds in (2.0, 3.5):
        run.move(2.0).gripper("grasp", stalled=True).move(3.0).gripper("release").wait_button(seconds, late=0.004)
    run.press(reason="no open wait")
    return run.finish()


@pytest.fixture
def sessions(tmp_path, monkeypatch):
    monkeypatch.setenv("ITER_RUNNER_SESSIONS", str(tmp_path))
    return tmp_path


def printed(summary, **options):
    stream = io.StringIO()
    print_report(summary, Console(file=stream, width=120), **options)
    return stream.getvalue()


def test_the_json_has_what_programs_are_promised(sessions):
    directory = house().write(sessions)
    (directory / "plan.json").write_text(json.dumps({"task": [{"name": "grasp"}, {"name": "move"}, {"name": "grasp"}]}))
    summary = summarise(house().events, directory)
    assert set(PROMISED) <= set(summary)
    assert (summary["outcome"], summary["robot"], summary["planner"]) == ("finished", "ur5", "static")
    assert (summary["steps_done"], summary["steps"]) == (10, 10)
    assert (summary["objects_placed"], summary["objects_planned"]) == (2, 2)
    assert summary["session_directory"] == str(directory)
    assert summary["started"] == "2023-11-14T22:15:00.000+00:00"
    assert summary["moves"][1] == {
        "step": 2,
        "pointer": "/task/2",
        "path_hash": "cd" * 32,
        "duration": 3.0,
        "position_error": 1e-4,
        "orientation_error": 1e-3,
        "commanded_path": "paths/2.npz",
        "finished": 105.5,
    }
    wait = summary["waits"][0]
    assert {key: wait[key] for key in ("step", "pointer", "started", "ended", "duration", "by", "open")} == {
        "step": 4,
        "pointer": "/task/4",
        "started": 106.0,
        "ended": 108.0,
        "duration": 2.0,
        "by": "press",
        "open": False,
    }
    assert summary["robot_idle"] == summary["simulated_responses"] == 5.5
    assert summary["neglect"] == pytest.approx(12.008)
    assert summary["rad"] == pytest.approx(5.5 / 17.508)
    assert summary["fan_out"] == pytest.approx(17.508 / 5.5)
    assert [press["used"] for press in summary["presses"]] == [True, True, False]
    assert {"time", "source", "used", "reason"} <= set(summary["presses"][0])


@given(RUNS)
def test_any_run_makes_valid_json_and_a_report(run):
    summary = json.loads(to_json(summarise(run.events)), parse_constant=pytest.fail)
    assert summary["robot_idle"] == pytest.approx(math.fsum(w["duration"] for w in summary["waits"]), abs=1e-9)
    assert summary["outcome"] in ("finished", "cut_short")
    text = printed(summary, verbose=True)
    assert "\x1b" not in text
    assert text.count("/task/") >= len(summary["waits"])
    assert len(timeline(summary, 40)) in (0, 40)


def test_a_run_without_a_wait_has_no_fan_out():
    summary = summarise(ScriptedRun().start().move(1.0).finish().events)
    assert (summary["rad"], summary["fan_out"]) == (0.0, None)
    assert "never waited" in printed(summary) and "unbounded" in printed(summary)


def test_a_hand_that_closed_on_nothing_placed_nothing():
    run = ScriptedRun().start().gripper("grasp").gripper("release").gripper("grasp", stalled=True).finish()
    assert summarise(run.events)["objects_placed"] == 0


@pytest.mark.parametrize(
    ("version", "size", "placed"),
    [
        ("0.0.1", {"x": 0.01, "y": 0.01, "z": 0.01}, 1),  # an original plan's token
        ("0.0.1", {"x": 0.05, "y": 0.1, "z": 0.015}, 1),  # perhaps taken across the 15 mm
        ("1.0.0", {"x": 0.02, "y": 0.1, "z": 0.015}, 1),  # fingers sent no closer than 40 mm can't tell
        ("1.0.0", {"x": 0.05, "y": 0.1, "z": 0.015}, 0),  # they would have stopped at it
    ],
)
def test_where_fingers_cannot_tell_the_plans_word_counts(sessions, version, size, placed):
    run = ScriptedRun().start().begin("connect_object")
    run.emit(EventKind.OBJECT_ATTACHED, object_name="block")
    run.end().gripper("grasp").gripper("release").begin("disconnect_object")
    run.emit(EventKind.OBJECT_DETACHED, object_name="block")
    run.end().gripper("grasp").gripper("release").finish()
    directory = run.write(sessions)
    block = {"name": "block", "size": size}
    plan = {"version": version, "environment": [block], "task": [{"name": "pick_and_place_static"}]}
    (directory / "plan.json").write_text(json.dumps(plan))
    summary = summarise(run.events, directory)
    assert (summary["objects_placed"], summary["objects_planned"]) == (placed, 1)


def test_a_run_cut_short_says_so(sessions, capsys):
    run = ScriptedRun("cut").start(steps=5).move(1.0).open_wait(4.0)
    journal = run.write(sessions) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"sequence":9,"sess')
    assert main(["cut", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["outcome"], summary["steps_done"], summary["robot_idle"]) == ("cut_short", 1, 4.0)
    assert summary["waits"][0]["open"] is True
    assert main(["cut"]) == 0
    text = capsys.readouterr().out
    assert "cut short" in text and "(open)" in text


def test_expected_times_of_a_captured_plan_stand_beside_the_measured_ones():
    rad = {"is_interaction": True, "expected_interaction_time": 2.5}
    summary = summarise(ScriptedRun().start().wait_button(3.0, rad=rad).wait_button(1.0).finish().events)
    assert [wait["expected"] for wait in summary["waits"]] == [2.5, None]
    assert "expected (s)" in printed(summary)


def test_the_table_has_one_row_a_wait_and_the_total(sessions, capsys):
    house().write(sessions)
    assert main([]) == 0
    text = capsys.readouterr().out
    assert "finished: House, step 10 of 10" in text
    rows = [line for line in text.splitlines() if "/task/" in line]
    assert len(rows) == 2 and "2.000" in rows[0] and "3.500" in rows[1]
    assert any("robot idle" in line and "5.500" in line for line in text.splitlines())
    assert "2 used, 1 ignored" in text
    assert main(["--verbose"]) == 0
    assert "no open wait" in capsys.readouterr().out


def test_the_last_session_is_the_newest(sessions, capsys):
    for name in ("20260101T000000.000Z_aaaa", "20260102T000000.000Z_0000"):
        house(name).write(sessions)
    assert main(["--last", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["session"] == "20260102T000000.000Z_0000"
    assert main(["20260101", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["session"] == "20260101T000000.000Z_aaaa"


@pytest.mark.parametrize("arguments", [[], ["--last"], ["nonesuch"], ["--json"], ["/nonesuch/folder"]])
def test_no_session_is_one_line_and_exit_code_1(sessions, capsys, arguments):
    assert main(arguments) == 1
    output = capsys.readouterr()
    assert output.out == "" and output.err.startswith("report: no session") and output.err.count("\n") == 1


def test_broken_journals_are_one_line_and_exit_code_1(sessions, capsys):
    journal = house("broken").write(sessions) / "journal.jsonl"
    whole = journal.read_text()
    for content in ("", "not json\n" + whole, whole.replace("run_started", "nonesuch")):
        journal.write_text(content)
        assert main(["broken"]) == 1
        error = capsys.readouterr().err
        assert error.startswith("report: ") and error.count("\n") == 1 and "journal.jsonl" in error


def test_a_journal_that_somebody_edited_is_no_traceback(sessions, capsys):
    journal = house("edited").write(sessions) / "journal.jsonl"
    whole = [json.loads(line) for line in journal.read_text().splitlines()]
    places = {}  # each field of each kind of event, once
    for number, event in enumerate(whole):
        for field in ("sequence", "time", "wall_time", "step", "pointer", "session"):
            places.setdefault((event["kind"], field), (number, ()))
        for field in event["data"]:
            places.setdefault((event["kind"], field), (number, ("data",)))
    codes = set()
    for (_, field), (number, path) in places.items():
        for value in (None, "x", [1], {"a": 1}, 1e999):
            edited = json.loads(json.dumps(whole))
            (edited[number]["data"] if path else edited[number])[field] = value
            journal.write_text("".join(json.dumps(event) + "\n" for event in edited))
            code = main(["edited"])
            error = capsys.readouterr().err
            assert code in (0, 1)
            if code == 1:
                assert error.startswith("report: ") and error.count("\n") == 1 and "journal.jsonl" in error
            codes.add(code)
    assert codes == {0, 1}


def test_wrong_usage_is_exit_code_2(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["some", "--last"])
    assert caught.value.code == 2


def test_the_figure_is_drawn(sessions, tmp_path, capsys):
    house().write(sessions)
    assert main(["--figure", str(tmp_path / "run.png")]) == 0
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert main(["--figure", str(tmp_path / "run.nonesuch")]) == 1
    assert main(["--figure", str(tmp_path / "no" / "such" / "run.png")]) == 1
    assert "can't draw" in capsys.readouterr().err


def test_suspended_time_is_shown_where_there_is_some():
    run = ScriptedRun().start().move(2.0)
    run.emit(EventKind.FAULT, code="protective_stop", message="the arm stopped")
    run.work(5.0).emit(EventKind.RESUMED, after="fault")
    text = printed(summarise(run.finish().events))
    assert "suspended" in text and "protective_stop: the arm stopped" in text


def test_a_title_with_markup_is_printed_as_it_is():
    assert "[red]House[/]" in printed(summarise(ScriptedRun().start(title="[red]House[/]").finish().events))


def test_fluency_is_reported_where_the_plan_says_what_the_human_does():
    run = ScriptedRun().start().move(2.0, rad={"human_active": True}).wait_button(2.0).finish()
    summary = summarise(run.events)
    assert summary["fluency"]["concurrent_activity"] == pytest.approx(0.5)
    assert "both at work 50.0%" in printed(summary)
    assert summarise(house().events)["fluency"] is None
