"""Streamed joint targets as joint velocities: what a driver takes that has no position stream."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Callable, Deque, Optional, Sequence, Tuple

import numpy as np

from iter_runner.clock import Clock
from iter_runner.robot.arm import JointReading, Vector
from iter_runner.robot.joint_paths import nearest_turns
from iter_runner.run_control import Fault

GAIN = 5.0
"""1/s: what part of the position error is made up for in a second; stable with readings up to some 0.1 s old."""
CORRECTION = 0.3
"""rad/s that making up for an error may add."""
ASTRAY = 0.2
"""rad that a joint may be off its target before the arm counts as not obeying."""
LATE = 1.5
"""Periods after the last target when the next counts as missing, and the arm is stopped."""
BACKLOG = 0.75
"""Periods of motion that the driver may have before it: one message more would build up a queue."""
STILL = 1e-9
"""rad/s of the first joint where the arm is to stand but the stream goes on: nothing but zeros means that it ends."""
HISTORY = 50
"""Targets that are kept to compare readings with, some of which are late."""


class VelocityServo:
    """See :class:`iter_runner.robot.arm.Servo`: one velocity a target, which the driver keeps up for one period.

    The velocity is the target's step, fed forward, plus :data:`GAIN` times the position error: where the targets say
    that the arm was to be when it was measured, less where it was. While the last target is held, the error alone is
    left, and closes.

    The driver queues what comes faster than one message a period, and some keep moving by the last one. So each target
    is sent as it comes and nothing is sent between targets; where one does not come in time, zeros go out at once.

    Args:
        publish: sends velocities (n,) rad/s to the driver.
        measure: the arm's latest joint state; raises Fault.
        clock: the study clock.
        joint_names: for messages.
        velocity_limits: (n,) rad/s, never exceeded.
        lower, upper: (n,) rad, towards and beyond which no joint is driven; infinite for continuous joints.
        continuous: (n,), which joints have no limits and are measured in turns of their own.
        period: s between messages, exactly.
        late_wall: s of wall time that have to pass as well before a target counts as missing: simulated clocks jump.
        advice: what a person may do about an arm that does not obey, for the fault's message.
    """

    def __init__(
        self,
        publish: Callable[[Vector], None],
        measure: Callable[[], JointReading],
        clock: Clock,
        joint_names: Sequence[str],
        velocity_limits: Vector,
        lower: Vector,
        upper: Vector,
        continuous: Sequence[bool],
        period: float = 0.01,
        late_wall: float = 0.0,
        advice: str = "see what holds it",
    ) -> None:
        self.fixed_period: Optional[float] = period
        self._period = period
        self._publish = publish
        self._measure = measure
        self._clock = clock
        self._names = list(joint_names)
        self._limits = np.asarray(velocity_limits, dtype=np.float64)
        self._lower, self._upper = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        self._continuous = list(continuous)
        self._late_wall = late_wall
        self._advice = advice
        self._changed = threading.Condition()
        self._stream: Optional[object] = None  # the one under way
        self._moving = False
        self._last_sent = 0.0
        self._last_sent_wall = 0.0
        self._driver_busy_until = 0.0
        self._targets: Deque[Tuple[float, Vector]] = deque(maxlen=HISTORY)  # when each is due, and where

    def start(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`: the first target takes the arm over."""
        with self._changed:
            if self._stream is not None:
                return
            self._stream = stream = object()
            self._targets.clear()
        threading.Thread(target=self._watch, args=(stream,), name="velocity_watch", daemon=True).start()

    def send(self, positions: Vector, period: float) -> None:
        """See :class:`iter_runner.robot.arm.Servo`; ``period`` has to be the driver's.

        Raises:
            Fault(path_tolerance): the arm is far from where its targets were.
            Fault: see ``measure``.
        """
        reading = self._measure()
        now = self._clock.now()
        with self._changed:
            if self._stream is None:
                return
            velocities = self._velocities(positions, now, reading)
            self._targets.append((now + self._period, positions))
            self._last_sent, self._last_sent_wall = now, time.monotonic()
            if not self._moving:
                self._moving = True
                self._changed.notify_all()  # the watch, which looks by itself from here on
            # After a stop that filled in for a late target the driver may have no room for this one: it is skipped, and
            # the error that this makes is closed later.
            if self._driver_busy_until - now <= BACKLOG * self._period:
                self._driver_busy_until = max(self._driver_busy_until, now) + self._period
                self._publish(velocities)

    def _velocities(self, target: Vector, now: float, reading: JointReading) -> Vector:
        """(n,) rad/s for the period that begins ``now``."""
        if not self._targets:
            # Where the stream begins, the arm stands at the first target but for a tick's step.
            self._targets.append((now, target))
        feed_forward = (target - self._targets[-1][1]) / self._period
        expected = self._expected(reading.time)
        measured = nearest_turns(reading.positions, expected, self._continuous)
        error = expected - measured
        worst = int(np.argmax(np.abs(error)))
        if abs(error[worst]) > ASTRAY:
            raise Fault(
                "path_tolerance",
                f"{self._names[worst]} is {abs(error[worst]):.2f} rad off where it was streamed to (at most {ASTRAY:g} "
                f"expected): the arm does not obey: {self._advice}, then resume",
            )
        correction = np.clip(GAIN * error, -CORRECTION, CORRECTION)
        velocities: Vector = np.clip(feed_forward + correction, -self._limits, self._limits)
        room_up = np.maximum(self._upper - measured, 0.0) / self._period
        room_down = np.maximum(measured - self._lower, 0.0) / self._period
        velocities = np.clip(velocities, -room_down, room_up)
        if not np.any(velocities):
            velocities[0] = STILL
        return velocities

    def _expected(self, moment: float) -> Vector:
        """Where the targets say that the arm was at ``moment`` on the study clock, (n,) rad."""
        later, target = self._targets[-1]
        for due, earlier in reversed(self._targets):
            if due <= moment:
                begun = max(due, later - self._period)  # a target that came late was gone to when it came
                share = (moment - begun) / (later - begun) if later > begun else 1.0
                return earlier + min(max(share, 0.0), 1.0) * (target - earlier)
            later, target = due, earlier
        return target

    def pause(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""
        with self._changed:
            self._stand()
            self._targets.clear()

    def resume(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`: the next target takes the arm over."""

    def stop(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""
        with self._changed:
            self._stand()
            self._targets.clear()
            self._stream = None
            self._changed.notify_all()

    def _stand(self) -> None:
        if self._moving:
            self._moving = False
            now = self._clock.now()
            self._driver_busy_until = max(self._driver_busy_until, now) + self._period
            self._publish(np.zeros(len(self._names)))

    def _watch(self, stream: object) -> None:
        """Stops the arm when a target does not come in time."""
        with self._changed:
            while self._stream is stream:
                deadline = self._last_sent + LATE * self._period
                wall = self._last_sent_wall + self._late_wall - time.monotonic()
                if not self._moving:
                    self._changed.wait(1.0)
                elif wall > 0:
                    self._changed.wait(wall)
                elif self._clock.now() < deadline:
                    self._clock.wait_until(deadline, self._changed)
                else:
                    self._stand()
