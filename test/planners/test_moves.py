"""Every planner on every arm: it arrives, the same way every time, within the limits, and obeys the operator."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import List

import numpy as np
import pytest
from goals import pose, reach_of, spread
from workcell_arm import WorkcellArm

from iter_runner.kinematics import Chain
from iter_runner.planners.base import MoveGoal, Planner, Unreachable, path_hash
from iter_runner.planners.line import pose_error
from iter_runner.planners.table import load_planner
from iter_runner.robot.arm import JointPath
from iter_runner.robot.table import Robot
from iter_runner.run_control import Fault, Stopped


def house_goals(robot: Robot) -> List[MoveGoal]:
    """From a block queue on one side to a workspace on the other, and back."""
    side = 0.35 if robot.name == "ur5" else 0.25
    places = [(-side, side, 0.3), (-side, side, 0.2), (-side, side, 0.3), (side, side, 0.3), (side, side, 0.2)]
    return [MoveGoal(pose(*place)) for place in [*places, (0.05, side, 0.3), (-side, side, 0.25)]]


def previews(planner: Planner, robot: Robot, goals: List[MoveGoal]) -> List[JointPath]:
    paths, q = [], np.array(robot.tuck)
    for goal in goals:
        paths.append(planner.preview(q, goal))
        q = paths[-1].positions[-1]
    return paths


def assert_within_limits(path: JointPath, robot: Robot, chain: Chain) -> None:
    periods = np.diff(path.times)[:, None]
    assert np.all(periods > 0)
    speeds = np.diff(path.positions, axis=0) / periods
    assert np.max(np.abs(speeds) / chain.velocity_limits) < 1.0
    rises = np.diff(speeds, axis=0) / (0.5 * (periods[1:] + periods[:-1]))
    assert np.max(np.abs(rises) / np.array(robot.limits.acceleration), initial=0.0) < 1.0
    assert chain.within_limits(path.positions, 1e-9)


def test_moves_of_a_house_arrive_where_the_preview_says(
    planner: Planner, arm: WorkcellArm, robot: Robot, chain: Chain
) -> None:
    tight = planner.name != "relaxed_ik"
    q = np.array(robot.tuck)
    for goal in house_goals(robot):
        path = planner.move(arm, q, goal, arm.control)
        assert path_hash(path.positions) == path_hash(planner.preview(q, goal).positions)
        q = path.positions[-1]
        distance, turn = pose_error(chain.fk(arm.reading().positions), goal.flange)
        assert distance < (1e-3 if tight else 2e-3)
        assert np.degrees(turn) < (0.2 if tight else 0.5)
        assert np.max(np.abs(arm.reading().velocities)) < 0.01
    assert arm.halts == 0


def test_goals_all_over_the_workspace_within_limits(planner: Planner, robot: Robot, chain: Chain) -> None:
    q = np.array(robot.tuck)
    reached = 0
    goals = spread(reach_of(robot.name), 30, seed=11)
    for goal in goals:
        try:
            path = planner.preview(q, MoveGoal(goal))
        except Unreachable:
            continue
        reached += 1
        assert_within_limits(path, robot, chain)
        distance, turn = pose_error(chain.fk(path.positions[-1]), goal)
        assert distance < 1e-6
        assert turn < 1e-6
        np.testing.assert_array_equal(path.positions[0], q)
        q = path.positions[-1]
    assert reached >= len(goals) - 3  # a few can't be left or entered without the hand touching the forearm


def test_the_simulated_arm_bears_moves_all_over_the_workspace(
    planner: Planner, arm: WorkcellArm, robot: Robot, chain: Chain
) -> None:
    q = np.array(robot.tuck)
    for goal in spread(reach_of(robot.name), 6, seed=5):
        try:
            q = planner.move(arm, q, MoveGoal(goal), arm.control).positions[-1]
        except Unreachable:
            continue
        assert pose_error(chain.fk(arm.reading().positions), goal)[0] < 1e-3


def test_ten_runs_give_ten_equal_lists_of_hashes(planner: Planner, robot: Robot) -> None:
    goals = house_goals(robot)
    lists = [[path_hash(path.positions) for path in previews(planner, robot, goals)] for _ in range(10)]
    assert all(hashes == lists[0] for hashes in lists)
    assert len(set(lists[0])) == len(goals)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from test_moves import house_goals, previews
from iter_runner.kinematics import load_chain
from iter_runner.planners.base import path_hash
from iter_runner.planners.table import load_planner
from iter_runner.robot.table import load_robot
robot = load_robot(sys.argv[2])
planner = load_planner(sys.argv[3], robot, load_chain(robot))
print(*[path_hash(path.positions) for path in previews(planner, robot, house_goals(robot))])
"""


def test_another_process_gives_the_same_path(planner: Planner, robot: Robot, request: pytest.FixtureRequest) -> None:
    here = [path_hash(path.positions) for path in previews(planner, robot, house_goals(robot))]
    arguments = [sys.executable, "-c", SCRIPT, str(request.path.parent), robot.name, planner.name]
    there = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert there.returncode == 0, there.stderr
    assert there.stdout.split() == here


def test_a_pause_does_not_change_the_path(planner: Planner, arm: WorkcellArm, robot: Robot, chain: Chain) -> None:
    goal = house_goals(robot)[0]
    q = np.array(robot.tuck)
    undisturbed = planner.preview(q, goal)
    stood: List[float] = []

    def pause() -> None:
        arm.control.pause()
        threading.Timer(0.05, resume).start()

    def resume() -> None:
        stood.append(float(np.max(np.abs(arm.reading().velocities))))
        arm.control.resume()

    arm.at = [(0.6, pause)]
    path = planner.move(arm, q, goal, arm.control)
    assert path_hash(path.positions) == path_hash(undisturbed.positions)
    assert len(stood) == 1
    assert pose_error(chain.fk(arm.reading().positions), goal.flange)[0] < 1e-3


def test_stop_halts_at_once(planner: Planner, arm: WorkcellArm, robot: Robot) -> None:
    goal = house_goals(robot)[0]
    arm.at = [(0.6, arm.control.stop)]
    with pytest.raises(Stopped):
        planner.move(arm, np.array(robot.tuck), goal, arm.control)
    assert arm.halts >= 1
    assert arm.now() < 0.7
    for _ in range(200):
        arm.cycle()
    assert np.max(np.abs(arm.reading().velocities)) == 0.0


def test_a_fault_on_the_way_halts_and_is_raised(planner: Planner, arm: WorkcellArm, robot: Robot) -> None:
    arm.at = [(0.5, lambda: arm.control.report_fault(Fault("protective_stop", "unlock it")))]
    with pytest.raises(Fault, match="unlock it"):
        planner.move(arm, np.array(robot.tuck), house_goals(robot)[0], arm.control)
    assert arm.halts >= 1


def test_out_of_reach_says_how_far_and_moves_nothing(planner: Planner, arm: WorkcellArm, robot: Robot) -> None:
    with pytest.raises(Unreachable, match=r"out of reach: the nearest that the arm comes is \d+ mm"):
        planner.move(arm, np.array(robot.tuck), MoveGoal(pose(1.5, 0.4, 0.2)), arm.control)
    assert arm.scripts == []
    assert arm.controller.motions == 0


def test_a_goal_behind_the_base_is_reached_in_joint_space(planner: Planner, robot: Robot, chain: Chain) -> None:
    side = 0.4 if robot.name == "ur5" else 0.3
    q = planner.preview(np.array(robot.tuck), MoveGoal(pose(0.0, side, 0.25))).positions[-1]
    goal = pose(0.02, -side, 0.25)  # the straight line leads through the arm itself
    path = planner.preview(q, MoveGoal(goal))
    assert_within_limits(path, robot, chain)
    assert pose_error(chain.fk(path.positions[-1]), goal)[0] < 1e-6


@pytest.mark.parametrize("options", [{"time_factor": 2.0}, {"speed": 0.5}])
def test_a_slower_move_takes_so_much_longer(planner: Planner, robot: Robot, options: dict[str, float]) -> None:
    q, goal = np.array(robot.tuck), house_goals(robot)[0]
    own = planner.preview(q, goal).times[-1]
    slow = planner.preview(q, MoveGoal(goal.flange, options)).times[-1]
    assert slow == pytest.approx(2.0 * own, rel=0.05)


def test_a_move_to_where_the_arm_is_moves_nothing(
    planner: Planner, arm: WorkcellArm, robot: Robot, chain: Chain
) -> None:
    q = np.array(robot.tuck)
    path = planner.move(arm, q, MoveGoal(chain.fk(q)), arm.control)
    assert np.max(np.abs(path.positions - q)) < 1e-9
    assert np.max(np.abs(arm.reading().positions - q)) < 1e-9


@pytest.mark.parametrize("slider", [0.3])
def test_the_stream_keeps_to_the_speed_slider(robot: Robot, chain: Chain, slider: float) -> None:
    planner = load_planner("relaxed_ik", robot, chain)
    durations = []
    for scaling in (1.0, slider):
        arm = WorkcellArm(robot, chain, np.array(robot.tuck))
        arm.speed_scaling = scaling
        path = planner.move(arm, np.array(robot.tuck), house_goals(robot)[0], arm.control)
        durations.append(arm.now())
        assert path_hash(path.positions) == path_hash(
            planner.preview(np.array(robot.tuck), house_goals(robot)[0]).positions
        )
    assert durations[1] > 2.0 * durations[0]


@pytest.mark.parametrize("stall", [2, 5, 12, 60])
def test_a_stream_that_stalls_takes_the_arm_up_gently(robot: Robot, chain: Chain, stall: int) -> None:
    """A busy computer sends nothing for some cycles: the arm brakes, and must not be torn after the goal afterwards."""

    class StallingArm(WorkcellArm):
        def script(self, program: str) -> None:
            if program.lstrip().startswith("servoj") and len(self.scripts) % 40 == 25:
                for _ in range(stall):
                    self.cycle()
            super().script(program)

    planner = load_planner("relaxed_ik", robot, chain)
    q = np.array(robot.tuck)
    for goal in house_goals(robot)[:6]:
        arm = StallingArm(robot, chain, q)
        path = planner.move(arm, q, goal, arm.control)
        assert path_hash(path.positions) == path_hash(planner.preview(q, goal).positions)
        q = path.positions[-1]
