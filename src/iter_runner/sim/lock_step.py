"""Keeps a simulated clock that runs at another rate than real time in step with a stream of joint targets."""

from __future__ import annotations

import math

PATIENCE = (0.02, 0.1, 0.5)
"""s of wall time that waits in a row take, each of which brings nothing, before the stream counts as over.

The first is short: most often nothing is late, and the streamer needs the next publication for its tick. The last ones
outlast what a busy computer does to a streamer, whose targets would otherwise arrive in a burst that tears the arm.
"""


class LockStep:
    """Says when the clock has to wait for the next target of a stream.

    A streamer ticks on /clock: it can send the next target only once the moment of its tick has been published. So the
    clock is held right after the first publication at which the present target has run out, counted from when the one
    before it ran out: a streamer that is slower than the clock gets the clock at its own pace, a tick for each target.
    One whose ticks fall a rounding error behind a publication needs one publication more: where waiting brought
    nothing, the clock goes on to the next one and waits there, and stays that much behind for the rest of the stream.

    Args:
        period: controller cycles between publications of /clock.
    """

    def __init__(self, period: int) -> None:
        self._period = period
        self._runs_out = 0.0
        self._hold_at = 0
        self._tries = 0
        self.active = False
        """Whether a stream is under way, as far as one can tell: any target may be the first of one."""

    def target_came(self, now: int, lasts: float) -> None:
        """A joint target arrived at cycle ``now`` that lasts so many cycles."""
        if self.active and now <= self._hold_at:
            self._runs_out = min(self._runs_out + lasts, now + lasts + self._period)
        else:
            self._runs_out = now + lasts
        self._hold_at = math.ceil(self._runs_out / self._period - 1e-6) * self._period
        self._tries = 0
        self.active = True

    def other_came(self) -> None:
        """Another program took the arm over: the stream is over."""
        self.active = False

    def holds(self, now: int) -> bool:
        """Whether the clock has to wait before the cycle after ``now``."""
        return self.active and now >= self._hold_at

    @property
    def patience(self) -> float:
        """How long the wait that is due takes at most, s of wall time."""
        return PATIENCE[self._tries]

    def waited_in_vain(self) -> None:
        """The wait took all its patience and nothing came."""
        self._tries += 1
        self._runs_out += self._period
        self._hold_at += self._period
        if self._tries == len(PATIENCE):
            self._tries = 0
            self.active = False
