"""Runs of one plan compared: equal to the bit, apart, failed; the tool's table, figure and refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import List, Optional

import numpy as np
import pytest

from iter_runner.kinematics import load_chain
from iter_runner.plan import Plan, load_plan
from iter_runner.planners.base import path_hash
from iter_runner.primitives import REGISTRY
from iter_runner.repeatability.comparison import at_phases, compare
from iter_runner.repeatability.rehearsal import MotionRecord, Rehearsal, recording, rehearse
from iter_runner.repeatability.tool import main
from iter_runner.robot.arm import Vector
from iter_runner.robot.table import load_robot

DOWN = {"x": 1.0, "y": 0.0, "z": 0.0, "w": 0.0}


def document(*places: tuple[float, float, float]) -> dict[str, object]:
    moves = [
        {"name": "move", "position": dict(zip("xyz", place)), "orientation": DOWN, "options": {}} for place in places
    ]
    wait = {"name": "wait", "condition": "button"}
    release = {"name": "release", "width": 0.05}
    return {
        "title": "Two places",
        "author": "test",
        "version": "1.0.0",
        "description": "",
        "frame_id": "base_link",
        "tool_frame": "tool0",
        "environment": [],
        "task": [moves[0], wait, release, *moves[1:]],
    }


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document((0.1, 0.35, 0.35), (-0.1, 0.3, 0.3))))
    return path


@pytest.fixture
def plan(plan_file: Path) -> Plan:
    return load_plan(plan_file, REGISTRY)


def motion(key: str, *rows: List[float]) -> MotionRecord:
    positions: Vector = np.array(rows)
    times = np.arange(len(rows), dtype=np.float64)
    tool = np.column_stack([positions, np.zeros(len(rows))])
    return MotionRecord(key, path_hash(positions), positions, times, ("a", "b"), tool, 0.5)


def run(*motions: MotionRecord, failure: str = "") -> Rehearsal:
    return Rehearsal(list(motions), failure)


def test_equal_runs_are_exactly_zero_apart() -> None:
    same = [run(motion("0", [0.0, 0.0], [1.0, 0.1]), motion("1", [1.0, 0.1], [0.0, 0.0])) for _ in range(3)]
    found = compare("static", same)
    assert (found.identical, found.runs, found.finished) == (3, 3, 3)
    assert found.maximum_deviation == found.mean_deviation == found.tool_spread == 0.0
    assert found.joint_travel == pytest.approx(2.2)
    assert found.motion_time == 2.0
    assert found.planning_time == 1.0


def test_deviations_are_those_of_the_formula() -> None:
    runs = [
        run(motion("0", [0.0, 0.0], [1.0, 0.0])),
        run(motion("0", [0.0, 0.0], [1.0, 0.3])),
        run(motion("0", [0.0, 0.0], [1.0, 0.0])),
    ]
    found = compare("ompl", runs)
    assert found.identical == 2
    assert found.maximum_deviation == pytest.approx(0.3)
    # Two of three pairs differ, in one of two joints, by 0.15 rad on average over the move.
    assert found.mean_deviation == pytest.approx(2 / 3 * 1 / 2 * 0.15)
    assert found.tool_spread == pytest.approx(0.3)


def test_runs_of_other_lengths_are_compared_at_equal_shares_of_the_move() -> None:
    slow = at_phases(np.array([0.0, 10.0]), np.array([[0.0], [1.0]]))
    fast = at_phases(np.array([0.0, 0.5, 1.0]), np.array([[0.0], [0.5], [1.0]]))
    assert np.allclose(slow, fast)


def test_failed_runs_are_counted_by_reason_and_compared_as_far_as_they_came() -> None:
    whole = run(motion("0", [0.0, 0.0], [1.0, 0.0]), motion("1", [1.0, 0.0], [0.0, 0.0]))
    cut = run(motion("0", [0.0, 0.0], [1.0, 0.2]), failure="no way")
    found = compare("ompl", [whole, cut])
    assert found.failures == {"no way": 1}
    assert (found.finished, found.identical) == (1, 1)
    assert [(move.key, move.runs) for move in found.moves] == [("0", 2), ("1", 1)]
    assert found.maximum_deviation == pytest.approx(0.2)


def test_no_finished_run_gives_no_numbers() -> None:
    found = compare("ompl", [run(failure="no way")])
    assert found.identical == 0
    assert math.isnan(found.maximum_deviation) and math.isnan(found.path_length)


@pytest.mark.parametrize("robot", ["ur5", "ur3e"])
@pytest.mark.parametrize("planner", ["relaxed_ik", "static", "ur"])
def test_a_rehearsal_is_the_same_every_time_and_ends_at_the_goal(plan: Plan, robot: str, planner: str) -> None:
    row = load_robot(robot)
    runs = [rehearse(plan, row, planner) for _ in range(2)]
    assert [motion.path_hash for motion in runs[0].motions] == [motion.path_hash for motion in runs[1].motions]
    assert runs[0].failure == ""
    assert len(runs[0].motions) == 2
    assert np.allclose(runs[0].motions[-1].tool_path[-1], (-0.1, 0.3, 0.3), atol=1e-6)
    reached = load_chain(row).fk(runs[0].motions[0].positions[-1])
    assert np.allclose(reached[:3, 3], (0.1, 0.35, 0.35), atol=1e-6)


def test_a_rehearsal_that_faults_ends_there(tmp_path: Path) -> None:
    path = tmp_path / "far.json"
    path.write_text(json.dumps(document((0.1, 0.35, 0.35), (3.0, 0.0, 0.3))))
    found = rehearse(load_plan(path, REGISTRY), load_robot("ur5"), "static")
    assert len(found.motions) == 1
    assert "out of reach" in found.failure


def test_a_replay_of_an_ompl_run_is_that_run(plan: Plan) -> None:
    pytest.importorskip("ompl")
    row = load_robot("ur5")
    first = rehearse(plan, row, "ompl")
    again = rehearse(plan, row, "replay", {"replay": recording(first, plan, row, "ompl")})
    assert again.failure == ""
    assert [motion.path_hash for motion in again.motions] == [motion.path_hash for motion in first.motions]


def test_the_tool_shows_who_repeats(plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ompl")
    figure = tmp_path / "figure.png"
    words = [str(plan_file), "--planners", "relaxed_ik,ompl,replay", "--runs", "2", "--seed", "5", "--jobs", "1"]
    assert main([*words, "--out", str(figure), "--json"]) == 0
    rows = {row["planner"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == ["relaxed_ik", "ompl", "replay of ompl", "ompl, seed 5"]
    assert [row["identical"] for row in rows.values()] == [2, 1, 2, 2]
    assert rows["ompl"]["maximum_deviation"] > 0.0 == rows["relaxed_ik"]["maximum_deviation"]
    assert figure.stat().st_size > 10_000


def _refused(words: List[str], capsys: pytest.CaptureFixture[str], code: int = 1) -> str:
    found: Optional[int]
    try:
        found = main(words)
    except SystemExit as leaving:  # argparse's way
        found = int(str(leaving.code))
    assert found == code
    return capsys.readouterr().err


def test_the_tool_refuses_what_can_not_be_measured(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = str(plan_file)
    assert "no robot 'ur9'" in _refused([plan, "--robot", "ur9"], capsys)
    assert "choose one of" in _refused([plan, "--planners", "nope"], capsys)
    assert "the planner named before it" in _refused([plan, "--planners", "replay"], capsys)
    assert "that is ur" in _refused([plan, "--planners", "ur,replay"], capsys)
    assert "no folder that can be written to" in _refused([plan, "--out", str(tmp_path / "no" / "f.png")], capsys)
    assert "ends in .png" in _refused([plan, "--out", str(tmp_path / "figure.txt")], capsys)
    assert "nothing.json" in _refused([str(tmp_path / "nothing.json")], capsys)
    assert "a number from 1" in _refused([plan, "--runs", "0"], capsys, 2)
    empty = tmp_path / "empty.json"
    empty.write_text(json.dumps({**document((0.1, 0.35, 0.35)), "task": []}))
    assert "no move" in _refused([str(empty)], capsys)
