"""Planners on an arm without a closed form: straight lines, exact ends, the nearest turn, the same bits."""

from __future__ import annotations

from typing import List

import numpy as np
import pytest
from goals import pose
from numpy.typing import NDArray

from iter_runner.kinematics import Chain, RelaxedIK, clearance, load_chain
from iter_runner.planners.base import MoveGoal, Planner, Unreachable, path_hash
from iter_runner.planners.inverse import Branches
from iter_runner.planners.line import Line, pose_error
from iter_runner.planners.table import PlannerError, load_planner
from iter_runner.robot.arm import JointPath
from iter_runner.robot.table import Robot, load_robot

Array = NDArray[np.float64]


@pytest.fixture(scope="module", params=["mico-2", "mico-robotiq85"])
def robot(request: pytest.FixtureRequest) -> Robot:
    return load_robot(request.param)


@pytest.fixture(scope="module")
def chain(robot: Robot) -> Chain:
    return load_chain(robot)


@pytest.fixture(params=["relaxed_ik", "static"])
def planner(request: pytest.FixtureRequest, robot: Robot, chain: Chain) -> Planner:
    return load_planner(request.param, robot, chain)


def goals(count: int, seed: int) -> List[Array]:
    random = np.random.default_rng(seed)
    lower, upper = [-0.28, 0.2, 0.02, -1.5], [0.28, 0.38, 0.25, 1.5]
    return [pose(*random.uniform(lower, upper)) for _ in range(count)]


def paths_to(planner: Planner, robot: Robot, targets: List[Array]) -> List[JointPath]:
    paths, q = [], np.array(robot.tuck)
    for target in targets:
        paths.append(planner.preview(q, MoveGoal(target)))
        q = paths[-1].positions[-1]
    return paths


def test_moves_are_straight_exact_and_within_limits(planner: Planner, robot: Robot, chain: Chain) -> None:
    targets = goals(12, 1)
    for path, target in zip(paths_to(planner, robot, targets), targets):
        places = chain.fk(path.positions)[:, :3, 3]
        way = places[-1] - places[0]
        along = way / np.linalg.norm(way)
        straight = places[0] + np.outer((places - places[0]) @ along, along)
        assert np.linalg.norm(places - straight, axis=1).max() < 1e-3
        assert pose_error(chain.fk(path.positions[-1]), target) < (1e-8, 1e-8)
        speeds = np.abs(np.diff(path.positions, axis=0)) / np.diff(path.times)[:, None]
        assert np.all(speeds <= chain.velocity_limits)
        assert chain.within_limits(path.positions, 1e-9)
        assert clearance(chain, path.positions[-1]).distance > 0.01


def test_the_stream_ticks_at_exactly_100_hz(robot: Robot, chain: Chain) -> None:
    path = load_planner("relaxed_ik", robot, chain).preview(np.array(robot.tuck), MoveGoal(goals(1, 2)[0]))
    assert np.diff(path.times) == pytest.approx(0.01, abs=1e-12)


def test_the_same_bits_from_another_planner(planner: Planner, robot: Robot, chain: Chain) -> None:
    targets = goals(5, 3)
    other = load_planner(planner.name, robot, chain)
    first, again = ([path_hash(path.positions) for path in paths_to(one, robot, targets)] for one in (planner, other))
    assert first == again


@pytest.mark.parametrize("turns", [-1, 0, 1])
def test_no_joint_makes_a_full_turn_extra(planner: Planner, robot: Robot, chain: Chain, turns: int) -> None:
    start = np.array(robot.tuck)
    start[[3, 5]] += 2 * np.pi * turns
    start = np.clip(start, chain.lower, chain.upper)
    target = chain.fk(start)
    target[:3, 3] += 0.1, 0.02, -0.05
    path = planner.preview(start, MoveGoal(target))
    assert np.abs(path.positions[-1] - start).max() < np.pi / 2


def test_a_way_in_joint_space_is_found_where_there_is_no_line(planner: Planner, robot: Robot, chain: Chain) -> None:
    """From one side of the base to the other the line goes through the base."""
    target = pose(0.0, -0.3, 0.2)
    path = planner.preview(np.array(robot.tuck), MoveGoal(target))
    assert pose_error(chain.fk(path.positions[-1]), target) < (1e-8, 1e-8)
    assert min(clearance(chain, q).distance for q in path.positions) > 0.0


def test_out_of_reach_says_by_how_much(planner: Planner, robot: Robot) -> None:
    with pytest.raises(Unreachable, match=r"\(1\.000, 0\.300, 0\.200\) m in base_link is out of reach: .* mm and"):
        planner.preview(np.array(robot.tuck), MoveGoal(pose(1.0, 0.3, 0.2)))


def test_branches_follow_and_stop(chain: Chain, robot: Robot) -> None:
    start = np.array(robot.tuck)
    line = Line(chain.fk(start), pose(0.9, 0.3, 0.2))
    way, exact = Branches(chain).follow(line.poses(np.linspace(0.0, 1.0, 60)), start)
    assert way.shape == (60, 6)
    reached = int(np.argmin(exact))
    assert 5 < reached < 55 and not exact[reached:].any()
    np.testing.assert_array_equal(way[reached], way[reached - 1])


def test_the_controllers_own_planner_is_refused_by_name(robot: Robot, chain: Chain) -> None:
    with pytest.raises(PlannerError, match=r"relaxed_ik, static"):
        load_planner("ur", robot, chain)


def test_relaxed_ik_keeps_to_a_slow_line(chain: Chain, robot: Robot) -> None:
    solver = RelaxedIK(chain, weights=robot.objectives, period=1.0 / robot.stream_rate)
    branches, q = Branches(chain), np.array(robot.tuck)
    errors = []
    for target in goals(6, 4):
        line = Line(chain.fk(q), target)
        solver.reset(q)
        count = line.intervals(0.0005, 0.002)
        for wanted in line.poses(np.linspace(0.0, 1.0, count)):
            errors.append(pose_error(chain.fk(solver.solve(wanted)), wanted))
        q = branches.solve(target, solver.solve(target))[0].positions
    position, turn = np.array(errors).T
    assert np.median(position) < 5e-5 and position.max() < 5e-4
    assert turn.max() < 5e-4
