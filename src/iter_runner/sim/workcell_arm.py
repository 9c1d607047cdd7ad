"""An arm and a gripper without ROS: the simulator's controller on a clock that runs as fast as it is waited on.

For offline runs and tests: the same controller as behind the simulator's ROS face, called directly.
"""

from __future__ import annotations

import threading
from typing import Callable, List, Optional, Sequence, Tuple

import numpy as np

from iter_runner.kinematics import Chain
from iter_runner.robot.arm import GripperReading, JointPath, JointReading, Servo, Vector
from iter_runner.robot.joint_paths import central_velocities, remaining_path
from iter_runner.robot.script_servo import ScriptServo
from iter_runner.robot.table import GripperRow, Robot
from iter_runner.robot.urscript import STOP
from iter_runner.run_control import Fault, RunControl
from iter_runner.sim.arm_model import arm_model
from iter_runner.sim.controller import Controller, SafetyMode
from iter_runner.sim.hand import Hand, HandModel
from iter_runner.sim.trajectory import Goal, Point, Rejected
from iter_runner.sim.urscript import compile_script, servo_target

STANDS = 1e-3
"""rad/s below which a joint stands."""


class WorkcellArm:
    """Arm, clock and controller in one; time passes only while somebody waits for it.

    See :class:`iter_runner.robot.arm.Arm` and :class:`iter_runner.clock.Clock`.

    Args:
        robot: the robot's row.
        chain: the row's.
        start: (n,) rad at power-on.

    Attributes:
        control: a run's switch on this clock.
        scripts: programs received.
        at: (time, action) pairs that happen when the clock reaches them, in order.
        on_cycle: called after every controller cycle.
    """

    def __init__(self, robot: Robot, chain: Chain, start: Vector) -> None:
        self.joint_names: Sequence[str] = tuple(robot.joints)
        self.speed_scaling = 1.0
        self.controller = Controller(arm_model(robot, chain), start)
        self.control = RunControl(self)
        self.scripts: List[str] = []
        self.at: List[Tuple[float, Callable[[], None]]] = []
        self.on_cycle: Callable[[], None] = lambda: None
        self.halts = 0
        self._servo = robot.servo

    # Clock.

    def now(self) -> float:
        """See :class:`iter_runner.clock.Clock`."""
        return self.controller.time

    def wait_until(self, deadline: float, wake: threading.Condition) -> None:
        """See :class:`iter_runner.clock.Clock`."""
        while self.now() < deadline - 1e-9:
            self.cycle()
            if self.control.paused or self.control.stopped:
                return  # as if woken

    def cycle(self) -> None:
        """Lets one cycle of the controller pass."""
        while self.at and self.at[0][0] <= self.now():
            self.at.pop(0)[1]()
        self.controller.step()
        self.on_cycle()
        if self.controller.safety_mode == SafetyMode.PROTECTIVE_STOP:
            reasons = [happening.value[1] for happening in self.controller.happenings if happening.kind == "log"]
            self.control.report_fault(Fault("protective_stop", "; ".join(reasons)))

    # Arm.

    def reading(self) -> JointReading:
        """See :class:`iter_runner.robot.arm.Arm`."""
        return JointReading(np.array(self.controller.q), np.array(self.controller.v), self.now())

    def wait_for_reading(
        self, predicate: Callable[[JointReading], bool], control: RunControl, deadline: Optional[float] = None
    ) -> bool:
        """See :class:`iter_runner.robot.arm.Arm`."""
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
        """See :class:`iter_runner.robot.arm.Arm`."""
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
            self.wait_for_reading(lambda reading: bool(np.max(np.abs(reading.velocities)) < STANDS), control)
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
        """See :class:`iter_runner.robot.arm.Arm`: every arm of this kind takes URScript."""
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

    def servo(self) -> Servo:
        """See :class:`iter_runner.robot.arm.Arm`."""
        return ScriptServo(self.script, self._servo.lookahead_time, self._servo.gain)

    def halt(self) -> None:
        """See :class:`iter_runner.robot.arm.Arm`."""
        self.halts += 1
        self.script(STOP)


class WorkcellGripper:
    """Empty fingers on a :class:`WorkcellArm`'s clock; see :class:`iter_runner.robot.arm.Gripper`."""

    def __init__(self, row: GripperRow, arm: WorkcellArm) -> None:
        self._row = row
        self._arm = arm
        ends = row.position_open, row.position_closed, row.opening_open, row.opening_closed
        model = HandModel(*ends, openings=row.openings)
        self._hand = Hand(model, arm.controller.cycle)

    def move(self, position: float, max_effort: float, control: RunControl) -> GripperReading:
        """See :class:`iter_runner.robot.arm.Gripper`."""
        self._hand.command(position, max_effort, self)
        while self._hand.moving:
            control.check()
            self._arm.cycle()
            self._hand.step()
        result = self._hand.results.pop()
        return GripperReading(result.position, self.opening_of(result.position), result.stalled, result.reached_goal)

    def position_of(self, opening: float) -> float:
        """See :class:`iter_runner.robot.arm.Gripper`."""
        return self._row.position_of(opening)

    def opening_of(self, position: float) -> float:
        """See :class:`iter_runner.robot.arm.Gripper`."""
        return self._row.opening_of(position)
