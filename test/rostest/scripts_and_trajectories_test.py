#!/usr/bin/env python3
"""Programs on the controller and trajectories in one run, and streams over RTDE: each brings back what it needs.

The simulator refuses trajectories while External Control does not run, as the real driver does.
"""

from __future__ import annotations

import importlib.machinery
import sys
import threading
import types
import unittest
from typing import Any, Dict, List

import numpy as np
import rospy
from runner_client import PATIENCE, PLANS, RunnerClient, move, plan_text
from std_msgs.msg import Bool, String

import rostest
from iter_runner.kinematics import load_chain
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.planners.base import MoveGoal
from iter_runner.planners.line import pose_error
from iter_runner.planners.table import load_planner
from iter_runner.robot.ros_arm import connect_arm
from iter_runner.robot.table import load_robot, robot_driver
from iter_runner.robot.transport import RTDE_MODULE, streaming_robot
from iter_runner.robot.urscript import STOP, servoj
from iter_runner.run_control import RunControl, Stopped

ROBOT = load_robot("ur5")
CHAIN = load_chain(ROBOT)
SCRIPTS = robot_driver(ROBOT).topic("script_command")


def publish(topic: str, text: str) -> Dict[str, Any]:
    return {
        "name": "publish",
        "topic": topic,
        "message_module": "std_msgs",
        "message_type": "String",
        "message_params": {"data": text},
    }


def wait(seconds: float) -> Dict[str, Any]:
    return {"name": "wait", "condition": "time", "value": seconds}


class RTDEControlInterface:
    """The library's class, whose program the simulator runs: servoj by servoj over the script topic."""

    made: List[RTDEControlInterface] = []

    def __init__(self, hostname: str, frequency: float = -1.0, *_: Any) -> None:
        self.hostname, self.frequency = hostname, frequency
        self.stops = 0
        self.targets = 0
        self._scripts = rospy.Publisher(SCRIPTS, String, queue_size=100, tcp_nodelay=True)
        while self._scripts.get_num_connections() == 0:
            rospy.sleep(0.01)
        self._scripts.publish(String('textmsg("rtde")\n'))  # its program displaces what runs
        self.made.append(self)

    def servoJ(  # noqa: N802
        self, q: List[float], _speed: float, _acceleration: float, time: float, lookahead: float, gain: float
    ) -> bool:
        self.targets += 1
        self._scripts.publish(String(servoj(np.array(q), time, lookahead, gain) + "\n"))
        return True

    def servoStop(self, a: float = 10.0) -> bool:  # noqa: N802
        self.stops += 1
        self._scripts.publish(String(STOP + "\n"))
        return True

    def isConnected(self) -> bool:  # noqa: N802
        return True

    def isProgramRunning(self) -> bool:  # noqa: N802
        return True

    def disconnect(self) -> None:
        self._scripts.unregister()


class ScriptsAndTrajectoriesTest(unittest.TestCase):
    client: RunnerClient

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = RunnerClient()
        cls.running: List[bool] = []
        cls.changed = threading.Condition()
        rospy.Subscriber(robot_driver(ROBOT).topic("robot_program_running"), Bool, cls.on_running)
        cls.scripts = rospy.Publisher(SCRIPTS, String, queue_size=10, tcp_nodelay=True)

    @classmethod
    def on_running(cls, message: Bool) -> None:
        with cls.changed:
            cls.running.append(message.data)
            cls.changed.notify_all()

    def until_running(self, value: bool) -> None:
        with self.changed:
            self.assertTrue(self.changed.wait_for(lambda: self.running[-1:] == [value], PATIENCE), self.running)

    def test_a_plan_that_mixes_programs_with_trajectories(self) -> None:
        script = {"name": "publish_string_from_file", "topic": SCRIPTS, "filepath": str(PLANS / "nudge.script")}
        plan = plan_text(
            move(0.15, 0.4, 0.35),
            publish(SCRIPTS, 'textmsg("between two moves")'),
            move(-0.1, 0.4, 0.3),
            script,
            wait(3.0),
            move(0.1, 0.45, 0.35),
            script,  # and the next move comes while it runs
            move(0.0, 0.4, 0.35),
            publish("/ur_driver/URScript", "set_digital_out(0, True)"),
            publish(SCRIPTS, "set_digital_out(0, False)"),
            move(0.15, 0.4, 0.35),
            move(-0.1, 0.4, 0.3),
        )
        self.running.clear()
        result = self.client.run(plan_json=plan)
        self.assertEqual((result.outcome, result.steps_done), ("finished", 12), result.message)
        self.assertEqual(self.client.of_kind("fault"), [])
        moves = self.client.data("move_finished")
        self.assertEqual(len(moves), 6)
        for each in moves:
            self.assertLess(each["position_error"], 1e-3)
        self.until_running(True)
        self.assertGreaterEqual(self.running.count(False), 3)

    def test_another_nodes_program_before_a_move(self) -> None:
        for seconds in (0.0, 1.0):
            while self.scripts.get_num_connections() == 0:
                rospy.sleep(0.01)
            self.scripts.publish(String('textmsg("somebody else")\n'))
            rospy.sleep(seconds)
            result = self.client.run(plan_json=plan_text(move(0.1, 0.45, 0.35), move(-0.1, 0.4, 0.35)))
            self.assertEqual(result.outcome, "finished", result.message)

    def test_streams_over_rtde_and_trajectories(self) -> None:
        """With the library's class replaced by one whose program the simulator runs."""
        module = types.ModuleType(RTDE_MODULE)
        module.__spec__ = importlib.machinery.ModuleSpec(RTDE_MODULE, None)
        module.RTDEControlInterface = RTDEControlInterface  # type: ignore[attr-defined]
        sys.modules[RTDE_MODULE] = module
        made = RTDEControlInterface.made
        clock = study_clock()
        control = RunControl(clock)
        arm = connect_arm(ROBOT, clock, "rtde", "10.0.0.9", control.report_fault)
        arm.make_ready(control, 60.0)
        streamer = load_planner("relaxed_ik", streaming_robot(ROBOT, "rtde"), CHAIN)
        static = load_planner("static", ROBOT, CHAIN)
        q = arm.reading().positions
        for index, planner in enumerate((streamer, streamer, static, streamer, static)):
            goal = np.array(CHAIN.fk(np.asarray(ROBOT.tuck)))
            goal[:3, 3] += (0.08 if index % 2 else -0.08, 0.0, 0.01 * index)
            path = planner.move(arm, q, MoveGoal(goal, {"speed": 0.5}), control)
            q = path.positions[-1]
            self.assertLess(pose_error(CHAIN.fk(arm.reading().positions), goal)[0], 1e-3)
            if planner is streamer:
                self.assertAlmostEqual(float(path.times[1]), 1.0 / ROBOT.control_rate)
                self.assertGreaterEqual(made[-1].targets, len(path.times) - 1)
        self.assertEqual([(each.hostname, each.frequency) for each in made], [("10.0.0.9", 125.0)] * 2)
        self.assertEqual([each.stops for each in made], [2, 1])

        # A stop halts the arm at once, and a later stream brings its program back.
        outcome: List[Any] = []

        def work() -> None:
            try:
                outcome.append(
                    streamer.move(arm, q, MoveGoal(np.array(CHAIN.fk(np.asarray(ROBOT.tuck))), {"speed": 0.1}), control)
                )
            except Stopped as error:
                outcome.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        start = arm.reading().positions
        arm.wait_for_reading(lambda reading: bool(np.max(np.abs(reading.positions - start)) > 0.02), RunControl(clock))
        control.stop()
        thread.join(PATIENCE)
        self.assertIsInstance(outcome[0], Stopped)
        control = RunControl(clock)
        arm.wait_for_reading(lambda reading: bool(np.max(np.abs(reading.velocities)) < 1e-4), control)
        q = arm.reading().positions
        streamer.move(arm, q, MoveGoal(np.array(CHAIN.fk(np.asarray(ROBOT.tuck)))), control)
        self.assertEqual(len(made), 4)
        arm.close()


if __name__ == "__main__":
    rospy.init_node("scripts_and_trajectories_test")
    rostest.rosrun("iter_runner", "scripts_and_trajectories_test", ScriptsAndTrajectoriesTest, sys.argv)
