"""Fingers that are only calculated, for an arm without its hand: in ursim, in Gazebo, or while the hand is away.

They answer on the names of the robot's gripper row, take the time that fingers take, and never meet an object: a grasp
ends where the plan asks it to.

Parameters:
    ~robot (str, ur5): a row of config/robots/, or the path of such a YAML file: whose hand.
    ~finger_speed (float, 0.1): m/s of opening.

Action: the gripper row's (control_msgs/GripperCommand).
Publishes: /joint_states (sensor_msgs/JointState): the fingers'.
"""

from __future__ import annotations

import math
import threading
from typing import Dict

import rospy
from actionlib import ActionServer
from actionlib.server_goal_handle import ServerGoalHandle
from actionlib_msgs.msg import GoalStatus
from control_msgs.msg import GripperCommandAction, GripperCommandResult
from sensor_msgs.msg import JointState

from iter_runner.nodes.start import start_node
from iter_runner.robot.table import GripperRow, RobotError, load_robot, robot_gripper
from iter_runner.sim.hand import FINGER_SPEED, Hand, HandModel

RATE = 50.0
"""Hz, steps of the fingers and their joint states."""


class EmulatedGripper:
    """See the module."""

    def __init__(self, row: GripperRow, finger_speed: float) -> None:
        self._row = row
        self._hand = Hand(
            HandModel(row.position_open, row.position_closed, row.opening_open, row.opening_closed, finger_speed),
            1.0 / RATE,
        )
        self._lock = threading.Lock()
        self._goals: Dict[str, ServerGoalHandle] = {}
        self._joint_states = rospy.Publisher("/joint_states", JointState, queue_size=1)
        self._server = ActionServer(row.action, GripperCommandAction, self._on_goal, self._on_cancel, auto_start=False)
        self._server.start()

    def step(self) -> None:
        """One step of the fingers."""
        with self._lock:
            self._hand.step()
            results, self._hand.results = self._hand.results, []
            for done in results:
                self._goals.pop(done.handle).set_succeeded(self._result(reached=True))
            count = len(self._row.joints)
            message = JointState(
                name=list(self._row.joints),
                position=[self._hand.position] * count,
                velocity=[self._hand.velocity] * count,
            )
        message.header.stamp = rospy.Time.now()
        self._joint_states.publish(message)

    def _on_goal(self, goal: ServerGoalHandle) -> None:
        with self._lock:
            if goal.get_goal_status().status != GoalStatus.PENDING:
                goal.set_canceled(self._result(), "cancelled before it began")
                return
            command = goal.get_goal().command
            if not (math.isfinite(command.position) and math.isfinite(command.max_effort)):
                goal.set_rejected(self._result(), f"a position in rad expected, {command.position} found")
                return
            key = goal.get_goal_id().id
            self._goals[key] = goal
            goal.set_accepted()
            replaced = self._hand.command(command.position, command.max_effort, key)
            if replaced is not None:
                self._goals.pop(replaced).set_canceled(self._result(), "another goal took its place")

    def _on_cancel(self, goal: ServerGoalHandle) -> None:
        with self._lock:
            key, present = goal.get_goal_id().id, self._hand.handle
            if present == key and self._hand.cancel(present):
                self._goals.pop(key).set_canceled(self._result(), "cancelled")

    def _result(self, reached: bool = False) -> GripperCommandResult:
        return GripperCommandResult(position=self._hand.position, reached_goal=reached)


def main() -> int:
    """Runs the node; returns its exit code."""
    start_node("emulated_gripper")
    try:
        row = robot_gripper(load_robot(str(rospy.get_param("~robot", "ur5"))))
        speed = rospy.get_param("~finger_speed", FINGER_SPEED)
        if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0.001 <= speed < math.inf:
            raise RobotError(f"~finger_speed is {speed!r}, expected m/s from 0.001")
    except RobotError as error:
        rospy.logfatal("emulated_gripper: %s", error)
        return 1
    gripper = EmulatedGripper(row, float(speed))
    rospy.logwarn("emulated_gripper: there is no hand: the fingers of %s are only calculated", row.title)
    rate = rospy.Rate(RATE)
    try:
        while not rospy.is_shutdown():
            gripper.step()
            rate.sleep()
    except rospy.ROSInterruptException:
        pass
    return 0
