#!/usr/bin/env python3
"""A session's motions once more: the same to the bit, or not at all."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import unittest
from pathlib import Path
from typing import Any, Iterator, List

import numpy as np
import rospy
from iter_runner.msg import ButtonPress, RunnerState, RunPlanResult, SceneObject
from iter_runner.srv import SceneAdd, SceneRemove
from runner_client import RunnerClient, move, plan_text
from shape_msgs.msg import SolidPrimitive

import rostest
from iter_runner.events import EventKind
from iter_runner.kinematics import load_chain
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.planners.profile import straight
from iter_runner.robot.arm import JointPath, Vector
from iter_runner.robot.ros_arm import connect_arm
from iter_runner.robot.table import load_robot
from iter_runner.run_control import RunControl
from iter_runner.study.sessions import load_path, read_journal

ROBOT = load_robot("ur5")
TUCK = np.array(ROBOT.tuck)
PLAN = plan_text(
    move(0.3, 0.35, 0.3), {"name": "wait", "condition": "button"}, move(0.3, 0.3, 0.2), move(-0.2, 0.35, 0.35)
)
OTHER_PLAN = plan_text(
    move(0.3, 0.35, 0.31), {"name": "wait", "condition": "button"}, move(0.3, 0.3, 0.2), move(-0.2, 0.35, 0.35)
)


class ReplayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.chain = load_chain(ROBOT)
        cls.clock = study_clock()
        cls.arm = connect_arm(ROBOT, cls.clock)
        cls.button = rospy.Publisher("/button/press", ButtonPress, queue_size=1, tcp_nodelay=True)

    def bring(self, end: Vector) -> None:
        """Takes the arm straight to ``end``, as somebody at the pendant would."""
        control = RunControl(self.clock)
        self.arm.make_ready(control, 60.0)
        start = self.arm.reading().positions
        if np.max(np.abs(end - start)) > 1e-4:
            times, positions = straight(start, end, np.full(6, 1.0), np.full(6, 1.0)).sample(0.02)
            self.arm.follow(JointPath(positions, times), control)
        self.arm.wait_for_reading(lambda reading: bool(np.max(np.abs(reading.positions - end)) < 1e-3), control)

    @contextlib.contextmanager
    def runner(self, planner: str, replay: str = "") -> Iterator[RunnerClient]:
        """A runner of its own, and its client."""
        for name, value in {"robot": "ur5", "planner": planner, "replay": replay, "wait_for_arm": False}.items():
            rospy.set_param(f"/runner/{name}", value)
        process = subprocess.Popen(["rosrun", "iter_runner", "runner"])
        try:
            yield RunnerClient()
        finally:
            process.terminate()
            process.wait(60)

    def press_when_waited_for(self, client: RunnerClient) -> None:
        client.until_state(RunnerState.WAITING_FOR_HUMAN)
        client.until(lambda: self.button.get_num_connections() > 0)
        self.button.publish(ButtonPress(source="test"))

    def run_from_tuck(self, client: RunnerClient) -> RunPlanResult:
        self.bring(TUCK)
        handle = client.send(plan_json=PLAN)
        self.press_when_waited_for(client)
        result, _ = client.result(handle)
        self.assertEqual(result.outcome, "finished", result.message)
        return result

    def of_kind(self, result: RunPlanResult, kind: EventKind) -> List[Any]:
        return [event.data for event in read_journal_of(result) if event.kind is kind]

    def hashes(self, result: RunPlanResult) -> List[str]:
        return [data["path_hash"] for data in self.of_kind(result, EventKind.MOVE_FINISHED)]

    def check_replays(self, planner: str) -> str:
        """Runs the plan with ``planner``, then replays that session; the session's name."""
        with self.runner(planner) as client:
            first = self.run_from_tuck(client)
        with self.runner("replay", first.session) as client:
            again = self.run_from_tuck(client)
        self.assertEqual(len(self.hashes(first)), 3)
        self.assertEqual(self.hashes(again), self.hashes(first))
        for data in self.of_kind(first, EventKind.MOVE_FINISHED):
            files = [f"{result.session_directory}/{data['commanded_path']}" for result in (first, again)]
            for old, new in zip(*map(read_path, files)):
                np.testing.assert_array_equal(old, new)
        begun = self.of_kind(again, EventKind.RUN_STARTED)[0]
        self.assertEqual(
            [begun[name] for name in ("planner", "replay_of", "replayed_planner")], ["replay", first.session, planner]
        )
        return str(first.session)

    def test_streamed_targets(self) -> None:
        self.check_replays("relaxed_ik")

    def test_motions_of_chance(self) -> None:
        if importlib.util.find_spec("ompl") is None:
            self.skipTest("the package ompl is not installed")
        self.check_replays("ompl")

    def test_trajectories_and_what_is_refused(self) -> None:
        session = self.check_replays("static")
        with self.runner("replay", session) as client:
            self.bring(TUCK)
            self.assertIn("is of another plan", client.refusal(plan_json=OTHER_PLAN))

            away = TUCK + np.array([0.0, 0.0, 0.2, 0.0, 0.0, 0.0])
            self.bring(away)
            message = client.refusal(plan_json=PLAN)
            for words in ("elbow_joint is at", "0.2000 rad (11.5 degrees) from where the recorded motion 0", session):
                self.assertIn(words, message)

            self.bring(TUCK)
            self.add_lamp()
            message = client.refusal(plan_json=PLAN)
            for words in ("/task/3", "on the recorded motion", "and lamp overlap by"):
                self.assertIn(words, message)
            self.assertTrue(rospy.ServiceProxy("/runner/scene/remove", SceneRemove)(name="lamp").success)
            self.check_moved_away_during_a_run(client, session)

    def add_lamp(self) -> None:
        """Something small in the midst of the last motion."""
        thing = SceneObject(name="lamp", shape=SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.05, 0.05, 0.05]))
        thing.pose.position.x, thing.pose.position.y, thing.pose.position.z = 0.05, 0.33, 0.25
        thing.pose.orientation.w = 1.0
        rospy.wait_for_service("/runner/scene/add", 60.0)
        answer = rospy.ServiceProxy("/runner/scene/add", SceneAdd)(object=thing)
        self.assertTrue(answer.success, answer.message)

    def check_moved_away_during_a_run(self, client: RunnerClient, session: str) -> None:
        """An arm that somebody moves while the run waits: a fault, and the same motion once it is back."""
        handle = client.send(plan_json=PLAN)
        client.until_state(RunnerState.WAITING_FOR_HUMAN)
        there = self.arm.reading().positions
        self.bring(there + np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.0]))
        self.press_when_waited_for(client)
        client.until_state(RunnerState.FAULTED)
        self.assertIn("shoulder_pan_joint is at", client.state.fault)
        self.assertIn("bring the arm there, then resume", client.state.fault)
        self.bring(there)
        self.assertTrue(client.call("resume")[0])
        result, _ = client.result(handle)
        self.assertEqual(result.outcome, "finished", result.message)
        self.assertEqual([data["code"] for data in self.of_kind(result, EventKind.FAULT)], ["start_differs"])
        self.assertEqual(self.of_kind(result, EventKind.RUN_STARTED)[0]["replay_of"], session)

    def test_without_a_session_the_runner_does_not_start(self) -> None:
        for session, words in (("", "needs ~replay"), ("nowhere", "no session 'nowhere'")):
            rospy.set_param("/runner/planner", "replay")
            rospy.set_param("/runner/replay", session)
            done = subprocess.run(
                ["rosrun", "iter_runner", "runner"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(words, done.stdout)
            self.assertNotIn("Traceback", done.stdout)


def read_journal_of(result: RunPlanResult) -> List[Any]:
    return read_journal(Path(result.session_directory))


def read_path(file: str) -> Any:
    return load_path(Path(file))


if __name__ == "__main__":
    rospy.init_node("replay_test")
    rostest.rosrun("iter_runner", "replay_test", ReplayTest)
