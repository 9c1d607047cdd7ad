from __future__ import annotations

import math

import numpy as np
import pytest

from iter_runner.kinematics import ChainError
from iter_runner.kinematics.urdf import read_urdf
from iter_runner.robot.table import load_robot, robot_urdf
from iter_runner.sim.arm_model import arm_model, frame_pose
from iter_runner.sim.poses import pose_of


@pytest.mark.parametrize(("name", "cycle"), [("ur5", 0.008), ("ur3", 0.008), ("ur3e", 0.002), ("ur5e", 0.002)])
def test_every_ur_has_a_model(name: str, cycle: float) -> None:
    robot = load_robot(name)
    model = arm_model(robot)
    assert model.cycle == pytest.approx(cycle)
    assert list(model.joint_names) == robot.joints
    assert model.upper == pytest.approx([2 * math.pi] * 6, abs=2 * math.pi)
    assert model.kinematics is not None
    assert model.kinematics.inverse(model.kinematics.forward(robot.tuck), robot.tuck) == pytest.approx(robot.tuck)


def test_the_controllers_frame_agrees_with_the_makers_simulator() -> None:
    # Check of a ur5e from Universal Robots' own controller simulator: mm, and a rotation vector in degrees.
    kinematics = arm_model(load_robot("ur5e")).kinematics
    assert kinematics is not None
    pose = pose_of(kinematics.forward(np.radians([10, 20, 30, 40, 50, 60])))
    assert np.asarray(pose[:3]) * 1000 == pytest.approx([-509.12, -290.14, -359.6], abs=0.1)
    assert np.degrees(pose[3:]) == pytest.approx([55.76, -153.20, 58.44], abs=0.01)


def test_inverse_kinematics_keeps_to_the_turn_that_the_arm_is_in() -> None:
    robot = load_robot("ur5")
    kinematics = arm_model(robot).kinematics
    assert kinematics is not None
    near = [*robot.tuck[:5], robot.tuck[5] + 2 * math.pi]
    assert kinematics.inverse(kinematics.forward(near), near) == pytest.approx(near)


def test_frames_fixed_to_the_base_are_found_and_others_refused() -> None:
    urdf = read_urdf(robot_urdf(load_robot("ur5")))
    assert frame_pose(urdf, "base_link", "base_link") == pytest.approx(np.eye(4))
    assert frame_pose(urdf, "base", "base_link") == pytest.approx(np.diag([-1.0, -1.0, 1.0, 1.0]))
    with pytest.raises(ChainError, match="moves with joint"):
        frame_pose(urdf, "forearm_link", "base_link")
    with pytest.raises(ChainError, match="no frame 'moon'"):
        frame_pose(urdf, "moon", "base_link")
