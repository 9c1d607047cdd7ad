"""Which way a move takes: the straight line of the flange where the arm can follow it, else straight in joint space."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

import numpy as np

from iter_runner.kinematics import AttachedBody, Contact, Obstacle, Obstacles, carrying, clearance, contact_on_way
from iter_runner.planners.base import Unreachable
from iter_runner.planners.contact import TOUCH
from iter_runner.planners.detour import find_detour
from iter_runner.planners.free_space import FreeSpace
from iter_runner.planners.inverse import Branches, Solution, nearest_turn, refine
from iter_runner.planners.line import Line, Pose
from iter_runner.planners.options import MoveOptions
from iter_runner.planners.profile import Profile, straight, time_optimal
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
"""rad of the fastest joint between two positions of a way in joint space."""
CHECK_PARTS = 3
"""Parts of such a step between whose ends a way in joint space is checked."""
BRANCH_JUMP = 0.3
"""rad that a joint may turn between two poses of a line: more is a singularity or another branch."""
UNHINDERED = 1.5
"""A line that by its estimate takes less than this many times longer is not timed to find that out."""
BENDS = (0.08, 0.16, 0.26, 0.4)
"""m by which a bent way goes aside, the first that is free."""
DETOUR = 4.0
"""A line that takes this many times longer than its length asks for (next to a singularity) is not worth it."""


class NoLine(Exception):
    """The straight line can't be followed; the message says why."""


class _Blocked(Exception):
    """Bodies meet on a way in joint space; the message says which."""


@dataclass(frozen=True)
class Route:
    """A way from the start to the goal.

    Attributes:
        line: the flange's straight line, None where the way is straight in joint space.
        joints: (N, n) rad, exact joint positions at equal steps of the way.
        reason: why the straight line was not taken; empty where it was.
        profile: its timing without options, where that is known already.
    """

    line: Optional[Line]
    joints: Vector
    reason: str = ""
    profile: Optional[Profile] = None


class Router:
    """Finds routes for one arm. Pure: the same start and goal give the same route, bit for bit.

    Args:
        robot: the robot's row.
        chain: from the base to the flange.
        obstacles: bodies to keep clear of.
    """

    def __init__(self, robot: Robot, chain: Chain, obstacles: Sequence[Obstacle] = ()) -> None:
        self.chain = chain
        self.velocity = SPEED_MARGIN * np.asarray(chain.velocity_limits, dtype=np.float64)
        self.acceleration = ACCELERATION_MARGIN * np.asarray(robot.limits.acceleration, dtype=np.float64)
        self._bare = chain
        self._obstacles = Obstacles(obstacles)
        self._tuck = np.asarray(robot.tuck, dtype=np.float64)
        self._branches = Branches(chain)

    def update_scene(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody] = ()) -> None:
        """See :class:`iter_runner.planners.base.Planner`; ``chain`` then carries what is attached."""
        self.chain = carrying(self._bare, attached)
        self._obstacles = Obstacles(obstacles)

    def routes(self, start: Vector, target: Pose) -> List[Route]:
        """The straight line where the arm can follow it at a sensible speed, else the best way in joint space, else a
        way around what stands there.

        One route, or several with a stop between each two.

        Raises:
            Unreachable: there is none.
        """
        try:
            return [self._sensible_line(start, target)]
        except NoLine as error:
            reason = str(error)
        with contextlib.suppress(_Blocked):
            return [self._joint_route(start, target, reason)]
        return self._bent(start, target, reason) or self.joint_routes(start, target, reason)

    def _sensible_line(self, start: Vector, target: Pose) -> Route:
        """:meth:`line`; NoLine too where it would have to crawl."""
        route = self.line(start, target)
        assert route.line is not None
        own_duration = line_duration(route.line)
        if self._line_estimate(route) > UNHINDERED * own_duration + 0.5:
            profile = self.profile(route, MoveOptions())
            if profile.duration > DETOUR * own_duration + 2.0:
                raise NoLine("the straight line passes close to a singularity")
            route = replace(route, profile=profile)
        return route

    def _bent(self, start: Vector, target: Pose, reason: str) -> List[Route]:
        """Three lines, beside the straight one: aside, along, and back to the goal; empty where all are blocked.

        By the least distance that is enough: above, else to one side or the other, else nearer to or farther from the
        base, each tried in this order.
        """
        begin = self.chain.fk(start)
        along = target[:3, 3] - begin[:3, 3]
        middle = 0.5 * (target[:3, 3] + begin[:3, 3])
        up = np.array([0.0, 0.0, 1.0])
        side = np.cross(up, along)
        if float(np.linalg.norm(side)) < 1e-3:  # a way up or down is passed on the far side or the near one
            side = np.cross(up, middle)
        size = float(np.linalg.norm(side))
        side = side / size if size > 1e-9 else np.array([0.0, 1.0, 0.0])
        outward = middle * [1.0, 1.0, 0.0]
        size = float(np.linalg.norm(outward))
        outward = outward / size if size > 1e-9 else np.array([1.0, 0.0, 0.0])
        for distance in BENDS:
            for direction in (up, side, -side, -outward, outward):
                over = [np.array(begin), np.array(target)]
                for pose in over:
                    pose[:3, 3] += distance * direction
                routes: List[Route] = []
                with contextlib.suppress(NoLine):
                    for corner in (*over, target):
                        joints = routes[-1].joints[-1] if routes else start
                        routes.append(replace(self._sensible_line(joints, corner), reason=reason))
                    return routes
        return []

    def line(self, start: Vector, target: Pose) -> Route:
        """The flange's straight line, followed exactly and continuously from ``start`` (n,) rad.

        Raises:
            NoLine: a singularity, a joint limit or a collision is in the way.
        """
        line = Line(self.chain.fk(start), target)
        count = line.intervals(LINE_STEP, LINE_TURN)
        poses = line.poses(np.linspace(0.0, 1.0, count + 1)[1:])
        way = np.vstack([start[None, :], self._follow(poses, start)])
        turned = np.max(np.abs(np.diff(way, axis=0)), axis=1)
        if np.max(turned) > BRANCH_JUMP:
            row = int(np.argmax(turned > BRANCH_JUMP))
            joint = int(np.argmax(np.abs(way[row + 1] - way[row])))
            raise NoLine(
                f"at {100 * (row + 1) / count:.0f} % of the straight line a singularity makes "
                f"{self.chain.joint_names[joint]} turn by {turned[row]:.2f} rad at once"
            )
        outside = (way < self.chain.lower - 1e-9) | (way > self.chain.upper + 1e-9)
        if np.any(outside[1:]):
            row, joint = (int(index) for index in np.argwhere(outside[1:])[0])
            raise NoLine(
                f"at {100 * (row + 1) / count:.0f} % of the straight line {self.chain.joint_names[joint]} is beyond "
                f"its limit ({way[row + 1, joint]:.2f} rad)"
            )
        blocked = self.blocked(way)
        if blocked:
            raise NoLine(f"on the straight line {blocked}")
        return Route(line, way)

    def _follow(self, poses: Vector, start: Vector) -> Vector:
        """Joints (N, n) rad for poses (N, 4, 4), from ``start`` on; raises NoLine where one is not reached."""
        way, exact = self._branches.follow(poses, start)
        if not np.all(exact):
            missed = int(np.argmin(exact))
            raise NoLine(
                f"at {100 * (missed + 1) / len(poses):.0f} % of the straight line the arm, bent as it is, does not "
                "reach the pose"
            )
        last = refine(self.chain, way[-1], poses[-1])
        way[-1] = last.positions if last.exact else way[-1]
        return way

    def joint_routes(self, start: Vector, target: Pose, reason: str = "") -> List[Route]:
        """The fastest free way in joint space to any of the goal's joint solutions; if need be by the tucked pose, else
        around what stands there.

        Raises:
            Unreachable: the goal has no solution, none that is clear, or every way collides.
        """
        prefix = f"{reason}; " if reason else ""
        try:
            return [self._joint_route(start, target, reason)]
        except _Blocked as direct:
            # The tucked pose without unwinding the wrists, else as its row has it.
            for via in (nearest_turn(self.chain, self._tuck, start), self._tuck):
                with contextlib.suppress(_Blocked):
                    if via is not None:
                        retreat = replace(self._straight(start, via), reason=reason)
                        return [retreat, self._joint_route(via, target, reason)]
            around = self._around(start, target, reason)
            if around:
                return around
            raise Unreachable(f"{prefix}in joint space {direct}, and so on every way") from None

    def _around(self, start: Vector, target: Pose, reason: str) -> List[Route]:
        """Straight pieces in joint space around what stands there; empty where none were found."""
        space = FreeSpace(self.chain, list(self._obstacles))
        corners = find_detour(self.chain, space, start, self.clear_ends(start, target, reason))
        with contextlib.suppress(_Blocked):
            if corners is not None:
                return [replace(self._straight(a, b), reason=reason) for a, b in zip(corners[:-1], corners[1:])]
        return []

    def _joint_route(self, start: Vector, target: Pose, reason: str) -> Route:
        ends = self.clear_ends(start, target, reason)
        durations = [self._joint_duration(start, end) for end in ends]
        problem: Optional[_Blocked] = None
        for index in np.argsort(durations, kind="stable"):
            try:
                return replace(self._straight(start, ends[index]), reason=reason)
            except _Blocked as error:
                problem = problem or error
        assert problem is not None
        raise problem

    def clear_ends(self, start: Vector, target: Pose, reason: str = "") -> List[Vector]:
        """The goal's joint solutions at which nothing overlaps, whatever the arm stands in at ``start``.

        Raises:
            Unreachable: there is none; the message begins with ``reason``.
        """
        ends = [solution.positions for solution in self.solutions(start, target)]
        nearest = [clearance(self.chain, end, self._obstacles) for end in ends]
        clear = [end for end, found in zip(ends, nearest) if found.distance >= -TOUCH]
        if clear:
            return clear
        best = max(nearest, key=lambda found: found.distance)
        x, y, z = target[:3, 3]
        count = "its only configuration" if len(ends) == 1 else f"the best of its {len(ends)} configurations"
        raise Unreachable(
            f"{reason + '; ' if reason else ''}at the pose ({x:.3f}, {y:.3f}, {z:.3f}) m in {self.chain.base} "
            f"{best.a} and {best.b} overlap by {_millimetres(-best.distance)} in {count}"
        )

    def _straight(self, start: Vector, end: Vector) -> Route:
        count = max(1, math.ceil(float(np.max(np.abs(end - start))) / JOINT_STEP))
        fine = start + np.linspace(0.0, 1.0, CHECK_PARTS * count + 1)[:, None] * (end - start)
        fine[-1] = end
        blocked = self.blocked(fine)
        if blocked:
            raise _Blocked(blocked)
        return Route(None, fine[::CHECK_PARTS])

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
        if route.profile is not None and options.velocity is None and options.acceleration is None:
            return route.profile.stretched(options.stretch)
        try:
            if route.line is None:
                return straight(route.joints[0], route.joints[-1], self.velocity, self.acceleration, options.stretch)
            phase_velocity, phase_acceleration = line_limits(route.line, options)
            return time_optimal(
                route.joints, self.velocity, self.acceleration, phase_velocity, phase_acceleration, options.stretch
            )
        except ValueError as error:
            raise NoLine(str(error)) from error

    def _line_estimate(self, route: Route) -> float:
        """About how long, s, a line takes at the speed that the joints' limits allow at each place."""
        assert route.line is not None
        count = len(route.joints) - 1
        speed, _ = line_limits(route.line, MoveOptions())
        steps = np.max(np.abs(np.diff(route.joints, axis=0)) / self.velocity, axis=1)
        if count > 1:
            bends = np.sqrt(np.max(np.abs(np.diff(route.joints, 2, axis=0)) / self.acceleration, axis=1))
            steps[1:] = np.maximum(steps[1:], bends)
            steps[:-1] = np.maximum(steps[:-1], bends)
        return float(np.sum(np.maximum(steps, 1.0 / (count * speed))))

    def _joint_duration(self, start: Vector, end: Vector) -> float:
        """Lower bound of the time from ``start`` to ``end``, s: the slowest joint alone."""
        distance = np.abs(end - start)
        ramps = 2.0 * np.sqrt(distance / self.acceleration)
        cruise = distance / self.velocity + self.velocity / self.acceleration
        return float(np.max(np.where(distance < self.velocity**2 / self.acceleration, ramps, cruise)))

    def clear(self, way: Vector) -> bool:
        """Whether nothing overlaps on the way (N, n) rad, but for what the arm gets out of."""
        return not self.blocked(way)

    def distance(self, positions: Vector) -> float:
        """The smallest distance at (n,) rad, m, negative in contact."""
        return clearance(self.chain, positions, self._obstacles).distance

    def blocked(self, way: Vector) -> str:
        """Which bodies meet on the way, empty if none do. An arm that starts in contact has to get out of it."""
        contact = contact_on_way(self.chain, way, self._obstacles, TOUCH)
        if contact is None:
            end = clearance(self.chain, way[-1], self._obstacles)
            if end.distance >= -TOUCH:
                return ""
            contact = Contact(len(way) - 1, end.a, end.b, -end.distance)
        share = 100.0 * contact.row / max(1, len(way) - 1)
        return f"{contact.a} and {contact.b} overlap by {_millimetres(contact.depth)} at {share:.0f} % of the way"


def _millimetres(depth: float) -> str:
    return f"{depth * 1e3:.1f} mm" if depth < 0.00995 else f"{depth * 1e3:.0f} mm"


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
