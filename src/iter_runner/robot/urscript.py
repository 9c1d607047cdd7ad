"""URScript statements as text."""

from __future__ import annotations

from typing import Iterable

import numpy as np

from iter_runner.robot.arm import Vector

STOP = "stopj(5.0)"
"""The statement that ends whatever moves the arm; rad/s²."""


def script_number(value: float) -> str:
    """The shortest decimal that reads back as exactly ``value``; no exponent, since not every controller reads one."""
    return np.format_float_positional(value, unique=True, trim="0")


def script_list(values: Iterable[float]) -> str:
    """A list of numbers."""
    return "[" + ", ".join(script_number(value) for value in values) + "]"


def servoj(positions: Vector, period: float, lookahead_time: float, gain: float) -> str:
    """The statement that steers towards ``positions`` (n,) rad for ``period`` s; acceleration and speed are unused."""
    timing = ", ".join(script_number(value) for value in (period, lookahead_time, gain))
    return f"servoj({script_list(positions)}, 0, 0, {timing})"
