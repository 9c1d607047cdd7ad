"""What the runner says on the graph, and how it ends a goal, without a master."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any, List, Tuple

import pytest
from actionlib_msgs.msg import GoalStatus

from iter_runner.events import Event, EventKind
from iter_runner.nodes import runner
from iter_runner.nodes.event_message import event_from_message, event_to_message
from iter_runner.nodes.runner import RunnerNode
from iter_runner.nodes.state_message import state_from_message, state_to_message
from iter_runner.robot.table import load_robot
from iter_runner.runner.engine import Outcome
from iter_runner.runner.state import RunState, State


def test_events_and_states_come_back_as_they_went() -> None:
    event = Event(3, "s", EventKind.LOG, 1.25, 9.5, 2, "/task/2", {"message": "an ä"})
    assert event_from_message(event_to_message(event)) == event
    state = RunState(
        state=State.FAULTED, session="s", title="t", step=1, steps=4, fault="f", started=2.0, remaining=1.5
    )
    assert state_from_message(state_to_message(state)) == state


def test_a_fault_is_an_error_in_the_launch_terminal_once(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: List[str] = []
    monkeypatch.setattr(runner.rospy, "logerr", lambda text, *values: errors.append(text % values))
    monkeypatch.setattr(runner.rospy, "is_shutdown", lambda: True)
    node = RunnerNode.__new__(RunnerNode)
    node._lock, node._state = threading.RLock(), RunState()
    faulted = RunState(state=State.FAULTED, step=1, steps=4, fault="ur5: protective stop: clear the workspace")
    for state in (RunState(state=State.RUNNING), faulted, replace(faulted, remaining=2.0), RunState(), faulted):
        node._show(state)
    assert errors == ["runner: step 2 of 4 FAULTED: ur5: protective stop: clear the workspace"] * 2


@pytest.mark.parametrize(("speed", "warns"), [(0.3, True), (1.0, False), (1, False), (None, False)])
def test_an_arm_without_a_speed_slider_says_that_it_moves_at_full_speed(
    monkeypatch: pytest.MonkeyPatch, speed: Any, warns: bool
) -> None:
    said: List[str] = []
    monkeypatch.setattr(runner.rospy, "get_param", lambda name, default: speed)
    monkeypatch.setattr(runner.rospy, "logwarn_once", lambda text, *values: said.append(text % values))
    node = RunnerNode.__new__(RunnerNode)
    node._robot = load_robot("mico-2")
    node._set_speed()
    assert len(said) == warns
    assert all("mico-2 moves at the plan's full speed, not at 0.3 of it" in text for text in said)


class FakeGoal:
    """A goal as actionlib keeps it: one that was not accepted can't be aborted."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.ended: List[Tuple[str, Any]] = []

    def get_goal_status(self) -> GoalStatus:
        return GoalStatus(status=self.status)

    def __getattr__(self, name: str) -> Any:
        return lambda result, text: self.ended.append((name, result.outcome))


@pytest.mark.parametrize(
    ("status", "outcome", "end"),
    [
        (GoalStatus.PENDING, "aborted", "set_rejected"),
        (GoalStatus.RECALLING, "aborted", "set_canceled"),
        (GoalStatus.ACTIVE, "aborted", "set_aborted"),
        (GoalStatus.ACTIVE, "finished", "set_succeeded"),
        (GoalStatus.PREEMPTING, "stopped", "set_canceled"),
    ],
)
def test_a_goal_ends_in_a_way_that_its_status_allows(status: int, outcome: str, end: str) -> None:
    goal = FakeGoal(status)
    RunnerNode._conclude(None, goal, Outcome(outcome, "why", 0), None, 0)  # type: ignore[arg-type]
    assert goal.ended == [(end, outcome)]
