"""When a commanded arm counts as arrived: observed, not slept for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from iter_runner.planners.line import pose_error
from iter_runner.robot.arm import Arm, JointReading, Vector
from iter_runner.run_control import Fault, RunControl

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain

STANDSTILL = 0.005
"""rad/s below which a joint stands."""
CLOSE = (0.0002, math.radians(0.02))
"""m and rad within which the arm has arrived for good."""
PATIENCE = 2.0
"""Seconds that a standing arm is given to come that close, before :data:`TOLERANCE` judges it."""
TOLERANCE = (0.001, math.radians(0.2))
"""m and rad that a move may end off its goal."""
TURN = 0.05
"""rad that a joint may be off: more is the same pose with other joints."""


class Arrival:
    """Watches the measured arm come to rest at ``end`` (n,) rad."""

    def __init__(self, chain: Chain, end: Vector) -> None:
        self._chain = chain
        self._end = end
        self._pose = chain.fk(end)

    def arrived(self, reading: JointReading) -> bool:
        """Whether the arm stands at the end."""
        if np.max(np.abs(reading.velocities)) > STANDSTILL or np.max(np.abs(reading.positions - self._end)) > TURN:
            return False
        distance, turn = pose_error(self._chain.fk(reading.positions), self._pose)
        return distance <= CLOSE[0] and turn <= CLOSE[1]

    def is_over(self, reading: JointReading, give_up: float) -> bool:
        """Whether the arm has arrived, or had not by ``give_up`` (study clock, s).

        By the reading's own time: a busy machine delivers readings late, while the clock runs ahead of them.
        """
        return self.arrived(reading) or reading.time > give_up

    def verify(self, reading: JointReading) -> None:
        """Returns if the arm is at the end within the tolerance of a move.

        Raises:
            Fault(goal_tolerance): it is not.
        """
        off = np.abs(reading.positions - self._end)
        distance, turn = pose_error(self._chain.fk(reading.positions), self._pose)
        if distance > TOLERANCE[0] or turn > TOLERANCE[1] or np.max(off) > TURN:
            joint = self._chain.joint_names[int(np.argmax(off))]
            raise Fault(
                "goal_tolerance",
                f"the arm stands {distance * 1e3:.1f} mm and {math.degrees(turn):.2f} degrees off where it was sent "
                f"(expected within {TOLERANCE[0] * 1e3:.0f} mm and {math.degrees(TOLERANCE[1]):.1f}; {joint} is "
                f"{np.max(off):.3f} rad off): see what holds it, then resume",
            )

    def wait(self, arm: Arm, control: RunControl) -> None:
        """Blocks until the arm stands at the end; raises as :meth:`verify` and ``control.wait_for``."""
        give_up = control.clock.now() + PATIENCE
        arm.wait_for_reading(lambda reading: self.is_over(reading, give_up), control)
        self.verify(arm.reading())
