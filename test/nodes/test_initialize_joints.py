"""What the node does with an arm that ends short, or whose news come late; no master."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

import numpy as np
import pytest

from iter_runner.kinematics import load_chain
from iter_runner.nodes import initialize_joints
from iter_runner.nodes.initialize_joints import TRIES, InitializeJoints
from iter_runner.robot.arm import JointPath, JointReading, Vector
from iter_runner.robot.table import load_robot
from iter_runner.run_control import Fault, RunControl, Stopped

ROBOT = load_robot("ur5")
TUCK = np.array(ROBOT.tuck)
START = TUCK + 0.3


class SimulatedClock:
    def __init__(self) -> None:
        self.time = 10.0

    def now(self) -> float:
        return self.time


class LateArm:
    """An arm that is somewhere at once and says so ``lag`` readings later.

    Args:
        shares: how much of its way each motion does.
    """

    def __init__(self, clock: SimulatedClock, shares: List[float], lag: int = 0) -> None:
        self._clock = clock
        self._shares = shares
        self._lag = lag
        self._late: List[JointReading] = []
        self._news = JointReading(START, np.zeros(6), clock.now())
        self._at = START
        self.starts: List[Vector] = []
        self.report_fault: Any = None

    def follow(self, path: JointPath, control: RunControl) -> None:
        self.starts.append(path.positions[0])
        share = self._shares.pop(0) if self._shares else 1.0
        if share < 0.0:
            raise Fault("protective_stop", "it hit something")
        self._late = [self._news] * self._lag
        self._at = path.positions[0] + share * (path.positions[-1] - path.positions[0])
        self._clock.time += float(path.times[-1])

    def wait_for_reading(
        self, predicate: Callable[[JointReading], bool], control: RunControl, deadline: Optional[float] = None
    ) -> bool:
        for _ in range(2000):
            if predicate(self._news):
                return True
            self._clock.time += 0.008
            self._news = self._late.pop(0) if self._late else JointReading(self._at, np.zeros(6), self._clock.now())
        raise AssertionError("it waits for ever")

    def reading(self) -> JointReading:
        return self._news

    def close(self) -> None:
        pass


class Latch:
    def __init__(self) -> None:
        self.values: List[bool] = []

    def publish(self, message: Any) -> None:
        self.values.append(bool(message.data))


def node(arm: LateArm, clock: SimulatedClock) -> InitializeJoints:
    made = InitializeJoints.__new__(InitializeJoints)
    made._robot, made._chain, made._tuck = ROBOT, load_chain(ROBOT), TUCK
    made._speed, made._table_height, made._continuous = 0.5, None, [False] * 6
    made._obstacles = []
    made._control, made._arm, made._ready = RunControl(clock), arm, Latch()  # type: ignore[arg-type,assignment]
    made._wait_for_driver = lambda: None  # type: ignore[method-assign]
    return made


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> List[str]:
    """What a person was asked, who then shuts the node down; and no log goes anywhere."""
    reasons: List[str] = []

    def ask(self: Any, reason: str) -> bool:
        reasons.append(reason)
        raise Stopped

    monkeypatch.setattr(InitializeJoints, "_ask", ask)
    for level in ("loginfo", "logwarn", "logerr"):
        monkeypatch.setattr(initialize_joints.rospy, level, lambda *_: None)
    return reasons


def test_news_from_before_the_motion_are_not_taken_for_its_end(asked: List[str]) -> None:
    clock = SimulatedClock()
    arm = LateArm(clock, [1.0], lag=40)
    made = node(arm, clock)
    made.run()
    assert len(arm.starts) == 1
    assert made._ready.values == [True]
    assert asked == []


def test_an_arm_that_ends_short_is_sent_again_from_where_it_stands(asked: List[str]) -> None:
    clock = SimulatedClock()
    arm = LateArm(clock, [0.4, 0.5])
    made = node(arm, clock)
    made.run()
    np.testing.assert_allclose([start[0] - TUCK[0] for start in arm.starts], [0.3, 0.18, 0.09])
    assert made._ready.values == [True]
    assert asked == []


def test_a_person_is_asked_when_it_does_not_help(asked: List[str]) -> None:
    clock = SimulatedClock()
    arm = LateArm(clock, [0.1] * 10)
    with pytest.raises(Stopped):
        node(arm, clock).run()
    assert len(arm.starts) == TRIES
    assert len(asked) == 1


def test_an_arm_that_was_stopped_is_not_sent_again_by_itself(asked: List[str]) -> None:
    clock = SimulatedClock()
    arm = LateArm(clock, [-1.0])
    with pytest.raises(Stopped):
        node(arm, clock).run()
    assert len(arm.starts) == 1
    assert len(asked) == 1
