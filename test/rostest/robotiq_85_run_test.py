#!/usr/bin/env python3
"""A run whose gripper loses its cable: faulted at the step, and resumed there when somebody has agreed."""

from __future__ import annotations

import sys
import time
import unittest
from pathlib import Path

import numpy as np
import rospy
from iter_runner.msg import RunnerState
from runner_client import PATIENCE, RunnerClient, move, plan_text
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

import rostest
from iter_runner.gripper.emulated import EmulatedGripper
from iter_runner.gripper.emulated_serial import EmulatedPort

GRASP = 1  # the step of the plan
PLAN = plan_text(
    move(0.35, 0.3, 0.3), {"name": "grasp", "width": 0.02}, move(0.35, 0.25, 0.3), {"name": "release", "width": 0.085}
)


def activate() -> None:
    rospy.wait_for_service("/robotiq_85/activate", PATIENCE)
    answer = rospy.ServiceProxy("/robotiq_85/activate", Trigger)()
    assert answer.success, answer.message


class Robotiq85RunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.gripper = EmulatedGripper(activation_speed=1.0)
        cls.line = EmulatedPort(cls.gripper, Path(rospy.get_param("/hand")))
        cls.line.plug_in()
        cls.client = RunnerClient()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.line.unplug()

    def setUp(self) -> None:
        self.line.plug_in()
        activate()
        self.gripper.set_object_inside(None)

    def until_closing(self) -> None:
        self.client.until_state(RunnerState.RUNNING, GRASP)
        self.client.until(lambda: self.gripper.look().going and 10 < self.gripper.look().position < 120)

    def test_the_cable_is_pulled_in_mid_grasp_and_the_run_goes_on_at_the_step(self) -> None:
        client = self.client
        handle = client.send(plan_json=PLAN)
        self.until_closing()
        pulled = time.monotonic()
        self.line.unplug()
        client.until_state(RunnerState.FAULTED)
        self.assertLess(time.monotonic() - pulled, 1.5)
        self.assertEqual(client.state.step, GRASP)
        fault = client.data("fault")[-1]
        self.assertEqual(fault["code"], "gripper")
        for words in (str(self.line.link), "keep hands clear", "rosservice call /robotiq_85/activate"):
            self.assertIn(words, fault["message"])

        # The cable is back, but nobody has agreed: the step's next try faults as well, and nothing moves.
        self.gripper.set_power(False)
        self.gripper.set_power(True)
        position = self.gripper.look().position
        self.line.plug_in()
        self.assertTrue(client.call("resume")[0])
        client.until(lambda: len(client.of_kind("fault")) == 2)
        client.until_state(RunnerState.FAULTED, GRASP)
        self.assertEqual(self.gripper.look().position, position)

        activate()
        self.assertTrue(client.call("resume")[0])
        result, _ = client.result(handle)
        self.assertEqual((result.outcome, result.steps_done, result.steps), ("finished", 4, 4))
        grasp, release = client.data("gripper_finished")
        self.assertAlmostEqual(grasp["opening"], 0.02, delta=0.001)
        self.assertTrue(grasp["reached_goal"])
        self.assertAlmostEqual(release["opening"], 0.085, delta=0.001)

    def test_an_object_between_the_fingers_is_in_the_record(self) -> None:
        self.gripper.set_object_inside(0.05)
        result = self.client.run(plan_json=PLAN)
        self.assertEqual(result.outcome, "finished")
        grasp = self.client.data("gripper_finished")[0]
        self.assertTrue(grasp["stalled"])
        self.assertFalse(grasp["reached_goal"])
        self.assertAlmostEqual(grasp["opening"], 0.05, delta=0.001)

    def test_stop_stops_the_fingers(self) -> None:
        handle = self.client.send(plan_json=PLAN)
        self.until_closing()
        self.assertTrue(self.client.call("stop")[0])
        result, _ = self.client.result(handle)
        self.assertEqual(result.outcome, "stopped")
        self.client.until(lambda: not self.gripper.look().going)
        stopped = self.gripper.look().position
        self.assertLess(stopped, 170)
        for _ in range(10):
            rospy.wait_for_message("/joint_states", JointState, PATIENCE)
        self.assertEqual(self.gripper.look().position, stopped)

    def test_the_hand_opens_while_the_arm_moves(self) -> None:
        """Nothing in a plan does that; whoever uses the action beside a run can."""
        from actionlib import SimpleActionClient
        from control_msgs.msg import GripperCommandAction, GripperCommandGoal

        hand = SimpleActionClient("/gripper_command", GripperCommandAction)
        self.assertTrue(hand.wait_for_server(rospy.Duration(PATIENCE)))
        handle = self.client.send(plan_json=plan_text(move(0.35, -0.3, 0.3), move(0.35, 0.3, 0.3)))
        self.client.until_state(RunnerState.RUNNING)
        goal = GripperCommandGoal()
        goal.command.position = 0.3
        hand.send_goal(goal)
        arm = []
        subscriber = rospy.Subscriber(
            "/joint_states",
            JointState,
            lambda message: len(message.name) == 6 and arm.append(np.max(np.abs(message.velocity))),
        )
        self.assertTrue(hand.wait_for_result(rospy.Duration(PATIENCE)))
        subscriber.unregister()
        self.assertTrue(hand.get_result().reached_goal)
        self.assertGreater(max(arm), 0.05)
        self.assertEqual(self.client.result(handle)[0].outcome, "finished")


if __name__ == "__main__":
    rospy.init_node("robotiq_85_run_test")
    rostest.rosrun("iter_runner", "robotiq_85_run_test", Robotiq85RunTest, sys.argv)
