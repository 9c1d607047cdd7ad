"""What the tests of the running system share: a goal's client that sees the runner's state and events."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple
from xmlrpc.client import ServerProxy

import actionlib
import rosgraph
import rospy
from actionlib_msgs.msg import GoalStatus
from iter_runner.msg import Event, RunnerState, RunPlanAction, RunPlanGoal, RunPlanResult
from std_srvs.srv import Trigger

from iter_runner.study.sessions import find_session

PLANS = Path(__file__).resolve().parent / "plans"
PATIENCE = 120.0  # s of real time after which a test has failed; never waited for in a test that passes

DOWN = {"x": 1.0, "y": 0.0, "z": 0.0, "w": 0.0}


def move(x: float, y: float, z: float, **options: Any) -> Dict[str, Any]:
    return {"name": "move", "position": {"x": x, "y": y, "z": z}, "orientation": DOWN, "options": options}


def plan_text(*task: Dict[str, Any], **fields: Any) -> str:
    document = {"version": "1.0.0", "title": "test", "tool_frame": "tool0", "environment": [], "task": list(task)}
    return json.dumps({**document, **fields})


class RunnerClient:
    """Sends goals and keeps what the runner publishes."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.state = RunnerState()
        self.events: List[Event] = []
        self.states: List[RunnerState] = []
        rospy.Subscriber("/runner/state", RunnerState, self._on_state, queue_size=None)
        rospy.Subscriber("/runner/events", Event, self._on_event, queue_size=None)
        self.action = actionlib.ActionClient("/runner/run_plan", RunPlanAction)
        self.until(lambda: bool(self.states) and self.states[-1].state == RunnerState.IDLE)
        self.until(self._connected)

    def send(self, **fields: Any) -> Any:
        """Sends a goal; its handle."""
        with self.changed:
            self.events.clear()
        return self.action.send_goal(RunPlanGoal(**fields), transition_cb=lambda handle: self._wake())

    def result(self, handle: Any) -> Tuple[RunPlanResult, int]:
        """Waits for the goal's result and terminal state."""
        self.until(lambda: handle.get_comm_state() == actionlib.CommState.DONE)
        return handle.get_result(), handle.get_terminal_state()

    def run(self, **fields: Any) -> RunPlanResult:
        """Sends a goal and waits for its result."""
        return self.result(self.send(**fields))[0]

    def refusal(self, **fields: Any) -> str:
        """The message of a goal that has to be refused."""
        result, status = self.result(self.send(**fields))
        assert (result.outcome, status) == ("refused", GoalStatus.REJECTED), (result, status)
        return str(result.message)

    def call(self, name: str) -> Tuple[bool, str]:
        """Calls /runner/pause, resume, step or stop."""
        answer = rospy.ServiceProxy(f"/runner/{name}", Trigger)()
        return answer.success, answer.message

    def until(self, predicate: Callable[[], bool], patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        with self.changed:
            while not predicate():
                assert time.monotonic() < deadline, f"{self.state}\n{[event.kind for event in self.events][-10:]}"
                self.changed.wait(0.05)

    def until_state(self, state: int, step: Optional[int] = None) -> None:
        self.until(lambda: self.state.state == state and (step is None or self.state.step == step))

    def of_kind(self, kind: str) -> List[Event]:
        with self.changed:
            return [event for event in self.events if event.kind == kind]

    def data(self, kind: str) -> List[Dict[str, Any]]:
        return [json.loads(event.data) for event in self.of_kind(kind)]

    def _connected(self) -> bool:
        action = self.action
        return all(
            topic.get_num_connections() > 0
            for topic in (action.pub_goal, action.pub_cancel, action.result_sub, action.status_sub)
        )

    def _on_state(self, message: RunnerState) -> None:
        with self.changed:
            self.state = message
            self.states.append(message)
            self.changed.notify_all()

    def _on_event(self, message: Event) -> None:
        with self.changed:
            self.events.append(message)
            self.changed.notify_all()

    def _wake(self) -> None:
        with self.changed:
            self.changed.notify_all()


def run_plan(*arguments: str) -> subprocess.Popen:
    """Starts the run_plan tool with its output in pipes."""
    return subprocess.Popen(
        ["rosrun", "iter_runner", "run_plan", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def process_of(node: str) -> int:
    """The process that a node runs in."""
    _, _, process = ServerProxy(rosgraph.Master(rospy.get_name()).lookupNode(node)).getPid(rospy.get_name())
    return int(str(process))


def journalled(session: str) -> List[Tuple[int, str]]:
    """Numbers and kinds of the events in a session's journal."""
    from iter_runner.study.sessions import read_journal

    return [(event.sequence, event.kind.value) for event in read_journal(find_session(session).journal)]
