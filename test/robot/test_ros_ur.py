"""The arm behind its driver, as far as it needs no master; test/rostest has the rest."""

from __future__ import annotations

import threading

import numpy as np
import pytest

rospy = pytest.importorskip("rospy")

from iter_runner.robot.arm import JointReading  # noqa: E402
from iter_runner.robot.ros_ur import URArm  # noqa: E402


class StandingClock:
    """The clock of a simulator that has died."""

    def now(self) -> float:
        return 100.0

    def wait_until(self, deadline: float, wake: threading.Condition) -> None:
        raise AssertionError("nobody waits here")


@pytest.mark.parametrize(("time", "is_ready"), [(99.9, True), (100.2, True), (104.0, False)])
def test_an_arm_is_not_ready_before_the_clock_of_its_new_simulator_has_come(time: float, is_ready: bool) -> None:
    arm = object.__new__(URArm)
    arm._clock, arm._hardware = StandingClock(), False
    arm._reading = JointReading(np.zeros(6), np.zeros(6), time)
    arm._robot_mode = None
    arm._driver = NamedTopics()  # type: ignore[assignment]
    assert ("clock" not in arm.what_is_missing()) == is_ready


class NamedTopics:
    """Driver names."""

    def topic(self, purpose: str) -> str:
        return purpose
