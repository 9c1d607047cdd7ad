"""A Kinova arm behind kinova-ros, or behind the simulator that answers on the same names."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from typing import Callable, ClassVar, Deque, Optional, Tuple

import numpy as np
import rospy
from kinova_msgs.msg import JointVelocity
from sensor_msgs.msg import JointState

from iter_runner.clock import Clock
from iter_runner.robot.arm import JointReading, Vector
from iter_runner.robot.ros_arm import RosArm
from iter_runner.robot.table import Robot, RobotError
from iter_runner.robot.transport import JOINT_VELOCITY_RATE
from iter_runner.robot.velocity_servo import VelocityServo
from iter_runner.run_control import Fault

MOST_JOINTS = 7
"""Joints that a kinova_msgs/JointVelocity has room for."""
SPEED_WINDOW = 0.1
"""Seconds between two positions whose difference makes a velocity: a joint that stands is measured to some 1e-4 rad."""
LATE_WALL = 0.1
"""Seconds of wall time that a target may be late on a simulated clock, which waits for it about as long."""
TICK_WALL = 0.01
"""Seconds of wall time at most that a tick on a simulated clock waits for the joint state of its own moment."""


class Speeds:
    """Joint velocities by how the positions change, over :data:`SPEED_WINDOW` at least."""

    def __init__(self) -> None:
        self._readings: Deque[Tuple[float, Vector]] = deque()

    def update(self, moment: float, positions: Vector) -> Vector:
        """(n,) rad/s at ``moment``, s, with ``positions`` (n,) rad; zeros before a window has passed."""
        readings = self._readings
        if readings and moment <= readings[-1][0]:
            readings.clear()
        readings.append((moment, positions))
        while len(readings) > 2 and moment - readings[1][0] >= SPEED_WINDOW - 1e-6:
            readings.popleft()
        since, before = readings[0]
        return (positions - before) / (moment - since) if moment > since else np.zeros_like(positions)


class KinovaArm(RosArm):
    """See :class:`iter_runner.robot.arm.Arm`.

    The driver has no speed slider and no modes; its services ``in/stop`` and ``in/start`` are the operator's: what was
    stopped by the one is not started from here, and shows as an arm that does not obey.

    Args:
        robot, clock, report_fault: see :class:`iter_runner.robot.ros_arm.RosArm`.
        transport: how streamed targets travel: ``joint_velocity``.
        robot_ip: unused.
    """

    stale_age: ClassVar[float] = 0.25  # kinova-ros' own default is ten joint states a second

    def __init__(
        self,
        robot: Robot,
        clock: Clock,
        report_fault: Optional[Callable[[Fault], None]] = None,
        transport: str = "joint_velocity",
        robot_ip: str = "",
    ) -> None:
        if len(robot.joints) > MOST_JOINTS:
            raise RobotError(
                f"robot {robot.name}: {len(robot.joints)} joints, but kinova-ros streams {MOST_JOINTS} at most"
            )
        self._fresh = threading.Condition()
        self._speeds = Speeds()
        self._reading_period = np.inf  # s between the last two joint states
        super().__init__(robot, clock, report_fault)
        self._velocity = rospy.Publisher(
            self._driver.topic("joint_velocity"), JointVelocity, queue_size=10, tcp_nodelay=True
        )
        self._servo = VelocityServo(
            self._send_velocities,
            self._tick_reading,
            clock,
            self.joint_names,
            np.array([joint.velocity for joint in self._joints]),
            np.array([-np.inf if joint.kind == "continuous" else joint.lower for joint in self._joints]),
            np.array([np.inf if joint.kind == "continuous" else joint.upper for joint in self._joints]),
            self._continuous,
            1.0 / JOINT_VELOCITY_RATE,
            late_wall=0.0 if self._hardware else LATE_WALL,
            advice=self._advice(),
        )

    def _advice(self) -> str:
        return (
            f"see what holds it; if it was stopped by {self._driver.service('stop')}, rosservice call "
            f"{self._driver.service('start')}"
        )

    def close(self) -> None:
        """See :class:`iter_runner.robot.ros_arm.RosArm`."""
        self._servo.stop()
        super().close()

    # What the driver says.

    def _on_joint_state(self, message: JointState) -> None:
        before = self._reading
        super()._on_joint_state(message)
        with self._fresh:
            if before is not None and self._reading is not None and self._reading is not before:
                self._reading_period = self._reading.time - before.time
            self._fresh.notify_all()

    def _trusted(self, reading: JointReading) -> JointReading:
        if not self._hardware:
            return reading
        # The driver's velocities are those of the programming interface: by its version in other units, and noisy.
        return JointReading(reading.positions, self._speeds.update(reading.time, reading.positions), reading.time)

    def _missing(self) -> str:
        if self._velocity.get_num_connections() == 0:
            return f"a subscriber of {self._driver.topic('joint_velocity')}"
        return ""

    def _tick_reading(self) -> JointReading:
        """The reading of this very moment where the clock is simulated: it was sent before the clock's message, but may
        come after it, and the stream is to be the same whichever comes first."""
        reading = self.reading()
        if self._hardware:
            return reading
        now, limit = self._clock.now(), time.monotonic() + TICK_WALL
        with self._fresh:
            while reading.time + self._reading_period <= now + 1e-6:
                left = limit - time.monotonic()
                if left <= 0 or not self._fresh.wait(left):
                    break
                reading = self._reading or reading
        return reading

    # Arm.

    def _send_velocities(self, velocities: Vector) -> None:
        names = (f"joint{index + 1}" for index in range(len(velocities)))
        self._velocity.publish(JointVelocity(**dict(zip(names, np.degrees(velocities).tolist()))))

    def servo(self) -> VelocityServo:
        """See :class:`iter_runner.robot.arm.Arm`."""
        return self._servo

    def halt(self) -> None:
        """See :class:`iter_runner.robot.arm.Arm`: cancels goals and sends zero velocities."""
        may_move = True
        with contextlib.suppress(Exception):
            self._servo.stop()
            may_move = self._may_move()
        super().halt()
        with contextlib.suppress(Exception):
            if may_move:
                self._send_velocities(np.zeros(len(self.joint_names)))
