"""What tests of initialize_joints hear: its log, whether the arm is ready, where the joints are."""

from __future__ import annotations

import threading
import unittest

import numpy as np
import rospy
from rosgraph_msgs.msg import Log
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from iter_runner.robot.table import load_robot

ROBOT = load_robot("ur5")


class TuckWatch(unittest.TestCase):
    """``said``: the node's log from ``lowest_level`` on; ``joints``: by name; ``ready``: as ``keep_ready`` has it."""

    lowest_level = Log.DEBUG
    patience = 90.0  # s of real time

    def setUp(self):
        self.changed = threading.Condition()
        self.said = []
        self.joints = {}
        rospy.Subscriber("/rosout", Log, self.on_log)
        rospy.Subscriber("/arm_ready", Bool, self.on_ready)
        rospy.Subscriber("/joint_states", JointState, self.on_joints, queue_size=1)

    def on_log(self, message):
        with self.changed:
            if message.name == "/initialize_joints" and message.level >= self.lowest_level:
                self.said.append(message.msg)
            self.changed.notify_all()

    def on_ready(self, message):
        with self.changed:
            self.keep_ready(message.data)
            self.changed.notify_all()

    def on_joints(self, message):
        with self.changed:
            self.joints.update(zip(message.name, message.position))
            self.changed.notify_all()

    def wait_for(self, predicate, what):
        with self.changed:
            self.assertTrue(self.changed.wait_for(predicate, self.patience), f"{what} did not come: {self.said}")

    def positions(self):
        return np.array([self.joints[name] for name in ROBOT.joints])
