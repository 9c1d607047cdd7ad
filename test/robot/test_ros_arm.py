"""Trajectories that a driver ends early, as far as they need no master; test/rostest has the rest."""

from __future__ import annotations

import threading
from typing import Callable, List, Optional, Tuple

import numpy as np
import pytest

rospy = pytest.importorskip("rospy")

from sensor_msgs.msg import JointState  # noqa: E402

from iter_runner.robot.arm import JointPath, JointReading, Vector  # noqa: E402
from iter_runner.robot.ros_arm import FAR_SHORT, SHORT_TRIES, RosArm  # noqa: E402
from iter_runner.robot.table import load_robot  # noqa: E402
from iter_runner.run_control import Fault, RunControl  # noqa: E402

ROBOT = load_robot("mico-2")
START = np.asarray(ROBOT.tuck)
END = START + np.array([0.4, -0.2, 0.3, 0.1, -0.5, 0.6])


class PassingClock:
    """Goes on by itself while somebody waits."""

    def __init__(self) -> None:
        self.time = 10.0

    def now(self) -> float:
        return self.time

    def wait_until(self, deadline: float, wake: threading.Condition) -> None:
        self.time = deadline


class ShortArm(RosArm):
    """Goes as far on each trajectory as ``shares`` says, then all the way; every reading is a hundredth later.

    Attributes:
        sent: trajectories.
    """

    def __init__(self, *shares: float, turns: int = 0) -> None:
        self.joint_names = tuple(ROBOT.joints)
        self.sent: List[JointPath] = []
        self.halts = 0
        self.pushed: Optional[Vector] = None
        self._robot = ROBOT
        self._clock = PassingClock()
        self._hardware = True
        self._continuous = [True, False, False, True, True, True]
        self._shares = list(shares)
        self._q = START.copy()
        self._turns = 2.0 * np.pi * turns * np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        self._waiting = None

    def reading(self) -> JointReading:
        self._clock.time += 0.01  # type: ignore[attr-defined]
        return JointReading(self._q + self._turns, np.zeros(6), self._clock.now())

    def wait_for_reading(
        self, predicate: Callable[[JointReading], bool], control: RunControl, deadline: Optional[float] = None
    ) -> bool:
        while not predicate(self.reading()):
            control.check()
        return True

    def _run_trajectory(self, path: JointPath, control: RunControl) -> bool:
        self.sent.append(path)
        share = self._shares.pop(0) if self._shares else 1.0
        self._q = self._q + share * (path.positions[-1] - self._q)
        if self.pushed is not None:
            self._q, self.pushed = self.pushed, None
        self._clock.time += float(path.times[-1])  # type: ignore[attr-defined]
        return True

    def halt(self) -> None:
        self.halts += 1


def path() -> JointPath:
    times = np.linspace(0.0, 2.0, 101)
    share = (1.0 - np.cos(np.pi * times / 2.0)) / 2.0
    return JointPath(START + share[:, None] * (END - START), times)


def follow(arm: ShortArm, way: Optional[JointPath] = None) -> RunControl:
    control = RunControl(arm._clock)
    arm.follow(way or path(), control)
    return control


def fault_of(arm: ShortArm) -> Fault:
    with pytest.raises(Fault) as caught:
        follow(arm)
    return caught.value


def test_one_that_arrives_is_sent_once() -> None:
    arm = ShortArm()
    follow(arm)
    assert len(arm.sent) == 1 and arm.halts == 0


@pytest.mark.parametrize("shares", [(0.9,), (0.9, 0.9), (0.5, 0.7, 0.9)])
def test_the_rest_is_sent_until_the_arm_is_there(shares: Tuple[float, ...]) -> None:
    arm = ShortArm(*shares)
    follow(arm)
    assert len(arm.sent) == len(shares) + 1
    np.testing.assert_allclose(arm.reading().positions, END, atol=1e-9)
    for rest in arm.sent[1:]:
        np.testing.assert_array_equal(rest.positions[-1], END)
        speeds = np.diff(rest.positions, axis=0) / np.diff(rest.times)[:, None]
        assert np.max(np.abs(speeds)) < 0.6
    np.testing.assert_allclose(arm.sent[1].positions[0], START + shares[0] * (END - START), atol=1e-9)


def test_one_that_never_arrives_is_a_fault_that_says_which_joint_and_how_far_and_how_often() -> None:
    arm = ShortArm(*[0.3] * 20)
    fault = fault_of(arm)
    assert fault.code == "short_trajectory"
    assert len(arm.sent) == SHORT_TRIES + 1
    left = 0.7**4 * 0.6
    for part in ("mico-2", "joint_6", f"{left:.3f} rad", f"{SHORT_TRIES} times", "resume"):
        assert part in fault.message
    assert arm.halts == 1


def test_what_a_standing_arm_does_not_get_closer_is_left_to_who_judges_the_pose() -> None:
    """A drive's own error, a little above what is looked for: no tries beyond the one that shows it."""
    arm = ShortArm()
    stuck = END - np.array([0, 0, 0, 0, 0, 0.8 * FAR_SHORT])
    run = arm._run_trajectory

    def sticks(way: JointPath, control: RunControl) -> bool:
        done = run(way, control)
        arm._q = stuck.copy()
        return done

    arm._run_trajectory = sticks  # type: ignore[method-assign]
    follow(arm)
    assert len(arm.sent) == 2 and arm.halts == 0


def test_an_arm_that_was_moved_elsewhere_is_not_sent_back() -> None:
    arm = ShortArm()
    arm.pushed = (START + END) / 2 + np.array([0.0, 0.3, 0.3, 0.0, 0.0, 0.0])
    fault = fault_of(arm)
    assert fault.code == "path_tolerance" and "resume" in fault.message
    assert len(arm.sent) == 1


def test_a_trajectory_that_begins_elsewhere_is_not_sent() -> None:
    arm = ShortArm()
    arm._q = START + np.array([0.0, 0.0, 0.2, 0.0, 0.0, 0.0])
    fault = fault_of(arm)
    assert fault.code == "path_tolerance" and "joint_3" in fault.message
    assert arm.sent == []


@pytest.mark.parametrize("turns", [-1, 1, 2])
def test_turns_that_the_driver_counts_otherwise_are_no_way(turns: int) -> None:
    arm = ShortArm(0.9, turns=turns)
    follow(arm)
    assert len(arm.sent) == 2
    np.testing.assert_allclose(arm.sent[1].positions[0], START + 0.9 * (END - START), atol=1e-9)


# Turns of continuous joints.


class ListeningArm(RosArm):
    """Takes joint states without a master."""

    def __init__(self) -> None:
        self.joint_names = tuple(ROBOT.joints)
        self._robot = ROBOT
        self._clock = PassingClock()
        self._hardware = True
        self._continuous = [True, False, False, True, True, True]
        self._turns = np.zeros(6)
        self._reading = None
        self._columns = {}
        self._waiting = None

    def hear(self, positions: Vector) -> Vector:
        message = JointState(name=list(self.joint_names), position=positions.tolist(), velocity=[0.0] * 6)
        self._on_joint_state(message)
        return self.reading().positions

    def reading(self) -> JointReading:
        assert self._reading is not None
        return self._reading


@pytest.mark.parametrize("turns", [[0, 0, 0, 0, 0, 0], [1, 0, 0, -1, 0, 1], [0, 0, 0, 2, -3, 1]])
def test_wherever_the_driver_counts_from_the_arm_is_seen_on_the_turns_of_its_tuck_pose(turns: List[int]) -> None:
    arm = ListeningArm()
    counted = START + 2.0 * np.pi * np.array(turns)
    assert arm.hear(counted) == pytest.approx(START, abs=1e-12)
    moved = END - START
    assert arm.hear(counted + moved) == pytest.approx(END, abs=1e-12)
    assert arm._as_driver_counts(END) == pytest.approx(counted + moved, abs=1e-12)


def test_a_joint_that_turns_on_and_on_is_followed() -> None:
    arm = ListeningArm()
    for turned in np.arange(0.0, 10.0, 0.1):
        assert arm.hear(START + np.array([turned, 0, 0, 0, 0, 0]))[0] == pytest.approx(START[0] + turned)


def test_a_driver_that_wraps_its_joints_or_was_started_again_makes_no_jump() -> None:
    arm = ListeningArm()
    arm.hear(START)
    before = arm.hear(START + np.array([0, 0, 0, 3.2, 0, 0]))
    assert arm.hear(START + np.array([0, 0, 0, 3.2 - 2.0 * np.pi, 0, 0])) == pytest.approx(before, abs=1e-12)
    assert arm._as_driver_counts(before)[3] == pytest.approx(START[3] + 3.2 - 2.0 * np.pi)
