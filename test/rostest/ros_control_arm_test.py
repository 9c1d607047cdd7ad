#!/usr/bin/env python3
"""The plain arm: any maker's, behind a trajectory controller of ros_control."""

from __future__ import annotations

import sys
from pathlib import Path

import rospy
from arm_checks import ArmChecks as Checks

import rostest
from iter_runner.robot.ros_control_arm import RosControlArm
from iter_runner.robot.table import load_robot


class RosControlArmTest(Checks):
    robot = load_robot(Path(__file__).resolve().parent / "arms" / "seven.yaml")

    def test_the_row_says_which_arm_it_is(self) -> None:
        self.assertIsInstance(self.arm, RosControlArm)


if __name__ == "__main__":
    rospy.init_node("ros_control_arm_test")
    rostest.rosrun("iter_runner", "ros_control_arm_test", RosControlArmTest, sys.argv)
