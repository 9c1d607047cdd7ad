"""What each primitive asks of the run, and what it leaves in the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Sequence

import numpy as np
import pytest
from fake_run import FakeRun, only

from iter_runner.events import EventKind
from iter_runner.plan import Plan, PlanError, Step, load_plan
from iter_runner.primitives import REGISTRY
from iter_runner.primitives.context import ToolPose
from iter_runner.run_control import Fault, Stopped

UPRIGHT = {"x": 0, "y": 0, "z": 0, "w": 1}
POSE = {"position": {"x": 0.3, "y": 0.2, "z": 0.1}, "orientation": UPRIGHT}
MOVE = {"name": "move", **POSE}
BLOCK = {"name": "block", **POSE, "size": {"x": 0.1, "y": 0.1, "z": 0.1}, "graspable": True}


def load(*steps: Any) -> Plan:
    return load_plan(json.dumps({"version": "1.0.0", "environment": [BLOCK], "task": list(steps)}), REGISTRY)


def step(name: str, **fields: Any) -> Step:
    (planned,) = load({"name": name, **fields}).steps
    return planned.step


def test_every_primitive_of_the_design_is_there() -> None:
    names = (
        "calibrate_robot_to_camera calibrate_vision_pose connect_object disconnect_object find_vision_object get_pose "
        "grasp jog logger move move_ar_tag_pose pick_and_place_static pick_and_place_vision prompt publish "
        "publish_string_from_file release wait"
    )
    assert " ".join(REGISTRY.names()) == names
    assert REGISTRY.find("jog_pose") is REGISTRY.find("jog")


@pytest.mark.parametrize("step_class", REGISTRY.classes(), ids=lambda step_class: step_class.name)
def test_every_primitive_takes_rad_and_says_what_it_is(step_class: Any) -> None:
    assert "rad" in step_class.model_fields
    assert step_class.__doc__ and step_class.__doc__ != Step.__doc__
    simple = step_class.execute is not Step.execute
    composite = step_class.expand is not Step.expand
    assert simple != composite


def test_move() -> None:
    run = FakeRun()
    move = step("move", **POSE, options={"speed": 0.5})
    move.execute(run)
    assert run.calls == [("move", ToolPose((0.3, 0.2, 0.1), (0.0, 0.0, 0.0, 1.0)), {"speed": 0.5})]
    assert run.events == []  # the run itself records the move
    assert move.describe() == "moving to (0.30, 0.20, 0.10) m"


def test_move_hands_over_a_unit_quaternion() -> None:
    run = FakeRun()
    step("move", position=POSE["position"], orientation={"x": 0.707, "y": 0, "z": -0.707, "w": 0}).execute(run)
    assert np.linalg.norm(run.calls[0][1].orientation) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("name", ["grasp", "release"])
@pytest.mark.parametrize(
    ("fields", "position", "force"),
    [
        ({"effort": 0.5}, 0.5, 0.0),
        ({"width": 0.02}, 0.2, 0.0),
        ({"effort": 0}, 0.0, 0.0),
        ({"width": 0.0, "force": 30}, 0.0, 30),
    ],
)
def test_fingers(name: str, fields: Any, position: float, force: float) -> None:
    run = FakeRun()
    step(name, **fields).execute(run)
    assert run.calls == [("pause stream",), ("fingers", position, force), ("resume stream",)]
    assert only(run.data(EventKind.GRIPPER_FINISHED)) == {
        "action": name,
        "position": position,
        "stalled": True,
        "reached_goal": False,
        "opening": position / 10,
    }


def test_fingers_without_a_hand_are_a_fault() -> None:
    run = FakeRun()
    run.gripper = None
    with pytest.raises(Fault, match="no gripper for grasp"):
        step("grasp", effort=0.5).execute(run)


def test_get_pose() -> None:
    run = FakeRun()
    step("get_pose").execute(run)
    assert only(run.data(EventKind.POSE)) == {
        "position": [0.3, 0.2, 0.1],
        "orientation": [0.0, 0.0, 0.0, 1.0],
        "joints": [0.1, 0.2],
    }
    run.events[0].to_json()  # plain numbers


def test_wait_for_a_time_is_as_long_as_it_says() -> None:
    run = FakeRun()
    step("wait", condition="time", value=2.5).execute(run)
    assert only(run.data(EventKind.WAIT_STARTED)) == {"condition": "time", "timeout": None, "message": ""}
    assert only(run.data(EventKind.WAIT_ENDED)) == {
        "condition": "time",
        "by": "time",
        "started": 100.0,
        "ended": 102.5,
        "duration": 2.5,
    }


def test_wait_for_no_time_passes_at_once() -> None:
    run = FakeRun()
    step("wait", condition="time", value=0).execute(run)
    assert only(run.data(EventKind.WAIT_ENDED))["duration"] == 0.0


def test_wait_for_a_time_ends_at_its_timeout() -> None:
    run = FakeRun()
    step("wait", condition="time", value=5, timeout=1).execute(run)
    ended = only(run.data(EventKind.WAIT_ENDED))
    assert (ended["by"], ended["duration"]) == ("timeout", 1.0)


def test_wait_for_the_button_ends_when_it_was_pressed_not_when_that_was_heard_of() -> None:
    run = FakeRun(presses=[3.25])
    step("wait", condition="button", message="Build the roof").execute(run)
    assert only(run.data(EventKind.WAIT_STARTED))["message"] == "Build the roof"
    ended = only(run.data(EventKind.WAIT_ENDED))
    assert (ended["by"], ended["started"], ended["ended"], ended["duration"]) == ("press", 100.0, 103.25, 3.25)
    assert run.calls == [("wait_for_press", None)]


def test_wait_for_the_button_goes_on_at_its_timeout() -> None:
    run = FakeRun(presses=[11.0])
    step("wait", condition="button", timeout=10).execute(run)
    ended = only(run.data(EventKind.WAIT_ENDED))
    assert (ended["by"], ended["duration"]) == ("timeout", 10.0)


def test_a_stop_interrupts_a_wait() -> None:
    run = FakeRun()
    run.control.stop()
    with pytest.raises(Stopped):
        step("wait", condition="time", value=5).execute(run)


def test_prompt() -> None:
    run = FakeRun(answers=["yes"])
    step("prompt", msg="Ready?").execute(run)
    assert run.calls == [("ask", "Ready?", None)]
    assert only(run.data(EventKind.WAIT_STARTED)) == {"condition": "prompt", "timeout": None, "message": "Ready?"}
    ended = only(run.data(EventKind.WAIT_ENDED))
    assert (ended["by"], ended["answer"], ended["duration"]) == ("answer", "yes", 2.0)


def test_prompt_without_an_answer_goes_on_at_its_timeout() -> None:
    run = FakeRun()
    step("prompt", msg="Ready?", timeout=9).execute(run)
    ended = only(run.data(EventKind.WAIT_ENDED))
    assert (ended["by"], ended["answer"], ended["duration"]) == ("timeout", None, 9.0)


def test_logger() -> None:
    run = FakeRun()
    step("logger", msg="Task Iteration = 0").execute(run)
    assert only(run.data(EventKind.LOG)) == {"message": "Task Iteration = 0"}


@pytest.mark.parametrize("module", ["std_msgs", "std_msgs.msg"])
def test_publish(module: str) -> None:
    run = FakeRun()
    step("publish", topic="/lamp", message_module=module, message_type="Bool", message_params={"data": True}).execute(
        run
    )
    assert run.calls == [("publish", "/lamp", "std_msgs/Bool", {"data": True})]
    assert only(run.data(EventKind.PUBLISHED)) == {"topic": "/lamp", "type": "std_msgs/Bool"}


def test_publish_takes_nested_fields() -> None:
    pytest.importorskip("geometry_msgs")
    step(
        "publish",
        topic="/goal",
        message_module="geometry_msgs",
        message_type="PoseStamped",
        message_params={"header": {"frame_id": "base"}, "pose": {"position": {"x": 1, "y": 0.5, "z": 0}}},
    )


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"message_module": "no_such_msgs"}, "/task/0/message_module"),
        ({"message_module": "os.path"}, "/task/0/message_module"),
        ({"message_type": "Strin"}, "/task/0/message_type"),
        ({"message_params": {"dat": ""}}, "/task/0/message_params"),
        ({"message_params": {"data": 5}}, "/task/0/message_params"),
    ],
)
def test_a_message_that_can_not_be_is_a_fault_of_the_plan(fields: Any, pointer: str) -> None:
    pytest.importorskip("std_msgs")
    with pytest.raises(PlanError) as refused:
        step("publish", **{"topic": "/t", "message_module": "std_msgs", "message_type": "String", **fields})
    assert [fault.pointer for fault in refused.value.faults] == [pointer]


def test_programs_for_the_controller_go_through_the_arm() -> None:
    run = FakeRun()
    program = {"message_module": "std_msgs", "message_type": "String", "message_params": {"data": "stopj(2)"}}
    step("publish", topic="/ur_hardware_interface/script_command", **program).execute(run)
    assert run.calls == [("script", "stopj(2)")]
    run.calls.clear()
    step("publish", topic="/ur_driver/URScript", **program).execute(run)
    assert ("script", "stopj(2)") in run.calls
    run.calls.clear()
    step("publish", topic="/ur_driver/URScript", **{**program, "message_params": {"data": ""}}).execute(run)
    assert [call[0] for call in run.calls] == ["publish"]  # an empty program would stop the one that runs


def test_publish_string_from_file_reads_it_beside_the_plan_when_the_plan_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/hello.txt").write_text("hallo, Wörld\n", encoding="utf-8")
    plan_file = tmp_path / "plan.json"
    fields = {"name": "publish_string_from_file", "topic": "/words", "filepath": "scripts/hello.txt"}
    plan_file.write_text(json.dumps({"version": "1.0.0", "task": [fields]}))
    plan = load_plan(plan_file, REGISTRY)
    (tmp_path / "scripts/hello.txt").unlink()
    run = FakeRun()
    plan.steps[0].step.execute(run)
    assert run.calls == [("publish", "/words", "std_msgs/String", {"data": "hallo, Wörld\n"})]


def test_publish_string_from_file_looks_in_the_working_directory_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.script").write_text("x")
    monkeypatch.chdir(tmp_path)
    run = FakeRun()
    step("publish_string_from_file", topic="/words", filepath="a.script").execute(run)
    assert run.calls[0][-1] == {"data": "x"}


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_can_not_be_read_is_a_fault_of_the_plan(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "a.script"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PlanError, match="/task/0/filepath"):
        step("publish_string_from_file", topic="/words", filepath=str(path))


def test_objects_in_the_hand() -> None:
    run = FakeRun()
    step("connect_object", object_name="block").execute(run)
    step("disconnect_object", object_name="block").execute(run)
    assert run.calls == [("attach", "block"), ("detach", "block")]
    assert [(event.kind, event.data) for event in run.events] == [
        (EventKind.OBJECT_ATTACHED, {"object_name": "block"}),
        (EventKind.OBJECT_DETACHED, {"object_name": "block"}),
    ]


def test_pick_and_place_static_expands_in_order_with_pointers() -> None:
    plan = load(
        {"name": "logger", "msg": "begin"},
        {
            "name": "pick_and_place_static",
            "object_name": "block",
            "path_to_object": [MOVE, MOVE],
            "path_to_destination": [MOVE],
            "grasp_effort": 0.59,
            "release_effort": 0.375,
        },
    )
    assert [(planned.pointer, planned.step.name) for planned in plan.steps[1:]] == [
        ("/task/1/path_to_object/0", "move"),
        ("/task/1/path_to_object/1", "move"),
        ("/task/1/object_name", "connect_object"),
        ("/task/1/grasp_effort", "grasp"),
        ("/task/1/path_to_destination/0", "move"),
        ("/task/1/release_effort", "release"),
        ("/task/1/object_name", "disconnect_object"),
    ]
    run = FakeRun()
    for planned in plan.steps:
        planned.step.execute(run)
    assert [call[1] for call in run.calls if call[0] == "fingers"] == [0.59, 0.375]


def test_the_rad_of_a_composite_is_counted_once() -> None:
    composite = {
        "name": "pick_and_place_static",
        "object_name": "block",
        "path_to_object": [{**MOVE, "rad": {"neglect_time": 99}}],
        "path_to_destination": [MOVE],
        "grasp_effort": 0.5,
        "release_effort": 0.3,
    }
    plan = load({**composite, "rad": {"neglect_time": 30.5}}, composite)
    times = [planned.step.rad.neglect_time if planned.step.rad else None for planned in plan.steps]
    assert times == [30.5, None, None, None, None, None, 99, None, None, None, None, None]


def answered(*answers: str, errors: Sequence[Exception] = ()) -> FakeRun:
    run = FakeRun(answers=list(answers), move_errors=list(errors))
    step("jog", position_step=0.01, rotation_step=0.1).execute(run)
    return run


def test_jog_moves_as_told_until_done() -> None:
    run = answered("x+", "y- y-", "rz+", "done")
    moves = [call[1] for call in run.calls if call[0] == "move"]
    assert moves[0].position == pytest.approx([0.31, 0.2, 0.1])
    assert moves[1].position == pytest.approx([0.31, 0.18, 0.1])
    assert moves[2].orientation == pytest.approx([0, 0, np.sin(0.05), np.cos(0.05)])
    assert len(moves) == 3
    assert len(run.data(EventKind.WAIT_ENDED)) == 4  # the robot waited on the human all the while


def test_jog_knows_the_original_keys_and_ends_at_the_button() -> None:
    run = answered("w", "q,q", "")
    assert run.pose.position == pytest.approx([0.3, 0.21, 0.12])


def test_jog_explains_what_it_can_not_do() -> None:
    run = answered("up", "x+", "c", errors=[Fault("unreachable", "too far")])
    asked = [call[1] for call in run.calls if call[0] == "ask"]
    assert asked[1].startswith("up is not a jog command. ")
    assert "too far" in asked[2]
    assert run.pose.position == pytest.approx([0.3, 0.2, 0.1])


def test_jog_leaves_other_faults_to_the_run() -> None:
    with pytest.raises(Fault, match="broken"):
        answered("x+", errors=[Fault("driver_lost", "broken")])


VISION = {
    "find_vision_object": {"object_type": "1", "vision_params": {"min_hue": 0}},
    "pick_and_place_vision": {
        "object_type": "large",
        "path_to_region": [MOVE],
        "path_to_destination": [MOVE, MOVE],
        "grasp_effort": 0.6,
        "release_effort": 0.5,
        "grasp_offset": POSE,
    },
    "calibrate_robot_to_camera": {"path_to_region": [MOVE], "tag_to_ee_transform": POSE, "tag_id": "4"},
    "calibrate_vision_pose": {
        "object_type": "2",
        "step": 0.005,
        "grasp_offset": POSE,
        "safe_height": 0.1,
        "home_pose": POSE,
    },
    "move_ar_tag_pose": {"tag_id": "4"},
}


@pytest.mark.parametrize("name", VISION)
def test_vision_primitives_load_and_say_that_there_is_no_vision_service(name: str) -> None:
    vision = step(name, **VISION[name])  # type: ignore[arg-type]
    with pytest.raises(Fault, match=name) as fault:
        vision.execute(FakeRun())
    assert fault.value.code == "no_vision_service"


def test_the_known_poses_of_vision_primitives_are_there_to_be_checked() -> None:
    poses = step("pick_and_place_vision", **VISION["pick_and_place_vision"]).poses()  # type: ignore[arg-type]
    assert [pointer for pointer, _, _ in poses] == [
        "/path_to_region/0",
        "/path_to_destination/0",
        "/path_to_destination/1",
    ]
