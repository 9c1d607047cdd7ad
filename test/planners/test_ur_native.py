from __future__ import annotations

import re
from typing import List

import numpy as np
import pytest
from goals import pose
from workcell_arm import WorkcellArm

from iter_runner.kinematics import Chain
from iter_runner.kinematics.rotations import rotation_vector_to_matrix
from iter_runner.planners.base import MoveGoal, Unreachable
from iter_runner.planners.ur_native import URNativePlanner, controller_pose
from iter_runner.robot.table import Robot
from iter_runner.run_control import Fault


def numbers(text: str) -> List[float]:
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", text)]


def test_poses_are_converted_to_the_controllers_base() -> None:
    x, y, z, *rotation = numbers(controller_pose(pose(0.1, 0.3, 0.2)))
    assert (x, y, z) == (-0.1, -0.3, 0.2)
    turned = np.diag([-1.0, -1.0, 1.0]) @ pose(0, 0, 0)[:3, :3]
    np.testing.assert_allclose(rotation_vector_to_matrix(rotation), turned, atol=1e-12)


@pytest.fixture
def ur(robot: Robot, chain: Chain) -> URNativePlanner:
    return URNativePlanner(robot, chain)


def test_a_line_is_one_movel_of_the_flange(ur: URNativePlanner, arm: WorkcellArm, robot: Robot) -> None:
    ur.move(
        arm, np.array(robot.tuck), MoveGoal(pose(0.1, 0.3, 0.3), {"velocity": 0.1, "acceleration": 0.2}), arm.control
    )
    (program,) = arm.scripts
    assert re.fullmatch(
        r"def iter_move\(\):\n  set_tcp\(p\[0, 0, 0, 0, 0, 0\]\)\n  movel\(p\[.*\], a=0\.2, v=0\.1\)\nend\n", program
    )


def test_movej_keeps_the_branch_that_was_checked(ur: URNativePlanner, arm: WorkcellArm, robot: Robot) -> None:
    goal = MoveGoal(pose(0.1, 0.3, 0.3), {"motion_type": "movej"})
    path = ur.move(arm, np.array(robot.tuck), goal, arm.control)
    assert "movej(get_inverse_kin(p[" in arm.scripts[0]
    np.testing.assert_allclose(arm.reading().positions, path.positions[-1], atol=1e-4)


def test_movel_through_the_arm_is_refused_with_the_way_out(ur: URNativePlanner, robot: Robot) -> None:
    q = ur.preview(np.array(robot.tuck), MoveGoal(pose(0.0, 0.3, 0.25))).positions[-1]
    with pytest.raises(Unreachable, match=r"movel is not possible: .* of the straight line .*; movej is"):
        ur.preview(q, MoveGoal(pose(0.02, -0.3, 0.25), {"motion_type": "movel"}))


def test_another_tool_of_the_installation_does_not_matter(ur: URNativePlanner, arm: WorkcellArm, robot: Robot) -> None:
    arm.script("set_tcp(p[0, 0, 0.2, 0, 0, 0])")
    arm.cycle()
    arm.cycle()
    goal = pose(0.1, 0.3, 0.3)
    path = ur.move(arm, np.array(robot.tuck), MoveGoal(goal), arm.control)
    np.testing.assert_allclose(arm.reading().positions, path.positions[-1], atol=1e-4)


def test_a_program_that_does_not_run_is_a_fault(ur: URNativePlanner, arm: WorkcellArm, robot: Robot) -> None:
    arm.script = lambda program: None  # type: ignore[method-assign] # lost on the way
    with pytest.raises(Fault, match="the program was sent but the arm stands") as lost:
        ur.move(arm, np.array(robot.tuck), MoveGoal(pose(0.1, 0.3, 0.3)), arm.control)
    assert lost.value.code == "no_progress"
