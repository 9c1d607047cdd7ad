#!/usr/bin/env python3
"""How the simulator's process starts, refuses to start, and ends."""

import math
import signal
import subprocess
import sys
import unittest

import rospy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

import rostest

PATIENCE = 60.0  # s of real time


def start(*arguments):
    return subprocess.Popen(
        ["rosrun", "iter_runner", "simulator", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class SimulatorProcessTest(unittest.TestCase):
    def test_wrong_parameters_end_it_with_one_clear_line(self):
        wrong = [
            ("_robot:=ur9", "no robot 'ur9'"),
            ("_faults:=earthquake", "no fault 'earthquake'"),
            ("_rate:=-1", "~rate: a number from 0 expected"),
            ("_start:=[1, 2]", "~start: 6 joint values"),
            ("_start:=[9, 0, 0, 0, 0, 0]", "outside its limits"),
        ]
        running = [start(argument, f"__name:=wrong{number}") for number, (argument, _) in enumerate(wrong)]
        for process, (argument, expected) in zip(running, wrong):
            output, _ = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 1, f"{argument}: {output}")
            self.assertIn(expected, output)
            self.assertNotIn("Traceback", output)

    def test_sigterm_ends_it_cleanly(self):
        process = start("_robot:=ur3e", "_rate:=2")
        try:
            rospy.wait_for_message("/joint_states", JointState, PATIENCE)
        finally:
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=PATIENCE)
            print(output)
        self.assertEqual(process.returncode, 0, output)
        self.assertNotIn("Traceback", output)

    def test_the_driver_dies_at_its_time(self):
        last = []
        begin = math.ceil(rospy.get_param("/simulator/resume_clock", 0.0))
        subscriber = rospy.Subscriber("/clock", Clock, last.append, queue_size=None)
        process = start("_faults:=driver_dies@2.0", "_rate:=5")
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1, output)
        self.assertNotIn("Traceback", output)
        subscriber.unregister()
        died_at = last[-1].clock.to_sec()
        self.assertAlmostEqual(died_at - begin, 2.0, delta=0.1)
        # Its successor's time goes on where its own ended.
        subscriber = rospy.Subscriber("/clock", Clock, last.append, queue_size=None)
        process = start("_faults:=driver_dies@0.5")
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1, output)
        self.assertTrue(all(a.clock < b.clock for a, b in zip(last, last[1:])))
        self.assertLess(last[-1].clock.to_sec(), died_at + 60.0)


if __name__ == "__main__":
    rospy.init_node("simulator_process_test", disable_rostime=True)
    rostest.rosrun("iter_runner", "simulator_process_test", SimulatorProcessTest, sys.argv)
