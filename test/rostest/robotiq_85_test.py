#!/usr/bin/env python3
"""The robotiq_85 node on emulated grippers: it activates, moves, stops, and loses its cable."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable, List, Tuple

import actionlib
import rospy
from actionlib_msgs.msg import GoalStatus
from control_msgs.msg import GripperCommandAction, GripperCommandGoal, GripperCommandResult
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from robotiq_85_msgs.msg import GripperCmd, GripperStat
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

import rostest
from iter_runner.gripper.emulated import SCALE, EmulatedGripper
from iter_runner.gripper.emulated_serial import EmulatedPort
from iter_runner.gripper.emulated_urcap import EmulatedUrcap
from iter_runner.gripper.registers import Activation

PATIENCE = 60.0  # s of real time after which a test has failed; never waited for in a test that passes
JOINT = "robotiq_85_left_knuckle_joint"


def start(*parameters: str) -> subprocess.Popen:
    """Starts the node; its output is in a pipe."""
    command = ["rosrun", "iter_runner", "robotiq_85", *parameters]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Client:
    """Sends goals to the node and sees what it publishes."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.joints = JointState()
        self.stat = GripperStat()
        self.diagnostic = DiagnosticStatus()
        self.feedback: List[float] = []
        self.subscribers = [
            rospy.Subscriber("/joint_states", JointState, lambda message: self.keep(joints=message)),
            rospy.Subscriber("/gripper/stat", GripperStat, lambda message: self.keep(stat=message)),
            rospy.Subscriber("/diagnostics", DiagnosticArray, lambda message: self.keep(diagnostic=message.status[0])),
        ]
        self.command = rospy.Publisher("/gripper/cmd", GripperCmd, queue_size=1)
        self.action = actionlib.ActionClient("/gripper_command", GripperCommandAction)

    def keep(self, **fields: Any) -> None:
        with self.changed:
            vars(self).update(fields)
            self.changed.notify_all()

    def until(self, predicate: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        with self.changed:
            while not predicate():
                assert time.monotonic() < deadline, (self.stat, self.diagnostic)
                self.changed.wait(0.02)

    def diagnosed(self) -> List[Tuple[str, str]]:
        return [(item.key, item.value) for item in self.diagnostic.values]

    def connected(self) -> bool:
        ends = (self.action.pub_goal, self.action.pub_cancel, self.action.result_sub, self.action.status_sub)
        return all(end.get_num_connections() for end in (*ends, self.command, *self.subscribers))

    def send(self, position: float, max_effort: float = 0.0) -> Any:
        goal = GripperCommandGoal()
        goal.command.position, goal.command.max_effort = position, max_effort

        def on_feedback(handle: Any, feedback: Any) -> None:
            self.feedback.append(feedback.position)

        self.feedback = []
        return self.action.send_goal(goal, lambda handle: self.keep(), on_feedback)

    def result(self, handle: Any) -> Tuple[int, GripperCommandResult, str]:
        """How a goal ended: its status, result and text."""
        self.until(lambda: handle.get_comm_state() == actionlib.CommState.DONE)
        return handle.get_terminal_state(), handle.get_result(), handle.get_goal_status_text()

    def move(self, position: float, max_effort: float = 0.0) -> Tuple[int, GripperCommandResult, str]:
        return self.result(self.send(position, max_effort))

    def activate(self) -> Tuple[bool, str]:
        rospy.wait_for_service("/robotiq_85/activate", PATIENCE)
        answer = rospy.ServiceProxy("/robotiq_85/activate", Trigger)()
        return answer.success, answer.message


class Robotiq85Test:
    """What holds on either line; a TestCase below for each."""

    gripper: EmulatedGripper
    line: Any
    place: str
    parameters: List[str]
    node: subprocess.Popen
    client: Client

    @classmethod
    def start_node(cls) -> None:
        cls.node = start(*cls.parameters)
        threading.Thread(target=cls.node.stdout.read, daemon=True).start()
        cls.client = Client()
        cls.client.until(cls.client.connected)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.node.terminate()
        cls.node.wait(PATIENCE)
        cls.line.unplug()

    def setUp(self) -> None:
        self.gripper.set_object_inside(None)
        self.client.until(lambda: self.client.diagnostic.hardware_id == self.place)
        good, text = self.client.activate()
        self.assertTrue(good, text)
        self.assertEqual(self.client.move(0.0)[0], GoalStatus.SUCCEEDED)

    def until_moving(self) -> None:
        self.client.until(lambda: self.gripper.look().going and 20 < self.gripper.look().position < 150)

    def test_it_moves_only_after_somebody_has_agreed(self) -> None:
        self.gripper.set_power(False)
        self.gripper.set_power(True)
        self.client.until(lambda: self.client.diagnostic.level == DiagnosticStatus.ERROR)
        status, result, text = self.client.move(0.8)
        self.assertEqual(status, GoalStatus.ABORTED)
        for words in ("keep hands clear", "rosservice call /robotiq_85/activate"):
            self.assertIn(words, text)
            self.assertIn(words, self.client.diagnostic.message)
        self.assertFalse(result.stalled or result.reached_goal)
        self.assertEqual(self.gripper.look().activation, Activation.RESET)
        self.assertEqual(self.client.activate(), (True, "the gripper is active"))
        self.assertEqual(self.client.move(0.4)[0], GoalStatus.SUCCEEDED)
        self.client.until(lambda: self.client.diagnostic.level == DiagnosticStatus.OK)

    def test_it_goes_where_it_is_sent(self) -> None:
        for position in (0.3, 0.8, 0.55, 0.0):
            status, result, _ = self.client.move(position)
            self.assertEqual(status, GoalStatus.SUCCEEDED)
            self.assertTrue(result.reached_goal)
            self.assertFalse(result.stalled)
            self.assertAlmostEqual(result.position, position, delta=0.003)
            if position:
                self.assertTrue(self.client.feedback)
        self.client.until(lambda: self.client.joints.name == [JOINT] and self.client.joints.position[0] < 0.01)
        self.client.until(lambda: self.client.stat.is_ready and abs(self.client.stat.position - 0.085) < 0.001)

    def test_an_object_stalls_it(self) -> None:
        self.gripper.set_object_inside(0.045)
        status, result, _ = self.client.move(0.8, 100.0)
        self.assertEqual(status, GoalStatus.SUCCEEDED)
        self.assertTrue(result.stalled)
        self.assertFalse(result.reached_goal)
        self.assertAlmostEqual(result.position, 0.4, delta=0.005)
        self.assertAlmostEqual(result.effort, 100.0, delta=1.0)
        self.client.until(lambda: self.client.stat.obj_detected)

    def test_cancel_stops_the_fingers(self) -> None:
        handle = self.client.send(0.8)
        self.until_moving()
        handle.cancel()
        status, result, _ = self.client.result(handle)
        self.assertEqual(status, GoalStatus.PREEMPTED)
        stopped = self.gripper.look()
        self.assertFalse(stopped.going)
        self.assertLess(stopped.position, 220)
        # The node goes on asking, and nothing moves.
        self.client.until(lambda: not self.client.stat.is_moving)
        count = self.client.stat.header.seq
        self.client.until(lambda: self.client.stat.header.seq > count + 5)
        self.assertEqual(self.gripper.look().position, stopped.position)
        self.assertAlmostEqual(result.position, SCALE.angle_of_count(stopped.position), delta=0.05)
        self.assertEqual(self.client.move(0.0)[0], GoalStatus.SUCCEEDED, "without another activation")

    def test_a_new_goal_replaces_the_old(self) -> None:
        first = self.client.send(0.8)
        self.until_moving()
        second = self.client.send(0.1)
        self.assertEqual(self.client.result(first)[0], GoalStatus.PREEMPTED)
        status, result, _ = self.client.result(second)
        self.assertEqual((status, result.reached_goal), (GoalStatus.SUCCEEDED, True))

    def test_the_cable_is_pulled_in_mid_motion(self) -> None:
        handle = self.client.send(0.8)
        self.until_moving()
        pulled = time.monotonic()
        self.line.unplug()
        status, _, text = self.client.result(handle)
        self.assertLess(time.monotonic() - pulled, 1.5)
        self.assertEqual(status, GoalStatus.ABORTED)
        self.assertIn(self.place, text)
        self.assertIn("rosservice call /robotiq_85/activate", text)
        status, _, text = self.client.move(0.0)
        self.assertEqual(status, GoalStatus.ABORTED)
        self.assertIn(self.place, text)
        self.client.until(lambda: ("connected", "False") in self.client.diagnosed())
        self.assertFalse(self.client.activate()[0])

        self.gripper.set_power(False)
        self.gripper.set_power(True)
        self.line.plug_in()
        self.client.until(lambda: "not active" in self.client.diagnostic.message)
        position = self.gripper.look().position
        status, _, text = self.client.move(0.0)
        self.assertEqual(status, GoalStatus.ABORTED)
        self.assertIn("keep hands clear", text)
        self.assertEqual(self.gripper.look().position, position)
        self.assertTrue(self.client.activate()[0])
        self.assertTrue(self.client.move(0.4)[1].reached_goal)

    def test_damaged_answers_are_made_good(self) -> None:
        self.line.damage(2)
        self.assertTrue(self.client.move(0.6)[1].reached_goal)

    def test_a_fault_is_named(self) -> None:
        handle = self.client.send(0.8)
        self.until_moving()
        self.gripper.set_fault(10)
        status, _, text = self.client.result(handle)
        self.assertEqual(status, GoalStatus.ABORTED)
        self.assertIn("under voltage", text)
        self.client.until(lambda: "under voltage" in self.client.diagnostic.message)

    def test_what_is_no_number_is_refused(self) -> None:
        for position, effort in ((math.nan, 0.0), (math.inf, 0.0), (0.1, math.nan), (0.1, -5.0)):
            status, _, text = self.client.move(position, effort)
            self.assertEqual(status, GoalStatus.REJECTED)
            self.assertIn("expected", text)

    def test_the_original_drivers_topics(self) -> None:
        self.client.command.publish(GripperCmd(position=0.04, speed=0.15, force=50.0))
        self.client.until(lambda: abs(self.client.stat.position - 0.04) < 0.001 and not self.client.stat.is_moving)
        handle = self.client.send(0.8)
        self.client.until(lambda: self.gripper.look().going and self.client.stat.is_moving)
        self.client.command.publish(GripperCmd(stop=True))
        self.assertEqual(self.client.result(handle)[0], GoalStatus.PREEMPTED)
        self.assertLess(self.gripper.look().position, 225)
        self.client.command.publish(GripperCmd(emergency_release=True, emergency_release_dir=1))
        self.client.until(lambda: self.client.stat.fault_status in (11, 15))

    def test_the_fingers_stop_with_the_node(self) -> None:
        self.client.send(0.8)
        self.until_moving()
        self.node.send_signal(signal.SIGINT)
        self.assertEqual(self.node.wait(PATIENCE), 0)
        stopped = self.gripper.look()
        self.assertFalse(stopped.going)
        self.assertLess(stopped.position, 225)
        self.start_node()


class SerialTest(Robotiq85Test, unittest.TestCase):
    """On a pseudo-terminal in place of the USB adapter."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.gripper = EmulatedGripper(activation_speed=1.0)
        cls.line = EmulatedPort(cls.gripper, Path(cls.folder.name) / "by-id" / "usb-hand")
        cls.line.plug_in()
        cls.place = str(cls.line.link)
        cls.parameters = [f"_port:={cls.place}", "_speed:=0.05"]
        cls.start_node()


class UrcapTest(Robotiq85Test, unittest.TestCase):
    """Behind a socket in place of the controller's."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.gripper = EmulatedGripper(activation_speed=1.0)
        cls.line = EmulatedUrcap(cls.gripper)
        cls.line.plug_in()
        cls.place = f"127.0.0.1:{cls.line.tcp_port}"
        cls.parameters = ["_driver:=urcap", "_host:=127.0.0.1", f"_tcp_port:={cls.line.tcp_port}", "_speed:=0.05"]
        cls.start_node()


class ParametersTest(unittest.TestCase):
    """What is wrong is named, and the node does not come up."""

    def test_wrong_parameters(self) -> None:
        for parameters, words in (
            (["_driver:=usb"], "~driver is 'usb', expected one of serial, urcap"),
            (["_driver:=urcap"], "~host is empty"),
            (["_driver:=urcap", "_host:=robot", "_tcp_port:=0"], "~tcp_port is 0"),
            (["_rate:=0"], "~rate is 0, expected 1 to 200 Hz"),
            (["_speed:=1.0"], "~speed is 1.0, expected 0.02 to 0.15 m/s"),
            (["_activate_on_start:=maybe"], "~activate_on_start is 'maybe'"),
            (["_gripper:=claw"], "no gripper 'claw'"),
            (["_robot:=mico-2"], "goes with kinova"),
        ):
            with self.subTest(parameters):
                node = start(*parameters, "__name:=wrong")
                output, _ = node.communicate(timeout=PATIENCE)
                self.assertEqual(node.returncode, 1)
                self.assertIn(words, output)
                self.assertNotIn("Traceback", output)
                for parameter in parameters:
                    rospy.delete_param(f"/wrong/{parameter[1:].split(':=')[0]}")


if __name__ == "__main__":
    rospy.init_node("robotiq_85_test")
    rostest.rosrun("iter_runner", "robotiq_85_test", "__main__", sys.argv)
