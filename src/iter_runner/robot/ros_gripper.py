"""A gripper behind its control_msgs/GripperCommand action."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Dict

import actionlib
from actionlib_msgs.msg import GoalStatus
from control_msgs.msg import GripperCommandAction, GripperCommandGoal

from iter_runner.clock import Clock
from iter_runner.robot.arm import GripperReading
from iter_runner.robot.ros_action import ActionCall, connected
from iter_runner.run_control import Fault, RunControl

if TYPE_CHECKING:
    from iter_runner.robot.table import GripperRow

ANSWER_TIME = 10.0
"""Seconds on the study clock within which fingers arrive or stall."""
CONNECT_TIME = 5.0
"""Seconds of wall time to wait for the action's server."""

# Goal status → what happened, for a person.
ENDINGS: Dict[int, str] = {
    GoalStatus.PREEMPTED: "was taken over by another node",
    GoalStatus.RECALLED: "was taken over by another node",
    GoalStatus.ABORTED: "was aborted by the driver",
    GoalStatus.REJECTED: "was refused by the driver",
    GoalStatus.LOST: "was forgotten by the driver: did it restart?",
}


class RosGripper:
    """See :class:`iter_runner.robot.arm.Gripper`.

    Args:
        row: the gripper's row: its action and the range of its position (rad) and opening (m).
        clock: the study clock.
    """

    def __init__(self, row: GripperRow, clock: Clock) -> None:
        self._row = row
        self._clock = clock
        self._client = actionlib.ActionClient(row.action, GripperCommandAction)

    def connected(self) -> bool:
        """Whether the driver's action server is there."""
        return connected(self._client)

    def move(self, position: float, max_effort: float, control: RunControl) -> GripperReading:
        """See :class:`iter_runner.robot.arm.Gripper`. Fingers that an object stops have arrived (``stalled``)."""
        limit = time.monotonic() + CONNECT_TIME
        while not self.connected():  # rospy announces no connection; an action's topics connect within milliseconds
            if time.monotonic() > limit:
                raise self._fault("has no server: is the gripper's driver running and its cable in?")
            control.sleep_until(self._clock.now() + 0.05)
        goal = GripperCommandGoal()
        goal.command.position = float(position)
        goal.command.max_effort = float(max_effort)
        call = ActionCall(self._client, goal, control)
        give_up = time.monotonic() + 3 * ANSWER_TIME  # a simulated clock that has died has no deadline
        try:
            control.wait_for(lambda: call.finished or time.monotonic() > give_up, self._clock.now() + ANSWER_TIME)
        finally:
            call.cancel()  # whatever cut the wait short: the fingers stand still
        if not call.finished:
            raise self._fault(
                f"gave no answer within {ANSWER_TIME:.0f} s: look whether the gripper has power, then resume"
            )
        result = call.result
        if call.state != GoalStatus.SUCCEEDED or result is None:
            ending = ENDINGS.get(call.state, f"ended in state {call.state}")
            detail = f" ({call.text})" if call.text else ""
            raise self._fault(
                f"to position {position:.3f} rad {ending}{detail}: free the fingers and check the gripper, then resume"
            )
        return GripperReading(
            position=float(result.position),
            opening=self.opening_of(float(result.position)),
            stalled=bool(result.stalled),
            reached_goal=bool(result.reached_goal),
        )

    def _fault(self, what: str) -> Fault:
        return Fault("gripper", f"{self._row.name}: the action {self._row.action} {what}")

    def position_of(self, opening: float) -> float:
        """See :class:`iter_runner.robot.arm.Gripper`."""
        return self._row.position_of(opening)

    def opening_of(self, position: float) -> float:
        """See :class:`iter_runner.robot.arm.Gripper`."""
        return self._row.opening_of(position)
