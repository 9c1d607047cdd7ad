"""A Kinova's joint velocities, as far as they need no master; test/rostest has the rest."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rospy")

from iter_runner.robot.ros_kinova import SPEED_WINDOW, Speeds


@pytest.mark.parametrize("period", [0.01, 0.1, 0.25])
def test_a_joint_that_moves_evenly_is_as_fast_as_it_is(period: float) -> None:
    speeds = Speeds()
    for index in range(50):
        moment = 5.0 + index * period
        measured = speeds.update(moment, np.array([0.3, -0.2]) * moment)
        if moment >= 5.0 + max(period, SPEED_WINDOW):
            np.testing.assert_allclose(measured, [0.3, -0.2], atol=1e-9)


def test_the_noise_of_a_standing_joint_is_no_motion() -> None:
    speeds = Speeds()
    random = np.random.default_rng(0)
    for index in range(200):
        measured = speeds.update(index * 0.01, 1.0 + random.uniform(-5e-5, 5e-5, 6))
        if index > 10:
            assert np.max(np.abs(measured)) < 0.002


def test_the_first_reading_and_a_clock_that_begins_anew_are_no_motion() -> None:
    speeds = Speeds()
    assert not speeds.update(100.0, np.ones(2)).any()
    speeds.update(100.1, 2 * np.ones(2))
    assert not speeds.update(3.0, np.zeros(2)).any()
