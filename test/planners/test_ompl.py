"""The planner ompl: free ways around things, within every limit, and the same ones again with a seed."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy as np
import pytest
from goals import pose
from workcell_arm import WorkcellArm

from iter_runner.kinematics import AttachedBody, Box, Chain, Obstacles, carrying, load_chain, path_clearance
from iter_runner.plan import load_plan
from iter_runner.plan.check import Workcell
from iter_runner.planners import ompl
from iter_runner.planners.base import MoveGoal, PlannerUnavailable, Unreachable, path_hash
from iter_runner.planners.corners import distinct, rounded
from iter_runner.planners.free_space import FreeSpace
from iter_runner.planners.line import pose_error
from iter_runner.planners.ompl import OmplPlanner, algorithm_names
from iter_runner.planners.routes import TOUCH
from iter_runner.planners.table import PlannerError, check_fit, load_planner
from iter_runner.primitives import REGISTRY
from iter_runner.robot.arm import JointPath, Vector
from iter_runner.robot.table import Robot, load_robot
from iter_runner.run_control import Stopped

pytest.importorskip("ompl", reason="the package ompl is not installed")

PLANS = Path(__file__).resolve().parents[2] / "plans"


def box(name: str, x: float, y: float, z: float, *size: float) -> Box:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return Box(name, pose, size)


TABLE = box("table", 0.0, 0.0, -0.15, 2.0, 2.0, 0.1)
WALL = box("wall", 0.0, 0.6, 0.2, 0.05, 0.4, 0.9)
"""Between LEFT and RIGHT."""
LEFT, RIGHT = pose(-0.3, 0.5, 0.3), pose(0.3, 0.5, 0.3)


@pytest.fixture(scope="module")
def chain(ur5: Robot) -> Chain:
    return load_chain(ur5)


@pytest.fixture(scope="module")
def left(ur5: Robot, chain: Chain) -> Vector:
    """Joints at LEFT."""
    return (
        OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=1).preview(np.array(ur5.tuck), MoveGoal(LEFT)).positions[-1]
    )


def check_limits(path: JointPath, robot: Robot, chain: Chain) -> None:
    """Positions, speeds and accelerations from point to point; from and to standstill."""
    assert chain.within_limits(path.positions, 1e-9)
    steps = np.diff(path.times)[:, None]
    assert np.all(steps > 0.0)
    speeds = np.vstack([np.zeros(len(chain)), np.diff(path.positions, axis=0) / steps, np.zeros(len(chain))])
    assert np.all(np.abs(speeds) <= chain.velocity_limits)
    between = np.concatenate([steps[:1], 0.5 * (steps[1:] + steps[:-1]), steps[-1:]])
    rises = np.diff(speeds, axis=0) / between
    assert np.max(np.abs(rises) / np.array(robot.limits.acceleration)) <= 1.0


@pytest.mark.parametrize("name", ["ur5", "mico-2"])
def test_moves_of_a_house(name: str) -> None:
    robot = load_robot(name)
    chain = load_chain(robot)
    plan = load_plan(PLANS / "sequential.json", REGISTRY)
    workcell = Workcell(plan, robot, plan.tool_frame or robot.tool_frame)
    planner = load_planner("ompl", robot, chain, workcell.obstacles)
    obstacles = Obstacles(workcell.obstacles)
    start = np.array(robot.tuck)
    moved = 0
    for planned in plan.steps:
        for _, position, orientation in planned.step.poses() if planned.step.name == "move" else ():
            flange = workcell.flange(position, orientation)
            try:
                path = planner.preview(start, MoveGoal(flange))
            except Unreachable as error:
                assert "out of reach" in str(error) or "overlap" in str(error)  # a small arm and a plan of a large one
                continue
            moved += 1
            assert np.array_equal(path.positions[0], start)
            assert max(pose_error(chain.fk(path.positions[-1]), flange)) < 1e-6
            assert path_clearance(chain, path.positions, obstacles)[1].distance >= -2 * TOUCH
            check_limits(path, robot, chain)
            start = path.positions[-1]
        if moved >= 12:
            break
    assert moved >= 4


def test_goes_around_what_is_between(ur5: Robot, chain: Chain, left: Vector) -> None:
    for seed in range(8):
        planner = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=seed)
        path = planner.preview(left, MoveGoal(RIGHT))
        ends = path_clearance(chain, path.positions[[0, -1]], [TABLE, WALL])[1].distance
        nearest = path_clearance(chain, path.positions, [TABLE, WALL])[1].distance
        assert nearest >= min(ompl.MARGIN, ompl.MARGIN_SHARE * ends) - 0.002  # what the spline may cut
        assert np.array_equal(path.positions[0], left)
        assert max(pose_error(chain.fk(path.positions[-1]), RIGHT)) < 1e-6
        check_limits(path, ur5, chain)


def test_nothing_unwinds_absurdly(ur5: Robot, chain: Chain, left: Vector) -> None:
    wound = left + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 2 * np.pi if left[5] < 0 else -2 * np.pi])
    for start in (left, wound):
        for seed in range(10):
            path = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=seed).preview(start, MoveGoal(RIGHT))
            span = np.ptp(path.positions, axis=0)
            assert np.all(span <= 2 * np.pi + 1e-9)


def test_a_seed_repeats_and_none_does_not(ur5: Robot, chain: Chain, left: Vector) -> None:
    def hashes(seed: Optional[int]) -> List[str]:
        planner = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=seed)
        return [path_hash(planner.preview(left, MoveGoal(RIGHT)).positions) for _ in range(2)]

    assert len(set(hashes(7) + hashes(7))) == 1
    assert len(set(hashes(7) + hashes(8))) == 2
    assert len(set(hashes(None) + hashes(None) + hashes(None))) > 1


def test_a_motion_does_not_depend_on_those_before(ur5: Robot, chain: Chain, left: Vector) -> None:
    alone = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=3).preview(left, MoveGoal(RIGHT))
    planner = OmplPlanner(ur5, chain, planner_seed=3)
    planner.preview(np.array(ur5.tuck), MoveGoal(LEFT))
    planner.update_scene([TABLE, WALL])
    assert np.array_equal(planner.preview(left, MoveGoal(RIGHT)).positions, alone.positions)


SCRIPT = """
import sys
import numpy as np
sys.path.insert(0, {tests!r})
from test_ompl import LEFT, RIGHT, TABLE, WALL
from iter_runner.kinematics import load_chain
from iter_runner.planners.base import MoveGoal, path_hash
from iter_runner.planners.ompl import OmplPlanner
from iter_runner.robot.table import load_robot
robot = load_robot("ur5")
chain = load_chain(robot)
start = np.frombuffer(bytes.fromhex({start!r}))
for name in ("RRTConnect", "RRTstar", "BKPIECE1"):
    path = OmplPlanner(robot, chain, [TABLE, WALL], planner_seed=11).preview(
        start, MoveGoal(RIGHT, {{"planner_id": name, "planning_time": 0.2}}))
    print(path_hash(path.positions))
"""


def test_a_seed_repeats_in_another_process(left: Vector) -> None:
    script = SCRIPT.format(tests=str(Path(__file__).parent), start=left.tobytes().hex())
    outputs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout for _ in "ab"
    ]
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0].split())) > 1


@pytest.mark.parametrize("algorithm", algorithm_names())
def test_every_algorithm_finds_a_way(algorithm: str, ur5: Robot, chain: Chain, left: Vector) -> None:
    planner = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=1)
    options = {"planner_id": algorithm, "planning_time": 5.0 if "FMT" in algorithm else 0.5}
    path = planner.preview(left, MoveGoal(RIGHT, options))
    assert path_clearance(chain, path.positions, [TABLE, WALL])[1].distance >= -2 * TOUCH
    assert path_hash(planner.preview(left, MoveGoal(RIGHT, options)).positions) == path_hash(path.positions)


@pytest.mark.parametrize(
    "name",
    ["RRTConnectkConfigDefault", "rrtconnect", "geometric::RRTConnect", "arm[RRTConnectkConfigDefault]", "", " "],
)
def test_algorithms_by_moveits_names(name: str, ur5: Robot, chain: Chain, left: Vector) -> None:
    planner = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=1)
    plain = planner.preview(left, MoveGoal(RIGHT))
    assert np.array_equal(planner.preview(left, MoveGoal(RIGHT, {"planner_id": name})).positions, plain.positions)


@pytest.mark.parametrize("name", ["PRM", "TRRTstarry", "kConfigDefault"])
def test_unknown_algorithms_are_refused_with_those_there_are(name: str, ur5: Robot, chain: Chain) -> None:
    with pytest.raises(Unreachable, match=r"RRTConnect.*RRTstar"):
        OmplPlanner(ur5, chain).preview(np.array(ur5.tuck), MoveGoal(LEFT, {"planner_id": name}))


def test_more_attempts_make_no_longer_motion(ur5: Robot, chain: Chain, left: Vector) -> None:
    planner = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=5)
    one, many = (planner.preview(left, MoveGoal(RIGHT, {"num_planning_attempts": count})).times[-1] for count in (1, 8))
    assert many <= one


def test_attempts_without_number_leave_time_for_each(ur5: Robot, chain: Chain, left: Vector) -> None:
    planner = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=5)
    options = {"num_planning_attempts": 10**9, "planning_time": 1.0}
    assert len(planner.preview(left, MoveGoal(RIGHT, options)).times) > 1


@pytest.mark.parametrize("options", [{"speed": 0.5}, {"time_factor": 2.0}])
def test_slower_along_the_same_way(options: Dict[str, Any], ur5: Robot, chain: Chain, left: Vector) -> None:
    planner = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=5)
    fast, slow = (planner.preview(left, MoveGoal(RIGHT, each)) for each in ({}, options))
    assert slow.times[-1] == pytest.approx(2 * fast.times[-1], rel=1e-6)


def test_ceilings_of_the_flange(ur5: Robot, chain: Chain, left: Vector) -> None:
    planner = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=5)
    path = planner.preview(left, MoveGoal(RIGHT, {"velocity": 0.1, "acceleration": 0.3}))
    places = chain.fk(path.positions)[:, :3, 3]
    speeds = np.diff(places, axis=0) / np.diff(path.times)[:, None]
    rises = np.diff(speeds, axis=0) / np.diff(path.times)[1:, None]
    assert 0.05 < np.max(np.linalg.norm(speeds, axis=1)) <= 0.1 * 1.01
    assert np.max(np.linalg.norm(rises, axis=1)) <= 0.3 * 1.05


def test_a_straight_line_that_is_asked_for(ur5: Robot, chain: Chain) -> None:
    planner = OmplPlanner(ur5, chain, planner_seed=5)
    start = np.array(ur5.tuck)
    at = chain.fk(start)
    goal = np.array(at)
    goal[2, 3] -= 0.1
    path = planner.preview(start, MoveGoal(goal, {"motion_type": "movel"}))
    assert np.max(np.abs(chain.fk(path.positions)[:, :2, 3] - at[:2, 3])) < 1e-4
    check_limits(path, ur5, chain)
    planner.update_scene([box("plate", *(0.5 * (at[:3, 3] + goal[:3, 3]) - [0, 0, 0.2]), 0.2, 0.2, 0.01)])
    with pytest.raises(Unreachable, match=r"straight line.*plate"):
        planner.preview(start, MoveGoal(goal, {"motion_type": "cartesian"}))


def test_nothing_moves_where_the_arm_is_already(ur5: Robot, chain: Chain) -> None:
    start = np.array(ur5.tuck)
    path = OmplPlanner(ur5, chain).preview(start, MoveGoal(chain.fk(start)))
    assert len(path.positions) == 1
    assert np.array_equal(path.positions[0], start)


def test_goals_that_can_not_be(ur5: Robot, chain: Chain, left: Vector) -> None:
    planner = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=1)
    with pytest.raises(Unreachable, match=r"\(1.500, 0.000, 0.300\) m in base_link is out of reach: .* mm"):
        planner.preview(left, MoveGoal(pose(1.5, 0.0, 0.3)))
    with pytest.raises(Unreachable, match=r"and wall overlap by .* configurations"):
        planner.preview(left, MoveGoal(pose(0.0, 0.5, 0.3)))


def test_a_goal_that_is_walled_in_is_given_up(ur5: Robot, chain: Chain, left: Vector) -> None:
    fence = [
        box(f"fence {k}", 0.3 + dx, 0.5 + dy, 0.15, sx, sy, 1.2)
        for k, (dx, dy, sx, sy) in enumerate(((0.3, 0, 0.02, 0.62), (-0.3, 0, 0.02, 0.62), (0, 0.3, 0.62, 0.02)))
    ]
    fence.append(box("lid", 0.3, 0.5, 0.76, 0.62, 0.62, 0.02))
    start = np.array(ur5.tuck)
    planner = OmplPlanner(ur5, chain, [*fence, box("door", 0.3, 0.2, 0.15, 0.62, 0.02, 1.2)], planner_seed=1)
    with pytest.raises(Unreachable, match=r"overlap|found no way"):
        planner.preview(start, MoveGoal(RIGHT, {"planning_time": 0.5}))
    planner.update_scene([box("half", 0.0, 0.0, 0.0, 0.01, 4.0, 4.0)])
    with pytest.raises(Unreachable, match=r"found no way|overlap"):
        planner.preview(start, MoveGoal(RIGHT, {"planning_time": 0.5}))


def test_search_ends_in_time(ur5: Robot, chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything blocked but both ends: no algorithm can find a way."""
    monkeypatch.setattr(FreeSpace, "clear_between", lambda self, a, b: False)
    for seed in (None, 1):
        planner = OmplPlanner(ur5, chain, planner_seed=seed)
        with pytest.raises(Unreachable, match=r"RRTConnect found no way to the pose \(-0.300, 0.500.* within 0.2 s"):
            planner.preview(np.array(ur5.tuck), MoveGoal(LEFT, {"planning_time": 0.2}))


def test_a_narrow_passage_is_taken_without_the_margin(
    ur5: Robot, chain: Chain, left: Vector, monkeypatch: pytest.MonkeyPatch
) -> None:
    margins = []
    between = FreeSpace.clear_between

    def narrow(self: FreeSpace, start: Vector, end: Vector) -> bool:
        margins.append(self.margin)
        return self.margin < 0.0 and between(self, start, end)

    monkeypatch.setattr(FreeSpace, "clear_between", narrow)
    path = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=1).preview(left, MoveGoal(RIGHT, {"planning_time": 0.5}))
    assert path_clearance(chain, path.positions, [TABLE, WALL])[1].distance >= -2 * TOUCH
    assert (margins[0], margins[-1]) == (ompl.MARGIN, -TOUCH)


def test_gets_out_of_a_contact(ur5: Robot, chain: Chain, left: Vector) -> None:
    tip = chain.fk(left)[:3, 3]
    leaning = box("crate", tip[0] - 0.09, tip[1], tip[2], 0.1, 0.1, 0.1)
    inside = path_clearance(chain, left[None, :], [leaning])[1].distance
    assert inside < -0.002
    path = OmplPlanner(ur5, chain, [leaning], planner_seed=1).preview(left, MoveGoal(RIGHT))
    assert path_clearance(chain, path.positions, [leaning])[1].distance >= inside - 1e-4
    assert path_clearance(chain, path.positions[-1:], [leaning])[1].distance >= -TOUCH


def test_stuck_in_a_contact(ur5: Robot, chain: Chain, left: Vector) -> None:
    around = box("block of concrete", 0.0, 0.0, 0.5, 3.0, 3.0, 3.0)
    end = chain.fk(left)
    planner = OmplPlanner(ur5, chain, [around])
    planner._router.clear_ends = lambda start, target: [np.array(ur5.tuck)]  # type: ignore[method-assign]
    with pytest.raises(Unreachable, match=r"where the arm stands .* and block of concrete overlap by .* mm"):
        planner.preview(left, MoveGoal(end))


def test_what_the_hand_holds_stays_clear_too(ur5: Robot, chain: Chain, left: Vector) -> None:
    at = np.eye(4)
    at[2, 3] = 0.2
    stick = AttachedBody("stick", at, (0.03, 0.4, 0.03), sorted({c.link for c in chain.capsules if c.frame == 6}))
    planner = OmplPlanner(ur5, chain, planner_seed=1)
    planner.update_scene([WALL], [stick])
    path = planner.preview(left, MoveGoal(RIGHT))
    assert path_clearance(carrying(chain, [stick]), path.positions, [WALL])[1].distance >= -2 * TOUCH


def test_a_new_scene_counts_from_the_next_move_on(ur5: Robot, chain: Chain, left: Vector) -> None:
    planner = OmplPlanner(ur5, chain, planner_seed=1)
    before = planner.preview(left, MoveGoal(RIGHT))
    planner.update_scene([WALL])
    assert path_clearance(chain, planner.preview(left, MoveGoal(RIGHT)).positions, [WALL])[1].distance >= -2 * TOUCH
    planner.update_scene([])
    assert np.array_equal(planner.preview(left, MoveGoal(RIGHT)).positions, before.positions)


def test_move_sends_one_trajectory_and_waits_for_the_arm(ur5: Robot, chain: Chain, left: Vector) -> None:
    arm = WorkcellArm(ur5, chain, left)
    planner = OmplPlanner(ur5, chain, [TABLE, WALL], planner_seed=2)
    path = planner.move(arm, left, MoveGoal(RIGHT), arm.control)
    assert np.array_equal(path.positions, planner.preview(left, MoveGoal(RIGHT)).positions)
    assert max(pose_error(chain.fk(arm.reading().positions), RIGHT)) < 1e-3
    assert planner.planning_time is not None
    measured = np.array([joints for _, joints in arm.history])
    assert path_clearance(chain, measured, [TABLE, WALL])[1].distance >= -0.002
    speeds = np.diff(measured, axis=0) * ur5.control_rate
    assert np.all(np.abs(speeds) <= chain.velocity_limits)
    rises = np.diff(speeds[::3], axis=0) * ur5.control_rate / 3
    assert np.all(np.abs(rises) <= np.array(ur5.limits.acceleration))


def test_a_stop_ends_the_search(ur5: Robot, chain: Chain, left: Vector, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = WorkcellArm(ur5, chain, left)
    searching = threading.Event()

    def blocked(self: FreeSpace, start: Vector, end: Vector) -> bool:
        searching.set()
        return False

    monkeypatch.setattr(FreeSpace, "clear_between", blocked)
    stopper = threading.Thread(target=lambda: (searching.wait(), arm.control.stop()))
    stopper.start()
    with pytest.raises((Stopped, Unreachable)):
        OmplPlanner(ur5, chain).move(arm, left, MoveGoal(RIGHT, {"planning_time": 3600.0}), arm.control)
    stopper.join()
    assert not arm.history


def test_without_the_package(ur5: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ompl.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PlannerError, match=r"pip install ompl"):
        check_fit(ur5, "ompl")


@pytest.mark.parametrize("seed", ["x", -1, 1.5, True])
def test_wrong_seeds(seed: Any, ur5: Robot, chain: Chain) -> None:
    with pytest.raises(PlannerUnavailable, match=r"planner_seed"):
        OmplPlanner(ur5, chain, planner_seed=seed)


def test_seeds_as_parameters_bring_them(ur5: Robot, chain: Chain) -> None:
    assert not OmplPlanner(ur5, chain, planner_seed="").repeats
    assert OmplPlanner(ur5, chain, planner_seed="12").repeats
    assert OmplPlanner(ur5, chain, planner_seed=0).repeats


def test_nothing_thin_is_stepped_over(chain: Chain, left: Vector) -> None:
    """A plate of paper across the forearm's way, wherever it is."""
    end = left + np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    way = left + np.linspace(0.0, 1.0, 4000)[:, None] * (end - left)
    for share in (0.13, 0.37, 0.5, 0.81):
        tip = chain.fk(left + share * (end - left))[:3, 3]
        thread = box("thread", tip[0], tip[1], tip[2] - 0.05, 0.0005, 0.0005, 0.02)
        assert path_clearance(chain, way, [thread])[1].distance < -TOUCH
        assert not FreeSpace(chain, [thread]).clear_between(left, end)


def test_free_ways_are_found_free(chain: Chain) -> None:
    """As looking very closely says, but for what is a touch either way."""
    random = np.random.default_rng(1)
    obstacles = [TABLE, WALL]
    free = FreeSpace(chain, obstacles)
    counts = {True: 0, False: 0}
    for _ in range(300):
        start = random.uniform(-np.pi, np.pi, 6)
        end = start + random.normal(size=6) * 0.4
        nearest = path_clearance(chain, start + np.linspace(0, 1, 1500)[:, None] * (end - start), obstacles)[1].distance
        if abs(nearest + TOUCH) < 2e-4:
            continue
        found = free.clear_between(start, end)
        assert found == (nearest > -TOUCH)
        counts[found] += 1
    assert min(counts.values()) > 20


def test_corners_are_rounded_where_there_is_room() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    (way,) = rounded(corners, lambda positions: True)
    assert np.array_equal(way[0], corners[0])
    assert np.array_equal(way[-1], corners[-1])
    assert np.min(np.linalg.norm(way - corners[1], axis=1)) > 0.02
    steps = np.linalg.norm(np.diff(way, axis=0), axis=1)
    assert np.ptp(steps) < 0.02 * np.mean(steps)
    parts = rounded(corners, lambda positions: False)
    assert [part[0].tolist() for part in parts] == [[0.0, 0.0], [1.0, 0.0]]
    assert [part[-1].tolist() for part in parts] == [[1.0, 0.0], [1.0, 1.0]]


def test_corners_that_are_one() -> None:
    assert distinct(np.array([[0.0], [0.0], [1.0], [1.0 + 1e-9]])).tolist() == [[0.0], [1.0 + 1e-9]]
