"""Joint targets sent one a tick: counted, never dropped, slowed down around a pause."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Iterator, List, Optional

from iter_runner.planners.arrival import PATIENCE, Arrival
from iter_runner.robot.arm import Arm, Servo, Vector
from iter_runner.robot.joint_paths import steps_between
from iter_runner.run_control import RunControl

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain

SLOW_TICKS = 15
"""Ticks over which the stream slows down before a pause and comes up to speed after it."""
GRAIN = 1e-6
"""s by which a tick may come early: a simulated clock is counted in steps that floats only nearly hit."""


def stream_targets(
    arm: Arm,
    servo: Servo,
    start: Vector,
    first: Optional[Vector],
    others: Iterator[Vector],
    period: float,
    chain: Chain,
    control: RunControl,
) -> List[Vector]:
    """Sends targets (n,) rad, one a ``period`` (s), until the measured arm stands at the last one.

    The tick count drives it, never the clock: a late tick is sent late, none is skipped or hurried. The arm's speed
    slider and a pause stretch the ticks; the targets stay the same.

    Args:
        start: (n,) rad, where the arm is commanded to be.
        first, others: the targets behind it; ``first`` None: there are none.

    Returns:
        ``start`` and the targets.

    Raises:
        Fault, Stopped: see RunControl; or the arm does not come to its end. The arm is not halted here.
    """
    clock = control.clock
    sent: List[Vector] = [start]
    arrival: Optional[Arrival] = None
    give_up = math.inf
    pace = 1.0  # ticks a period: below 1 around a pause
    target = first
    deadline = clock.now()
    servo.start()
    while True:
        if target is not None:
            sent.append(target)
        elif arrival is None:
            arrival, give_up = Arrival(chain, sent[-1]), clock.now() + PATIENCE
        elif arrival.is_over(arm.reading(), give_up):
            break
        # After the last target it is held, until the arm, which lags, is there.
        stretched = period / (pace * max(arm.speed_scaling, 0.01))
        before = sent[-1] if target is None else sent[-2]
        for step, lasts in steps_between(before, sent[-1], stretched, servo.fixed_period):
            servo.send(step, lasts)
            deadline += lasts
            if clock.now() > deadline - period / 2:  # late: ticks move on, none is skipped or hurried
                deadline = clock.now() + lasts
            control.sleep_until(deadline - GRAIN)
        if control.paused:
            pace = max(0.0, pace - 1.0 / SLOW_TICKS)
            if pace < 0.5 / SLOW_TICKS or target is None:
                servo.pause()
                control.wait_while_paused()
                servo.resume()
                pace, deadline = 1.0 / SLOW_TICKS, clock.now()
        else:
            pace = min(1.0, pace + 1.0 / SLOW_TICKS)
        if target is not None:
            target = next(others, None)
    arrival.verify(arm.reading())
    servo.stop()
    return sent
