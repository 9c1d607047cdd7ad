#!/usr/bin/env python3
"""Kills the runner with SIGKILL in the midst of a run: nothing of the record is lost, and another runner goes on."""

from __future__ import annotations

import os
import signal
import unittest
from typing import List

import numpy as np
import rospy
from geometry_msgs.msg import Point, Pose
from iter_runner.msg import RunnerState, Scene, SceneObject
from iter_runner.srv import SceneAdd, SceneList
from runner_client import PLANS, RunnerClient, journalled, process_of, run_plan
from shape_msgs.msg import SolidPrimitive

import rostest
from iter_runner.study.sessions import find_session, step_to_resume

SMALL = str(PLANS / "small.json")
CARRYING = 7  # the step in which the block is on its way


def add(name: str) -> None:
    """Adds a small box far from everything to the scene."""
    shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.1, 0.1, 0.1])
    item = SceneObject(name=name, shape=shape, pose=Pose(position=Point(0.0, 0.0, 2.0)))
    answer = rospy.ServiceProxy("/runner/scene/add", SceneAdd)(item)
    assert answer.success, answer.message


def names() -> List[str]:
    rospy.wait_for_service("/runner/scene/list")
    return [item.name for item in rospy.ServiceProxy("/runner/scene/list", SceneList)().objects]


class RunnerKillTest(unittest.TestCase):
    def test_a_killed_run_is_on_disk_and_can_be_resumed(self) -> None:
        client = RunnerClient()
        tool = run_plan(SMALL)
        client.until(lambda: client.state.step == CARRYING and bool(client.of_kind("gripper_finished")))
        add("post")
        published = [(event.sequence, event.kind) for event in client.events]
        session = client.state.session
        os.kill(process_of("/runner"), signal.SIGKILL)

        _, errors = tool.communicate(timeout=120)
        self.assertEqual(tool.returncode, 1, errors)
        self.assertIn("the runner died", errors)
        self.assertIn(f"run_plan --resume {session}", errors)
        self.assertEqual(journalled(session)[: len(published)], published)
        self.assertNotIn("run_finished", [kind for _, kind in journalled(session)])
        step = step_to_resume(find_session(session))
        self.assertIsNotNone(step)

        client.until(lambda: client.states[-1].state == RunnerState.IDLE and client.states[-1].session == "")
        # The new runner knows what stood there; the workcell's parts stay where they are when it adds something.
        self.assertEqual(names(), ["post", "table", "block"])
        add("lamp")
        tool = run_plan("--resume", session)
        output, errors = tool.communicate(timeout=120)
        self.assertEqual(tool.returncode, 0, output + errors)
        self.assertIn(f"step {step + 1} of 15", output)  # type: ignore[operator]
        self.assertNotIn(f"step {step} of 15", output)

        objects = rospy.wait_for_message("/simulator/objects", Scene).objects
        self.assertEqual([each.name for each in objects], ["post", "lamp", "table", "block"])
        block = next(each for each in objects if each.name == "block").pose.position
        np.testing.assert_allclose([block.x, block.y, block.z], [0.35, 0.05, 0.0], atol=2e-3)

        tool = run_plan("--resume")
        _, errors = tool.communicate(timeout=120)
        self.assertEqual(tool.returncode, 1)
        self.assertIn("nothing to resume", errors)


if __name__ == "__main__":
    rospy.init_node("runner_kill_test")
    rostest.rosrun("iter_runner", "runner_kill", RunnerKillTest)
