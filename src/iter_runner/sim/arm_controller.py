"""What every simulated arm controller does: joints, one cycle at a time, and trajectories. No ROS, no wall time.

An :class:`ArmController` is stepped once a cycle and knows nothing of who makes the arm; the manners of a maker's
controller are in the classes derived from it. Vectors are plain lists: at six joints they beat arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, List, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from iter_runner.sim import trajectory
from iter_runner.sim.trajectory import Following, Goal, Rejected

Matrix = NDArray[np.float64]

# How an arm follows the set points of its trajectories: External Control's own servoj (ur_robot_driver,
# resources/ros_control.urscript). Other controllers lag much the same.
EXTERNAL_LOOKAHEAD = 0.03  # s
EXTERNAL_GAIN = 2000.0
PROGRAM_STOP = 10.0  # rad/s², where a program ends while the arm still moves
PROTECTIVE_STOP = 30.0  # rad/s²
SPEED_MARGIN = 1.01  # a planner may run at the limit itself
SERVO_MARGIN = 1.1  # and the lag that follows it overshoots by 6 % where its speed steps
SHORT_SHARE = 0.9  # of the way, where a trajectory that is cut short ends


class Kinematics(Protocol):
    """The arm's geometry in the controller's own frame, ``base``."""

    def forward(self, q: Sequence[float]) -> Matrix:
        """(4, 4) pose of the flange (``tool0``) in ``base``, m, at joints (n,) rad."""

    def inverse(self, flange: Matrix, near: Sequence[float]) -> Optional[List[float]]:
        """The joints (n,) rad of the solution nearest to ``near``; None where the pose is out of reach."""


@dataclass(frozen=True)
class ArmModel:
    """What the controller knows of its arm.

    Attributes:
        joint_names: base to tip.
        lower, upper: rad.
        velocity_limits: rad/s.
        cycle: s.
        kinematics: what moves of the tool need; None where the controller can't do them.
        flange: joints (n,) rad to the (4, 4) pose of the row's tool frame in its base frame, m; for the world around.
        acceleration_limits: rad/s², what streamed velocities are followed with; empty for those who have no such mode.
    """

    joint_names: Tuple[str, ...]
    lower: Tuple[float, ...]
    upper: Tuple[float, ...]
    velocity_limits: Tuple[float, ...]
    cycle: float
    kinematics: Optional[Kinematics] = None
    flange: Optional[Callable[[Sequence[float]], Matrix]] = None
    acceleration_limits: Tuple[float, ...] = ()


class ProtectiveStop(Exception):
    """A commanded joint left its limits."""


class Happening(NamedTuple):
    """Something that the outside is to be told; ``kind`` says what ``value`` is.

    Kinds: log ((level, text)), trajectory_done ((handle, code, text)), trajectory_cancelled ((handle, text)); of a UR
    also robot_mode, safety_mode, program_running (bool), scaling (float), popup (text), output ((pin, on)).
    """

    kind: str
    value: Any


class ArmController:
    """One arm. Everything here is to be called between cycles, from one thread.

    Attributes:
        q: (n,) rad, measured joint positions.
        v: (n,) rad/s.
        cycles: cycles since power-on.
        happenings: what the outside has not been told yet; the caller empties it.
        motions: motions begun so far: trajectories, moves of the controller's own, streams (one each).
        trajectories: goals accepted so far.
        following: the trajectory under way.
        scaling: of the speed of trajectories, 0 to 1.
    """

    def __init__(self, model: ArmModel, start: Union[Sequence[float], Matrix]) -> None:
        if len(start) != len(model.joint_names):
            raise ValueError(f"start: {len(model.joint_names)} joints expected, {len(start)} found")
        self.model = model
        self.cycle = model.cycle
        self.q: List[float] = [float(value) for value in start]
        self.v: List[float] = [0.0] * len(start)
        self._zeros = (0.0,) * len(start)
        self._fastest = tuple(limit * SPEED_MARGIN for limit in model.velocity_limits)
        self._fastest_servo = tuple(limit * SERVO_MARGIN for limit in model.velocity_limits)
        self.cycles = 0
        self.happenings: List[Happening] = []
        self.motions = 0
        self.before_motion: Callable[[int], None] = lambda count: None
        """Called with the count of motions as each one begins: where faults are injected."""
        self.trajectories = 0
        self.stops_short: Callable[[int], bool] = lambda count: False
        """Called with the count of trajectories as each one begins: whether it is to end before its way does."""
        self.scaling = 1.0
        self.following: Optional[Following] = None
        self._set_point = list(self.q)
        self._settled = True
        self._braking = 0.0
        self._cuts_off = False  # what is asked beyond the limits; others stop the arm

    # ---- one cycle ----

    @property
    def time(self) -> float:
        """Simulated seconds since power-on."""
        return self.cycles * self.cycle

    @property
    def moving(self) -> bool:
        """Whether any joint moves."""
        return any(self.v)

    def step(self) -> None:
        """One cycle of the controller."""
        raise NotImplementedError

    def protective_stop(self, reason: str) -> None:
        """Brakes at once, and ends what runs."""
        raise NotImplementedError

    def emergency_stop(self) -> None:
        """As somebody's fist on the button."""
        raise NotImplementedError

    def _check(self, q: Sequence[float], v: Sequence[float], limits: Optional[Sequence[float]] = None) -> None:
        model = self.model
        for j, fastest in enumerate(limits or self._fastest):
            if not -fastest <= v[j] <= fastest:
                raise ProtectiveStop(
                    f"{model.joint_names[j]}: commanded speed {v[j]:.3f} rad/s is beyond the limit of "
                    f"{model.velocity_limits[j]:.3f} rad/s"
                )
            if not model.lower[j] <= q[j] <= model.upper[j]:
                raise ProtectiveStop(
                    f"{model.joint_names[j]}: commanded position {q[j]:.4f} rad is outside its limits "
                    f"{model.lower[j]:.4f} to {model.upper[j]:.4f} rad"
                )

    def _cut_off(self, q: List[float]) -> List[float]:
        """The set point (n,) rad that is left of one beyond the limits, where ``_cuts_off``."""
        raise NotImplementedError

    def _servo(self, target: Sequence[float], lookahead: float, gain: float) -> None:
        """One cycle of UR's servoj, as a second-order lag.

        The acceleration is gain * (target - q - lookahead * dq/dt): a ramp is followed ``lookahead`` s late. Integrated
        backwards in time (Euler), which no pair of lookahead and gain makes unstable.
        """
        h = self.cycle
        pull = h * gain
        damp = 1.0 / (1.0 + pull * (lookahead + h))
        q, v = self.q, self.v
        new_v = [(v[j] + pull * (target[j] - q[j])) * damp for j in range(len(q))]
        new_q = [q[j] + h * new_v[j] for j in range(len(q))]
        self._check(new_q, new_v, self._fastest_servo)
        self.q = new_q
        self.v = new_v

    def _brake(self, deceleration: float) -> None:
        """One cycle of slowing down along the present direction; the fastest joint loses ``deceleration`` rad/s²."""
        fastest = max(map(abs, self.v))
        slower = fastest - deceleration * self.cycle
        if slower <= 0.0:
            self._stand()
            self._braking = 0.0
            return
        share = slower / fastest
        self.v = [value * share for value in self.v]
        # Braking may end a little past a limit that the arm came too close to: never the reason for another stop.
        self.q = [a + value * self.cycle for a, value in zip(self.q, self.v)]

    def _stand(self) -> None:
        self.v = list(self._zeros)
        self._set_point = list(self.q)
        self._settled = True

    def _catch(self) -> None:
        """An arm that still moves is caught where its lag behind a target at rest ends."""
        self._braking = 0.0
        self._set_point = [a + EXTERNAL_LOOKAHEAD * b for a, b in zip(self.q, self.v)]
        self._settled = False

    def _begin_motion(self) -> None:
        self.motions += 1
        self.before_motion(self.motions)

    def _tell(self, kind: str, value: Any) -> None:
        self.happenings.append(Happening(kind, value))

    def log(self, level: str, text: str) -> None:
        """A line for the controller's log."""
        self._tell("log", (level, text))

    # ---- trajectories ----

    def _refusal(self) -> str:
        """Why no trajectory is accepted now; empty where one is."""
        return ""

    def send_goal(self, goal: Goal, handle: Any) -> Optional[Any]:
        """Begins to follow a trajectory, in the place of the present one; the replaced goal's handle, or None.

        Raises:
            Rejected: as a real joint_trajectory_controller refuses it; nothing has changed.
        """
        following = self._accept(goal, handle)
        replaced = None if self.following is None else self.following.handle
        self.trajectories += 1
        if self.stops_short(self.trajectories):
            following.stop_at(SHORT_SHARE)
        self.following = following
        self._settled = False
        self._begin_motion()
        return replaced

    def _accept(self, goal: Goal, handle: Any) -> Following:
        refusal = self._refusal()
        if refusal:
            raise Rejected(trajectory.INVALID_GOAL, refusal)
        velocity = list(self._zeros) if self.following is None else self.following.desired_velocity
        return trajectory.accept(goal, handle, self.model.joint_names, self._set_point, velocity)

    def cancel_goal(self, handle: Any) -> bool:
        """Holds the arm where the trajectory has brought its set point; whether ``handle`` was being followed."""
        if self.following is None or self.following.handle is not handle:
            return False
        self.following = None
        return True

    def _follow(self) -> None:
        run = self.following
        if run is None:
            if not self._settled:
                self._servo(self._set_point, EXTERNAL_LOOKAHEAD, EXTERNAL_GAIN)
                error = max(abs(a - b) for a, b in zip(self.q, self._set_point))
                if error < 1e-9 and max(map(abs, self.v)) < 1e-7:
                    self.q = list(self._set_point)
                    self._stand()
            return
        at_end = run.advance(self.cycle * self.scaling)
        desired = run.desired
        speeds = run.desired_velocity
        scaling = self.scaling
        self._check(desired, speeds if scaling == 1.0 else [value * scaling for value in speeds])
        self._set_point = self._cut_off(desired) if self._cuts_off else desired
        q = self.q
        if not at_end:
            for j, allowed in enumerate(run.path_tolerance):
                if allowed and abs(desired[j] - q[j]) > allowed:
                    self._violated(run, trajectory.PATH_TOLERANCE_VIOLATED, j, desired[j] - q[j], allowed)
                    return
        self._servo(self._set_point, EXTERNAL_LOOKAHEAD, EXTERNAL_GAIN)
        if at_end:
            self._check_goal(run)

    def _check_goal(self, run: Following) -> None:
        off = -1
        for j, allowed in enumerate(run.goal_tolerance):
            if allowed and abs(run.desired[j] - self.q[j]) > allowed:
                off = j
                break
            if run.goal_velocity[j] and abs(self.v[j]) > run.goal_velocity[j]:
                off = j
                break
        if off < 0:
            self.following = None
            self._tell("trajectory_done", (run.handle, trajectory.SUCCESSFUL, ""))
            return
        run.late += self.cycle
        if run.late > run.grace:
            error = run.desired[off] - self.q[off]
            self._violated(run, trajectory.GOAL_TOLERANCE_VIOLATED, off, error, run.goal_tolerance[off])

    def _violated(self, run: Following, code: int, joint: int, error: float, allowed: float) -> None:
        word = "Path" if code == trajectory.PATH_TOLERANCE_VIOLATED else "Goal"
        text = f"{word} state tolerances failed: {self.model.joint_names[joint]} is {error:.4f} rad off, "
        self.following = None
        self._set_point = list(self.q)
        self._tell("trajectory_done", (run.handle, code, text + f"at most {allowed:.4f} rad expected."))

    def _drop_goal(self, text: str) -> None:
        if self.following is not None:
            self._tell("trajectory_cancelled", (self.following.handle, text))
            self.following = None


def quintic_duration(way: Sequence[float], velocities: Sequence[float], accelerations: Sequence[float]) -> float:
    """s that a joint ``way`` (n,) rad from rest to rest takes as a quintic within limits (n,) rad/s and rad/s².

    A quintic from rest to rest over a length L in T s peaks at 15 L / (8 T) and 10 L / (sqrt(3) T²).
    """
    longest = 0.0
    for length, fastest, hardest in zip(map(abs, way), velocities, accelerations):
        longest = max(longest, 1.875 * length / fastest, math.sqrt(10.0 / math.sqrt(3.0) * length / hardest))
    return longest
