"""The simulated gripper: fingers of finite speed that stop where they are asked to, or at what lies between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from iter_runner.robot.table import piecewise

FINGER_SPEED = 0.1
"""m/s of opening; a Robotiq 2F-85 does 0.02 to 0.15."""

STILL = 1e-4
"""m of opening between two reports of fingers that somebody else drives, below which they stand."""


@dataclass(frozen=True)
class HandModel:
    """A gripper's range: positions in its driver's unit (rad), openings in m, linear in between.

    ``openings`` are pairs of both on the way from open to closed, between which it is linear instead.
    """

    position_open: float
    position_closed: float
    opening_open: float
    opening_closed: float
    speed: float = FINGER_SPEED
    openings: Sequence[Tuple[float, float]] = ()

    @property
    def opening_per_position(self) -> float:
        """m per rad, over the whole range; below 0 for a gripper whose position grows as it closes."""
        return (self.opening_open - self.opening_closed) / (self.position_open - self.position_closed)

    def opening_of(self, position: float) -> float:
        """Between the fingertips, m."""
        if self.openings:
            return piecewise(position, self._points)
        return self.opening_open + (position - self.position_open) * self.opening_per_position

    def position_of(self, opening: float) -> float:
        """The driver's position, rad, clipped to the range."""
        if self.openings:
            return piecewise(opening, [(opening, position) for position, opening in self._points])
        clipped = min(max(opening, self.opening_closed), self.opening_open)
        return self.position_open + (clipped - self.opening_open) / self.opening_per_position

    @property
    def _points(self) -> List[Tuple[float, float]]:
        ends = (self.position_open, self.opening_open), (self.position_closed, self.opening_closed)
        return [ends[0], *self.openings, ends[1]]


class HandResult(NamedTuple):
    """How a command ended: position in rad, and GripperCommandResult's two flags; ``failed`` where nothing moved."""

    handle: Any
    position: float
    effort: float
    stalled: bool
    reached_goal: bool
    failed: bool = False


class Hand:
    """Steps the fingers and tells what they did.

    Args:
        model: the range and the speed.
        cycle: s.
        width_between: called as the fingers begin to close: what lies between them, m, or None.
        closed_on, opened: called when the fingers have closed (on that thing), and when they begin to open.
    """

    def __init__(
        self,
        model: HandModel,
        cycle: float,
        width_between: Callable[[], Optional[float]] = lambda: None,
        closed_on: Callable[[], object] = lambda: None,
        opened: Callable[[], object] = lambda: None,
    ) -> None:
        self.model = model
        self.position = model.position_open
        self.velocity = 0.0
        self.commands = 0
        self.stuck_at = 0
        """The count of the command that will do nothing; 0 for none."""
        self.results: List[HandResult] = []
        """Commands that have ended since the caller last emptied this."""
        self._cycle = cycle
        self._step = model.speed * cycle / abs(model.opening_per_position)
        self._width_between = width_between
        self._closed_on = closed_on
        self._opened = opened
        self._target: Optional[float] = None
        self._effort = 0.0
        self._handle: Any = None
        self._closing = False
        self._stop: Optional[float] = None
        """The position at which an object stops the fingers."""

    @property
    def moving(self) -> bool:
        """Whether a command is under way."""
        return self._target is not None

    @property
    def handle(self) -> Any:
        """What the present command was given by its caller; None without one."""
        return self._handle

    @property
    def opening(self) -> float:
        """m."""
        return self.model.opening_of(self.position)

    def command(self, position: float, effort: float, handle: Any) -> Any:
        """Sends the fingers to ``position`` rad (clipped to the range); the handle of the command replaced, or None."""
        replaced = self._handle
        self.commands += 1
        low, high = sorted((self.model.position_open, self.model.position_closed))
        target = min(max(position, low), high)
        if self.commands == self.stuck_at:
            self._end()
            self.results.append(HandResult(handle, self.position, 0.0, True, False, failed=True))
            return replaced
        self._target, self._effort, self._handle = target, effort, handle
        wanted = self.model.opening_of(target)
        if wanted < self.opening - 1e-9:
            width = self._width_between()
            self._stop = None if width is None else self.model.position_of(min(width, self.opening))
        elif wanted > self.opening + 1e-9:
            self._stop = None
            self._opened()
        return replaced

    def cancel(self, handle: Any) -> bool:
        """Stops the fingers where they are; whether ``handle`` was the present command."""
        if self._handle is not handle or self._target is None:
            return False
        self._end()
        return True

    def follow(self, position: float) -> None:
        """The fingers are at ``position`` rad, as whoever drives them says; what that means for what lies between them.

        They have closed on it where they come to its width, or stop on the way to it, and let go of it where they open.
        """
        before = self.opening
        self.position = position
        if self.opening > before + STILL:
            self._closing, self._stop = False, None
            self._opened()
        elif self.opening < before - STILL:
            if not self._closing:
                self._closing, width = True, self._width_between()
                self._stop = None if width is None else self.model.position_of(width)
            if self._stop is not None and self.opening <= self.model.opening_of(self._stop) + STILL:
                self._closing, self._stop = False, None
                self._closed_on()
        elif self._closing:
            self._closing, self._stop = False, None
            self._closed_on()

    def _end(self) -> None:
        self._target, self._handle, self.velocity = None, None, 0.0

    def step(self) -> None:
        """One cycle."""
        target = self._target
        if target is None:
            return
        way = target - self.position
        move = min(max(way, -self._step), self._step)
        closing = way * self.model.opening_per_position < 0.0
        position = self.position + move
        stop = self._stop
        stalled = False
        if closing and stop is not None and (position - stop) * move >= 0.0 and (target - stop) * move > 0.0:
            position, stalled = stop, True
        self.velocity = (position - self.position) / self._cycle
        self.position = position
        if stalled or abs(target - position) < 1e-12:
            handle, effort = self._handle, self._effort
            if closing or way == 0.0:
                self._closed_on()
            self._end()
            self.results.append(HandResult(handle, position, effort if stalled else 0.0, stalled, not stalled))
