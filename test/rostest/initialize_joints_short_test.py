#!/usr/bin/env python3
"""The arm stands tucked, though its driver called the trajectory done before."""

from __future__ import annotations

import sys
import unittest

import numpy as np
import rospy
from sensor_msgs.msg import JointState
from simulator_client import Latest
from std_msgs.msg import Bool

import rostest
from iter_runner.robot.table import load_robot, robot_driver

ROBOT = load_robot("mico-2")
TUCKED = 0.005  # rad


class InitializeJointsShortTest(unittest.TestCase):
    def test_the_arm_is_ready_when_it_is_really_tucked(self) -> None:
        joints = Latest(robot_driver(ROBOT).topic("joint_states"), JointState)
        ready = Latest("/arm_ready", Bool)
        ready.wait(lambda message: message.data, "the arm is ready")
        joints.wait(lambda message: True, "joint states")
        measured = dict(zip(joints.last.name, joints.last.position))
        np.testing.assert_allclose([measured[name] for name in ROBOT.joints], ROBOT.tuck, atol=TUCKED)


if __name__ == "__main__":
    rospy.init_node("initialize_joints_short_test")
    rostest.rosrun("iter_runner", "initialize_joints_short_test", InitializeJointsShortTest, sys.argv)
