"""A Robotiq 2F-85 on its own cable, or behind a UR controller, as a gripper of the system and with its driver's topics.

The fingers move as the gripper activates, so that waits for a person: goals are aborted with what to do until
``~activate`` is called, at the start and each time that the cable or the power was lost. A gripper that is found active
at the start needs nothing. The line's times are real ones also where ROS time is simulated.

Parameters:
    ~driver (str, serial): serial (Modbus RTU on a USB adapter) or urcap (the socket of Robotiq's URCap).
    ~port (str, /dev/ttyUSB0): serial: the device, best its name in /dev/serial/by-id/.
    ~host (str, ""): urcap: the controller's address.
    ~tcp_port (int, 63352): urcap: the socket's port.
    ~robot (str, ""): whose gripper it is, a row of config/robots/ or the path of such a YAML file.
    ~gripper (str, robotiq_85): where ~robot is empty: the gripper's row in config/grippers/, or a path.
    ~rate (float, 50.0): Hz, how often the gripper is asked for its state, at most.
    ~speed (float, 0.1): m/s of opening, 0.02 to 0.15.
    ~activate_on_start (bool, false): the operator agrees that the fingers move now; only if the gripper is there now.

Action: the row's, /gripper_command (control_msgs/GripperCommand): position in rad of the row, max_effort in N, 0 for
    the row's. ``stalled`` is the gripper's own word that an object stopped the fingers.
Services: ~activate (std_srvs/Trigger): the operator agrees that the fingers move; returns when the gripper is active.
Publishes: /joint_states (sensor_msgs/JointState): the fingers'; /gripper/stat (robotiq_85_msgs/GripperStat);
    /diagnostics (diagnostic_msgs/DiagnosticArray).
Subscribes: /gripper/cmd (robotiq_85_msgs/GripperCmd): the same by the original driver's message.
"""

from __future__ import annotations

import math
import threading
from functools import partial
from typing import Any, Dict, Tuple

import rospy
from actionlib import ActionServer
from actionlib.server_goal_handle import ServerGoalHandle
from actionlib_msgs.msg import GoalStatus
from control_msgs.msg import GripperCommandAction, GripperCommandFeedback, GripperCommandResult
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from robotiq_85_msgs.msg import GripperCmd, GripperStat
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger, TriggerRequest, TriggerResponse

from iter_runner.gripper.client import GripperClient
from iter_runner.gripper.driver import GripperDriver, Health, Motion, Outcome
from iter_runner.gripper.registers import (
    CURRENT_PER_COUNT,
    SPEED_RANGE,
    Activation,
    FingerScale,
    Obstruction,
    Status,
    describe_fault,
    force_count,
    force_of,
)
from iter_runner.gripper.serial_client import SerialClient
from iter_runner.gripper.urcap_client import TCP_PORT, UrcapClient
from iter_runner.nodes.start import start_node
from iter_runner.robot.table import GripperRow, RobotError, load_gripper, load_robot, robot_gripper

NAME = "robotiq_85"
DRIVERS = ("serial", "urcap")
RATES = (1.0, 200.0)
"""Hz."""
DIAGNOSTICS_PERIOD = 1.0
"""Seconds; a change of the gripper's health is published at once."""
CLOSING_TIME = 3.0
"""Seconds that the line has to tell the fingers to stop as the node ends."""


class ParameterError(Exception):
    """A parameter is wrong; the message says which, what was found and what was expected."""


class Robotiq85:
    """See the module."""

    def __init__(
        self, row: GripperRow, client: GripperClient, rate: float, speed: float, activate_on_start: bool
    ) -> None:
        self._row = row
        self._scale = FingerScale.of_row(row)
        self._lock = threading.RLock()
        self._motions: Dict[str, Tuple[ServerGoalHandle, Motion]] = {}
        self._ended = False
        self._changed = threading.Event()
        self.driver = GripperDriver(
            client,
            self._scale,
            rate=rate,
            speed=speed,
            activate_on_start=activate_on_start,
            how_to_activate=f"`rosservice call {rospy.resolve_name('~activate')}`",
            on_status=self._publish,
            on_change=self._changed.set,
            say=partial(rospy.loginfo, f"{NAME}: %s"),
            warn=partial(rospy.logwarn, f"{NAME}: %s"),
        )
        self._joint_states = rospy.Publisher("/joint_states", JointState, queue_size=1)
        self._stat = rospy.Publisher("/gripper/stat", GripperStat, queue_size=1)
        self._diagnostics = rospy.Publisher("/diagnostics", DiagnosticArray, queue_size=1)
        self._server = ActionServer(row.action, GripperCommandAction, self._on_goal, self._on_cancel, auto_start=False)
        self._server.start()
        self._service = rospy.Service("~activate", Trigger, self._on_activate)
        self._subscriber = rospy.Subscriber("/gripper/cmd", GripperCmd, self._on_command, queue_size=10)

    def spin(self) -> int:
        """Drives the gripper until the node ends; its exit code."""
        thread = threading.Thread(target=self._drive, name="gripper")
        rospy.on_shutdown(self._close)
        thread.start()
        while not rospy.is_shutdown() and not self._ended:
            self._publish_diagnostics()
            self._changed.wait(DIAGNOSTICS_PERIOD)
            self._changed.clear()
        self.driver.close()
        thread.join(CLOSING_TIME)
        return 1 if self._ended and not rospy.is_shutdown() else 0

    def _close(self) -> None:
        self.driver.close()
        self._changed.set()

    def _drive(self) -> None:
        try:
            self.driver.run()
        finally:
            self._ended = not rospy.is_shutdown()
            self._changed.set()

    # ---- goals ----

    def _on_goal(self, goal: ServerGoalHandle) -> None:
        if goal.get_goal_status().status != GoalStatus.PENDING:
            goal.set_canceled(self._result(None), "cancelled before it began")
            return
        command = goal.get_goal().command
        if not (math.isfinite(command.position) and 0.0 <= command.max_effort < math.inf):
            goal.set_rejected(
                self._result(None),
                f"a position in rad and a max_effort in N, not below 0, expected; {command.position} and "
                f"{command.max_effort} found",
            )
            return
        goal.set_accepted()
        force = force_count(command.max_effort or self._row.max_effort)
        with self._lock:
            motion = self.driver.move(self._scale.count_of_angle(command.position), force, partial(self._end, goal))
            if motion.outcome is None:
                self._motions[goal.get_goal_id().id] = (goal, motion)

    def _on_cancel(self, goal: ServerGoalHandle) -> None:
        with self._lock:
            _, motion = self._motions.get(goal.get_goal_id().id, (None, None))
        if motion is not None:
            self.driver.stop(motion)

    def _end(self, goal: ServerGoalHandle, motion: Motion) -> None:
        """A motion has ended: its goal as well."""
        with self._lock:
            self._motions.pop(goal.get_goal_id().id, None)
        if rospy.is_shutdown():
            return  # nothing can be published any more
        result = self._result(motion)
        if motion.outcome in (Outcome.ARRIVED, Outcome.STALLED):
            goal.set_succeeded(result)
        elif motion.outcome is Outcome.FAILED:
            rospy.logerr("%s: %s", NAME, motion.text)
            goal.set_aborted(result, motion.text)
        else:
            goal.set_canceled(result, motion.text or "the fingers were stopped")

    def _result(self, motion: Any) -> GripperCommandResult:
        status = motion.status if motion is not None and motion.status is not None else self.driver.health().status
        stalled = motion is not None and motion.outcome is Outcome.STALLED
        return GripperCommandResult(
            position=self._scale.angle_of_count(status.position) if status is not None else math.nan,
            effort=force_of(motion.force) if stalled else 0.0,
            stalled=stalled,
            reached_goal=motion is not None and motion.outcome is Outcome.ARRIVED,
        )

    def _on_activate(self, request: TriggerRequest) -> TriggerResponse:
        return TriggerResponse(*self.driver.activate())

    def _on_command(self, command: GripperCmd) -> None:
        values = (command.position, command.speed, command.force)
        if command.emergency_release:
            self.driver.release(opening=bool(command.emergency_release_dir))
        elif command.stop:
            self.driver.stop()
        elif not all(math.isfinite(value) for value in values):
            rospy.logerr("%s: /gripper/cmd: numbers expected, position, speed and force are %s", NAME, values)
        else:
            self.driver.move(
                self._scale.count_of_opening(command.position),
                force_count(command.force or self._row.max_effort),
                self._command_ended,
                speed=command.speed or None,
            )

    def _command_ended(self, motion: Motion) -> None:
        if motion.outcome is Outcome.FAILED:
            rospy.logerr("%s: /gripper/cmd: %s", NAME, motion.text)

    # ---- what goes out ----

    def _publish(self, status: Status) -> None:
        """A state of the gripper, as joint states, the driver's own message and feedback."""
        if rospy.is_shutdown():
            return
        now = rospy.Time.now()
        angle = self._scale.angle_of_count(status.position)
        joints = JointState(name=list(self._row.joints), position=[angle] * len(self._row.joints))
        joints.header.stamp = now
        self._joint_states.publish(joints)
        moving = status.going and status.obstruction is Obstruction.MOVING
        stopped = status.obstruction in (Obstruction.STOPPED_OPENING, Obstruction.STOPPED_CLOSING)
        stat = GripperStat(
            is_ready=status.ready,
            is_reset=status.activation is Activation.RESET,
            is_moving=moving,
            obj_detected=status.going and stopped,
            fault_status=status.fault,
            position=self._scale.opening_of_count(status.position),
            requested_position=self._scale.opening_of_count(
                status.position if status.requested is None else status.requested
            ),
            current=status.current * CURRENT_PER_COUNT,
        )
        stat.header.stamp = now
        self._stat.publish(stat)
        with self._lock:
            goals = [goal for goal, _ in self._motions.values()]
        for goal in goals:
            goal.publish_feedback(GripperCommandFeedback(position=angle))

    def _publish_diagnostics(self) -> None:
        health = self.driver.health()
        message = DiagnosticArray(status=[diagnostic(health, self._row, self._scale)])
        message.header.stamp = rospy.Time.now()
        try:
            self._diagnostics.publish(message)
        except rospy.ROSException:
            if not rospy.is_shutdown():
                raise


def diagnostic(health: Health, row: GripperRow, scale: FingerScale) -> DiagnosticStatus:
    """How the gripper is, for rqt_robot_monitor and the preflight: an error as long as goals are refused."""
    level, text = DiagnosticStatus.OK, "ready"
    status = health.status
    if health.refusal:
        level, text = DiagnosticStatus.ERROR, health.refusal
    elif status is not None and status.fault:
        level, text = DiagnosticStatus.WARN, describe_fault(status.fault)
    values: Dict[str, object] = {
        "port": health.place,
        "connected": health.connected,
        "answers missing or wrong": health.errors,
    }
    if status is not None:
        values.update(
            {
                "activation": status.activation.name.lower().replace("_", " "),
                "fault": describe_fault(status.fault) or "none",
                "fingers": status.obstruction.name.lower().replace("_", " ") if status.going else "not commanded",
                "opening (m)": f"{scale.opening_of_count(status.position):.4f}",
                "current (A)": f"{status.current * CURRENT_PER_COUNT:.2f}",
            }
        )
    return DiagnosticStatus(
        level=level,
        name=f"{NAME}: {row.title}",
        message=text,
        hardware_id=health.place,
        values=[KeyValue(key, str(value)) for key, value in values.items()],
    )


def main() -> int:
    """Runs the node; returns its exit code."""
    start_node(NAME)
    try:
        row = read_row()
        client = make_client(str(rospy.get_param("~driver", DRIVERS[0])), row)
        rate = read_number("~rate", 50.0, RATES, "Hz")
        speed = read_number("~speed", 0.1, SPEED_RANGE, "m/s")
        activate_on_start = rospy.get_param("~activate_on_start", False)
        if not isinstance(activate_on_start, bool):
            raise ParameterError(f"~activate_on_start is {activate_on_start!r}, expected true or false")
        if activate_on_start:
            rospy.set_param("~activate_on_start", False)  # the word was for this start, not for a respawned node's
    except (ParameterError, RobotError) as error:
        rospy.logfatal("%s: %s", NAME, error)
        return 1
    return Robotiq85(row, client, rate, speed, activate_on_start).spin()


def read_row() -> GripperRow:
    """The gripper's row that the parameters name. Raises RobotError."""
    robot = str(rospy.get_param("~robot", ""))
    return robot_gripper(load_robot(robot)) if robot else load_gripper(str(rospy.get_param("~gripper", NAME)))


def make_client(driver: str, row: GripperRow) -> GripperClient:
    """The line to the gripper that the parameters describe, not open yet.

    Raises:
        ParameterError: there is no such driver, it does not go with the gripper, or a parameter of it is wrong.
    """
    if driver not in DRIVERS:
        raise ParameterError(f"~driver is {driver!r}, expected one of {', '.join(DRIVERS)}")
    if driver not in row.drivers:
        raise ParameterError(f"~driver is {driver}, but gripper {row.name} goes with {', '.join(row.drivers)}")
    if driver == "serial":
        port = str(rospy.get_param("~port", "/dev/ttyUSB0"))
        if not port:
            raise ParameterError("~port is empty, expected the serial adapter's device, see ls /dev/serial/by-id/")
        return SerialClient(port)
    host = str(rospy.get_param("~host", ""))
    if not host:
        raise ParameterError("~host is empty, expected the address of the robot's controller")
    tcp_port = rospy.get_param("~tcp_port", TCP_PORT)
    if isinstance(tcp_port, bool) or not isinstance(tcp_port, int) or not 0 < tcp_port < 65536:
        raise ParameterError(f"~tcp_port is {tcp_port!r}, expected a port's number, {TCP_PORT} on the controller")
    return UrcapClient(host, tcp_port)


def read_number(name: str, default: float, limits: Tuple[float, float], unit: str) -> float:
    """A parameter that is a number within limits. Raises ParameterError."""
    value = rospy.get_param(name, default)
    low, high = limits
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ParameterError(f"{name} is {value!r}, expected {low:g} to {high:g} {unit}")
    return float(value)
