"""A run that notes what its steps ask of it."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from iter_runner.events import Event, EventKind
from iter_runner.primitives.context import PromptAnswer, ToolPose
from iter_runner.robot.arm import GripperReading, JointReading
from iter_runner.run_control import RunControl


class StepClock:
    """Jumps to every deadline."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def wait_until(self, deadline: float, wake: threading.Condition) -> None:
        self.time = max(self.time, deadline)


class FakeArm:
    def __init__(self, calls: List[Tuple[Any, ...]]) -> None:
        self._calls = calls

    def reading(self) -> JointReading:
        return JointReading(np.array([0.1, 0.2]), np.zeros(2), 100.0)

    def script(self, program: str) -> None:
        self._calls.append(("script", program))


class FakeGripper:
    """A hand whose opening (m) is its position (rad) over ten."""

    def __init__(self, calls: List[Tuple[Any, ...]]) -> None:
        self._calls = calls

    def move(self, position: float, max_effort: float, control: RunControl) -> GripperReading:
        self._calls.append(("fingers", position, max_effort))
        return GripperReading(position, self.opening_of(position), stalled=True, reached_goal=False)

    def position_of(self, opening: float) -> float:
        return 10 * opening

    def opening_of(self, position: float) -> float:
        return position / 10


@dataclass
class FakeRun:
    """See ``iter_runner.primitives.context.RunContext``; ``presses`` are seconds after the wait began."""

    presses: List[float] = field(default_factory=list)
    answers: List[str] = field(default_factory=list)
    calls: List[Tuple[Any, ...]] = field(default_factory=list)
    events: List[Event] = field(default_factory=list)
    move_errors: List[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = StepClock()
        self.control = RunControl(self.clock)
        self.arm: Any = FakeArm(self.calls)
        self.gripper: Any = FakeGripper(self.calls)
        self.pose = ToolPose([0.3, 0.2, 0.1], [0.0, 0.0, 0.0, 1.0])

    def script(self, program: str) -> None:
        self.arm.script(program)

    def emit(self, kind: EventKind, **data: Any) -> Event:
        event = Event(len(self.events), "s", kind, self.clock.now(), 0.0, data=data)
        self.events.append(event)
        return event

    def data(self, kind: EventKind) -> List[Mapping[str, Any]]:
        return [event.data for event in self.events if event.kind is kind]

    def move(self, pose: ToolPose, options: Mapping[str, Any]) -> None:
        if self.move_errors:
            raise self.move_errors.pop(0)
        self.calls.append(("move", pose, dict(options)))
        self.pose = pose

    def tool_pose(self) -> ToolPose:
        return self.pose

    def wait_for_press(self, deadline: Optional[float]) -> Optional[float]:
        self.calls.append(("wait_for_press", deadline))
        pressed = self.clock.now() + self.presses.pop(0) if self.presses else None
        if pressed is None or (deadline is not None and pressed > deadline):
            assert deadline is not None, "waits for ever"
            self.clock.time = deadline
            return None
        self.clock.time = pressed + 0.004  # arrives a little later than it happened
        return pressed

    def wait_for_answer(self, message: str, deadline: Optional[float]) -> Optional[PromptAnswer]:
        self.calls.append(("ask", message, deadline))
        self.clock.time += 2.0
        if self.answers:
            answered = PromptAnswer(self.answers.pop(0), self.clock.now())
            self.clock.time += 0.004  # arrives a little later than it happened
            return answered
        assert deadline is not None, "waits for ever"
        self.clock.time = deadline
        return None

    @contextlib.contextmanager
    def hand_at_work(self) -> Iterator[None]:
        self.calls.append(("pause stream",))
        yield
        self.calls.append(("resume stream",))

    def publish(self, topic: str, message_type: str, fields: Mapping[str, Any]) -> None:
        self.calls.append(("publish", topic, message_type, dict(fields)))

    def attach(self, object_name: str) -> None:
        self.calls.append(("attach", object_name))

    def detach(self, object_name: str) -> None:
        self.calls.append(("detach", object_name))


def only(items: List[Mapping[str, Any]]) -> Dict[str, Any]:
    assert len(items) == 1
    return dict(items[0])
