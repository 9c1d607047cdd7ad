"""Ways around what stands in the way: found where there is one, the same every time, and clear of everything."""

from __future__ import annotations

from typing import List, Sequence, Tuple

import numpy as np
import pytest

from iter_runner.kinematics import (
    AttachedBody,
    Box,
    Chain,
    carrying,
    clearance,
    contact_on_way,
    load_chain,
    path_clearance,
)
from iter_runner.kinematics.rotations import pose
from iter_runner.planners.base import MoveGoal, Planner, Unreachable, path_hash
from iter_runner.planners.detour import WORK, find_detour
from iter_runner.planners.free_space import FreeSpace
from iter_runner.planners.routes import TOUCH, Router
from iter_runner.planners.table import load_planner
from iter_runner.robot.arm import Vector
from iter_runner.robot.table import Robot, load_robot

DOWN = (1.0, 0.0, 0.0, 0.0)
FLOOR = Box("floor", pose((0.0, 0.0, -0.06)), (2.0, 2.0, 0.02))
CEILING = Box("ceiling", pose((0.0, 0.0, 0.75)), (2.0, 2.0, 0.02))
# Of these the straight line and the straight way in joint space meet something, whatever the arm's branch.
LOW = [
    FLOOR,
    CEILING,
    Box("crate", pose((0.0, 0.45, 0.1)), (0.15, 0.2, 0.3)),
    Box("back", pose((0.0, -0.4, 0.4)), (0.02, 0.6, 0.7)),
]
LEFT, RIGHT = pose((-0.25, 0.42, 0.2), DOWN), pose((0.25, 0.42, 0.2), DOWN)


@pytest.fixture(name="robot", scope="module")
def _robot() -> Robot:
    return load_robot("ur5")


@pytest.fixture(name="chain", scope="module")
def _chain(robot: Robot) -> Chain:
    return load_chain(robot)


def planner_at_left(name: str, robot: Robot, chain: Chain) -> Tuple[Planner, Vector]:
    """A planner, and where the arm stands at LEFT."""
    planner = load_planner(name, robot, chain)
    start = planner.preview(np.array(robot.tuck), MoveGoal(LEFT)).positions[-1]
    return planner, start


@pytest.mark.parametrize("name", ["relaxed_ik", "static", "ur"])
def test_a_box_between_two_moves_is_passed_and_clear_of(name: str, robot: Robot, chain: Chain) -> None:
    planner, start = planner_at_left(name, robot, chain)
    planner.update_scene(LOW)
    path = planner.preview(start, MoveGoal(RIGHT))
    np.testing.assert_allclose(chain.fk(path.positions[-1]), RIGHT, atol=1e-6)
    assert contact_on_way(chain, path.positions, LOW, TOUCH + 1e-6) is None
    assert np.all(np.diff(path.times) > 0)
    assert float(np.max(np.abs(np.diff(path.positions, axis=0)))) < 0.3
    again, _ = planner_at_left(name, robot, chain)
    again.update_scene(LOW)
    assert path_hash(again.preview(start, MoveGoal(RIGHT)).positions) == path_hash(path.positions)
    planner.update_scene([])
    again.update_scene([])
    free = load_planner(name, robot, chain).preview(start, MoveGoal(RIGHT))
    assert path_hash(planner.preview(start, MoveGoal(RIGHT)).positions) == path_hash(free.positions)
    assert path_hash(again.preview(start, MoveGoal(RIGHT)).positions) == path_hash(free.positions)


def test_the_way_is_bent_over_what_stands_on_the_line(robot: Robot, chain: Chain) -> None:
    _, start = planner_at_left("static", robot, chain)
    routes = Router(robot, chain, LOW).routes(start, RIGHT)
    assert [route.line is not None for route in routes] == [True, True, True]
    assert "crate" in routes[0].reason
    lifted = chain.fk(routes[0].joints[-1])
    assert lifted[2, 3] > LEFT[2, 3] + 0.05
    np.testing.assert_allclose(lifted[:2, 3], LEFT[:2, 3], atol=1e-9)
    for before, after in zip(routes, routes[1:]):
        np.testing.assert_array_equal(before.joints[-1], after.joints[0])


def test_what_the_hand_carries_goes_higher(robot: Robot, chain: Chain) -> None:
    _, start = planner_at_left("static", robot, chain)
    # The fingers alone pass above the crate, a bar that hangs from them doesn't.
    crate = [FLOOR, Box("crate", pose((0.0, 0.42, -0.1)), (0.15, 0.2, 0.2))]
    bar = AttachedBody("bar", pose((0.0, 0.0, 0.17)), (0.03, 0.03, 0.1))
    router = Router(robot, chain, crate)
    assert [route.line is not None for route in router.routes(start, RIGHT)] == [True]
    router.update_scene(crate, [bar])
    routes = router.routes(start, RIGHT)
    way = np.vstack([route.joints for route in routes])
    assert routes[0].reason
    assert "bar" in routes[0].reason
    assert "crate" in routes[0].reason
    assert contact_on_way(carrying(chain, [bar]), way, crate, TOUCH + 1e-6) is None


@pytest.mark.parametrize("name", ["relaxed_ik", "static", "ur"])
def test_a_goal_inside_something_names_both(name: str, robot: Robot, chain: Chain) -> None:
    planner, start = planner_at_left(name, robot, chain)
    planner.update_scene([FLOOR, Box("crate", RIGHT, (0.3, 0.3, 0.3))])
    with pytest.raises(Unreachable, match=r"at the pose .* crate overlap by .* configurations"):
        planner.preview(start, MoveGoal(RIGHT))


def forest(seed: int, chain: Chain, free: Sequence[Vector]) -> List[Box]:
    """Posts all over the place, but for where the arm is to stand."""
    generator = np.random.default_rng(seed)
    places = generator.uniform((-0.6, -0.6), (0.6, 0.6), (30, 2))
    posts = [Box(f"post {k}", pose((x, y, 0.4)), (0.04, 0.04, 0.9)) for k, (x, y) in enumerate(places)]
    return [FLOOR, *(post for post in posts if all(clearance(chain, q, [post]).distance > 0.03 for q in free))][:9]


@pytest.mark.parametrize("seed", range(6))
def test_a_search_finds_clear_ways_and_the_same_ones_every_time(seed: int, robot: Robot, chain: Chain) -> None:
    start = np.array(robot.tuck)
    ends = [start + np.array([turn, 0.3, -0.4, 0.2, 0.1, 0.0]) for turn in (1.8, -1.8)]
    obstacles = forest(seed, chain, [start, *ends])
    space = FreeSpace(chain, obstacles)
    way = find_detour(chain, space, start, ends)
    if way is None:
        assert space.positions_checked > WORK
        return
    np.testing.assert_array_equal(way[0], start)
    assert any(np.array_equal(way[-1], end) for end in ends)
    _dense_is_clear(chain, way, obstacles)
    again = find_detour(chain, FreeSpace(chain, obstacles), start, ends)
    assert again is not None
    np.testing.assert_array_equal(np.array(again), np.array(way))


def _dense_is_clear(chain: Chain, way: Sequence[Vector], obstacles: Sequence[Box]) -> None:
    for a, b in zip(way[:-1], way[1:]):
        dense = a + np.linspace(0.0, 1.0, 300)[:, None] * (b - a)
        assert path_clearance(chain, dense, obstacles)[1].distance >= -TOUCH - 1e-6


def test_where_no_way_is_the_search_ends_by_its_work(robot: Robot, chain: Chain) -> None:
    start = np.array(robot.tuck)
    cage = [Box(f"wall {angle:.1f}", pose((0.0, 0.0, 0.5)) @ _turned(angle), (0.02, 2.0, 1.4)) for angle in (0.5, 2.2)]
    cage = [Box(wall.name, wall.pose, wall.size) for wall in cage]
    space = FreeSpace(chain, cage)
    assert find_detour(chain, space, start, [start + np.array([np.pi, 0.0, 0.0, 0.0, 0.0, 0.0])]) is None
    assert space.positions_checked < 2 * WORK


def _turned(angle: float) -> np.ndarray:
    return pose((0.0, 0.0, 0.0), (0.0, 0.0, np.sin(angle / 2), np.cos(angle / 2)))
