"""A handle on the arm's tool in RViz: the arm follows it as long as it is held.

Parameters:
    ~robot (str, ur5): a row of config/robots/, or the path of such a YAML file.
    ~tool_frame (str, ""): where the handle is; the relaxed_ik node needs the same. Empty: the robot's row's.
    ~scale (float, 0.25): m, the handle's size.
    ~goal_rate (float, 20.0): goals a second while the handle is held.

Subscribes: /teleop_marker/feedback (visualization_msgs/InteractiveMarkerFeedback), /joint_states
    (sensor_msgs/JointState), /arm_ready (std_msgs/Bool).
Publishes: /teleop_marker/update (visualization_msgs/InteractiveMarkerUpdate), /teleop_marker/update_full
    (visualization_msgs/InteractiveMarkerInit), /relaxed_ik/ee_pose_goals (relaxed_ik_ros1/EEPoseGoals).

When the handle is let go the arm stops and the handle goes back to it. There is no handle until /arm_ready is true.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import rospy
from geometry_msgs.msg import Point, Pose, Quaternion
from interactive_markers.interactive_marker_server import InteractiveMarkerServer
from numpy.typing import NDArray
from relaxed_ik_ros1.msg import EEPoseGoals
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, ColorRGBA
from visualization_msgs.msg import InteractiveMarker, InteractiveMarkerControl, InteractiveMarkerFeedback, Marker

from iter_runner.kinematics import load_chain
from iter_runner.kinematics.rotations import matrix_to_quaternion
from iter_runner.nodes.relaxed_ik import GOALS
from iter_runner.nodes.start import start_node
from iter_runner.plan.frames import FrameError, fixed_pose
from iter_runner.planners.line import pose_error
from iter_runner.robot.table import Robot, RobotError, load_robot, robot_driver, robot_urdf

NAME = "tool"
HELD_FOR = 1.0
"""s of wall time: RViz says at least four times a second that the handle is held; without that it is not any more."""
MOVED = (0.0005, 0.002)
"""m and rad from which the handle is taken after the arm."""


class TeleopMarker:
    """See the module."""

    def __init__(self, robot: Robot, tool_frame: str, scale: float, goal_rate: float) -> None:
        self._robot = robot
        self._chain = load_chain(robot)
        self._tip_from_tool = fixed_pose(robot_urdf(robot), tool_frame, robot.tool_frame)
        self._scale = scale
        self._lock = threading.Lock()
        self._columns: Dict[Tuple[str, ...], Optional[List[int]]] = {}
        self._joints: Optional[NDArray[np.float64]] = None
        self._held: Optional[Pose] = None  # where the handle is held
        self._held_until = 0.0  # wall time
        self._shown: Optional[NDArray[np.float64]] = None
        self._arm_ready = False
        self._goals = rospy.Publisher(GOALS, EEPoseGoals, queue_size=1, tcp_nodelay=True)
        self._server = InteractiveMarkerServer("/teleop_marker")
        rospy.Subscriber("/arm_ready", Bool, self._on_arm_ready, queue_size=1)
        topic = robot_driver(robot).topic("joint_states")
        rospy.Subscriber(topic, JointState, self._on_joint_state, queue_size=1, tcp_nodelay=True)
        self._timer = rospy.Timer(rospy.Duration.from_sec(1.0 / goal_rate), self._on_timer, reset=True)

    def _on_arm_ready(self, message: Bool) -> None:
        self._arm_ready = message.data

    def _on_joint_state(self, message: JointState) -> None:
        names = tuple(message.name)
        if names not in self._columns:
            known = all(name in names for name in self._robot.joints)
            self._columns[names] = [names.index(name) for name in self._robot.joints] if known else None
        columns = self._columns[names]
        if columns is not None:
            self._joints = np.array([message.position[column] for column in columns])

    def _on_feedback(self, feedback: InteractiveMarkerFeedback) -> None:
        with self._lock:
            self._held_until = time.monotonic() + HELD_FOR
            if feedback.event_type == InteractiveMarkerFeedback.MOUSE_UP:
                self._let_go()
            elif feedback.event_type in (InteractiveMarkerFeedback.MOUSE_DOWN, InteractiveMarkerFeedback.POSE_UPDATE):
                self._held = feedback.pose
                self._publish_goal(feedback.pose)

    def _let_go(self) -> None:
        if self._held is not None:
            self._held = None
            self._shown = None  # RViz has it elsewhere
            self._publish_goal(None)

    def _publish_goal(self, pose: Optional[Pose]) -> None:
        message = EEPoseGoals(ee_poses=[] if pose is None else [pose])
        message.header.stamp = rospy.Time.now()
        message.header.frame_id = self._robot.base_frame
        self._goals.publish(message)

    def _on_timer(self, _event: Any) -> None:
        with self._lock:
            if self._held is not None:
                if time.monotonic() > self._held_until:
                    rospy.logwarn("teleop_marker: RViz has not said for %g s that the handle is held: let go", HELD_FOR)
                    self._let_go()
                else:
                    self._publish_goal(self._held)
                return
        if not self._arm_ready or self._joints is None:
            return
        tool = np.asarray(self._chain.fk(self._joints)) @ self._tip_from_tool
        if self._shown is not None:
            distance, turn = pose_error(tool, self._shown)
            if distance < MOVED[0] and turn < MOVED[1]:
                return
        known = self._server.get(NAME) is not None
        if known:
            self._server.setPose(NAME, _pose(tool))
        else:
            self._server.insert(_handle(self._robot.base_frame, _pose(tool), self._scale), self._on_feedback)
        self._server.applyChanges()
        self._shown = tool


def _pose(matrix: NDArray[np.float64]) -> Pose:
    return Pose(Point(*map(float, matrix[:3, 3])), Quaternion(*map(float, matrix_to_quaternion(matrix[:3, :3]))))


def _handle(frame: str, pose: Pose, scale: float) -> InteractiveMarker:
    """Arrows and rings along the tool's axes, and a ball to drag in the plane of the screen."""
    marker = InteractiveMarker(name=NAME, description="", scale=scale, pose=pose)
    marker.header.frame_id = frame  # without a stamp: RViz answers in this frame
    root_half = float(np.sqrt(0.5))
    for axis, turn in (
        ("x", (root_half, 0.0, 0.0, root_half)),
        ("y", (0.0, 0.0, root_half, root_half)),
        ("z", (0.0, root_half, 0.0, root_half)),
    ):
        for mode, name in (
            (InteractiveMarkerControl.MOVE_AXIS, "move"),
            (InteractiveMarkerControl.ROTATE_AXIS, "turn"),
        ):
            marker.controls.append(
                InteractiveMarkerControl(
                    name=f"{name}_{axis}",
                    orientation=Quaternion(*turn),
                    orientation_mode=InteractiveMarkerControl.INHERIT,
                    interaction_mode=mode,
                )
            )
    ball = Marker(type=Marker.SPHERE, color=ColorRGBA(0.95, 0.75, 0.2, 0.8))
    ball.pose.orientation.w = 1.0
    ball.scale.x = ball.scale.y = ball.scale.z = 0.18 * scale
    marker.controls.append(
        InteractiveMarkerControl(
            name="drag",
            orientation=Quaternion(0.0, 0.0, 0.0, 1.0),
            interaction_mode=InteractiveMarkerControl.MOVE_3D,
            always_visible=True,
            markers=[ball],
        )
    )
    return marker


def main() -> int:
    """Runs the node; returns its exit code."""
    start_node("teleop_marker")
    try:
        robot = load_robot(str(rospy.get_param("~robot", "ur5")))
        scale, goal_rate = (
            float(rospy.get_param(name, value)) for name, value in (("~scale", 0.25), ("~goal_rate", 20.0))
        )
        if not (0.01 <= scale <= 2.0 and 1.0 <= goal_rate <= 100.0):
            raise RobotError(
                f"~scale is {scale:g}, expected 0.01 to 2 m; ~goal_rate is {goal_rate:g}, expected 1 to 100"
            )
        marker = TeleopMarker(robot, str(rospy.get_param("~tool_frame", "")) or robot.tool_frame, scale, goal_rate)
    except (RobotError, FrameError, ValueError, TypeError) as error:
        rospy.logfatal("teleop_marker: %s", error)
        return 1
    rospy.spin()
    del marker
    return 0
