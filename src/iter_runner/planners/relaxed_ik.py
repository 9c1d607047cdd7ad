"""The planner ``relaxed_ik``: a goal that wanders to the target, one solution and one joint target a tick."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Iterator, List, Optional, Sequence

import numpy as np

from iter_runner.kinematics import AttachedBody, Obstacle, RelaxedIK
from iter_runner.planners.base import MoveGoal, Planner, Unreachable
from iter_runner.planners.inverse import refine
from iter_runner.planners.options import MoveOptions, read_options
from iter_runner.planners.routes import Route, Router
from iter_runner.planners.stream import stream_targets
from iter_runner.robot.arm import Arm, JointPath, Servo, Vector
from iter_runner.run_control import Fault, RunControl

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain
    from iter_runner.robot.table import Robot

SETTLE_TICKS = 150
"""Ticks at most that the solver gets to come to rest once its goal stands at the target."""
SETTLED = 2e-5
"""rad a tick below which it has come to rest."""
DEEPEST = 1e-3
"""m that the solver, which weighs clearance against other things, may take bodies into each other."""
ROUNDING = 1e-6
"""m"""


class RelaxedIKPlanner(Planner):
    """See :class:`iter_runner.planners.base.Planner`.

    The state of the loop is the tick count and the solver's last solutions, never the time: the same start and goal
    give the same joint targets, bit for bit, whatever the machine does meanwhile. The stream ends with each move, so
    that the hand never works against it.
    """

    name: ClassVar[str] = "relaxed_ik"
    sends: ClassVar[str] = "targets"

    def __init__(self, robot: Robot, chain: Chain, obstacles: Sequence[Obstacle] = ()) -> None:
        self._robot = robot
        self._chain = chain
        self._period = 1.0 / robot.stream_rate
        self._router = Router(robot, chain)
        self.update_scene(obstacles)
        # What no tick exceeds, whatever the solver says.
        self._tick_speed = 0.98 * np.asarray(chain.velocity_limits) * self._period
        self._tick_rise = 0.98 * np.asarray(robot.limits.acceleration) * self._period**2
        self._servo: Optional[Servo] = None

    def update_scene(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody] = ()) -> None:
        """See :class:`iter_runner.planners.base.Planner`."""
        self._router.update_scene(obstacles, attached)
        self._solver = RelaxedIK(
            self._router.chain,
            weights=self._robot.objectives,
            obstacles=list(obstacles),
            period=self._period,
            reconfigure=False,
        )

    def targets(self, start: Vector, goal: MoveGoal) -> Iterator[Vector]:
        """Joint targets (n,) rad, tick after tick, from the one after ``start`` to the goal itself.

        Raises:
            Unreachable: before the first target; later only where the solver would leave the free line for a collision.
        """
        options = read_options(goal.options)
        start = np.array(start, dtype=np.float64)
        routes = self._router.routes(start, goal.flange)
        if float(np.max(np.abs(routes[-1].joints[-1] - start))) < 1e-9:
            return
        distance = self._router.distance(start)
        for target in self._along(routes, options):
            before, distance = distance, self._router.distance(target)
            if distance < min(-DEEPEST, before) - ROUNDING:
                raise Unreachable(f"the solver's way leads into an overlap of {-distance * 1e3:.1f} mm")
            yield target

    def _along(self, routes: Sequence[Route], options: MoveOptions) -> Iterator[Vector]:
        for route in routes:
            if route.line is None:
                yield from self._in_joint_space(route, options)
            else:
                yield from self._along_line(route, options, route is routes[-1])

    def _in_joint_space(self, route: Route, options: MoveOptions) -> Iterator[Vector]:
        profile = self._router.profile(route, options)
        ticks = math.ceil(profile.duration / self._period - 1e-9)
        yield from profile.positions(self._period * np.arange(1, ticks, dtype=np.float64))
        yield route.joints[-1]

    def _along_line(self, route: Route, options: MoveOptions, last_one: bool) -> Iterator[Vector]:
        assert route.line is not None
        # How fast the goal may wander is read off the line's exact joints, which the solver's hardly differ from.
        profile = self._router.profile(route, options)
        start = route.joints[0]
        self._solver.reset(start)
        before, last = start, start
        ticks = math.ceil(profile.duration / self._period - 1e-9)
        for pose in route.line.poses(profile.phases(self._period * np.arange(1, ticks + 1, dtype=np.float64))):
            before, last = last, self._within_limits(self._solver.solve(pose), last, before)
            yield last
        for _ in range(SETTLE_TICKS):
            wanted = self._solver.solve(route.line.target)
            before, last = last, self._within_limits(wanted, last, before, self._braking(wanted - last))
            yield last
            if float(np.max(np.abs(last - before))) < SETTLED and float(np.max(np.abs(wanted - last))) < SETTLED:
                break
        yield from self._close_in(last, route, last_one)

    def _within_limits(self, wanted: Vector, last: Vector, before: Vector, most: Optional[Vector] = None) -> Vector:
        """``wanted``, or what of it a tick's limits of speed and acceleration allow after ``before`` and ``last``.

        ``most`` (n,) rad bounds the step further, as far as the acceleration allows.
        """
        most = self._tick_speed if most is None else np.minimum(most, self._tick_speed)
        step = last - before
        return last + np.clip(np.clip(wanted - last, -most, most), step - self._tick_rise, step + self._tick_rise)

    def _braking(self, way: Vector) -> Vector:
        """The step (n,) rad from which a joint still comes to rest within ``way`` (n,) rad."""
        rise = self._tick_rise
        return 0.5 * rise * (np.sqrt(1.0 + 8.0 * np.abs(way) / rise) - 1.0)

    def _close_in(self, last: Vector, route: Route, last_one: bool) -> Iterator[Vector]:
        """From where the solver came to rest (its objectives trade accuracy for other things) to the line's end itself.

        Behind a line that is not the last one the next begins where this one has been planned to end.
        """
        assert route.line is not None
        end = refine(self._chain, last, route.line.target)
        if not last_one and float(np.max(np.abs(end.positions - route.joints[-1]))) > SETTLED:
            raise Unreachable("the solver's way around what stands there ends in another configuration")
        near = end.exact and float(np.max(np.abs(end.positions - last))) < 0.1
        if near:
            gap = end.positions - last
            # A minimum-jerk step peaks at 1.875 gap/T in speed and 5.774 gap/T² in acceleration.
            duration = max(
                float(np.max(np.sqrt(5.774 * np.abs(gap) / (0.7 * self._router.acceleration)))),
                float(np.max(1.875 * np.abs(gap) / self._router.velocity)),
            )
            ticks = math.ceil(duration / self._period)
            for tick in range(1, ticks + 1):
                share = tick / ticks
                yield (
                    last + (10.0 * share**3 - 15.0 * share**4 + 6.0 * share**5) * gap if tick < ticks else end.positions
                )
        else:  # caught in another corner of its objectives: go straight to the joints that the line ends at
            for way in self._router.joint_routes(last, route.line.target):
                yield from self._in_joint_space(way, MoveOptions())

    def preview(self, start: Vector, goal: MoveGoal) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`."""
        return self._path([np.array(start, dtype=np.float64), *self.targets(start, goal)])

    def _path(self, positions: List[Vector]) -> JointPath:
        return JointPath(np.array(positions), np.arange(len(positions), dtype=np.float64) * self._period)

    def move(self, arm: Arm, start: Vector, goal: MoveGoal, control: RunControl) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`."""
        start = np.array(start, dtype=np.float64)
        control.wait_while_paused()
        targets = self.targets(start, goal)
        with self.planning():
            first = next(targets, None)  # where the goal is unreachable, it is said here, before anything moves
        servo = self._servo = arm.servo()
        try:
            sent = stream_targets(arm, servo, start, first, targets, self._period, self._chain, control)
        except Unreachable as error:
            arm.halt()
            raise Fault("unreachable", f"stopped on the way: {error}") from error
        except BaseException:
            arm.halt()
            raise
        finally:
            self._servo = None
        return self._path(sent)

    def pause_stream(self) -> None:
        """See :class:`iter_runner.planners.base.Planner`."""
        if self._servo is not None:
            self._servo.pause()

    def resume_stream(self) -> None:
        """See :class:`iter_runner.planners.base.Planner`."""
        if self._servo is not None:
            self._servo.resume()
