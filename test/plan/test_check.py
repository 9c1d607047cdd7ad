"""What a robot can do of a plan, and what it says of the rest."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
import pytest

from iter_runner.kinematics import AttachedBody, Obstacle, load_chain
from iter_runner.kinematics.rotations import matrix_to_quaternion
from iter_runner.plan import Plan, PlanFault, load_plan
from iter_runner.plan.check import check_plan, inspect_plan
from iter_runner.plan.frames import FrameError, fixed_pose
from iter_runner.planners.base import MoveGoal, Planner, Unreachable, path_hash
from iter_runner.planners.table import PlannerError
from iter_runner.primitives import REGISTRY
from iter_runner.robot.arm import Arm, JointPath, Vector
from iter_runner.robot.table import RobotError, load_robot, robot_urdf
from iter_runner.run_control import RunControl

DOWN = {"x": 1.0, "y": 0.0, "z": 0.0, "w": 0.0}
UPRIGHT = {"x": 0, "y": 0, "z": 0, "w": 1}
ROBOTS = ["ur3", "ur3e", "ur5", "ur5e"]


def point(x: float, y: float, z: float) -> Dict[str, float]:
    return {"x": x, "y": y, "z": z}


def move(x: float, y: float, z: float, orientation: Dict[str, float] = DOWN, **fields: Any) -> Dict[str, Any]:
    return {"name": "move", "position": point(x, y, z), "orientation": orientation, **fields}


def box(name: str, centre: Sequence[float], size: Sequence[float], **fields: Any) -> Dict[str, Any]:
    return {"name": name, "position": point(*centre), "orientation": UPRIGHT, "size": point(*size), **fields}


TABLE = box("table", (0, 0.3, -0.1), (1, 0.8, 0.02))


def plan(*steps: Any, version: str = "1.0.0", environment: Sequence[Any] = (), **top: Any) -> Plan:
    return load_plan(
        json.dumps({"version": version, "task": list(steps), "environment": list(environment), **top}), REGISTRY
    )


def the_fault(*arguments: Any, **keywords: Any) -> PlanFault:
    faults = check_plan(*arguments, **keywords)
    assert len(faults) == 1, list(map(str, faults))
    return faults[0]


@pytest.mark.parametrize("robot", ROBOTS)
def test_a_pose_in_front_of_the_robot_is_fine(robot: str) -> None:
    assert check_plan(plan(move(0.1, 0.25, 0.2), move(-0.15, 0.25, 0.12), environment=[TABLE]), robot) == []


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_pose_that_is_taken_by_a_clear_configuration_is_accepted(robot: str) -> None:
    row = load_robot(robot)
    chain = load_chain(row)
    generator = np.random.default_rng(5)
    steps = []
    for _ in range(20):
        tip = chain.fk(np.array(row.tuck) + generator.uniform(-0.4, 0.4, 6))
        steps.append(
            move(*map(float, tip[:3, 3]), orientation=dict(zip("xyzw", map(float, matrix_to_quaternion(tip[:3, :3])))))
        )
    assert [fault for fault in check_plan(plan(*steps), row) if "inside" not in fault.found] == []


def test_poses_out_of_reach_are_all_listed_with_pointer_and_distance() -> None:
    far = move(0.9, 0.6, 0.4)
    faults = check_plan(plan(far, move(0.3, 0.3, 0.2), far, move(0, 0, 0)), "ur5")
    assert [fault.pointer for fault in faults] == ["/task/0", "/task/2", "/task/3"]
    assert faults[0].found == faults[1].found
    assert "(0.900, 0.600, 0.400) m" in faults[0].found
    assert "1.153 m from base_link" in faults[0].found
    assert "out of reach by some 0.2" in faults[0].found


def test_poses_of_paths_and_of_vision_primitives_are_checked_too() -> None:
    block = box("block", (0.2, 0.3, 0.0), (0.02, 0.1, 0.02), graspable=True)
    place = {
        "name": "pick_and_place_static",
        "object_name": "block",
        "path_to_object": [move(0.2, 0.3, 0.2)],
        "path_to_destination": [move(0.2, 0.3, 0.3), move(2, 0, 0)],
        "grasp_effort": 0.5,
        "release_effort": 0.2,
    }
    vision = {
        "name": "calibrate_robot_to_camera",
        "path_to_region": [move(0, 3, 0)],
        "tag_to_ee_transform": {"position": point(0, 0, 0), "orientation": UPRIGHT},
    }
    faults = check_plan(plan(place, vision, environment=[block]), "ur5")
    assert [fault.pointer for fault in faults] == ["/task/0/path_to_destination/1", "/task/1/path_to_region/0"]


def test_a_pose_inside_an_obstacle_says_what_touches_what_and_by_how_much() -> None:
    fault = the_fault(plan(move(0.3, 0.3, 0.05), environment=[TABLE]), "ur5")
    assert fault.pointer == "/task/0"
    assert "mm inside table in the best of 8 configurations" in fault.found
    assert check_plan(plan(move(0.3, 0.3, 0.05), environment=[{**TABLE, "graspable": True}]), "ur5") == []


def test_the_hand_counts() -> None:
    """The flange is 13 cm above the table, and the fingers 17 cm long."""
    assert "robotiq" in the_fault(plan(move(0.3, 0.3, 0.04), environment=[TABLE]), "ur5").found


def test_a_folded_pose_collides_with_the_arm_itself() -> None:
    fault = the_fault(plan(move(0.13, 0.0, 0.09)), "ur5")
    assert "inside" in fault.found or "reach" in fault.found


def test_an_obstacle_in_the_tucked_pose_is_the_obstacles_fault() -> None:
    row = load_robot("ur5")
    tip = load_chain(row).fk(np.array(row.tuck))
    wall = box("wall", tip[:3, 3], (0.2, 0.2, 0.2))
    fault = the_fault(plan(environment=[TABLE, wall]), row)
    assert fault.pointer == "/environment/1"
    assert "tucked pose of ur5" in fault.found
    warnings: List[PlanFault] = []
    assert check_plan(plan(environment=[TABLE, wall], version="0.0.1"), row, warnings=warnings) == []
    assert [warning.pointer for warning in warnings] == ["/environment/1"]


def test_the_tool_frame_is_the_plans_then_the_launchs_then_the_rows() -> None:
    """The same flange pose, written in each of its frames."""
    urdf = robot_urdf(load_robot("ur5"))
    tool = np.eye(4)
    tool[:3, :3] = np.diag([1.0, -1.0, -1.0])
    for frame in ("tool0", "ee_link", "flange"):
        turned = tool[:3, :3] @ fixed_pose(urdf, frame, "tool0")[:3, :3]
        x, y, z, w = map(float, matrix_to_quaternion(turned))
        step = move(0.3, 0.3, 0.08, orientation={"x": x, "y": y, "z": z, "w": w})
        assert check_plan(plan(step, environment=[TABLE], tool_frame=frame), "ur5", tool_frame="flange") == []
        assert check_plan(plan(step, environment=[TABLE]), "ur5", tool_frame=frame) == []
    as_ee_link = plan(move(0.3, 0.3, 0.08, orientation=DOWN), environment=[TABLE])
    assert check_plan(as_ee_link, "ur5") == []


def test_other_frames_that_are_fixed_in_the_robot_may_be_the_plans() -> None:
    assert check_plan(plan(move(-0.3, -0.3, 0.2), frame_id="base"), "ur5") == []  # half a turn from base_link
    wall = box("wall", (-0.3, -0.3, 0.2), (0.2, 0.2, 0.2))
    assert "inside wall" in the_fault(plan(move(-0.3, -0.3, 0.2), frame_id="base", environment=[wall]), "ur5").found


@pytest.mark.parametrize(
    ("top", "pointer", "words"),
    [
        ({"frame_id": "base_lin"}, "/frame_id", ["no frame 'base_lin'", "'base_link'"]),
        ({"frame_id": "forearm_link"}, "/frame_id", ["'forearm_link' moves against 'base_link'"]),
        ({"tool_frame": "ee"}, "/tool_frame", ["no frame 'ee'", "tool0"]),
        ({"tool_frame": "base_link"}, "/tool_frame", ["moves against 'tool0'"]),
    ],
)
def test_frames_that_are_not_fixed_are_one_fault(top: Any, pointer: str, words: List[str]) -> None:
    fault = the_fault(plan(move(0.3, 0.3, 0.2), **top), "ur5")
    assert fault.pointer == pointer
    for word in words:
        assert word in str(fault)


def test_fixed_pose_names_what_it_does_not_know() -> None:
    urdf = robot_urdf(load_robot("ur5"))
    assert np.allclose(fixed_pose(urdf, "base", "base_link"), np.diag([-1, -1, 1, 1]), atol=1e-12)
    assert np.allclose(fixed_pose(urdf, "tool0", "ee_link") @ fixed_pose(urdf, "ee_link", "tool0"), np.eye(4))
    with pytest.raises(FrameError, match="no frame 'nowhere'"):
        fixed_pose(urdf, "base", "nowhere")


def test_fingers_outside_their_range() -> None:
    steps = [{"name": "grasp", "effort": 1}, {"name": "release", "width": 0.2}]
    assert [str(fault).split(",")[0] for fault in check_plan(plan(*steps), "ur5")] == [
        "/task/0/effort: found 1",
        "/task/1/width: found 0.2 m",
    ]
    warnings: List[PlanFault] = []
    assert check_plan(plan(steps[0], version="0.0.1"), "ur5", warnings=warnings) == []
    assert [warning.pointer for warning in warnings] == ["/task/0/effort"]


@pytest.mark.parametrize("topic", ["/ur_hardware_interface/script_command", "ur_driver/URScript"])
def test_programs_for_a_controller_that_takes_none(topic: str) -> None:
    fields = {"name": "publish", "topic": topic, "message_module": "std_msgs", "message_type": "String"}
    program = plan(move(0.1, 0.3, 0.2), {**fields, "message_params": {"data": "stopj(1.0)"}})
    fault = the_fault(program, "mico-2")
    assert fault.pointer == "/task/1/topic"
    assert "mico-2" in fault.expected and "kinova-ros" in fault.expected
    assert check_plan(program, "ur5") == []
    assert check_plan(plan({**fields, "topic": "/chatter", "message_params": {"data": "hello"}}), "mico-2") == []


def test_poses_that_look_like_ee_link_are_a_warning() -> None:
    ee_link_down = {"x": 0.7071068, "y": 0, "z": -0.7071068, "w": 0}
    warnings: List[PlanFault] = []
    check_plan(plan(move(0.3, 0.3, 0.3, orientation=ee_link_down)), "ur5", warnings=warnings)
    assert [(warning.pointer, '"ee_link"' in warning.expected) for warning in warnings] == [("/tool_frame", True)]
    warnings.clear()
    check_plan(plan(move(0.3, 0.3, 0.3, orientation=ee_link_down)), "ur5", tool_frame="ee_link", warnings=warnings)
    check_plan(plan(move(0.3, 0.3, 0.3)), "ur5", warnings=warnings)
    assert warnings == []


def test_a_missing_robot_or_planner_is_not_the_plans_fault() -> None:
    with pytest.raises(RobotError, match="ur5e"):
        check_plan(plan(), "ur9")
    with pytest.raises(PlannerError, match="static"):
        check_plan(plan(), "ur5", "fastest")


class StraightPlanner(Planner):
    """Joint lines to the nearest of the solutions that it was given; refuses what is above a height."""

    name = "straight"

    def __init__(self, ends: Sequence[Vector], ceiling: float = 10.0) -> None:
        self._ends = list(ends)
        self._ceiling = ceiling
        self.starts: List[Vector] = []

    def update_scene(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody] = ()) -> None:
        pass

    def preview(self, start: Vector, goal: MoveGoal) -> JointPath:
        self.starts.append(start)
        if goal.flange[2, 3] > self._ceiling:
            raise Unreachable("the ceiling is in the way")
        end = self._ends.pop(0)
        return JointPath(np.linspace(start, end, 50), np.linspace(0, 2.0, 50))

    def move(self, arm: Arm, start: Vector, goal: MoveGoal, control: RunControl) -> JointPath:
        raise AssertionError("a check moves nothing")


def pose_of(robot: str, q: Vector) -> Dict[str, Any]:
    tip = load_chain(robot).fk(q)
    return move(*map(float, tip[:3, 3]), orientation=dict(zip("xyzw", map(float, matrix_to_quaternion(tip[:3, :3])))))


def dry_run(planner: Planner, *steps: Any, environment: Optional[Sequence[Any]] = None) -> Any:
    return inspect_plan(plan(*steps, environment=environment or []), "ur5", [planner])


def test_a_dry_run_goes_from_move_to_move_and_from_the_tucked_pose() -> None:
    tuck = np.array(load_robot("ur5").tuck)
    ends = [tuck + 0.1, tuck + 0.2]
    planner = StraightPlanner(ends)
    result = dry_run(planner, pose_of("ur5", ends[0]), {"name": "logger", "msg": "on"}, pose_of("ur5", ends[1]))
    assert result.faults == []
    assert np.allclose(planner.starts, [tuck, ends[0]])
    paths = result.paths["straight"]
    assert [(path.step, path.pointer, path.duration) for path in paths] == [(0, "/task/0", 2.0), (2, "/task/2", 2.0)]
    assert paths[0].path_hash == path_hash(np.linspace(tuck, ends[0], 50))


def test_what_the_planner_can_not_do_is_a_fault_and_the_dry_run_goes_on() -> None:
    tuck = np.array(load_robot("ur5").tuck)
    planner = StraightPlanner([tuck], ceiling=0.5)
    result = dry_run(planner, move(0.1, 0.3, 0.55), pose_of("ur5", tuck))
    assert [str(fault) for fault in result.faults] == [
        "/task/0: found the ceiling is in the way, expected a motion that the planner straight can do"
    ]
    assert np.allclose(load_chain("ur5").fk(planner.starts[1])[:3, 3], [0.1, 0.3, 0.55])


def test_a_dry_run_begins_where_the_arm_will_be_and_at_the_step_that_the_run_begins_at() -> None:
    tuck = np.array(load_robot("ur5").tuck)
    ends = [tuck + 0.1, tuck + 0.2]
    planner = StraightPlanner(ends[1:])
    task = plan(pose_of("ur5", ends[0]), pose_of("ur5", ends[1]))
    assert check_plan(task, "ur5", planner, start=tuck + 0.05, first_step=1) == []
    assert np.allclose(planner.starts, [tuck + 0.05])


def test_behind_a_step_of_its_own_way_a_dry_run_only_warns() -> None:
    tuck = np.array(load_robot("ur5").tuck)
    script = {"name": "publish", "topic": "/ur_hardware_interface/script_command", "message_module": "std_msgs",
              "message_type": "String", "message_params": {"data": "x"}}  # fmt: skip
    for own_way in ({"name": "jog"}, script):
        warnings: List[PlanFault] = []
        task = plan(own_way, move(0.1, 0.3, 0.55))
        assert check_plan(task, "ur5", StraightPlanner([tuck], ceiling=0.5), warnings=warnings) == []
        assert [(warning.pointer, warning.found) for warning in warnings] == [("/task/1", "the ceiling is in the way")]


def test_something_in_the_way_is_a_fault() -> None:
    tuck = np.array(load_robot("ur5").tuck)
    end = tuck + np.array([1.5, 0, 0, 0, 0, 0])
    middle = load_chain("ur5").fk((tuck + end) / 2)[:3, 3]
    post = box("post", middle, (0.02, 0.02, 0.4))
    result = dry_run(StraightPlanner([end]), pose_of("ur5", end), environment=[post])
    (fault,) = result.faults
    assert fault.pointer == "/task/0"
    assert "inside post on the way" in fault.found


@pytest.mark.parametrize("planner", ["static", "relaxed_ik", "ur"])
def test_what_is_accepted_can_be_planned(planner: str) -> None:
    steps = [move(0.1, 0.3, 0.3), move(0.25, 0.3, 0.1), move(0.1, 0.3, 0.3), move(-0.2, 0.25, 0.1), move(0, 0.3, 0.25)]
    for robot in ("ur5", "ur3e"):
        result = inspect_plan(plan(*steps, environment=[TABLE]), robot, [planner])
        assert result.faults == []
        assert len(result.paths[planner]) == len(steps)
        assert min(path.clearance for path in result.paths[planner]) > 0
