"""Sees what ``iter_runner.robot.preflight`` checks; and the tool ``rosrun iter_runner preflight``.

The tool prints one line a check and exits with 0 where the arm may move, 1 where it may not, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import rosgraph
import rospkg
import rospy
import yaml
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64

from iter_runner.clock import Clock
from iter_runner.kinematics.urdf import read_urdf
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.nodes.start import require_master
from iter_runner.robot.preflight import Check, Seen, preflight
from iter_runner.robot.ros_arm import RosArm, connect_arm
from iter_runner.robot.ros_gripper import RosGripper
from iter_runner.robot.table import Robot, RobotError, load_robot, robot_driver, robot_gripper, robot_urdf
from iter_runner.run_control import Fault, RunControl, Stopped

RUN_SPEED = "/runner/speed"
"""The parameter that says what runs set the speed slider to."""
KINDS_KEPT = 10
"""Kinds of messages of joint states, by the names in them, that are told apart."""
GRIPPER_NODE = "robotiq_85"
"""The gripper's node that has diagnostics of its own, which begin with this name."""


class Preflight:
    """Listens from the moment that it is made; :meth:`look` says how things are now.

    Args:
        robot: the robot's row.
        arm: its arm, connected.
        clock: the study clock.
    """

    def __init__(self, robot: Robot, arm: RosArm, clock: Clock) -> None:
        self._robot = robot
        self._arm = arm
        self._clock = clock
        self._driver = driver = robot_driver(robot)
        joints = read_urdf(robot_urdf(robot)).joints
        self._model_joints = list(joints)
        self._limits: List[Tuple[float, float]] = [
            (-math.inf, math.inf)
            if joints[name].kind == "continuous"
            else (float(joints[name].lower), float(joints[name].upper))
            for name in robot.joints
        ]
        self._gripper_row = robot_gripper(robot)
        self._gripper = RosGripper(self._gripper_row, clock)
        self._kinds: Dict[Tuple[str, ...], None] = {}
        self._speed: Optional[float] = None
        self._gripper_told: Optional[str] = None  # what its diagnostics call an error; None: they have not come yet
        self._calibration: Optional[Tuple[Optional[str], Optional[bool]]] = None
        self._subscribers = [
            rospy.Subscriber(driver.topic("joint_states"), JointState, self._on_joint_states, queue_size=1),
            rospy.Subscriber("/diagnostics", DiagnosticArray, self._on_diagnostics, queue_size=10),
        ]
        if "speed_scaling_factor" in driver.topics:
            self._subscribers.append(
                rospy.Subscriber(driver.topic("speed_scaling_factor"), Float64, self._on_speed, queue_size=1)
            )

    def close(self) -> None:
        """Lets go of its topics."""
        for subscriber in self._subscribers:
            subscriber.unregister()

    def look(self) -> List[Check]:
        """Every check, as things are now."""
        stale, age = "", None
        positions = self._arm.last_positions()
        if positions is not None:
            try:
                age = self._clock.now() - self._arm.reading().time
            except Fault as fault:
                stale, age = fault.message, math.inf
        if self._calibration is None or self._calibration[0] is None:
            self._calibration = self._read_calibration()
        asked = rospy.get_param(RUN_SPEED, None)
        seen = Seen(
            driver_title=self._driver.title,
            driver_missing=self._arm.what_is_missing(),
            joint_states=self._driver.topic("joint_states"),
            joint_names=list(self._kinds),
            stale=stale,
            age=age,
            positions=positions,
            conditions=self._arm.conditions(),
            has_calibration="calibration_hash" in self._driver.parameters,
            calibration=self._calibration[0],
            default_calibration=self._calibration[1],
            has_slider="set_speed_slider" in self._driver.services,
            speed=self._speed,
            asked_speed=float(asked) if isinstance(asked, (int, float)) and not isinstance(asked, bool) else None,
            gripper_action=self._gripper_row.action,
            gripper_connected=self._gripper.connected(),
            gripper_error=self._gripper_error(),
        )
        return preflight(self._robot, seen, self._model_joints, self._limits)

    def wait(self, control: RunControl, patience: float) -> List[Check]:
        """The checks as soon as all of them hold, or as they are after ``patience`` s of wall time.

        Raises:
            Stopped: see RunControl.
        """
        give_up = time.monotonic() + patience
        while True:
            checks = self.look()
            if all(check.ok for check in checks) or time.monotonic() > give_up:
                return checks
            # Not at each message: the driver's come by the hundred each second, and its absence sends none.
            with control.condition:
                control.condition.wait(0.2)
            try:
                control.check()
            except Fault:
                control.resume()

    def _read_calibration(self) -> Tuple[Optional[str], Optional[bool]]:
        name = self._driver.parameters.get("calibration_hash")
        found = None if name is None else rospy.get_param(name, None)
        return (None, None) if not found else (str(found), _is_default(self._robot, str(found)))

    def _gripper_error(self) -> str:
        if self._gripper_told is None and _is_served(f"/{GRIPPER_NODE}/activate"):
            return f"{GRIPPER_NODE} has not said yet how the gripper is: look at its output"
        return self._gripper_told or ""

    def _on_joint_states(self, message: JointState) -> None:
        if len(self._kinds) < KINDS_KEPT:
            self._kinds[tuple(message.name)] = None

    def _on_speed(self, message: Float64) -> None:
        # The driver has published percent in some releases and a fraction in others.
        self._speed = message.data / 100.0 if message.data > 1.0 + 1e-6 else message.data

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.strip("/").startswith(GRIPPER_NODE):
                self._gripper_told = status.message if status.level >= DiagnosticStatus.ERROR else ""


def _is_served(service: str) -> bool:
    try:
        return bool(rosgraph.Master(rospy.get_name()).lookupService(service))
    except (OSError, rosgraph.MasterException):
        return False


def _is_default(robot: Robot, calibration: str) -> Optional[bool]:
    """Whether a hash is the one that ur_description has for every arm of the model; None where that is not known."""
    try:
        folder = Path(rospkg.RosPack().get_path("ur_description")) / "config"
        file = folder / str(robot.urdf_arguments.get("model", "")) / "default_kinematics.yaml"
        return bool(yaml.safe_load(file.read_text(encoding="utf-8"))["kinematics"]["hash"] == calibration)
    except (rospkg.ResourceNotFound, OSError, yaml.YAMLError, KeyError, TypeError):
        return None


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the tool; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="preflight",
        description="Whether the arm may move: its driver, joints, modes, pose and gripper. Moves nothing.",
    )
    parser.add_argument("--robot", default="", help="a row of config/robots/, or a YAML file; without it the runner's")
    parser.add_argument("--patience", type=float, default=5.0, metavar="S", help="how long to wait for all to be well")
    options = parser.parse_args(rospy.myargv()[1:] if arguments is None else arguments)
    require_master("preflight")
    rospy.init_node("preflight", anonymous=True)
    try:
        robot = load_robot(options.robot or str(rospy.get_param("/runner/robot", "ur5")))
    except RobotError as error:
        print(f"preflight: {error}")
        return 1
    control = RunControl(study_clock())
    rospy.on_shutdown(control.stop)
    arm = connect_arm(robot, control.clock, robot.transports[0])
    look = Preflight(robot, arm, control.clock)
    try:
        checks = look.wait(control, options.patience)
    except Stopped:
        return 1
    for check in checks:
        print(check)
    arm.close()
    return 0 if all(check.ok for check in checks) else 1
