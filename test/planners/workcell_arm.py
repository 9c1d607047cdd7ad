"""An Arm without ROS: the simulator's controller on a clock that runs as fast as it is waited on."""

from __future__ import annotations

import threading
from typing import Callable, List, Optional, Tuple

import numpy as np

from iter_runner.kinematics import Chain
from iter_runner.robot.arm import JointPath, JointReading, Vector
from iter_runner.robot.joint_paths import central_velocities, remaining_path
from iter_runner.robot.script_servo import ScriptServo
from iter_runner.robot.table import Robot
from iter_runner.robot.urscript import STOP
from iter_runner.run_control import Fault, RunControl
from iter_runner.sim.arm_model import arm_model
from iter_runner.sim.controller import Controller, SafetyMode
from iter_runner.sim.trajectory import Goal, Point, Rejected
from iter_runner.sim.urscript import compile_script, servo_target


class WorkcellArm:
    """Arm, clock and controller in one; time passes only while somebody waits for it.

    Attributes:
        scripts: programs received.
        at: (time, action) pairs that happen when the clock reaches them, in order.
        history: (time, joints) of every controller cycle.
    """

    speed_scaling = 1.0

    def __init__(self, robot: Robot, chain: Chain, start: Vector) -> None:
        self.joint_names = tuple(robot.joints)
        self.controller = Controller(arm_model(robot, chain), start)
        self.control = RunControl(self)
        self.scripts: List[str] = []
        self.at: List[Tuple[float, Callable[[], None]]] = []
        self.history: List[Tuple[float, Vector]] = []
        self.halts = 0
        self._servo = robot.servo

    # Clock.

    def now(self) -> float:
        return self.controller.time

    def wait_until(self, deadline: float, wake: threading.Condition) -> None:
        self._pass_until(deadline)

    def _pass_until(self, deadline: float) -> None:
        while self.now() < deadline - 1e-9:
            self.cycle()
            if self.control.paused or self.control.stopped:
                return  # as if woken

    def cycle(self) -> None:
        while self.at and self.at[0][0] <= self.now():
            self.at.pop(0)[1]()
        self.controller.step()
        self.history.append((self.now(), np.array(self.controller.q)))
        if self.controller.safety_mode == SafetyMode.PROTECTIVE_STOP:
            reasons = [happening.value[1] for happening in self.controller.happenings if happening.kind == "log"]
            self.control.report_fault(Fault("protective_stop", "; ".join(reasons)))

    # Arm.

    def reading(self) -> JointReading:
        return JointReading(np.array(self.controller.q), np.array(self.controller.v), self.now())

    def wait_for_reading(
        self, predicate: Callable[[JointReading], bool], control: RunControl, deadline: Optional[float] = None
    ) -> bool:
        while True:
            control.check()
            if predicate(self.reading()):
                return True
            if deadline is not None and self.now() >= deadline:
                return False
            self.cycle()

    def make_ready(self, control: RunControl) -> None:
        """Always is."""

    def follow(self, path: JointPath, control: RunControl) -> None:
        try:
            self._follow(path, control)
        except BaseException:
            self.halt()
            raise

    def _follow(self, path: JointPath, control: RunControl) -> None:
        rest = path
        while True:
            control.wait_while_paused()
            self.controller.start_external_control()
            self._send(rest)
            self.wait_for_reading(lambda _: self.controller.following is None or control.paused, control)
            if self.controller.following is None:
                return
            self.controller.cancel_goal(self)
            self.wait_for_reading(lambda reading: bool(np.max(np.abs(reading.velocities)) < 1e-3), control)
            rest = remaining_path(path, self.reading().positions)

    def _send(self, path: JointPath) -> None:
        points = [
            Point(float(time), tuple(q), tuple(v))
            for time, q, v in zip(path.times[1:], path.positions[1:], central_velocities(path)[1:])
        ]
        try:
            self.controller.send_goal(Goal(self.joint_names, points), self)
        except Rejected as error:
            raise Fault("trajectory_rejected", str(error)) from error

    def script(self, program: str) -> None:
        self.scripts.append(program)
        target = servo_target(program)
        if target is not None:
            self.controller.start_program(
                self.controller.servoj(target.joints, target.time, target.lookahead, target.gain)
            )
        else:
            self.controller.start_program(compile_script(program).run(self.controller))

    def wait_for_script(self, control: RunControl) -> None:
        """See :class:`iter_runner.robot.arm.Arm`."""
        self.wait_for_reading(lambda _: self.controller.program is None, control)

    def servo(self) -> ScriptServo:
        return ScriptServo(self.script, self._servo.lookahead_time, self._servo.gain)

    def halt(self) -> None:
        self.halts += 1
        self.script(STOP)
