#!/usr/bin/env python3
"""The planner moveit on a real move_group and the simulated arm."""

import sys
import unittest

import numpy as np
import rospy

import rostest
from iter_runner.kinematics import AttachedBody, Box, load_chain
from iter_runner.kinematics.rotations import rotation_vector_to_matrix
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.planners.base import MoveGoal, Unreachable
from iter_runner.planners.line import pose_error
from iter_runner.planners.table import load_planner
from iter_runner.robot.ros_arm import connect_arm
from iter_runner.robot.table import load_robot
from iter_runner.run_control import RunControl

ROBOT = load_robot("ur5")
CHAIN = load_chain(ROBOT)


def pose(x, y, z, yaw=0.0):
    result = np.eye(4)
    result[:3, :3] = rotation_vector_to_matrix([0, 0, yaw]) @ np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]])
    result[:3, 3] = x, y, z
    return result


class MoveItTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.arm = connect_arm(ROBOT, study_clock())
        cls.planner = load_planner("moveit", ROBOT, CHAIN)

    def setUp(self):
        self.control = RunControl(study_clock())
        self.arm.report_fault = self.control.report_fault
        self.arm.make_ready(self.control, 60.0)
        self.planner.update_scene([])

    def tearDown(self):
        self.planner.update_scene([])
        self.arm.report_fault = None
        self.arm.halt()

    def goto(self, goal, **options):
        start = self.arm.reading().positions
        path = self.planner.move(self.arm, start, MoveGoal(goal, options), self.control)
        distance, turn = pose_error(CHAIN.fk(self.arm.reading().positions), goal)
        self.assertLess(distance, 2e-3)
        self.assertLess(np.degrees(turn), 0.3)
        return path

    def test_moves_arrive(self):
        self.goto(pose(0.2, 0.35, 0.35))
        self.assertGreater(self.planner.planning_time, 0.0)
        path = self.goto(pose(0.1, 0.40, 0.30), motion_type="cartesian", max_velocity_scaling_factor=0.5)
        places = CHAIN.fk(path.positions)[:, :3, 3]
        way = (places[-1] - places[0]) / np.linalg.norm(places[-1] - places[0])
        self.assertLess(np.max(np.linalg.norm(np.cross(places - places[0], way), axis=1)), 1e-3)

    def test_algorithms_are_listed(self):
        start = np.array(ROBOT.tuck)
        self.planner.preview(start, MoveGoal(pose(0.2, 0.35, 0.35), {"planner_id": "RRT", "planning_time": 10.0}))
        with self.assertRaisesRegex(Unreachable, "planner_id is 'Teleport', move_group has .*RRTConnect"):
            self.planner.preview(start, MoveGoal(pose(0.2, 0.35, 0.35), {"planner_id": "Teleport"}))

    def test_a_pose_out_of_reach_is_told_by_moveits_error(self):
        with self.assertRaisesRegex(Unreachable, r"MoveIt: [A-Z_]+ \(-?\d+\)"):
            self.planner.preview(np.array(ROBOT.tuck), MoveGoal(pose(1.6, 0.0, 0.3), {"planning_time": 1.0}))

    def test_the_scene_is_kept_clear_of(self):
        crate = Box("crate", pose(0.2, 0.35, 0.30), [0.2, 0.2, 0.2])
        self.planner.update_scene([crate])
        with self.assertRaisesRegex(Unreachable, "MoveIt: .*crate overlap"):
            self.planner.preview(np.array(ROBOT.tuck), MoveGoal(pose(0.2, 0.35, 0.35), {"planning_time": 1.0}))

    def test_what_is_held_counts(self):
        at = np.eye(4)
        at[2, 3] = 0.2
        held = AttachedBody("bar", at, [0.3, 0.03, 0.03], ["robotiq_85_left_finger_tip_link"])
        self.planner.update_scene([], [held])
        self.assertTrue(self.planner.preview(np.array(ROBOT.tuck), MoveGoal(pose(0.1, 0.40, 0.45))).times[-1] > 0)


if __name__ == "__main__":
    rospy.init_node("moveit_test")
    rostest.rosrun("iter_runner", "moveit_test", MoveItTest, sys.argv)
