"""A running move_group through moveit_commander, which is imported when one is asked for and no sooner."""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
import time
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np
import rosgraph
import rospy
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from iter_runner.kinematics import AttachedBody, Box, Obstacle, Sphere
from iter_runner.kinematics.obstacles import Capsule, Cylinder
from iter_runner.kinematics.rotations import matrix_to_quaternion
from iter_runner.robot.arm import Gripper, GripperReading, JointPath, Vector
from iter_runner.robot.joint_paths import central_velocities
from iter_runner.robot.moveit import MotionRequest, describe_error, read_plan
from iter_runner.robot.table import GripperRow, Robot, robot_gripper
from iter_runner.run_control import Fault, RunControl

PREFIX = "iter_runner:"
"""Before the names of our objects in MoveIt's scene, so that those of others stay as they are."""
WAIT_FOR_SERVERS = 30.0
"""s of wall time that move_group gets to come up."""
ARRIVED = 0.02
"""Share of the fingers' range within which they are where they were sent."""
STILL = 1e-3
"""rad that fingers have to move to have moved."""
SCENE_TIME, SCENE_PAUSE = 5.0, 0.2
"""s of wall time that a release that changes its scene by topics gets to follow, and between two looks at it."""
START_HINT = "start it (roslaunch iter_runner move_group.launch robot:={robot}), then try again"

_commanders: Dict[Tuple[str, ...], RosCommander] = {}


def become_node(robot: Robot) -> None:
    """Makes a node of a tool's process, which MoveIt's Python interface asks for; nothing where it is one already.

    Raises:
        Fault(moveit): there is no ROS master, and so no move_group.
    """
    if rospy.core.is_initialized():
        return
    if not rosgraph.is_master_online():
        hint = START_HINT.format(robot=robot.name)
        raise Fault("moveit", f"no ROS master answers, and so no move_group: {hint}")
    rospy.init_node("iter_runner_tool", anonymous=True, disable_signals=True)


def connect(robot: Robot) -> RosCommander:
    """The arm's group of the move_group that runs, connected to once a process.

    Raises:
        Fault(moveit): none answers, or it is another robot's.
    """
    key = (robot.moveit_group, robot.base_frame, robot.tool_frame, *robot.joints)
    if key not in _commanders:
        _commanders[key] = RosCommander(robot)
    return _commanders[key]


class RosCommander:
    """See :class:`iter_runner.robot.moveit.Commander`.

    Args:
        robot: the row: its group, joints, base and tip.

    Raises:
        Fault(moveit): no move_group answers, or it is another robot's.
    """

    def __init__(self, robot: Robot) -> None:
        self._joints = list(robot.joints)
        self._base, self._tip = robot.base_frame, robot.tool_frame
        self._group_name = robot.moveit_group
        self._hint = START_HINT.format(robot=robot.name)
        moveit = importlib.import_module("moveit_commander")
        self._error: Any = moveit.MoveItCommanderException
        try:
            moveit.roscpp_initialize(sys.argv)
            model = moveit.RobotCommander()
            self._check_model(robot, model)
            self._group = moveit.MoveGroupCommander(robot.moveit_group, wait_for_servers=WAIT_FOR_SERVERS)
            self._scene, self._scene_time = _scene_interface(moveit)
            self._group.set_end_effector_link(self._tip)
            self._group.set_pose_reference_frame(self._base)
        except (RuntimeError, rospy.ROSException, self._error) as error:
            raise self._fault(f"{robot.name}: move_group does not answer: {error}") from error
        joints = [name for name in self._group.get_active_joints() if name]
        if set(joints) != set(self._joints):
            raise self._fault(
                f"move_group's group '{robot.moveit_group}' has the joints {', '.join(joints)}, expected those of "
                f"{robot.name}, {', '.join(self._joints)}"
            )
        self._takes_jump_threshold = takes_jump_threshold(self._group.compute_cartesian_path)
        self._mirrored: Dict[str, Tuple[Any, ...]] = {}
        self._held: Dict[str, Tuple[Any, ...]] = {}
        self._clean = False
        self._display: Optional[rospy.Publisher] = None

    def _check_model(self, robot: Robot, model: Any) -> None:
        if not model.has_group(robot.moveit_group):
            groups = ", ".join(model.get_group_names())
            raise self._fault(
                f"move_group has no group '{robot.moveit_group}', which the row of {robot.name} names; it has {groups}"
            )
        links = list(model.get_link_names())
        for link in (self._base, self._tip):
            if link not in links:
                raise self._fault(f"move_group's model has no link '{link}': was it started for robot {robot.name}?")

    def _fault(self, what: str) -> Fault:
        return Fault("moveit", f"{what}; {self._hint}")

    # Plans -----------------------------------------------------------------------------------------------------------

    def plan(self, start: Vector, flange: NDArray[np.float64], request: MotionRequest) -> Any:
        """See :class:`iter_runner.robot.moveit.Commander`."""
        try:
            self._prepare(start, request)
            target = PoseStamped(pose=pose_message(flange))
            target.header.frame_id = self._base
            self._group.set_pose_target(target, self._tip)
            return self._group.plan()
        except (RuntimeError, rospy.ROSException, self._error) as error:
            raise self._fault(f"move_group refuses the motion: {error}") from error
        finally:
            self._group.clear_pose_targets()

    def cartesian(self, start: Vector, flange: NDArray[np.float64], request: MotionRequest) -> Tuple[Any, float]:
        """See :class:`iter_runner.robot.moveit.Commander`."""
        options: Dict[str, Any] = {"avoid_collisions": True}
        if self._takes_jump_threshold:
            options["jump_threshold"] = request.jump_threshold
        try:
            self._prepare(start, request)
            trajectory, fraction = self._group.compute_cartesian_path(
                [pose_message(flange)], eef_step=request.eef_step, **options
            )
        except (RuntimeError, rospy.ROSException, self._error) as error:
            raise self._fault(f"move_group refuses the straight line: {error}") from error
        return trajectory, float(fraction)

    def _prepare(self, start: Vector, request: MotionRequest) -> None:
        group = self._group
        group.set_start_state(self._start_state(start))
        group.set_planner_id(request.planner_id)
        group.set_planning_time(request.planning_time)
        group.set_num_planning_attempts(request.attempts)
        group.set_max_velocity_scaling_factor(request.velocity_scaling)
        if hasattr(group, "set_max_acceleration_scaling_factor"):  # not in the first releases of Melodic
            group.set_max_acceleration_scaling_factor(request.acceleration_scaling)
        group.set_goal_position_tolerance(request.position_tolerance)
        group.set_goal_orientation_tolerance(request.orientation_tolerance)
        group.set_goal_joint_tolerance(request.joint_tolerance)

    def _start_state(self, start: Vector) -> Any:
        """The arm at ``start`` (n,) rad, everything else (fingers) as it is.

        The commander completes a start state from joint states alone: what is attached is left out of its plans unless
        the state brings it along.
        """
        messages = importlib.import_module("moveit_msgs.msg")
        state = messages.RobotState()
        state.is_diff = True
        state.joint_state = JointState(name=list(self._joints), position=[float(value) for value in start])
        if self._held:
            state.attached_collision_objects = list(self._scene.get_attached_objects().values())
        return state

    def planner_ids(self) -> Sequence[str]:
        """See :class:`iter_runner.robot.moveit.Commander`."""
        try:
            return list(self._group.get_interface_description().planner_ids)
        except (AttributeError, RuntimeError, rospy.ROSException, self._error):
            return ()  # an older release

    def show(self, path: JointPath) -> None:
        """See :class:`iter_runner.robot.moveit.Commander`: where RViz's MotionPlanning display looks."""
        if not rospy.core.is_initialized():
            return
        messages = importlib.import_module("moveit_msgs.msg")
        if self._display is None:
            self._display = rospy.Publisher(
                "/move_group/display_planned_path", messages.DisplayTrajectory, queue_size=1, latch=True
            )
        shown = messages.DisplayTrajectory()
        shown.trajectory_start = self._start_state(path.positions[0])
        trajectory = messages.RobotTrajectory()
        trajectory.joint_trajectory.header.frame_id = self._base
        trajectory.joint_trajectory.joint_names = list(self._joints)
        trajectory.joint_trajectory.points = [
            JointTrajectoryPoint(
                positions=positions, velocities=velocities, time_from_start=rospy.Duration.from_sec(time)
            )
            for positions, velocities, time in zip(
                path.positions.tolist(), central_velocities(path).tolist(), path.times.tolist()
            )
        ]
        shown.trajectory = [trajectory]
        self._display.publish(shown)

    # Its scene -------------------------------------------------------------------------------------------------------

    def mirror(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody]) -> None:
        """See :class:`iter_runner.robot.moveit.Commander`. Sends what has changed since the last time."""
        world = {PREFIX + obstacle.name: _signature(obstacle) for obstacle in obstacles}
        held = {PREFIX + body.name: _signature(body) for body in attached}
        give_up = time.monotonic() + self._scene_time
        while True:
            self._send(obstacles, attached, world, held)
            off = self._differences(set(world), set(held))
            if not off:
                return
            if time.monotonic() > give_up:
                self._clean = False
                names = ", ".join(sorted(name[len(PREFIX) :] for name in off))
                raise self._fault(
                    f"move_group's scene does not follow with {names}: does it know the frames '{self._base}' and "
                    f"'{self._tip}'? Its output says more"
                )
            rospy.rostime.wallsleep(SCENE_PAUSE)  # a topic that nobody answers on; what was lost is sent again

    def _send(
        self,
        obstacles: Sequence[Obstacle],
        attached: Sequence[AttachedBody],
        world: Dict[str, Tuple[Any, ...]],
        held: Dict[str, Tuple[Any, ...]],
    ) -> None:
        try:
            self._forget_what_is_gone()
            for name in [name for name, known in self._held.items() if held.get(name) != known]:
                self._scene.remove_attached_object(self._tip, name)
                self._scene.remove_world_object(name)  # where MoveIt leaves it
                del self._held[name]
            for name in [name for name in self._mirrored if name not in world]:
                self._scene.remove_world_object(name)
                del self._mirrored[name]
            for obstacle in obstacles:
                name = PREFIX + obstacle.name
                if self._mirrored.get(name) != world[name]:
                    self._add(name, obstacle)  # one of the same name is replaced
                    self._mirrored[name] = world[name]
            for body in attached:
                name = PREFIX + body.name
                if name not in self._held:
                    self._attach(name, body)
                    self._held[name] = held[name]
        except (RuntimeError, rospy.ROSException, rospy.ServiceException, self._error) as error:
            self._clean = False
            raise self._fault(f"move_group does not take the scene: {error}") from error

    def _forget_what_is_gone(self) -> None:
        """What of ours a move_group that was started again has lost; and at first, what a process before has left."""
        present = self._present()
        if not self._clean:
            for name in present[1]:
                self._scene.remove_attached_object(self._tip, name)
            for name in present[0] | present[1]:
                self._scene.remove_world_object(name)
            self._clean = True
            self._mirrored, self._held = {}, {}
        self._mirrored = {name: known for name, known in self._mirrored.items() if name in present[0]}
        self._held = {name: known for name, known in self._held.items() if name in present[1]}

    def _present(self) -> Tuple[Set[str], Set[str]]:
        """Our objects in MoveIt's scene: in the world, and attached."""
        world = {name for name in self._scene.get_known_object_names() if name.startswith(PREFIX)}
        held = {name for name in self._scene.get_attached_objects() if name.startswith(PREFIX)}
        return world, held

    def _differences(self, world: Set[str], held: Set[str]) -> Set[str]:
        """Ours that MoveIt has and should not, or lacks: when it refuses an object it says nothing of it."""
        try:
            present = self._present()
        except (RuntimeError, rospy.ROSException, rospy.ServiceException, self._error) as error:
            raise self._fault(f"move_group does not tell its scene: {error}") from error
        return (world ^ present[0]) | (held ^ present[1])

    def _add(self, name: str, obstacle: Obstacle) -> None:
        if isinstance(obstacle, Box):
            self._scene.add_box(name, self._stamped(obstacle.pose, self._base), size=_triple(obstacle.size))
        elif isinstance(obstacle, Sphere):
            at = np.eye(4)
            at[:3, 3] = obstacle.center
            self._scene.add_sphere(name, self._stamped(at, self._base), radius=float(obstacle.radius))
        else:
            pose, length, radius = _cylinder(obstacle)
            self._scene.add_cylinder(name, self._stamped(pose, self._base), length, radius)

    def _attach(self, name: str, body: AttachedBody) -> None:
        pose, size = self._stamped(body.pose, self._tip), _triple(body.size)
        touch_links = [self._tip, *body.touch_links]
        if body.shape == "box":
            self._scene.attach_box(self._tip, name, pose, size=size, touch_links=touch_links)
            return
        # Into the world first: attaching it by its name works in all releases.
        if body.shape == "sphere":
            self._scene.add_sphere(name, pose, radius=0.5 * max(size))
        else:
            self._scene.add_cylinder(name, pose, size[2], 0.5 * max(size[:2]))
        self._scene.attach_box(self._tip, name, touch_links=touch_links)

    @staticmethod
    def _stamped(pose: Any, frame: str) -> PoseStamped:
        stamped = PoseStamped(pose=pose_message(np.asarray(pose, dtype=np.float64)))
        stamped.header.frame_id = frame
        return stamped


def _scene_interface(moveit: Any) -> Tuple[Any, float]:
    """The scene's interface, and how long, s of wall time, it takes at most until a change is in; 0: it waits."""
    try:
        return moveit.PlanningSceneInterface(synchronous=True), 0.0
    except TypeError:  # before Noetic: by topics
        return moveit.PlanningSceneInterface(), SCENE_TIME


def takes_jump_threshold(method: Any) -> bool:
    """Whether this release's compute_cartesian_path has the parameter: gone since 1.1.15.

    Given by its place it would be taken there for ``avoid_collisions``, so everything is given by name.
    """
    try:
        return "jump_threshold" in inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False


def pose_message(matrix: NDArray[np.float64]) -> Pose:
    """geometry_msgs/Pose of a (4, 4) pose, m."""
    return Pose(Point(*map(float, matrix[:3, 3])), Quaternion(*map(float, matrix_to_quaternion(matrix[:3, :3]))))


def _triple(size: Any) -> Tuple[float, float, float]:
    x, y, z = (float(value) for value in size)
    return x, y, z


def _cylinder(obstacle: Any) -> Tuple[NDArray[np.float64], float, float]:
    """Pose (4, 4) of the centre, its axis along z, length and radius, m, of a cylinder, or of one around a capsule."""
    if isinstance(obstacle, Cylinder):
        return np.asarray(obstacle.pose, dtype=np.float64), float(obstacle.length), float(obstacle.radius)
    assert isinstance(obstacle, Capsule)
    start, end = np.asarray(obstacle.start, dtype=np.float64), np.asarray(obstacle.end, dtype=np.float64)
    pose = np.eye(4)
    pose[:3, :3] = _turned_along(end - start)
    pose[:3, 3] = 0.5 * (start + end)
    return pose, float(np.linalg.norm(end - start)) + 2.0 * float(obstacle.radius), float(obstacle.radius)


def _turned_along(axis: NDArray[np.float64]) -> NDArray[np.float64]:
    """A rotation (3, 3) whose z is along ``axis`` (3,); none for a capsule that is a sphere."""
    length = float(np.linalg.norm(axis))
    if length < 1e-12:
        return np.eye(3)
    z = axis / length
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _signature(body: Any) -> Tuple[Any, ...]:
    """What tells two states of a body apart."""
    values: List[Any] = [type(body).__name__]
    for name, value in sorted(vars(body).items()):
        values.append(
            value
            if isinstance(value, (str, float, int))
            else tuple(value)
            if name == "touch_links"
            else np.asarray(value, dtype=np.float64).tobytes()
        )
    return tuple(values)


class MoveItGripper:
    """See :class:`iter_runner.robot.arm.Gripper`: fingers that MoveIt plans and moves, for rows that ask for it.

    MoveIt hands the plan's end to the gripper's action itself, by its own list of controllers.

    Args:
        robot: whose gripper.
        gripper: the gripper behind its action, for what a position means.
    """

    def __init__(self, robot: Robot, gripper: Gripper) -> None:
        self._row: GripperRow = robot_gripper(robot)
        self._robot = robot
        self._gripper = gripper
        self._group: Any = None

    def _connected(self) -> Any:
        if self._group is None:
            connect(self._robot)  # says what is wrong with move_group
            moveit = importlib.import_module("moveit_commander")
            try:
                self._group = moveit.MoveGroupCommander(self._row.moveit_group, wait_for_servers=WAIT_FOR_SERVERS)
            except RuntimeError as error:
                raise Fault(
                    "gripper", f"{self._row.name}: MoveIt's group '{self._row.moveit_group}': {error}"
                ) from error
        return self._group

    def move(self, position: float, max_effort: float, control: RunControl) -> GripperReading:
        """See :class:`iter_runner.robot.arm.Gripper`."""
        moveit = importlib.import_module("moveit_commander")
        group = self._connected()
        try:
            group.set_start_state_to_current_state()
            group.set_joint_value_target({name: float(position) for name in self._row.joints})
            result = read_plan(group.plan())
        except (RuntimeError, rospy.ROSException, moveit.MoveItCommanderException) as error:
            raise self._fault(position, f"was refused: {error}") from error
        if result.trajectory is None:
            raise self._fault(position, describe_error(result.code, result.detail))
        points = result.trajectory.joint_trajectory.points
        if max_effort > 0.0:
            points[-1].effort = [float(max_effort)] * len(result.trajectory.joint_trajectory.joint_names)
        before = self._measured(group, position)
        done = self._execute(group, result.trajectory, control)
        reached = self._measured(group, position)
        near = abs(reached - position) <= ARRIVED * abs(self._row.position_closed - self._row.position_open)
        if not done and not near and abs(reached - before) < STILL:
            raise self._fault(position, "was not executed: look at move_group's output, then resume")
        # Fingers that an object stopped are a failure to MoveIt, or a success, by its controllers' allow_failure.
        return GripperReading(reached, self._row.opening_of(reached), stalled=not near, reached_goal=near)

    def _execute(self, group: Any, trajectory: Any, control: RunControl) -> bool:
        """Blocks until MoveIt is done; a stop or a fault of the run stops it. Returns whether it calls it a success."""
        answers: List[bool] = []

        def run() -> None:
            try:
                answers.append(bool(group.execute(trajectory, wait=True)))
            except Exception as error:
                rospy.logwarn("moveit: %s", error)
                answers.append(False)
            control.notify()

        threading.Thread(target=run, name="moveit_gripper", daemon=True).start()
        try:
            control.wait_for(lambda: bool(answers))
        except BaseException:
            group.stop()
            raise
        return answers[0]

    def _measured(self, group: Any, position: float) -> float:
        """Where the driven fingers are, rad."""
        values = dict(zip(group.get_active_joints(), group.get_current_joint_values()))
        measured = [float(values[name]) for name in self._row.joints if name in values]
        if not measured:
            raise self._fault(position, "moved other joints than the gripper's row has")
        return float(np.mean(measured))

    def _fault(self, position: float, what: str) -> Fault:
        return Fault("gripper", f"{self._row.name}: to position {position:.3f} rad by MoveIt {what}")

    def position_of(self, opening: float) -> float:
        """See :class:`iter_runner.robot.arm.Gripper`."""
        return self._gripper.position_of(opening)

    def opening_of(self, position: float) -> float:
        """See :class:`iter_runner.robot.arm.Gripper`."""
        return self._gripper.opening_of(position)
