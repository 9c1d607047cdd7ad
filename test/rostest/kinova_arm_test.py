#!/usr/bin/env python3
"""A Mico: what its driver has of its own."""

from __future__ import annotations

import sys
import threading
from typing import List, Tuple

import numpy as np
import rospy
from arm_checks import ArmChecks as Checks
from kinova_msgs.msg import JointVelocity
from kinova_msgs.srv import Start, Stop

import rostest
from iter_runner.robot.ros_kinova import KinovaArm
from iter_runner.robot.table import load_robot, robot_driver
from iter_runner.run_control import RunControl, Stopped

ROBOT = load_robot("mico-2")
DRIVER = robot_driver(ROBOT)


class KinovaArmTest(Checks):
    robot = ROBOT

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.messages: List[Tuple[float, ...]] = []
        cls.changed = threading.Condition()
        rospy.Subscriber(DRIVER.topic("joint_velocity"), JointVelocity, cls.on_velocity, queue_size=None)

    @classmethod
    def on_velocity(cls, message: JointVelocity) -> None:
        with cls.changed:
            cls.messages.append(tuple(getattr(message, f"joint{index}") for index in range(1, 8)))
            cls.changed.notify_all()

    def call(self, purpose: str, service: type) -> None:
        rospy.wait_for_service(DRIVER.service(purpose), 60.0)
        rospy.ServiceProxy(DRIVER.service(purpose), service)()

    def zeros_come(self) -> None:
        with self.changed:
            self.assertTrue(
                self.changed.wait_for(lambda: bool(self.messages) and not any(self.messages[-1]), 60.0),
                self.messages[-3:],
            )

    def test_the_row_says_which_arm_it_is(self) -> None:
        self.assertIsInstance(self.arm, KinovaArm)

    def test_a_stream_is_a_hundred_messages_a_second_and_ends_with_zeros(self) -> None:
        q = self.to(self.goal(-0.1, 0.0, 0.0))
        self.messages.clear()
        begun = self.arm.reading().time
        path = self.move("relaxed_ik", q, self.goal(0.1, 0.0, 0.03))
        lasted = self.arm.reading().time - begun
        self.zeros_come()
        count = len(self.messages)
        self.assertGreaterEqual(count, len(path.times))
        self.assertLessEqual(count, 100.0 * lasted + 3)
        limits = np.degrees(self.chain.velocity_limits)
        speeds = np.abs(np.array(self.messages)[:, :6])
        self.assertTrue(np.all(speeds <= limits + 1e-3), speeds.max(axis=0))
        self.assertGreater(float(speeds.max()), 5.0)  # degrees, not radians
        self.stand()
        self.control.sleep_until(self.clock.now() + 1.0)
        self.assertEqual(len(self.messages), count)

    def test_a_pause_and_a_stop_send_zeros_at_once(self) -> None:
        join = self.in_background("relaxed_ik", self.to(self.goal(-0.1, 0.0, 0.0)), self.goal(0.1, 0.0, 0.03))
        self.wait_for_motion()
        self.control.pause()
        self.zeros_come()
        self.stand()
        self.messages.clear()
        self.control.resume()
        self.wait_for_motion(0.01)
        self.control.stop()
        self.assertIsInstance(join(), Stopped)
        self.zeros_come()

    def test_a_planner_that_stalls_stops_the_arm(self) -> None:
        servo = self.arm.servo()
        here = self.to(self.goal(0.0, 0.0, 0.0))
        servo.start()
        tick = self.clock.now()
        target = here.copy()
        for _ in range(30):
            target[0] += 0.002
            servo.send(target.copy(), 0.01)
            tick += 0.01
            self.control.sleep_until(tick - 1e-6)
        self.zeros_come()
        self.assertLess(abs(self.stand()[0] - target[0]), 0.02)
        servo.stop()

    def test_an_arm_that_its_operator_has_stopped_is_a_fault_and_goes_on_when_started(self) -> None:
        for name in self.planners:
            goal = self.goal(0.1, 0.0, 0.03)
            join = self.in_background(name, self.to(self.goal(-0.1, 0.0, 0.0)), goal)
            self.wait_for_motion()
            self.call("stop", Stop)
            fault = join()
            self.assertIn(getattr(fault, "code", fault), ("path_tolerance", "trajectory_aborted"))
            self.assertIn(DRIVER.service("start"), fault.message)
            self.assertGreater(self.off(goal), 0.01)
            self.call("start", Start)
            self.control.resume()
            self.arm.make_ready(RunControl(self.clock))
            self.move(name, self.stand(), goal)


if __name__ == "__main__":
    rospy.init_node("kinova_arm_test")
    rostest.rosrun("iter_runner", "kinova_arm_test", KinovaArmTest, sys.argv)
