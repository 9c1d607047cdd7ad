"""A gripper behind its control_msgs/GripperCommand action."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Callable, Dict

import actionlib
from actionlib_msgs.msg import GoalStatus
from control_msgs.msg import GripperCommandAction, GripperCommandGoal

from iter_runner.clock import Clock
from iter_runner.robot.arm import GripperReading
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
        self._client = actionlib.SimpleActionClient(row.action, GripperCommandAction)

    def connected(self) -> bool:
        """Whether the driver's action server is there."""
        client = self._client.action_client
        return bool(client.pub_goal.get_num_connections() and client.pub_cancel.get_num_connections())

    def move(self, position: float, max_effort: float, control: RunControl) -> GripperReading:
        """See :class:`iter_runner.robot.arm.Gripper`. Fingers that an object stops have arrived (``stalled``)."""
        limit = time.monotonic() + CONNECT_TIME
        while not self.connected():  # actionlib announces no connection; its topics connect within milliseconds
            if time.monotonic() > limit:
                raise self._fault("has no server: is the gripper's driver running and its cable in?")
            control.sleep_until(self._clock.now() + 0.05)
        finished = threading.Event()

        def on_done(_state: int, _result: object) -> None:
            finished.set()
            control.notify()

        goal = GripperCommandGoal()
        goal.command.position = float(position)
        goal.command.max_effort = float(max_effort) if max_effort > 0 else self._row.max_effort
        self._client.send_goal(goal, done_cb=on_done)
        try:
            answered = control.wait_for(self._answered_or_hopeless(finished), self._clock.now() + ANSWER_TIME)
        except BaseException:
            self._client.cancel_goal()  # the fingers stand still
            raise
        if not answered or not finished.is_set():
            self._client.cancel_goal()
            raise self._fault(
                f"gave no answer within {ANSWER_TIME:.0f} s: look whether the gripper has power, then resume"
            )
        state, result = self._client.get_state(), self._client.get_result()
        if state != GoalStatus.SUCCEEDED or result is None:
            text = self._client.get_goal_status_text()
            name = ENDINGS.get(state, f"ended in state {state}")
            raise self._fault(
                f"to position {position:.3f} rad {name}{f' ({text})' if text else ''}: free the fingers and check the "
                "gripper, then resume"
            )
        return GripperReading(
            position=float(result.position),
            opening=self.opening_of(float(result.position)),
            stalled=bool(result.stalled),
            reached_goal=bool(result.reached_goal),
        )

    def _answered_or_hopeless(self, finished: threading.Event) -> Callable[[], bool]:
        """True when the driver answered, or when its server vanished (a killed driver answers never)."""
        limit = time.monotonic() + 3 * ANSWER_TIME  # a simulated clock that stands still has no deadline
        return lambda: finished.is_set() or time.monotonic() > limit

    def _fault(self, what: str) -> Fault:
        return Fault("gripper", f"{self._row.name}: the action {self._row.action} {what}")

    def position_of(self, opening: float) -> float:
        """See :class:`iter_runner.robot.arm.Gripper`."""
        return self._row.position_of(opening)

    def opening_of(self, position: float) -> float:
        """See :class:`iter_runner.robot.arm.Gripper`."""
        return self._row.opening_of(position)
