"""Joint targets streamed as velocities, against an arm that integrates them."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from typing import Deque, List, Optional, Tuple

import numpy as np
import pytest

from iter_runner.robot.arm import JointReading, Vector
from iter_runner.robot.velocity_servo import ASTRAY, VelocityServo
from iter_runner.run_control import Fault

PERIOD = 0.01
LIMITS = np.array([0.6, 0.8])


class SteppedClock:
    """A study clock that a test moves."""

    def __init__(self) -> None:
        self.time = 0.0
        self._sleepers: List[Tuple[float, threading.Condition]] = []

    def now(self) -> float:
        return self.time

    def wait_until(self, deadline: float, wake: threading.Condition) -> None:
        sleeper = (deadline, wake)
        self._sleepers.append(sleeper)
        wake.wait(5.0)
        self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        self.time += seconds
        for deadline, wake in list(self._sleepers):
            if deadline <= self.time:
                with wake:
                    wake.notify_all()


class VelocityArm:
    """An arm that takes one message off its driver's queue a period and is measured late.

    Attributes:
        messages: (time, velocities) as published.
    """

    def __init__(self, delay: int = 0, pace: float = 1.0) -> None:
        self.clock = SteppedClock()
        self.q = np.array([1.0, -0.5])
        self.pace = pace  # of what is commanded, the part that happens
        self.obeys = True
        self.turn = np.zeros(2)
        self.messages: List[Tuple[float, Vector]] = []
        self.zero_came = threading.Event()
        self.queue: Deque[Vector] = deque()
        self._readings: Deque[JointReading] = deque(maxlen=delay + 1)
        self._measure()
        self.servo = VelocityServo(
            self._publish,
            lambda: self._readings[0],
            self.clock,
            ["pan", "lift"],
            LIMITS,
            np.array([-math.inf, -2.0]),
            np.array([math.inf, 2.0]),
            [True, False],
            PERIOD,
            advice="call in/start",
        )

    def _publish(self, velocities: Vector) -> None:
        self.messages.append((self.clock.now(), velocities))
        self.queue.append(velocities)
        if not np.any(velocities):
            self.zero_came.set()

    def _measure(self) -> None:
        self._readings.append(JointReading(self.q + self.turn, np.zeros(2), self.clock.now()))

    def period(self) -> None:
        if self.queue and self.obeys:
            self.q = self.q + self.pace * PERIOD * self.queue.popleft()
        self.clock.advance(PERIOD)
        self._measure()

    def stream(self, targets: List[Vector]) -> None:
        for target in targets:
            self.servo.send(target, PERIOD)
            self.period()


def wave(start: Vector, seconds: float) -> List[Vector]:
    """A smooth motion there, within the limits."""
    times = np.arange(1, round(seconds / PERIOD) + 1) * PERIOD
    share = (1.0 - np.cos(np.pi * times / seconds)) / 2.0
    return list(start + share[:, None] * np.array([0.5, -0.4]))


@pytest.fixture
def arm() -> VelocityArm:
    return VelocityArm()


@pytest.mark.parametrize("delay", [0, 1, 3, 10])
@pytest.mark.parametrize("pace", [1.0, 0.95, 1.05])
def test_the_arm_follows_and_arrives(delay: int, pace: float) -> None:
    arm = VelocityArm(delay, pace)
    targets = wave(arm.q, 2.0)
    arm.servo.start()
    off = []
    for target in targets:
        arm.stream([target])
        off.append(float(np.max(np.abs(arm.q - target))))
    assert max(off) < 0.02
    arm.stream([targets[-1]] * 150)
    np.testing.assert_allclose(arm.q, targets[-1], atol=2e-5)
    arm.servo.stop()
    assert not arm.messages[-1][1].any()


def test_one_message_a_target_a_hundred_a_second_and_within_the_limits(arm: VelocityArm) -> None:
    targets = wave(arm.q, 1.4)
    arm.servo.start()
    arm.stream(targets)
    assert len(arm.messages) == len(targets)
    np.testing.assert_allclose(np.diff([moment for moment, _ in arm.messages]), PERIOD, atol=1e-9)
    assert np.all(np.abs([velocities for _, velocities in arm.messages]) <= LIMITS)
    arm.servo.stop()


def test_a_jump_of_the_target_moves_no_joint_faster_than_it_may(arm: VelocityArm) -> None:
    arm.servo.start()
    arm.stream([arm.q + 0.001, arm.q + np.array([0.05, 0.18])])
    np.testing.assert_array_equal(arm.messages[-1][1], LIMITS)
    arm.servo.stop()


def test_no_joint_is_driven_beyond_its_limits(arm: VelocityArm) -> None:
    arm.q = np.array([0.0, 1.995])
    arm._measure()
    arm.servo.start()
    arm.stream([np.array([0.0, 1.996 + 0.002 * index]) for index in range(30)])
    assert arm.q[1] <= 2.0 + 1e-9
    arm.servo.stop()


def test_the_first_target_starts_softly_even_where_the_arm_is_a_little_off(arm: VelocityArm) -> None:
    arm.servo.start()
    arm.stream([arm.q + 0.004])
    assert np.max(np.abs(arm.messages[0][1])) < 0.03
    arm.servo.stop()


def test_a_driver_that_counts_turns_from_elsewhere_is_followed_the_short_way(arm: VelocityArm) -> None:
    arm.turn = np.array([-2 * np.pi, 0.0])
    arm._measure()
    targets = wave(arm.q, 2.0)
    arm.servo.start()
    arm.stream(targets)
    np.testing.assert_allclose(arm.q, targets[-1], atol=1e-3)
    arm.servo.stop()


def test_the_arm_is_stopped_at_once_where_no_target_comes(arm: VelocityArm) -> None:
    arm.servo.start()
    arm.stream(wave(arm.q, 2.0)[:100])
    arm.servo.send(wave(arm.q, 2.0)[0], PERIOD)
    arm.zero_came.clear()
    arm.clock.advance(1.4 * PERIOD)
    assert not arm.zero_came.wait(0.05)
    arm.clock.advance(0.2 * PERIOD)
    assert arm.zero_came.wait(5.0)
    count = len(arm.messages)
    arm.clock.advance(1.0)
    time.sleep(0.02)
    assert len(arm.messages) == count  # once, and nothing after it
    arm.servo.stop()
    assert len(arm.messages) == count


def test_a_late_target_never_makes_a_queue(arm: VelocityArm) -> None:
    """Every third target is late, by more each time: the driver's queue stays as short as it was."""
    targets = wave(arm.q, 2.0)
    arm.servo.start()
    longest = 0
    for index, target in enumerate(targets):
        late = 0.0
        if index % 3 == 2:
            late = PERIOD * (0.3 + index / 100.0)
            arm.zero_came.clear()
            arm.clock.advance(late)
            if late > 0.5 * PERIOD + 1e-9:
                assert arm.zero_came.wait(5.0)
        # What the driver took in the meantime.
        taken = int((late + PERIOD) / PERIOD + 1e-9) - 1
        for _ in range(min(taken, len(arm.queue))):
            arm.q = arm.q + PERIOD * arm.queue.popleft()
        arm._measure()
        arm.servo.send(target, PERIOD)
        arm.period()
        longest = max(longest, len(arm.queue))
    assert longest <= 1
    arm.servo.stop()


def test_a_pause_stops_the_arm_and_the_stream_goes_on_where_it_stood(arm: VelocityArm) -> None:
    targets = wave(arm.q, 2.0)
    arm.servo.start()
    arm.stream(targets[:90])
    arm.servo.pause()
    assert not arm.messages[-1][1].any()
    for _ in range(50):
        arm.period()
    stood = arm.q
    assert np.max(np.abs(stood - targets[89])) < 1e-3
    arm.servo.resume()
    arm.stream(targets[90:])
    arm.stream([targets[-1]] * 100)
    np.testing.assert_allclose(arm.q, targets[-1], atol=1e-4)
    arm.servo.stop()


def test_nothing_is_sent_after_the_stop(arm: VelocityArm) -> None:
    arm.servo.start()
    arm.stream(wave(arm.q, 2.0)[:50])
    arm.servo.stop()
    count = len(arm.messages)
    arm.servo.send(arm.q, PERIOD)
    arm.servo.stop()
    assert len(arm.messages) == count


def test_an_arm_that_does_not_obey_is_a_fault_that_says_what_to_do(arm: VelocityArm) -> None:
    arm.servo.start()
    arm.obeys = False
    fault: Optional[Fault] = None
    try:
        arm.stream(wave(arm.q, 2.0))
    except Fault as error:
        fault = error
    assert fault is not None and fault.code == "path_tolerance"
    assert "pan" in fault.message and f"{ASTRAY:g}" in fault.message and "call in/start" in fault.message
    arm.servo.stop()
    assert not arm.messages[-1][1].any()


def test_the_same_targets_give_the_same_velocities() -> None:
    runs = []
    for _ in range(2):
        arm = VelocityArm(1)
        arm.servo.start()
        arm.stream(wave(arm.q, 1.0))
        arm.servo.stop()
        runs.append([velocities.tobytes() for _, velocities in arm.messages])
    assert runs[0] == runs[1]
