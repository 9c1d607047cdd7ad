from __future__ import annotations

import numpy as np
import pytest

from iter_runner.kinematics import Box, Chain, load_chain
from iter_runner.planners.tuck import lowest_points, nearest_turn, slow_path, straight_way, what_is_unsafe
from iter_runner.robot.table import load_robot, robot_names


@pytest.fixture(scope="module")
def ur5() -> Chain:
    return load_chain("ur5")


TUCK = np.array(load_robot("ur5").tuck)
OFFSET = np.array([0.5, 0.2, -0.3, 0.2, -0.3, 0.3])


@pytest.mark.parametrize("name", robot_names())
def test_every_row_is_tucked_from_nearby(name: str) -> None:
    robot = load_robot(name)
    chain, tuck = load_chain(robot), np.array(robot.tuck)
    way = straight_way(tuck + OFFSET, tuck)
    assert what_is_unsafe(chain, way, table_height=0.0) == ""
    path = slow_path(chain, way, speed=0.4)
    speeds = np.diff(path.positions, axis=0) / np.diff(path.times)[:, None]
    assert np.max(np.abs(speeds)) < 0.41
    np.testing.assert_array_equal(path.positions[-1], tuck)


def test_a_way_through_itself_names_the_bodies(ur5: Chain) -> None:
    unsafe = what_is_unsafe(ur5, straight_way(np.array([-1.89, -1.0, -2.58, -2.82, 1.64, -0.48]), TUCK))
    assert "upper_arm_link and robotiq_85_right_finger_tip_link collide" in unsafe
    assert "% of the way" in unsafe


def test_a_way_below_the_table_says_how_high(ur5: Chain) -> None:
    way = straight_way(np.array([-0.78, -1.77, -1.99, -2.57, 2.22, -0.74]), TUCK)
    assert what_is_unsafe(ur5, way) == ""
    assert "is at a height of 0.1" in what_is_unsafe(ur5, way, table_height=0.11)


def test_an_arm_below_the_table_may_come_up(ur5: Chain) -> None:
    low = TUCK + np.array([0.0, -0.7, 0.0, 0.0, 0.0, 0.0])
    assert min(height for link, height in lowest_points(ur5, low).items() if link.startswith("robotiq")) < 0.1
    assert what_is_unsafe(ur5, straight_way(low, TUCK), table_height=0.1) == ""
    assert "below the table" in what_is_unsafe(ur5, straight_way(TUCK, low), table_height=0.1)


def test_an_obstacle_on_the_way_is_named(ur5: Chain) -> None:
    start = TUCK + np.array([1.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    middle = ur5.fk(0.5 * (start + TUCK))
    assert "crate collide" in what_is_unsafe(ur5, straight_way(start, TUCK), None, [Box("crate", middle, (0.1,) * 3)])


def test_joints_outside_their_limits_are_named(ur5: Chain) -> None:
    beyond = np.array(TUCK)
    beyond[0] = -6.5
    assert "shoulder_pan_joint is at -6." in what_is_unsafe(ur5, straight_way(TUCK, beyond))


def test_only_continuous_joints_take_the_nearest_turn() -> None:
    measured = TUCK + 2.0 * np.pi
    target = nearest_turn(TUCK, measured, [True, False, False, False, False, True])
    np.testing.assert_allclose(target - TUCK, [2 * np.pi, 0, 0, 0, 0, 2 * np.pi])
