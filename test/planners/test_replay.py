"""The planner replay: what a session recorded moves the arm once more, bit for bit, or nothing does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional

import numpy as np
import pytest
from workcell_arm import WorkcellArm

from iter_runner.events import EventKind
from iter_runner.kinematics import Box, Chain, load_chain
from iter_runner.plan import Plan, load_plan, plan_hash
from iter_runner.plan.check import check_plan
from iter_runner.planners.base import MoveGoal, PlannerUnavailable, Unreachable, motion_key, path_hash
from iter_runner.planners.replay import ReplayPlanner, check_recording
from iter_runner.planners.table import PlannerError, load_planner
from iter_runner.primitives import REGISTRY
from iter_runner.robot.arm import Vector
from iter_runner.robot.table import Robot, load_robot
from iter_runner.run_control import Fault
from iter_runner.runner.engine import Engine, Outcome, Rig
from iter_runner.runner.event_log import EventLog
from iter_runner.runner.frames import plan_frames
from iter_runner.runner.journal import Journal
from iter_runner.runner.planner_settings import planner_settings, replayed
from iter_runner.runner.state import RunState, State
from iter_runner.study import sessions
from iter_runner.study.recorded_run import RecordedRun, recorded_run

DOWN = {"x": 1.0, "y": 0.0, "z": 0.0, "w": 0.0}


def plan_of(*places: tuple[float, float, float]) -> Plan:
    task: List[Dict[str, Any]] = [{"name": "logger", "msg": "begin"}]
    for x, y, z in places:
        task.append({"name": "move", "position": {"x": x, "y": y, "z": z}, "orientation": DOWN})
    document = {"version": "1.0.0", "title": "test", "tool_frame": "tool0", "environment": [], "task": task}
    return load_plan(json.dumps(document), REGISTRY)


PLAN = plan_of((0.3, 0.35, 0.3), (0.3, 0.3, 0.2), (-0.2, 0.35, 0.35))


@pytest.fixture(scope="module")
def chain(ur5: Robot) -> Chain:
    return load_chain(ur5)


class NoWorkcell:
    def publish(self, topic: str, message_type: str, fields: Mapping[str, Any]) -> None: ...

    def attach(self, object_name: str) -> None: ...

    def detach(self, object_name: str) -> None: ...


class Run:
    """A run of the study's engine on the simulated controller, recorded as one."""

    def __init__(
        self,
        folder: Path,
        robot: Robot,
        chain: Chain,
        planner: str,
        settings: Mapping[str, Any] = {},
        plan: Plan = PLAN,
        start: Optional[Vector] = None,
        first_step: int = 0,
        on_fault: Callable[[Run], None] = lambda run: run.engine.stop() and None,
    ) -> None:
        self.faults: List[str] = []
        self._on_fault = on_fault
        self.chain = chain
        self.arm = WorkcellArm(robot, chain, np.array(robot.tuck) if start is None else start)
        self.session = sessions.create_session(json.dumps(plan.document), folder=folder)
        self.engine = Engine(
            steps=plan.steps,
            rig=Rig(
                arm=self.arm,
                gripper=None,
                planner=load_planner(planner, robot, chain, settings=settings),
                kinematics=chain,
                frames=plan_frames(robot, plan.frame_id, "tool0"),
                workcell=NoWorkcell(),
            ),
            control=self.arm.control,
            log=EventLog(self.session.name, Journal(self.session.journal), lambda event: None, self.arm),
            save_path=lambda name, path: sessions.save_path(
                self.session, name, path.positions, path.times, self.arm.joint_names
            ),
            header={
                "plan_hash": plan_hash(plan),
                "robot": robot.name,
                "planner": planner,
                **replayed(settings),
                "first_step": first_step,
            },
            on_state=self._on_state,
            first_step=first_step,
            start_candidates=[np.array(robot.tuck)],
        )

    def _on_state(self, state: RunState) -> None:
        if state.state is State.FAULTED and not self.engine.control.stopped:
            self.faults.append(state.fault)
            self._on_fault(self)

    def execute(self) -> Outcome:
        return self.engine.execute()

    def hashes(self) -> List[str]:
        events = sessions.read_journal(self.session.journal)
        return [event.data["path_hash"] for event in events if event.kind is EventKind.MOVE_FINISHED]


def record(
    folder: Path,
    robot: Robot,
    chain: Chain,
    planner: str,
    prepare: Callable[[Run], None] = lambda run: None,
    **more: Any,
) -> Run:
    """A recorded run; ``prepare`` may put happenings into its way."""
    run = Run(folder, robot, chain, planner, **more)
    prepare(run)
    run.execute()
    return run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, ur5: Robot, chain: Chain) -> RecordedRun:
    """Of the planner static, without incident."""
    return recorded_run(record(tmp_path_factory.mktemp("sessions"), ur5, chain, "static").session)


def goal_of(plan: Plan, chain: Chain, recording: RecordedRun, key: str) -> MoveGoal:
    return MoveGoal(chain.fk(recording.motions[key].positions[-1]), key=key)


@pytest.mark.parametrize("planner", ["relaxed_ik", "static", "ompl"])
def test_moves_as_recorded(planner: str, tmp_path: Path, ur5: Robot, chain: Chain) -> None:
    if planner == "ompl":
        pytest.importorskip("ompl", reason="the package ompl is not installed")
    first = record(tmp_path, ur5, chain, planner)
    assert len(first.hashes()) == 3
    settings = planner_settings("replay", "", str(first.session.directory), PLAN, 0)
    again = record(tmp_path, ur5, chain, "replay", settings=settings)
    assert again.faults == []
    assert again.hashes() == first.hashes()
    assert again.arm.scripts == first.arm.scripts
    for key in ("1", "2", "3"):
        old, new = (sessions.load_path(run.session.paths / f"{key}.npz") for run in (first, again))
        assert np.array_equal(old[0], new[0])
        assert np.array_equal(old[1], new[1])
    measured = [np.array([joints for _, joints in run.arm.history]) for run in (first, again)]
    count = min(map(len, measured))
    assert np.max(np.abs(measured[0][:count] - measured[1][:count])) < 1e-9
    # A replay can be replayed, as the first planner sent it.
    settings = planner_settings("replay", "", str(again.session.directory), PLAN, 0)
    assert settings["replay"].planner == planner
    assert record(tmp_path, ur5, chain, "replay", settings=settings).hashes() == first.hashes()


@pytest.mark.parametrize("planner", ["relaxed_ik", "static"])
def test_a_recorded_pause_is_not_repeated(planner: str, tmp_path: Path, ur5: Robot, chain: Chain) -> None:
    def pause(run: Run) -> None:
        run.arm.at.append((0.6, run.engine.pause))
        run.arm.at.append((0.6, lambda: None))

    def resuming(run: Run) -> None:
        wait = run.arm.control.wait_while_paused

        def wait_and_resume() -> None:
            run.engine.resume()
            wait()

        run.arm.control.wait_while_paused = wait_and_resume  # type: ignore[method-assign]
        pause(run)

    first = record(tmp_path, ur5, chain, planner, resuming)
    kinds = [event.kind for event in sessions.read_journal(first.session.journal)]
    assert EventKind.PAUSED in kinds
    again = record(tmp_path, ur5, chain, "replay", settings={"replay": recorded_run(first.session)})
    assert again.faults == []
    assert again.hashes() == first.hashes()


def fault_at(time: float) -> Callable[[Run], None]:
    def prepare(run: Run) -> None:
        run.arm.at.append((time, lambda: run.arm.control.report_fault(Fault("bump", "somebody bumped into it"))))

    return prepare


def resume(run: Run) -> None:
    run.engine.resume()


@pytest.mark.parametrize("planner", ["relaxed_ik", "static"])
def test_a_motion_that_a_fault_cut_in_two_is_refused(planner: str, tmp_path: Path, ur5: Robot, chain: Chain) -> None:
    first = record(tmp_path, ur5, chain, planner, fault_at(0.7), on_fault=resume)
    assert first.faults == ["somebody bumped into it"]
    recording = recorded_run(first.session)
    assert (recording.outcome, list(recording.repeated)) == ("finished", [1])
    replay = load_planner("replay", ur5, chain, settings={"replay": recording})
    faults = check_plan(PLAN, ur5, planner=replay)
    assert len(faults) == 1
    assert "a fault interrupted that motion" in str(faults[0])
    assert "replay a session that went through without one" in str(faults[0])


@pytest.mark.parametrize("planner", ["relaxed_ik", "static"])
def test_goes_on_along_the_path_after_a_fault(planner: str, tmp_path: Path, ur5: Robot, chain: Chain) -> None:
    first = record(tmp_path, ur5, chain, planner)
    again = record(
        tmp_path,
        ur5,
        chain,
        "replay",
        fault_at(0.7),
        settings={"replay": recorded_run(first.session)},
        on_fault=resume,
    )
    assert again.faults == ["somebody bumped into it"]
    assert again.hashes()[1:] == first.hashes()[1:]
    assert again.hashes()[0] != first.hashes()[0]  # what was left of it, and said so
    path, _ = sessions.load_path(first.session.paths / "1.npz")
    for _, joints in again.arm.history:
        if np.max(np.abs(joints - path[-1])) < 1e-4:
            break
        assert np.min(np.max(np.abs(path - joints), axis=1)) < 0.05


def test_an_arm_that_was_moved_away(tmp_path: Path, ur5: Robot, chain: Chain, recorded: RecordedRun) -> None:
    start = np.array(ur5.tuck)
    start[2] += 0.3
    run = record(tmp_path, ur5, chain, "replay", settings={"replay": recorded}, start=start)
    (fault,) = run.faults
    assert "elbow_joint" in fault
    assert "0.3000 rad (17.2 degrees) from where the recorded motion 1" in fault
    assert "bring the arm there, then resume" in fault
    assert np.max(np.abs(run.arm.reading().positions - start)) < 1e-9
    replay = load_planner("replay", ur5, chain, settings={"replay": recorded})
    with pytest.raises(Unreachable, match="elbow_joint is at"):
        replay.preview(start, goal_of(PLAN, chain, recorded, "1"))


def test_an_arm_that_is_nearly_there_is_sent_the_same(
    tmp_path: Path, ur5: Robot, chain: Chain, recorded: RecordedRun
) -> None:
    start = np.array(ur5.tuck) + 2e-3
    run = record(tmp_path, ur5, chain, "replay", settings={"replay": recorded}, start=start)
    assert run.faults == []
    assert run.hashes() == [recorded.motions[key].path_hash for key in ("1", "2", "3")]


def test_a_check_shows_the_recorded_paths(ur5: Robot, chain: Chain, recorded: RecordedRun) -> None:
    replay = load_planner("replay", ur5, chain, settings={"replay": recorded})
    assert replay.repeats
    start = np.array(ur5.tuck)
    for key in ("1", "2", "3"):
        path = replay.preview(start, goal_of(PLAN, chain, recorded, key))
        assert path_hash(path.positions) == recorded.motions[key].path_hash
        start = path.positions[-1]
    assert check_plan(PLAN, ur5, planner=replay) == []


def test_something_new_in_the_way_is_refused(ur5: Robot, chain: Chain, recorded: RecordedRun) -> None:
    replay = load_planner("replay", ur5, chain, settings={"replay": recorded})
    path = recorded.motions["3"].positions
    place = np.eye(4)
    place[:3, 3] = chain.fk(path[len(path) // 2])[:3, 3] + [0.0, 0.0, 0.1]
    replay.update_scene([Box("lamp", place, (0.05, 0.05, 0.05))])
    with pytest.raises(Unreachable, match=r"on the recorded motion \S+ and lamp overlap by .* mm at .* % of the way"):
        replay.preview(path[0], goal_of(PLAN, chain, recorded, "3"))
    replay.update_scene([])
    replay.preview(path[0], goal_of(PLAN, chain, recorded, "3"))


def test_a_goal_elsewhere_is_refused(ur5: Robot, chain: Chain, recorded: RecordedRun) -> None:
    replay = load_planner("replay", ur5, chain, settings={"replay": recorded})
    goal = goal_of(PLAN, chain, recorded, "1")
    goal.flange[0, 3] += 0.03
    with pytest.raises(Unreachable, match=r"ends 30.0 mm and 0.0 degrees from where this move goes"):
        replay.preview(np.array(ur5.tuck), goal)
    with pytest.raises(Unreachable, match="has no motion '7_2'"):
        replay.preview(np.array(ur5.tuck), replace(goal, key="7_2"))


def test_what_can_not_be_replayed(ur5: Robot, chain: Chain, recorded: RecordedRun) -> None:
    def refusal(recording: Any = recorded, robot: Robot = ur5) -> str:
        with pytest.raises(PlannerError) as caught:
            load_planner(
                "replay", robot, load_chain(robot), settings={} if recording is None else {"replay": recording}
            )
        return str(caught.value)

    assert "replay:=SESSION" in refusal(None)
    assert "robot 'ur5', and this is 'ur3e'" in refusal(robot=load_robot("ur3e"))
    assert "planner:=ur asks for the same again" in refusal(replace(recorded, planner="ur"))
    assert "planner 'chomp'" in refusal(replace(recorded, planner="chomp"))
    motion = recorded.motions["2"]
    bent = replace(motion, positions=motion.positions + 1e-6)
    assert f"{motion.file}: not the path" in refusal(replace(recorded, motions={**recorded.motions, "2": bent}))
    others = replace(motion, joint_names=["a", "b", "c", "d", "e", "f"])
    assert "recorded for the joints a, b" in refusal(replace(recorded, motions={"2": others}))
    ticks = 0.008 * np.arange(len(motion.times))
    streamed = replace(recorded, planner="relaxed_ik", motions={"2": replace(motion, times=ticks)})
    assert "at 125 targets a second, and this transport takes 500" in refusal(
        streamed, ur5.model_copy(update={"stream_rate": 500.0})
    )
    assert isinstance(load_planner("replay", ur5, chain, settings={"replay": streamed}), ReplayPlanner)


def test_which_session_fits_a_run(tmp_path: Path, ur5: Robot, chain: Chain, recorded: RecordedRun) -> None:
    own = plan_hash(PLAN)
    check_recording(recorded, own, 0, 4)
    check_recording(recorded, own, 2, 4)
    with pytest.raises(PlannerUnavailable, match=f"is of another plan: its hash is {own[:12]}"):
        check_recording(recorded, plan_hash(plan_of((0.3, 0.35, 0.31))), 0, 2)
    with pytest.raises(PlannerUnavailable, match=r"did not finish \(it was stopped\)"):
        check_recording(replace(recorded, outcome="stopped"), own, 0, 4)
    with pytest.raises(PlannerUnavailable, match="its record ends in the midst"):
        check_recording(replace(recorded, outcome=""), own, 0, 4)
    resumed = recorded_run(record(tmp_path, ur5, chain, "static", first_step=2).session)
    check_recording(resumed, own, 2, 4)
    with pytest.raises(PlannerUnavailable, match=r"no motions of the steps before 3.*first_step 2"):
        check_recording(resumed, own, 0, 4)


def test_settings_of_a_run(tmp_path: Path, ur5: Robot, chain: Chain) -> None:
    assert planner_settings("ompl", 5, "", PLAN, 0) == {"planner_seed": 5}
    assert planner_settings("static", "", "", PLAN, 0) == {"planner_seed": ""}
    with pytest.raises(PlannerError, match="no session"):
        planner_settings("replay", "", str(tmp_path / "nowhere"), PLAN, 0)
    session = record(tmp_path, ur5, chain, "static").session
    settings = planner_settings("replay", "", str(session.directory), PLAN, 0)
    assert replayed(settings) == {"replay_of": session.name, "replayed_planner": "static"}
    assert replayed({"planner_seed": ""}) == {}
    with pytest.raises(PlannerError, match="another plan"):
        planner_settings("replay", "", str(session.directory), plan_of((0.3, 0.35, 0.31)), 0)


def test_keys_of_moves() -> None:
    assert [motion_key(12), motion_key(12, 2)] == ["12", "12_2"]
