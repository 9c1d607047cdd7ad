#!/usr/bin/env python3
"""An arm added by the robots' guide runs a plan in the simulator: its own launch, and the blocks that it lays."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import rospy
from runner_client import PATIENCE, RunnerClient
from sensor_msgs.msg import JointState

import rostest
from iter_runner.robot.table import load_robot

ROW = Path(rospy.get_param("/guide_row"))
ROBOT = load_robot(ROW)


class RobotsGuideTest(unittest.TestCase):
    def test_a_house_is_begun(self) -> None:
        client = RunnerClient()
        with TemporaryDirectory() as folder:
            plan = Path(folder) / "house.json"
            command = ["rosrun", "iter_runner", "generate_sequential", "--robot", str(ROW), "--houses", "1"]
            subprocess.run([*command, "--allocation", "2:12", "--output", str(plan)], check=True)
            result = client.run(plan_path=str(plan))
        self.assertEqual(result.outcome, "finished", result.message)
        moves = client.data("move_finished")
        self.assertGreater(len(moves), 10)
        self.assertLess(max(move["position_error"] for move in moves), 1e-3)
        grips = client.data("gripper_finished")
        self.assertEqual([grip["stalled"] for grip in grips], [False, True, False, True, False])

    def test_joint_states_are_the_arms_and_both_jaws(self) -> None:
        names = set()
        while not set(ROBOT.joints) | {"jaws_left_joint", "jaws_right_joint"} <= names:
            names |= set(rospy.wait_for_message("/joint_states", JointState, PATIENCE).name)


if __name__ == "__main__":
    rospy.init_node("robots_guide_test")
    rostest.rosrun("iter_runner", "robots_guide_test", RobotsGuideTest, sys.argv)
