"""A Universal Robots arm behind ur_robot_driver, or behind the simulator that answers on the same names."""

from __future__ import annotations

import contextlib
import math
from typing import Callable, Dict, List, Optional, Tuple

import rospy
from std_msgs.msg import Bool, Float64, String
from std_srvs.srv import Trigger
from ur_dashboard_msgs.msg import RobotMode, SafetyMode
from ur_dashboard_msgs.srv import IsProgramRunning

from iter_runner.clock import Clock
from iter_runner.robot.arm import JointPath, JointReading, Servo
from iter_runner.robot.preflight import Condition
from iter_runner.robot.ros_arm import RosArm, stands_still
from iter_runner.robot.ros_service import ServiceCall
from iter_runner.robot.rtde_servo import RtdeServo, rtde_control
from iter_runner.robot.script_servo import ScriptServo
from iter_runner.robot.table import Robot
from iter_runner.robot.transport import RTDE
from iter_runner.robot.urscript import STOP
from iter_runner.run_control import Fault, RunControl

SCRIPT_BEGINS = 0.3
"""Seconds that an arm may stand after a program was sent, before it moves it; and from one look at it to the next."""
SCRIPT_PATIENCE = 30.0
"""Seconds that an arm stands before a program that runs on counts as endless."""
DISPLACED = 1.0
"""Seconds after which a program that was sent has displaced External Control, if it ever will."""
DASHBOARD_WALL = 2.0
"""Seconds of wall time that the dashboard gets to answer."""
DISPLACED_WALL = 0.5
"""Seconds of wall time that the news of External Control's end may take after a trajectory was refused for it."""

ROBOT_MODES: Dict[int, str] = {
    RobotMode.NO_CONTROLLER: "no controller",
    RobotMode.DISCONNECTED: "disconnected",
    RobotMode.CONFIRM_SAFETY: "confirm safety",
    RobotMode.BOOTING: "booting",
    RobotMode.POWER_OFF: "power off",
    RobotMode.POWER_ON: "power on",
    RobotMode.IDLE: "idle (brakes on)",
    RobotMode.BACKDRIVE: "backdrive (moved by hand)",
    RobotMode.RUNNING: "running",
    RobotMode.UPDATING_FIRMWARE: "updating firmware",
}

# Safety mode → (fault code, what it is called, what to do, with the driver's services by their purpose).
SAFETY_FAULTS: Dict[int, Tuple[str, str, str]] = {
    SafetyMode.PROTECTIVE_STOP: (
        "protective_stop",
        "protective stop",
        "clear the workspace, then unlock the protective stop: rosservice call {unlock_protective_stop}",
    ),
    SafetyMode.RECOVERY: ("not_ready", "recovery", "move the arm back inside its safety limits at the pendant"),
    SafetyMode.SAFEGUARD_STOP: ("safeguard_stop", "safeguard stop", "close the safeguard and reset it"),
    SafetyMode.AUTOMATIC_MODE_SAFEGUARD_STOP: (
        "safeguard_stop",
        "automatic mode safeguard stop",
        "close the safeguard and reset it",
    ),
    SafetyMode.SYSTEM_THREE_POSITION_ENABLING_STOP: (
        "safeguard_stop",
        "three-position enabling stop",
        "hold the enabling switch in its middle position",
    ),
    SafetyMode.SYSTEM_EMERGENCY_STOP: (
        "emergency_stop",
        "emergency stop (system)",
        "release the emergency stop, then power on and release the brakes",
    ),
    SafetyMode.ROBOT_EMERGENCY_STOP: (
        "emergency_stop",
        "emergency stop (robot)",
        "release the emergency stop, then power on and release the brakes",
    ),
    SafetyMode.VIOLATION: (
        "safety_fault",
        "safety violation",
        "restart the safety system: rosservice call {restart_safety}",
    ),
    SafetyMode.FAULT: (
        "safety_fault",
        "safety fault",
        "restart the safety system: rosservice call {restart_safety}",
    ),
    SafetyMode.VALIDATE_JOINT_ID: ("not_ready", "validate joint id", "confirm the joints at the pendant"),
}


class URArm(RosArm):
    """See :class:`iter_runner.robot.arm.Arm`.

    Args:
        robot, clock, report_fault: see :class:`iter_runner.robot.ros_arm.RosArm`; reports protective and emergency
            stops too, and a robot mode other than running.
        transport: how streamed targets travel: ``script`` or ``rtde``.
        robot_ip: the controller's address, for ``rtde``.
    """

    def __init__(
        self,
        robot: Robot,
        clock: Clock,
        report_fault: Optional[Callable[[Fault], None]] = None,
        transport: str = "script",
        robot_ip: str = "",
    ) -> None:
        self._robot_mode: Optional[int] = None
        self._safety_mode: Optional[int] = None
        self._program_running: Optional[bool] = None
        self._script_displaced_program = False
        self._script_sent = -math.inf  # study clock
        self._rtde: Optional[RtdeServo] = None
        if transport == RTDE:
            self._rtde = RtdeServo(
                lambda: rtde_control(robot_ip, robot.control_rate),
                robot_ip,
                robot.servo.lookahead_time,
                robot.servo.gain,
                self._displace_program,
            )
        super().__init__(robot, clock, report_fault)
        topic = self._driver.topic
        self._script_publisher = rospy.Publisher(topic("script_command"), String, queue_size=100, tcp_nodelay=True)
        program_running = self._driver.services.get("program_running")
        self._ask_dashboard = rospy.ServiceProxy(program_running, IsProgramRunning) if program_running else None
        self._resend_program = rospy.ServiceProxy(self._driver.service("resend_robot_program"), Trigger)
        self._subscribers += [
            rospy.Subscriber(topic("robot_mode"), RobotMode, self._on_robot_mode),
            rospy.Subscriber(topic("safety_mode"), SafetyMode, self._on_safety_mode),
            rospy.Subscriber(topic("robot_program_running"), Bool, self._on_program_running),
            rospy.Subscriber(topic("speed_scaling_factor"), Float64, self._on_speed_scaling, queue_size=1),
        ]

    def close(self) -> None:
        """See :class:`iter_runner.robot.ros_arm.RosArm`."""
        super().close()
        if self._rtde is not None:
            self._rtde.close()

    # What the driver says.

    def _on_robot_mode(self, message: RobotMode) -> None:
        before, self._robot_mode = self._robot_mode, message.mode
        if before == RobotMode.RUNNING and message.mode != RobotMode.RUNNING:
            self._report(self._safety_fault() or self._mode_fault())
        self._wake()

    def _on_safety_mode(self, message: SafetyMode) -> None:
        before, self._safety_mode = self._safety_mode, message.mode
        if before is not None and before != message.mode:
            self._report(self._safety_fault())
        self._wake()

    def _on_program_running(self, message: Bool) -> None:
        self._program_running = message.data
        if not message.data:
            self._script_displaced_program = False  # seen: no need to wait for it any more
        elif self._rtde is not None and not self._script_displaced_program:
            self._rtde.displace()
        self._wake()

    def _on_speed_scaling(self, message: Float64) -> None:
        # The driver has published percent in some releases and a fraction in others.
        self.speed_scaling = message.data / 100.0 if message.data > 1.0 + 1e-6 else message.data

    def conditions(self) -> List[Condition]:
        """See :class:`iter_runner.robot.ros_arm.RosArm`."""
        mode, safety = self._robot_mode, self._safety_mode
        titles = {None: "not known", SafetyMode.NORMAL: "normal", SafetyMode.REDUCED: "reduced"}
        found = (
            ("robot mode", "not known" if mode is None else ROBOT_MODES.get(mode, f"mode {mode}"), self._mode_fault()),
            ("safety mode", titles.get(safety, f"mode {safety}"), self._safety_fault()),
        )
        return [Condition(name, value, "" if fault is None else fault.message) for name, value, fault in found]

    # Faults.

    def _safety_fault(self) -> Optional[Fault]:
        mode = self._safety_mode
        if mode in (None, SafetyMode.NORMAL, SafetyMode.REDUCED):
            return None
        code, title, action = SAFETY_FAULTS.get(
            mode, ("not_ready", f"safety mode {mode}", "bring the robot to safety mode normal at the pendant")
        )
        return Fault(code, f"{self._robot.name}: {title}: {action.format(**self._driver.services)}, then resume")

    def _mode_fault(self) -> Optional[Fault]:
        mode = self._robot_mode
        if mode in (None, RobotMode.RUNNING):
            return None
        title = ROBOT_MODES.get(mode, f"mode {mode}")
        return Fault(
            "not_ready",
            f"{self._robot.name}: the robot's mode is '{title}', expected 'running': release the emergency stop if it "
            f"is pressed, power the arm on and release the brakes (rosservice call {self._driver.service('power_on')}, "
            f"then {self._driver.service('brake_release')}), then resume",
        )

    def _own_fault(self) -> Optional[Fault]:
        return self._safety_fault() or self._mode_fault()

    def _missing(self) -> str:
        if self._robot_mode is None:
            return str(self._driver.topic("robot_mode"))
        if self._safety_mode is None:
            return str(self._driver.topic("safety_mode"))
        if self._script_publisher.get_num_connections() == 0:
            return f"a subscriber of {self._driver.topic('script_command')}"
        return ""

    # Arm.

    def _before_trajectory(self, control: RunControl) -> None:
        """External Control runs again after a script displaced it; raises Fault(not_ready) if it does not come back."""
        if self._script_displaced_program:
            # Our script's effect may still be on its way: a running program seen now is one that is about to end.
            self.wait_until(lambda: not self._script_displaced_program, control, 1.0)
            displaced = True
        else:
            displaced = self._program_running is False
        self._script_displaced_program = False
        if not displaced:
            return
        self._program_running = None
        if self._rtde is not None:
            self._rtde.displace()
        call = ServiceCall(self._resend_program, on_answer=control.notify)
        self.wait_until(lambda: call.is_over, control, 5.0)
        try:
            answer = call.response()
        except rospy.ServiceException as error:
            service = self._driver.service("resend_robot_program")
            raise Fault(
                "not_ready", f"{self._robot.name}: {service} failed: {error}; is the driver running?"
            ) from error
        if not answer.success:
            raise self.fault() or Fault(
                "not_ready",
                f"{self._robot.name}: the External Control program was not accepted ({answer.message}): is the robot "
                "in remote control and running?",
            )
        if not self.wait_until(lambda: bool(self._program_running), control, 5.0):
            raise self.fault() or Fault(
                "not_ready",
                f"{self._robot.name}: External Control was sent but does not run after 5 s: look at the pendant's log, "
                "then resume",
            )

    def _run_trajectory(self, path: JointPath, control: RunControl) -> bool:
        try:
            return super()._run_trajectory(path, control)
        except Fault as fault:
            # A script of another node may have displaced External Control when the goal was on its way already.
            if fault.code != "trajectory_rejected" or not self.wait_until(
                lambda: self._program_running is False, control, DISPLACED_WALL
            ):
                raise
        self._before_trajectory(control)
        return super()._run_trajectory(path, control)

    def script(self, program: str) -> None:
        """See :class:`iter_runner.robot.arm.Arm`."""
        if self._script_publisher.get_num_connections() == 0:
            raise Fault(
                "driver_lost",
                f"{self._robot.name}: nobody listens on {self._driver.topic('script_command')}: is the driver running?",
            )
        self._script_sent = self._clock.now()
        self._send_script(program)

    def wait_for_script(self, control: RunControl) -> None:
        """See :class:`iter_runner.robot.arm.Arm`.

        A program that still runs after the arm has stood for :data:`SCRIPT_PATIENCE` is left to its fate: whatever
        comes next replaces it.
        """
        stood_since = self._clock.now()

        def stands(reading: JointReading) -> bool:
            nonlocal stood_since
            if not stands_still(reading):
                stood_since = reading.time
            return reading.time >= max(self._script_sent, stood_since) + SCRIPT_BEGINS

        while True:
            self.wait_for_reading(stands, control)
            if not self._a_script_runs(control):
                return
            if self.reading().time > stood_since + SCRIPT_PATIENCE:
                rospy.logwarn(
                    f"{self._robot.name}: a program still runs on the controller though the arm has stood for "
                    f"{SCRIPT_PATIENCE:g} s: the next motion replaces it"
                )
                return
            control.sleep_until(self._clock.now() + SCRIPT_BEGINS)

    def _a_script_runs(self, control: RunControl) -> bool:
        """Whether a program other than External Control runs, as the controller's dashboard says; False if nothing."""
        sent_long_ago = self._clock.now() > self._script_sent + DISPLACED
        if self._program_running and (not self._script_displaced_program or sent_long_ago):
            return False  # it was External Control's, which secondary programs leave alone
        if self._ask_dashboard is None:
            return False
        call = ServiceCall(self._ask_dashboard, on_answer=control.notify)
        self.wait_until(lambda: call.is_over, control, DASHBOARD_WALL)
        try:
            return bool(call.response().program_running)
        except rospy.ServiceException:
            return False

    def _send_script(self, program: str) -> None:
        if self._script_publisher.get_num_connections() > 0:  # one that no driver hears (it has died) displaces nothing
            self._displace_program()
            if self._rtde is not None:
                self._rtde.displace()
        self._script_publisher.publish(String(program if program.endswith("\n") else program + "\n"))

    def _displace_program(self) -> None:
        """External Control's end, if it has not been told yet, is on its way."""
        if self._program_running is not False:
            self._script_displaced_program = True

    def servo(self) -> Servo:
        """See :class:`iter_runner.robot.arm.Arm`."""
        if self._rtde is not None:
            return self._rtde
        return ScriptServo(self.script, self._robot.servo.lookahead_time, self._robot.servo.gain)

    def halt(self) -> None:
        """See :class:`iter_runner.robot.arm.Arm`."""
        super().halt()
        if self._rtde is not None:
            self._rtde.halt()
        with contextlib.suppress(Exception):
            self._send_script(STOP)
        with contextlib.suppress(Exception):
            if self._rtde is not None:  # where no driver heard that, past it
                self._rtde.stop()
