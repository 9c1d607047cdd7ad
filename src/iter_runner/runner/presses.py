"""The button: which presses end a wait, and why the others do not."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional

BOUNCE = 0.030
"""Presses of one source closer together than this (s) are one press: the contact bounced."""

AHEAD = 1.0
"""A press may be this far (s) ahead of our clock, whose ticks reach processes at different moments; no more."""


@dataclass(frozen=True)
class Press:
    """The participant's button went down.

    Attributes:
        time: of the press at its source, study clock, s.
        source: keyboard, serial, topic, web, auto.
        detail: what the source knows beyond that.
    """

    time: float
    source: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """Whether a press ended a wait; ``reason`` says why not."""

    used: bool
    reason: str = ""


class PressBox:
    """Judges presses as they arrive. One press ends one wait; its own time decides, not its arrival's.

    Not thread-safe: the engine calls it under one lock.
    """

    def __init__(self) -> None:
        self._opened: Optional[float] = None
        self._deadline: Optional[float] = None
        self._taken: Optional[Press] = None
        self._last_of_source: Dict[str, float] = {}

    @property
    def is_open(self) -> bool:
        """Whether a wait is open that no press has ended yet."""
        return self._opened is not None and self._taken is None

    @property
    def opened(self) -> Optional[float]:
        """When the present wait began."""
        return self._opened

    @property
    def taken(self) -> Optional[Press]:
        """The press that ended the present wait."""
        return self._taken

    def open(self, since: float) -> None:
        """Begins a wait at study time ``since``: presses from then on count."""
        self._opened, self._deadline, self._taken = since, None, None

    def set_deadline(self, deadline: Optional[float]) -> None:
        """Until when a press may end the present wait."""
        self._deadline = deadline

    def close(self) -> None:
        """Ends the wait."""
        self._opened, self._deadline, self._taken = None, None, None

    def judge(self, press: Press, now: float) -> Verdict:
        """Takes a press in; at most one in the life of a wait is used.

        A press may have happened before others that arrived earlier; what counts for bounces is how far apart two of
        the same source are.
        """
        if not math.isfinite(press.time):
            return Verdict(False, "its time is not a number")
        before = self._last_of_source.get(press.source)
        self._last_of_source[press.source] = press.time
        if before is not None and abs(press.time - before) < BOUNCE:
            return Verdict(False, f"bounce: {abs(press.time - before) * 1e3:.0f} ms after the press before")
        if press.time > now + AHEAD:
            return Verdict(False, f"its time is {press.time - now:.3f} s in the future: the source's clock is not ours")
        if self._opened is None:
            return Verdict(False, "no open wait")
        if self._taken is not None:
            return Verdict(False, "another press has ended this wait")
        if press.time < self._opened:
            return Verdict(False, f"{self._opened - press.time:.3f} s before the wait began")
        if self._deadline is not None and press.time > self._deadline:
            return Verdict(False, "after the wait's time was up")
        self._taken = press
        return Verdict(True)
