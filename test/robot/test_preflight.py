"""Each check alone: what was seen, and the line that comes of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, List, Tuple

import numpy as np
import pytest

from iter_runner.kinematics.urdf import read_urdf
from iter_runner.robot.preflight import Check, Condition, Seen, preflight
from iter_runner.robot.table import load_robot, robot_gripper, robot_urdf

ROBOT = load_robot("ur5")
MODEL = list(read_urdf(robot_urdf(ROBOT)).joints)
LIMITS: List[Tuple[float, float]] = [(-2 * math.pi, 2 * math.pi)] * 6
GOOD = Seen(
    driver_title="ur_robot_driver",
    driver_missing="",
    joint_states="/joint_states",
    joint_names=[robot_gripper(ROBOT).joints, sorted(ROBOT.joints)],
    stale="",
    age=0.012,
    positions=np.array(ROBOT.tuck),
    conditions=[Condition("robot mode", "running"), Condition("safety mode", "normal")],
    has_calibration=True,
    calibration="calib_1",
    default_calibration=None,
    has_slider=True,
    speed=1.0,
    asked_speed=0.3,
    gripper_action="/gripper_command",
    gripper_connected=True,
)


def checks(**seen: Any) -> List[Check]:
    return preflight(ROBOT, replace(GOOD, **seen), MODEL, LIMITS)


def test_a_good_arm_is_a_list_of_ok() -> None:
    found = checks()
    assert all(check.ok for check in found)
    assert [str(check) for check in found] == [
        "ok    driver: ur_robot_driver is up",
        "ok    joints: the 6 of ur5",
        "ok    joint states: 12 ms old",
        "ok    robot mode: running",
        "ok    safety mode: normal",
        "ok    start pose: inside the limits, elbow_joint nearest to one (4.21 rad)",
        "ok    calibration: calib_1",
        "ok    speed slider: 1.00; runs set it to 0.30",
        "ok    gripper: /gripper_command is served",
    ]


@pytest.mark.parametrize(
    ("seen", "name", "words"),
    [
        ({"driver_missing": "the action /a"}, "driver", ["waiting for the action /a", "ur_robot_driver", "output"]),
        ({"joint_names": []}, "joints", ["nothing on /joint_states"]),
        ({"joint_names": [["a", "b"], ["joint_1", *ROBOT.joints[1:]]]}, "joints",
         ["has 6 joints", "shoulder_pan_joint not among", "joint_1", "robot:=ur5"]),
        ({"joint_names": [[*ROBOT.joints, "joint_7"]]}, "joints", ["joint_7 as well", "robot:=ur5"]),
        ({"stale": "ur5: the last joint state is 0.31 s old: check the network cable, then resume", "age": math.inf},
         "joint states", ["0.31 s old", "network cable"]),
        ({"age": None, "positions": None}, "joint states", ["none of the arm's"]),
        ({"conditions": [Condition("robot mode", "idle", "ur5: the mode is 'idle': power on, then resume")]},
         "robot mode", ["the mode is 'idle'", "power on"]),
        ({"positions": np.array([0, 0, 0, 0, 0, 7.0])}, "start pose",
         ["wrist_3_joint stands at 7.000 rad", "-6.283 to 6.283", "freedrive"]),
        ({"positions": np.array([0, math.nan, 0, 0, 0, 0])}, "start pose", ["shoulder_lift_joint stands at nan"]),
        ({"speed": 0.0}, "speed slider", ["stand still", "push it up"]),
        ({"gripper_connected": False}, "gripper", ["nobody serves /gripper_command", "cable", "gripper_driver:="]),
        ({"gripper_error": "not activated: rosservice call /robotiq_85/activate"}, "gripper", ["not activated"]),
    ],
)  # fmt: skip
def test_what_is_wrong_says_what_to_do(seen: Any, name: str, words: List[str]) -> None:
    failed = [check for check in checks(**seen) if not check.ok]
    assert name in [check.name for check in failed]
    (check,) = [check for check in failed if check.name == name]
    for word in words:
        assert word in check.text
    assert "resume" not in check.text  # there is no run yet
    assert not check.text.startswith("ur5: ")
    assert str(check).startswith(f"FAIL  {name}: ")
    assert "\n" not in str(check)


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ({"calibration": None}, "not known; without"),
        ({"default_calibration": True}, "calib_1 is the model's, not this arm's own"),
        ({"default_calibration": False}, "calib_1"),
    ],
)
def test_a_calibration_is_a_note(seen: Any, text: str) -> None:
    (check,) = [check for check in checks(**seen) if check.name == "calibration"]
    assert check.ok
    assert check.text.startswith(text)


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ({"speed": 0.3}, "0.30, as asked"),
        ({"speed": None}, "not known; runs set it to 0.30"),
        ({"speed": 0.5, "asked_speed": None}, "0.50"),
        ({"has_slider": False, "speed": None}, "this driver has none"),
    ],
)
def test_the_slider_beside_what_is_asked(seen: Any, text: str) -> None:
    (check,) = [check for check in checks(**seen) if check.name == "speed slider"]
    assert (check.ok, check.text) == (True, text)


def test_a_driver_without_a_calibration_has_no_such_line() -> None:
    assert "calibration" not in [check.name for check in checks(has_calibration=False)]


def test_fingers_in_the_arms_own_message_are_no_strangers() -> None:
    mico = load_robot("mico-2")
    model = list(read_urdf(robot_urdf(mico)).joints)
    names = [*mico.joints, *robot_gripper(mico).joints]
    found = preflight(mico, replace(GOOD, joint_names=[names]), model, [(-math.inf, math.inf)] * 6)
    assert all(check.ok for check in found)
    pose = next(check for check in found if check.name == "start pose")
    assert pose.text == "no joint has limits"
