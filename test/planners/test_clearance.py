"""Nothing is driven into: clear configurations and ways are taken where there are any, and else nothing moves."""

from __future__ import annotations

from typing import Iterator, List, Tuple

import numpy as np
import pytest
from goals import pose, reach_of, spread
from numpy.typing import NDArray
from workcell_arm import WorkcellArm

from iter_runner.kinematics import Box, Chain, clearance, contact_on_way
from iter_runner.planners.base import MoveGoal, Unreachable
from iter_runner.planners.inverse import Branches
from iter_runner.planners.line import pose_error
from iter_runner.planners.routes import TOUCH
from iter_runner.planners.table import load_planner
from iter_runner.robot.table import Robot

Array = NDArray[np.float64]

PLANNERS = ("relaxed_ik", "static", "ur")
DEEPEST = 1e-3
"""m that a stream may overlap."""


def at(x: float, y: float, z: float) -> Array:
    result = np.eye(4)
    result[:3, 3] = x, y, z
    return result


def workcell(robot: Robot) -> List[Box]:
    """A table in front of the arm, and a shelf above it."""
    scale = {"ur5": 1.0, "ur3e": 0.55}[robot.name]
    table = Box("tabletop", at(0.0, 0.55 * scale, -0.06), (1.6 * scale, 0.7 * scale, 0.1))
    height = {"ur5": 0.62, "ur3e": 0.47}[robot.name]
    return [table, Box("shelf", at(0.0, 0.5 * scale, height), (scale, 0.5 * scale, 0.04))]


def starts_that_lead_into_a_collision(robot: Robot, chain: Chain, boxes: List[Box]) -> Iterator[Tuple[Array, Array]]:
    """(start, goal): the line from the clear start ends inside something, where another configuration is clear."""
    branches = Branches(chain)
    for goal in spread(reach_of(robot.name), 60, seed=3):
        ends = [end.positions for end in branches.solve(goal, np.array(robot.tuck)) if end.exact]
        distances = np.array([clearance(chain, end, boxes).distance for end in ends])
        if not len(ends) or np.max(distances) < 0.005:
            continue
        above = goal.copy()
        above[2, 3] += 0.15
        for end, distance in zip(ends, distances):
            if distance > -0.01:
                continue
            near = [start.positions for start in branches.solve(above, end) if start.exact]
            near = [start for start in near if np.max(np.abs(start - end)) < 1.2]
            if near and clearance(chain, near[0], boxes).distance > 0.0:
                yield near[0], goal
                break


@pytest.mark.parametrize("name", PLANNERS)
def test_a_clear_configuration_is_taken_where_the_nearest_is_inside_something(
    name: str, robot: Robot, chain: Chain
) -> None:
    boxes = workcell(robot)
    planner = load_planner(name, robot, chain, boxes)
    planned = 0
    for start, goal in starts_that_lead_into_a_collision(robot, chain, boxes):
        try:
            path = planner.preview(start, MoveGoal(goal))
        except Unreachable as error:
            assert "overlap by" in str(error)
            continue
        planned += 1
        assert contact_on_way(chain, path.positions, boxes, DEEPEST) is None
        assert clearance(chain, path.positions[-1], boxes).distance >= -TOUCH
        assert pose_error(chain.fk(path.positions[-1]), goal)[0] < 1e-6
    assert planned >= 3


@pytest.mark.parametrize("name", PLANNERS)
def test_no_path_leads_into_anything(name: str, robot: Robot, chain: Chain) -> None:
    boxes = workcell(robot)
    planner = load_planner(name, robot, chain, boxes)
    q, planned = np.array(robot.tuck), 0
    for goal in spread(reach_of(robot.name), 40, seed=8):
        try:
            path = planner.preview(q, MoveGoal(goal))
        except Unreachable:
            continue
        planned += 1
        assert contact_on_way(chain, path.positions, boxes, DEEPEST) is None
        q = path.positions[-1]
    assert planned >= 12


@pytest.mark.parametrize("name", PLANNERS)
def test_a_goal_inside_an_obstacle_names_the_bodies_and_moves_nothing(
    name: str, robot: Robot, chain: Chain, arm: WorkcellArm
) -> None:
    scale = {"ur5": 1.0, "ur3e": 0.55}[robot.name]
    planner = load_planner(name, robot, chain, workcell(robot))
    goal = MoveGoal(pose(0.0, 0.55 * scale, 0.0))
    with pytest.raises(Unreachable, match=r"\w+_link and tabletop overlap by \d+ mm in the best of its \d"):
        planner.move(arm, np.array(robot.tuck), goal, arm.control)
    assert arm.scripts == []
    assert arm.controller.motions == 0


@pytest.mark.parametrize("name", PLANNERS)
def test_fingers_that_touch_a_table_by_a_hair_may(name: str, robot: Robot, chain: Chain) -> None:
    start = load_planner(name, robot, chain).preview(np.array(robot.tuck), MoveGoal(house_pose(robot, 0.3)))
    free = load_planner(name, robot, chain).preview(start.positions[-1], MoveGoal(house_pose(robot, 0.2)))
    for depth, allowed in ((4e-4, True), (2e-3, False)):
        planner = load_planner(name, robot, chain, [table_under(chain, free.positions[-1], depth)])
        if allowed:
            planner.preview(start.positions[-1], MoveGoal(house_pose(robot, 0.2)))
        else:
            with pytest.raises(Unreachable, match=r"table overlap by 2\.0 mm"):
                planner.preview(start.positions[-1], MoveGoal(house_pose(robot, 0.2)))


@pytest.mark.parametrize("name", PLANNERS)
def test_an_arm_in_contact_may_get_out_but_not_deeper(name: str, robot: Robot, chain: Chain) -> None:
    free = load_planner(name, robot, chain)
    q = np.array(robot.tuck)
    for z in (0.3, 0.2):
        q = free.preview(q, MoveGoal(house_pose(robot, z))).positions[-1]
    boxes = [table_under(chain, q, 0.02)]
    planner = load_planner(name, robot, chain, boxes)
    path = planner.preview(q, MoveGoal(house_pose(robot, 0.3)))
    distances = np.array([clearance(chain, row, boxes).distance for row in path.positions])
    assert distances[0] == pytest.approx(-0.02, abs=1e-4)
    assert np.all(np.diff(distances[distances < 0.0]) > -1e-4)
    assert distances[-1] > 0.0
    for z in (0.2, 0.19):
        with pytest.raises(Unreachable, match="table overlap by"):
            planner.preview(q, MoveGoal(house_pose(robot, z)))


def house_pose(robot: Robot, z: float) -> Array:
    side = 0.35 if robot.name == "ur5" else 0.25
    return pose(-side, side, z)


def table_under(chain: Chain, q: Array, depth: float) -> Box:
    """A small table that the hand at ``q`` is ``depth`` m inside of."""
    x, y, z = chain.fk(q)[:3, 3]
    low, high = z - 0.4, z

    def inside(top: float) -> float:
        return -clearance(chain, q, [Box("table", at(x, y, top - 0.1), (0.2, 0.2, 0.2))]).distance

    for _ in range(60):
        top = 0.5 * (low + high)
        low, high = (top, high) if inside(top) < depth else (low, top)
    return Box("table", at(x, y, low - 0.1), (0.2, 0.2, 0.2))


def test_a_contact_counts_for_each_two_bodies(robot: Robot, chain: Chain) -> None:
    """Who leaves one obstacle does not get into another meanwhile, though that one is not as deep."""
    tuck = np.array(robot.tuck)
    tip = chain.fk(tuck)[:3, 3]
    away = tuck + np.array([0.4, 0.0, 0.0, 0.0, 0.0, 0.0])
    there = chain.fk(away)[:3, 3]
    left = Box("left", at(*tip), (0.08, 0.08, 0.08))
    right = Box("right", at(*there), (0.02, 0.02, 0.02))
    way = tuck + np.linspace(0.0, 1.0, 41)[:, None] * (away - tuck)
    assert contact_on_way(chain, way, [left]) is None
    assert contact_on_way(chain, way[::-1], [left]) is not None
    found = contact_on_way(chain, way, [left, right])
    assert found is not None
    assert found.b == "right"
    assert 0.0 < found.depth < -clearance(chain, tuck, [left]).distance
