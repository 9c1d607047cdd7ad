#!/usr/bin/env python3
"""The embedded simulator with a made-up seven-joint arm behind ros_control, and a gripper that another node drives."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

import actionlib
import numpy as np
import rosgraph
import rospy
from actionlib_msgs.msg import GoalStatus
from control_msgs.msg import FollowJointTrajectoryAction, FollowJointTrajectoryResult
from geometry_msgs.msg import Point, Pose, Quaternion
from iter_runner.msg import Scene, SceneObject
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive
from simulator_client import PATIENCE, Latest, await_connections, inject, run_goal, trajectory_goal
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

import rostest
from iter_runner.kinematics import load_chain
from iter_runner.kinematics.rotations import matrix_to_quaternion
from iter_runner.robot.table import load_robot, robot_gripper

ROBOT = load_robot(Path(__file__).resolve().parent / "arms" / "seven.yaml")
GRIPPER = robot_gripper(ROBOT)
TICK = 0.008


class SimulatorRosControlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.arm = Latest("/joint_states", JointState)
        cls.clock = Latest("/clock", Clock)
        cls.objects = Latest("/simulator/objects", Scene)
        cls.command = rospy.Publisher("/seven_controller/command", JointTrajectory, queue_size=100, tcp_nodelay=True)
        cls.fingers = rospy.Publisher("/joint_states", JointState, queue_size=10)
        cls.fault = rospy.Publisher("/simulator/inject_fault", String, queue_size=10)
        cls.scene = rospy.Publisher("/runner/scene", Scene, queue_size=1, latch=True)
        cls.follow = actionlib.SimpleActionClient(
            "/seven_controller/follow_joint_trajectory", FollowJointTrajectoryAction
        )
        assert cls.follow.wait_for_server(rospy.Duration(10 * PATIENCE))
        await_connections(cls.command, cls.fault, cls.fingers)

    def setUp(self):
        self.at_rest()

    def of_arm(self):
        return next(message for message in reversed(self.arm.messages) if len(message.name) == 7)

    def joints(self):
        return np.array(self.of_arm().position)  # their names happen to be in alphabetical order

    def at_rest(self):
        count = len(self.arm.messages)
        self.arm.wait(
            lambda _: len(self.arm.messages) > count + 20 and not any(self.of_arm().velocity), "the arm stands"
        )
        return self.joints()

    def follow_to_end(self, seconds, positions):
        return run_goal(self.follow, trajectory_goal(ROBOT.joints, (seconds, positions)))

    def trajectory(self, *points):
        return trajectory_goal(ROBOT.joints, *points).trajectory

    # The tests.

    def test_it_has_no_more_than_such_a_driver(self):
        publishers, subscribers, services = rosgraph.Master(rospy.get_name()).getSystemState()
        published = {name for name, nodes in publishers if "/simulator" in nodes}
        subscribed = {name for name, nodes in subscribers if "/simulator" in nodes}
        served = {name for name, nodes in services if "/simulator" in nodes and not name.startswith("/simulator/")}
        action = "/seven_controller/follow_joint_trajectory"
        own = {"/clock", "/rosout", "/joint_states", "/simulator/objects", "/simulator/markers"}
        self.assertEqual(published, own | {f"{action}/{topic}" for topic in ("feedback", "result", "status")})
        self.assertEqual(
            subscribed,
            {"/joint_states", "/runner/scene", "/simulator/inject_fault", "/seven_controller/command"}
            | {f"{action}/goal", f"{action}/cancel"},
        )
        self.assertEqual(served, set())

    def test_goals_are_followed_and_one_stops_short(self):
        start = self.at_rest()
        target = start + 0.2
        state, result = self.follow_to_end(1.0, target)
        self.assertEqual((state, result.error_code), (GoalStatus.SUCCEEDED, FollowJointTrajectoryResult.SUCCESSFUL))
        np.testing.assert_allclose(self.at_rest(), target, atol=1e-6)
        inject(self.fault, "short_trajectory")
        state, _ = self.follow_to_end(1.0, start)
        self.assertEqual(state, GoalStatus.SUCCEEDED)
        np.testing.assert_allclose(self.at_rest(), target - 0.18, atol=0.002)

    def test_streamed_points_lead_the_arm_and_the_clock_waits_for_them(self):
        start = self.at_rest()
        begun = rospy.get_time()
        for k in range(250):
            with self.clock._changed:
                moment = begun + k * TICK - 1e-6
                assert self.clock._changed.wait_for(lambda m=moment: self.clock.last.clock.to_sec() >= m, PATIENCE)
            self.command.publish(self.trajectory((TICK, start + 0.2 * np.sin((k + 1) * TICK))))
        self.assertLess(rospy.get_time() - begun, 3 * 250 * TICK)
        np.testing.assert_allclose(self.at_rest(), start + 0.2 * np.sin(250 * TICK), atol=1e-6)

    def test_a_trajectory_without_points_holds_the_arm(self):
        start = self.at_rest()
        self.follow.send_goal(trajectory_goal(ROBOT.joints, (30.0, start - 0.5)))
        self.arm.wait(lambda _: self.of_arm().velocity[0] < -0.01, "the arm moves")
        self.command.publish(JointTrajectory(joint_names=ROBOT.joints))
        self.assertTrue(self.follow.wait_for_result(rospy.Duration(10 * PATIENCE)))
        self.assertEqual(self.follow.get_state(), GoalStatus.PREEMPTED)
        self.assertGreater(self.at_rest()[0], start[0] - 0.45)
        self.follow_to_end(1.0, start)

    def test_a_commanded_trajectory_takes_the_place_of_a_goal(self):
        start = self.at_rest()
        self.follow.send_goal(trajectory_goal(ROBOT.joints, (30.0, start - 0.5)))
        self.arm.wait(lambda _: self.of_arm().velocity[0] < -0.01, "the arm moves")
        self.command.publish(self.trajectory((0.5, start), (1.0, start + 0.1)))
        self.assertTrue(self.follow.wait_for_result(rospy.Duration(10 * PATIENCE)))
        self.assertEqual(self.follow.get_state(), GoalStatus.PREEMPTED)
        np.testing.assert_allclose(self.at_rest(), start + 0.1, atol=1e-6)

    def test_a_stop_aborts_the_goal(self):
        start = self.at_rest()
        self.follow.send_goal(trajectory_goal(ROBOT.joints, (30.0, start + 0.5)))
        self.arm.wait(lambda _: self.of_arm().velocity[0] > 0.01, "the arm moves")
        self.fault.publish("emergency_stop")
        self.assertTrue(self.follow.wait_for_result(rospy.Duration(10 * PATIENCE)))
        self.assertEqual(self.follow.get_state(), GoalStatus.ABORTED)
        self.assertEqual(self.follow.get_result().error_string, "emergency stop")
        self.at_rest()
        self.assertEqual(self.follow_to_end(1.0, start)[0], GoalStatus.SUCCEEDED)

    def test_fingers_that_another_node_drives_take_a_block_along(self):
        q = self.at_rest()
        chain = load_chain(ROBOT)
        flange = chain.fk(q)
        block = SceneObject(name="block", frame_id=ROBOT.base_frame, graspable=True)
        block.shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.04, 0.04, 0.04])
        tip = (flange @ [0, 0, GRIPPER.tip_offset, 1])[:3]
        block.pose = Pose(Point(*tip), Quaternion(*matrix_to_quaternion(flange[:3, :3])))
        self.scene.publish(Scene(objects=[block]))
        self.objects.wait(lambda message: len(message.objects) == 1, "the scene")
        scenes = len(self.objects.messages)
        for position in np.linspace(0.0, GRIPPER.position_of(0.04), 10):
            self.fingers.publish(JointState(name=GRIPPER.joints, position=[position]))
        self.objects.wait(lambda _: len(self.objects.messages) > scenes, "the fingers hold it")
        self.follow_to_end(1.0, q + 0.1)
        lifted = (chain.fk(self.at_rest()) @ [0, 0, GRIPPER.tip_offset, 1])[:3]

        def there(message):
            at = message.objects[0].pose.position
            return np.allclose([at.x, at.y, at.z], lifted, atol=1e-6)

        self.objects.wait(there, "the block went with the hand")
        scenes = len(self.objects.messages)
        self.fingers.publish(JointState(name=GRIPPER.joints, position=[0.0]))
        self.objects.wait(lambda _: len(self.objects.messages) > scenes, "the fingers let it go")
        self.follow_to_end(1.0, q)
        self.at_rest()
        self.assertTrue(there(self.objects.last), "the block stays where it was let go")


if __name__ == "__main__":
    rospy.init_node("simulator_ros_control_test")
    rostest.rosrun("iter_runner", "simulator_ros_control_test", SimulatorRosControlTest, sys.argv)
