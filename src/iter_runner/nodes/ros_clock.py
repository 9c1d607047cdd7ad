"""The study clock of a node: ROS time where it is simulated, CLOCK_MONOTONIC otherwise."""

from __future__ import annotations

import threading
from typing import List, Tuple

import rospy
from rosgraph_msgs.msg import Clock as ClockMessage

from iter_runner.clock import Clock, MonotonicClock

LONGEST_WAIT = 1.0
"""Seconds of wall time after which a wait returns to its caller even if /clock has died."""


class RosClock:
    """Simulated ROS time.

    A wait ends as soon as the /clock message that reaches its deadline arrives, or its condition is notified; messages
    before the deadline wake nobody, so that a fast clock costs the waiting thread nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sleepers: List[Tuple[float, threading.Condition]] = []
        # rospy has subscribed already and sets its time before it calls us: one connection serves both.
        self._subscriber = rospy.Subscriber("/clock", ClockMessage, self._on_clock, queue_size=1, tcp_nodelay=True)

    def now(self) -> float:
        """See :class:`iter_runner.clock.Clock`; 0 until the first /clock message."""
        time = rospy.get_rostime()
        return float(time.secs + 1e-9 * time.nsecs)

    def wait_until(self, deadline: float, wake: threading.Condition) -> None:
        """See :class:`iter_runner.clock.Clock`."""
        sleeper = (deadline, wake)
        with self._lock:
            self._sleepers.append(sleeper)
        try:
            # A message that arrived before the line above is seen here, a later one by _on_clock, which has to wait
            # for ``wake`` until we wait on it.
            if self.now() < deadline:
                wake.wait(LONGEST_WAIT)
        finally:
            with self._lock:
                self._sleepers.remove(sleeper)

    def _on_clock(self, message: ClockMessage) -> None:
        now = message.clock.secs + 1e-9 * message.clock.nsecs
        with self._lock:
            due = [wake for deadline, wake in self._sleepers if deadline <= now]
        for wake in due:
            with wake:
                wake.notify_all()


def study_clock() -> Clock:
    """The clock that durations are measured on in this node; call it after ``rospy.init_node``."""
    return MonotonicClock() if rospy.rostime.is_wallclock() else RosClock()
