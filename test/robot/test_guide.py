"""The robots' guide: an arm from a row and a model alone, as docs/robots.md has them, is an arm like all others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from guide_files import write_example

from iter_runner.kinematics import ClosedFormIK, GeometryError, NumericIK, clearance, load_chain
from iter_runner.package import package_folder
from iter_runner.plan.check import inspect_plan
from iter_runner.plan.load import load_plan
from iter_runner.planners.base import MoveGoal, path_hash
from iter_runner.planners.table import load_planner
from iter_runner.primitives import REGISTRY
from iter_runner.robot.table import load_robot, robot_driver, robot_gripper


@pytest.fixture
def row(tmp_path: Path) -> Path:
    return write_example(tmp_path)


def test_the_row_loads_with_its_own_gripper(row: Path) -> None:
    robot = load_robot(row)
    chain, gripper = load_chain(robot), robot_gripper(robot)
    assert len(chain) == 7
    assert clearance(chain, robot.tuck).distance > 0.02
    assert chain.fk(robot.tuck)[2, 2] < -0.9999
    assert gripper.joints == ["jaws_left_joint", "jaws_right_joint"]
    assert gripper.opening_of(0.01) == pytest.approx(0.02)
    driver = robot_driver(robot)
    assert driver.interface == "ros_control"
    assert driver.action("follow_joint_trajectory") == "/lab7_arm_controller/follow_joint_trajectory"
    assert driver.topic("command") == "/lab7_arm_controller/command"


def test_poses_are_found_without_a_closed_form(row: Path) -> None:
    chain = load_chain(load_robot(row))
    with pytest.raises(GeometryError):
        ClosedFormIK(chain)
    solver = NumericIK(chain)
    for q in np.random.default_rng(1).uniform(chain.lower, chain.upper, (40, 7)):
        assert solver.search(chain.fk(q), load_robot(row).tuck)[0].position_error < 1e-9


@pytest.mark.parametrize("name", ["relaxed_ik", "static"])
def test_a_move_is_planned_to_the_same_bits(row: Path, name: str) -> None:
    robot = load_robot(row)
    chain = load_chain(robot)
    goal = chain.fk(robot.tuck)
    goal[:3, 3] += 0.15, 0.05, -0.1
    paths = [load_planner(name, robot, chain).preview(np.array(robot.tuck), MoveGoal(goal)) for _ in range(2)]
    assert path_hash(paths[0].positions) == path_hash(paths[1].positions)
    assert chain.fk(paths[0].positions[-1]) == pytest.approx(goal, abs=1e-8)
    places = chain.fk(paths[0].positions)[:, :3, 3]
    along = (places[-1] - places[0]) / np.linalg.norm(places[-1] - places[0])
    straight = places[0] + np.outer((places - places[0]) @ along, along)
    assert np.linalg.norm(places - straight, axis=1).max() < 1e-3


def test_a_house_is_laid_out_for_it_and_passes_the_check(row: Path, tmp_path: Path) -> None:
    plan = tmp_path / "house.json"
    script = package_folder() / "scripts" / "generate_sequential"
    command = [sys.executable, str(script), "--robot", str(row), "--output", str(plan)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = inspect_plan(load_plan(plan, REGISTRY), load_robot(row), ["relaxed_ik", "static"])
    assert [str(fault) for fault in [*result.faults, *result.warnings]] == []
    assert len(result.paths["relaxed_ik"]) == len(result.paths["static"]) > 50
