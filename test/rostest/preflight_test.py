#!/usr/bin/env python3
"""The arm stands until all that is looked at is well, and moves by itself then; the tool says the same."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import rospy
import yaml
from std_msgs.msg import String
from tuck_watch import ROBOT, TuckWatch

import rostest
from iter_runner.package import package_folder

PATIENCE = 90.0  # s of real time


def tool(*arguments):
    done = subprocess.run(
        ["rosrun", "iter_runner", "preflight", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    checks = {}
    for line in done.stdout.splitlines():
        verdict, _, rest = line.partition(" ")
        name, _, text = rest.strip().partition(": ")
        checks[name] = (verdict, text)
    return done.returncode, checks


class PreflightTest(TuckWatch):
    patience = PATIENCE

    def setUp(self):
        self.ready = False
        super().setUp()

    def keep_ready(self, ready):
        self.ready = ready

    def failed(self, checks):
        return {name: text for name, (verdict, text) in checks.items() if verdict == "FAIL"}

    def test_what_is_missing_holds_the_arm(self):
        self.wait_for(lambda: len(self.joints) >= 6, "/joint_states")
        before = self.positions()

        code, checks = tool("--robot", "ur5", "--patience", "3")
        self.assertEqual(code, 1)
        self.assertEqual(list(self.failed(checks)), ["gripper"], checks)
        self.assertIn("/gripper_command", self.failed(checks)["gripper"])
        self.assertEqual(checks["joints"], ("ok", "the 6 of ur5"))
        self.assertEqual(checks["safety mode"], ("ok", "normal"))

        self.assertEqual(*self.of_another_arm())
        self.assertEqual(*self.of_another_driver())

        stale = rospy.Publisher("/simulator/inject_fault", String, queue_size=1)
        self.wait_for(stale.get_num_connections, "the simulator")
        stale.publish(String(f"stale_joint_states@{rospy.get_time() + 0.1:.3f}:100"))
        self.wait_for(lambda: any("FAIL  joint states: the last" in text for text in self.said), "stale joint states")
        code, checks = tool("--robot", "ur5", "--patience", "1")
        self.assertEqual(code, 1)
        self.assertIn("joint states", self.failed(checks))

        np.testing.assert_allclose(self.positions(), before, atol=1e-6)
        self.assertFalse(self.ready)
        gripper = subprocess.Popen(["rosrun", "iter_runner", "emulated_gripper"], stdin=subprocess.DEVNULL)
        try:
            self.wait_for(lambda: self.ready, "/arm_ready")
            np.testing.assert_allclose(self.positions(), ROBOT.tuck, atol=0.005)
            self.wait_for(lambda: any("all are ok now" in text for text in self.said), "the warning")
            code, checks = tool("--robot", "ur5", "--patience", "30")
            self.assertEqual((code, self.failed(checks)), (0, {}))
        finally:
            gripper.terminate()
            gripper.wait()

    def of_another_arm(self):
        """A row with other joints on this driver's topics."""
        row = yaml.safe_load((package_folder() / "config" / "robots" / "mico-2.yaml").read_text())
        row.update(driver="ros_control", transports=["trajectory_topic"], gripper="robotiq_85")
        row.update(driver_arguments={**row["driver_arguments"], "controller": "scaled_pos_joint_traj_controller"})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "other.yaml"
            path.write_text(yaml.safe_dump(row))
            code, checks = tool("--robot", str(path), "--patience", "3")
        text = self.failed(checks)["joints"]
        self.assertIn("m1n6s200_joint_1", text)
        self.assertIn("shoulder_pan_joint", text)
        return code, 1

    def of_another_driver(self):
        code, checks = tool("--robot", "mico-2", "--patience", "2")
        self.assertIn("driver", self.failed(checks))
        self.assertIn("/m1n6s200_driver/out/joint_state", self.failed(checks)["joints"])
        return code, 1


if __name__ == "__main__":
    rospy.init_node("preflight_test")
    rostest.rosrun("iter_runner", "preflight_test", PreflightTest, sys.argv)
