"""The engine: works through a plan's steps on one arm, and keeps the record of it.

It knows no ROS: the arm, the gripper, the planner, the clock, the record and whoever shows the state are handed to it.
One thread calls :meth:`Engine.execute`; the operator's pause, resume, stop and step, the participant's presses and
answers come from any other.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterator, Mapping, Optional, Protocol, Sequence, Set, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.clock import Clock
from iter_runner.events import Event, EventKind
from iter_runner.plan.model import PlannedStep
from iter_runner.planners.base import MoveGoal, Planner, Unreachable, motion_key, path_hash
from iter_runner.primitives.context import PromptAnswer, ToolPose
from iter_runner.robot.arm import Arm, Gripper, JointPath, JointReading, Vector
from iter_runner.run_control import Fault, RunControl, Stopped
from iter_runner.runner.event_log import EventLog
from iter_runner.runner.frames import PlanFrames, pose_error
from iter_runner.runner.journal import JournalError
from iter_runner.runner.presses import Press, PressBox, Verdict
from iter_runner.runner.state import RunState, State, expected_remaining
from iter_runner.scene import PlanningScene

STANDS_THERE = 5e-3
"""Within this (rad, each joint) the measured arm counts as standing where it was commanded to."""

STANDS_STILL = 0.02
"""Below this (rad/s, each joint) the measured arm counts as standing still."""

STILL_TIMEOUT = 30.0
"""Seconds after which the run goes on although the arm still moves (a person may be guiding it by hand)."""

_HUMAN_CONDITIONS = ("button", "prompt")
# Nothing that takes time follows these within their step: they share the next event's write.
_HELD = (EventKind.STEP_FINISHED, EventKind.WAIT_ENDED, EventKind.LOG)


class ForwardKinematics(Protocol):
    """What the engine needs of a chain."""

    def fk(self, q: Vector) -> NDArray[np.float64]:
        """(4, 4) pose of the tip in the base for joints (n,) rad."""


class Workcell(Protocol):
    """What the engine asks of the world outside arm and hand."""

    def publish(self, topic: str, message_type: str, fields: Mapping[str, Any]) -> None:
        """Publishes one message of ``package/Type``."""

    def attach(self, object_name: str) -> None:
        """Shows the scene's object as held by the hand, which it is by now."""

    def detach(self, object_name: str) -> None:
        """Shows the scene's object as let go, which it is by now."""


SavePath = Callable[[str, JointPath], str]
"""Keeps a commanded path under a name, durably; returns the file relative to the session. Raises OSError."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        outcome: finished, stopped (by the operator) or aborted (stopped while faulted, or by an error).
        message: one line that says why.
        steps_done: steps finished in this run.
    """

    outcome: str
    message: str
    steps_done: int


@dataclass(frozen=True)
class Rig:
    """What a run works with.

    Attributes:
        arm, gripper, planner: gripper None where the robot has none.
        kinematics: of the chain whose joints the arm and the planner speak of.
        frames: between the plan's poses and the chain's.
        workcell: topics, and whoever shows the scene.
        scene: what stands around the arm, the plan's objects among it; whoever changes it may do so at any time.
    """

    arm: Arm
    gripper: Optional[Gripper]
    planner: Planner
    kinematics: ForwardKinematics
    frames: PlanFrames
    workcell: Workcell
    scene: PlanningScene = field(default_factory=PlanningScene)


@dataclass
class _Prompt:
    answer: Optional[PromptAnswer] = None
    open: bool = True


@dataclass(frozen=True)
class _OpenWait:
    condition: str
    started: float
    data: Mapping[str, Any] = field(default_factory=dict)


class Engine:
    """One run of one plan; the :class:`iter_runner.primitives.context.RunContext` of its steps.

    Args:
        steps: the plan's flat list.
        rig: arm, gripper, planner and the rest.
        control: the run's switch; the arm's driver reports its faults to the same one.
        log: the record.
        save_path: keeps commanded paths.
        header: data of the RUN_STARTED event.
        on_state: told of every change of state, from whichever thread causes it.
        first_step: index to begin at.
        start_candidates: joints (n,) rad at which an earlier run may have left the arm, best first; the first that
            the arm is measured at is what the first move is planned from, so that it is the same motion every time.
        title: the plan's.
    """

    def __init__(
        self,
        steps: Sequence[PlannedStep],
        rig: Rig,
        control: RunControl,
        log: EventLog,
        save_path: SavePath,
        header: Mapping[str, Any],
        on_state: Callable[[RunState], None] = lambda state: None,
        first_step: int = 0,
        start_candidates: Sequence[Vector] = (),
        title: str = "",
        session: str = "",
    ) -> None:
        self._steps = steps
        self._rig = rig
        self.control = control
        self.clock: Clock = control.clock
        self.arm: Arm = rig.arm
        self.gripper: Optional[Gripper] = rig.gripper
        self._log = log
        self._save_path = save_path
        self._header = header
        self._on_state = on_state
        self._first_step = first_step
        self._start_candidates = start_candidates

        self._lock = threading.RLock()  # presses, answers, state; taken before the log's own
        self._presses = PressBox()
        self._prompt: Optional[_Prompt] = None
        self._current: Optional[PlannedStep] = None
        self._open_wait: Optional[_OpenWait] = None
        self._kept: Set[str] = set()  # names of the commanded paths
        self._moves = 0  # of the present step's present attempt
        self._program_may_run = False  # one that a step has sent to the arm's controller
        self._commanded: Optional[Vector] = None
        self._tip: Optional[NDArray[np.float64]] = None  # of _commanded, as the plan has it
        self._planners_scene: Optional[int] = None
        self._steps_done = 0
        self._faulted = False
        self._resume_asked = False
        self._single_step = False
        self._stopped_in_fault = False
        self._over = False
        self._remaining = expected_remaining([planned.step.rad for planned in steps])
        self._state = RunState(state=State.RUNNING, session=session, title=title, steps=len(steps))

    # What a primitive uses -------------------------------------------------------------------------------------

    def emit(self, kind: EventKind, **data: Any) -> Event:
        """See RunContext."""
        if kind is EventKind.WAIT_STARTED:
            return self._start_wait(data)
        with self._lock:
            if kind is EventKind.WAIT_ENDED:
                self._presses.close()
                self._open_wait = None
                self._show(waiting_for="")
            return self._add(kind, data, hold=kind in _HELD)

    def move(self, pose: ToolPose, options: Mapping[str, Any]) -> None:
        """See RunContext."""
        self.control.wait_while_paused()
        flange = self._rig.frames.to_tip(pose)
        if self._program_may_run:
            self.arm.wait_for_script(self.control)
            self._program_may_run = False
        self._show_scene_to_planner()
        start, is_commanded = self._start_joints()
        self._commanded = None  # until the move has arrived nobody can say where the arm is commanded to be
        began = self.clock.now()
        self._moves += 1
        key = motion_key(self._current.index if self._current is not None else -1, self._moves)
        try:
            path = self._rig.planner.move(self.arm, start, MoveGoal(flange, options, key), self.control)
        except Unreachable as error:
            self._commanded = start if is_commanded else None
            raise Fault("unreachable", f"{self._where()}: {error}") from error
        duration = self.clock.now() - began
        reached = self._rig.kinematics.fk(self.arm.reading().positions)
        position_error, orientation_error = pose_error(reached, flange)
        self._commanded, self._tip = np.array(path.positions[-1], dtype=np.float64), flange
        file = self._keep(key, path)
        planning_time = self._rig.planner.planning_time
        self._add(
            EventKind.MOVE_FINISHED,
            {
                "path_hash": path_hash(path.positions),
                "duration": duration,
                "position_error": position_error,
                "orientation_error": orientation_error,
                "commanded_path": file,
                "start": "commanded" if is_commanded else "measured",
                **({} if planning_time is None else {"planning_time": planning_time}),
            },
        )

    def script(self, program: str) -> None:
        """See RunContext."""
        self._program_may_run = True
        self.arm.script(program)

    def tool_pose(self) -> ToolPose:
        """See RunContext."""
        return self._rig.frames.to_plan(self._rig.kinematics.fk(self._still_reading().positions))

    def wait_for_press(self, deadline: Optional[float]) -> Optional[float]:
        """See RunContext."""
        with self._lock:
            if self._presses.opened is None:
                self._presses.open(self.clock.now())
            self._presses.set_deadline(deadline)
        try:
            self.control.wait_for(lambda: self._presses.taken is not None, deadline)
        finally:
            with self._lock:
                taken = self._presses.taken
                self._presses.close()
        return None if taken is None else taken.time

    def wait_for_answer(self, message: str, deadline: Optional[float]) -> Optional[PromptAnswer]:
        """See RunContext."""
        with self._lock:
            prompt = self._prompt or _Prompt()
            self._prompt = prompt
            if self._presses.opened is None:
                self._presses.open(self.clock.now())
            self._presses.set_deadline(deadline)
            self._show(State.WAITING_FOR_HUMAN, waiting_for=f"answer to: {message}")
        try:
            self.control.wait_for(lambda: prompt.answer is not None or self._presses.taken is not None, deadline)
        finally:
            with self._lock:
                prompt.open = False
                self._prompt = None
                pressed = self._presses.taken
                self._presses.close()
                if self._open_wait is None:
                    self._show(State.RUNNING, waiting_for="")
        return prompt.answer or (None if pressed is None else PromptAnswer("", pressed.time))

    @contextlib.contextmanager
    def hand_at_work(self) -> Iterator[None]:
        """See RunContext."""
        self.control.wait_while_paused()
        self._rig.planner.pause_stream()
        yield
        # Not after a fault or a stop: the arm was halted and has to stay so.
        self._rig.planner.resume_stream()

    def publish(self, topic: str, message_type: str, fields: Mapping[str, Any]) -> None:
        """See RunContext."""
        self.control.wait_while_paused()
        self._rig.workcell.publish(topic, message_type, fields)

    def attach(self, object_name: str) -> None:
        """See RunContext."""
        self._rig.scene.attach(object_name, self._tip_pose())
        self._rig.workcell.attach(object_name)

    def detach(self, object_name: str) -> None:
        """See RunContext."""
        self._rig.scene.detach(object_name, self._tip_pose())
        self._rig.workcell.detach(object_name)

    # What the operator and the participant do --------------------------------------------------------------------

    @property
    def state(self) -> RunState:
        """What the run is doing."""
        return self._state

    def pause(self) -> Tuple[bool, str]:
        """Makes the run stand still where it is. Returns whether it will, and a line for the operator."""
        with self._lock:
            refusal = self._refusal()
            if refusal:
                return False, refusal
            if self._faulted:
                return False, "the run is faulted and stands still already: resume or stop"
            if self.control.paused:
                return True, "paused already"
            self.control.pause()
            self._add_quietly(EventKind.PAUSED)
            self._show()
            return True, "paused"

    def resume(self) -> Tuple[bool, str]:
        """Lets a paused or faulted run go on; a faulted one first makes the arm ready, then repeats its step."""
        with self._lock:
            refusal = self._refusal()
            if refusal:
                return False, refusal
            self._single_step = False
            return self._go_on()

    def step(self) -> Tuple[bool, str]:
        """Lets a paused or faulted run do one step (or the rest of the present one), then pauses it again."""
        with self._lock:
            refusal = self._refusal()
            if refusal:
                return False, refusal
            self._single_step = True
            if not self.control.paused and not self._faulted:
                return True, "pauses at the end of this step"
            return self._go_on()

    def stop(self) -> Tuple[bool, str]:
        """Ends the run and halts the arm at once."""
        with self._lock:
            if self._over:
                return False, "no plan is running"
            self._stopped_in_fault = self._faulted
            self.control.stop()
        # Not left to the thread that moves the arm: it may be inside a call to the driver.
        self.arm.halt()
        return True, "stopped"

    def press(self, press: Press) -> Verdict:
        """Takes in a press of the button: recorded always, used if it ends a wait."""
        with self._lock:
            if self._over:
                return Verdict(False, "no plan is running")
            verdict = self._presses.judge(press, self.clock.now())
            self._add_quietly(
                EventKind.PRESS,
                {
                    "source": press.source,
                    "time": press.time,
                    "used": verdict.used,
                    "reason": verdict.reason,
                    "detail": dict(press.detail),
                },
            )
        if verdict.used:
            self.control.notify()
        return verdict

    def answer(self, text: str) -> Tuple[bool, str]:
        """Answers the open prompt."""
        with self._lock:
            if self._prompt is None or not self._prompt.open or self._presses.taken is not None:
                return False, "no prompt is open"
            if self._prompt.answer is not None:
                return False, "the prompt has been answered already"
            self._prompt.answer = PromptAnswer(text, self.clock.now())
        self.control.notify()
        return True, "answered"

    def scene_changed(self, data: Mapping[str, Any]) -> None:
        """Records that somebody changed the scene; the next move is planned in it as it is then."""
        with self._lock:
            if not self._over:
                self._add_quietly(EventKind.SCENE_CHANGED, data)

    # The run -----------------------------------------------------------------------------------------------------

    def execute(self) -> Outcome:
        """Runs the plan to its end, to a stop, or for ever in a fault that nobody clears.

        Raises:
            JournalError: the first event could not be written: nothing was started.
        """
        began = self._log.add(EventKind.RUN_STARTED, data=self._header)
        self._show(started=began.time, remaining=self._remaining[0])
        outcome, message = "finished", ""
        try:
            ready = False
            for planned in self._steps[self._first_step :]:
                self._begin(planned)
                self._complete(planned, ready)
                ready = True
            self._settle_record()
        except Stopped:
            outcome = "aborted" if self._stopped_in_fault else "stopped"
            fault, where = self._state.fault, self._where()
            message = f"stopped at {where}" if not fault else fault if where in fault else f"{where}: {fault}"
            self.arm.halt()
        finally:
            self._rig.planner.close()
        return self._finish(outcome, message or f"all {self._steps_done} steps done")

    def _begin(self, planned: PlannedStep) -> None:
        """Waits at the gate before a step while the run is paused."""
        if self.control.paused:
            self._flush_quietly()
        with contextlib.suppress(Fault):  # the step's own attempt meets it
            self.control.wait_while_paused()
        with self._lock:
            self._current = planned
            self._show(
                step=planned.index,
                step_name=planned.step.name,
                doing=planned.step.describe(),
                remaining=self._remaining[planned.index],
            )

    def _complete(self, planned: PlannedStep, ready: bool) -> None:
        """Does a step, and after a fault does it again, until it is done."""
        attempt, after_fault = 0, False
        while True:
            try:
                if not ready:
                    self.arm.make_ready(self.control)
                    if attempt == 0 and self._commanded is None:
                        self._commanded = self._first_start()
                    ready = True
                if after_fault:
                    after_fault = False
                    with self._lock:
                        self._faulted = False
                        self._add(EventKind.RESUMED, {"after": "fault"})
                        self._show(fault="")
                attempt += 1
                self._attempt(planned, attempt)
                return
            except Fault as fault:
                self._stand_faulted(fault)
            except JournalError as error:
                self._stand_faulted(Fault("journal", f"{error}; make room, then resume"))
            except Stopped:
                self._close_wait("stop")
                raise
            except Exception as error:  # an error of ours must not end a study's run without a word
                self._stand_faulted(
                    Fault("internal", f"{self._where()}: {type(error).__name__}: {error}; please report this"), error
                )
            ready, after_fault = False, True

    def _settle_record(self) -> None:
        """Stands faulted at the plan's end as long as the disk refuses what happened in it."""
        while True:
            try:
                self._log.flush()
                return
            except JournalError as error:
                self._stand_faulted(Fault("journal", f"{error}; make room, then resume"))
            with self._lock:
                self._faulted = False
                self._add_quietly(EventKind.RESUMED, {"after": "fault"})
                self._show(fault="")

    def _attempt(self, planned: PlannedStep, attempt: int) -> None:
        step = planned.step
        rad = None if step.rad is None else step.rad.model_dump(exclude_none=True)
        began = self._add(EventKind.STEP_STARTED, {"name": step.name, "rad": rad, "attempt": attempt})
        self._moves = 0
        self.control.check()
        step.execute(self)
        with self._lock:
            self._close_wait("interrupted")
            self._steps_done += 1
            self._add(
                EventKind.STEP_FINISHED, {"name": step.name, "duration": self.clock.now() - began.time}, hold=True
            )
            if self._single_step and planned is not self._steps[-1]:
                self._single_step = False
                self.control.pause()
                self._add(EventKind.PAUSED, {})
                self._show()

    def _stand_faulted(self, fault: Fault, error: Optional[BaseException] = None) -> None:
        """Stands still until the operator resumes; Stopped if they stop instead."""
        self.arm.halt()
        self._close_wait("interrupted")
        with self._lock:
            self._faulted = True
            self._resume_asked = False
            self._add_quietly(EventKind.FAULT, {"code": fault.code, "message": fault.message})
            self._show(fault=fault.message)
        condition = self.control.condition
        with condition:
            while not self._resume_asked and not self.control.stopped:
                condition.wait(1.0)
        if self.control.stopped:
            raise Stopped
        self.control.resume()

    def _finish(self, outcome: str, message: str) -> Outcome:
        with self._lock:
            self._over = True
            self._current = None
            data = {"outcome": outcome, "message": message, "steps_done": self._steps_done}
            try:
                self._log.add(EventKind.RUN_FINISHED, data=data)
            except JournalError as error:
                message = f"{message}; THE RECORD IS NOT COMPLETE: {error}"
            return Outcome(outcome, message, self._steps_done)

    # Parts -------------------------------------------------------------------------------------------------------

    def _start_wait(self, data: Mapping[str, Any]) -> Event:
        condition = str(data.get("condition", ""))
        human = condition in _HUMAN_CONDITIONS
        if human:
            self._still_reading()  # the interaction begins when the robot can do nothing more
        with self._lock:
            if human:
                # Before the event is published: whoever answers it at once must find the wait open.
                self._presses.open(self.clock.now())
                if condition == "prompt":
                    self._prompt = _Prompt()
            event = self._add(EventKind.WAIT_STARTED, data, hold=True)
            if human:
                self._presses.open(event.time)
            self._open_wait = _OpenWait(condition, event.time, data)
            self._log.flush()
            if human:
                message = data.get("message") or ""
                waiting_for = "button" if condition == "button" else f"answer to: {message}"
                self._show(State.WAITING_FOR_HUMAN, waiting_for=waiting_for)
        return event

    def _close_wait(self, by: str) -> None:
        """Ends in the record a wait whose step did not."""
        with self._lock:
            self._presses.close()
            wait, self._open_wait = self._open_wait, None
            self._prompt = None
            if wait is None:
                return
            ended = self.clock.now()
            data = {"condition": wait.condition, "by": by, "started": wait.started, "ended": ended}
            self._add_quietly(EventKind.WAIT_ENDED, {**data, "duration": ended - wait.started})
            self._show(waiting_for="")

    def _still_reading(self) -> JointReading:
        """The arm's joints once it stands still (something else than our planner may move it)."""
        deadline = self.clock.now() + STILL_TIMEOUT
        self.arm.wait_for_reading(_stands_still, self.control, deadline)
        return self.arm.reading()

    def _start_joints(self) -> Tuple[Vector, bool]:
        """What the next move is planned from, and whether that is where the last one commanded the arm to."""
        if self._commanded is not None and _is_at(self.arm.reading().positions, self._commanded):
            return self._commanded, True
        reading = self._still_reading()
        if self._commanded is not None and _is_at(reading.positions, self._commanded):
            return self._commanded, True
        return reading.positions, False

    def _tip_pose(self) -> NDArray[np.float64]:
        """(4, 4) where the hand is: as it was commanded if it is measured there, so that every run has the same."""
        start, is_commanded = self._start_joints()
        return self._tip if is_commanded and self._tip is not None else self._rig.kinematics.fk(start)

    def _show_scene_to_planner(self) -> None:
        snapshot = self._rig.scene.snapshot()
        if snapshot.version != self._planners_scene:
            self._rig.planner.update_scene(snapshot.obstacles, snapshot.attached)
            self._planners_scene = snapshot.version

    def _first_start(self) -> Optional[Vector]:
        return start_among(self._start_candidates, self.arm.reading().positions)

    def _keep(self, key: str, path: JointPath) -> str:
        """Saves a move's path under its key, or the next free name of its step: what was before is not overwritten."""
        step, count = key.split("_")[0], 2
        while key in self._kept:
            key, count = f"{step}_{count}", count + 1
        self._kept.add(key)
        try:
            return self._save_path(key, path)
        except OSError as error:
            raise JournalError(f"can't keep the commanded path: {error.strerror or error}") from error

    def _refusal(self) -> str:
        return "no plan is running" if self._over or self.control.stopped else ""

    def _go_on(self) -> Tuple[bool, str]:
        if self._faulted:
            with self.control.condition:
                self._resume_asked = True
                self.control.condition.notify_all()
            return True, "makes the arm ready, then repeats the step"
        if not self.control.paused:
            return True, "running already"
        self._add_quietly(EventKind.RESUMED, {"after": "pause"})
        self.control.resume()
        self._show()
        return True, "goes on"

    def _add(self, kind: EventKind, data: Mapping[str, Any], hold: bool = False) -> Event:
        current = self._current
        if current is None:
            return self._log.add(kind, data=data, hold=hold)
        return self._log.add(kind, current.index, current.pointer, data, hold)

    def _add_quietly(self, kind: EventKind, data: Mapping[str, Any] = {}) -> None:
        """For callers that can't stand still themselves: the run does, if the disk refuses."""
        try:
            self._add(kind, data)
        except JournalError as error:
            self._report(error)

    def _flush_quietly(self) -> None:
        try:
            self._log.flush()
        except JournalError as error:
            self._report(error)

    def _report(self, error: JournalError) -> None:
        if not self._faulted:
            self.control.report_fault(Fault("journal", f"{error}; make room, then resume"))

    def _where(self) -> str:
        if self._current is None:
            return "the beginning"
        current = self._current
        return f"step {current.index + 1} of {len(self._steps)} ({current.pointer} {current.step.name})"

    def _show(self, state: Optional[State] = None, **changes: Any) -> None:
        with self._lock:
            waiting = changes.get("waiting_for", self._state.waiting_for)
            if self._faulted:
                state = State.FAULTED
            elif self.control.paused:
                state = State.PAUSED
            elif state is None:
                state = State.WAITING_FOR_HUMAN if waiting else State.RUNNING
            shown = replace(self._state, state=state, **changes)
            if shown != self._state:
                self._state = shown
                self._on_state(shown)


def _stands_still(reading: JointReading) -> bool:
    return bool(np.all(np.abs(reading.velocities) <= STANDS_STILL))


def start_among(candidates: Sequence[Vector], measured: Vector) -> Optional[Vector]:
    """The first of ``candidates`` (n,) rad that the arm is measured at, None if it is at none of them."""
    for candidate in candidates:
        if candidate.shape == measured.shape and _is_at(measured, candidate):
            return candidate
    return None


def _is_at(measured: Vector, joints: Vector) -> bool:
    return bool(np.all(np.abs(measured - joints) <= STANDS_THERE))
