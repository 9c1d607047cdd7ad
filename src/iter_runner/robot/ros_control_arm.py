"""An arm of any maker behind a joint trajectory controller of ros_control."""

from __future__ import annotations

import contextlib
from typing import Callable, Optional, Sequence

import rospy
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from iter_runner.clock import Clock
from iter_runner.robot.arm import Vector
from iter_runner.robot.ros_arm import RosArm
from iter_runner.robot.table import Robot
from iter_runner.run_control import Fault

HOLD_TIME = 0.1
"""Seconds that a halted arm gets to come back to where it was measured."""


def single_point(joint_names: Sequence[str], positions: Vector, seconds: float) -> JointTrajectory:
    """The trajectory that leads from wherever the controller is to ``positions`` (n,) rad within ``seconds``.

    Without a time in its header, which means at once; the controller then holds its end.
    """
    message = JointTrajectory(joint_names=list(joint_names))
    message.points.append(
        JointTrajectoryPoint(positions=positions.tolist(), time_from_start=rospy.Duration.from_sec(seconds))
    )
    return message


class TrajectoryTopicServo:
    """See :class:`iter_runner.robot.arm.Servo`: every target is a trajectory of one point and replaces the one before.

    The controller comes to the last point and holds it: nothing is to be sent to stop.

    Args:
        send_point: sends one target (n,) rad to be reached within so many seconds.
    """

    fixed_period: Optional[float] = None

    def __init__(self, send_point: Callable[[Vector, float], None]) -> None:
        self._send_point = send_point

    def start(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`: the first target takes the arm over."""

    def send(self, positions: Vector, period: float) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""
        self._send_point(positions, period)

    def pause(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""

    def resume(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""

    def stop(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""


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
        super().__init__(robot, clock, report_fault)
        self._command = rospy.Publisher(self._driver.topic("command"), JointTrajectory, queue_size=10, tcp_nodelay=True)

    def _missing(self) -> str:
        if self._command.get_num_connections() == 0:
            return f"a subscriber of {self._driver.topic('command')}"
        return ""

    def _send_point(self, positions: Vector, seconds: float) -> None:
        self._command.publish(single_point(self.joint_names, positions, seconds))

    def servo(self) -> TrajectoryTopicServo:
        """See :class:`iter_runner.robot.arm.Arm`."""
        return TrajectoryTopicServo(self._send_point)

    def halt(self) -> None:
        """See :class:`iter_runner.robot.arm.Arm`: cancels goals and holds the place where the arm is measured."""
        super().halt()
        with contextlib.suppress(Exception):
            here = self.last_positions()
            if here is not None:
                self._send_point(here, HOLD_TIME)
