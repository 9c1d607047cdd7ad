#!/usr/bin/env python3
"""The embedded simulator as a client of the real drivers sees it."""

import math
import sys
import time
import unittest

import actionlib
import numpy as np
import rosgraph
import rospy
from actionlib_msgs.msg import GoalStatus
from control_msgs.msg import (
    FollowJointTrajectoryAction,
    FollowJointTrajectoryResult,
    GripperCommandAction,
    JointTolerance,
)
from geometry_msgs.msg import Point, Pose, Quaternion
from iter_runner.msg import Scene, SceneObject
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive
from simulator_client import PATIENCE, Latest, await_connections, call, grip, run_goal, trajectory_goal
from std_msgs.msg import Bool, Float64, String
from std_srvs.srv import Trigger
from ur_dashboard_msgs.msg import RobotMode, SafetyMode
from ur_dashboard_msgs.srv import GetRobotMode, GetSafetyMode, IsProgramRunning
from ur_msgs.srv import SetIO, SetIORequest, SetPayload, SetSpeedSliderFraction

import rostest
from iter_runner.kinematics import load_chain
from iter_runner.kinematics.rotations import matrix_to_quaternion
from iter_runner.robot.table import load_robot, robot_gripper

HARDWARE = "/ur_hardware_interface"
DASHBOARD = f"{HARDWARE}/dashboard"
ROBOT = load_robot("ur5")
NAMES = ROBOT.joints


class SimulatorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.arm = Latest("/joint_states", JointState)
        cls.program_running = Latest(f"{HARDWARE}/robot_program_running", Bool)
        cls.safety_mode = Latest(f"{HARDWARE}/safety_mode", SafetyMode)
        cls.robot_mode = Latest(f"{HARDWARE}/robot_mode", RobotMode)
        cls.scaling = Latest("/speed_scaling_factor", Float64)
        cls.objects = Latest("/simulator/objects", Scene)
        cls.clock = Latest("/clock", Clock)
        cls.script = rospy.Publisher(f"{HARDWARE}/script_command", String, queue_size=100, tcp_nodelay=True)
        cls.fault = rospy.Publisher("/simulator/inject_fault", String, queue_size=10)
        cls.scene = rospy.Publisher("/runner/scene", Scene, queue_size=1, latch=True)
        cls.follow = actionlib.SimpleActionClient(
            "/scaled_pos_joint_traj_controller/follow_joint_trajectory", FollowJointTrajectoryAction
        )
        cls.gripper = actionlib.SimpleActionClient("/gripper_command", GripperCommandAction)
        for client in (cls.follow, cls.gripper):
            assert client.wait_for_server(rospy.Duration(10 * PATIENCE))
        await_connections(cls.script, cls.fault)

    def setUp(self):
        call(f"{HARDWARE}/set_speed_slider", SetSpeedSliderFraction, 1.0)
        call(f"{DASHBOARD}/unlock_protective_stop", Trigger)
        self.assertTrue(call(f"{HARDWARE}/resend_robot_program", Trigger).success)
        self.program_running.wait(lambda message: message.data, "External Control runs")
        self.at_rest()

    # What the tests do.

    def joints(self):
        message = next(item for item in reversed(self.arm.messages) if len(item.name) == 6)
        places = [message.name.index(name) for name in NAMES]
        return np.array([message.position[i] for i in places]), np.array([message.velocity[i] for i in places])

    def at_rest(self):
        count = len(self.arm.messages)
        self.arm.wait(
            lambda message: (
                len(self.arm.messages) > count + 10 and len(message.name) == 6 and not any(message.velocity)
            ),
            "the arm stands",
        )
        return self.joints()[0]

    def goal(self, *points, names=NAMES, **fields):
        return trajectory_goal(names, *points, **fields)

    def follow_to_end(self, goal):
        return run_goal(self.follow, goal)

    def run_script(self, text):
        self.script.publish(text)
        self.program_running.wait(lambda message: not message.data, "the script stops External Control")

    # The tests.

    def test_joint_states_and_clock_come_at_the_controllers_rate(self):
        recorder = Latest("/joint_states", JointState, queue_size=None)
        clock = Latest("/clock", Clock, queue_size=None)
        recorder.wait(lambda _: len(recorder.messages) > 300, "joint states")
        clock.wait(lambda _: len(clock.messages) > 300, "clock")
        arm = [message for message in recorder.messages if len(message.name) == 6]
        fingers = [message for message in recorder.messages if len(message.name) != 6]
        self.assertEqual(arm[0].name, sorted(NAMES))
        self.assertEqual(len(arm[0].velocity), 6)
        self.assertEqual(len(arm[0].effort), 6)
        self.assertEqual(fingers[0].name, robot_gripper(ROBOT).joints)
        stamps = [message.header.stamp.to_nsec() for message in arm]
        self.assertEqual(set(np.diff(stamps)), {8_000_000})
        self.assertEqual(set(np.diff([message.header.seq for message in arm])), {1})
        # rospy itself keeps but the newest message of /clock.
        self.assertTrue(all(message.clock.to_nsec() % 8_000_000 == 0 for message in clock.messages))
        self.assertTrue(all(stamp % 8_000_000 == 0 for stamp in stamps))

    def test_it_does_not_listen_to_its_own_clock(self):
        publishers, subscribers, _ = rosgraph.Master(rospy.get_name()).getSystemState()
        self.assertEqual(dict(publishers)["/clock"], ["/simulator"])
        self.assertNotIn("/simulator", dict(subscribers)["/clock"])

    def test_latched_states_and_the_dashboards_questions(self):
        self.assertEqual(self.robot_mode.last.mode, RobotMode.RUNNING)
        self.assertEqual(self.safety_mode.last.mode, SafetyMode.NORMAL)
        self.assertEqual(call(f"{DASHBOARD}/get_robot_mode", GetRobotMode).robot_mode.mode, RobotMode.RUNNING)
        self.assertEqual(call(f"{DASHBOARD}/get_safety_mode", GetSafetyMode).answer, "Safetymode: NORMAL")
        self.assertTrue(call(f"{DASHBOARD}/program_running", IsProgramRunning).program_running)
        self.assertTrue(call(f"{DASHBOARD}/pause", Trigger).success)
        self.program_running.wait(lambda message: not message.data, "paused")
        self.assertFalse(call(f"{DASHBOARD}/program_running", IsProgramRunning).program_running)
        self.assertTrue(call(f"{DASHBOARD}/play", Trigger).success)
        self.program_running.wait(lambda message: message.data, "played")
        self.assertTrue(call(f"{HARDWARE}/zero_ftsensor", Trigger).success)
        self.assertTrue(call(f"{HARDWARE}/set_payload", SetPayload, 1.0, None).success)
        self.assertTrue(call(f"{HARDWARE}/set_io", SetIO, SetIORequest.FUN_SET_DIGITAL_OUT, 3, 1.0).success)
        self.assertFalse(call(f"{HARDWARE}/set_io", SetIO, SetIORequest.FUN_SET_DIGITAL_OUT, 99, 1.0).success)
        self.assertFalse(call(f"{HARDWARE}/set_io", SetIO, 77, 1, 1.0).success)

    def test_power(self):
        self.assertTrue(call(f"{DASHBOARD}/power_off", Trigger).success)
        self.robot_mode.wait(lambda message: message.mode == RobotMode.POWER_OFF, "power off")
        self.assertFalse(call(f"{HARDWARE}/resend_robot_program", Trigger).success)
        self.assertTrue(call(f"{DASHBOARD}/power_on", Trigger).success)
        self.robot_mode.wait(lambda message: message.mode == RobotMode.IDLE, "brakes on")
        self.assertTrue(call(f"{DASHBOARD}/brake_release", Trigger).success)
        self.robot_mode.wait(lambda message: message.mode == RobotMode.RUNNING, "running")

    def test_a_trajectory_is_followed_whatever_the_joints_order(self):
        start = self.at_rest()
        target = start + np.array([0.2, -0.1, 0.1, 0.0, 0.1, -0.2])
        order = [3, 1, 0, 5, 4, 2]
        begun = rospy.get_time()
        goal = self.goal((0.0, start[order]), (1.0, target[order]), names=[NAMES[i] for i in order])
        state, result = self.follow_to_end(goal)
        self.assertEqual((state, result.error_code), (GoalStatus.SUCCEEDED, FollowJointTrajectoryResult.SUCCESSFUL))
        self.assertAlmostEqual(rospy.get_time() - begun, 1.1, delta=0.4)
        np.testing.assert_allclose(self.at_rest(), target, atol=1e-6)

    def test_faulty_trajectories_are_refused_with_the_controllers_codes(self):
        q = self.at_rest()
        expected = FollowJointTrajectoryResult
        old = self.goal((0.5, q))
        old.trajectory.header.stamp = rospy.Time.now() - rospy.Duration(1.0)
        tolerance = JointTolerance(name="no_such_joint", position=0.1)
        cases = [
            (self.goal((1.0, q[:5]), names=NAMES[:5]), expected.INVALID_JOINTS),
            (self.goal((1.0, q), names=["a", *NAMES[1:]]), expected.INVALID_JOINTS),
            (self.goal((1.0, q), path_tolerance=[tolerance]), expected.INVALID_JOINTS),
            (self.goal((1.0, q), (0.5, q)), expected.INVALID_GOAL),
            (self.goal((1.0, q), (1.0, q)), expected.INVALID_GOAL),
            (self.goal((1.0, q[:4])), expected.INVALID_GOAL),
            (self.goal((1.0, [math.nan, *q[1:]])), expected.INVALID_GOAL),
            (self.goal((0.0, q + 0.5), (1.0, q + 0.5)), expected.INVALID_GOAL),
            (self.goal(), expected.INVALID_GOAL),
            (old, expected.OLD_HEADER_TIMESTAMP),
        ]
        for goal, code in cases:
            state, result = self.follow_to_end(goal)
            self.assertEqual((state, result.error_code), (GoalStatus.REJECTED, code), result.error_string)
            self.assertTrue(result.error_string)
        np.testing.assert_array_equal(self.at_rest(), q)

    def test_tolerances_are_watched(self):
        q = self.at_rest()
        tight = [JointTolerance(name=NAMES[0], position=0.002)]
        state, result = self.follow_to_end(self.goal((1.0, q + 0.4), path_tolerance=tight))
        self.assertEqual(state, GoalStatus.ABORTED)
        self.assertEqual(result.error_code, FollowJointTrajectoryResult.PATH_TOLERANCE_VIOLATED)
        q = self.at_rest()
        tight = [JointTolerance(name=NAMES[0], position=1e-7)]
        goal = self.goal((0.5, q - 0.4), goal_tolerance=tight, goal_time_tolerance=rospy.Duration.from_sec(0.016))
        state, result = self.follow_to_end(goal)
        self.assertEqual(state, GoalStatus.ABORTED)
        self.assertEqual(result.error_code, FollowJointTrajectoryResult.GOAL_TOLERANCE_VIOLATED)

    def test_cancel_and_a_new_goal_end_the_old_one(self):
        q = self.at_rest()
        self.follow.send_goal(self.goal((20.0, q + 1.0)))
        self.arm.wait(lambda _: abs(self.joints()[1][0]) > 0.04, "the arm moves")
        at = self.joints()[0][0]
        self.follow.cancel_goal()
        self.assertTrue(self.follow.wait_for_result(rospy.Duration(10 * PATIENCE)))
        self.assertEqual(self.follow.get_state(), GoalStatus.PREEMPTED)
        self.assertLess(self.at_rest()[0] - at, 0.05)
        statuses = []
        other = actionlib.ActionClient(
            "/scaled_pos_joint_traj_controller/follow_joint_trajectory", FollowJointTrajectoryAction
        )
        other.wait_for_server(rospy.Duration(10 * PATIENCE))
        first = other.send_goal(
            self.goal((20.0, self.at_rest() - 1.0)), transition_cb=lambda handle: statuses.append(handle)
        )
        self.arm.wait(lambda _: abs(self.joints()[1][0]) > 0.04, "the arm moves")
        state, _ = self.follow_to_end(self.goal((2.0, q)))
        self.assertEqual(state, GoalStatus.SUCCEEDED)
        self.assertEqual(first.get_goal_status(), GoalStatus.PREEMPTED)

    def test_the_slider_scales(self):
        call(f"{HARDWARE}/set_speed_slider", SetSpeedSliderFraction, 0.5)
        self.scaling.wait(lambda message: message.data == 0.5, "half speed")
        self.assertFalse(call(f"{HARDWARE}/set_speed_slider", SetSpeedSliderFraction, 0.0).success)
        self.assertFalse(call(f"{HARDWARE}/set_speed_slider", SetSpeedSliderFraction, 1.5).success)
        q = self.at_rest()
        begun = rospy.get_time()
        state, _ = self.follow_to_end(self.goal((1.0, q + 0.1)))
        self.assertEqual(state, GoalStatus.SUCCEEDED)
        self.assertAlmostEqual(rospy.get_time() - begun, 2.1, delta=0.4)

    def test_a_script_displaces_external_control_until_it_is_sent_again(self):
        q = self.at_rest()
        target = [float(value) for value in q + 0.1]
        self.run_script(f"movej({target}, a=1.4, v=1.05)")
        state, result = self.follow_to_end(self.goal((1.0, q)))
        self.assertEqual((state, result.error_code), (GoalStatus.REJECTED, FollowJointTrajectoryResult.INVALID_GOAL))
        self.assertIn("not running", result.error_string)
        self.arm.wait(lambda _: np.allclose(self.joints()[0], target, atol=1e-9), "movej arrives")
        self.assertTrue(call(f"{HARDWARE}/resend_robot_program", Trigger).success)
        self.program_running.wait(lambda message: message.data, "External Control is back")
        state, _ = self.follow_to_end(self.goal((1.0, q)))
        self.assertEqual(state, GoalStatus.SUCCEEDED)

    def test_a_script_that_does_not_compile_changes_nothing(self):
        count = len(self.program_running.messages)
        self.script.publish("levitate([0, 0, 0])")
        self.script.publish("movej([0, 0")
        q = self.at_rest()
        state, _ = self.follow_to_end(self.goal((0.5, q + 0.05)))
        self.assertEqual(state, GoalStatus.SUCCEEDED)
        self.assertEqual(len(self.program_running.messages), count)

    def test_the_clock_waits_for_a_slow_stream(self):
        q = self.at_rest()
        tick = 0.008
        ticks = 250
        begun = rospy.get_time()
        for k in range(ticks):
            while rospy.get_time() < begun + k * tick:
                seen = len(self.clock.messages)
                with self.clock._changed:
                    self.clock._changed.wait_for(lambda seen=seen: len(self.clock.messages) > seen, 1.0)
            time.sleep(0.005)  # six times what the clock would give it at this rate
            target = [float(value) for value in q + 0.1 * math.sin(k * tick)]
            self.script.publish(f"servoj({target!r}, 0, 0, {tick}, 0.1, 300)")
        took = rospy.get_time() - begun
        self.assertLess(took, 3 * ticks * tick, "the clock ran away from the stream")
        self.script.publish("stopj(5.0)")
        lag = np.abs(self.at_rest() - target).max()
        self.assertLess(lag, 0.1 * 0.1 * 1.5)  # speed 0.1 rad/s at most, lookahead 0.1 s

    def test_a_protective_stop_is_unlocked_and_the_program_sent_again(self):
        q = self.at_rest()
        self.follow.send_goal(self.goal((20.0, q + 0.5)))
        self.arm.wait(lambda _: abs(self.joints()[1][0]) > 0.02, "the arm moves")
        self.fault.publish("protective_stop")
        self.safety_mode.wait(lambda message: message.mode == SafetyMode.PROTECTIVE_STOP, "stopped")
        self.program_running.wait(lambda message: not message.data, "program over")
        self.assertTrue(self.follow.wait_for_result(rospy.Duration(10 * PATIENCE)))
        self.assertEqual(self.follow.get_state(), GoalStatus.PREEMPTED)
        self.assertFalse(call(f"{HARDWARE}/resend_robot_program", Trigger).success)
        self.at_rest()
        self.assertTrue(call(f"{DASHBOARD}/unlock_protective_stop", Trigger).success)
        self.safety_mode.wait(lambda message: message.mode == SafetyMode.NORMAL, "unlocked")
        state, _ = self.follow_to_end(self.goal((1.0, self.at_rest())))
        self.assertEqual(state, GoalStatus.REJECTED)
        self.assertTrue(call(f"{HARDWARE}/resend_robot_program", Trigger).success)
        state, _ = self.follow_to_end(self.goal((1.0, q)))
        self.assertEqual(state, GoalStatus.SUCCEEDED)

    def test_joint_states_go_stale_and_come_back(self):
        first = len(self.arm.messages) - 1  # the last before the gap
        self.fault.publish("stale_joint_states:1.0")

        def gap():
            return max(np.diff([message.header.stamp.to_sec() for message in self.arm.messages[first:]]), default=0.0)

        self.arm.wait(lambda _: gap() > 0.5, "a gap in the joint states")
        self.assertAlmostEqual(gap(), 1.0, delta=0.05)

    def test_the_gripper_holds_a_block_that_goes_with_the_hand(self):
        gripper = robot_gripper(ROBOT)
        q = self.at_rest()
        flange = load_chain(ROBOT).fk(q)
        tip = (flange @ [0, 0, gripper.tip_offset, 1])[:3]
        block = SceneObject(name="block", frame_id="base_link", graspable=True)
        block.shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.04, 0.04, 0.04])
        block.pose = Pose(Point(*tip), Quaternion(*matrix_to_quaternion(flange[:3, :3])))
        self.scene.publish(Scene(objects=[block]))
        self.objects.wait(lambda message: len(message.objects) == 1, "the scene")
        state, result = self.grip(gripper.position_closed)
        self.assertEqual(state, GoalStatus.SUCCEEDED)
        self.assertTrue(result.stalled)
        self.assertFalse(result.reached_goal)
        self.assertAlmostEqual(gripper.opening_of(result.position), 0.04, delta=1e-6)
        moved = q + np.array([0.3, 0, 0, 0, 0, 0])
        self.follow_to_end(self.goal((1.0, moved)))
        self.at_rest()
        state, result = self.grip(gripper.position_open)
        self.assertTrue(result.reached_goal)
        self.assertFalse(result.stalled)
        expected = (load_chain(ROBOT).fk(self.at_rest()) @ [0, 0, gripper.tip_offset, 1])[:3]

        def there(message):
            at = message.objects[0].pose.position
            return np.allclose([at.x, at.y, at.z], expected, atol=1e-6)

        self.objects.wait(there, "the block is where the hand let it go")
        self.fault.publish("gripper_stuck")
        time.sleep(0.3)
        self.assertEqual(self.grip(gripper.position_closed)[0], GoalStatus.ABORTED)
        self.assertEqual(self.grip(gripper.position_closed)[0], GoalStatus.SUCCEEDED)
        self.grip(gripper.position_open)

    def grip(self, position):
        return grip(self.gripper, position)


if __name__ == "__main__":
    rospy.init_node("simulator_test")
    rostest.rosrun("iter_runner", "simulator_test", SimulatorTest, sys.argv)
