"""Joint trajectories as ros_control's joint_trajectory_controller checks and interpolates them. Pure functions.

The manners (what is refused, how a new trajectory joins the present motion, which spline fits which data) follow
``joint_trajectory_controller`` of ros_controllers (noetic-devel).
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

SUCCESSFUL = 0
INVALID_GOAL = -1
INVALID_JOINTS = -2
OLD_HEADER_TIMESTAMP = -3
PATH_TOLERANCE_VIOLATED = -4
GOAL_TOLERANCE_VIOLATED = -5

# ur_robot_driver's defaults (ur5_controllers.yaml and its siblings).
PATH_TOLERANCE = 0.2  # rad
GOAL_TOLERANCE = 0.1  # rad
STOPPED_VELOCITY = 0.05  # rad/s
GOAL_TIME = 0.6  # s

LENGTH_SAMPLES = 20  # of a segment, for the length of its way
STOP_RAMP = 0.25  # s of a trajectory in which one that ends on its way slows down; takes twice as long


class Rejected(Exception):
    """A goal that a real controller refuses; ``code`` is FollowJointTrajectoryResult's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Point(NamedTuple):
    """A waypoint: time from the start (s), (n,) rad, rad/s and rad/s²; velocities and accelerations may be empty."""

    time: float
    positions: Tuple[float, ...]
    velocities: Tuple[float, ...] = ()
    accelerations: Tuple[float, ...] = ()


class Tolerance(NamedTuple):
    """As JointTolerance: 0 means the controller's default, below 0 no limit; rad and rad/s."""

    position: float = 0.0
    velocity: float = 0.0


class Goal(NamedTuple):
    """A trajectory goal, joints in the order of ``joint_names``.

    ``delay`` is when it begins, s from now: below 0 where its header is in the past.
    """

    joint_names: Sequence[str]
    points: Sequence[Point]
    delay: float = 0.0
    path_tolerance: Dict[str, Tolerance] = {}
    goal_tolerance: Dict[str, Tolerance] = {}
    goal_time_tolerance: float = 0.0


class Segment:
    """A polynomial of up to fifth order in time, one for each joint, between two waypoints."""

    __slots__ = ("coefficients", "end", "start")

    def __init__(self, start: Point, end: Point) -> None:
        """Linear between positions, cubic where both ends have velocities, quintic where accelerations too."""
        self.start = start.time
        self.end = end.time
        T = end.time - start.time
        self.coefficients: List[Tuple[float, ...]] = []
        for j in range(len(start.positions)):
            p0, p1 = start.positions[j], end.positions[j]
            if not (start.velocities and end.velocities):
                self.coefficients.append((p0, (p1 - p0) / T, 0.0, 0.0, 0.0, 0.0))
                continue
            v0, v1 = start.velocities[j], end.velocities[j]
            if not (start.accelerations and end.accelerations):
                c2 = (3 * (p1 - p0) / T - 2 * v0 - v1) / T
                c3 = (-2 * (p1 - p0) / T + v0 + v1) / (T * T)
                self.coefficients.append((p0, v0, c2, c3, 0.0, 0.0))
                continue
            a0, a1 = start.accelerations[j], end.accelerations[j]
            h = p1 - p0
            T2, T3 = T * T, T * T * T
            c3 = (20 * h - (8 * v1 + 12 * v0) * T - (3 * a0 - a1) * T2) / (2 * T3)
            c4 = (-30 * h + (14 * v1 + 16 * v0) * T + (3 * a0 - 2 * a1) * T2) / (2 * T3 * T)
            c5 = (12 * h - 6 * (v1 + v0) * T + (a1 - a0) * T2) / (2 * T3 * T2)
            self.coefficients.append((p0, v0, a0 / 2, c3, c4, c5))

    def sample(self, time: float) -> Tuple[List[float], List[float]]:
        """Positions (rad) and velocities (rad/s) at ``time`` (s), clamped to the segment."""
        if time >= self.end:
            time = self.end
        t = time - self.start if time > self.start else 0.0
        positions, velocities = [], []
        for c0, c1, c2, c3, c4, c5 in self.coefficients:
            positions.append(c0 + t * (c1 + t * (c2 + t * (c3 + t * (c4 + t * c5)))))
            velocities.append(c1 + t * (2 * c2 + t * (3 * c3 + t * (4 * c4 + t * 5 * c5))))
        return positions, velocities


class Following:
    """An accepted trajectory under way."""

    def __init__(
        self, handle: Any, points: Sequence[Point], time: float, tolerances: Tuple[List[float], ...], grace: float
    ) -> None:
        self.handle = handle
        """Whatever the caller knows the goal by."""
        self.points = points
        self.time = time
        """s on the trajectory's own clock, which the speed slider slows; below 0 it has not begun."""
        self.path_tolerance, self.goal_tolerance, self.goal_velocity = tolerances
        self.grace = grace
        """s that the arm may take to settle after the end."""
        self.late = 0.0
        self.index = 1
        self.segment = Segment(points[0], points[1])
        self.desired: List[float] = list(points[0].positions)
        self.desired_velocity: List[float] = [0.0] * len(self.desired)
        self._stop: Optional[float] = None
        self._slowing = 0.0

    def stop_at(self, share: float) -> None:
        """Makes it end where ``share`` of its way (the length in joint space) is behind, as if that were its end."""
        way = [(self.points[0].time, 0.0)]
        before: Sequence[float] = self.points[0].positions
        for start, end in zip(self.points, self.points[1:]):
            segment = Segment(start, end)
            for k in range(1, LENGTH_SAMPLES + 1):
                time = start.time + (end.time - start.time) * k / LENGTH_SAMPLES
                here, _ = segment.sample(time)
                way.append((time, way[-1][1] + math.dist(before, here)))
                before = here
        wanted = share * way[-1][1]
        after = next((i for i in range(1, len(way)) if way[i][1] >= wanted), len(way) - 1)
        (t0, s0), (t1, s1) = way[after - 1], way[after]
        self._stop = t1 if s1 <= s0 else t0 + (t1 - t0) * (wanted - s0) / (s1 - s0)
        self._slowing = min(STOP_RAMP, 0.5 * (self._stop - self.points[0].time))

    @property
    def end(self) -> float:
        """When its last waypoint is due, s."""
        return self.points[-1].time

    def advance(self, step: float) -> bool:
        """Moves on by ``step`` s and samples; whether the last waypoint has been reached."""
        if self._stop is not None:
            return self._advance_to(self._stop, step)
        self.time += step
        if self.time < self.points[0].time:
            return False
        while self.time > self.segment.end and self.index < len(self.points) - 1:
            self.index += 1
            self.segment = Segment(self.points[self.index - 1], self.points[self.index])
        if self.time >= self.end:
            self.desired = list(self.points[-1].positions)
            self.desired_velocity = [0.0] * len(self.desired)
            return True
        self.desired, self.desired_velocity = self.segment.sample(self.time)
        return False

    def _advance_to(self, stop: float, step: float) -> bool:
        """The same, with a clock that slows down evenly and stands at the stop: so the path is kept."""
        left = stop - self.time
        rate = 1.0 if left >= self._slowing else math.sqrt(max(left, 0.0) / self._slowing)
        at_stop = rate * step >= left - 1e-9
        self._stop = None
        self.advance(left if at_stop else rate * step)
        self._stop = stop
        self.desired_velocity = [0.0 if at_stop else rate * value for value in self.desired_velocity]
        return at_stop


def accept(
    goal: Goal, handle: Any, joint_names: Sequence[str], present: Sequence[float], velocity: Sequence[float]
) -> Following:
    """The trajectory ready to follow from the ``present`` set point (n,) rad and its ``velocity``, rad/s.

    Raises:
        Rejected: as the real controller would refuse it.
    """
    order = _mapping(goal.joint_names, joint_names)
    points = _checked_points(goal, order)
    # What is already in the past is dropped; the rest is joined by a segment from the present set point.
    begin = -goal.delay
    left = [point for point in points if point.time > max(begin, 0.0) + 1e-9]
    if not left:
        text = (
            f"Dropping all {len(points)} trajectory point(s), as they occur before the current time. "
            f"Last point is {begin - points[-1].time:.3f}s in the past."
        )
        raise Rejected(OLD_HEADER_TIMESTAMP if goal.delay < 0 else INVALID_GOAL, text)
    first = points[0]
    tolerances = _tolerances(goal, joint_names)
    if begin <= 0.0 and first.time <= 1e-9:
        for name, at, asked, allowed in zip(joint_names, present, first.positions, tolerances[0]):
            if 0.0 < allowed < abs(asked - at):
                raise Rejected(
                    INVALID_GOAL,
                    f"The trajectory starts too far from the current state: {name} is at {at:.4f} rad, the first "
                    f"point has {asked:.4f} rad, at most {allowed:.4f} rad apart expected.",
                )
    start = Point(
        max(begin, 0.0),
        tuple(present),
        tuple(velocity) if left[0].velocities else (),
        (0.0,) * len(present) if left[0].accelerations else (),
    )
    grace = goal.goal_time_tolerance if goal.goal_time_tolerance > 0 else GOAL_TIME
    return Following(handle, [start, *left], begin, tolerances, grace)


def _mapping(given: Sequence[str], expected: Sequence[str]) -> List[int]:
    """For each of the controller's joints its place in the goal."""
    if sorted(given) != sorted(expected):
        raise Rejected(
            INVALID_JOINTS,
            "Joints on incoming goal don't match the controller joints: "
            f"{', '.join(expected)} expected, {', '.join(given) or 'none'} found.",
        )
    places = {name: place for place, name in enumerate(given)}
    return [places[name] for name in expected]


def _checked_points(goal: Goal, order: Sequence[int]) -> List[Point]:
    if not goal.points:
        raise Rejected(INVALID_GOAL, "The trajectory has no points.")
    count = len(order)
    points: List[Point] = []
    before = -math.inf
    for index, point in enumerate(goal.points):
        if not (point.time > before and point.time >= 0.0):
            raise Rejected(
                INVALID_GOAL,
                "Trajectory message contains waypoints that are not strictly increasing in time: "
                f"point {index} is at {point.time} s, after {before if index else 0.0} s.",
            )
        before = point.time
        fields = (("position", point.positions, False), ("velocity", point.velocities, True))
        for name, values, optional in (*fields, ("acceleration", point.accelerations, True)):
            if len(values) != count and not (optional and not values):
                raise Rejected(
                    INVALID_GOAL,
                    f"Size mismatch in trajectory point position, velocity or acceleration data: point {index} has "
                    f"{len(values)} {name} values, {count} expected.",
                )
            for value in values:
                if not math.isfinite(value):
                    raise Rejected(INVALID_GOAL, f"Point {index} has a {name} of {value}, a finite number expected.")
        points.append(
            Point(
                point.time,
                tuple(point.positions[place] for place in order),
                tuple(point.velocities[place] for place in order) if point.velocities else (),
                tuple(point.accelerations[place] for place in order) if point.accelerations else (),
            )
        )
    return points


def _tolerances(goal: Goal, joint_names: Sequence[str]) -> Tuple[List[float], List[float], List[float]]:
    """Path positions, goal positions and goal velocities; 0 where there is no limit."""
    for name in (*goal.path_tolerance, *goal.goal_tolerance):
        if name not in joint_names:
            raise Rejected(INVALID_JOINTS, f"A tolerance names '{name}', one of {', '.join(joint_names)} expected.")
    none = Tolerance()

    def chosen(value: float, default: float) -> float:
        if value < 0:
            return 0.0
        return value if value > 0 else default

    return (
        [chosen(goal.path_tolerance.get(name, none).position, PATH_TOLERANCE) for name in joint_names],
        [chosen(goal.goal_tolerance.get(name, none).position, GOAL_TOLERANCE) for name in joint_names],
        [chosen(goal.goal_tolerance.get(name, none).velocity, STOPPED_VELOCITY) for name in joint_names],
    )
