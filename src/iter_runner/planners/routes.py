"""Which way a move takes: the straight line of the flange where the arm can follow it, else straight in joint space."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple

import numpy as np

from iter_runner.kinematics import clearance
from iter_runner.planners.base import Unreachable
from iter_runner.planners.inverse import Branches, Solution, refine
from iter_runner.planners.line import Line, Pose
from iter_runner.planners.options import MoveOptions
from iter_runner.planners.profile import Profile, time_optimal
from iter_runner.robot.arm import Vector

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain
    from iter_runner.robot.table import Robot

LINEAR_SPEED = 0.5
"""m/s, ceiling of the flange: 5 mm a tick at 100 Hz."""
LINEAR_ACCELERATION = 1.2
"""m/s², as URScript's movel."""
ANGULAR_SPEED = 1.5
"""rad/s, ceiling of the flange's turning."""
ANGULAR_ACCELERATION = 3.6
"""rad/s²."""
SPEED_MARGIN = 0.85
"""Share of the joints' speed limits that a planned motion uses."""
ACCELERATION_MARGIN = 0.75
"""Share of the joints' acceleration limits that a planned motion uses."""

LINE_STEP = 0.005
"""m between two poses at which a line is checked."""
LINE_TURN = math.radians(2.0)
"""rad of turning between the same."""
JOINT_STEP = 0.05
"""rad of the fastest joint between two positions at which a way in joint space is checked."""
BRANCH_JUMP = 0.3
"""rad that a joint may turn between two poses of a line: more is a singularity or another branch."""
DETOUR = 4.0
"""A line that takes this many times longer than its length asks for (next to a singularity) is not worth it."""


class NoLine(Exception):
    """The straight line can't be followed; the message says why."""


@dataclass(frozen=True)
class Route:
    """A way from the start to the goal.

    Attributes:
        line: the flange's straight line, None where the way is straight in joint space.
        joints: (N, n) rad, exact joint positions at equal steps of the way.
        reason: why the straight line was not taken; empty where it was.
    """

    line: Optional[Line]
    joints: Vector
    reason: str = ""


class Router:
    """Finds routes for one arm. Pure: the same start and goal give the same route, bit for bit.

    Args:
        robot: the robot's row.
        chain: from the base to the flange.
        obstacles: bodies to keep clear of.
    """

    def __init__(self, robot: Robot, chain: Chain, obstacles: Sequence[Any] = ()) -> None:
        self.chain = chain
        self.velocity = SPEED_MARGIN * np.asarray(chain.velocity_limits, dtype=np.float64)
        self.acceleration = ACCELERATION_MARGIN * np.asarray(robot.limits.acceleration, dtype=np.float64)
        self._obstacles = list(obstacles)
        self._branches = Branches(chain, np.asarray(robot.tuck, dtype=np.float64))

    def route(self, start: Vector, target: Pose) -> Route:
        """The straight line where the arm can follow it at a sensible speed, else the best way in joint space.

        Raises:
            Unreachable: neither exists.
        """
        try:
            route = self.line(start, target)
            own_duration = line_duration(route.line) if route.line is not None else 0.0
            if self.profile(route, MoveOptions()).duration > DETOUR * own_duration + 2.0:
                raise NoLine("the straight line passes close to a singularity")
            return route
        except NoLine as error:
            return self.joint_route(start, target, str(error))

    def line(self, start: Vector, target: Pose) -> Route:
        """The flange's straight line, followed exactly and continuously from ``start`` (n,) rad.

        Raises:
            NoLine: a singularity, a joint limit or a collision is in the way.
        """
        line = Line(self.chain.fk(start), target)
        count = line.intervals(LINE_STEP, LINE_TURN)
        joints = [np.array(start, dtype=np.float64)]
        for k in range(1, count + 1):
            guess = joints[-1] if k == 1 else 2.0 * joints[-1] - joints[-2]
            where = f"at {100 * k / count:.0f} % of the straight line"
            solution = refine(self.chain, np.clip(guess, self.chain.lower, self.chain.upper), line.pose(k / count))
            if not solution.exact:
                miss = max(solution.position_error * 1e3, math.degrees(solution.orientation_error))
                raise NoLine(f"{where} {self._what_stops(solution)} ({miss:.1f} mm or degrees off)")
            jump = np.abs(solution.positions - joints[-1])
            if np.max(jump) > BRANCH_JUMP:
                joint = self.chain.joint_names[int(np.argmax(jump))]
                raise NoLine(f"{where} a singularity makes {joint} turn by {np.max(jump):.2f} rad at once")
            joints.append(solution.positions)
        way = np.array(joints)
        blocked = self._blocked(way)
        if blocked:
            raise NoLine(f"on the straight line {blocked}")
        return Route(line, way)

    def joint_route(self, start: Vector, target: Pose, reason: str = "") -> Route:
        """The fastest free way in joint space to any of the goal's joint solutions.

        Raises:
            Unreachable: the goal has no solution, or every way collides.
        """
        prefix = f"{reason}; " if reason else ""
        ways: List[Tuple[float, int, Vector]] = []
        for index, solution in enumerate(self.solutions(start, target)):
            ways.append((self._joint_duration(start, solution.positions), index, solution.positions))
        problems = []
        for _, _, end in sorted(ways, key=lambda way: way[:2]):
            count = max(1, math.ceil(float(np.max(np.abs(end - start))) / JOINT_STEP))
            way = start + np.linspace(0.0, 1.0, count + 1)[:, None] * (end - start)
            way[-1] = end
            blocked = self._blocked(way)
            if not blocked:
                return Route(None, way, reason)
            problems.append(blocked)
        raise Unreachable(f"{prefix}in joint space {problems[0]} (and so on all {len(problems)} ways)")

    def solutions(self, start: Vector, target: Pose) -> List[Solution]:
        """The goal's exact joint solutions, each turned as near to ``start`` as the limits allow.

        Raises:
            Unreachable: there is none; the message says how far off the nearest pose is.
        """
        solutions = self._branches.solve(target, start)
        exact = [solution for solution in solutions if solution.exact]
        if exact:
            return exact
        x, y, z = target[:3, 3]
        place = f"the pose at ({x:.3f}, {y:.3f}, {z:.3f}) m in {self.chain.base}"
        if not solutions:
            raise Unreachable(f"{place} needs joints outside their limits")
        best = min(solutions, key=lambda solution: solution.position_error + 0.1 * solution.orientation_error)
        raise Unreachable(
            f"{place} is out of reach: the nearest that the arm comes is {best.position_error * 1e3:.0f} mm and "
            f"{math.degrees(best.orientation_error):.1f} degrees off"
        )

    def profile(self, route: Route, options: MoveOptions) -> Profile:
        """The timing of ``route``: the joints' limits, and the flange's ceilings along a line.

        Raises:
            NoLine: it can't be timed.
        """
        phase_velocity: Optional[float] = None
        phase_acceleration: Optional[float] = None
        if route.line is not None:
            phase_velocity, phase_acceleration = line_limits(route.line, options)
        try:
            return time_optimal(
                route.joints, self.velocity, self.acceleration, phase_velocity, phase_acceleration, options.stretch
            )
        except ValueError as error:
            raise NoLine(str(error)) from error

    def _joint_duration(self, start: Vector, end: Vector) -> float:
        """Lower bound of the time from ``start`` to ``end``, s: the slowest joint alone."""
        distance = np.abs(end - start)
        ramps = 2.0 * np.sqrt(distance / self.acceleration)
        cruise = distance / self.velocity + self.velocity / self.acceleration
        return float(np.max(np.where(distance < self.velocity**2 / self.acceleration, ramps, cruise)))

    def _what_stops(self, solution: Solution) -> str:
        for name, value, lower, upper in zip(
            self.chain.joint_names, solution.positions, self.chain.lower, self.chain.upper
        ):
            if value <= lower + 1e-9 or value >= upper - 1e-9:
                return f"{name} is at its limit of {value:.2f} rad"
        return "the pose is out of reach or at a singularity"

    def _blocked(self, way: Vector) -> str:
        """Which bodies meet on the way, empty if none do. A way may come no closer than its ends already are."""
        blocked = self._blocked_by((), way, ends=way[:1])
        if not blocked and self._obstacles:
            blocked = self._blocked_by(self._obstacles, way, ends=way[[0, -1]])
        return blocked

    def _blocked_by(self, obstacles: Sequence[Any], way: Vector, ends: Vector) -> str:
        allowed = min([0.0] + [clearance(self.chain, q, obstacles).distance for q in ends])
        for index, q in enumerate(way):
            found = clearance(self.chain, q, obstacles)
            if found.distance < allowed - 1e-6:
                share = 100.0 * index / max(1, len(way) - 1)
                return f"{found.a} and {found.b} overlap by {-found.distance * 1e3:.0f} mm at {share:.0f} % of the way"
        return ""


def line_limits(line: Line, options: MoveOptions) -> Tuple[float, float]:
    """Ceilings of the phase's speed (1/s) and acceleration (1/s²) along a line, from the flange's."""
    speed = min(LINEAR_SPEED, options.velocity or math.inf)
    rise = min(LINEAR_ACCELERATION, options.acceleration or math.inf)
    # Turning slows down with the velocity asked for, too: a move is slow as a whole.
    slowness = speed / LINEAR_SPEED
    velocities = [speed / line.length if line.length > 1e-9 else math.inf]
    velocities.append(slowness * ANGULAR_SPEED / line.angle if line.angle > 1e-9 else math.inf)
    accelerations = [rise / line.length if line.length > 1e-9 else math.inf]
    accelerations.append(
        ANGULAR_ACCELERATION * rise / LINEAR_ACCELERATION / line.angle if line.angle > 1e-9 else math.inf
    )
    return min(min(velocities), 1e3), min(min(accelerations), 1e6)


def line_duration(line: Line) -> float:
    """The time, s, that a line takes at the flange's own ceilings."""
    velocity, acceleration = line_limits(line, MoveOptions())
    if acceleration < velocity**2:
        return 2.0 / math.sqrt(acceleration)
    return 1.0 / velocity + velocity / acceleration
