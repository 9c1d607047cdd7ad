#!/usr/bin/env python3
"""Plans run by planner:=moveit: from the goal to the record, with a double of moveit_commander."""

import json
import sys
import unittest

import numpy as np
import rospy
from iter_runner.msg import RunnerState
from runner_client import PLANS, RunnerClient, move, plan_text

import rostest
from iter_runner.planners.base import path_hash
from iter_runner.study.sessions import find_session, load_path


class MoveItRunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = RunnerClient()

    def moves(self):
        return [json.loads(event.data) for event in self.client.events if event.kind == "move_finished"]

    def test_a_plan_runs_to_its_end_and_is_recorded(self):
        result = self.client.run(plan_path=str(PLANS / "small.json"))
        self.assertEqual(result.outcome, "finished", result.message)
        moves = self.moves()
        self.assertEqual(len(moves), 5)
        folder = find_session(result.session).directory
        for data in moves:
            self.assertGreater(data["planning_time"], 0.0)
            self.assertLess(data["position_error"], 1e-3)
            positions, times = load_path(folder / data["commanded_path"])
            self.assertEqual(path_hash(positions), data["path_hash"])
            self.assertTrue(np.all(np.diff(times) > 0))
        self.assertEqual({data["start"] for data in moves}, {"commanded"})

    def test_a_line_that_can_not_be_followed_is_a_fault_with_its_reason(self):
        wall = {
            "name": "wall",
            "position": {"x": 0.2, "y": 0.37, "z": 0.3},
            "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0},
            "size": {"x": 0.02, "y": 0.1, "z": 0.1},
        }
        first = move(0.0, 0.37, 0.33, max_velocity_scaling_factor=0.5)
        across = move(0.4, 0.37, 0.3, motion_type="cartesian")
        handle = self.client.send(plan_json=plan_text(first, across, environment=[wall]))
        self.client.until(lambda: self.client.state.state == RunnerState.FAULTED)
        self.assertRegex(self.client.state.fault, r"MoveIt follows only \d+ % of the straight line \(.*wall")
        self.assertTrue(self.client.call("stop")[0])
        self.assertEqual(self.client.result(handle)[0].outcome, "aborted")


if __name__ == "__main__":
    rospy.init_node("moveit_run_test")
    rostest.rosrun("iter_runner", "moveit_run_test", MoveItRunTest, sys.argv)
