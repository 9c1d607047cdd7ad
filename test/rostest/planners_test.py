#!/usr/bin/env python3
"""The planners and the ROS implementations of arm and gripper, with the simulator in the driver's place."""

import functools
import sys
import threading
import time
import unittest

import numpy as np
import rospy
from std_msgs.msg import String
from std_srvs.srv import Trigger
from ur_msgs.srv import SetSpeedSliderFraction

import rostest
from iter_runner.kinematics import load_chain
from iter_runner.kinematics.rotations import rotation_vector_to_matrix
from iter_runner.nodes.ros_clock import RosClock, study_clock
from iter_runner.planners.base import MoveGoal, path_hash
from iter_runner.planners.line import pose_error
from iter_runner.planners.table import load_planner
from iter_runner.robot.ros_arm import connect_arm
from iter_runner.robot.ros_gripper import RosGripper
from iter_runner.robot.table import load_robot, robot_driver, robot_gripper
from iter_runner.run_control import Fault, RunControl, Stopped

ROBOT = load_robot("ur3e")
CHAIN = load_chain(ROBOT)
DRIVER = robot_driver(ROBOT)
PLANNERS = ("relaxed_ik", "static", "ur")
SLOW = {"speed": 0.15}  # the simulation runs ahead of a test on a busy machine


def pose(x, y, z, yaw=0.0):
    result = np.eye(4)
    result[:3, :3] = rotation_vector_to_matrix([0, 0, yaw]) @ np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]])
    result[:3, 3] = x, y, z
    return result


class PlannersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.clock = study_clock()
        cls.arm = connect_arm(ROBOT, cls.clock)
        cls.gripper = RosGripper(robot_gripper(ROBOT), cls.clock)
        cls.planners = {name: load_planner(name, ROBOT, CHAIN) for name in PLANNERS}
        cls.inject = rospy.Publisher("/simulator/inject_fault", String, queue_size=1, tcp_nodelay=True)

    def setUp(self):
        self.control = RunControl(self.clock)
        self.arm.wait_until(lambda: not self.arm.what_is_missing(), self.control, 30.0)
        if self.arm.fault() is not None:  # what the test before has left
            rospy.ServiceProxy(DRIVER.service("unlock_protective_stop"), Trigger)()
        self.arm.report_fault = self.control.report_fault
        self.arm.make_ready(self.control, 30.0)

    def tearDown(self):
        self.control.stop()
        self.arm.report_fault = None
        self.arm.halt()
        if self.arm.fault() is None:
            self.stand()

    def stand(self):
        control = RunControl(self.clock)
        self.arm.wait_for_reading(lambda reading: bool(np.max(np.abs(reading.velocities)) < 1e-4), control)
        return self.arm.reading().positions

    def move(self, name, start, goal, options=None):
        path = self.planners[name].move(self.arm, start, MoveGoal(goal, options or {}), self.control)
        distance, turn = pose_error(CHAIN.fk(self.arm.reading().positions), goal)
        self.assertLess(distance, 1e-3)
        self.assertLess(np.degrees(turn), 0.2)
        return path

    def in_background(self, name, start, goal):
        """A slow move in a thread of its own; join() gives what it returned or raised."""
        outcome = []

        def work():
            try:
                outcome.append(self.move(name, start, goal, SLOW))
            except (Fault, Stopped, AssertionError) as error:
                outcome.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()

        def join():
            thread.join(60.0)
            self.assertFalse(thread.is_alive(), "the move does not end")
            return outcome[0]

        return join

    def wait_for_motion(self, distance=0.1):
        control = RunControl(self.clock)
        start = self.arm.reading().positions
        self.arm.wait_for_reading(lambda reading: bool(np.max(np.abs(reading.positions - start)) > distance), control)

    def test_clock_is_the_simulators(self):
        self.assertIsInstance(self.clock, RosClock)
        before = self.clock.now()
        self.control.sleep_until(before + 0.5)
        self.assertGreaterEqual(self.clock.now(), before + 0.5)
        self.assertLess(self.clock.now(), before + 3.0)

    def test_each_planner_after_each_other(self):
        """Scripts displace External Control; the trajectory planner brings it back."""
        q = self.stand()
        for index, name in enumerate([*PLANNERS, "static", "ur", "relaxed_ik"]):
            x = 0.12 if index % 2 else -0.12
            q = self.move(name, q, pose(x, 0.28, 0.25 + 0.01 * index)).positions[-1]

    def check_pause_and_resume_go_on_along_the_same_path(self, name):
        q = self.move(name, self.stand(), pose(-0.15, 0.26, 0.22)).positions[-1]
        goal = pose(0.15, 0.26, 0.28)
        undisturbed = path_hash(self.planners[name].preview(q, MoveGoal(goal, SLOW)).positions)
        join = self.in_background(name, q, goal)
        self.wait_for_motion()
        self.control.pause()
        self.control.sleep_until(self.clock.now() + 2.0)
        stood = self.stand()
        self.control.sleep_until(self.clock.now() + 1.0)
        np.testing.assert_allclose(self.arm.reading().positions, stood, atol=1e-3)
        self.assertGreater(pose_error(CHAIN.fk(stood), goal)[0], 0.01)
        self.control.resume()
        path = join()
        self.assertEqual(path_hash(path.positions), undisturbed)

    def check_stop_halts(self, name):
        q = self.move(name, self.stand(), pose(-0.15, 0.26, 0.22)).positions[-1]
        goal = pose(0.15, 0.26, 0.28)
        join = self.in_background(name, q, goal)
        self.wait_for_motion()
        self.control.stop()
        self.assertIsInstance(join(), Stopped)
        stood = self.stand()
        self.assertGreater(pose_error(CHAIN.fk(stood), goal)[0], 0.01)

    def check_a_protective_stop_is_a_fault_that_says_what_to_do(self, name):
        q = self.move(name, self.stand(), pose(-0.15, 0.26, 0.22)).positions[-1]
        join = self.in_background(name, q, pose(0.15, 0.26, 0.28))
        self.wait_for_motion()
        self.inject.publish(String("protective_stop"))
        fault = join()
        self.assertIsInstance(fault, Fault)
        self.assertEqual(fault.code, "protective_stop")
        self.assertIn("unlock_protective_stop", fault.message)
        with self.assertRaises(Fault) as still:
            self.arm.make_ready(RunControl(self.clock))
        self.assertEqual(still.exception.code, "protective_stop")
        unlock = DRIVER.service("unlock_protective_stop")
        # A controller refuses while the arm still brakes.
        self.stand()
        self.assertTrue(rospy.ServiceProxy(unlock, Trigger)().success)
        self.control.resume()
        self.arm.make_ready(self.control)
        self.move(name, self.stand(), pose(0.15, 0.26, 0.28))

    def test_stale_joint_states_are_a_fault(self):
        faults = []
        self.arm.report_fault = faults.append
        self.inject.publish(String("stale_joint_states:20"))
        limit = time.monotonic() + 20.0
        while not faults and time.monotonic() < limit:
            time.sleep(0.05)
        self.assertEqual([fault.code for fault in faults], ["stale_joint_states"])
        with self.assertRaises(Fault):
            self.arm.reading()
        control = RunControl(self.clock)
        self.arm.wait_until(lambda: self.arm.fault() is None, control, 30.0)
        self.arm.reading()

    def test_the_stream_keeps_to_the_speed_slider(self):
        slider = rospy.ServiceProxy(DRIVER.service("set_speed_slider"), SetSpeedSliderFraction)
        durations = []
        for fraction in (1.0, 0.5):
            self.assertTrue(slider(fraction).success)
            self.arm.wait_until(
                lambda fraction=fraction: abs(self.arm.speed_scaling - fraction) < 1e-6, self.control, 9
            )
            q = self.move("relaxed_ik", self.stand(), pose(-0.15, 0.26, 0.22)).positions[-1]
            began = self.clock.now()
            self.move("relaxed_ik", q, pose(0.15, 0.26, 0.22))
            durations.append(self.clock.now() - began)
        slider(1.0)
        self.arm.wait_until(lambda: self.arm.speed_scaling == 1.0, self.control, 9)
        self.assertGreater(durations[1], 1.4 * durations[0])

    def test_the_gripper_closes_and_opens(self):
        closed = self.gripper.move(0.6, 50.0, self.control)
        self.assertTrue(closed.reached_goal)
        self.assertAlmostEqual(closed.position, 0.6, delta=0.02)
        opened = self.gripper.move(self.gripper.position_of(0.085), 50.0, self.control)
        self.assertAlmostEqual(opened.opening, 0.085, delta=0.002)

    def test_a_stuck_gripper_is_a_fault_that_names_the_action(self):
        self.inject.publish(String("gripper_stuck"))
        self.control.sleep_until(self.clock.now() + 0.5)
        with self.assertRaises(Fault) as stuck:
            self.gripper.move(0.7, 50.0, self.control)
        self.assertEqual(stuck.exception.code, "gripper")
        self.assertIn("/gripper_command", stuck.exception.message)
        self.gripper.move(0.0, 50.0, self.control)

    def test_zz_a_dead_driver_is_lost(self):
        """Last: the simulator does not come back."""
        q = self.move("static", self.stand(), pose(-0.15, 0.26, 0.22)).positions[-1]
        join = self.in_background("static", q, pose(0.15, 0.26, 0.28))
        self.wait_for_motion()
        self.inject.publish(String("driver_dies"))
        fault = join()
        self.assertIsInstance(fault, Fault)
        self.assertEqual(fault.code, "driver_lost")


# One test a planner: rostest's report loses what fails in a subTest.
for check in [name for name in dir(PlannersTest) if name.startswith("check_")]:
    for planner in PLANNERS:
        method = functools.partialmethod(getattr(PlannersTest, check), planner)
        setattr(PlannersTest, f"test_{check[len('check_') :]}_{planner}", method)


if __name__ == "__main__":
    rospy.init_node("planners_test")
    rostest.rosrun("iter_runner", "planners_test", PlannersTest, sys.argv)
