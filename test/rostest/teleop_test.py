#!/usr/bin/env python3
"""Goals on the public wrapper's topic, and the handle in RViz, lead the simulated arm."""

from __future__ import annotations

import sys
import threading
import time
import unittest
from typing import Any, Callable, List, Optional

import numpy as np
import rospy
from geometry_msgs.msg import Point, Pose, Quaternion
from relaxed_ik_ros1.msg import EEPoseGoals
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger
from ur_dashboard_msgs.msg import SafetyMode
from visualization_msgs.msg import InteractiveMarkerFeedback, InteractiveMarkerInit

import rostest
from iter_runner.kinematics import load_chain
from iter_runner.kinematics.rotations import matrix_to_quaternion, pose
from iter_runner.robot.table import load_robot

PATIENCE = 60.0  # s of real time after which a test has failed; never waited for in a test that passes
TOLERANCE = 0.002  # m
LONGEST_STEP = 0.005  # m a tick
SPEED = 0.25  # m/s, the launch file's
GOALS = "/relaxed_ik/ee_pose_goals"


def message(tool: Any, frame: str = "base_link") -> EEPoseGoals:
    goals = EEPoseGoals(ee_poses=[as_pose(tool)])
    goals.header.frame_id = frame
    return goals


def as_pose(tool: Any) -> Pose:
    return Pose(Point(*tool[:3, 3]), Quaternion(*matrix_to_quaternion(tool[:3, :3])))


def moved(tool: Any, *offset: float) -> Any:
    goal = np.array(tool)
    goal[:3, 3] += offset
    return goal


class TeleopTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        robot = load_robot("ur5")
        cls.robot, cls.chain = robot, load_chain(robot, tip="gripper_tip")
        cls.changed = threading.Condition()
        cls.joints = cls.velocities = None
        cls.states = 0
        cls.ready = False
        cls.safety: Optional[int] = None
        cls.solutions: List[JointState] = []
        cls.scripts: List[str] = []
        cls.marker: Optional[InteractiveMarkerInit] = None
        cls.goal: Optional[EEPoseGoals] = None
        cls.leading = threading.Lock()
        cls.publisher = rospy.Publisher(GOALS, EEPoseGoals, queue_size=1)
        cls.feedback = rospy.Publisher("/teleop_marker/feedback", InteractiveMarkerFeedback, queue_size=10)
        cls.script = rospy.Publisher("/ur_hardware_interface/script_command", String, queue_size=1)
        cls.arm_ready = rospy.Publisher("/arm_ready", Bool, queue_size=1)
        for topic, kind, handler in (
            ("/joint_states", JointState, cls.on_joints),
            ("/arm_ready", Bool, lambda m: cls.store("ready", m.data)),
            ("/ur_hardware_interface/safety_mode", SafetyMode, lambda m: cls.store("safety", m.mode)),
            ("/relaxed_ik/joint_angle_solutions", JointState, lambda m: cls.append(cls.solutions, m)),
            ("/ur_hardware_interface/script_command", String, lambda m: cls.append(cls.scripts, m.data)),
            ("/teleop_marker/update_full", InteractiveMarkerInit, lambda m: cls.store("marker", m)),
        ):
            rospy.Subscriber(topic, kind, handler, queue_size=None)
        cls.timer = rospy.Timer(rospy.Duration(0.05), cls.repeat)
        cls.until(lambda: cls.ready and cls.joints is not None)
        cls.until(lambda: cls.publisher.get_num_connections() > 0 and cls.feedback.get_num_connections() > 0)
        cls.until(lambda: cls.arm_ready.get_num_connections() > 0)
        cls.start = cls.tool()

    @classmethod
    def store(cls, name: str, value: Any) -> None:
        with cls.changed:
            setattr(cls, name, value)
            cls.changed.notify_all()

    @classmethod
    def append(cls, items: List[Any], item: Any) -> None:
        with cls.changed:
            items.append(item)
            cls.changed.notify_all()

    @classmethod
    def on_joints(cls, state: JointState) -> None:
        if "elbow_joint" in state.name:
            columns = [list(state.name).index(name) for name in cls.robot.joints]
            with cls.changed:
                cls.joints = np.array([state.position[column] for column in columns])
                cls.velocities = np.array([state.velocity[column] for column in columns])
                cls.states += 1
                cls.changed.notify_all()

    @classmethod
    def lead(cls, goal: Optional[EEPoseGoals]) -> None:
        """Has ``goal`` published 20 times a second from now on."""
        cls.goal = goal

    @classmethod
    def repeat(cls, _event: Any) -> None:
        with cls.leading:
            if cls.goal is not None:
                cls.goal.header.stamp = rospy.Time.now()
                cls.publisher.publish(cls.goal)

    @classmethod
    def until(cls, predicate: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        with cls.changed:
            while not predicate():
                assert time.monotonic() < deadline, f"tool at {cls.tool()[:3, 3]}"
                cls.changed.wait(0.05)

    @classmethod
    def tool(cls) -> Any:
        return np.asarray(cls.chain.fk(cls.joints))

    def off(self, goal: Any) -> float:
        return float(np.linalg.norm(self.tool()[:3, 3] - goal[:3, 3]))

    def at(self, goal: Any) -> bool:
        return self.off(goal) < TOLERANCE and self.stands()

    def stands(self) -> bool:
        return bool(np.max(np.abs(self.velocities)) < 0.005)

    def for_states(self, count: int) -> None:
        """Lets so many joint states (at 125 Hz) come."""
        end = self.states + count
        self.until(lambda: self.states >= end)

    def let_go(self) -> None:
        """No more goals: the stream ends and the arm stands."""
        with self.leading:
            self.lead(None)
            self.publisher.publish(EEPoseGoals())
        sent = -1
        while sent != len(self.scripts) or not self.stands():
            sent = len(self.scripts)
            self.for_states(50)

    def go(self, goal: Any, frame: str = "base_link", sent: Any = None) -> None:
        self.lead(message(goal if sent is None else sent, frame))
        self.until(lambda: self.at(goal))

    def steps(self) -> Any:
        """Lengths (m) of the tool's way in each tick, and the greatest joint speeds (rad/s)."""
        joints = np.array([solution.position for solution in self.solutions])
        tools = np.array([self.chain.fk(row)[:3, 3] for row in joints])
        return np.linalg.norm(np.diff(tools, axis=0), axis=1), np.max(np.abs(np.diff(joints, axis=0)), axis=0) * 125

    def setUp(self) -> None:
        if not self.at(self.start):
            self.go(self.start)
        self.let_go()
        self.solutions.clear()
        self.scripts.clear()

    def tearDown(self) -> None:
        self.let_go()
        self.assertEqual(self.safety, SafetyMode.NORMAL)

    def test_arm_follows_without_jumps(self) -> None:
        for goal in (moved(self.start, 0.15, 0.05, 0.05), moved(self.start, -0.1, 0.1, 0.02), self.start):
            self.go(goal)  # all at once: the node steps there
        lengths, speeds = self.steps()
        self.assertGreater(len(lengths), 200)
        self.assertLess(np.max(lengths), LONGEST_STEP)
        self.assertLess(np.max(lengths), 1.2 * SPEED / 125)
        np.testing.assert_array_less(speeds, self.chain.velocity_limits)
        self.assertEqual(list(self.solutions[0].name), list(self.robot.joints))

    def test_goals_in_another_frame(self) -> None:
        goal = moved(self.start, 0.0, 0.05, 0.03)
        base = pose([0, 0, 0], [0, 0, 1, 0])  # base is base_link turned half about z
        self.go(goal, "base", base @ goal)

    def test_stops_when_goals_stop(self) -> None:
        self.lead(message(moved(self.start, 0.3, 0.0, 0.1)))
        self.until(lambda: self.off(self.start) > 0.02)
        self.lead(None)  # no message says so: they just end
        self.until(lambda: bool(self.scripts) and self.scripts[-1].startswith("stopj"))
        self.until(self.stands)
        stopped, sent, solved = self.tool(), len(self.scripts), len(self.solutions)
        self.assertGreater(self.off(moved(self.start, 0.3, 0.0, 0.1)), 0.05)
        self.for_states(60)
        self.assertLess(self.off(stopped), 5e-4)
        self.assertEqual((len(self.scripts), len(self.solutions)), (sent, solved))

    def test_old_goals_and_bad_ones_move_nothing(self) -> None:
        before = self.tool()
        old = message(moved(before, 0.1, 0.0, 0.0))
        bad = message(moved(before, 0.1, 0.0, 0.0))
        bad.ee_poses[0].orientation = Quaternion(0.0, 0.0, 0.0, 0.0)
        elsewhere = message(moved(before, 0.1, 0.0, 0.0), "no_such_frame")
        two = message(before)
        two.ee_poses = two.ee_poses * 2
        for _ in range(20):
            old.header.stamp = rospy.Time.now() - rospy.Duration(2.0)
            for goal in (old, bad, elsewhere, two):
                self.publisher.publish(goal)
            self.for_states(2)
        self.assertLess(self.off(before), 5e-4)
        self.assertEqual((self.solutions, self.scripts), ([], []))

    def test_moves_only_when_the_arm_is_ready(self) -> None:
        before = self.tool()
        self.arm_ready.publish(Bool(False))
        self.until(lambda: not self.ready)
        self.lead(message(moved(before, 0.05, 0.0, 0.0)))
        self.for_states(60)
        self.assertLess(self.off(before), 5e-4)
        self.assertEqual(self.scripts, [])
        self.arm_ready.publish(Bool(True))
        self.until(lambda: self.off(before) > 0.02)
        self.arm_ready.publish(Bool(False))
        self.until(lambda: self.scripts[-1].startswith("stopj") and self.stands())
        self.assertGreater(self.off(moved(before, 0.05, 0.0, 0.0)), 0.005)
        self.arm_ready.publish(Bool(True))
        self.until(lambda: self.at(moved(before, 0.05, 0.0, 0.0)))
        self.go(self.start)

    def test_holds_at_the_nearest_to_a_goal_out_of_reach(self) -> None:
        self.go(self.start)
        far = moved(self.start, 0.0, 1.5, 0.2)
        self.lead(message(far))
        self.until(lambda: self.tool()[1, 3] > 0.88)  # nowhere near that does the goal fall short
        self.until(self.stands)
        held = self.tool()
        self.for_states(60)
        self.assertLess(self.off(held), 2e-3)
        lengths, speeds = self.steps()
        self.assertLess(np.max(lengths), LONGEST_STEP)
        np.testing.assert_array_less(speeds, self.chain.velocity_limits)
        self.go(self.start)

    def test_keeps_above_the_table(self) -> None:
        self.lead(message(moved(self.start, 0.0, 0.0, -0.6)))
        self.until(lambda: self.tool()[2, 3] < 0.02)
        self.until(self.stands)
        heights = [self.chain.fk(solution.position)[2, 3] for solution in self.solutions]
        self.assertGreater(min(heights), 0.0)
        self.go(self.start)

    def test_stays_put_after_a_protective_stop_until_goals_have_stopped(self) -> None:
        self.script.publish(String("servoj([0, 0, 0, 0, 0, 0], 0, 0, 0.008, 0.1, 300)\n"))  # far too fast
        self.until(lambda: self.safety == SafetyMode.PROTECTIVE_STOP)
        self.lead(message(moved(self.start, 0.05, 0.05, 0.05)))
        self.for_states(60)
        unlock = rospy.ServiceProxy("/ur_hardware_interface/dashboard/unlock_protective_stop", Trigger)
        self.assertTrue(unlock().success)
        self.until(lambda: self.safety == SafetyMode.NORMAL)
        self.script.publish(String("stopj(5.0)\n"))  # takes back what caused it
        self.until(lambda: self.scripts[-1].startswith("stopj") and self.stands())
        before, sent = self.tool(), len(self.scripts)
        self.for_states(60)
        self.assertLess(self.off(before), 5e-4)
        self.assertEqual(len(self.scripts), sent)
        self.let_go()
        self.go(self.start)

    def test_handle_leads_the_arm_as_long_as_it_is_held(self) -> None:
        self.go(self.start)
        self.let_go()
        self.until(lambda: self.handle_is_at(self.tool()))
        feedback = InteractiveMarkerFeedback(client_id="test", marker_name="tool", pose=as_pose(self.tool()))
        goal = moved(self.start, 0.08, 0.0, 0.05)
        feedback.header.frame_id = "base_link"
        feedback.event_type = InteractiveMarkerFeedback.MOUSE_DOWN
        self.feedback.publish(feedback)
        feedback.event_type, feedback.pose = InteractiveMarkerFeedback.POSE_UPDATE, as_pose(goal)
        self.feedback.publish(feedback)
        feedback.event_type = InteractiveMarkerFeedback.KEEP_ALIVE
        alive = rospy.Timer(rospy.Duration(0.25), lambda _event: self.feedback.publish(feedback))
        self.until(lambda: self.at(goal))
        feedback.event_type, feedback.pose = InteractiveMarkerFeedback.POSE_UPDATE, as_pose(moved(goal, 0.3, 0, 0))
        self.feedback.publish(feedback)
        self.until(lambda: self.off(goal) > 0.02)
        alive.shutdown()
        feedback.event_type = InteractiveMarkerFeedback.MOUSE_UP
        self.feedback.publish(feedback)
        self.until(self.stands)
        self.assertLess(self.off(goal), 0.2)
        self.until(lambda: self.handle_is_at(self.tool()))

    def handle_is_at(self, tool: Any) -> bool:
        if self.marker is None or not self.marker.markers:
            return False
        place = self.marker.markers[0].pose.position
        return float(np.linalg.norm([place.x, place.y, place.z] - tool[:3, 3])) < 0.001


if __name__ == "__main__":
    rospy.init_node("teleop_test")
    rostest.rosrun("iter_runner", "teleop", TeleopTest, sys.argv)
