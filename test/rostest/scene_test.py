#!/usr/bin/env python3
"""Changes the scene between the steps of runs: what the next move does about it, who sees it, and what is kept."""

from __future__ import annotations

import json
import math
import subprocess
import threading
import unittest
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import rospy
from iter_runner.msg import RunnerState, Scene
from iter_runner.srv import SceneList
from runner_client import RunnerClient, move, plan_text
from visualization_msgs.msg import MarkerArray

import rostest
from iter_runner.kinematics import Box, load_chain, path_clearance
from iter_runner.kinematics.rotations import pose
from iter_runner.study.sessions import load_path

LEFT, RIGHT = (-0.25, 0.42, 0.2), (0.25, 0.42, 0.2)
# What leaves the arm no other branch, and what stands between the two places.
ROOM = {"ceiling": ((2.0, 2.0, 0.02), (0.0, 0.0, 0.75)), "back": ((0.02, 0.6, 0.7), (0.0, -0.52, 0.4))}
CRATE: Tuple[Sequence[float], Sequence[float]] = ((0.15, 0.2, 0.3), (0.0, 0.45, 0.1))
CHAIN = load_chain("ur5")


def scene(*words: str) -> Tuple[int, str]:
    """Calls the tool; its exit code and what it said."""
    done = subprocess.run(["rosrun", "iter_runner", "scene", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def numbers(values: Sequence[float]) -> List[str]:
    return [f"{value:g}" for value in values]


class SceneTest(unittest.TestCase):
    client: RunnerClient

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = RunnerClient()
        cls.told: List[Scene] = []
        cls.shown: List[MarkerArray] = []
        cls.arrived = threading.Condition()
        rospy.Subscriber("/simulator/objects", Scene, cls._keep(cls.told))
        rospy.Subscriber("/runner/scene_markers", MarkerArray, cls._keep(cls.shown))

    @classmethod
    def _keep(cls, kept: List[Any]) -> Any:
        def keep(message: Any) -> None:
            with cls.arrived:
                kept.append(message)
                cls.arrived.notify_all()

        return keep

    def tearDown(self) -> None:
        for item in rospy.ServiceProxy("/runner/scene/list", SceneList)().objects:
            scene("remove", item.name)

    def add(self, name: str, size: Sequence[float], at: Sequence[float]) -> str:
        code, said = scene("add", name, "--box", *numbers(size), "--at", *numbers(at))
        self.assertEqual(code, 0, said)
        return said

    def at_second_step(self) -> Any:
        """A run from left to right that is paused between its two moves."""
        handle = self.client.send(
            plan_json=plan_text(move(*LEFT), {"name": "wait", "condition": "button"}, move(*RIGHT))
        )
        self.client.until_state(RunnerState.WAITING_FOR_HUMAN)
        self.client.call("pause")
        self.client.until_state(RunnerState.PAUSED)
        return handle

    def go_on(self) -> None:
        self.client.call("resume")
        self.press()

    def press(self) -> None:
        from iter_runner.msg import ButtonPress

        publisher = rospy.Publisher("/button/press", ButtonPress, queue_size=1, latch=True)
        publisher.publish(ButtonPress(time=0.0, source="test"))
        self.client.until(lambda: bool(self.client.of_kind("press")))

    def test_a_box_that_comes_between_two_steps_is_passed(self) -> None:
        for name, (size, at) in ROOM.items():
            self.add(name, size, at)
        handle = self.at_second_step()
        said = self.add("crate", *CRATE)
        self.assertIn("the run's next move is planned with it", said)
        self.go_on()
        result, _ = self.client.result(handle)
        self.assertEqual(result.outcome, "finished", result.message)
        (change,) = self.client.data("scene_changed")
        self.assertEqual((change["change"], change["object_name"], change["in_contact"]), ("added", "crate", None))
        last = self.client.data("move_finished")[-1]
        positions, _ = load_path(Path(result.session_directory) / last["commanded_path"])
        boxes = [Box(name, pose(at), size) for name, (size, at) in {**ROOM, "crate": CRATE}.items()]
        self.assertGreater(path_clearance(CHAIN, positions, boxes)[1].distance, -1e-3)
        np.testing.assert_allclose(CHAIN.fk(positions[-1])[:3, 3], RIGHT, atol=1e-6)
        with self.arrived:
            seen = self.arrived.wait_for(lambda: "crate" in {item.name for item in self.told[-1].objects}, 60.0)
        self.assertTrue(seen, "the simulator has the crate")
        self.assertIn("ceiling", [item.name for item in self.told[-1].objects])
        self.assertEqual(len(self.shown[-1].markers), 1 + 3)  # one takes away what was there

    def test_a_goal_inside_a_box_is_a_fault_until_the_box_is_gone(self) -> None:
        handle = self.at_second_step()
        self.add("crate", (0.2, 0.2, 0.2), RIGHT)
        self.go_on()
        self.client.until_state(RunnerState.FAULTED)
        fault = self.client.data("fault")[-1]
        self.assertEqual(fault["code"], "unreachable")
        self.assertRegex(fault["message"], r"step 3 of 3 .* and crate overlap by")
        self.assertEqual(scene("remove", "crate")[0], 0)
        self.client.call("resume")
        result, _ = self.client.result(handle)
        self.assertEqual(result.outcome, "finished", result.message)
        self.assertEqual([change["change"] for change in self.client.data("scene_changed")], ["added", "removed"])

    def test_a_plan_that_meets_what_was_added_is_refused_and_names_are_told_apart(self) -> None:
        self.add("crate", (0.2, 0.2, 0.2), RIGHT)
        message = self.client.refusal(plan_json=plan_text(move(*LEFT), move(*RIGHT)))
        self.assertRegex(message, "/task/1.* inside crate")
        own: Dict[str, Any] = {
            "name": "crate", "position": {"x": 0.0, "y": 0.0, "z": 1.5}, "size": {"x": 0.1, "y": 0.1, "z": 0.1},
            "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0},
        }  # fmt: skip
        message = self.client.refusal(plan_json=plan_text(move(*LEFT), environment=[own]))
        self.assertRegex(message, "/environment/0/name.*'crate'.*added by a service")

    def test_objects_stay_through_runs_and_are_kept_for_another_runner(self) -> None:
        self.add("crate", (0.1, 0.1, 0.1), (0.0, -0.6, 1.0))
        part: Dict[str, Any] = {
            "name": "part", "position": {"x": LEFT[0], "y": LEFT[1], "z": 0.03}, "graspable": True,
            "size": {"x": 0.04, "y": 0.04, "z": 0.06}, "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0},
        }  # fmt: skip
        carry = [
            move(*LEFT), {"name": "connect_object", "object_name": "part"}, move(*RIGHT),
            {"name": "disconnect_object", "object_name": "part"}, move(*LEFT),
        ]  # fmt: skip
        self.assertEqual(self.client.run(plan_json=plan_text(*carry, environment=[part])).outcome, "finished")
        answer = rospy.ServiceProxy("/runner/scene/list", SceneList)()
        self.assertEqual([item.name for item in answer.objects], ["crate", "part"])
        self.assertEqual((answer.origins, answer.held), (["service", "plan"], [False, False]))
        place = answer.objects[1].pose.position
        np.testing.assert_allclose((place.x, place.y, place.z), (RIGHT[0], RIGHT[1], 0.03), atol=1e-6)
        kept = json.loads(str(rospy.get_param("/runner/scene_objects")))
        self.assertEqual([item["name"] for item in kept["objects"]], ["crate", "part"])

    def test_an_object_that_is_moved_keeps_its_turn_unless_another_is_said(self) -> None:
        plank_words = "--box 0.4 0.1 0.02 --at 0 -0.6 1 --rpy 0 0 0.5"
        code, output = scene("add", "plank", *plank_words.split())
        self.assertEqual(code, 0, output)
        for words, yaw in (
            ("--at 0 -0.7 1", 0.5),
            ("--at 0 -0.7 1 --rpy 0 0 1", 1.0),
            ("--at 0 -0.7 1 --frame world", 0.0),
        ):
            code, output = scene("move", "plank", *words.split())
            self.assertEqual(code, 0, output)
            listed = rospy.ServiceProxy("/runner/scene/list", SceneList)().objects
            plank = next(item.pose for item in listed if item.name == "plank")
            self.assertAlmostEqual(plank.position.y, -0.7)
            self.assertAlmostEqual(2.0 * math.atan2(plank.orientation.z, plank.orientation.w), yaw, places=6)

    def test_the_tool_says_what_it_can_not_do(self) -> None:
        for words, said in (
            (("remove", "nothing"), "no object 'nothing'"),
            (("add", "a", "--box", "1", "1", "0", "--at", "0", "0", "0"), "above 0"),
            (("add", "a", "--sphere", "1", "--at", "0", "0", "0", "--frame", "moon"), "no link 'moon'"),
            (("add", "forearm_link", "--sphere", "1", "--at", "0", "0", "0"), "link of the robot"),
            (("move", "a", "--at", "0", "0", "0"), "no object 'a'"),
        ):
            code, output = scene(*words)
            self.assertEqual(code, 1)
            self.assertIn(said, output)
            self.assertNotIn("Traceback", output)
        self.assertEqual(scene("add", "a")[0], 2)


if __name__ == "__main__":
    rospy.init_node("scene_test")
    rostest.rosrun("iter_runner", "scene_test", SceneTest)
