#!/usr/bin/env python3
"""Runs plans from end to end on the simulator, and everything that may happen to a run on its way."""

from __future__ import annotations

import json
import os
import signal
import unittest
from pathlib import Path
from typing import Any, Dict

import numpy as np
import rospy
from actionlib_msgs.msg import GoalStatus
from iter_runner.msg import RunnerState, RunPlanGoal
from iter_runner.srv import Answer
from runner_client import PLANS, RunnerClient, journalled, move, plan_text, process_of, run_plan
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

import rostest
from iter_runner.planners.base import path_hash
from iter_runner.robot.table import load_robot
from iter_runner.study.sessions import load_path

SMALL = str(PLANS / "small.json")
LONG_WAY = [move(0.35, -0.3, 0.3), move(0.35, 0.3, 0.3), move(0.35, -0.3, 0.3), move(0.35, 0.3, 0.3)]


class RunnerTest(unittest.TestCase):
    client: RunnerClient

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = RunnerClient()

    def test_a_blocked_way_is_refused_before_anything_moves(self) -> None:
        """First of all tests: from the tucked pose no way leads between the walls, whose goal is clear of both."""
        before = _arm_joints().position
        tuck = load_robot("ur5").tuck
        np.testing.assert_allclose(sorted(before), sorted(tuck), atol=1e-3)
        no_way = plan_text(
            move(-0.1, 0.4, 0.3),
            move(-0.5, 0.0, 0.3),
            environment=[_wall("left", 0.825, 1.35, np.pi - 0.6), _wall("right", 0.825, 1.35, np.pi + 0.6)],
        )
        message = self.client.refusal(plan_json=no_way)
        for words in ("1 fault", "/task/1", "left overlap by", "the planner static"):
            self.assertIn(words, message)
        self.assertEqual(self.client.events, [])
        np.testing.assert_allclose(_arm_joints().position, before, atol=1e-3)

    def test_a_plan_runs_to_its_end_and_its_record_is_whole(self) -> None:
        client = self.client
        result = client.run(plan_path=SMALL, participant_id="P07")
        self.assertEqual((result.outcome, result.steps_done, result.steps), ("finished", 15, 15))
        client.until(lambda: bool(client.of_kind("run_finished")))
        published = [(event.sequence, event.kind) for event in client.events]
        self.assertEqual(published, journalled(result.session))
        self.assertEqual([number for number, _ in published], list(range(len(published))))

        folder = Path(result.session_directory)
        self.assertIn("_rostest_P07_", folder.name)
        moves = client.data("move_finished")
        self.assertEqual(len(moves), 5)
        for each in moves:
            positions, times = load_path(folder / each["commanded_path"])
            self.assertEqual(path_hash(positions), each["path_hash"])
            self.assertTrue(np.all(np.diff(times) > 0))
            self.assertLess(each["position_error"], 1e-3)

        responses = [json.loads(press["detail"]) if isinstance(press["detail"], str) else press["detail"]
                     for press in client.data("press")]  # fmt: skip
        waits = [wait["duration"] for wait in client.data("wait_ended") if wait["condition"] == "button"]
        np.testing.assert_allclose(waits, [response["response_time"] for response in responses], atol=1e-6)
        report = json.loads((folder / "report.json").read_text())
        self.assertEqual((report["outcome"], report["steps_done"]), ("finished", 15))
        self.assertAlmostEqual(report["robot_idle"], sum(waits), places=6)

    def test_equal_plans_move_equally(self) -> None:
        plan = plan_text(move(0.3, 0.2, 0.3), move(0.4, -0.1, 0.2), move(0.3, 0.2, 0.3))
        hashes = []
        for _ in range(3):
            self.assertEqual(self.client.run(plan_json=plan).outcome, "finished")
            hashes.append([each["path_hash"] for each in self.client.data("move_finished")])
        # The first run comes from somewhere else; from then on the arm is back where the plan ends.
        self.assertEqual(hashes[1], hashes[2])
        self.assertEqual(hashes[0][1:], hashes[1][1:])

    def test_a_second_plan_is_refused(self) -> None:
        client = self.client
        handle = client.send(plan_path=str(PLANS / "long_wait.json"))
        client.until_state(RunnerState.RUNNING, step=0)
        second = client.action.send_goal(RunPlanGoal(plan_path=SMALL))
        result, status = client.result(second)
        self.assertEqual(status, GoalStatus.REJECTED)
        self.assertIn("busy with 'Long wait', step 1 of 1", result.message)
        tool = run_plan(SMALL)
        _, errors = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 1, errors)
        self.assertIn("busy with 'Long wait'", errors)
        self.assertEqual(client.state.state, RunnerState.RUNNING)
        client.call("stop")
        self.assertEqual(client.result(handle)[0].outcome, "stopped")

    def test_stop_halts_the_arm_on_its_way(self) -> None:
        client = self.client
        handle = client.send(plan_json=plan_text(*LONG_WAY))
        client.until_state(RunnerState.RUNNING, step=1)
        self.assertEqual(client.call("stop"), (True, "stopped"))
        self.assertEqual(client.result(handle)[0].outcome, "stopped")
        client.until(_stands_still)
        self.assertEqual(client.call("stop"), (False, "no plan is running"))

    def test_cancel_is_stop(self) -> None:
        client = self.client
        handle = client.send(plan_json=plan_text(*LONG_WAY))
        client.until_state(RunnerState.RUNNING, step=1)
        handle.cancel()
        result, status = client.result(handle)
        self.assertEqual((result.outcome, status), ("stopped", GoalStatus.PREEMPTED))

    def test_pause_holds_the_arm_and_step_does_one_step(self) -> None:
        client = self.client
        handle = client.send(plan_json=plan_text(*LONG_WAY))
        client.until_state(RunnerState.RUNNING, step=1)
        self.assertTrue(client.call("pause")[0])
        client.until_state(RunnerState.PAUSED)
        step = client.state.step
        client.until(_stands_still)
        self.assertTrue(client.call("step")[0])
        client.until(lambda: len(client.of_kind("step_finished")) == step + 1)
        client.until_state(RunnerState.PAUSED)
        self.assertTrue(client.call("resume")[0])
        self.assertEqual(client.result(handle)[0].outcome, "finished")
        kinds = [event.kind for event in client.events if event.kind in ("paused", "resumed")]
        self.assertEqual(kinds, ["paused", "resumed", "paused", "resumed"])

    def test_a_protective_stop_is_a_fault_that_can_be_cleared(self) -> None:
        client = self.client
        inject = rospy.Publisher("/simulator/inject_fault", String, queue_size=1)
        client.until(lambda: inject.get_num_connections() > 0)
        handle = client.send(plan_json=plan_text(*LONG_WAY))
        client.until_state(RunnerState.RUNNING, step=1)
        inject.publish("protective_stop")
        client.until_state(RunnerState.FAULTED)
        self.assertIn("protective stop", client.state.fault)

        client.call("resume")  # the cause is still there
        client.until(lambda: len(client.of_kind("fault")) == 2)
        client.until_state(RunnerState.FAULTED)
        unlock = rospy.ServiceProxy("/ur_hardware_interface/dashboard/unlock_protective_stop", Trigger)
        self.assertTrue(unlock().success)
        while client.state.state == RunnerState.FAULTED:  # the driver's news may be slower than our call
            known = len(client.of_kind("fault"))
            client.call("resume")
            client.until(lambda n=known: client.state.state != RunnerState.FAULTED or len(client.of_kind("fault")) > n)
        self.assertEqual(client.result(handle)[0].outcome, "finished")
        self.assertEqual({fault["code"] for fault in client.data("fault")}, {"protective_stop"})

    def test_a_stop_in_a_fault_is_an_aborted_run(self) -> None:
        client = self.client
        inject = rospy.Publisher("/simulator/inject_fault", String, queue_size=1)
        client.until(lambda: inject.get_num_connections() > 0)
        handle = client.send(plan_json=plan_text({"name": "grasp", "effort": 0.3}, {"name": "release", "effort": 0.0}))
        client.result(handle)
        inject.publish("gripper_stuck")
        rospy.sleep(1.0)  # of simulated time: nothing tells when the simulator has it
        handle = client.send(plan_json=plan_text({"name": "grasp", "effort": 0.3}))
        client.until_state(RunnerState.FAULTED)
        client.call("stop")
        result, _ = client.result(handle)
        self.assertEqual(result.outcome, "aborted")
        self.assertIn("gripper", result.message)

    def test_a_prompt_is_answered_by_a_service(self) -> None:
        client = self.client
        handle = client.send(plan_json=plan_text({"name": "prompt", "msg": "Ready?"}))
        answer = rospy.ServiceProxy("/runner/answer", Answer)
        client.until(lambda: client.state.waiting_for == "answer to: Ready?")
        answer("yes")
        self.assertEqual(client.result(handle)[0].outcome, "finished")
        self.assertIn(client.data("wait_ended")[0]["answer"], ("yes", ""))  # the participant may be quicker
        self.assertFalse(answer("again").success)

    def test_a_driver_that_hangs_keeps_no_goal_waiting(self) -> None:
        simulator = process_of("/simulator")
        os.kill(simulator, signal.SIGSTOP)
        try:
            message = self.client.refusal(plan_json=plan_text())
        finally:
            os.kill(simulator, signal.SIGCONT)
        self.assertIn("set_speed_slider", message)
        self.assertIn("hangs", message)
        self.assertEqual(self.client.run(plan_json=plan_text()).outcome, "finished")

    def test_what_is_wrong_is_refused_before_anything_moves(self) -> None:
        client = self.client
        before = _arm_joints().position
        far = plan_text(move(3.0, 0.0, 0.3), {"name": "logger", "msg": "x"}, move(0.0, 5.0, 0.3))
        for fields, words in (
            ({"plan_json": far}, ["2 faults", "/task/0", "/task/2", "reach"]),
            ({"plan_json": "{"}, ["fault"]),
            ({"plan_json": "[" * 100000}, ["fault"]),
            ({"plan_json": plan_text({"name": "wait", "condition": "time", "value": float("nan")})}, ["NaN"]),
            ({"plan_json": plan_text({"name": "mvoe"})}, ["/task/0", "move"]),
            ({"plan_json": plan_text(*[{"name": "mvoe"}] * 5000)}, ["5000 faults", "4900 more", "check_plan"]),
            ({"plan_path": "/"}, ["directory"]),
            ({"plan_path": "/nowhere.json"}, ["nowhere.json"]),
            ({}, ["plan_json or plan_path"]),
            ({"plan_json": plan_text(), "plan_path": SMALL}, ["not both"]),
            ({"plan_path": SMALL, "mode": "fast"}, ["fast", "replay"]),
            ({"plan_path": SMALL, "first_step": 15}, ["first_step 15", "0 to 14"]),
            ({"plan_path": SMALL, "first_step": -1}, ["first_step -1"]),
            ({"plan_json": plan_text(frame_id="nowhere")}, ["/frame_id", "nowhere"]),
            ({"plan_json": plan_text({"name": "publish", "topic": "/x", "message_module": "std_msgs",
                                      "message_type": "Nothing", "message_params": {}})}, ["Nothing"]),
        ):  # fmt: skip
            message = client.refusal(**fields)
            for word in words:
                self.assertIn(word, message)
            self.assertNotIn("Traceback", message)
        self.assertEqual(client.events, [])
        after = _arm_joints().position
        np.testing.assert_allclose(after, before, atol=1e-6)

    def test_the_tool_follows_a_run_to_its_end(self) -> None:
        tool = run_plan(SMALL, "--first-step", "11", "--condition", "pooled")
        output, errors = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 0, errors)
        for text in ("step 12 of 15: reading the pose", "WAITING FOR button", "finished: all 4 steps done", "_pooled_"):
            self.assertIn(text, output)
        self.assertEqual(errors, "")

    def test_ctrl_c_on_the_tool_stops_the_run(self) -> None:
        client = self.client
        tool = run_plan(str(PLANS / "long_wait.json"))
        client.until(lambda: client.state.title == "Long wait")
        tool.send_signal(signal.SIGINT)
        output, errors = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 1, errors)
        self.assertIn("stopped: stopped at step 1 of 1", output)
        client.until_state(RunnerState.IDLE)

    def test_the_tool_says_in_one_line_what_is_wrong(self) -> None:
        for arguments, code, words in (
            (["/nowhere.json"], 1, "nowhere.json"),
            (["/"], 1, "directory"),
            ([SMALL, "--first-step", "99"], 1, "0 to 14"),
            ([], 2, "which plan?"),
            ([SMALL, "--mode", "fast"], 2, "--mode"),
        ):
            tool = run_plan(*arguments)
            _, errors = tool.communicate(timeout=60)
            self.assertEqual(tool.returncode, code, errors)
            self.assertIn(words, errors)
            self.assertNotIn("Traceback", errors)


def _wall(name: str, distance: float, length: float, angle: float) -> Dict[str, Any]:
    """A wall that stands along a ray from the base at an angle, its middle at a distance."""
    x, y, turn = distance * np.cos(angle), distance * np.sin(angle), {"z": np.sin(angle / 2), "w": np.cos(angle / 2)}
    return {
        "name": name,
        "position": {"x": x, "y": y, "z": 0.5},
        "orientation": {"x": 0.0, "y": 0.0, **turn},
        "size": {"x": length, "y": 0.02, "z": 1.4},
    }


def _arm_joints() -> JointState:
    while True:
        message = rospy.wait_for_message("/joint_states", JointState)
        if "elbow_joint" in message.name:  # the gripper's driver publishes there too
            return message


def _stands_still() -> bool:
    return max(abs(speed) for speed in _arm_joints().velocity) < 1e-3


if __name__ == "__main__":
    rospy.init_node("runner_test")
    rostest.rosrun("iter_runner", "runner_test", RunnerTest)
