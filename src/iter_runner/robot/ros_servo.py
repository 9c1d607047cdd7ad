"""Streamed joint targets as servoj statements over the script topic."""

from __future__ import annotations

from typing import Callable, Iterable

import numpy as np

from iter_runner.robot.arm import Vector

STOP = "stopj(5.0)"
"""The statement that ends whatever moves the arm; rad/s²."""


def script_number(value: float) -> str:
    """The shortest decimal that reads back as exactly ``value``, without an exponent: not every controller reads one."""
    return np.format_float_positional(value, unique=True, trim="0")


def script_list(values: Iterable[float]) -> str:
    """A URScript list of numbers."""
    return "[" + ", ".join(script_number(value) for value in values) + "]"


def servoj(positions: Vector, period: float, lookahead_time: float, gain: float) -> str:
    """The statement that steers towards ``positions`` (n,) rad for ``period`` s; acceleration and speed are unused."""
    timing = ", ".join(script_number(value) for value in (period, lookahead_time, gain))
    return f"servoj({script_list(positions)}, 0, 0, {timing})"


class ScriptServo:
    """See :class:`iter_runner.robot.arm.Servo`.

    Every target travels as a program of its own and replaces the one before: enough for the simulator; a real arm
    stutters with it, which a controller-side loop cures.

    Args:
        send_script: sends one program to the controller.
        lookahead_time: of servoj, s (0.03 to 0.2): the arm lags the target by it.
        gain: of servoj (100 to 2000).
    """

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
