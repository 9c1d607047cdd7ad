"""The runner: works through task plans on one arm, one plan at a time.

Parameters:
    ~robot (str, ur5): a row of config/robots/, or the path of such a YAML file.
    ~planner (str, relaxed_ik): a row of config/planners.yaml that fits the robot.
    ~planner_seed (int or empty, ""): of planner ompl: with it its motions are the same in every run.
    ~replay (str, ""): of planner replay: the session whose motions it repeats, by name or folder.
    ~tool_frame (str, ""): the flange frame of plans that name none themselves; empty: the robot's row's.
    ~speed (float, none): 0.01…1, the driver's speed slider, set before each run.
    ~study, ~participant_id, ~condition (str, ""): what records are filed under where a goal does not say.
    ~transport (str, ""): how streamed joint targets travel, one of the robot's row's transports; empty: its first.
    ~robot_ip (str, ""): the controller's address, which the transport rtde needs.
    ~wait_for_arm (bool, true): refuse goals until /arm_ready is true.
    ~workcell (str, ""): what always stands around the arm, a name in config/workcells/ or a YAML file.

Environment: ITER_RUNNER_SESSIONS, the folder of records (~/.ros/iter_runner/sessions).

Action: /runner/run_plan (iter_runner/RunPlan): a second goal is refused while one runs; cancel stops the run.
Services: /runner/pause, /runner/resume, /runner/stop, /runner/step (std_srvs/Trigger), /runner/answer
    (iter_runner/Answer); /runner/scene/add, /move, /remove, /list (iter_runner/SceneAdd, SceneMove, SceneRemove,
    SceneList).
Publishes: /runner/state (iter_runner/RunnerState, latched), /runner/events (iter_runner/Event), /runner/scene
    (iter_runner/Scene, latched), /runner/scene_markers (visualization_msgs/MarkerArray, latched), and what
    plans publish.
Subscribes: /button/press (iter_runner/ButtonPress), /arm_ready (std_msgs/Bool), and the driver's topics.
"""

from __future__ import annotations

import json
import math
import queue
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Tuple

import actionlib
import numpy as np
import rospy
from actionlib.server_goal_handle import ServerGoalHandle
from actionlib_msgs.msg import GoalStatus
from std_msgs.msg import Bool
from std_srvs.srv import Trigger, TriggerRequest, TriggerResponse
from ur_msgs.srv import SetSpeedSliderFraction

from iter_runner.events import RUN_MODES, Event
from iter_runner.kinematics import load_chain
from iter_runner.msg import ButtonPress, RunnerState, RunPlanAction, RunPlanFeedback, RunPlanResult
from iter_runner.msg import Event as EventMessage
from iter_runner.nodes.event_message import event_to_message
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.nodes.scene import RosScene
from iter_runner.nodes.start import start_node
from iter_runner.nodes.state_message import state_to_message
from iter_runner.nodes.workcell import RosWorkcell
from iter_runner.plan import Plan, PlanError, PlanFault, load_plan, plan_hash
from iter_runner.plan.check import check_plan, with_robots_faults
from iter_runner.plan.frames import FrameError
from iter_runner.plan.scene import advance, scene_objects
from iter_runner.planners.base import Planner
from iter_runner.planners.table import PlannerError, check_fit, load_planner
from iter_runner.primitives import REGISTRY
from iter_runner.robot.arm import Gripper, JointPath, Vector
from iter_runner.robot.ros_arm import connect_arm
from iter_runner.robot.ros_gripper import RosGripper
from iter_runner.robot.ros_service import ServiceCall
from iter_runner.robot.table import Robot, RobotError, load_robot, robot_driver, robot_gripper
from iter_runner.robot.transport import streaming_robot
from iter_runner.run_control import Fault, RunControl
from iter_runner.runner.engine import Engine, Outcome, Rig, start_among
from iter_runner.runner.event_log import EventLog
from iter_runner.runner.frames import plan_frames
from iter_runner.runner.journal import Journal, JournalError
from iter_runner.runner.planner_settings import planner_settings, replayed
from iter_runner.runner.presses import Press
from iter_runner.runner.state import RunState, State
from iter_runner.scene import PlanningScene, SceneError
from iter_runner.srv import Answer, AnswerRequest, AnswerResponse
from iter_runner.study import sessions
from iter_runner.study.report import summarise_session, to_json
from iter_runner.study.sessions import Session, SessionError

EVENT_QUEUE = 10000
"""Events that wait for a slow listener before the oldest are dropped for it (the journal has them)."""

SCENE_PARAMETER = "/runner/scene_of"
"""Of which plan the workcell has the scene, kept by the parameter server so that a new runner knows it too."""

SERVICE_TIME = 5.0
"""Seconds of wall time that the driver gets to answer before a run."""

FAULTS_SHOWN = 100
"""Faults of a plan that a refusal spells out: it is published again and again as the goal's status."""

SHUTDOWN_TIME = 5.0
"""Seconds of wall time that a run gets to write its end when the node is shut down."""


class Refused(Exception):
    """A goal that is not run; the message says why and what to do."""


class RunnerNode:
    """Wires :class:`iter_runner.runner.engine.Engine` to the graph."""

    def __init__(self, robot: Robot, planner: str) -> None:
        self._robot = robot
        self._planner = planner
        self._chain = load_chain(robot)
        self._clock = study_clock()
        transport = str(rospy.get_param("~transport", ""))
        self._streamed = streaming_robot(robot, transport)  # as the planner sees it
        self._arm = connect_arm(robot, self._clock, transport, str(rospy.get_param("~robot_ip", "")))
        self._gripper_row = robot_gripper(robot)
        self._gripper: Gripper = RosGripper(self._gripper_row, self._clock)
        if planner == "moveit" and self._gripper_row.moveit_group:
            from iter_runner.robot.ros_moveit import MoveItGripper

            self._gripper = MoveItGripper(robot, self._gripper)
        self._engine: Optional[Engine] = None
        self._scene = RosScene(
            robot,
            self._chain,
            str(rospy.get_param("~workcell", "")),
            lambda: self._arm.reading().positions,
            self._on_scene_change,
        )
        self._workcell = RosWorkcell(self._scene.show)

        self._lock = threading.RLock()
        self._goal: Optional[ServerGoalHandle] = None  # the one that is looked at or run
        self._journal: Optional[Journal] = None
        self._stop_asked = False
        self._worker: Optional[threading.Thread] = None
        self._wait_for_arm = bool(rospy.get_param("~wait_for_arm", True))
        self._arm_ready = not self._wait_for_arm

        self._events = rospy.Publisher("/runner/events", EventMessage, queue_size=EVENT_QUEUE, tcp_nodelay=True)
        self._state_publisher = rospy.Publisher(
            "/runner/state", RunnerState, queue_size=100, latch=True, tcp_nodelay=True
        )
        self._feedback: queue.SimpleQueue = queue.SimpleQueue()
        self._state = RunState()
        self._show_idle()

        rospy.Subscriber("/arm_ready", Bool, self._on_arm_ready, queue_size=1)
        rospy.Subscriber("/button/press", ButtonPress, self._on_press, queue_size=None, tcp_nodelay=True)
        for name in ("pause", "resume", "stop", "step"):
            rospy.Service(f"/runner/{name}", Trigger, self._operator_service(name))
        rospy.Service("/runner/answer", Answer, self._on_answer)
        self._server = actionlib.ActionServer(
            "/runner/run_plan", RunPlanAction, self._on_goal, self._on_cancel, auto_start=False
        )
        self._server.start()
        threading.Thread(target=self._publish_feedback, name="feedback", daemon=True).start()
        rospy.on_shutdown(self._on_shutdown)

    # Goals ---------------------------------------------------------------------------------------------------------

    def _on_goal(self, handle: ServerGoalHandle) -> None:
        with self._lock:
            if self._goal is not None:
                state = self._state
                title = f"'{state.title}'" if state.title else "another plan"
                place = f", step {state.step + 1} of {state.steps}" if state.step >= 0 else ""
                reason = f"the runner is busy with {title}{place}: wait for its end, or stop it (/runner/stop)"
                self._refuse(handle, reason)
                return
            if not self._arm_ready:
                self._refuse(
                    handle, "the arm is not ready: /arm_ready is not true yet; initialize_joints says what it waits for"
                )
                return
            self._goal = handle
            self._stop_asked = False
            self._worker = threading.Thread(target=self._work, args=(handle,), name="run", daemon=True)
        self._worker.start()

    def _on_cancel(self, handle: ServerGoalHandle) -> None:
        with self._lock:
            if self._goal is not None and self._goal.get_goal_id().id == handle.get_goal_id().id:
                self._stop()

    def _work(self, handle: ServerGoalHandle) -> None:
        """One goal from its arrival to its result."""
        session: Optional[Session] = None
        steps = 0
        try:
            try:
                plan, first_step = self._loaded_plan(handle.get_goal())
                steps = len(plan.steps)
                settings = self._planner_settings(plan, first_step)
                # The check and the engine tell it the scene.
                planner = load_planner(self._planner, self._streamed, self._chain, settings=settings)
                self._check(plan, first_step, planner)
                engine, session = self._prepare(plan, first_step, handle.get_goal(), planner, replayed(settings))
            except (Refused, PlannerError, SessionError, JournalError, Fault) as error:
                self._release()
                self._refuse(handle, str(error))
                return
            with self._lock:
                self._engine = engine
                if self._stop_asked:
                    engine.stop()
            handle.set_accepted()
            rospy.loginfo("runner: '%s', %d steps, session %s", plan.title, steps, session.name)
            try:
                outcome = engine.execute()
            except JournalError as error:
                outcome = Outcome("aborted", str(error), 0)
            self._write_report(session)
            self._release()
            self._conclude(handle, outcome, session, steps)
        except Exception as error:
            # A node that lost its worker would refuse every goal from here on.
            rospy.logfatal("runner: %s: %s; please report this", type(error).__name__, error)
            self._arm.halt()
            self._release()
            self._conclude(handle, Outcome("aborted", f"{type(error).__name__}: {error}", 0), session, steps)
            raise

    def _release(self) -> None:
        with self._lock:
            self._engine = None
            self._goal = None
            self._arm.report_fault = None
            if self._journal is not None:
                self._journal.close()
                self._journal = None
            self._show_idle()

    def _refuse(self, handle: ServerGoalHandle, reason: str) -> None:
        rospy.logwarn("runner: goal refused: %s", reason)
        result = RunPlanResult(outcome="refused", message=reason)
        if handle.get_goal_status().status in (GoalStatus.PENDING, GoalStatus.RECALLING):
            handle.set_rejected(result, reason)

    def _conclude(self, handle: ServerGoalHandle, outcome: Outcome, session: Optional[Session], steps: int) -> None:
        result = RunPlanResult(
            outcome=outcome.outcome,
            message=outcome.message,
            session=session.name if session is not None else "",
            session_directory=str(session.directory) if session is not None else "",
            steps_done=outcome.steps_done,
            steps=steps,
        )
        rospy.loginfo("runner: %s: %s", outcome.outcome, outcome.message)
        status = handle.get_goal_status().status
        if outcome.outcome == "finished":
            handle.set_succeeded(result, outcome.message)
        elif status in (GoalStatus.PREEMPTING, GoalStatus.RECALLING):
            handle.set_canceled(result, outcome.message)
        elif status == GoalStatus.PENDING:  # it failed before it was accepted, and actionlib aborts none of those
            handle.set_rejected(result, outcome.message)
        else:
            handle.set_aborted(result, outcome.message)

    # A run ---------------------------------------------------------------------------------------------------------

    def _loaded_plan(self, goal: Any) -> Tuple[Plan, int]:
        if bool(goal.plan_json) == bool(goal.plan_path):
            raise Refused("a goal has either plan_json or plan_path, and not both")
        mode = goal.mode or "run"
        if mode not in RUN_MODES:
            raise Refused(f"mode {mode!r}: expected one of {', '.join(RUN_MODES)}")
        try:
            plan = load_plan(goal.plan_json or Path(goal.plan_path), REGISTRY)
            for warning in plan.warnings:
                rospy.logwarn("runner: plan: %s", warning)
            if not 0 <= goal.first_step < max(1, len(plan.steps)):
                raise Refused(f"first_step {goal.first_step}: the plan has steps 0 to {len(plan.steps) - 1}")
        except PlanError as error:
            whole = with_robots_faults(error, self._robot, self._launch_tool_frame() or None, self._scene.surroundings)
            raise _refused_plan(whole.faults) from error
        return plan, int(goal.first_step)

    def _planner_settings(self, plan: Plan, first_step: int) -> Mapping[str, Any]:
        seed, session = rospy.get_param("~planner_seed", ""), str(rospy.get_param("~replay", ""))
        return planner_settings(self._planner, seed, session, plan, first_step)

    def _check(self, plan: Plan, first_step: int, planner: Planner) -> None:
        """Refuses a plan with a pose or a way that can't be, before anything moves."""
        warnings: List[PlanFault] = []
        faults = check_plan(
            plan,
            self._robot,
            planner=planner,
            tool_frame=self._launch_tool_frame() or None,
            warnings=warnings,
            start=self._start(),
            first_step=first_step,
            surroundings=self._scene.surroundings,
        )
        for warning in warnings:
            rospy.logwarn("runner: plan: %s", warning)
        if faults:
            raise _refused_plan(faults)

    @staticmethod
    def _launch_tool_frame() -> str:
        return str(rospy.get_param("~tool_frame", ""))

    def _tool_frame(self, plan: Plan) -> str:
        return plan.tool_frame or self._launch_tool_frame() or self._robot.tool_frame

    def _prepare(
        self, plan: Plan, first_step: int, goal: Any, planner: Planner, repeats: Mapping[str, str]
    ) -> Tuple[Engine, Session]:
        """Everything that a run needs, before the first motion; what fails here refuses the goal."""
        tool_frame = self._tool_frame(plan)
        try:
            frames = plan_frames(self._robot, plan.frame_id, tool_frame)
        except FrameError as error:
            raise Refused(f"the plan's frames do not fit robot {self._robot.name}: {error}") from error
        study, participant_id, condition = (
            str(getattr(goal, name) or rospy.get_param(f"~{name}", ""))
            for name in ("study", "participant_id", "condition")
        )
        objects = scene_objects(plan.objects_for(tool_frame, self._gripper_row.tip_offset), frames.base_from_frame)

        def advanced(scene: PlanningScene) -> None:
            tuck = np.asarray(self._chain.fk(np.asarray(self._robot.tuck, dtype=np.float64)))
            advance(scene, plan.steps[:first_step], frames.tip_of, tuck)

        self._advertise(plan)
        self._set_speed()
        candidates = self._start_candidates()
        plan_json = json.dumps(plan.document, indent=2, ensure_ascii=False) + "\n"
        session = sessions.create_session(plan_json, study, participant_id, condition)
        control = RunControl(self._clock)
        self._arm.report_fault = control.report_fault
        self._journal = Journal(session.journal)
        engine = Engine(
            steps=plan.steps,
            rig=Rig(self._arm, self._gripper, planner, self._chain, frames, self._workcell, self._scene.scene),
            control=control,
            log=EventLog(session.name, self._journal, self._publish_event, self._clock),
            save_path=self._path_saver(session),
            header={
                "title": plan.title,
                "plan_hash": plan_hash(plan),
                "plan_file": str(plan.source) if plan.source is not None else "",
                "robot": self._robot.name,
                "planner": self._planner,
                **repeats,
                "mode": goal.mode or "run",
                "steps": len(plan.steps),
                "first_step": first_step,
                "tool_frame": tool_frame,
                "study": study,
                "participant_id": participant_id,
                "condition": condition,
            },
            on_state=self._show,
            first_step=first_step,
            start_candidates=candidates,
            title=plan.title,
            session=session.name,
        )
        try:
            self._scene.begin(objects, advanced, self._begins_anew(plan, tool_frame, first_step))
        except SceneError as error:
            raise Refused(str(error)) from error
        return engine, session

    def _advertise(self, plan: Plan) -> None:
        """Makes the publishers of what the plan publishes, so that whoever listens has connected by then."""
        for planned in plan.steps:
            topic = getattr(planned.step, "topic", None)
            if topic is not None:
                try:
                    self._workcell.topics.advertise(topic, getattr(planned.step, "full_type", "std_msgs/String"))
                except Fault as fault:
                    raise Refused(f"{planned.pointer}: {fault.message}") from fault

    @staticmethod
    def _begins_anew(plan: Plan, tool_frame: str, first_step: int) -> bool:
        """Whether the workcell gets the plan's objects: a run that goes on where another ended leaves them there."""
        scene_of, known = f"{plan_hash(plan)} {tool_frame}", rospy.get_param(SCENE_PARAMETER, "")
        rospy.set_param(SCENE_PARAMETER, scene_of)
        return first_step == 0 or known != scene_of

    def _on_scene_change(self, data: Mapping[str, Any]) -> bool:
        engine = self._engine
        if engine is not None:
            engine.scene_changed(data)
        return engine is not None

    def _set_speed(self) -> None:
        speed = rospy.get_param("~speed", None)
        if speed is None:
            return
        service = robot_driver(self._robot).services.get("set_speed_slider")
        if service is None:
            if float(speed) != 1.0:
                rospy.logwarn_once(
                    "runner: %s moves at the plan's full speed, not at %g of it: its driver has no speed slider; for "
                    "slower motions give the plan's moves the option speed",
                    self._robot.name,
                    float(speed),
                )
            return
        proxy = rospy.ServiceProxy(service, SetSpeedSliderFraction)
        call = ServiceCall(proxy, float(speed), on_answer=lambda: None)
        call.wait(SERVICE_TIME)
        try:
            done = call.response().success
        except rospy.ServiceException as error:
            raise Refused(
                f"can't set the speed slider to {speed} by {service}: {error}; is the driver running?"
            ) from error
        if not done:
            raise Refused(f"the driver refused the speed {speed} by {service}: it takes 0.01 to 1")

    def _start(self) -> Optional[Vector]:
        """What the first move will be planned from; None where the arm's driver does not say where it is."""
        try:
            measured = self._arm.reading().positions
        except Fault:
            return None
        candidate = start_among(self._start_candidates(), measured)
        return measured if candidate is None else candidate

    def _start_candidates(self) -> List[Vector]:
        """Where the arm may stand because something commanded it there: the tuck, the end of the last run."""
        candidates = [np.asarray(self._robot.tuck, dtype=np.float64)]
        for session in reversed(sessions.list_sessions()):
            joints = sessions.last_commanded_joints(session)
            if joints is not None:
                candidates.append(joints)
                break
        return candidates

    def _path_saver(self, session: Session) -> Any:
        def save(name: str, path: JointPath) -> str:
            return sessions.save_path(session, name, path.positions, path.times, self._arm.joint_names)

        return save

    def _write_report(self, session: Session) -> None:
        try:
            sessions.write_durably(session.report, (to_json(summarise_session(session)) + "\n").encode("utf-8"))
        except (OSError, SessionError, ValueError) as error:
            rospy.logwarn("runner: no report.json was written: %s; `rosrun iter_runner report` draws it again", error)

    # What goes out -------------------------------------------------------------------------------------------------

    def _publish_event(self, event: Event) -> None:
        if rospy.is_shutdown():
            return
        try:
            self._events.publish(event_to_message(event))
        except rospy.ROSException:  # shut down between the two lines; the event is on disk
            return

    def _show(self, state: RunState) -> None:
        with self._lock:
            if state.state is State.FAULTED and (self._state.state, self._state.fault) != (state.state, state.fault):
                # stderr, which roslaunch shows whatever becomes of the node's output
                rospy.logerr("runner: step %d of %d FAULTED: %s", state.step + 1, state.steps, state.fault)
            self._state = state
            message = state_to_message(state)
            if rospy.is_shutdown():
                return
            self._state_publisher.publish(message)
            if self._goal is not None:
                self._feedback.put((self._goal, message))

    def _publish_feedback(self) -> None:
        """Apart from whoever causes it: the action server holds its lock while a cancel waits for the engine's."""
        while True:
            goal, message = self._feedback.get()
            if goal.get_goal_status().status in (GoalStatus.ACTIVE, GoalStatus.PREEMPTING):
                goal.publish_feedback(RunPlanFeedback(state=message))

    def _show_idle(self) -> None:
        idle = State.IDLE if self._arm_ready else State.WAITING_FOR_ARM
        waiting_for = "" if self._arm_ready else "the arm"
        self._show(replace(RunState(), state=idle, session=self._state.session, waiting_for=waiting_for))

    # What comes in -------------------------------------------------------------------------------------------------

    def _on_arm_ready(self, message: Bool) -> None:
        with self._lock:
            self._arm_ready = bool(message.data) or not self._wait_for_arm
            if self._goal is None:
                self._show_idle()

    def _on_press(self, message: ButtonPress) -> None:
        engine = self._engine
        if engine is None:
            rospy.loginfo("runner: the button was pressed while no plan runs")
            return
        verdict = engine.press(_press(message, self._clock.now()))
        if not verdict.used:
            rospy.loginfo("runner: a press of the button was ignored: %s", verdict.reason)

    def _on_answer(self, request: AnswerRequest) -> AnswerResponse:
        engine = self._engine
        success, text = (False, "no plan is running") if engine is None else engine.answer(request.text)
        return AnswerResponse(success=success, message=text)

    def _operator_service(self, name: str) -> Any:
        def serve(_request: TriggerRequest) -> TriggerResponse:
            if name == "stop":
                return TriggerResponse(*self._stop())
            engine = self._engine
            if engine is None:
                return TriggerResponse(False, "no plan is running")
            success, text = getattr(engine, name)()
            return TriggerResponse(success, text)

        return serve

    def _stop(self) -> Tuple[bool, str]:
        with self._lock:
            engine = self._engine
            if engine is None and self._goal is not None:
                self._stop_asked = True  # still being checked: it ends before its first step
                return True, "stopped"
        if engine is None:
            return False, "no plan is running"
        return engine.stop()

    def _on_shutdown(self) -> None:
        self._stop()
        worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join(SHUTDOWN_TIME)


def _refused_plan(faults: Sequence[PlanFault]) -> Refused:
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    lines = [f"the plan has {count}, nothing was started", *map(str, faults[:FAULTS_SHOWN])]
    if len(faults) > FAULTS_SHOWN:
        lines.append(f"and {len(faults) - FAULTS_SHOWN} more: `rosrun iter_runner check_plan` lists them all")
    return Refused("\n".join(lines))


def _press(message: ButtonPress, now: float) -> Press:
    """A press as the engine takes it; one without a time of its own counts from its arrival."""
    try:
        detail = json.loads(message.detail) if message.detail else {}
    except ValueError:
        detail = {"text": message.detail}
    time = message.time if math.isfinite(message.time) and message.time > 0 else now
    return Press(time, message.source, detail if isinstance(detail, dict) else {"value": detail})


def main() -> int:
    """Runs the node; returns its exit code."""
    start_node("runner")
    try:
        robot = load_robot(str(rospy.get_param("~robot", "ur5")))
        planner = str(rospy.get_param("~planner", "relaxed_ik"))
        check_fit(robot, planner)
        if planner == "replay":
            session = str(rospy.get_param("~replay", ""))
            if not session:
                raise PlannerError("planner 'replay' needs ~replay, the session whose motions it is to repeat")
            sessions.find_session(session)
        speed = rospy.get_param("~speed", None)
        if speed is not None and not (isinstance(speed, (int, float)) and 0.01 <= speed <= 1.0):
            raise RobotError(f"~speed is {speed!r}, expected a number from 0.01 to 1")
        RunnerNode(robot, planner)
    except (RobotError, PlannerError, SceneError, SessionError) as error:
        rospy.logfatal("runner: %s", error)
        return 1
    rospy.spin()
    return 0
