"""A run without ROS: an arm of three sliding joints, a clock that the test turns, a journal on disk."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from iter_runner.events import Event, EventKind
from iter_runner.plan.model import PlannedStep
from iter_runner.planners.base import MoveGoal
from iter_runner.primitives.context import ToolPose
from iter_runner.robot.arm import JointPath, JointReading
from iter_runner.run_control import Fault, RunControl
from iter_runner.runner.engine import Engine, Outcome, Rig
from iter_runner.runner.event_log import EventLog
from iter_runner.runner.journal import Journal
from iter_runner.runner.state import RunState, State
from iter_runner.scene import PlanningScene
from iter_runner.study import sessions

PATIENCE = 20.0  # s of real time after which a test has failed; never waited for in a test that passes


class TurnedClock:
    """Study time that stands still until the test turns it."""

    def __init__(self) -> None:
        self.time = 1000.0
        self._waiting: set[threading.Condition] = set()

    def now(self) -> float:
        return self.time

    def wait_until(self, deadline: float, wake: threading.Condition) -> None:
        self._waiting.add(wake)
        wake.wait(0.01)

    def turn(self, seconds: float) -> None:
        self.time += seconds
        for condition in list(self._waiting):
            with condition:
                condition.notify_all()


class FakeArm:
    """Stands at ``positions``; the tip is at the same coordinates."""

    joint_names = ("x", "y", "z")

    def __init__(self, clock: TurnedClock) -> None:
        self.clock = clock
        self.positions = np.zeros(3)
        self.velocities = np.zeros(3)
        self.halts = 0
        self.readied = 0
        self.not_ready: Optional[Fault] = None

    def reading(self) -> JointReading:
        return JointReading(self.positions.copy(), self.velocities.copy(), self.clock.now())

    def wait_for_reading(
        self, predicate: Callable[[JointReading], bool], control: RunControl, deadline: Optional[float] = None
    ) -> bool:
        return control.wait_for(lambda: predicate(self.reading()), deadline)

    def make_ready(self, control: RunControl) -> None:
        self.readied += 1
        if self.not_ready is not None:
            raise self.not_ready

    def halt(self) -> None:
        self.halts += 1


class FakePlanner:
    """Goes straight to the goal; ``during`` is called half-way."""

    planning_time = 0.25

    def __init__(self) -> None:
        self.starts: list[np.ndarray] = []
        self.during: Callable[[RunControl], None] = lambda control: None
        self.stream: list[str] = []
        self.lag = np.zeros(3)
        self.scenes: list[tuple[list[str], list[str]]] = []

    def update_scene(self, obstacles: Sequence[Any], attached: Sequence[Any] = ()) -> None:
        self.scenes.append(([item.name for item in obstacles], [item.name for item in attached]))

    def move(self, arm: FakeArm, start: np.ndarray, goal: MoveGoal, control: RunControl) -> JointPath:
        self.starts.append(start)
        end = goal.flange[:3, 3]
        arm.positions = (start + end) / 2
        self.during(control)
        control.check()
        arm.positions = end + self.lag
        return JointPath(np.array([start, end]), np.array([0.0, 1.0]))

    def pause_stream(self) -> None:
        self.stream.append("pause")

    def resume_stream(self) -> None:
        self.stream.append("resume")

    def close(self) -> None:
        self.stream.append("close")


class FakeKinematics:
    def fk(self, q: np.ndarray) -> np.ndarray:
        matrix = np.eye(4)
        matrix[:3, 3] = q
        return matrix


class FakeFrames:
    def to_tip(self, tool: ToolPose) -> np.ndarray:
        return FakeKinematics().fk(np.asarray(tool.position))

    def to_plan(self, tip: np.ndarray) -> ToolPose:
        return ToolPose(tip[:3, 3].tolist(), (0.0, 0.0, 0.0, 1.0))


class FakeWorkcell:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def publish(self, topic: str, message_type: str, fields: Mapping[str, Any]) -> None:
        self.calls.append(("publish", topic, message_type, dict(fields)))

    def attach(self, object_name: str) -> None:
        self.calls.append(("attach", object_name))

    def detach(self, object_name: str) -> None:
        self.calls.append(("detach", object_name))


@dataclass
class FakeStep:
    """A step that does what the test says."""

    action: Callable[[Engine], None] = lambda run: None
    name: str = "fake"
    rad: Any = None

    def execute(self, run: Engine) -> None:
        self.action(run)

    def describe(self) -> str:
        return f"doing {self.name}"


@dataclass
class Bench:
    """One run under test."""

    folder: Path
    clock: TurnedClock = field(default_factory=TurnedClock)
    planner: FakePlanner = field(default_factory=FakePlanner)
    workcell: FakeWorkcell = field(default_factory=FakeWorkcell)
    scene: PlanningScene = field(default_factory=PlanningScene)
    published: list[Event] = field(default_factory=list)
    states: list[RunState] = field(default_factory=list)
    outcome: Optional[Outcome] = None

    def __post_init__(self) -> None:
        self.arm = FakeArm(self.clock)
        self.control = RunControl(self.clock)
        self.changed = threading.Condition()
        self.session = sessions.create_session("{}", folder=self.folder)
        self.journal = Journal(self.session.journal)
        self.thread: Optional[threading.Thread] = None

    def engine(self, *actions: Callable[[Engine], None], **options: Any) -> Engine:
        steps = [PlannedStep(i, f"/task/{i}", action if isinstance(action, FakeStep) else FakeStep(action))
                 for i, action in enumerate(actions)]  # fmt: skip
        rig = Rig(self.arm, None, self.planner, FakeKinematics(), FakeFrames(), self.workcell, self.scene)
        log = EventLog(self.session.name, self.journal, self._published, self.clock, lambda: 0.0)
        self.run = Engine(
            steps, rig, self.control, log, self._save_path, {"title": "test"}, on_state=self._state, **options
        )
        return self.run

    def start(self, *actions: Callable[[Engine], None], **options: Any) -> Engine:
        """Runs the actions as a plan's steps in a thread."""
        engine = self.engine(*actions, **options)

        def execute() -> None:
            outcome = engine.execute()
            with self.changed:
                self.outcome = outcome
                self.changed.notify_all()

        self.thread = threading.Thread(target=execute, daemon=True)
        self.thread.start()
        return engine

    def until(self, predicate: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(predicate, PATIENCE), f"{self.states[-1:]}, {self.kinds()}"

    def until_state(self, state: State, step: int = -1) -> None:
        self.until(lambda: bool(self.states) and self.states[-1].state is state and self.states[-1].step >= step)

    def ended(self) -> Outcome:
        self.until(lambda: self.outcome is not None)
        assert self.outcome is not None
        return self.outcome

    def events(self, kind: EventKind) -> list[Event]:
        return [event for event in sessions.read_journal(self.session.journal) if event.kind is kind]

    def kinds(self) -> list[str]:
        return [event.kind.value for event in sessions.read_journal(self.session.journal)]

    def _save_path(self, name: str, path: JointPath) -> str:
        return sessions.save_path(self.session, name, path.positions, path.times, self.arm.joint_names)

    def _published(self, event: Event) -> None:
        with self.changed:
            self.published.append(event)
            self.changed.notify_all()

    def _state(self, state: RunState) -> None:
        with self.changed:
            self.states.append(state)
            self.changed.notify_all()
