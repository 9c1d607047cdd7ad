"""Goals of an action, awaited in a run that may be stopped."""

from __future__ import annotations

import threading
from typing import Any

import actionlib
from actionlib_msgs.msg import GoalStatus

from iter_runner.run_control import RunControl

RESULT_TIME = 1.0
"""Seconds of wall time after which a goal whose status says that it has ended has ended without a result."""


class ActionCall:
    """One goal on its way.

    ``actionlib.SimpleActionClient`` loses what a server answers before ``send_goal`` has returned, and then waits for
    ever; here an answer finds its goal by itself. A server on a busy machine may publish a result before it has seen
    our connection: then the goal ends by its status, which is published again and again, with no result.
    """

    def __init__(self, client: actionlib.ActionClient, goal: Any, control: RunControl) -> None:
        """Sends ``goal``; ``control`` is woken when it has ended."""
        self._finished = threading.Event()

        def on_transition(handle: actionlib.ClientGoalHandle) -> None:
            state = handle.get_comm_state()
            if state == actionlib.CommState.DONE:
                end()
            elif state == actionlib.CommState.WAITING_FOR_RESULT:
                timer = threading.Timer(RESULT_TIME, end)
                timer.daemon = True
                timer.start()

        def end() -> None:
            self._finished.set()
            control.notify()

        self._handle = client.send_goal(goal, on_transition)

    @property
    def finished(self) -> bool:
        """Whether the server has answered."""
        return self._finished.is_set()

    @property
    def state(self) -> int:
        """The goal's status, one of actionlib_msgs/GoalStatus; LOST where the server forgot it."""
        done = self._handle.get_comm_state() == actionlib.CommState.DONE
        return int(self._handle.get_terminal_state() if done else self._handle.get_goal_status())

    @property
    def result(self) -> Any:
        """The server's result; None before it came, or where it was lost."""
        return self._handle.get_result() if self.finished else None

    @property
    def text(self) -> str:
        """What the server says about the goal's status."""
        return str(self._handle.get_goal_status_text())

    @property
    def taken_over(self) -> bool:
        """Whether it ended because it was cancelled, or another goal took its place."""
        return self.state in (GoalStatus.PREEMPTED, GoalStatus.RECALLED)

    def cancel(self) -> None:
        """Asks the server to end it; nothing where it has ended."""
        if not self.finished:
            self._handle.cancel()


def connected(client: actionlib.ActionClient) -> bool:
    """Whether the action's server hears our goals and we hear its results."""
    ends = (client.pub_goal, client.pub_cancel, client.result_sub, client.status_sub)
    return all(end.get_num_connections() for end in ends)
