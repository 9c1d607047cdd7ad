"""The planner ``ur``: the UR controller's own straight or joint-space motion, a program over the script topic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, List, Sequence, Tuple

import numpy as np

from iter_runner.kinematics.rotations import matrix_to_rotation_vector
from iter_runner.planners.arrival import STANDSTILL, Arrival
from iter_runner.planners.base import MoveGoal, Planner, Unreachable
from iter_runner.planners.line import Pose
from iter_runner.planners.options import MoveOptions, read_options
from iter_runner.planners.routes import DETOUR, NoLine, Route, Router
from iter_runner.robot.arm import Arm, JointPath, JointReading, Vector
from iter_runner.robot.urscript import script_list, script_number
from iter_runner.run_control import Fault, RunControl

if TYPE_CHECKING:
    from iter_runner.kinematics import AttachedBody, Chain, Obstacle
    from iter_runner.robot.table import Robot

MOVEL_VELOCITY = 0.25
"""m/s, URScript's own default."""
MOVEL_ACCELERATION = 1.2
"""m/s², URScript's own default."""
MOVEJ_VELOCITY = 1.05
"""rad/s of the leading joint, URScript's own default."""
MOVEJ_ACCELERATION = 1.4
"""rad/s², URScript's own default."""
SLOWEST = 0.02
"""m/s: a line that would have to be this slow to keep the joints' limits passes too close to a singularity."""
TURN_RADIUS = 0.3
"""m: a turn of one radian takes as long as this much way."""
NO_PROGRESS = 2.0
"""s on the study clock that the arm may stand short of its end before the motion counts as lost."""

# The controller's frame `base` is ROS's base_link turned by half a turn about z.
BASE_FROM_BASE_LINK = np.diag([-1.0, -1.0, 1.0, 1.0])


def controller_pose(flange: Pose) -> str:
    """``p[x, y, z, rx, ry, rz]`` in the controller's ``base`` for a (4, 4) flange pose in base_link, m and rad."""
    pose = BASE_FROM_BASE_LINK @ flange
    return "p" + script_list([*pose[:3, 3], *matrix_to_rotation_vector(pose[:3, :3])])


@dataclass(frozen=True)
class _Motion:
    """What is sent, and the joints that it goes through."""

    statements: List[str]
    path: JointPath

    @property
    def program(self) -> str:
        """As it is sent; empty where nothing is to be done."""
        if not self.statements:
            return ""
        # The flange is the tool: poses are the flange's, whatever tool the installation has set.
        lines = ["set_tcp(p[0, 0, 0, 0, 0, 0])", *self.statements]
        return "def iter_move():\n" + "".join(f"  {line}\n" for line in lines) + "end\n"


class URNativePlanner(Planner):
    """See :class:`iter_runner.planners.base.Planner`.

    ``movel`` where the flange's straight line is continuous in joint space, else ``movej``; ``options.motion_type``
    asks for one of them. The commanded path that is returned and hashed is the joint path of the flange's line (or the
    joints' for ``movej``) as the arm's nominal kinematics have it, timed by the profile that the program asks for.
    """

    name: ClassVar[str] = "ur"
    sends: ClassVar[str] = "program"

    def __init__(self, robot: Robot, chain: Chain, obstacles: Sequence[Obstacle] = ()) -> None:
        self._chain = chain
        self._router = Router(robot, chain, obstacles)
        self._robot_name = robot.name

    def update_scene(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody] = ()) -> None:
        """See :class:`iter_runner.planners.base.Planner`."""
        self._router.update_scene(obstacles, attached)

    def preview(self, start: Vector, goal: MoveGoal) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`."""
        return self._motion(np.array(start, dtype=np.float64), goal).path

    def _motion(self, start: Vector, goal: MoveGoal) -> _Motion:
        options = read_options(goal.options)
        reason = ""
        if options.motion_type != "movej":
            try:
                return self._movel(self._router.line(start, goal.flange), options)
            except NoLine as error:
                reason = str(error)
        try:
            routes = self._router.joint_routes(start, goal.flange)
        except Unreachable as error:
            raise Unreachable(f"{reason}; {error}" if reason else str(error)) from error
        if options.straight:
            raise Unreachable(f"movel is not possible: {reason}; movej is (options.motion_type: movej)")
        *retreats, last = routes
        motions = [self._movej(route, script_list(route.joints[-1]), options) for route in retreats]
        # Its own inverse kinematics, which know the arm's calibration, on the branch that was checked.
        end = f"get_inverse_kin({controller_pose(goal.flange)}, {script_list(last.joints[-1])})"
        return _one_after_the_other([*motions, self._movej(last, end, options)])

    def _movel(self, route: Route, options: MoveOptions) -> _Motion:
        assert route.line is not None
        length = max(route.line.length, TURN_RADIUS * route.line.angle)
        if length < 1e-7:
            return _Motion([], JointPath(route.joints[:1], np.zeros(1)))
        velocity = min(options.velocity or MOVEL_VELOCITY, 1.0)
        acceleration = min(options.acceleration or MOVEL_ACCELERATION, 2.5)
        # The controller knows no more than these two numbers: where they would ask too much of a joint anywhere on the
        # line (it stops protectively at too fast a joint), they shrink for all of it.
        count = len(route.joints) - 1
        slope = np.abs(np.gradient(route.joints, length / count, axis=0)) + 1e-12
        bend = (
            np.abs(np.diff(route.joints, 2, axis=0)) * (count / length) ** 2
            if count > 1
            else np.zeros_like(route.joints[:1])
        )
        bend = np.max(bend, axis=0) + 1e-12
        limit = min(
            float(np.min(self._router.velocity / slope)), float(np.sqrt(np.min(0.5 * self._router.acceleration / bend)))
        )
        if limit < SLOWEST or (limit < velocity / DETOUR and not options.straight):
            raise NoLine("the straight line passes close to a singularity")
        velocity = min(velocity, limit)
        rise = (self._router.acceleration - bend * velocity**2) / slope
        acceleration = min(acceleration, float(np.min(rise)))
        velocity, acceleration = velocity / options.stretch, acceleration / options.stretch**2
        target = controller_pose(route.line.target)
        statement = f"movel({target}, a={script_number(acceleration)}, v={script_number(velocity)})"
        phases = np.linspace(0.0, 1.0, count + 1)
        return _Motion([statement], JointPath(route.joints, _trapezoid_times(phases, length, velocity, acceleration)))

    def _movej(self, route: Route, target: str, options: MoveOptions) -> _Motion:
        end = route.joints[-1]
        distance = np.abs(end - route.joints[0])
        length = float(np.max(distance))
        if length < 1e-9:
            return _Motion([], JointPath(route.joints[:1], np.zeros(1)))
        share = np.maximum(distance / length, 1e-9)
        velocity = min(options.velocity or MOVEJ_VELOCITY, float(np.min(self._router.velocity / share)))
        acceleration = min(options.acceleration or MOVEJ_ACCELERATION, float(np.min(self._router.acceleration / share)))
        velocity, acceleration = velocity / options.stretch, acceleration / options.stretch**2
        statement = f"movej({target}, a={script_number(acceleration)}, v={script_number(velocity)})"
        phases = np.linspace(0.0, 1.0, len(route.joints))
        return _Motion([statement], JointPath(route.joints, _trapezoid_times(phases, length, velocity, acceleration)))

    def move(self, arm: Arm, start: Vector, goal: MoveGoal, control: RunControl) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`."""
        with self.planning():
            motion = self._motion(np.array(start, dtype=np.float64), goal)
        end = motion.path.positions[-1]
        arrival = Arrival(self._chain, end)
        try:
            control.wait_while_paused()
            if motion.program:
                arm.script(motion.program)
                while not self._watch(arm, arrival, end, control):
                    # Paused: the arm stands; afterwards the same program brings it the rest of the way.
                    arm.halt()
                    control.wait_while_paused()
                    arm.script(motion.program)
            arrival.wait(arm, control)
        except BaseException:
            arm.halt()
            raise
        return motion.path

    def _watch(self, arm: Arm, arrival: Arrival, end: Vector, control: RunControl) -> bool:
        """True when the arm has arrived, False when the run was paused before.

        Raises:
            Fault(no_progress): the arm stands elsewhere, and goes on standing.
        """
        # By the readings' own time: a busy machine delivers them late, while the clock runs ahead of them.
        moved = arm.reading().time

        def look(reading: JointReading) -> bool:
            nonlocal moved
            if float(np.max(np.abs(reading.velocities))) > STANDSTILL:
                moved = reading.time
            return arrival.arrived(reading) or control.paused or reading.time - moved > NO_PROGRESS

        arm.wait_for_reading(look, control)
        reading = arm.reading()
        off = np.abs(reading.positions - end)
        if arrival.arrived(reading) or (reading.time - moved > NO_PROGRESS and float(np.max(off)) < 0.01):
            return True
        if control.paused:
            return False
        joint = self._chain.joint_names[int(np.argmax(off))]
        raise Fault(
            "no_progress",
            f"{self._robot_name}: the program was sent but the arm stands ({joint} is {np.max(off):.3f} rad from its "
            "end): look at the controller's log (a popup, local control, another program), then resume",
        )


def _one_after_the_other(motions: Sequence[_Motion]) -> _Motion:
    statements, positions, times = list(motions[0].statements), [motions[0].path.positions], [motions[0].path.times]
    for motion in motions[1:]:
        statements += motion.statements
        positions.append(motion.path.positions[1:])
        times.append(times[-1][-1] + motion.path.times[1:])
    return _Motion(statements, JointPath(np.concatenate(positions), np.concatenate(times)))


def _trapezoid_times(phases: Vector, length: float, velocity: float, acceleration: float) -> Vector:
    """When (N,) a trapezoidal profile over ``length`` passes the phases (N,), 0 to 1; s."""
    peak = min(velocity, math.sqrt(length * acceleration))
    ramp = 0.5 * peak**2 / acceleration
    duration = length / peak + peak / acceleration
    way = phases * length
    times: Tuple[Vector, ...] = (
        np.sqrt(2.0 * way / acceleration),
        peak / (2.0 * acceleration) + way / peak,
        duration - np.sqrt(2.0 * np.maximum(length - way, 0.0) / acceleration),
    )
    return np.where(way <= ramp, times[0], np.where(way <= length - ramp, times[1], times[2]))
