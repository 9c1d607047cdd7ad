#!/usr/bin/env python3
"""initialize_joints asks before an unsafe way, and goes once the arm was moved or somebody has confirmed."""

import sys

import numpy as np
import rospy
from rosgraph_msgs.msg import Log
from std_msgs.msg import String
from std_srvs.srv import Trigger
from tuck_watch import ROBOT, TuckWatch

import rostest

PATIENCE = 60.0  # s of real time
HOW = next((argument for argument in sys.argv if argument in ("moved", "confirmed")), "confirmed")


class InitializeJointsTest(TuckWatch):
    lowest_level = Log.WARN
    patience = PATIENCE

    def setUp(self):
        self.ready = []
        super().setUp()

    def keep_ready(self, ready):
        self.ready.append(ready)

    def confirm(self):
        return rospy.ServiceProxy("/initialize_joints/confirm", Trigger)()

    def test_way_below_the_table(self):
        rospy.wait_for_service("/initialize_joints/confirm", PATIENCE)
        self.wait_for(lambda: self.ready, "/arm_ready")
        self.wait_for(lambda: len(self.joints) >= 6, "/joint_states")
        self.assertEqual(self.ready, [False])
        before = self.positions()

        asked = False
        while not asked:  # its warning may have come before this test listened to it
            if HOW == "confirmed":
                asked = self.confirm().success
            else:
                self.wait_for(lambda: any("below the table" in text for text in self.said), "the question")
                asked = True
            rospy.sleep(0.2)
        if HOW == "moved":
            np.testing.assert_allclose(self.positions(), before, atol=1e-6)
            self.assertEqual(self.ready, [False])
            script = rospy.Publisher("/ur_hardware_interface/script_command", String, queue_size=1)
            self.wait_for(script.get_num_connections, "the driver")
            by_hand = np.add(ROBOT.tuck, [0.3, 0.1, 0.2, 0.0, 0.1, 0.2]).tolist()
            script.publish(String(f"movej({by_hand}, a=3, v=1.5)"))

        self.wait_for(lambda: self.ready[-1], "/arm_ready true")
        np.testing.assert_allclose(self.positions(), ROBOT.tuck, atol=0.005)
        refused = self.confirm()
        self.assertFalse(refused.success)


if __name__ == "__main__":
    rospy.init_node("initialize_joints_test")
    rostest.rosrun("iter_runner", "initialize_joints_test", InitializeJointsTest, sys.argv)
