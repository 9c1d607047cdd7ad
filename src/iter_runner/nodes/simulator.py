"""The embedded simulator: a workcell with an arm and its gripper, behind the names and types of their real drivers.

Parameters:
    ~robot (str, ur5): a row of config/robots/, or the path of such a YAML file.
    ~rate (float, 1.0): simulated seconds in a real one; 0: as many as there can be.
    ~start (list of float, the tuck pose turned by +-0.3 rad): joints at power-on, rad, in the row's order.
    ~faults (str, ""): what is to go wrong, e.g. ``protective_stop@3,stale_joint_states@5.0:2``; docs/simulator.md.
    ~unlock_delay (float, 0.0): s before a protective stop can be unlocked; real controllers want 5.
    ~finger_speed (float, 0.1): m/s of opening.
    ~gripper (bool, true): serve the gripper's action; false where another node drives it, whose joint states on
        /joint_states the simulated fingers then follow.
    ~resume_clock (float, 0.0): s, where /clock begins; the node itself keeps it, for its successor.

Publishes: /clock, /simulator/objects (iter_runner/Scene, latched), /simulator/markers
    (visualization_msgs/MarkerArray, latched), and the driver's topics; docs/simulator.md lists them.
Subscribes: /runner/scene (iter_runner/Scene), /simulator/inject_fault (std_msgs/String), and the driver's topics;
    /joint_states (sensor_msgs/JointState) where ~gripper is false.
Services and actions: the drivers'.
"""

from __future__ import annotations

import itertools
import math
import signal
import sys
import threading
import time
from typing import Any, Dict, List, Tuple, Type

import rospy

from iter_runner.kinematics.urdf import read_urdf
from iter_runner.nodes.start import end_with_roslaunch, require_master
from iter_runner.robot.table import Robot, RobotError, load_robot, robot_driver, robot_gripper, robot_urdf
from iter_runner.sim.arm_controller import ArmModel
from iter_runner.sim.arm_model import arm_model
from iter_runner.sim.faults import Fault, FaultError, parse_faults
from iter_runner.sim.hand import HandModel
from iter_runner.sim.kinova_controller import KinovaController
from iter_runner.sim.plain_controller import PlainController
from iter_runner.sim.ros_control_face import RosControlFace
from iter_runner.sim.ros_face import FASTEST, RosFace
from iter_runner.sim.ros_kinova_face import KinovaFace
from iter_runner.sim.ros_ur_face import URFace
from iter_runner.sim.workcell import Cell, Workcell

START_OFFSETS = (0.3, 0.2, -0.3, 0.2, -0.3, 0.3)
"""rad, from the tuck pose to where the arm stands at power-on: initialize_joints has something to do."""

OTHERS: Dict[str, Tuple[Type[PlainController], Type[RosFace[Any]]]] = {
    "kinova": (KinovaController, KinovaFace),
    "ros_control": (PlainController, RosControlFace),
}
"""What simulates the arms that are no UR, by their driver's interface."""


class ParameterError(Exception):
    """A parameter is wrong; the message says which, what was found and what was expected."""


def _number(name: str, default: float, lowest: float) -> float:
    value = rospy.get_param(f"~{name}", default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not lowest <= value < math.inf:
        raise ParameterError(f"~{name}: a number from {lowest:g} expected, {value!r} found")
    return float(value)


def _default_start(robot: Robot, model: ArmModel) -> List[float]:
    """Some way from the tuck pose, away from a limit that is near.

    A joint that turns without end counts from 0 to a turn at power-on, as Kinova's do, whatever the row says.
    """
    start = []
    for tuck, offset, lower, upper in zip(robot.tuck, itertools.cycle(START_OFFSETS), model.lower, model.upper):
        turned = tuck + offset if lower <= tuck + offset <= upper else tuck - offset
        start.append(min(max(turned, lower), upper) if math.isfinite(lower) else turned % (2.0 * math.pi))
    return start


def _start(robot: Robot, model: ArmModel) -> List[float]:
    default = _default_start(robot, model)
    start: Any = rospy.get_param("~start", default)
    numbers = isinstance(start, list) and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) for value in start
    )
    if not numbers or len(start) != len(robot.joints):
        raise ParameterError(f"~start: {len(robot.joints)} joint values in rad expected, {start!r} found")
    for name, value, lower, upper in zip(robot.joints, start, model.lower, model.upper):
        if not lower <= value <= upper:
            raise ParameterError(f"~start: {name} at {value} rad is outside its limits {lower:.4f} to {upper:.4f}")
    return [float(value) for value in start]


def _make_face() -> RosFace[Any]:
    robot = load_robot(str(rospy.get_param("~robot", "ur5")))
    driver = robot_driver(robot)
    gripper = robot_gripper(robot)
    hand = HandModel(
        gripper.position_open,
        gripper.position_closed,
        gripper.opening_open,
        gripper.opening_closed,
        _number("finger_speed", 0.1, 0.001),
        gripper.openings,
    )
    model = arm_model(robot)
    start = _start(robot, model)
    faults: List[Fault] = parse_faults(str(rospy.get_param("~faults", "")))
    unlock_delay = _number("unlock_delay", 0.0, 0.0)
    serves_gripper = rospy.get_param("~gripper", True)
    if not isinstance(serves_gripper, bool):
        raise ParameterError(f"~gripper: true or false expected, {serves_gripper!r} found")
    rate = _number("rate", 1.0, 0.0)
    begin = math.ceil(_number("resume_clock", 0.0, 0.0))
    names = (robot, driver, gripper, read_urdf(robot_urdf(robot)), rate, begin, serves_gripper)
    if driver.interface == "ur":
        return URFace(Workcell(model, hand, gripper.tip_offset, start, faults, unlock_delay), *names)
    controller, face = OTHERS[driver.interface]
    return face(Cell(controller(model, start), hand, gripper.tip_offset, faults), *names)


def _keep_clock(face: RosFace[Any]) -> None:
    """Writes down where /clock may go on: time must not run backwards for the others when this node is started again.

    It is ahead of the present by more than the clock gains until the next note.
    """
    ahead = 1.0 + (face.rate if face.rate > 0 else FASTEST)
    while not rospy.is_shutdown():
        try:
            rospy.set_param("~resume_clock", face.time + ahead)
        except (OSError, rospy.ROSException):
            return  # the master has gone
        time.sleep(0.5)


def main() -> int:
    """Runs the node; 1 where a parameter is wrong."""
    # Its time is its own: it must not wait for the clock that it publishes. Its signals are, too: rospy's handler would
    # run on this thread in the midst of a call to the master or of a publication, and wait for locks that it holds.
    end_with_roslaunch()
    require_master("simulator")
    try:
        rospy.init_node("simulator", disable_rostime=True, disable_signals=True)
    except KeyboardInterrupt:  # while there was no master
        return 130
    told_to_end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told_to_end.set())
    if not rospy.get_param("/use_sim_time", False):
        rospy.logwarn("simulator: /use_sim_time is not set: other nodes will not keep to the simulated clock")
    try:
        face = _make_face()
    except (RobotError, FaultError, ParameterError) as error:
        rospy.logfatal("simulator: %s", error)
        return 1
    threading.Thread(target=_keep_clock, args=(face,), name="keep_clock", daemon=True).start()
    face.run(told_to_end)
    rospy.signal_shutdown("told to end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
