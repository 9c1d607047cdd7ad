"""The simulated controller of an arm behind a plain joint_trajectory_controller of ros_control, whoever made it."""

from __future__ import annotations

from iter_runner.sim import trajectory
from iter_runner.sim.arm_controller import PROTECTIVE_STOP, ArmController, ProtectiveStop


class PlainController(ArmController):
    """Follows trajectories; what stops it ends the goal, and it takes the next one as soon as the arm stands."""

    def step(self) -> None:
        """One cycle of the controller."""
        self.cycles += 1
        try:
            if self._braking:
                self._brake(self._braking)
            else:
                self._move()
        except ProtectiveStop as stop:
            self.log("error", f"Trajectory ended: {stop}")
            self._abort(str(stop))

    def _move(self) -> None:
        self._follow()

    def _refusal(self) -> str:
        return "Can't accept new action goals. Controller is not running." if self._braking else ""

    def hold(self) -> None:
        """Ends what runs, and holds the arm where it comes to rest."""
        self._drop_goal("told to hold the position")
        if not self._braking:
            self._catch()

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


__all__ = ["PlainController"]
