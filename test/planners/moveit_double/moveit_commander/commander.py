"""The commander's classes as Noetic before 1.1.15 has them, and what other releases have otherwise."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import rospy
from geometry_msgs.msg import Pose, PoseStamped
from moveit_msgs.msg import (
    AttachedCollisionObject,
    CollisionObject,
    MoveItErrorCodes,
    PlannerInterfaceDescription,
    RobotState,
    RobotTrajectory,
)
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive

from .node import INVALID_GOAL_CONSTRAINTS, SUCCESS, MoveGroupNode, Request, _matrix

initialized: List[List[str]] = []


class MoveItCommanderException(Exception):
    pass


def roscpp_initialize(args: List[str]) -> None:
    initialized.append(args)


def roscpp_shutdown() -> None:
    initialized.clear()


def _node() -> MoveGroupNode:
    if MoveGroupNode.running is None:
        raise RuntimeError("Unable to connect to move_group action server 'move_group' within allotted time (5s)")
    return MoveGroupNode.running


class RobotCommander:
    """It reads the model from the parameter server, and needs no move_group."""

    def __init__(self, robot_description: str = "robot_description", ns: str = "") -> None:
        if MoveGroupNode.running is None:
            raise RuntimeError("RobotInterfacePython: invalid robot model")
        self._node = MoveGroupNode.running

    def get_planning_frame(self) -> str:
        return self._node.model.root()

    def get_group_names(self) -> List[str]:
        return list(self._node.groups)

    def has_group(self, name: str) -> bool:
        return name in self._node.groups

    def get_link_names(self, group: Optional[str] = None) -> List[str]:
        return list(self._node.model.links)

    def get_active_joint_names(self, group: Optional[str] = None) -> List[str]:
        if group is None:
            raise NotImplementedError
        if not self.has_group(group):
            raise MoveItCommanderException(f"There is no group named {group}")
        return self._node.joints(group)


class MoveGroupCommander:
    def __init__(
        self, name: str, robot_description: str = "robot_description", ns: str = "", wait_for_servers: float = 5.0
    ) -> None:
        node = _node()
        if name not in node.groups:
            raise RuntimeError(f"Group '{name}' was not found.")
        self._name = name
        self._node = node
        self._link = node.tip(name)[1]
        self._frame = node.model.root()
        self._start: Optional[RobotState] = None
        self._target: Optional[Union[Tuple[str, str, Pose], Dict[str, float]]] = {}  # joints: the current ones
        self._planner_id = ""
        self._velocity = self._acceleration = 0.1  # Noetic's defaults
        self.settings: Dict[str, Any] = {}

    def get_name(self) -> str:
        return self._name

    def get_active_joints(self) -> List[str]:
        return self._node.joints(self._name)

    def get_current_joint_values(self) -> List[float]:
        return [self._node.state.get(name, 0.0) for name in self.get_active_joints()]

    def get_end_effector_link(self) -> str:
        return self._link

    def set_end_effector_link(self, link_name: str) -> None:
        if link_name not in self._node.model.links:
            raise MoveItCommanderException("Unable to set end effector link")
        self._link = link_name

    def has_end_effector_link(self) -> bool:
        return len(self._link) > 0

    def get_pose_reference_frame(self) -> str:
        return self._frame

    def set_pose_reference_frame(self, reference_frame: str) -> None:
        self._frame = reference_frame

    def get_planning_frame(self) -> str:
        return self._node.model.root()

    def get_interface_description(self) -> PlannerInterfaceDescription:
        return PlannerInterfaceDescription("OMPL", "ompl", list(self._node.planner_ids))

    # Where it starts.

    def set_start_state_to_current_state(self) -> None:
        self._start = None

    def set_start_state(self, msg: RobotState) -> None:
        if not isinstance(msg, RobotState):
            raise TypeError("a moveit_msgs/RobotState expected")
        self._start = msg

    def _request(self) -> Request:
        start: Dict[str, float] = {}
        attached: Optional[List[AttachedCollisionObject]] = None
        if self._start is not None:
            state = self._start.joint_state
            start = dict(zip(state.name, state.position))
            # The commander knows joint states only: a start state of its own has what the message brings, nothing else.
            attached = list(self._start.attached_collision_objects)
        return Request(self._name, start, attached, self._planner_id, self._velocity, self._acceleration)

    # Where it goes.

    def set_pose_target(self, pose: Union[Pose, PoseStamped, Sequence[float]], end_effector_link: str = "") -> None:
        if not (len(end_effector_link) > 0 or self.has_end_effector_link()):
            raise MoveItCommanderException("There is no end effector to set the pose for")
        link = end_effector_link or self._link
        if type(pose) is PoseStamped:
            self._target = (pose.header.frame_id, link, pose.pose)
        elif type(pose) is Pose:
            self._target = (self._frame, link, pose)
        else:
            raise MoveItCommanderException("Unable to set target pose")

    def clear_pose_targets(self) -> None:
        if not isinstance(self._target, dict):
            self._target = None

    def set_joint_value_target(self, arg1: Any, arg2: Any = None, arg3: Any = None) -> None:
        if isinstance(arg1, JointState):
            arg1 = dict(zip(arg1.name, arg1.position))
        if not isinstance(arg1, Mapping) or arg2 is not None or arg3 is not None:
            raise MoveItCommanderException(f"Unsupported argument of type {type(arg1)}")
        for name, value in arg1.items():
            joint = self._node.model.joints.get(name)
            inside = joint is not None and (joint.kind == "continuous" or joint.lower <= value <= joint.upper)
            if name not in self.get_active_joints() or not inside:
                raise MoveItCommanderException("Error setting joint target. Is the target within bounds?")
        self._target = dict(arg1)

    # How.

    def set_planner_id(self, planner_id: str) -> None:
        self._planner_id = planner_id

    def set_planning_time(self, seconds: float) -> None:
        if seconds > 0.0:
            self.settings["planning_time"] = float(seconds)

    def set_num_planning_attempts(self, num_planning_attempts: int) -> None:
        if not isinstance(num_planning_attempts, int):
            raise TypeError("Boost.Python.ArgumentError: did not match C++ signature")
        self.settings["attempts"] = num_planning_attempts

    def set_goal_position_tolerance(self, value: float) -> None:
        self.settings["position_tolerance"] = value

    def set_goal_orientation_tolerance(self, value: float) -> None:
        self.settings["orientation_tolerance"] = value

    def set_goal_joint_tolerance(self, value: float) -> None:
        self.settings["joint_tolerance"] = value

    def set_max_velocity_scaling_factor(self, value: float) -> None:
        if not 0 < value <= 1:
            raise MoveItCommanderException("Expected value in the range from 0 to 1 for scaling factor")
        self._velocity = value

    def set_max_acceleration_scaling_factor(self, value: float) -> None:
        if not 0 < value <= 1:
            raise MoveItCommanderException("Expected value in the range from 0 to 1 for scaling factor")
        self._acceleration = value

    # And off.

    def _plan(self) -> Tuple[int, RobotTrajectory]:
        target = self._target
        if target is None:
            self._node.log.append("No goal constraints specified. There is no problem to solve.")
            return INVALID_GOAL_CONSTRAINTS, RobotTrajectory()
        if isinstance(target, dict):
            return self._node.plan_joints(self._request(), target)
        frame, link, pose = target
        return self._node.plan_pose(self._request(), frame, link, _matrix(pose))

    def plan(self, joints: Any = None) -> Any:
        code, trajectory = self._plan()
        return code == SUCCESS, trajectory, 0.012, MoveItErrorCodes(code)

    def _cartesian(
        self, waypoints: Sequence[Pose], eef_step: float, avoid_collisions: Any
    ) -> Tuple[RobotTrajectory, float]:
        if not isinstance(avoid_collisions, bool):
            raise TypeError("Boost.Python.ArgumentError: did not match C++ signature")
        if any(type(pose) is not Pose for pose in waypoints):
            raise MoveItCommanderException("waypoints are geometry_msgs/Pose")
        return self._node.cartesian(
            self._request(), self._frame, self._link, [_matrix(p) for p in waypoints], eef_step, avoid_collisions
        )

    def compute_cartesian_path(
        self,
        waypoints: Sequence[Pose],
        eef_step: float,
        jump_threshold: float,
        avoid_collisions: bool = True,
        path_constraints: Any = None,
    ) -> Tuple[RobotTrajectory, float]:
        self.settings["jump_threshold"] = jump_threshold
        return self._cartesian(waypoints, eef_step, avoid_collisions)

    def execute(self, plan_msg: RobotTrajectory, wait: bool = True) -> bool:
        if not hasattr(plan_msg, "joint_trajectory"):
            raise AttributeError("a moveit_msgs/RobotTrajectory expected")
        return self._node.execute(plan_msg)

    def stop(self) -> None:
        self._node.log.append("stopped")


class NewNoeticMoveGroupCommander(MoveGroupCommander):
    """Since 1.1.15: no jump_threshold; what stands in its place is avoid_collisions."""

    def compute_cartesian_path(  # type: ignore[override]
        self, waypoints: Sequence[Pose], eef_step: float, avoid_collisions: bool = True, path_constraints: Any = None
    ) -> Tuple[RobotTrajectory, float]:
        return self._cartesian(waypoints, eef_step, avoid_collisions)


class MelodicMoveGroupCommander(MoveGroupCommander):
    """1.0.x: a plan is a trajectory, empty where there is none."""

    def plan(self, joints: Any = None) -> RobotTrajectory:
        return self._plan()[1]

    def get_interface_description(self) -> PlannerInterfaceDescription:
        raise AttributeError("get_interface_description")


class PlanningSceneInterface:
    def __init__(self, ns: str = "", synchronous: bool = False, service_timeout: float = 5.0) -> None:
        if synchronous and MoveGroupNode.running is None:
            raise rospy.ROSException("timeout exceeded while waiting for service /apply_planning_scene")
        self._node = _node()

    def add_box(self, name: str, pose: PoseStamped, size: Sequence[float] = (1, 1, 1)) -> None:
        self._node.apply_object(_shape(name, pose, SolidPrimitive.BOX, size), remove=False)

    def add_sphere(self, name: str, pose: PoseStamped, radius: float = 1) -> None:
        self._node.apply_object(_shape(name, pose, SolidPrimitive.SPHERE, [radius]), remove=False)

    def add_cylinder(self, name: str, pose: PoseStamped, height: float, radius: float) -> None:
        self._node.apply_object(_shape(name, pose, SolidPrimitive.CYLINDER, [height, radius]), remove=False)

    def attach_box(
        self,
        link: str,
        name: str,
        pose: Optional[PoseStamped] = None,
        size: Sequence[float] = (1, 1, 1),
        touch_links: Sequence[str] = (),
    ) -> None:
        message = AttachedCollisionObject(link_name=link, touch_links=list(touch_links) or [link])
        message.object = CollisionObject(id=name) if pose is None else _shape(name, pose, SolidPrimitive.BOX, size)
        self._node.apply_attached(message, remove=False)

    def remove_world_object(self, name: Optional[str] = None) -> None:
        self._node.apply_object(CollisionObject(id=name or ""), remove=True)

    def remove_attached_object(self, link: str, name: Optional[str] = None) -> None:
        message = AttachedCollisionObject(link_name=link)
        message.object.id = name or ""
        self._node.apply_attached(message, remove=True)

    def get_known_object_names(self, with_type: bool = False) -> List[str]:
        return list(self._node.world)

    def get_attached_objects(self, object_ids: Sequence[str] = ()) -> Dict[str, AttachedCollisionObject]:
        return {name: item for name, item in self._node.attached.items() if not object_ids or name in object_ids}


class MelodicPlanningSceneInterface(PlanningSceneInterface):
    """By topics, whose first message nobody has heard yet."""

    def __init__(self, ns: str = "") -> None:
        super().__init__(ns)
        self._heard = False

    def add_box(self, name: str, pose: PoseStamped, size: Sequence[float] = (1, 1, 1)) -> None:
        if self._heard:
            super().add_box(name, pose, size)
        self._heard = True


def _shape(name: str, pose: PoseStamped, kind: int, dimensions: Sequence[float]) -> CollisionObject:
    message = CollisionObject(header=pose.header, id=name, pose=pose.pose)
    message.primitives = [SolidPrimitive(type=kind, dimensions=[float(value) for value in dimensions])]
    return message
