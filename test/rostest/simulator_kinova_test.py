#!/usr/bin/env python3
"""The embedded simulator with a Mico, as a client of kinova-ros sees it."""

from __future__ import annotations

import math
import sys
import unittest

import actionlib
import numpy as np
import rosgraph
import rospy
import rosservice
from actionlib_msgs.msg import GoalStatus
from control_msgs.msg import FollowJointTrajectoryAction, FollowJointTrajectoryResult, GripperCommandAction
from geometry_msgs.msg import Point, Pose, Quaternion
from iter_runner.msg import Scene, SceneObject
from kinova_msgs.msg import JointVelocity
from kinova_msgs.srv import HomeArm, Start, Stop
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive
from simulator_client import PATIENCE, Latest, await_connections, call, grip, inject, run_goal, trajectory_goal
from std_msgs.msg import String

import rostest
from iter_runner.kinematics import load_chain
from iter_runner.kinematics.rotations import matrix_to_quaternion
from iter_runner.robot.table import load_robot, robot_gripper

ROBOT = load_robot("mico-2")
GRIPPER = robot_gripper(ROBOT)
DRIVER = "/m1n6s200_driver"
FOLLOW = "/m1n6s200/follow_joint_trajectory"
GRIP = "/m1n6s200_gripper/gripper_command"
FINGERS = ["m1n6s200_joint_finger_1", "m1n6s200_joint_finger_2"]
TICK = 0.01


class SimulatorKinovaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.arm = Latest(f"{DRIVER}/out/joint_state", JointState)
        cls.clock = Latest("/clock", Clock)
        cls.objects = Latest("/simulator/objects", Scene)
        cls.velocity = rospy.Publisher(f"{DRIVER}/in/joint_velocity", JointVelocity, queue_size=1000, tcp_nodelay=True)
        cls.fault = rospy.Publisher("/simulator/inject_fault", String, queue_size=10)
        cls.scene = rospy.Publisher("/runner/scene", Scene, queue_size=1, latch=True)
        cls.follow = actionlib.SimpleActionClient(FOLLOW, FollowJointTrajectoryAction)
        cls.gripper = actionlib.SimpleActionClient(GRIP, GripperCommandAction)
        for client in (cls.follow, cls.gripper):
            assert client.wait_for_server(rospy.Duration(10 * PATIENCE))
        await_connections(cls.velocity, cls.fault)

    def setUp(self):
        call(f"{DRIVER}/in/start", Start)
        self.at_rest()

    def joints(self):
        return np.array(self.arm.last.position[:6])

    def at_rest(self):
        count = len(self.arm.messages)
        self.arm.wait(
            lambda message: len(self.arm.messages) > count + 10 and not any(message.velocity), "the arm stands"
        )
        return self.joints()

    def follow_to_end(self, seconds, positions):
        return run_goal(self.follow, trajectory_goal(ROBOT.joints, (seconds, positions)))

    def stream(self, count, **speeds):
        """One message a tick of the clock, in degrees/s."""
        begun = rospy.get_time()
        for k in range(count):
            with self.clock._changed:
                moment = begun + k * TICK - 1e-6
                assert self.clock._changed.wait_for(lambda m=moment: self.clock.last.clock.to_sec() >= m, PATIENCE)
            self.velocity.publish(JointVelocity(**speeds))

    # The tests.

    def test_names_and_types_are_the_drivers(self):
        publishers, subscribers, services = rosgraph.Master(rospy.get_name()).getSystemState()
        topics = dict(rosgraph.Master(rospy.get_name()).getTopicTypes())
        published = {name for name, nodes in publishers if "/simulator" in nodes}
        subscribed = {name for name, nodes in subscribers if "/simulator" in nodes}
        served = {name for name, nodes in services if "/simulator" in nodes and not name.startswith("/simulator/")}
        self.assertEqual(topics[f"{DRIVER}/out/joint_state"], "sensor_msgs/JointState")
        self.assertEqual(topics[f"{DRIVER}/in/joint_velocity"], "kinova_msgs/JointVelocity")
        self.assertEqual(topics[f"{FOLLOW}/goal"], "control_msgs/FollowJointTrajectoryActionGoal")
        self.assertEqual(topics[f"{GRIP}/goal"], "control_msgs/GripperCommandActionGoal")
        answers = {f"{name}/{topic}" for name in (FOLLOW, GRIP) for topic in ("feedback", "result", "status")}
        goals = {f"{name}/{topic}" for name in (FOLLOW, GRIP) for topic in ("goal", "cancel")}
        own = {"/clock", "/rosout", "/simulator/objects", "/simulator/markers", f"{DRIVER}/out/joint_state"}
        self.assertEqual(published, own | answers)
        self.assertEqual(
            subscribed, {"/runner/scene", "/simulator/inject_fault", f"{DRIVER}/in/joint_velocity"} | goals
        )
        types = {"home_arm": "HomeArm", "start": "Start", "stop": "Stop"}
        self.assertEqual(served, {f"{DRIVER}/in/{name}" for name in types})
        for name, kind in types.items():
            self.assertEqual(rosservice.get_service_type(f"{DRIVER}/in/{name}"), f"kinova_msgs/{kind}")

    def test_joint_states_hold_arm_and_fingers_in_the_drivers_order_at_its_rate(self):
        recorder = Latest(f"{DRIVER}/out/joint_state", JointState, queue_size=None)
        recorder.wait(lambda _: len(recorder.messages) > 200, "joint states")
        for message in recorder.messages:
            self.assertEqual(message.name, ROBOT.joints + FINGERS)
            self.assertEqual((len(message.velocity), len(message.effort)), (8, 8))
        stamps = [message.header.stamp.to_nsec() for message in recorder.messages]
        self.assertEqual(set(np.diff(stamps)), {10_000_000})

    def test_a_velocity_in_degrees_lasts_ten_milliseconds(self):
        start = self.at_rest()
        self.stream(150, joint1=30.0, joint4=-12.0)
        moved = np.degrees(self.at_rest() - start)
        np.testing.assert_allclose(moved, [45.0, 0, 0, -18.0, 0, 0], atol=1e-3)

    def test_messages_faster_than_the_rate_pile_up_and_the_arm_goes_on(self):
        start = self.at_rest()
        begun = rospy.get_time()
        for _ in range(200):
            self.velocity.publish(JointVelocity(joint1=-20.0))
        self.arm.wait(lambda message: message.velocity[0] < -0.3, "the arm moves")
        moved = np.degrees(self.at_rest() - start)
        np.testing.assert_allclose(moved[0], -40.0, atol=1e-3)
        self.assertGreater(rospy.get_time() - begun, 2.0)

    def test_a_trajectory_is_followed_and_reported(self):
        start = self.at_rest()
        target = start + np.array([0.2, -0.1, 0.1, 0.2, 0.1, -0.2])
        state, result = self.follow_to_end(2.0, target)
        self.assertEqual((state, result.error_code), (GoalStatus.SUCCEEDED, FollowJointTrajectoryResult.SUCCESSFUL))
        np.testing.assert_allclose(self.at_rest(), target, atol=1e-6)
        self.follow_to_end(2.0, start)

    def test_a_trajectory_stops_short_once_and_reports_success(self):
        start = self.at_rest()
        target = start + np.array([0.4, 0, 0, 0, 0, 0])
        inject(self.fault, "short_trajectory")
        state, result = self.follow_to_end(2.0, target)
        self.assertEqual((state, result.error_code), (GoalStatus.SUCCEEDED, FollowJointTrajectoryResult.SUCCESSFUL))
        self.assertAlmostEqual(self.at_rest()[0] - start[0], 0.36, delta=0.005)
        self.follow_to_end(2.0, target)
        np.testing.assert_allclose(self.at_rest(), target, atol=1e-6)

    def test_a_stopped_arm_obeys_nobody_until_it_is_started(self):
        start = self.at_rest()
        self.follow.send_goal(trajectory_goal(ROBOT.joints, (20.0, start + np.array([1.0, 0, 0, 0, 0, 0]))))
        self.arm.wait(lambda message: message.velocity[0] > 0.03, "the arm moves")
        self.assertEqual(call(f"{DRIVER}/in/stop", Stop).stop_result, "Arm stopped")
        self.assertTrue(self.follow.wait_for_result(rospy.Duration(10 * PATIENCE)))
        self.assertEqual(self.follow.get_state(), GoalStatus.ABORTED)
        self.assertIn("stopped", self.follow.get_result().error_string)
        at = self.at_rest()
        state, result = self.follow_to_end(2.0, start)
        self.assertEqual((state, result.error_code), (GoalStatus.REJECTED, FollowJointTrajectoryResult.INVALID_GOAL))
        self.stream(20, joint1=20.0)
        self.assertIn("stopped", call(f"{DRIVER}/in/home_arm", HomeArm).homearm_result)
        np.testing.assert_array_equal(self.at_rest(), at)
        self.assertEqual(call(f"{DRIVER}/in/start", Start).start_result, "Arm started")
        state, _ = self.follow_to_end(2.0, start)
        self.assertEqual(state, GoalStatus.SUCCEEDED)

    def test_home_is_the_tuck_pose_and_the_call_returns_there(self):
        answer = call(f"{DRIVER}/in/home_arm", HomeArm).homearm_result
        self.assertEqual(answer, "KINOVA ARM HAS BEEN RETURNED HOME")
        np.testing.assert_allclose(self.at_rest(), ROBOT.tuck, atol=1e-6)

    def test_an_injected_stop_is_cleared_by_start(self):
        self.stream(50, joint1=20.0)
        self.fault.publish("protective_stop")
        at = self.at_rest()
        self.stream(20, joint1=20.0)
        np.testing.assert_array_equal(self.at_rest(), at)
        call(f"{DRIVER}/in/start", Start)
        self.stream(50, joint1=-20.0)
        self.assertLess(self.at_rest()[0], at[0])

    def test_the_hand_takes_a_finger_angle_and_holds_a_block(self):
        q = self.at_rest()
        flange = load_chain(ROBOT).fk(q)
        tip = (flange @ [0, 0, GRIPPER.tip_offset, 1])[:3]
        block = SceneObject(name="block", frame_id=ROBOT.base_frame, graspable=True)
        block.shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.04, 0.04, 0.04])
        block.pose = Pose(Point(*tip), Quaternion(*matrix_to_quaternion(flange[:3, :3])))
        self.scene.publish(Scene(objects=[block]))
        self.objects.wait(lambda message: len(message.objects) == 1, "the scene")
        state, result = grip(self.gripper, 1.4)
        self.assertEqual(state, GoalStatus.SUCCEEDED)
        self.assertTrue(result.stalled)
        self.assertAlmostEqual(GRIPPER.opening_of(result.position), 0.04, delta=1e-6)
        self.arm.wait(lambda message: abs(message.position[6] - result.position) < 1e-9, "the fingers' joint states")
        self.assertEqual(self.arm.last.position[6], self.arm.last.position[7])
        turned = q + np.array([math.radians(20), 0, 0, 0, 0, 0])
        self.follow_to_end(2.0, turned)
        self.at_rest()
        _, result = grip(self.gripper, 0.0)
        self.assertTrue(result.reached_goal)
        expected = (load_chain(ROBOT).fk(self.at_rest()) @ [0, 0, GRIPPER.tip_offset, 1])[:3]

        def there(message):
            at = message.objects[0].pose.position
            return np.allclose([at.x, at.y, at.z], expected, atol=1e-6)

        self.objects.wait(there, "the block is where the hand let it go")


if __name__ == "__main__":
    rospy.init_node("simulator_kinova_test")
    rostest.rosrun("iter_runner", "simulator_kinova_test", SimulatorKinovaTest, sys.argv)
