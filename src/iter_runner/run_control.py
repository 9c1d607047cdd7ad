"""The one switch that a run's operator holds: pause, resume, stop, and the fault that interrupts it."""

from __future__ import annotations

import threading
from typing import Callable, Optional

from iter_runner.clock import Clock


class Stopped(Exception):
    """The operator stopped the run."""


class Fault(Exception):
    """Something outside the plan went wrong: the run stands still until the operator resumes or stops it.

    Args:
        code: a word for scripts: protective_stop, emergency_stop, driver_lost, stale_joint_states, not_ready,
            trajectory_rejected, path_tolerance, goal_tolerance, short_trajectory, gripper, unreachable, no_script,
            no_vision_service, ...
        message: names the thing, the value found, what was expected, and what to do next.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RunControl:
    """Shared by the engine, the primitives and the planners of one run. Thread-safe.

    Everything that blocks in a run blocks in :meth:`wait_for` or :meth:`sleep_until`, so that a stop, a pause or a
    fault reported from a callback thread interrupts it at once.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.condition = threading.Condition()
        self._paused = False
        self._stopped = False
        self._fault: Optional[Fault] = None

    def pause(self) -> None:
        """Asks the run to stand still where it is."""
        with self.condition:
            self._paused = True
            self.condition.notify_all()

    def resume(self) -> None:
        """Lets a paused or faulted run go on."""
        with self.condition:
            self._paused = False
            self._fault = None
            self.condition.notify_all()

    def stop(self) -> None:
        """Ends the run."""
        with self.condition:
            self._stopped = True
            self.condition.notify_all()

    def report_fault(self, fault: Fault) -> None:
        """Interrupts the run; the first fault reported is the one that counts until the run is resumed."""
        with self.condition:
            if self._fault is None:
                self._fault = fault
            self.condition.notify_all()

    def notify(self) -> None:
        """Wakes whoever waits in :meth:`wait_for`, because something its predicate reads has changed."""
        with self.condition:
            self.condition.notify_all()

    @property
    def paused(self) -> bool:
        """Whether the operator wants the run to stand still."""
        return self._paused

    @property
    def stopped(self) -> bool:
        """Whether the operator ended the run."""
        return self._stopped

    def check(self) -> None:
        """Returns if the run may go on.

        Raises:
            Stopped: the operator stopped the run.
            Fault: a fault was reported.
        """
        if self._stopped:
            raise Stopped
        if self._fault is not None:
            raise self._fault

    def wait_for(self, predicate: Callable[[], bool], deadline: Optional[float] = None) -> bool:
        """Blocks until ``predicate()`` holds (True) or the study clock reaches ``deadline`` (False).

        Raises:
            Stopped, Fault: see :meth:`check`.
        """
        with self.condition:
            while True:
                self.check()
                if predicate():
                    return True
                if deadline is None:
                    self.condition.wait(1.0)
                elif self.clock.now() >= deadline:
                    return False
                else:
                    self.clock.wait_until(deadline, self.condition)

    def sleep_until(self, deadline: float) -> None:
        """Blocks until the study clock reaches ``deadline``; raises as :meth:`check`."""
        self.wait_for(lambda: False, deadline)

    def wait_while_paused(self) -> None:
        """Blocks while the run is paused; raises as :meth:`check`."""
        self.wait_for(lambda: not self._paused)
