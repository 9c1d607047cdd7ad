"""An arm of any maker behind a joint trajectory controller of ros_control."""

from __future__ import annotations

import contextlib
from typing import Callable, Optional, Sequence, Tuple

import numpy as np
import rospy
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from iter_runner.clock import Clock
from iter_runner.robot.arm import JointReading, Vector
from iter_runner.robot.ros_arm import RosArm
from iter_runner.robot.table import Robot
from iter_runner.run_control import Fault

SHORTEST_STOP = 0.05
"""Seconds at least that a halted arm gets to stop."""


def single_point(
    joint_names: Sequence[str], positions: Vector, seconds: float, velocities: Sequence[float] = ()
) -> JointTrajectory:
    """The trajectory that leads from wherever the controller is to ``positions`` (n,) rad within ``seconds``.

    Without a time in its header, which means at once; the controller then holds its end.
    """
    message = JointTrajectory(joint_names=list(joint_names))
    message.points.append(
        JointTrajectoryPoint(
            positions=positions.tolist(),
            velocities=list(velocities),
            time_from_start=rospy.Duration.from_sec(seconds),
        )
    )
    return message


def stopping_point(reading: JointReading, acceleration: Vector) -> Tuple[Vector, float]:
    """Where (n,) rad and after how many seconds an arm stands that brakes evenly, no joint by more than it may.

    ``acceleration`` (n,) rad/s². Halfway at the present speed for as long as that takes: the parabola of even braking.
    """
    seconds = max(SHORTEST_STOP, float(np.max(np.abs(reading.velocities) / acceleration)))
    return reading.positions + 0.5 * seconds * reading.velocities, seconds


class TrajectoryTopicServo:
    """See :class:`iter_runner.robot.arm.Servo`: every target is a trajectory of one point and replaces the one before.

    The controller comes to the last point and holds it: nothing is to be sent to stop.

    Args:
        send_point: sends one target (n,) rad to be reached within so many seconds.

    Attributes:
        moving: between the first target and the pause or the stop.
    """

    fixed_period: Optional[float] = None

    def __init__(self, send_point: Callable[[Vector, float], None]) -> None:
        self.moving = False
        self._send_point = send_point

    def start(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`: the first target takes the arm over."""

    def send(self, positions: Vector, period: float) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""
        self.moving = True
        self._send_point(positions, period)

    def pause(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""
        self.moving = False

    def resume(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""

    def stop(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""
        self.moving = False


class RosControlArm(RosArm):
    """See :class:`iter_runner.robot.arm.Arm`.

    Args:
        robot, clock, report_fault: see :class:`iter_runner.robot.ros_arm.RosArm`.
        transport: how streamed targets travel: ``trajectory_topic``.
        robot_ip: unused.
    """

    def __init__(
        self,
        robot: Robot,
        clock: Clock,
        report_fault: Optional[Callable[[Fault], None]] = None,
        transport: str = "trajectory_topic",
        robot_ip: str = "",
    ) -> None:
        self._servo = TrajectoryTopicServo(self._send_point)
        super().__init__(robot, clock, report_fault)
        self._command = rospy.Publisher(self._driver.topic("command"), JointTrajectory, queue_size=10, tcp_nodelay=True)

    def _missing(self) -> str:
        if self._command.get_num_connections() == 0:
            return f"a subscriber of {self._driver.topic('command')}"
        return ""

    def _send_point(self, positions: Vector, seconds: float) -> None:
        self._command.publish(single_point(self.joint_names, self._as_driver_counts(positions), seconds))

    def servo(self) -> TrajectoryTopicServo:
        """See :class:`iter_runner.robot.arm.Arm`."""
        return self._servo

    def halt(self) -> None:
        """See :class:`iter_runner.robot.arm.Arm`: cancels goals, and brakes to a place that the controller holds."""
        may_move = True
        with contextlib.suppress(Exception):
            may_move = self._servo.moving or self._may_move()
            self._servo.stop()
        super().halt()
        with contextlib.suppress(Exception):
            if may_move and self._reading is not None:
                place, seconds = stopping_point(self._reading, np.asarray(self._robot.limits.acceleration))
                place = self._as_driver_counts(place)
                still = [0.0] * len(place)
                self._command.publish(single_point(self.joint_names, self._as_driver_counts(place), seconds, still))
