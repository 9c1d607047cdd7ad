"""The fields of moveit_msgs' messages that moveit_commander's callers fill or read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, List

from geometry_msgs.msg import Pose
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive
from std_msgs.msg import Header, String
from trajectory_msgs.msg import JointTrajectory


@dataclass
class MoveItErrorCodes:
    SUCCESS: ClassVar[int] = 1
    FAILURE: ClassVar[int] = 99999
    val: int = 0
    message: str = ""
    source: str = ""


@dataclass
class RobotTrajectory:
    joint_trajectory: JointTrajectory = field(default_factory=JointTrajectory)


@dataclass
class CollisionObject:
    ADD: ClassVar[int] = 0
    header: Header = field(default_factory=Header)
    id: str = ""
    pose: Pose = field(default_factory=Pose)
    primitives: List[SolidPrimitive] = field(default_factory=list)
    operation: int = 0


@dataclass
class AttachedCollisionObject:
    link_name: str = ""
    object: CollisionObject = field(default_factory=CollisionObject)
    touch_links: List[str] = field(default_factory=list)


@dataclass
class RobotState:
    joint_state: JointState = field(default_factory=JointState)
    attached_collision_objects: List[AttachedCollisionObject] = field(default_factory=list)
    is_diff: bool = False


class DisplayTrajectory(String):
    """A message that rospy publishes, if an empty one."""

    def __init__(self) -> None:
        super().__init__()
        self.model_id = ""
        self.trajectory: List[RobotTrajectory] = []
        self.trajectory_start = RobotState()


@dataclass
class PlannerInterfaceDescription:
    name: str = ""
    pipeline_id: str = ""
    planner_ids: List[str] = field(default_factory=list)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"the double of moveit_msgs has no {name}")
