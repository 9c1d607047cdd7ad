"""The planner ``moveit``: a running move_group plans, the arm's own driver interface executes."""

from __future__ import annotations

import importlib.util
import math
from typing import TYPE_CHECKING, Any, ClassVar, Optional, Sequence

import numpy as np

from iter_runner.planners.arrival import Arrival
from iter_runner.planners.base import MoveGoal, Planner, PlannerUnavailable, Unreachable
from iter_runner.planners.inverse import refine
from iter_runner.planners.line import Line, Pose, pose_error
from iter_runner.planners.options import MoveOptions, read_options
from iter_runner.planners.profile import Profile, time_optimal
from iter_runner.planners.routes import BRANCH_JUMP, LINE_STEP, LINE_TURN, NoLine, Router, line_limits
from iter_runner.robot.arm import Arm, JointPath, Vector
from iter_runner.robot.moveit import (
    DEFAULT_ORIENTATION_TOLERANCE,
    DEFAULT_POSITION_TOLERANCE,
    ERRORS,
    INSTALL,
    Commander,
    MotionRequest,
    RawTrajectory,
    TrajectoryError,
    describe_error,
    known_planner,
    plain_planner_names,
    read_plan,
    read_trajectory,
    sample_cubics,
)
from iter_runner.run_control import Fault, RunControl

if TYPE_CHECKING:
    from iter_runner.kinematics import AttachedBody, Chain, Obstacle
    from iter_runner.robot.table import Robot

SAMPLE_PERIOD = 0.02
"""s between two points of the trajectory that is sent."""
PLANS = 3
"""Plans of MoveIt's that are looked at: one that our own geometry calls a collision is planned again."""
TURN_RADIUS = 0.3
"""m: on a line a turn of one radian counts as this much way."""
NEAR_GUESS = 0.1
"""rad between MoveIt's joints at a place of the line and the exact ones there; more is another branch."""
OFF_GOAL = (0.001, math.radians(0.5))
"""m and rad beyond the goal's tolerances that a plan may end off the goal: more is another tip, or another base."""


class MoveItPlanner(Planner):
    """See :class:`iter_runner.planners.base.Planner`.

    MoveIt samples: the same start and goal give another path each time, and its seed can't be set from here. So nothing
    is rehearsed before the run (:attr:`repeats`); what was commanded is in the record, and ``replay`` repeats it.

    Its plan is fetched, brought to the row's joint order, looked at with the core's own distances, and only then sent
    through :meth:`iter_runner.robot.arm.Arm.follow`, as the planner ``static`` does: so that a pause, a fault and a
    trajectory that ends short of its goal are handled as everywhere else.

    Args:
        robot: the row; ``moveit_group`` is the group of its arm.
        chain: from the base to the flange.
        obstacles: the scene to begin with.
        commander: how to reach move_group; None: moveit_commander, in this process's node.

    Raises:
        PlannerUnavailable: MoveIt is not installed.
        Fault: move_group does not answer, or is another robot's.
    """

    name: ClassVar[str] = "moveit"
    repeats = False
    rehearses = False

    def __init__(
        self, robot: Robot, chain: Chain, obstacles: Sequence[Obstacle] = (), commander: Optional[Commander] = None
    ) -> None:
        self._robot = robot
        self._chain = chain
        self._router = Router(robot, chain)
        self._group = robot.moveit_group
        self._continuous = _continuous_joints(robot)
        self._commander = _connect(robot) if commander is None else commander
        self.update_scene(obstacles)

    @classmethod
    def check_available(cls) -> None:
        """See :class:`iter_runner.planners.base.Planner`."""
        if importlib.util.find_spec("moveit_commander") is None:
            raise PlannerUnavailable(
                f"planner 'moveit' needs MoveIt 1, which is not installed (no Python module moveit_commander): "
                f"`sudo apt install {INSTALL}` where ROS Noetic's packages are; planner:=ompl samples without it"
            )

    def update_scene(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody] = ()) -> None:
        """See :class:`iter_runner.planners.base.Planner`. MoveIt's own scene keeps what others have put there."""
        self._router.update_scene(obstacles, attached)
        self._commander.mirror(obstacles, attached)

    def preview(self, start: Vector, goal: MoveGoal) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`; another path each time, but from nothing else than these.

        Raises:
            Unreachable: MoveIt finds no motion (by the name of its error), or none that is clear.
            Fault: move_group is gone, or not set up for this arm.
        """
        options = read_options(goal.options)
        start = np.array(start, dtype=np.float64)
        request = self._request(options)
        distance, turn = pose_error(self._chain.fk(start), goal.flange)
        if distance < DEFAULT_POSITION_TOLERANCE and turn < DEFAULT_ORIENTATION_TOLERANCE:
            return _standing(start)  # MoveIt might take it there by other joints
        problem = Unreachable()
        for _ in range(PLANS):
            try:
                path = (
                    self._line(start, goal.flange, request, options)
                    if options.straight
                    else self._way(start, goal.flange, request, options)
                )
                self._look_at(path, goal.flange, request)
                return path
            except _Refused as error:
                problem = Unreachable(f"{error}, as with {PLANS} plans of MoveIt's: put a move in between")
        raise problem

    def _request(self, options: MoveOptions) -> MotionRequest:
        ids = self._commander.planner_ids() if options.planner_id else ()
        planner_id = known_planner(options.planner_id, self._group, ids)
        if planner_id is None:
            names = ", ".join(plain_planner_names(self._group, ids))
            raise Unreachable(f"options.planner_id is '{options.planner_id}', move_group has {names}")
        plain = MotionRequest()
        return MotionRequest(
            planner_id=planner_id,
            planning_time=options.planning_time or plain.planning_time,
            attempts=options.num_planning_attempts or plain.attempts,
            velocity_scaling=options.max_velocity_scaling_factor or plain.velocity_scaling,
            acceleration_scaling=options.max_acceleration_scaling_factor or plain.acceleration_scaling,
            position_tolerance=options.goal_position_tolerance or plain.position_tolerance,
            orientation_tolerance=options.goal_orientation_tolerance or plain.orientation_tolerance,
            joint_tolerance=options.goal_joint_tolerance or plain.joint_tolerance,
            eef_step=options.eef_step or plain.eef_step,
            jump_threshold=plain.jump_threshold if options.jump_threshold is None else options.jump_threshold,
        )

    # Where the path comes from ---------------------------------------------------------------------------------------

    def _way(self, start: Vector, target: Pose, request: MotionRequest, options: MoveOptions) -> JointPath:
        """What MoveIt's planner finds, in MoveIt's own timing."""
        result = read_plan(self._commander.plan(start, target, request))
        if result.trajectory is None:
            self._fail(result.code, result.detail, start, target)
        raw = self._read(result.trajectory, start)
        if _stands(raw.positions):
            return _standing(start)
        if raw.times is None or raw.velocities is None:  # a pipeline without time parametrisation
            return self._timed(raw.positions, request, options, None)
        path = sample_cubics(raw, SAMPLE_PERIOD)
        return JointPath(path.positions, path.times * options.stretch * self._excess(path, options))

    def _line(self, start: Vector, target: Pose, request: MotionRequest, options: MoveOptions) -> JointPath:
        """The flange's straight line, in our timing: releases differ in whether MoveIt's keeps to the scaling."""
        trajectory, fraction = self._commander.cartesian(start, target, request)
        if not fraction >= 1.0 - 1e-6:
            raise Unreachable(
                f"MoveIt follows only {100.0 * max(0.0, fraction):.0f} % of the straight line "
                f"({self._line_problem(start, target)}): put a move in between, or leave options.motion_type out"
            )
        raw = self._read(trajectory, start)
        if _stands(raw.positions):
            return _standing(start)
        steps = np.max(np.abs(np.diff(raw.positions, axis=0)), axis=1)
        if np.max(steps) > BRANCH_JUMP:
            row = int(np.argmax(steps))
            joint = int(np.argmax(np.abs(raw.positions[row + 1] - raw.positions[row])))
            raise Unreachable(
                f"on MoveIt's straight line {self._chain.joint_names[joint]} turns by {steps[row]:.2f} rad at once, at "
                f"{100 * (row + 1) / len(steps):.0f} % of it: put a move in between, or leave options.motion_type out"
            )
        line = Line(self._chain.fk(start), target)
        return self._timed(self._evenly(raw.positions, line), request, options, line)

    def _evenly(self, positions: Vector, line: Line) -> Vector:
        """The same joints along the line, at equal steps of it: releases differ in where they put their points."""
        poses = self._chain.fk(positions)
        steps = [
            max(distance, TURN_RADIUS * turn) for distance, turn in (pose_error(a, b) for a, b in zip(poses, poses[1:]))
        ]
        travelled = np.concatenate([[0.0], np.cumsum(steps)])
        phases = np.linspace(0.0, 1.0, line.intervals(LINE_STEP, LINE_TURN) + 1)
        guesses = np.column_stack([np.interp(phases, travelled / travelled[-1], column) for column in positions.T])
        for row, pose in enumerate(line.poses(phases[1:-1]), start=1):
            found = refine(self._chain, guesses[row], pose)
            if found.exact and np.max(np.abs(found.positions - guesses[row])) < NEAR_GUESS:
                guesses[row] = found.positions
        return guesses

    def _line_problem(self, start: Vector, target: Pose) -> str:
        """What the core knows of why a line can't be followed; MoveIt says nothing of it."""
        try:
            self._router.line(start, target)
        except NoLine as error:
            return str(error)
        return "it does not say why: a singularity, a joint's limit or a collision"

    def _read(self, trajectory: Any, start: Vector) -> RawTrajectory:
        try:
            return read_trajectory(trajectory, self._chain.joint_names, start, self._continuous)
        except TrajectoryError as error:
            raise Fault("moveit", f"{error}; look at move_group, then resume") from error

    def _fail(self, code: Optional[int], detail: str, start: Vector, target: Pose) -> None:
        """Raises what a failed plan is: Fault where the set-up is wrong, else Unreachable with what the core knows."""
        reason = describe_error(code, detail)
        error = ERRORS.get(code) if code is not None else None
        if error is not None and error.setup:
            raise Fault("moveit", reason)
        try:
            self._router.solutions(start, target)
            self._router.joint_routes(start, target)
        except Unreachable as unreachable:
            raise Unreachable(f"{reason}; {unreachable}") from unreachable
        raise Unreachable(reason)

    # Its timing ------------------------------------------------------------------------------------------------------

    def _timed(
        self, positions: Vector, request: MotionRequest, options: MoveOptions, line: Optional[Line]
    ) -> JointPath:
        """``positions`` (N, n) rad as fast as the limits allow, with the flange's ceilings along a line."""
        velocity = request.velocity_scaling * self._router.velocity
        acceleration = request.acceleration_scaling * self._router.acceleration
        speed, rise = (None, None) if line is None else line_limits(line, options)
        try:
            profile: Profile = time_optimal(positions, velocity, acceleration, speed, rise, options.stretch)
        except ValueError as error:
            raise _Refused(f"MoveIt's path can't be timed: {error}") from error
        times, sampled = profile.sample(SAMPLE_PERIOD)
        sampled[0], sampled[-1] = positions[0], positions[-1]
        path = JointPath(sampled, times)
        return path if line is not None else JointPath(sampled, times * self._excess(path, options))

    def _excess(self, path: JointPath, options: MoveOptions) -> float:
        """By how much a path has to be stretched to keep the joints' limits and the flange's ceilings; 1 or more."""
        acceleration = self._router.acceleration
        velocity = self._router.velocity
        speeds = np.gradient(path.positions, path.times, axis=0)
        rises = np.gradient(speeds, path.times, axis=0) if len(path.times) > 2 else np.zeros_like(speeds)
        slack = 1.1  # finite differences see a bend sharper than it is; the planner's margins leave that much
        factors = [
            float(np.max(np.abs(speeds) / velocity)) / slack,
            math.sqrt(float(np.max(np.abs(rises) / acceleration)) / slack),
        ]
        if options.velocity is not None or options.acceleration is not None:
            places = self._chain.fk(path.positions)[:, :3, 3]
            flange = np.gradient(places, path.times, axis=0)
            if options.velocity is not None:
                factors.append(float(np.max(np.linalg.norm(flange, axis=1))) / options.velocity / options.stretch)
            if options.acceleration is not None:
                change = np.linalg.norm(np.gradient(flange, path.times, axis=0), axis=1)
                factors.append(math.sqrt(float(np.max(change)) / options.acceleration) / options.stretch)
        return max(1.0, *factors)

    # Whether it may be sent ------------------------------------------------------------------------------------------

    def _look_at(self, path: JointPath, target: Pose, request: MotionRequest) -> None:
        """Returns if the path is inside the limits, ends at the goal and is clear by the core's own distances.

        Raises:
            Fault: it ends elsewhere: move_group has another idea of the arm.
            _Refused: it is not.
        """
        distance, turn = pose_error(self._chain.fk(path.positions[-1]), target)
        # A tolerance about each of three axes.
        allowed = (
            request.position_tolerance + OFF_GOAL[0],
            math.sqrt(3.0) * request.orientation_tolerance + OFF_GOAL[1],
        )
        if distance > allowed[0] or turn > allowed[1]:
            raise Fault(
                "moveit",
                f"MoveIt's plan ends {distance * 1e3:.1f} mm and {math.degrees(turn):.1f} degrees off the goal of "
                f"{self._chain.tip} in {self._chain.base}: is move_group's model that of robot {self._robot.name}?",
            )
        outside = (path.positions < self._chain.lower - 1e-6) | (path.positions > self._chain.upper + 1e-6)
        if np.any(outside):
            row, joint = (int(index) for index in np.argwhere(outside)[0])
            at = path.positions[row, joint]
            raise _Refused(f"on the way {self._chain.joint_names[joint]} is beyond its limit ({at:.2f} rad)")
        contact = self._router.blocked(path.positions)
        if contact:
            raise _Refused(contact)

    def move(self, arm: Arm, start: Vector, goal: MoveGoal, control: RunControl) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`."""
        with self.planning():
            path = self.preview(start, goal)
        self._commander.show(path)
        control.wait_while_paused()
        if len(path.times) > 1:
            arm.follow(path, control)
        Arrival(self._chain, path.positions[-1]).wait(arm, control)
        return path


class _Refused(Exception):
    """A plan that MoveIt calls good and the core does not; another one may be."""


def _connect(robot: Robot) -> Commander:
    MoveItPlanner.check_available()
    from iter_runner.robot.ros_moveit import connect

    return connect(robot)


def _continuous_joints(robot: Robot) -> Sequence[bool]:
    """Which joints MoveIt may give on another full turn: it wraps continuous ones, and no others."""
    from iter_runner.kinematics.urdf import read_urdf
    from iter_runner.robot.table import robot_urdf

    joints = read_urdf(robot_urdf(robot)).joints
    return [joints[name].kind == "continuous" for name in robot.joints]


def _stands(positions: Vector) -> bool:
    return bool(np.max(np.abs(positions - positions[0])) < 1e-9)


def _standing(start: Vector) -> JointPath:
    return JointPath(start[None, :], np.zeros(1))
