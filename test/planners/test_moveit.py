"""The planner ``moveit`` on a double of moveit_commander, release by release."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator

import numpy as np
import pytest
from goals import pose
from workcell_arm import WorkcellArm

from iter_runner.kinematics import AttachedBody, Box, Chain, Sphere, load_chain
from iter_runner.kinematics.obstacles import Capsule, Cylinder
from iter_runner.plan import load_plan
from iter_runner.plan.check import inspect_plan
from iter_runner.planners.base import MoveGoal, PlannerUnavailable, Unreachable
from iter_runner.planners.line import pose_error
from iter_runner.planners.moveit import MoveItPlanner
from iter_runner.planners.table import PlannerError, check_fit, load_planner
from iter_runner.primitives import REGISTRY
from iter_runner.robot.arm import GripperReading
from iter_runner.robot.moveit import ERRORS, describe_error, known_planner, read_plan, read_trajectory
from iter_runner.robot.table import Robot, load_robot, robot_gripper
from iter_runner.run_control import Fault, Stopped

DOUBLE = Path(__file__).parent / "moveit_double"
RELEASES = {
    "noetic": "MoveGroupCommander",
    "noetic 1.1.15": "NewNoeticMoveGroupCommander",
    "melodic": "MelodicMoveGroupCommander",
}


def forget() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in ("moveit_commander", "moveit_msgs")]:
        del sys.modules[name]
    if "iter_runner.robot.ros_moveit" in sys.modules:
        sys.modules["iter_runner.robot.ros_moveit"]._commanders.clear()  # type: ignore[attr-defined]


@pytest.fixture(params=RELEASES)
def commander(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The double of one release as the module moveit_commander."""
    forget()
    monkeypatch.syspath_prepend(str(DOUBLE))
    module = importlib.import_module("moveit_commander")
    monkeypatch.setattr(module, "MoveGroupCommander", getattr(module, RELEASES[request.param]))
    if request.param == "melodic":
        monkeypatch.setattr(module, "PlanningSceneInterface", module.MelodicPlanningSceneInterface)
    module.release = request.param
    yield module
    module.MoveGroupNode.running = None
    forget()


def started(module: Any, robot: Robot) -> Any:
    """move_group for a row."""
    module.MoveGroupNode.running = module.MoveGroupNode.of(robot.name)
    return module.MoveGroupNode.running


@pytest.fixture(scope="module")
def chain(ur5: Robot) -> Chain:
    return load_chain(ur5)


@pytest.fixture
def node(commander: Any, ur5: Robot) -> Any:
    return started(commander, ur5)


@pytest.fixture
def planner(node: Any, ur5: Robot, chain: Chain) -> Any:
    return load_planner("moveit", ur5, chain)


@pytest.fixture
def tuck(ur5: Robot) -> np.ndarray:
    return np.array(ur5.tuck)


GOAL = pose(0.25, 0.35, 0.3)
NEAR = pose(0.1, 0.40, 0.30)


# Plans --------------------


def test_a_plan_goes_from_the_commanded_joints_to_the_pose(planner: Any, chain: Chain, tuck: np.ndarray) -> None:
    path = planner.preview(tuck, MoveGoal(GOAL))
    np.testing.assert_array_equal(path.positions[0], tuck)
    distance, turn = pose_error(chain.fk(path.positions[-1]), GOAL)
    assert distance < 1e-4
    assert turn < 1e-3
    assert np.all(np.diff(path.times) > 0)
    assert np.max(np.diff(path.times)) < 0.0201
    assert np.max(np.abs(np.diff(path.positions, axis=0))) < 0.1


def test_two_plans_differ(planner: Any, node: Any, tuck: np.ndarray) -> None:
    node.detour = 0.5
    first, second = (planner.preview(tuck, MoveGoal(NEAR)) for _ in range(2))
    assert not planner.repeats
    assert first.positions.shape != second.positions.shape or not np.allclose(first.positions, second.positions)


def test_options_reach_move_group(planner: Any, node: Any, tuck: np.ndarray) -> None:
    options = {
        "planning_time": 2.5,
        "num_planning_attempts": 4,
        "max_velocity_scaling_factor": 0.4,
        "max_acceleration_scaling_factor": 0.3,
        "goal_position_tolerance": 0.002,
        "goal_orientation_tolerance": 0.02,
        "goal_joint_tolerance": 0.003,
    }
    planner.preview(tuck, MoveGoal(GOAL, options))
    group = planner._commander._group
    request = node.requests[-1]
    assert (request.velocity, request.acceleration) == (0.4, 0.3)
    assert {name: group.settings[name] for name in ("planning_time", "attempts")} == {
        "planning_time": 2.5,
        "attempts": 4,
    }
    assert [group.settings[f"{name}_tolerance"] for name in ("position", "orientation", "joint")] == [
        0.002,
        0.02,
        0.003,
    ]
    planner.preview(tuck, MoveGoal(GOAL))  # and none of it stays
    assert (node.requests[-1].velocity, node.requests[-1].acceleration) == (1.0, 1.0)
    assert group.settings["planning_time"] == 5.0
    assert group.settings["attempts"] == 1


def test_scaling_speed_and_time_factor_slow_down(planner: Any, node: Any, tuck: np.ndarray) -> None:
    goal = pose(0.02, 0.36, 0.34)

    def duration(**options: float) -> float:
        node.random.seed(5)
        return float(planner.preview(tuck, MoveGoal(goal, options)).times[-1])

    plain = duration()
    assert duration(speed=0.5) == pytest.approx(2 * plain)
    assert duration(time_factor=3.0) == pytest.approx(3 * plain)
    assert duration(max_velocity_scaling_factor=0.5, max_acceleration_scaling_factor=0.25) == pytest.approx(
        2 * plain, rel=0.05
    )
    assert duration(speed=0.5, time_factor=2.0) == pytest.approx(4 * plain)


def test_velocity_and_acceleration_are_ceilings_of_the_flange(planner: Any, chain: Chain, tuck: np.ndarray) -> None:
    path = planner.preview(tuck, MoveGoal(GOAL, {"velocity": 0.08, "acceleration": 0.2}))
    speed = np.gradient(chain.fk(path.positions)[:, :3, 3], path.times, axis=0)
    assert np.max(np.linalg.norm(speed, axis=1)) < 0.081


def test_an_algorithm_goes_by_either_of_its_names(planner: Any, node: Any, commander: Any, tuck: np.ndarray) -> None:
    for asked, meant in (("RRTConnectkConfigDefault", "RRTConnect"), ("RRTstar", "RRTstarkConfigDefault"), ("", "")):
        planner.preview(tuck, MoveGoal(GOAL, {"planner_id": asked}))
        listed = commander.release != "melodic"  # which does not list them
        assert node.requests[-1].planner_id == (meant if listed else asked)


def test_an_unknown_algorithm_is_refused_where_move_group_lists_them(
    planner: Any, node: Any, commander: Any, tuck: np.ndarray
) -> None:
    goal = MoveGoal(GOAL, {"planner_id": "RRTConect"})
    if commander.release == "melodic":
        planner.preview(tuck, goal)
        assert "Will use defaults instead" in node.log[-1]
        return
    with pytest.raises(
        Unreachable, match="planner_id is 'RRTConect', move_group has RRTConnect, RRTstarkConfigDefault"
    ):
        planner.preview(tuck, goal)


def test_a_goal_where_the_arm_stands_needs_no_motion(planner: Any, chain: Chain, tuck: np.ndarray) -> None:
    for options in ({"motion_type": "cartesian"}, {}):
        path = planner.preview(tuck, MoveGoal(chain.fk(tuck), options))
        np.testing.assert_array_equal(path.positions, [tuck])


def test_a_plan_without_times_gets_ours(planner: Any, node: Any, chain: Chain, tuck: np.ndarray) -> None:
    node.untimed = True
    path = planner.preview(tuck, MoveGoal(GOAL))
    speeds = np.abs(np.diff(path.positions, axis=0) / np.diff(path.times)[:, None])
    assert np.all(speeds <= chain.velocity_limits)
    assert pose_error(chain.fk(path.positions[-1]), GOAL)[0] < 1e-4


@pytest.mark.parametrize("name", ["mico-2", "mico-robotiq85"])
def test_continuous_joints_go_on_from_the_turn_that_they_are_on(commander: Any, name: str) -> None:
    robot = load_robot(name)
    node = started(commander, robot)
    node.random.seed(3)
    chain = load_chain(robot)
    start = np.array(robot.tuck)
    start[5] += 2 * np.pi if start[5] < 0 else -2 * np.pi  # within the limits, beyond half a turn
    goal = np.array(chain.fk(start))
    goal[:3, 3] += [0.03, 0.0, 0.04]
    path = load_planner("moveit", robot, chain).preview(start, MoveGoal(goal))
    np.testing.assert_array_equal(path.positions[0], start)
    assert np.max(np.abs(np.diff(path.positions, axis=0))) < 0.2
    assert pose_error(chain.fk(path.positions[-1]), goal)[0] < 1e-4


# Straight lines --------------------


@pytest.mark.parametrize("motion_type", ["cartesian", "movel"])
def test_a_cartesian_motion_is_a_straight_line_in_our_timing(
    planner: Any, chain: Chain, tuck: np.ndarray, motion_type: str
) -> None:
    options = {"motion_type": motion_type, "eef_step": 0.01, "velocity": 0.1}
    path = planner.preview(tuck, MoveGoal(NEAR, options))
    places = chain.fk(path.positions)[:, :3, 3]
    way = places[-1] - places[0]
    off = np.linalg.norm(np.cross(places - places[0], way / np.linalg.norm(way)), axis=1)
    assert np.max(off) < 1e-4
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) / np.diff(path.times)
    assert np.max(speed) == pytest.approx(0.1, rel=0.03)


def test_the_jump_threshold_goes_to_releases_that_take_it(planner: Any, commander: Any, tuck: np.ndarray) -> None:
    planner.preview(tuck, MoveGoal(NEAR, {"motion_type": "cartesian", "jump_threshold": 2.0}))
    expected = None if commander.release == "noetic 1.1.15" else 2.0
    assert planner._commander._group.settings.get("jump_threshold") == expected


def test_half_a_line_is_refused_with_its_share_and_the_reason(planner: Any, tuck: np.ndarray) -> None:
    wall = Box("wall", pose(0.18, 0.36, 0.32), [0.02, 0.3, 0.3])
    planner.update_scene([wall])
    with pytest.raises(
        Unreachable, match=r"only \d+ % of the straight line \(.*wall overlap.*\): put a move in between"
    ):
        planner.preview(tuck, MoveGoal(pose(0.35, 0.36, 0.3), {"motion_type": "cartesian"}))


def test_a_line_that_turns_a_joint_at_once_is_refused(planner: Any, chain: Chain, tuck: np.ndarray) -> None:
    commander = planner._commander
    whole = commander.cartesian

    def with_a_jump(*arguments: Any) -> Any:
        trajectory, fraction = whole(*arguments)
        column = trajectory.joint_trajectory.joint_names.index("wrist_1_joint")
        for point in trajectory.joint_trajectory.points[5:]:
            point.positions = [p + 1.0 * (i == column) for i, p in enumerate(point.positions)]
        return trajectory, fraction

    commander.cartesian = with_a_jump
    with pytest.raises(Unreachable, match=r"wrist_1_joint turns by 1\.\d* rad at once"):
        planner.preview(tuck, MoveGoal(NEAR, {"motion_type": "cartesian"}))


# Errors --------------------


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_a_failed_plan_says_why_by_moveits_name(
    planner: Any, node: Any, commander: Any, tuck: np.ndarray, code: int
) -> None:
    node.error = code
    expected = Fault if ERRORS[code].setup and commander.release != "melodic" else Unreachable
    with pytest.raises(expected) as raised:
        planner.preview(tuck, MoveGoal(NEAR))
    if commander.release == "melodic":
        assert "this release does not say why" in str(raised.value)
    else:
        assert f"{ERRORS[code].name} ({code})" in str(raised.value)


def test_a_pose_out_of_reach_says_how_far(planner: Any, commander: Any, tuck: np.ndarray) -> None:
    with pytest.raises(Unreachable, match="out of reach: the nearest that the arm comes") as raised:
        planner.preview(tuck, MoveGoal(pose(1.5, 0.0, 0.3)))
    assert ("NO_IK_SOLUTION (-31)" in str(raised.value)) == (commander.release != "melodic")


def test_a_goal_inside_an_obstacle_names_both(planner: Any, tuck: np.ndarray) -> None:
    planner.update_scene([Box("crate", GOAL, [0.2, 0.2, 0.2])])
    with pytest.raises(Unreachable, match="crate overlap by"):
        planner.preview(tuck, MoveGoal(GOAL))


def test_an_unknown_code_is_told_as_it_is() -> None:
    assert describe_error(-77) == "MoveIt: error -77; move_group's output says more"
    assert describe_error(-1, "no sampler").startswith("MoveIt: PLANNING_FAILED (-1) (no sampler): ")


def test_a_result_of_another_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match="4 values or a trajectory expected, 3 found"):
        read_plan((True, None, 0.1))
    with pytest.raises(ValueError, match="a trajectory expected, int found"):
        read_plan(7)


def test_a_trajectory_of_another_robot_is_a_fault(planner: Any, tuck: np.ndarray) -> None:
    commander = planner._commander
    whole = commander.plan

    def renamed(*arguments: Any) -> Any:
        result = whole(*arguments)
        read_plan(result).trajectory.joint_trajectory.joint_names[0] = "left_elbow"  # type: ignore[union-attr]
        return result

    commander.plan = renamed
    with pytest.raises(Fault, match="lacks elbow_joint; it moves left_elbow"):
        planner.preview(tuck, MoveGoal(GOAL))


def test_a_plan_that_ends_elsewhere_is_a_fault(planner: Any, tuck: np.ndarray) -> None:
    commander = planner._commander
    whole = commander.plan
    commander.plan = lambda start, flange, request: whole(start, pose(0.2, 0.35, 0.3), request)
    with pytest.raises(Fault, match=r"ends 50\.\d mm and 0.0 degrees off the goal of tool0 in base_link"):
        planner.preview(tuck, MoveGoal(GOAL))


def test_a_trajectory_from_elsewhere_is_an_error() -> None:
    point = SimpleNamespace(positions=[0.5, 0.1], velocities=[], time_from_start=0.0)
    message = SimpleNamespace(joint_trajectory=SimpleNamespace(joint_names=["b", "a"], points=[point]))
    with pytest.raises(ValueError, match=r"begins 0.100 rad off where a was commanded to"):
        read_trajectory(message, ["a", "b"], [0.0, 0.5])


def test_names_of_algorithms() -> None:
    ids = ["arm", "arm[RRTkConfigDefault]", "arm[PRM]"]
    assert [known_planner(name, "arm", ids) for name in ("RRT", "PRM", "PRMkConfigDefault", "FMT", "")] == [
        "RRTkConfigDefault",
        "PRM",
        "PRM",
        None,
        "",
    ]


# What the core makes of a plan --------------------


def test_a_plan_through_an_obstacle_that_moveit_does_not_see_is_not_sent(
    planner: Any, node: Any, chain: Chain, tuck: np.ndarray
) -> None:
    wall = Box("wall", pose(0.2, 0.35, 0.3), [0.02, 1.2, 1.6])
    planner.update_scene([wall])
    node.world.clear()
    count = len(node.requests)
    with pytest.raises(Unreachable, match=r"wall overlap by .* as with 3 plans of MoveIt's"):
        planner.preview(tuck, MoveGoal(pose(0.45, 0.2, 0.3)))
    assert len(node.requests) == count + 3


# The scene --------------------


def names(node: Any) -> set[str]:
    return {name.replace("iter_runner:", "") for name in node.world}


def test_only_what_changed_is_sent(planner: Any, node: Any) -> None:
    table = Box("table", pose(0.0, 0.4, -0.05), [0.8, 0.6, 0.1])
    ball = Sphere("ball", [0.3, 0.3, 0.3], 0.04)
    planner.update_scene([table, ball])
    assert names(node) == {"table", "ball"}
    sent = node.applied
    planner.update_scene([table, ball])
    assert node.applied == sent
    planner.update_scene([table, Sphere("ball", [0.3, 0.2, 0.3], 0.04)])
    assert node.applied == sent + 1
    assert node.world["iter_runner:ball"].pose.position.y == pytest.approx(0.2)
    planner.update_scene([table])
    assert node.applied == sent + 2
    assert names(node) == {"table"}


def test_capsules_and_cylinders_are_cylinders(planner: Any, node: Any) -> None:
    planner.update_scene(
        [Capsule("pipe", [0.4, 0.0, 0.2], [0.4, 0.3, 0.2], 0.03), Cylinder("post", pose(0.5, 0.5, 0.2), 0.05, 0.4)]
    )
    pipe, post = node.world["iter_runner:pipe"], node.world["iter_runner:post"]
    assert list(pipe.primitives[0].dimensions) == pytest.approx([0.36, 0.03])
    assert list(post.primitives[0].dimensions) == pytest.approx([0.4, 0.05])
    (obstacle,) = [item for item in node._obstacles("base_link") if item.name == "iter_runner:pipe"]
    np.testing.assert_allclose(np.abs(np.asarray(obstacle.pose)[:3, 2]), [0, 1, 0], atol=1e-9)
    np.testing.assert_allclose(np.asarray(obstacle.pose)[:3, 3], [0.4, 0.15, 0.2], atol=1e-9)


@pytest.mark.parametrize("shape", ["box", "cylinder", "sphere"])
def test_what_the_hand_takes_is_attached_and_put_back(planner: Any, node: Any, shape: str) -> None:
    at = np.eye(4)
    at[2, 3] = 0.18
    brick = AttachedBody("brick", at, [0.04, 0.04, 0.06], ["robotiq_85_left_finger_tip_link"], shape)
    planner.update_scene([Box("brick", GOAL, [0.04, 0.04, 0.06])])
    planner.update_scene([], [brick])
    assert names(node) == set()
    held = node.attached["iter_runner:brick"]
    assert held.link_name == "tool0"
    assert held.touch_links == ["tool0", "robotiq_85_left_finger_tip_link"]
    assert held.object.pose.position.z == pytest.approx(0.18)
    planner.update_scene([Box("brick", NEAR, [0.04, 0.04, 0.06])])
    assert names(node) == {"brick"}
    assert not node.attached
    planner.update_scene([])
    assert names(node) == set()


def test_plans_keep_what_is_attached_in_mind(planner: Any, node: Any, tuck: np.ndarray) -> None:
    """The commander's own start state would leave it out."""
    at = np.eye(4)
    at[2, 3] = 0.25
    planner.update_scene([], [AttachedBody("rod", at, [0.02, 0.02, 0.2])])
    planner.preview(tuck, MoveGoal(GOAL))
    assert [item.object.id for item in node.requests[-1].attached] == ["iter_runner:rod"]
    planner.update_scene([])
    planner.preview(tuck, MoveGoal(GOAL))
    assert node.requests[-1].attached == []


def test_others_objects_stay_and_what_a_process_before_left_goes(node: Any, ur5: Robot, chain: Chain) -> None:
    from iter_runner.robot import ros_moveit

    planner = load_planner("moveit", ur5, chain, [Box("old", GOAL, [0.1, 0.1, 0.1])])
    node.world["shelf"] = node.world["iter_runner:old"]
    ros_moveit._commanders.clear()  # as another process would find it
    load_planner("moveit", ur5, chain, [Box("new", GOAL, [0.1, 0.1, 0.1])])
    assert set(node.world) == {"shelf", "iter_runner:new"}
    assert planner.name == "moveit"


def test_a_move_group_that_was_started_again_gets_the_scene_again(planner: Any, node: Any) -> None:
    table = Box("table", GOAL, [0.1, 0.1, 0.1])
    planner.update_scene([table])
    node.world.clear()
    planner.update_scene([table])
    assert names(node) == {"table"}


def test_an_object_that_moveit_does_not_take_is_a_fault(planner: Any, node: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(planner._commander, "_base", "base_lnk")
    monkeypatch.setattr(planner._commander, "_scene_time", min(0.3, planner._commander._scene_time))
    with pytest.raises(Fault, match="scene does not follow with table: does it know the frames 'base_lnk'"):
        planner.update_scene([Box("table", GOAL, [0.1, 0.1, 0.1])])


# The set-up ----------------------------------------------------------------------------------------------------------


def test_no_move_group_is_said_with_how_to_start_it(commander: Any, ur5: Robot, chain: Chain) -> None:
    with pytest.raises(Fault, match=r"does not answer.*roslaunch iter_runner move_group.launch robot:=ur5"):
        load_planner("moveit", ur5, chain)


def test_another_robots_move_group_is_refused(commander: Any, ur5: Robot, chain: Chain) -> None:
    started(commander, load_robot("mico-2"))
    with pytest.raises(Fault, match="has no group 'manipulator', which the row of ur5 names; it has arm, gripper"):
        load_planner("moveit", ur5, chain)
    other = ur5.model_copy(update={"moveit_group": "arm"})
    with pytest.raises(Fault, match=r"no link 'tool0'|has the joints m1n6s200_joint_1"):
        MoveItPlanner(other, chain)


def test_without_moveit_the_launch_says_what_to_install(ur5: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PlannerUnavailable, match="apt install ros-noetic-moveit"):
        MoveItPlanner.check_available()
    with pytest.raises(PlannerError, match=r"needs MoveIt 1.*planner:=ompl samples without it"):
        check_fit(ur5, "moveit")


# Motions --------------------


def test_a_move_arrives_on_the_simulated_arm(planner: Any, chain: Chain, ur5: Robot, tuck: np.ndarray) -> None:
    arm = WorkcellArm(ur5, chain, tuck)
    assert planner.planning_time is None
    path = planner.move(arm, tuck, MoveGoal(NEAR, {"motion_type": "cartesian"}), arm.control)
    assert planner.planning_time > 0.0
    assert pose_error(chain.fk(arm.reading().positions), NEAR)[0] < 3e-4
    path = planner.move(arm, path.positions[-1], MoveGoal(GOAL), arm.control)
    assert pose_error(chain.fk(arm.reading().positions), GOAL)[0] < 3e-4


class PlainControl:
    """RunControl as far as the gripper needs it."""

    def __init__(self, stop: bool = False) -> None:
        self.stop = stop

    def notify(self) -> None:
        pass

    def wait_for(self, predicate: Any) -> bool:
        while not predicate():
            if self.stop:
                raise Stopped
        return True


@pytest.fixture
def gripper(node: Any, ur5: Robot, tmp_path: Path) -> Any:
    from iter_runner.package import package_folder
    from iter_runner.robot.ros_moveit import MoveItGripper

    text = (package_folder() / "config/grippers/robotiq_85.yaml").read_text(encoding="utf-8")
    (tmp_path / "hand.yaml").write_text(text + "\nmoveit_group: gripper\n", encoding="utf-8")
    robot = ur5.model_copy(update={"gripper": str(tmp_path / "hand.yaml")})
    return MoveItGripper(robot, robot_gripper(robot))  # type: ignore[arg-type]


def test_the_gripper_group_grasps(gripper: Any, node: Any) -> None:
    reading = gripper.move(0.6, 40.0, PlainControl())
    assert isinstance(reading, GripperReading)
    assert (reading.reached_goal, reading.stalled) == (True, False)
    assert reading.position == pytest.approx(0.6)
    assert list(node.executed[-1].joint_trajectory.points[-1].effort) == [40.0]


def test_an_object_stops_the_gripper_group(gripper: Any, node: Any) -> None:
    node.blocked = 0.4
    reading = gripper.move(0.7, 0.0, PlainControl())
    assert (reading.reached_goal, reading.stalled) == (False, True)
    assert reading.opening == pytest.approx(0.045)


def test_a_gripper_group_that_is_not_executed_is_a_fault(gripper: Any, node: Any) -> None:
    node.controllers_work = False
    with pytest.raises(Fault, match=r"robotiq_85: to position 0.700 rad by MoveIt was not executed"):
        gripper.move(0.7, 0.0, PlainControl())


def test_a_position_beyond_the_fingers_is_a_fault(gripper: Any) -> None:
    with pytest.raises(Fault, match=r"was refused: Error setting joint target. Is the target within bounds"):
        gripper.move(1.7, 0.0, PlainControl())


def test_a_check_looks_at_poses_only(planner: Any, node: Any, ur5: Robot) -> None:
    move = {
        "name": "move",
        "position": {"x": 0.2, "y": 0.35, "z": 0.3},
        "orientation": {"x": 1, "y": 0, "z": 0, "w": 0},
    }
    plan = load_plan(json.dumps({"version": "1.0.0", "title": "one move", "task": [move]}), REGISTRY)
    for asked in (planner, "moveit"):
        result = inspect_plan(plan, ur5, [asked])
        assert not result.faults
        assert "the planner moveit finds anew in each run" in str(result.warnings[-1])
    assert not node.requests
