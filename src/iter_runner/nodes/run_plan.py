"""``rosrun iter_runner run_plan PLAN``: has the runner run a plan, and shows how it goes.

Ctrl-C stops the run (the arm halts) and waits for its outcome. Exit code: 0 for a finished run, 1 for any other end and
for a plan or a runner that can't be used, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import math
import signal
import threading
import time
from pathlib import Path
from typing import Any, List, Optional, Sequence

import actionlib
import rosgraph
import rospy
from actionlib_msgs.msg import GoalStatus
from rich.console import Console

from iter_runner.clock import Clock
from iter_runner.events import RUN_MODES, EventKind
from iter_runner.msg import RunnerState, RunPlanAction, RunPlanGoal, RunPlanResult
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.nodes.state_message import state_from_message
from iter_runner.plan.model import PlanError
from iter_runner.plan.read import find_plan
from iter_runner.runner.progress import View, make_view
from iter_runner.runner.state import RunState, State
from iter_runner.study.sessions import Session, SessionError, find_session, read_journal, step_to_resume

REFRESH = 0.2
"""Seconds of wall time between two drawings of the live view."""

LOST_TIME = 5.0
"""Seconds of wall time without a word from the runner after which it is held for dead."""

RESULT_TIME = 2.0
"""Seconds of wall time that a result may come after the goal's status says that it has ended."""

STOP_TIME = 10.0
"""Seconds of wall time that a stopped run gets to tell its outcome."""


class Failure(Exception):
    """Why the tool ends with exit code 1; one line or more for a person."""


class RunPlanTool:
    """One goal, from the tool's start to the run's end."""

    def __init__(self, view: View, clock: Clock, stop_in_fault: bool = False) -> None:
        self._view = view
        self._stop_in_fault = stop_in_fault
        self._clock = clock
        self._changed = threading.Condition()
        self._state: Optional[RunState] = None
        self._passed: List[RunState] = []
        self._interrupted = False
        self._last_word = time.monotonic()
        self._session = ""
        self._handle: Any = None
        self._subscriber = rospy.Subscriber("/runner/state", RunnerState, self._on_state, queue_size=100)
        self._client = actionlib.ActionClient("/runner/run_plan", RunPlanAction)

    def interrupt(self) -> None:
        """What Ctrl-C does: stops the run; the second time, leaves at once."""
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True

    def wait_for_runner(self, timeout: float) -> None:
        """Returns when the runner is there and the arm is ready.

        Args:
            timeout: s of wall time, for ever where 0.

        Raises:
            Failure: they were not in time, or the wait was interrupted.
        """
        give_up = time.monotonic() + timeout if timeout > 0 else math.inf
        noted = ""
        while True:
            missing = self._missing()
            if not missing:
                return
            if missing != noted:
                self._view.note(f"waiting for {missing} ...")
                noted = missing
            if self._interrupted or rospy.is_shutdown():
                raise Failure("interrupted before the run began")
            if time.monotonic() > give_up:
                raise Failure(
                    f"waited {timeout:.0f} s for {missing}; start it with `roslaunch iter_runner main.launch`, "
                    "or wait longer with --timeout"
                )
            with self._changed:
                self._changed.wait(0.1)

    def run(self, goal: RunPlanGoal) -> RunPlanResult:
        """Sends the goal and returns the result of its run.

        Raises:
            Failure: the runner went away.
        """
        self._handle = self._client.send_goal(goal, transition_cb=lambda handle: self._wake())
        cancelled_at: Optional[float] = None
        ended_at: Optional[float] = None
        self._last_word = time.monotonic()
        while self._handle.get_comm_state() != actionlib.CommState.DONE:
            self._draw()
            if self._interrupted and cancelled_at is None:
                self._view.note("stopping the run; Ctrl-C again leaves without its outcome")
                self._handle.cancel()
                cancelled_at = time.monotonic()
            if self._stop_in_fault and cancelled_at is None and self._faulted():
                self._handle.cancel()
                cancelled_at = time.monotonic()
            if self._handle.get_comm_state() != actionlib.CommState.WAITING_FOR_RESULT:
                ended_at = None
            elif ended_at is None:
                ended_at = time.monotonic()
            elif time.monotonic() - ended_at > RESULT_TIME:
                self._draw()
                return self._lost_result()
            self._watch_runner(cancelled_at)
            with self._changed:
                self._changed.wait(REFRESH)
        self._draw()
        if self._handle.get_terminal_state() == GoalStatus.LOST or self._handle.get_result() is None:
            raise Failure(self._died())
        return self._handle.get_result()

    def _lost_result(self) -> RunPlanResult:
        """The result of a goal that has ended by its status, drawn from the record.

        A server on a busy machine may publish a result before it has seen the client's connection.
        """
        text = str(self._handle.get_goal_status_text())
        if self._handle.get_goal_status() in (GoalStatus.REJECTED, GoalStatus.RECALLED) or not self._session:
            return RunPlanResult(outcome="refused", message=text)
        session = find_session(self._session)
        last = read_journal(session.journal)[-1]
        finished = last.kind is EventKind.RUN_FINISHED
        return RunPlanResult(
            outcome=last.data["outcome"] if finished else "aborted",
            message=last.data["message"] if finished else text,
            session=session.name,
            session_directory=str(session.directory),
        )

    def _missing(self) -> str:
        client = self._client
        if not (client.pub_goal.get_num_connections() and client.pub_cancel.get_num_connections()):
            return "the runner"
        if not (client.result_sub.get_num_connections() and self._subscriber.get_num_connections()):
            return "the runner"
        state = self._state
        if state is None:
            return "the runner's state"
        if state.state is State.WAITING_FOR_ARM:
            return "the arm to be ready (initialize_joints tucks it first)"
        return ""

    def _faulted(self) -> bool:
        state = self._state
        return state is not None and state.state is State.FAULTED

    def _watch_runner(self, cancelled_at: Optional[float]) -> None:
        if self._subscriber.get_num_connections() > 0:
            self._last_word = time.monotonic()
        elif time.monotonic() - self._last_word > LOST_TIME or rospy.is_shutdown():
            raise Failure(self._died())
        if cancelled_at is not None and time.monotonic() - cancelled_at > STOP_TIME:
            raise Failure("the runner did not say how the run ended; look at its output and at the arm")

    def _died(self) -> str:
        state = self._state
        text = "the runner died, or was shut down"
        if not self._session:
            return f"{text} before the run began"
        text += f" in step {state.step + 1} of {state.steps}" if state is not None and state.step >= 0 else ""
        try:
            session = find_session(self._session)
        except SessionError as error:
            return f"{text}; {error}"
        return (
            f"{text}. What happened until then is in {session.directory}. Look at the arm; when the runner is up "
            f"again, go on with: rosrun iter_runner run_plan --resume {session.name}"
        )

    def _on_state(self, message: RunnerState) -> None:
        with self._changed:
            self._state = state_from_message(message)
            if message.state not in (RunnerState.IDLE, RunnerState.WAITING_FOR_ARM):
                self._passed.append(self._state)
            if self._handle is not None and message.session and message.state != RunnerState.IDLE:
                self._session = message.session
            self._changed.notify_all()

    def _draw(self) -> None:
        with self._changed:
            passed, self._passed = self._passed, []
            state = self._state
        if passed:
            state = passed[-1]
        # The idle state before and after a run has nothing to show.
        if state is not None and state.state not in (State.IDLE, State.WAITING_FOR_ARM):
            self._view.show(state, passed, self._clock.now())

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def make_goal(options: argparse.Namespace) -> RunPlanGoal:
    """The goal that the command line asks for.

    Raises:
        Failure: there is no such plan, or nothing to resume.
    """
    goal = RunPlanGoal(
        mode=options.mode or "",
        first_step=options.first_step or 0,
        study=options.study,
        participant_id=options.participant_id,
        condition=options.condition,
    )
    plan: Optional[Path] = None
    try:
        if options.plan:
            here = Path(options.folder) / options.plan
            plan = find_plan(here if options.folder and here.exists() else options.plan).resolve()
        if options.resume is not None:
            session = find_session(options.resume or None)
            plan = plan or _plan_of(session)
            _check_same_plan(session, plan)
            if options.first_step is None:
                goal.first_step = _first_step(session)
            _file_under(goal, session)
    except (PlanError, SessionError) as error:
        raise Failure(str(error)) from error
    if plan is None:
        raise Failure("no plan given")
    goal.mode = goal.mode or RUN_MODES[0]
    goal.plan_path = str(plan)
    return goal


def _first_step(session: Session) -> int:
    step = step_to_resume(session)
    if step is None:
        raise Failure(f"session {session.name} finished, or never began: there is nothing to resume")
    events = read_journal(session.journal)
    steps = next((event.data.get("steps") for event in events if event.kind is EventKind.RUN_STARTED), None)
    if steps is not None and step >= steps:
        raise Failure(f"session {session.name} has done all its {steps} steps: there is nothing to resume")
    return step


def _file_under(goal: RunPlanGoal, session: Session) -> None:
    """What is resumed goes on in its mode, filed beside its beginning, if the command line says nothing else."""
    begun = next((event for event in read_journal(session.journal) if event.kind is EventKind.RUN_STARTED), None)
    for name in ("mode", "study", "participant_id", "condition"):
        if begun is not None and not getattr(goal, name):
            setattr(goal, name, str(begun.data.get(name) or ""))


def _check_same_plan(session: Session, plan: Path) -> None:
    """Steps of another plan are not the session's."""
    from iter_runner.plan import load_plan, plan_hash
    from iter_runner.primitives import REGISTRY

    begun = next((event for event in read_journal(session.journal) if event.kind is EventKind.RUN_STARTED), None)
    if begun is not None and plan_hash(load_plan(plan, REGISTRY)) != begun.data.get("plan_hash"):
        raise Failure(
            f"{plan} is not, or no longer, the plan of session {session.name}, whose copy is {session.plan}; "
            "look at both, then give --first-step instead of --resume"
        )


def _plan_of(session: Session) -> Path:
    """The file that a session's plan came from, or its copy: relative file names in it count from there."""
    for event in read_journal(session.journal)[:1]:
        source = Path(str(event.data.get("plan_file") or ""))
        if event.data.get("plan_file") and source.is_file():
            return source
    return session.plan


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line; exits with code 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="run_plan",
        description="Has the runner run a plan and shows how it goes. Ctrl-C stops the run and halts the arm.",
        epilog="Meanwhile, in another terminal: rosservice call /runner/pause (resume, step, stop).",
    )
    parser.add_argument("plan", nargs="?", default="", help="a plan's file, or its name in plans/")
    parser.add_argument("--mode", choices=RUN_MODES, help="run, if nothing is said; capture writes times")
    parser.add_argument("--first-step", type=int, metavar="N", help="begin at this step of the expanded plan, from 0")
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="SESSION",
        help="go on where a session (the last one, without a name) ended; its plan, if none is given",
    )
    parser.add_argument("--study", default="", help="what the record is filed under")
    parser.add_argument("--participant-id", default="", help="the same")
    parser.add_argument("--condition", default="", help="the same")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="wait so long for the runner and the arm; 0: for ever"
    )
    parser.add_argument(
        "--stop-in-fault", action="store_true", help="end the run at a fault, where nobody could resume"
    )
    parser.add_argument("--folder", default="", help="where a relative PLAN counts from, if not from here")
    options = parser.parse_args(arguments)
    if not options.plan and options.resume is None:
        parser.error("which plan? Give a file, a name in plans/, or --resume")
    return options


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the tool; returns its exit code."""
    options = parse_arguments(rospy.myargv()[1:] if arguments is None else arguments)
    console = Console()
    errors = Console(stderr=True)
    view: Optional[View] = None
    try:
        goal = make_goal(options)
        if not rosgraph.is_master_online():
            raise Failure(
                f"no ROS master at {rosgraph.get_master_uri()}; start everything with "
                "`roslaunch iter_runner main.launch`"
            )
        rospy.init_node("run_plan", anonymous=True, disable_signals=True)
        view = make_view(console, Path(goal.plan_path).stem)
        tool = RunPlanTool(view, study_clock(), options.stop_in_fault)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: tool.interrupt())
        tool.wait_for_runner(options.timeout)
        try:
            result = tool.run(goal)
        except SessionError as error:
            raise Failure(str(error)) from error
        view.close()
        if result.outcome == "refused":
            raise Failure(f"refused: {result.message}")
        console.print(f"{result.outcome}: {result.message}", highlight=False, markup=False, soft_wrap=True)
        console.print(f"record: {result.session_directory}", highlight=False, markup=False, soft_wrap=True)
        return 0 if result.outcome == "finished" else 1
    except Failure as failure:
        if view is not None:
            view.close()
        errors.print(f"run_plan: {failure}", highlight=False, markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        if view is not None:
            view.close()
        errors.print("run_plan: left; the run may go on or be stopping, see /runner/state")
        return 1
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # it ends already
        rospy.signal_shutdown("done")
