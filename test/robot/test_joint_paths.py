from __future__ import annotations

import numpy as np

from iter_runner.robot.arm import JointPath
from iter_runner.robot.joint_paths import central_velocities, closest_time, remaining_path


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
