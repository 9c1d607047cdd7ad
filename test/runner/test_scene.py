from __future__ import annotations

import json

import numpy as np
import pytest

from iter_runner.plan import PlanObject, load_plan
from iter_runner.plan.frames import FrameError
from iter_runner.primitives import REGISTRY
from iter_runner.primitives.context import ToolPose
from iter_runner.robot.table import load_robot
from iter_runner.runner.frames import PlanFrames, plan_frames, pose_error
from iter_runner.runner.scene import SceneModel

DOWN = (1.0, 0.0, 0.0, 0.0)
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


def object_at(name: str, x: float) -> PlanObject:
    return PlanObject(name, (x, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), (0.04, 0.04, 0.04), True)


def tip_at(x: float) -> np.ndarray:
    matrix = np.eye(4)
    matrix[0, 3] = x
    return matrix


def test_a_held_object_follows_the_hand() -> None:
    scene = SceneModel([object_at("a", 0.1), object_at("b", 0.5)], PlanFrames(np.eye(4), np.eye(4)))
    scene.attach("a", tip_at(0.2))
    held = scene.objects[0]
    assert held.held
    assert held.pose[0, 3] == pytest.approx(-0.1)
    scene.detach("a", tip_at(0.7))
    assert [placed.pose[0, 3] for placed in scene.objects] == pytest.approx([0.6, 0.5])
    scene.attach("nobody", tip_at(0.0))
    scene.detach("b", tip_at(0.0))
    assert not any(placed.held for placed in scene.objects)


def test_a_run_that_begins_later_finds_objects_where_the_plan_has_put_them() -> None:
    def move(x: float) -> dict:
        orientation = dict(zip("xyzw", DOWN))
        return {"name": "move", "position": {"x": x, "y": 0.0, "z": 0.3}, "orientation": orientation}

    task = [
        move(0.3), {"name": "connect_object", "object_name": "a"},
        move(0.4), {"name": "disconnect_object", "object_name": "a"}, move(0.2),
    ]  # fmt: skip
    box = {
        "name": "a", "position": {"x": 0.3, "y": 0.0, "z": 0.1}, "orientation": dict(zip("xyzw", (0.0, 0.0, 0.0, 1.0))),
        "size": {"x": 0.1, "y": 0.1, "z": 0.1}, "graspable": True,
    }  # fmt: skip
    plan = load_plan(json.dumps({"version": "1.0.0", "environment": [box], "task": task}), REGISTRY)
    for done, x, held in ((1, 0.3, False), (3, 0.4, True), (4, 0.4, False), (5, 0.4, False)):
        frames = PlanFrames(np.eye(4), np.eye(4))
        scene = SceneModel(plan.objects, frames)
        scene.advance(plan.steps[:done])
        placed = scene.objects[0]
        tip = frames.to_tip(ToolPose((0.4, 0.0, 0.3), DOWN))
        assert placed.held is held
        np.testing.assert_allclose((tip @ placed.pose if held else placed.pose)[:3, 3], (x, 0.0, 0.1), atol=1e-12)
