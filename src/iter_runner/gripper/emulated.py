"""A Robotiq 2F-85 that is not there: what its registers do over time, on any clock.

The faces that speak Modbus RTU and the URCap's text are in ``emulated_serial`` and ``emulated_urcap``.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, List, NamedTuple, Optional

from iter_runner.gripper.registers import (
    COUNT_CLOSED,
    COUNT_OPEN,
    FIRST_MAJOR_FAULT,
    NO_COMMUNICATION,
    OVER_TEMPERATURE,
    SPEED_RANGE,
    Activation,
    Command,
    FingerScale,
    Obstruction,
    Status,
    speed_of,
)

WATCHDOG = 1.0
"""Seconds without a request after which fault 9 is shown."""
STROKE = 0.085
"""m, the opening with the fingers open."""
MOVING_CURRENT = 12
RELEASING, RELEASED = 11, 15
NOT_YET_ACTIVE, BIT_NOT_SET = 5, 7

SCALE = FingerScale(STROKE, 0.0, 0.8, 0.005)


class _Leg(NamedTuple):
    """A part of the fingers' way: to a count, at counts per second."""

    target: float
    speed: float


class EmulatedGripper:
    """The gripper's inside. Everything may be called from any thread.

    Activation opens, closes and opens the fingers at full speed, about 1.7 s. What is between the fingers stops them as
    they close (``object_inside``), what is around them as they open (``object_outside``); taken away, they go on.

    Args:
        now: reads a clock, s.
        position: of the fingers at power-on, a count.
        activation_speed: m/s of opening as it activates.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        position: int = COUNT_CLOSED,
        activation_speed: float = SPEED_RANGE[1],
    ) -> None:
        self.activation_speed = activation_speed
        self._now = now
        self._lock = threading.RLock()
        self._powered = True
        self._position = float(position)
        self._inside: Optional[float] = None
        self._outside: Optional[float] = None
        self._last = now()
        self._heard = self._last
        self._reset()

    def _reset(self) -> None:
        self._activated = False
        self._activation = Activation.RESET
        self._fault = 0
        self._going = False
        self._legs: List[_Leg] = []
        self._requested = 0
        self._force = 0

    # ---- what is done to it ----

    @property
    def powered(self) -> bool:
        """Whether it has 24 V; it answers nothing without."""
        return self._powered

    def set_power(self, on: bool) -> None:
        """Without power it forgets its activation; the fingers stay where they are."""
        with self._lock:
            self._advance()
            self._powered = on
            self._heard = self._last
            self._reset()

    def set_object_inside(self, width: Optional[float]) -> None:
        """Puts something of that width (m) between the fingers, or takes it away."""
        with self._lock:
            self._advance()
            self._inside = width

    def set_object_outside(self, width: Optional[float]) -> None:
        """Puts the fingers into a hole of that width (m), or out of it."""
        with self._lock:
            self._advance()
            self._outside = width

    def set_fault(self, fault: int) -> None:
        """Gives it a fault by its number; 0 takes it away. Faults from 8 on, and not 9, stop the fingers."""
        with self._lock:
            self._advance()
            self._fault = fault
            if self._is_stopped_by_fault():
                self._legs = []

    # ---- what it hears and says ----

    def write(self, command: Command) -> None:
        """Takes a command in."""
        with self._lock:
            self._hear()
            rising, self._activated = command.activate and not self._activated, command.activate
            if not command.activate:
                self._reset()
                self._fault = BIT_NOT_SET if command.go else 0
            elif command.release:
                self._fault, self._activation, self._going = RELEASING, Activation.RESET, False
                end = COUNT_OPEN if command.release_opening else COUNT_CLOSED
                self._legs = [_Leg(end, self._counts(SPEED_RANGE[0]))]
            elif rising:
                self._fault, self._activation = 0, Activation.UNDER_WAY
                speed = self._counts(self.activation_speed)
                self._legs = [_Leg(end, speed) for end in (COUNT_OPEN, COUNT_CLOSED, COUNT_OPEN)]
            else:
                self._go(command)
            self._requested, self._force = command.position, command.force

    def _go(self, command: Command) -> None:
        self._going = command.go
        if self._activation is not Activation.DONE:
            if command.go and not self._fault:
                self._fault = NOT_YET_ACTIVE
        elif not command.go or self._is_stopped_by_fault():
            self._legs = []
        else:
            target = min(max(command.position, COUNT_OPEN), COUNT_CLOSED)
            self._legs = [_Leg(target, self._counts(speed_of(command.speed)))]

    def read(self) -> Status:
        """What it says."""
        with self._lock:
            silent = self._hear()
            return Status(
                activated=self._activated,
                going=self._going,
                activation=self._activation,
                obstruction=self._obstruction(),
                fault=self._fault or (NO_COMMUNICATION if silent else 0),
                requested=self._requested,
                position=round(self._position),
                current=self._current(),
            )

    def look(self) -> Status:
        """The same for who watches from outside: it hears nothing of it."""
        with self._lock:
            heard = self._heard
            status = self.read()
            self._heard = heard
            return status

    def _hear(self) -> bool:
        """A request has come; whether it was long in coming."""
        self._advance()
        silent = self._last - self._heard > WATCHDOG
        self._heard = self._last
        return silent

    def _is_stopped_by_fault(self) -> bool:
        return self._fault == OVER_TEMPERATURE or self._fault >= FIRST_MAJOR_FAULT

    # ---- motion ----

    @staticmethod
    def _counts(speed: float) -> float:
        return speed * SCALE.counts_per_metre

    def _limit(self, target: float) -> float:
        """Where the fingers get on their way to a count: the count, or what is in between."""
        if target > self._position and self._inside is not None:
            stop = SCALE.count_of_opening(self._inside)
            return max(self._position, min(target, stop))
        if target < self._position and self._outside is not None:
            stop = SCALE.count_of_opening(self._outside)
            return min(self._position, max(target, stop))
        return target

    def _advance(self) -> None:
        """Brings the fingers to where they are now."""
        now = self._now()
        left, self._last = now - self._last, now
        if not self._powered:
            return
        while self._legs:
            target, speed = self._legs[0]
            limit = self._limit(target)
            need = abs(limit - self._position) / speed
            if need > left:
                self._position += (1 if limit > self._position else -1) * speed * left
                return
            self._position, left = limit, left - need
            if self._activation is Activation.DONE:
                return  # a command stays: the fingers go on when what stops them goes away
            self._legs.pop(0)
            if not self._legs and self._activation is Activation.UNDER_WAY:
                self._activation, self._going = Activation.DONE, False
                self._fault = 0 if self._fault == NOT_YET_ACTIVE else self._fault
            elif not self._legs and self._fault == RELEASING:
                self._fault = RELEASED

    def _obstruction(self) -> Obstruction:
        if self._activation is not Activation.DONE or not self._legs:
            return Obstruction.MOVING if self._legs else Obstruction.ARRIVED
        target = self._legs[0].target
        if self._position == target:
            return Obstruction.ARRIVED
        if self._position != self._limit(target):
            return Obstruction.MOVING
        return Obstruction.STOPPED_CLOSING if target > self._position else Obstruction.STOPPED_OPENING

    def _current(self) -> int:
        if not self._legs:
            return 0
        target = self._legs[0].target
        if self._position != self._limit(target):
            return MOVING_CURRENT
        return 0 if self._position == target else MOVING_CURRENT + self._force // 4
