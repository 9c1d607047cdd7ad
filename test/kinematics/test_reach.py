from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iter_runner.kinematics import Box, ClosedFormIK, Obstacles, clearance, load_chain
from iter_runner.kinematics.reach import reach_counts
from iter_runner.kinematics.rotations import pose, rpy_to_matrix
from iter_runner.plan.reach_map_tool import main

DOWN = rpy_to_matrix([np.pi, 0, 0])


def test_counts_are_those_of_the_solver_one_by_one() -> None:
    chain = load_chain("ur5")
    obstacles = Obstacles([Box("post", pose((0.4, 0, 0.3)), (0.05, 0.05, 0.6))])
    xs, ys = np.linspace(-1, 1, 9), np.linspace(-0.9, 0.9, 7)
    counts = reach_counts(chain, DOWN, 0.25, xs, ys, obstacles)
    assert counts.shape == (7, 9) and counts.max() > 4 and counts[0, 0] == 0
    target = np.eye(4)
    target[:3, :3] = DOWN
    for row, y in enumerate(ys):
        for column, x in enumerate(xs):
            target[:3, 3] = x, y, 0.25
            rows, exact = ClosedFormIK(chain).solve(target)
            free = [clearance(chain, q, obstacles).distance >= 0 and abs(q[2]) <= np.pi for q in rows[exact]]
            assert counts[row, column] == sum(free)


def test_an_arm_without_a_closed_form_is_searched() -> None:
    chain = load_chain("mico-2")
    counts = reach_counts(chain, DOWN, 0.1, [-0.3, 0.3, 0.9], [0.3])
    assert counts[0, 0] >= 2 and counts[0, 1] >= 2
    assert counts[0, 2] == 0
    again = reach_counts(chain, DOWN, 0.1, [-0.3, 0.3, 0.9], [0.3])
    np.testing.assert_array_equal(counts, again)


def test_the_tool_draws_a_plan_and_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "map.png"
    arguments = ["--robot", "ur3e", "--step", "0.05", "--output", str(picture)]
    assert main([*arguments, "--plan", "sequential"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "within reach" in capsys.readouterr().out
    assert main([*arguments, "--plan", "no_such_plan"]) == 1
    assert main(["--robot", "ur9"]) == 1
    assert "ur9" in capsys.readouterr().err
    assert main([*arguments[:-1], str(tmp_path / "no" / "map.png")]) == 1
    with pytest.raises(SystemExit) as exit_code:
        main(["--step", "0"])
    assert exit_code.value.code == 2


def test_a_map_needs_a_file_name_that_says_its_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (tmp_path, tmp_path / "map"):  # matplotlib would add an ending, and write beside the folder
        with pytest.raises(SystemExit):
            main(["--output", str(name)])
        assert "expected a picture's file" in capsys.readouterr().err
