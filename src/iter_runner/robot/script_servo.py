"""Streamed joint targets as servoj statements over the script topic."""

from __future__ import annotations

from typing import Callable, Optional

from iter_runner.robot.arm import Vector
from iter_runner.robot.urscript import STOP, servoj


class ScriptServo:
    """See :class:`iter_runner.robot.arm.Servo`.

    Every target travels as a program of its own and replaces the one before: enough for the simulator; a real arm
    stutters with it, which a controller-side loop cures.

    Args:
        send_script: sends one program to the controller.
        lookahead_time: of servoj, s (0.03 to 0.2): the arm lags the target by it.
        gain: of servoj (100 to 2000).
    """

    fixed_period: Optional[float] = None

    def __init__(self, send_script: Callable[[str], None], lookahead_time: float, gain: float) -> None:
        self._send_script = send_script
        self._lookahead_time = float(lookahead_time)
        self._gain = float(gain)
        self._moving = False

    def start(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`: the first target takes the arm over."""

    def send(self, positions: Vector, period: float) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""
        self._send_script(servoj(positions, period, self._lookahead_time, self._gain))
        self._moving = True

    def pause(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""
        self.stop()

    def resume(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`: the next target takes the arm over."""

    def stop(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`."""
        if self._moving:
            self._moving = False
            self._send_script(STOP)
