"""The simulated controller of a Kinova arm, as kinova-ros uses it: trajectories, and joint velocities in a queue."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, Deque, List, Optional, Sequence, Tuple

from iter_runner.sim.arm_controller import ArmModel, quintic_duration
from iter_runner.sim.plain_controller import PlainController
from iter_runner.sim.trajectory import Goal, Point

VELOCITY_PERIOD = 0.01
"""s for which the arm carries a joint velocity out, before it takes the next one from the queue."""
HOME_SHARE = 0.5
"""Of the joints' limits, what the arm goes home with."""


class KinovaController(PlainController):
    """See the module.

    A joint velocity lasts for :data:`VELOCITY_PERIOD`, and velocities are carried out one after another: who sends them
    faster fills a queue that the arm goes on with afterwards. Where the queue is empty the arm slows down as hard as
    its drives can. Speeds are cut off at the joints' limits, and so is the way.

    Attributes:
        enabled: False from ``stop`` to ``start``: the arm refuses everything.
    """

    def __init__(self, model: ArmModel, start: Sequence[float]) -> None:
        super().__init__(model, start)
        self.enabled = True
        self._queue: Deque[Tuple[float, ...]] = deque()
        self._wanted: Tuple[float, ...] = self._zeros
        self._left = 0.0
        self._streaming = False
        self._refusal_logged = False
        accelerations = model.acceleration_limits or tuple(4.0 for _ in start)
        self._changes = tuple(value * self.cycle for value in accelerations)
        self._accelerations = accelerations

    @property
    def queued(self) -> int:
        """How many velocities wait for their turn."""
        return len(self._queue)

    def command_velocity(self, speeds: Sequence[float]) -> bool:
        """Puts joint speeds (n,) rad/s at the end of the queue; False where the arm refuses them."""
        if not self.enabled or not all(map(math.isfinite, speeds)):
            if not self._refusal_logged:  # they come a hundred times a second
                reason = f"finite numbers expected, {list(speeds)} found" if self.enabled else "the arm is stopped"
                self.log("error", f"Joint velocities are refused: {reason}.")
            self._refusal_logged = True
            return False
        self._refusal_logged = False
        self._drop_goal("joint velocities took the arm over")
        self._streamed()
        limits = self.model.velocity_limits
        self._queue.append(tuple(min(max(speed, -limit), limit) for speed, limit in zip(speeds, limits)))
        self._streaming = True
        return True

    def _move(self) -> None:
        if self._streaming:
            self._stream()
        else:
            self._follow()

    def _stream(self) -> None:
        cycle, lower, upper = self.cycle, self.model.lower, self.model.upper
        while self._queue and self._left < 0.5 * cycle:
            self._wanted = self._queue.popleft()
            self._left += VELOCITY_PERIOD
        if self._left < 0.5 * cycle:
            if any(self.v):
                self._wanted, self._left = self._zeros, cycle
            else:
                self._stand()
                self._end_stream()
                return
        self._left -= cycle
        self._streamed_at = self.cycles
        q: List[float] = []
        v: List[float] = []
        for j, (now, wanted, change) in enumerate(zip(self.v, self._wanted, self._changes)):
            speed = now + min(max(wanted - now, -change), change)
            position = self.q[j] + speed * cycle
            if not lower[j] <= position <= upper[j]:
                # Braking for a trajectory may have left it a little outside: then it stays there until it goes inwards.
                clipped = min(max(position, min(lower[j], self.q[j])), max(upper[j], self.q[j]))
                position, speed = clipped, (clipped - self.q[j]) / cycle
            q.append(position)
            v.append(speed)
        self.q, self.v = q, v

    def _refusal(self) -> str:
        return super()._refusal() if self.enabled else "The arm is stopped: call its start service first."

    def send_goal(self, goal: Goal, handle: Any) -> Optional[Any]:
        """See :class:`iter_runner.sim.arm_controller.ArmController`; ends a stream of velocities."""
        if self._streaming and not self._refusal():
            self._catch()  # a refused goal changes nothing: the set point counts only once the stream is over
        replaced = super().send_goal(goal, handle)
        self._end_stream()
        return replaced

    def _end_stream(self) -> None:
        self._queue.clear()
        self._wanted, self._left, self._streaming = self._zeros, 0.0, False

    def home(self, target: Sequence[float], handle: Any) -> bool:
        """Sends the arm to ``target`` (n,) rad by a straight joint path; False where it is stopped.

        Raises:
            Rejected: the arm still brakes.
        """
        if not self.enabled:
            return False
        way = [b - a for a, b in zip(self.q, target)]
        limits = [HOME_SHARE * value for value in self.model.velocity_limits]
        seconds = quintic_duration(way, limits, [HOME_SHARE * value for value in self._accelerations])
        point = Point(max(seconds, 0.1), tuple(target), self._zeros, self._zeros)
        replaced = self.send_goal(Goal(self.model.joint_names, [point]), handle)
        if replaced is not None:
            self._tell("trajectory_cancelled", (replaced, "the arm goes home"))
        return True

    def start(self) -> None:
        """Lets the arm obey again after a stop."""
        self.enabled = True

    def stop(self) -> None:
        """Brakes at once, ends what runs, empties the queue, and refuses everything until ``start``."""
        self._stop("the arm was stopped")

    def protective_stop(self, reason: str) -> None:
        """As ``stop``, by the arm itself."""
        self.log("error", f"The arm stops by itself: {reason}")
        self._stop(f"stopped: {reason}")

    def emergency_stop(self) -> None:
        """As ``stop``, by somebody's fist on the button."""
        self.log("error", "Emergency stop.")
        self._stop("emergency stop")

    def _stop(self, text: str) -> None:
        self.enabled = False
        self._end_stream()
        self._abort(text)


__all__ = ["VELOCITY_PERIOD", "KinovaController"]
