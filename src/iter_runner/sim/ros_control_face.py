"""The embedded cell behind a joint_trajectory_controller of ros_control, whoever made the arm."""

from __future__ import annotations

import rospy
from trajectory_msgs.msg import JointTrajectory

from iter_runner.sim.plain_controller import PlainController
from iter_runner.sim.ros_face import RosFace, trajectory_of
from iter_runner.sim.trajectory import Rejected


class RosControlFace(RosFace[PlainController]):
    """See :class:`iter_runner.sim.ros_face.RosFace`."""

    def _advertise(self) -> None:
        self._subscribers.append(self._on(self._driver.topic("command"), JointTrajectory, self._command))

    def _command(self, message: JointTrajectory) -> None:
        """A trajectory that replaces what runs; one without points holds the arm where it is."""
        controller = self.cell.controller
        if not message.points:
            controller.hold()
            self._lock_step.other_came()
            return
        try:
            replaced = controller.command(trajectory_of(message, self._now()))
        except Rejected as error:
            rospy.logerr_throttle(1.0, f"Trajectory refused: {error}")
            return
        if replaced is not None:
            self._cancelled(replaced, "a trajectory on the command topic took its place")
        if len(message.points) == 1:  # of a stream, most likely
            lasts = message.points[0].time_from_start.to_sec()
            self._lock_step.target_came(controller.cycles, max(1.0, lasts / controller.cycle))
        else:
            self._lock_step.other_came()
