"""The move_group of the double: a robot model from a URDF and an SRDF, a scene, and plans in joint space."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from typing import ClassVar, Dict, List, Mapping, Optional, Sequence, Tuple
from xml.etree import ElementTree

import numpy as np
import rospy
from geometry_msgs.msg import Pose
from moveit_msgs.msg import AttachedCollisionObject, CollisionObject, RobotTrajectory
from numpy.typing import NDArray
from shape_msgs.msg import SolidPrimitive
from trajectory_msgs.msg import JointTrajectoryPoint

from iter_runner.kinematics import AttachedBody, Box, Chain, Obstacles, Sphere, carrying, clearance, load_chain
from iter_runner.kinematics.obstacles import Cylinder, Obstacle
from iter_runner.kinematics.rotations import inverse, quaternion_to_matrix
from iter_runner.kinematics.urdf import Urdf, read_urdf
from iter_runner.planners.inverse import Branches, refine
from iter_runner.planners.line import Line
from iter_runner.planners.profile import straight

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

SUCCESS, PLANNING_FAILED = 1, -1
START_STATE_IN_COLLISION, GOAL_IN_COLLISION, INVALID_GOAL_CONSTRAINTS = -10, -12, -16
FRAME_TRANSFORM_FAILURE, NO_IK_SOLUTION = -21, -31
TOUCH = 0.0005
RESAMPLE = 0.1  # s between two points, as AddTimeParameterization leaves them
JUMP = 0.4  # rad


@dataclass
class Request:
    """A MotionPlanRequest, as far as the commander fills it."""

    group: str
    start: Dict[str, float]
    attached: Optional[List[AttachedCollisionObject]]
    planner_id: str = ""
    velocity: float = 1.0
    acceleration: float = 1.0


@dataclass
class MoveGroupNode:
    """What runs apart from the commander; the class attribute ``running`` is the one that answers.

    Attributes:
        urdf, srdf: the model.
        joint_limits: as in joint_limits.yaml.
        planner_ids: as query_planner_interface lists them; "" for a pipeline that lists none.
        state: joint positions by name, as joint_states say.
        error: the code that the next plans fail with, for tests.
        log: what it printed.
        requests: what it was asked.
        world, attached: its scene.
        executed: trajectories that it was to execute; ``blocked`` is where an object stops the fingers.
    """

    running: ClassVar[Optional[MoveGroupNode]] = None

    urdf: str
    srdf: str
    joint_limits: Mapping[str, Mapping[str, float]]
    planner_ids: List[str]
    state: Dict[str, float]
    error: int = SUCCESS
    log: List[str] = field(default_factory=list)
    requests: List[Request] = field(default_factory=list)
    world: Dict[str, CollisionObject] = field(default_factory=dict)
    attached: Dict[str, AttachedCollisionObject] = field(default_factory=dict)
    applied: int = 0
    executed: List[RobotTrajectory] = field(default_factory=list)
    blocked: Optional[float] = None
    controllers_work: bool = True
    untimed: bool = False
    detour: float = 0.0
    random: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self.model: Urdf = read_urdf(self.urdf)
        root = ElementTree.fromstring(self.srdf)
        self.groups: Dict[str, ElementTree.Element] = {group.get("name", ""): group for group in root.findall("group")}
        self.allowed = [(pair.get("link1", ""), pair.get("link2", "")) for pair in root.findall("disable_collisions")]
        self.passive = {joint.get("name", "") for joint in root.findall("passive_joint")}
        self._chains: Dict[str, Chain] = {}

    @classmethod
    def of(cls, robot_name: str) -> MoveGroupNode:
        """For a row, with the configuration that move_group.launch gives it."""
        from iter_runner.robot.moveit_config import joint_limits, srdf
        from iter_runner.robot.table import load_robot, robot_urdf

        robot = load_robot(robot_name)
        group = robot.moveit_group
        return cls(
            urdf=robot_urdf(robot),
            srdf=srdf(robot),
            joint_limits=joint_limits(robot)["joint_limits"],
            planner_ids=[group, f"{group}[RRTConnect]", f"{group}[RRTstarkConfigDefault]"],
            state=dict.fromkeys(robot.joints, 0.3),  # plans begin elsewhere
            random=random.Random(2018),  # each plan differs from the one before, and a test from none before
        )

    # The model -----------------------------------------------------------------------------------------------------

    def tip(self, group: str) -> Tuple[str, str]:
        """Base and tip link of a group that is a chain; empty names otherwise."""
        chain = self.groups[group].find("chain")
        return ("", "") if chain is None else (chain.get("base_link", ""), chain.get("tip_link", ""))

    def chain(self, group: str) -> Chain:
        """Of a group that is one."""
        if group not in self._chains:
            base, tip = self.tip(group)
            chain = load_chain(self.urdf, tip, base)
            chain.collision_ignore = list(self.allowed)
            self._chains[group] = chain
        return self._chains[group]

    def joints(self, group: str) -> List[str]:
        """The active joints: neither fixed, nor mimicking, nor passive."""
        if self.tip(group)[1]:
            return list(self.chain(group).joint_names)
        named = [joint.get("name", "") for joint in self.groups[group].findall("joint")]
        return [name for name in named if name not in self.passive]

    def pose(self, frame: str) -> Optional[Matrix]:
        """(4, 4) of a link in the planning frame, the model's root; None for an unknown frame."""
        if frame not in self.model.links:
            return None
        if frame == self.model.root():
            return np.eye(4)
        fixed: List[Matrix] = []
        joint = self.model.parent_joint(frame)
        while joint is not None:
            step = joint.origin
            if joint.kind in ("revolute", "continuous"):
                from iter_runner.kinematics.rotations import rotation_vector_to_matrix

                turn = np.eye(4)
                turn[:3, :3] = rotation_vector_to_matrix(joint.axis * self.state.get(joint.name, 0.0))
                step = step @ turn
            fixed.insert(0, step)
            joint = self.model.parent_joint(joint.parent)
        result = np.eye(4)
        for step in fixed:
            result = result @ step
        return result

    # The scene -------------------------------------------------------------------------------------------------------

    def apply_object(self, message: CollisionObject, remove: bool) -> None:
        """ADD replaces an object of the same name; an unknown frame is a line in the log and nothing else."""
        self.applied += 1
        if remove:
            if message.id and message.id not in self.world:
                self.log.append(f"Tried to remove world object '{message.id}', but it does not exist in this scene.")
            elif message.id:
                del self.world[message.id]
            else:
                self.world.clear()
            return
        at = self.pose(message.header.frame_id)
        if at is None:
            self.log.append(f"Unknown frame: {message.header.frame_id}")
            return
        kept = copy.deepcopy(message)
        kept.header.frame_id = self.model.root()
        kept.pose = _message(at @ _matrix(message.pose))
        self.world[message.id] = kept

    def apply_attached(self, message: AttachedCollisionObject, remove: bool) -> None:
        """A removed one goes back into the world; one without a shape takes it from the world."""
        self.applied += 1
        if remove:
            names = [message.object.id] if message.object.id else list(self.attached)
            for name in names:
                if name not in self.attached:
                    self.log.append(f"No attached bodies with name '{name}'")
                    continue
                gone = self.attached.pop(name)
                link = self.pose(gone.link_name)
                assert link is not None
                freed = copy.deepcopy(gone.object)
                freed.header.frame_id = self.model.root()
                freed.pose = _message(link @ _matrix(freed.pose))
                self.world[name] = freed
            return
        link = self.pose(message.link_name)
        if link is None:
            self.log.append(f"Robot state is not compatible with robot model. No link '{message.link_name}'")
            return
        kept = copy.deepcopy(message)
        if not message.object.primitives:
            if message.object.id not in self.world:
                self.log.append(f"Attempting to attach object '{message.object.id}' but no geometry is specified")
                return
            kept.object = self.world[message.object.id]
        at = self.pose(kept.object.header.frame_id)
        if at is None:
            self.log.append(f"Unknown frame: {kept.object.header.frame_id}")
            return
        kept.object = copy.deepcopy(kept.object)
        kept.object.pose = _message(inverse(link) @ at @ _matrix(kept.object.pose))
        kept.object.header.frame_id = message.link_name
        self.world.pop(message.object.id, None)
        self.attached[message.object.id] = kept

    def _obstacles(self, base: str) -> List[Obstacle]:
        frame = self.pose(base)
        assert frame is not None
        return [_obstacle(name, inverse(frame) @ _matrix(item.pose), item) for name, item in self.world.items()]

    def _carried(self, group: str, attached: Optional[Sequence[AttachedCollisionObject]]) -> Chain:
        """The chain with what the state brings along; None: what is attached in the scene."""
        bodies = []
        _, tip = self.tip(group)
        for item in self.attached.values() if attached is None else attached:
            assert item.link_name == tip, "the double attaches to the tip only"
            bodies.append(
                AttachedBody(item.object.id, _matrix(item.object.pose), _size(item.object), tuple(item.touch_links))
            )
        return carrying(self.chain(group), bodies)

    # Plans -----------------------------------------------------------------------------------------------------------

    def start(self, request: Request, names: Sequence[str]) -> Vector:
        """(n,) rad."""
        return np.array([request.start.get(name, self.state.get(name, 0.0)) for name in names])

    def plan_pose(self, request: Request, frame: str, link: str, target: Matrix) -> Tuple[int, RobotTrajectory]:
        """To a pose of ``link`` in ``frame``: any of its solutions, straight in joint space, or by a random detour."""
        self.requests.append(request)
        self._choose(request)
        if self.error != SUCCESS:
            return self.error, RobotTrajectory()
        if link not in self.model.links or self.tip(request.group)[1] != link:
            return INVALID_GOAL_CONSTRAINTS, RobotTrajectory()
        at = self.pose(frame)
        if at is None:
            return FRAME_TRANSFORM_FAILURE, RobotTrajectory()
        chain = self._carried(request.group, request.attached)
        base = self.pose(chain.base)
        assert base is not None
        obstacles = Obstacles(self._obstacles(chain.base))
        begin = self.start(request, chain.joint_names)
        if clearance(chain, begin, obstacles).distance < -TOUCH:
            return START_STATE_IN_COLLISION, RobotTrajectory()
        goal = inverse(base) @ at @ target
        exact = [found.positions for found in Branches(self.chain(request.group)).solve(goal, begin) if found.exact]
        if not exact:
            return NO_IK_SOLUTION, RobotTrajectory()
        clear = [end for end in exact if clearance(chain, end, obstacles).distance >= -TOUCH]
        if not clear:
            return GOAL_IN_COLLISION, RobotTrajectory()
        self.random.shuffle(clear)
        for end in clear:
            for way in self._ways(begin, end, chain):
                dense = np.vstack([a + np.linspace(0.0, 1.0, 60)[:, None] * (b - a) for a, b in zip(way, way[1:])])
                if all(clearance(chain, q, obstacles).distance >= -TOUCH for q in dense):
                    return SUCCESS, self._timed(way, chain.joint_names, request)
        return PLANNING_FAILED, RobotTrajectory()

    def _ways(self, begin: Vector, end: Vector, chain: Chain) -> List[List[Vector]]:
        ways = [[begin, end]] if self.detour == 0.0 else []
        for _ in range(8):
            spread = np.array([self.random.uniform(-1.0, 1.0) for _ in begin]) * max(self.detour, 0.6)
            ways.append([begin, np.clip(0.5 * (begin + end) + spread, chain.lower, chain.upper), end])
        return ways

    def plan_joints(self, request: Request, target: Mapping[str, float]) -> Tuple[int, RobotTrajectory]:
        """To joint positions."""
        self.requests.append(request)
        self._choose(request)
        if self.error != SUCCESS:
            return self.error, RobotTrajectory()
        names = self.joints(request.group)
        begin = self.start(request, names)
        end = np.array([target.get(name, value) for name, value in zip(names, begin)])
        return SUCCESS, self._timed([begin, end], names, request)

    def cartesian(
        self, request: Request, frame: str, link: str, targets: Sequence[Matrix], step: float, avoid_collisions: bool
    ) -> Tuple[RobotTrajectory, float]:
        """The share of the straight line that can be followed, a point every ``step`` m; timed without scaling."""
        self.requests.append(request)
        at = self.pose(frame)
        if at is None or self.tip(request.group)[1] != link or step <= 0.0:
            self.log.append(f"Unable to transform waypoints from '{frame}', or no such link '{link}', or no step")
            return RobotTrajectory(), -1.0
        chain = self._carried(request.group, request.attached)
        base = self.pose(chain.base)
        assert base is not None
        obstacles = Obstacles(self._obstacles(chain.base))
        joints = [self.start(request, chain.joint_names)]
        poses: List[Matrix] = []
        for target in targets:
            line = Line(chain.fk(joints[0]) if not poses else poses[-1], inverse(base) @ at @ target)
            count = max(2, int(np.ceil(max(line.length / step, line.angle / 0.05))))
            poses += list(line.poses(np.linspace(0.0, 1.0, count + 1)[1:]))
        followed = 0
        for pose in poses:
            found = refine(self.chain(request.group), joints[-1], pose)
            if not found.exact or np.max(np.abs(found.positions - joints[-1])) > JUMP:
                break
            if avoid_collisions and clearance(chain, found.positions, obstacles).distance < -TOUCH:
                break
            joints.append(found.positions)
            followed += 1
        return self._stepped(joints, chain.joint_names), followed / len(poses)

    def _stepped(self, joints: Sequence[Vector], names: Sequence[str]) -> RobotTrajectory:
        """The points as they are, a tenth of a second a step."""
        trajectory = RobotTrajectory()
        trajectory.joint_trajectory.joint_names = list(names)
        for step, q in enumerate(joints):
            point = JointTrajectoryPoint(positions=[_wrapped(self.model, n, v) for n, v in zip(names, q)])
            point.velocities = [0.0] * len(names)
            point.time_from_start = rospy.Duration.from_sec(0.1 * step)
            trajectory.joint_trajectory.points.append(point)
        return trajectory

    def _choose(self, request: Request) -> None:
        """An unknown planner is a warning, and the group's default instead."""
        known = {name.split("[")[-1].rstrip("]") for name in self.planner_ids}
        if request.planner_id and request.planner_id not in known:
            self.log.append(
                f"Cannot find planning configuration for group '{request.group}' using planner '{request.planner_id}'. "
                "Will use defaults instead."
            )

    def _timed(self, way: Sequence[Vector], names: Sequence[str], request: Request) -> RobotTrajectory:
        """From standstill to standstill over every piece, a point every :data:`RESAMPLE`; joints in another order."""
        limits = [self.joint_limits[name] for name in names]
        speed = request.velocity * np.array([limit["max_velocity"] for limit in limits])
        rise = request.acceleration * np.array([limit["max_acceleration"] for limit in limits])
        order = sorted(range(len(names)), key=lambda i: names[i])
        trajectory = RobotTrajectory()
        trajectory.joint_trajectory.header.frame_id = self.model.root()
        trajectory.joint_trajectory.joint_names = [names[i] for i in order]
        points: List[Tuple[float, Vector, Vector]] = [(0.0, way[0], np.zeros(len(names)))]
        for a, b in zip(way, way[1:]):
            if np.max(np.abs(b - a)) < 1e-12:
                continue
            profile = straight(a, b, speed, rise)
            times, positions = profile.sample(RESAMPLE)
            speeds = (profile.positions(times + 1e-4) - profile.positions(times - 1e-4)) / 2e-4
            speeds[0] = speeds[-1] = 0.0
            begin = points[-1][0]
            points += [(begin + t, q, v) for t, q, v in zip(times[1:], positions[1:], speeds[1:])]
        for time, q, v in points:
            point = JointTrajectoryPoint(positions=[float(_wrapped(self.model, names[i], q[i])) for i in order])
            if not self.untimed:
                point.velocities = [float(v[i]) for i in order]
                point.time_from_start = rospy.Duration.from_sec(time)
            trajectory.joint_trajectory.points.append(point)
        return trajectory

    def execute(self, trajectory: RobotTrajectory) -> bool:
        """Moves the joints to the trajectory's end, or to where the fingers are stopped."""
        self.executed.append(trajectory)
        message = trajectory.joint_trajectory
        if not message.points:
            return False
        for name, position in zip(message.joint_names, message.points[0].positions):
            if abs(self.state.get(name, 0.0) - position) > 0.01:
                self.log.append("Invalid Trajectory: start point deviates from current robot state more than 0.01")
                return False
        if not self.controllers_work:
            self.log.append("Unable to identify any set of controllers that can actuate the specified joints")
            return False
        for name, position in zip(message.joint_names, message.points[-1].positions):
            self.state[name] = position if self.blocked is None else min(position, self.blocked)
        return True


def _wrapped(model: Urdf, name: str, position: float) -> float:
    """MoveIt keeps continuous joints within half a turn of zero."""
    if model.joints[name].kind != "continuous":
        return position
    return (position + np.pi) % (2.0 * np.pi) - np.pi


def _matrix(pose: Pose) -> Matrix:
    matrix = np.eye(4)
    matrix[:3, 3] = pose.position.x, pose.position.y, pose.position.z
    q = pose.orientation
    matrix[:3, :3] = quaternion_to_matrix([q.x, q.y, q.z, q.w])
    return matrix


def _message(matrix: Matrix) -> Pose:
    from iter_runner.robot.ros_moveit import pose_message

    return pose_message(matrix)


def _size(item: CollisionObject) -> Tuple[float, float, float]:
    (shape,) = item.primitives
    if shape.type == SolidPrimitive.BOX:
        x, y, z = shape.dimensions
        return x, y, z
    if shape.type == SolidPrimitive.SPHERE:
        diameter = 2.0 * shape.dimensions[0]
        return diameter, diameter, diameter
    return 2.0 * shape.dimensions[1], 2.0 * shape.dimensions[1], shape.dimensions[0]


def _obstacle(name: str, pose: Matrix, item: CollisionObject) -> Obstacle:
    (shape,) = item.primitives
    if shape.type == SolidPrimitive.BOX:
        return Box(name, pose, np.array(shape.dimensions))
    if shape.type == SolidPrimitive.SPHERE:
        return Sphere(name, pose[:3, 3], shape.dimensions[0])
    return Cylinder(name, pose, shape.dimensions[1], shape.dimensions[0])
