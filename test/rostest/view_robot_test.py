#!/usr/bin/env python3
"""robot_state_publisher turns a row's URDF and tuck pose into the transforms that the chain computes."""

import sys
import unittest

import numpy as np
import rospy
import tf2_ros
from sensor_msgs.msg import JointState

import rostest
from iter_runner.kinematics import load_chain
from iter_runner.kinematics.rotations import pose
from iter_runner.robot.table import load_robot, robot_gripper


class ViewRobotTest(unittest.TestCase):
    def setUp(self):
        self.robot = load_robot("ur3e")
        self.buffer = tf2_ros.Buffer()
        self.listener = tf2_ros.TransformListener(self.buffer)

    def transform(self, target, source):
        transform = self.buffer.lookup_transform(target, source, rospy.Time(0), rospy.Duration(20)).transform
        position, turn = transform.translation, transform.rotation
        return pose([position.x, position.y, position.z], [turn.x, turn.y, turn.z, turn.w])

    def test_starts_in_the_tuck_pose(self):
        message = rospy.wait_for_message("/joint_states", JointState, timeout=20)
        positions = dict(zip(message.name, message.position))
        for joint, position in zip(self.robot.joints, self.robot.tuck):
            self.assertAlmostEqual(positions[joint], position, places=6)

    def test_transforms_are_the_chains(self):
        tool = self.transform("base_link", "tool0")
        np.testing.assert_allclose(tool, load_chain(self.robot).fk(self.robot.tuck), atol=1e-6)
        for link in ("flange", "ee_link"):
            np.testing.assert_allclose(self.transform("tool0", link)[:3, 3], 0, atol=1e-6)

    def test_base_frames_and_fingertips(self):
        np.testing.assert_allclose(self.transform("base_link", "base"), np.diag([-1, -1, 1, 1]), atol=1e-6)
        np.testing.assert_allclose(self.transform("world", "base_link"), np.eye(4), atol=1e-6)
        tip = self.transform("tool0", "gripper_tip")
        self.assertAlmostEqual(tip[2, 3], robot_gripper(self.robot).tip_offset, places=6)
        self.transform("gripper_tip", "robotiq_85_right_finger_tip_link")  # mimic joints have transforms as well


if __name__ == "__main__":
    rospy.init_node("view_robot_test")
    rostest.rosrun("iter_runner", "view_robot_test", ViewRobotTest, sys.argv)
