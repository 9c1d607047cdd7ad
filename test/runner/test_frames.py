from __future__ import annotations

import numpy as np
import pytest

from iter_runner.plan.frames import FrameError
from iter_runner.primitives.context import ToolPose
from iter_runner.robot.table import load_robot
from iter_runner.runner.frames import PlanFrames, plan_frames, pose_error

ASIDE = (0.5, 0.5, 0.5, 0.5)


@pytest.fixture(scope="module")
def frames() -> PlanFrames:
    return plan_frames(load_robot("ur5"), "base", "ee_link")


def test_a_pose_goes_to_the_chain_and_back(frames: PlanFrames) -> None:
    pose = ToolPose((0.3, 0.2, 0.1), ASIDE)
    back = frames.to_plan(frames.to_tip(pose))
    np.testing.assert_allclose(back.position, pose.position, atol=1e-12)
    assert abs(np.dot(back.orientation, pose.orientation)) == pytest.approx(1.0, abs=1e-12)


def test_the_controllers_base_is_turned_by_half_a_turn(frames: PlanFrames) -> None:
    tip = frames.to_tip(ToolPose((0.3, 0.2, 0.1), (0.0, 0.0, 0.0, 1.0)))
    np.testing.assert_allclose(tip[:3, 3], (-0.3, -0.2, 0.1), atol=1e-12)
    # ee_link's x is the approach; in the plan's frame it points along x, in base_link against it.
    np.testing.assert_allclose(tip[:3, 2], (-1.0, 0.0, 0.0), atol=1e-12)


def test_frames_that_move_or_are_not_there_are_refused() -> None:
    robot = load_robot("ur5")
    with pytest.raises(FrameError, match="wrist_1_link"):
        plan_frames(robot, "wrist_1_link", "tool0")
    with pytest.raises(FrameError, match="nowhere"):
        plan_frames(robot, "base_link", "nowhere")


def test_pose_errors_are_exact_where_they_are_small() -> None:
    turned = np.eye(4)
    angle = 1e-7
    turned[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    turned[0, 3] = 1e-9
    distance, turn = pose_error(turned, np.eye(4))
    assert distance == pytest.approx(1e-9)
    assert turn == pytest.approx(angle, rel=1e-6)
