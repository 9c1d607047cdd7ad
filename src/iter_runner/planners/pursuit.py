"""A goal that may change at every tick, pursued by a stepped pose and one joint solution a tick: teleoperation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Sequence

import numpy as np

from iter_runner.kinematics import Obstacles, RelaxedIK, clearance
from iter_runner.kinematics.rotations import matrix_to_rotation_vector, rotation_vector_to_matrix
from iter_runner.planners.line import Pose, pose_error
from iter_runner.robot.arm import Vector

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain
    from iter_runner.robot.table import Robot

LONGEST_STEP = 0.005
"""m that the stepped pose moves in a tick at most."""
TOP_SPEED = 0.5
"""m/s of the stepped pose at most."""
JOINT_SPEED = 1.5
"""rad/s of every joint at most: near a singularity the tool waits for the joints."""
LEAD = (0.005, 0.02)
"""m and rad that the stepped pose may be ahead of the one that the joints have: it waits for them."""
EXACT = (1e-4, 1e-3)
"""m and rad within which the solver's pose is the one asked for."""
SETTLED = 2e-5
"""rad a tick below which the joints stand."""
SETTLED_TICKS = 5
SYNCHRONOUS = 1e-9
"""rad that the joints may be off the solver's."""


@dataclass(frozen=True)
class PursuitLimits:
    """How fast the stepped pose moves.

    Attributes:
        speed, acceleration: of its position, m/s and m/s².
        turn_speed, turn_acceleration: of its orientation, rad/s and rad/s².
    """

    speed: float = 0.25
    acceleration: float = 1.0
    turn_speed: float = 1.0
    turn_acceleration: float = 4.0


def braking_step(way: Vector, rise: Any) -> Vector:
    """The steps from which what changes its step by at most ``rise`` a tick still comes to rest within ``way`` >= 0."""
    return 0.5 * rise * (np.sqrt(1.0 + 8.0 * way / rise) - 1.0)


class _Glide:
    """A vector quantity that is moved towards where it is wanted, bounded in speed and acceleration."""

    def __init__(self, most: float, rise: float) -> None:
        self._most = most
        self._rise = rise
        self.step = np.zeros(3)

    def advance(self, way: Vector) -> Vector:
        """The next step (3,) of one that has ``way`` (3,) to go."""
        length = float(np.linalg.norm(way))
        wanted = np.zeros(3)
        if length > 0.0:
            wanted = way / length * min(length, self._most, float(braking_step(np.array(length), self._rise)))
        change = wanted - self.step
        size = float(np.linalg.norm(change))
        self.step = self.step + (change if size <= self._rise else change * (self._rise / size))
        return self.step


class Pursuit:
    """Follows whatever pose it is given, tick by tick, from where the arm stands.

    The pose that is solved for never jumps: it is stepped towards the goal within :class:`PursuitLimits`. It stays
    within :data:`LEAD` of the pose that the joints have, so that a goal out of reach is held at the nearest pose and
    left at once when it comes back. The joints keep to their limits of position, speed and acceleration whatever the
    solver says; where that means that they do not have the solution, the solver goes on from the joints, never from
    where it would have liked them. A step into contact is not taken. Advances by ticks, never by time.

    Args:
        robot: its row gives the tick (``stream_rate``), the joints' accelerations and the solver's objectives.
        chain: the robot's.
        limits: of the stepped pose; its speed is bounded by :data:`TOP_SPEED` and :data:`LONGEST_STEP` as well.
        obstacles: what to stay clear of, in the chain's base.
    """

    def __init__(
        self,
        robot: Robot,
        chain: Chain,
        limits: Optional[PursuitLimits] = None,
        obstacles: Sequence[Any] = (),
    ) -> None:
        limits = limits or PursuitLimits()
        self.period = 1.0 / robot.stream_rate
        self._chain = chain
        self._obstacles = Obstacles(obstacles)
        # Without reconfiguration: an arm that a person leads does not swing to another branch by itself.
        self._solver = RelaxedIK(
            chain, weights=robot.objectives, obstacles=self._obstacles, period=self.period, reconfigure=False
        )
        self._limits = limits
        self._tick_speed = np.minimum(0.98 * np.asarray(chain.velocity_limits), JOINT_SPEED) * self.period
        self._tick_rise = 0.98 * np.asarray(robot.limits.acceleration) * self.period**2
        self.reset(np.asarray(robot.tuck, dtype=np.float64))

    def reset(self, joints: Vector) -> None:
        """Starts anew from ``joints`` (n,) rad, at rest."""
        limits, period = self._limits, self.period
        self.joints = np.array(joints, dtype=np.float64)
        self._joint_step = np.zeros(len(self.joints))
        self._solver.reset(self.joints)
        self._clearance = self._distance(self.joints)
        self.pose: Pose = np.array(self._chain.fk(self.joints))
        most = min(limits.speed, TOP_SPEED) * period
        self._glide = _Glide(min(most, LONGEST_STEP), limits.acceleration * period**2)
        self._turn = _Glide(limits.turn_speed * period, limits.turn_acceleration * period**2)
        self._still = 0

    @property
    def settled(self) -> bool:
        """Whether the joints have stood for some ticks."""
        return self._still >= SETTLED_TICKS

    def off(self, goal: Pose) -> tuple[float, float]:
        """How far (m, rad) the joints' pose is from ``goal`` (4, 4)."""
        return pose_error(self._chain.fk(self.joints), goal)

    def tick(self, goal: Optional[Pose]) -> Vector:
        """The joints (n,) rad of the next tick on the way to ``goal`` (4, 4), or of coming to rest where it is None."""
        self._step_pose(goal)
        wanted = np.asarray(self._solver.solve(self.pose))
        report = self._solver.report
        exact = report.position_error < EXACT[0] and report.orientation_error < EXACT[1]
        joints = self._step_joints(wanted, exact)
        distance = self._distance(joints)
        if distance < 0.0 and distance < self._clearance - 1e-6:
            self.reset(self.joints)
            return self.joints
        behind = float(np.max(np.abs(joints - wanted))) > SYNCHRONOUS
        if behind:
            self._solver.reset(joints)
        before, actual = np.asarray(self._chain.fk(self.joints)), np.asarray(self._chain.fk(joints))
        self._clearance = distance
        self._joint_step, self.joints = joints - self.joints, joints
        self._still = self._still + 1 if float(np.max(np.abs(self._joint_step))) < SETTLED else 0
        if behind and exact:  # the stepped pose goes on from the joints' pose as fast as that moves
            self.pose = actual
            self._glide.step = actual[:3, 3] - before[:3, 3]
            self._turn.step = np.asarray(matrix_to_rotation_vector(actual[:3, :3] @ before[:3, :3].T))
        else:
            self._keep_near(actual)
        return joints

    def _step_pose(self, goal: Optional[Pose]) -> None:
        pose = self.pose
        way, turn = np.zeros(3), np.zeros(3)
        if goal is not None:
            way = goal[:3, 3] - pose[:3, 3]
            turn = np.asarray(matrix_to_rotation_vector(goal[:3, :3] @ pose[:3, :3].T))
        self.pose = _pose(
            np.asarray(rotation_vector_to_matrix(self._turn.advance(turn))) @ pose[:3, :3],
            pose[:3, 3] + self._glide.advance(way),
        )

    def _step_joints(self, wanted: Vector, exact: bool) -> Vector:
        """``wanted`` (n,) rad where the limits allow it, else what they allow.

        A solution that is not ``exact`` is the nearest to a pose out of reach: the joints come to rest there, without
        the overshoot that makes them hunt for it.
        """
        way, rise = wanted - self.joints, self._tick_rise
        most = self._tick_speed
        if not exact and np.any(np.abs(way - self._joint_step) > rise):
            most = np.minimum(most, braking_step(np.abs(way), rise))
        step = np.clip(np.clip(way, -most, most), self._joint_step - rise, self._joint_step + rise)
        lower = np.minimum(self._chain.lower, self.joints)
        upper = np.maximum(self._chain.upper, self.joints)
        joints = np.clip(self.joints + step, lower, upper)
        travel = float(np.linalg.norm(self._chain.fk(joints)[:3, 3] - self._chain.fk(self.joints)[:3, 3]))
        if travel > LONGEST_STEP:
            joints = self.joints + (joints - self.joints) * (LONGEST_STEP / travel)
        return joints

    def _keep_near(self, actual: Pose) -> None:
        """Takes the stepped pose back to at most :data:`LEAD` ahead of ``actual``."""
        lead = self.pose[:3, 3] - actual[:3, 3]
        turn = np.asarray(matrix_to_rotation_vector(self.pose[:3, :3] @ actual[:3, :3].T))
        far, wide = float(np.linalg.norm(lead)), float(np.linalg.norm(turn))
        if far > LEAD[0] or wide > LEAD[1]:
            turn = turn * min(1.0, LEAD[1] / max(wide, 1e-12))
            lead = lead * min(1.0, LEAD[0] / max(far, 1e-12))
            before, self.pose = self.pose, _pose(rotation_vector_to_matrix(turn) @ actual[:3, :3], actual[:3, 3] + lead)
            self._glide.step = self._glide.step + self.pose[:3, 3] - before[:3, 3]
            self._turn.step = self._turn.step + matrix_to_rotation_vector(self.pose[:3, :3] @ before[:3, :3].T)

    def _distance(self, joints: Vector) -> float:
        return float(clearance(self._chain, joints, self._obstacles).distance)


def _pose(rotation: Vector, position: Vector) -> Pose:
    pose = np.eye(4)
    pose[:3, :3] = rotation
    pose[:3, 3] = position
    return pose
