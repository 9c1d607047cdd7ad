"""The study clock: what durations are measured on."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that only go forward: CLOCK_MONOTONIC on hardware, ROS time in simulation."""

    def now(self) -> float:
        """The time in seconds."""

    def wait_until(self, deadline: float, wake: threading.Condition) -> None:
        """Blocks until ``now() >= deadline`` or ``wake`` is notified; may return early, callers loop.

        The caller holds ``wake``.
        """


class MonotonicClock:
    """This machine's CLOCK_MONOTONIC, the same in every process."""

    def now(self) -> float:
        """See :class:`Clock`."""
        return time.monotonic()

    def wait_until(self, deadline: float, wake: threading.Condition) -> None:
        """See :class:`Clock`."""
        remaining = deadline - time.monotonic()
        if remaining > 0:
            wake.wait(remaining)
