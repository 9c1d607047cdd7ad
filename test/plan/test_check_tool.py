"""``rosrun iter_runner check_plan``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iter_runner.plan.check_tool import main

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_plan"
DOWN = {"x": 1, "y": 0, "z": 0, "w": 0}
OFF_UNIT = {"x": 0.707, "y": -0.707, "z": 0, "w": 0}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write_plan(*steps: Any, **top: Any) -> str:
        path = tmp_path / "plan.json"
        path.write_text(json.dumps({"version": "1.0.0", "task": list(steps), **top}), encoding="utf-8")
        return str(path)

    return write_plan


def move(x: float, orientation: Any = DOWN) -> Any:
    return {"name": "move", "position": {"x": x, "y": 0.3, "z": 0.3}, "orientation": orientation}


def test_what_does_not_load_and_what_is_out_of_reach_are_said_together(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = write(move(9.0), {"name": "mvoe"}, move(0.1), {"name": "grasp", "effort": 7}, {**move(0.1), "speed": 1})
    assert main([plan, "--robot", "ur5"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["/task/0", "/task/1/name", "/task/3/effort", "/task/4/speed"]
    assert "out of reach" in lines[0]
    assert main([plan]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_good_plan_is_one_line_with_its_numbers(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write(move(0.1), {"name": "wait", "condition": "button"}, {"name": "prompt", "msg": "?"})
    assert main([plan, "--robot", "ur5"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"ok: {plan} on ur5: 3 steps, 1 moves, 2 waits, 0 objects, plan hash ")


def test_faults_are_one_a_line(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([write(move(2), move(0.1), move(3)), "--robot", "ur5"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["/task/0", "/task/2"]
    assert main([write({"name": "mvoe"}, {"name": "wait"})]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_equal_warnings_are_one_line(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write(move(0.1, OFF_UNIT), move(0.2, OFF_UNIT), move(0.15, OFF_UNIT))
    assert main([plan, "--robot", "ur5"]) == 0
    warning, _ = capsys.readouterr().out.splitlines()
    assert warning.startswith("warning: /task/0/orientation: ")
    assert warning.endswith("(and 2 more like it)")
    assert main([plan, "--robot", "ur5", "--verbose"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_json_is_for_programs(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write(move(0.1, OFF_UNIT))
    assert main([plan, "--robot", "ur5", "--planner", "static", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] and report["faults"] == [] and report["steps"] == 1
    assert [warning["pointer"] for warning in report["warnings"]] == ["/task/0/orientation"]
    assert [len(path["path_hash"]) for path in report["paths"]["static"]] == [64]
    assert main([write(move(2)), "--robot", "ur5", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["ok"]
    assert set(report["faults"][0]) == {"pointer", "found", "expected"}


def test_the_path_hashes_are_printed_when_asked_for(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([write(move(0.1)), "--robot", "ur5", "--planner", "static", "--verbose"]) == 0
    assert capsys.readouterr().out.startswith("static /task/0: ")


@pytest.mark.parametrize("arguments", [["--robot", "ur9"], ["--robot", "ur5", "--planner", "fastest"]])
def test_no_such_robot_or_planner_is_one_line(write: Any, capsys: pytest.CaptureFixture[str], arguments: Any) -> None:
    assert main([write(move(0.1)), *arguments]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert shown.err.startswith("check_plan: ")


def test_usage_is_exit_code_2(write: Any) -> None:
    for arguments in ([], ["--robot"], [write(move(0.1)), "--planner", "static"], [write(move(0.1)), "--colour"]):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2


def test_bad_input_has_no_traceback(tmp_path: Path) -> None:
    """As a user starts it: a process, its exit code and its output."""
    bomb = tmp_path / "bomb.json"
    bomb.write_text("[" * 1_000_000)
    shown = subprocess.run(
        [sys.executable, str(SCRIPT), str(bomb), "--robot", "ur5"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 1
    assert len(shown.stdout.splitlines()) == 1
    assert "Traceback" not in shown.stdout + shown.stderr


def test_a_seed_gives_the_runs_motions(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ompl", reason="the package ompl is not installed")
    arguments = [write(move(0.1), move(-0.1)), "--robot", "ur5", "--planner", "ompl", "--verbose"]
    hashes = []
    for _ in range(2):
        assert main([*arguments, "--planner-seed", "4"]) == 0
        hashes.append([line for line in capsys.readouterr().out.splitlines() if line.startswith("ompl /task/")])
    assert len(hashes[0]) == 2
    assert hashes[0] == hashes[1]
    assert main([*arguments, "--planner-seed", "x"]) == 1
    assert "planner_seed is 'x', expected a whole number" in capsys.readouterr().err


def test_a_replay_needs_its_session(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write(move(0.1))
    assert main([plan, "--robot", "ur5", "--planner", "replay"]) == 1
    assert "--replay SESSION with check_plan" in capsys.readouterr().err
    assert main([plan, "--robot", "ur5", "--planner", "replay", "--replay", "nowhere"]) == 1
    assert "replay: no session 'nowhere'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as usage:
        main([plan, "--robot", "ur5", "--planner", "static", "--replay", "nowhere"])
    assert usage.value.code == 2


def test_a_workcell_is_part_of_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = tmp_path / "cell.yaml"
    cell.write_text("objects:\n- {name: crate, box: [0.4, 0.4, 0.4], position: [0.0, 0.35, 0.1]}\n", encoding="utf-8")
    assert main(["reciprocal", "--robot", "ur5"]) == 0
    assert main(["reciprocal", "--robot", "ur5", "--workcell", str(cell)]) == 1
    assert "inside crate" in capsys.readouterr().out
    assert main(["reciprocal", "--robot", "ur5", "--workcell", "nowhere"]) == 1
    assert "example, table" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["reciprocal", "--workcell", "table"])
