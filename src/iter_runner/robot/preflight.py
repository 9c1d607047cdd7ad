"""What is looked at before the arm's first motion: each check is one line, ok or what to do.

Pure: what was seen goes in, lines come out. ``iter_runner.nodes.preflight`` does the seeing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

from iter_runner.robot.arm import Vector
from iter_runner.robot.table import Robot

SLOWEST = 0.01
"""The lowest speed scaling at which an arm moves at all."""
LIMIT_TOLERANCE = 1e-3
"""rad by which a measured joint may be outside its limits: the reading's own error."""


@dataclass(frozen=True)
class Check:
    """One line.

    Attributes:
        name: what was looked at.
        ok: False where the arm must not move.
        text: how it is; where it is not ok, what is wrong and what to do.
    """

    name: str
    ok: bool
    text: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.ok else 'FAIL'}  {self.name}: {self.text}"


@dataclass(frozen=True)
class Condition:
    """What a driver reports of the arm itself: ``problem`` says what to do, empty where it is as it should be."""

    name: str
    value: str
    problem: str = ""


@dataclass(frozen=True)
class Seen:
    """What was seen of an arm, its driver and its gripper.

    Attributes:
        driver_title: what the driver is called.
        driver_missing: what of the driver is not there yet; empty: all is.
        joint_states: the topic's name.
        joint_names: the names of each kind of message seen on it.
        stale: what is wrong with the age of the joint states; empty: they are fresh.
        age: s, of the last one; None before the first.
        positions: (n,) rad, the last ones; None before the first.
        conditions: what the driver reports of the arm.
        has_calibration: whether the driver has a calibration at all.
        calibration: its hash; None where it is not known.
        default_calibration: whether that is the model's, not this arm's own; None: not known.
        has_slider: whether the driver has a speed slider.
        speed: what the slider and pauses make of the speed, 0 to 1; None: not known.
        asked_speed: what runs set the slider to; None: they leave it.
        gripper_action: its name.
        gripper_connected: whether somebody serves it.
        gripper_error: what the gripper's own diagnostics call an error; empty: nothing.
    """

    driver_title: str
    driver_missing: str
    joint_states: str
    joint_names: Sequence[Sequence[str]]
    stale: str
    age: Optional[float]
    positions: Optional[Vector]
    conditions: Sequence[Condition]
    has_calibration: bool
    calibration: Optional[str]
    default_calibration: Optional[bool]
    has_slider: bool
    speed: Optional[float]
    asked_speed: Optional[float]
    gripper_action: str
    gripper_connected: bool
    gripper_error: str = ""


def preflight(
    robot: Robot, seen: Seen, model_joints: Sequence[str], limits: Sequence[Tuple[float, float]]
) -> List[Check]:
    """Every check, in the order in which faults are best cured.

    Args:
        robot: the row.
        seen: what was seen.
        model_joints: every joint of the robot's URDF, the gripper's too.
        limits: of each of the row's joints, rad; infinite for those that turn without end.
    """
    return [
        check_driver(robot, seen),
        check_joints(robot, seen, model_joints),
        check_fresh(robot, seen),
        *(
            Check(found.name, not found.problem, _bare(robot, found.problem) or found.value)
            for found in seen.conditions
        ),
        check_pose(robot, seen, limits),
        *([check_calibration(seen)] if seen.has_calibration else []),
        check_speed(seen),
        check_gripper(seen),
    ]


def _bare(robot: Robot, message: str) -> str:
    """A fault's message without what it says in a run: whose it is, and that the run is to be resumed."""
    prefix = f"{robot.name}: "
    return (message[len(prefix) :] if message.startswith(prefix) else message).replace(", then resume", "")


def check_driver(robot: Robot, seen: Seen) -> Check:
    """Whether all of the driver is there."""
    if seen.driver_missing:
        text = f"waiting for {seen.driver_missing}: is {seen.driver_title} running and connected? Look at its output"
        return Check("driver", False, text)
    return Check("driver", True, f"{seen.driver_title} is up")


def check_joints(robot: Robot, seen: Seen, model_joints: Sequence[str]) -> Check:
    """Whether the driver's joints are the row's."""
    wanted = set(robot.joints)
    if not seen.joint_names:
        return Check("joints", False, f"nothing on {seen.joint_states} yet: the driver publishes no joint states")
    whole = next((names for names in seen.joint_names if wanted <= set(names)), None)
    if whole is None:
        nearest = max(seen.joint_names, key=lambda names: len(wanted & set(names)))
        missing = [name for name in robot.joints if name not in nearest]
        return Check(
            "joints",
            False,
            f"{robot.name} has {len(robot.joints)} joints, {', '.join(missing)} not among those of {seen.joint_states} "
            f"({', '.join(nearest) or 'none'}): is robot:={robot.name} the arm on this driver?",
        )
    strange = [name for name in whole if name not in model_joints]
    if strange:
        return Check(
            "joints",
            False,
            f"{seen.joint_states} has {', '.join(strange)} as well, which {robot.name} has not: is robot:={robot.name} "
            "the arm on this driver?",
        )
    return Check("joints", True, f"the {len(robot.joints)} of {robot.name}")


def check_fresh(robot: Robot, seen: Seen) -> Check:
    """Whether the joint states are young enough to move by."""
    if seen.age is None:
        return Check("joint states", False, f"none of the arm's came on {seen.joint_states} yet")
    if seen.stale:
        return Check("joint states", False, _bare(robot, seen.stale))
    return Check("joint states", True, f"{1000 * max(seen.age, 0.0):.0f} ms old")


def check_pose(robot: Robot, seen: Seen, limits: Sequence[Tuple[float, float]]) -> Check:
    """Whether the arm stands inside its joint limits."""
    if seen.positions is None:
        return Check("start pose", False, "not known before the first joint state")
    outside = [
        f"{name} stands at {value:.3f} rad, outside {lower:.3f} to {upper:.3f}"
        for name, value, (lower, upper) in zip(robot.joints, seen.positions.tolist(), limits)
        if not lower - LIMIT_TOLERANCE <= value <= upper + LIMIT_TOLERANCE
    ]
    if outside:
        return Check("start pose", False, f"{'; '.join(outside)}: move it back with freedrive or at the pendant")
    margins = [min(value - lower, upper - value) for value, (lower, upper) in zip(seen.positions.tolist(), limits)]
    nearest = min(range(len(margins)), key=margins.__getitem__)
    if math.isinf(margins[nearest]):
        return Check("start pose", True, "no joint has limits")
    text = f"inside the limits, {robot.joints[nearest]} nearest to one ({max(margins[nearest], 0.0):.2f} rad)"
    return Check("start pose", True, text)


def check_calibration(seen: Seen) -> Check:
    """Which calibration the driver has; never in the way of a motion."""
    if not seen.calibration:
        return Check("calibration", True, "not known; without the arm's own, poses may be millimetres off")
    if seen.default_calibration:
        return Check(
            "calibration",
            True,
            f"{seen.calibration} is the model's, not this arm's own: poses may be millimetres off; ur_calibration "
            "makes its own, for kinematics_config:=",
        )
    return Check("calibration", True, seen.calibration)


def check_speed(seen: Seen) -> Check:
    """What the speed slider stands at, beside what runs ask for."""
    if not seen.has_slider:
        return Check("speed slider", True, "this driver has none")
    asked = "" if seen.asked_speed is None else f"; runs set it to {seen.asked_speed:.2f}"
    if seen.speed is None:
        return Check("speed slider", True, f"not known{asked}")
    if seen.speed < SLOWEST:
        text = f"at {seen.speed:.2f}, the arm would stand still: push it up at the pendant, or press play there{asked}"
        return Check("speed slider", False, text)
    same = seen.asked_speed is not None and abs(seen.speed - seen.asked_speed) < 0.005
    return Check("speed slider", True, f"{seen.speed:.2f}" + (", as asked" if same else asked))


def check_gripper(seen: Seen) -> Check:
    """Whether the gripper can be commanded."""
    if not seen.gripper_connected:
        return Check(
            "gripper",
            False,
            f"nobody serves {seen.gripper_action}: start the gripper's driver, look at its cable and power, or choose "
            "another gripper_driver:=",
        )
    if seen.gripper_error:
        return Check("gripper", False, seen.gripper_error)
    return Check("gripper", True, f"{seen.gripper_action} is served")
