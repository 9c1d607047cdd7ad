"""The simulated controller of an arm behind a plain joint_trajectory_controller of ros_control, whoever made it."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from iter_runner.sim import trajectory
from iter_runner.sim.arm_controller import PROTECTIVE_STOP, ArmController, ArmModel
from iter_runner.sim.trajectory import Goal

NEW_STREAM = 0.25
"""s without a streamed target after which the next one begins a new motion."""


class PlainController(ArmController):
    """Follows trajectories; what stops it ends the goal, and it takes the next one as soon as the arm stands.

    The joints' limits cut off what is commanded, as ros_control's joint_limits_interface does: an arm that can't keep
    up violates the path tolerance.
    """

    def __init__(self, model: ArmModel, start: Sequence[float]) -> None:
        super().__init__(model, start)
        self._cuts_off = True
        self._streamed_at = -(10**9)
        self._largest_step = tuple(limit * self.cycle for limit in self._fastest)

    def step(self) -> None:
        """One cycle of the controller."""
        self.cycles += 1
        if self._braking:
            self._brake(self._braking)
        else:
            self._move()

    def _move(self) -> None:
        self._follow()

    def _check(self, q: Sequence[float], v: Sequence[float], limits: Optional[Sequence[float]] = None) -> None:
        """The drives see to their limits themselves."""

    def _cut_off(self, q: List[float]) -> List[float]:
        model = self.model
        bounds = zip(self._set_point, q, self._largest_step, model.lower, model.upper)
        return [min(max(wanted, now - most, low), now + most, high) for now, wanted, most, low, high in bounds]

    def _refusal(self) -> str:
        return "Can't accept new action goals. Controller is not running." if self._braking else ""

    def command(self, goal: Goal) -> Optional[Any]:
        """Follows a trajectory that nobody waits for, in the place of the present one; that one's handle, or None.

        Such a one has no tolerances, and a stream of them counts as one motion.

        Raises:
            Rejected: see ``send_goal``.
        """
        following = self._accept(goal, None)
        following.path_tolerance = following.goal_tolerance = following.goal_velocity = list(self._zeros)
        replaced = None if self.following is None else self.following.handle
        self.following = following
        self._settled = False
        self._streamed()
        return replaced

    def hold(self) -> None:
        """Ends what runs, and holds the arm where it comes to rest."""
        self._drop_goal("told to hold the position")
        if not self._braking:
            self._catch()

    def _streamed(self) -> None:
        """A streamed target came: a motion begins, if the last one is long ago."""
        if self.cycles - self._streamed_at > NEW_STREAM / self.cycle:
            self._begin_motion()
        self._streamed_at = self.cycles

    def protective_stop(self, reason: str) -> None:
        """Brakes at once; the goal is aborted."""
        self.log("error", f"Stopped: {reason}")
        self._abort(f"stopped: {reason}")

    def emergency_stop(self) -> None:
        """As somebody's fist on the button: brakes at once; the goal is aborted."""
        self.log("error", "Emergency stop.")
        self._abort("emergency stop")

    def _abort(self, text: str) -> None:
        if self.following is not None:
            # No code of FollowJointTrajectoryResult says more than that the arm is not where it should be.
            self._tell("trajectory_done", (self.following.handle, trajectory.PATH_TOLERANCE_VIOLATED, text))
            self.following = None
        if self.moving:
            self._braking = PROTECTIVE_STOP
        else:
            self._stand()


__all__ = ["NEW_STREAM", "PlainController"]
