"""One run of a plan on the simulated arm in this process, by the study's engine and planner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Sequence

import numpy as np

from iter_runner.events import Event, EventKind
from iter_runner.kinematics import load_chain
from iter_runner.plan import Plan, plan_hash
from iter_runner.plan.check import Workcell
from iter_runner.planners.table import load_planner
from iter_runner.robot.arm import JointPath, Vector
from iter_runner.robot.table import Robot, robot_gripper
from iter_runner.runner.engine import Engine, Rig
from iter_runner.runner.event_log import EventLog
from iter_runner.runner.frames import plan_frames
from iter_runner.runner.presses import Press
from iter_runner.runner.state import RunState, State
from iter_runner.sim.workcell_arm import WorkcellArm, WorkcellGripper


@dataclass(frozen=True)
class MotionRecord:
    """One move of a run.

    Attributes:
        key: which move of the plan: the name that the engine keeps its path under.
        path_hash: of the commanded joint path.
        positions: (N, n) rad, the commanded joint path.
        times: (N,) s from the start of the motion.
        joint_names: of its columns.
        tool_path: (N, 3) m, the chain's tip in its base along it.
        planning_time: s of wall time until the motion was known; NaN where the planner does not say.
    """

    key: str
    path_hash: str
    positions: Vector
    times: Vector
    joint_names: Sequence[str]
    tool_path: Vector
    planning_time: float

    @property
    def file(self) -> str:
        """For messages of the planner ``replay``."""
        return f"the rehearsal's move {self.key}"


@dataclass
class Rehearsal:
    """What one run did.

    Attributes:
        motions: its moves in order, up to the end or to the failure.
        failure: why it did not finish; empty if it did.
    """

    motions: List[MotionRecord] = field(default_factory=list)
    failure: str = ""


@dataclass(frozen=True)
class RehearsedRun:
    """A finished rehearsal as the planner ``replay`` takes it: see :class:`iter_runner.planners.replay.Recording`."""

    name: str
    robot: str
    planner: str
    plan_hash: str
    outcome: str
    done: Sequence[int]
    motions: Mapping[str, MotionRecord]
    repeated: Sequence[int] = ()


def recording(rehearsal: Rehearsal, plan: Plan, robot: Robot, planner: str) -> RehearsedRun:
    """What ``planner`` did in ``rehearsal``, for the planner ``replay``'s setting of that name."""
    return RehearsedRun(
        name=f"a run of {planner}",
        robot=robot.name,
        planner=planner,
        plan_hash=plan_hash(plan),
        outcome="" if rehearsal.failure else "finished",
        done=list(range(len(plan.steps))),
        motions={motion.key: motion for motion in rehearsal.motions},
    )


class _NoWorkcell:
    """See :class:`iter_runner.runner.engine.Workcell`: topics reach nobody, nothing is shown."""

    def publish(self, topic: str, message_type: str, fields: Mapping[str, Any]) -> None:
        """Sends nothing."""

    def attach(self, object_name: str) -> None:
        """Shows nothing."""

    def detach(self, object_name: str) -> None:
        """Shows nothing."""


class _NoJournal:
    """See :class:`iter_runner.runner.event_log.EventStore`."""

    def append(self, events: Sequence[Event]) -> None:
        """Keeps none of them."""


class _Run:
    """The engine's surroundings: answers every wait at once, ends the run at the first fault, keeps the paths."""

    def __init__(self, plan: Plan, robot: Robot, planner: str, settings: Mapping[str, Any]) -> None:
        self._chain = load_chain(robot)
        self._paths: Dict[str, JointPath] = {}
        self._key = ""
        self.rehearsal = Rehearsal()
        arm = WorkcellArm(robot, self._chain, np.array(robot.tuck, dtype=np.float64))
        workcell = Workcell(plan, robot, plan.tool_frame or robot.tool_frame)
        self.engine = Engine(
            steps=plan.steps,
            rig=Rig(
                arm=arm,
                gripper=WorkcellGripper(robot_gripper(robot), arm),
                planner=load_planner(planner, robot, self._chain, settings=settings),
                kinematics=self._chain,
                frames=plan_frames(robot, plan.frame_id, plan.tool_frame or robot.tool_frame),
                workcell=_NoWorkcell(),
                scene=workcell.scene(),
            ),
            control=arm.control,
            log=EventLog("rehearsal", _NoJournal(), self._on_event, arm),
            save_path=self._save_path,
            header={},
            on_state=self._on_state,
            start_candidates=[np.array(robot.tuck, dtype=np.float64)],
        )

    def _save_path(self, key: str, path: JointPath) -> str:
        self._key = key
        self._paths[key] = path
        return key

    def _on_event(self, event: Event) -> None:
        if event.kind is EventKind.WAIT_STARTED and event.data["condition"] in ("button", "prompt"):
            self.engine.press(Press(event.time, "rehearsal"))
        elif event.kind is EventKind.MOVE_FINISHED:
            path = self._paths[self._key]
            planning_time = event.data.get("planning_time")
            self.rehearsal.motions.append(
                MotionRecord(
                    key=self._key,
                    path_hash=event.data["path_hash"],
                    positions=path.positions,
                    times=path.times,
                    joint_names=self._chain.joint_names,
                    tool_path=np.asarray(self._chain.fk(path.positions))[:, :3, 3],
                    planning_time=float("nan") if planning_time is None else float(planning_time),
                )
            )

    def _on_state(self, state: RunState) -> None:
        if state.state is State.FAULTED and not self.engine.control.stopped:
            self.rehearsal.failure = state.fault
            self.engine.stop()


def rehearse(plan: Plan, robot: Robot, planner: str, settings: Mapping[str, Any] = {}) -> Rehearsal:
    """Runs ``plan`` once from the tucked pose, every wait answered at once, until its end or its first fault.

    Args:
        plan: loaded.
        robot: the row.
        planner: a name of config/planners.yaml.
        settings: the planner's.

    Raises:
        FrameError: the plan's frames do not fit the robot.
        PlannerError: the planner does not.
    """
    run = _Run(plan, robot, planner, settings)
    outcome = run.engine.execute()
    if outcome.outcome != "finished" and not run.rehearsal.failure:
        run.rehearsal.failure = outcome.message
    return run.rehearsal
