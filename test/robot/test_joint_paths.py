from __future__ import annotations

import numpy as np

from iter_runner.robot.arm import JointPath
from iter_runner.robot.joint_paths import (
    REJOIN_SPEED,
    central_velocities,
    closest_time,
    distance_from,
    in_turns_of,
    nearest_turns,
    remaining_path,
    steps_between,
)


def path() -> JointPath:
    times = np.linspace(0.0, 2.0, 101)
    share = (1.0 - np.cos(np.pi * times / 2.0)) / 2.0
    return JointPath(share[:, None] * np.array([1.0, -0.5]), times)


def test_velocities_are_zero_at_the_ends_and_right_between() -> None:
    velocities = central_velocities(path())
    np.testing.assert_array_equal(velocities[[0, -1]], 0.0)
    np.testing.assert_allclose(velocities[50], np.array([1.0, -0.5]) * np.pi / 4, rtol=1e-3)


def test_the_rest_goes_on_along_the_same_path_from_standstill() -> None:
    whole = path()
    stopped = np.array([0.31, -0.15])
    rest = remaining_path(whole, stopped)
    np.testing.assert_array_equal(rest.positions[0], stopped)
    np.testing.assert_array_equal(rest.positions[1:], whole.positions[-(len(rest.times) - 1) :])
    assert np.all(np.diff(rest.times) > 0)
    speeds = np.diff(rest.positions, axis=0) / np.diff(rest.times)[:, None]
    assert np.max(np.abs(speeds)) <= np.max(np.abs(central_velocities(whole))) * 1.01
    assert np.max(np.abs(speeds[0])) < 0.25


def test_the_closest_time_of_a_point_on_the_path_is_its_own() -> None:
    whole = path()
    assert closest_time(whole, whole.positions[37]) == whole.times[37]


def test_nothing_is_left_at_the_end() -> None:
    whole = path()
    rest = remaining_path(whole, whole.positions[-1])
    assert len(rest.times) == 2
    np.testing.assert_array_equal(rest.positions[-1], whole.positions[-1])


def test_an_arm_off_its_path_comes_back_slowly() -> None:
    whole = path()
    aside = whole.positions[-1] + np.array([0.05, 0.1])
    rest = remaining_path(whole, aside)
    speeds = np.diff(rest.positions, axis=0) / np.diff(rest.times)[:, None]
    assert np.max(np.abs(speeds)) <= REJOIN_SPEED + 1e-9


def test_the_distance_from_a_path() -> None:
    whole = path()
    assert distance_from(whole, (whole.positions[30] + whole.positions[31]) / 2) < 1e-9
    across = np.array([0.5, 1.0]) / np.linalg.norm([0.5, 1.0])
    assert abs(distance_from(whole, whole.positions[50] + 0.1 * across) - 0.1) < 1e-6


def test_turns_are_counted_where_the_path_passes() -> None:
    """A path of more than half a turn: neither its start nor its end says by itself which turn is meant."""
    times = np.linspace(0.0, 4.0, 201)
    long = JointPath(np.column_stack([1.5 * times, 0.1 * times]), times)
    for index in (0, 20, 100, 190):
        where = long.positions[index]
        turned = where + np.array([4 * np.pi, 0.0])
        np.testing.assert_allclose(in_turns_of(long, turned, [True, False]), where, atol=1e-12)
    limited = long.positions[20] + np.array([2 * np.pi, 0.0])
    np.testing.assert_array_equal(in_turns_of(long, limited, [False, False]), limited)


def test_the_nearest_turn_is_at_most_half_a_turn_away() -> None:
    turned = nearest_turns(np.array([0.1, 0.1]), np.array([-6.0, -6.0]), [True, False])
    np.testing.assert_allclose(turned, [0.1 - 2 * np.pi, 0.1])


def test_a_slow_target_is_one_message_where_the_transport_takes_its_pace() -> None:
    before, target = np.zeros(2), np.array([0.3, -0.6])
    assert [(step.tolist(), lasts) for step, lasts in steps_between(before, target, 0.03, None)] == [
        (target.tolist(), 0.03)
    ]


def test_a_slow_target_is_several_messages_where_the_transport_has_its_own_pace() -> None:
    before, target = np.zeros(2), np.array([0.3, -0.6])
    steps = list(steps_between(before, target, 0.0301, 0.01))
    np.testing.assert_allclose([step for step, _ in steps], [[0.1, -0.2], [0.2, -0.4], [0.3, -0.6]])
    assert [lasts for _, lasts in steps] == [0.01] * 3
    assert steps[-1][0] is target
    assert len(list(steps_between(before, target, 0.002, 0.01))) == 1
