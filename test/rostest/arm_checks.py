"""What every arm behind its driver has to do, with the simulator in the driver's place."""

from __future__ import annotations

import threading
import unittest
from typing import Any, Callable, List, Optional, Sequence

import numpy as np
import rospy
from numpy.typing import NDArray
from simulator_client import inject
from std_msgs.msg import String

from iter_runner.kinematics import Chain, load_chain
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.planners.base import MoveGoal, Planner, path_hash
from iter_runner.planners.line import pose_error
from iter_runner.planners.table import load_planner
from iter_runner.robot.arm import JointPath
from iter_runner.robot.ros_arm import RosArm, connect_arm
from iter_runner.robot.table import Robot
from iter_runner.run_control import Fault, RunControl, Stopped

Pose = NDArray[np.float64]
SLOW = {"speed": 0.3}  # the simulation runs ahead of a test on a busy machine


class ArmChecks(unittest.TestCase):
    """Checks that a test class with a ``robot`` inherits; ``planners`` are tried on it."""

    robot: Robot
    planners: Sequence[str] = ("relaxed_ik", "static")
    chain: Chain
    arm: RosArm

    @classmethod
    def setUpClass(cls) -> None:
        cls.chain = load_chain(cls.robot)
        cls.clock = study_clock()
        cls.arm = connect_arm(cls.robot, cls.clock)
        cls.loaded = {name: load_planner(name, cls.robot, cls.chain) for name in cls.planners}
        cls.inject = rospy.Publisher("/simulator/inject_fault", String, queue_size=10)

    def setUp(self) -> None:
        self.control = RunControl(self.clock)
        self.arm.report_fault = self.control.report_fault
        self.arm.make_ready(self.control, 60.0)

    def tearDown(self) -> None:
        self.control.stop()
        self.arm.report_fault = None
        self.arm.halt()
        self.stand()

    def stand(self) -> NDArray[np.float64]:
        self.arm.wait_for_reading(
            lambda reading: bool(np.max(np.abs(reading.velocities)) < 1e-4), RunControl(self.clock)
        )
        return self.arm.reading().positions

    def goal(self, x: float, y: float, z: float) -> Pose:
        """The tucked flange pose, moved by metres."""
        pose = np.array(self.chain.fk(np.asarray(self.robot.tuck)))
        pose[:3, 3] += x, y, z
        return pose

    def move(self, name: str, start: NDArray[np.float64], goal: Pose, **options: Any) -> JointPath:
        path = self.loaded[name].move(self.arm, start, MoveGoal(goal, options), self.control)
        distance, turn = pose_error(self.chain.fk(self.arm.reading().positions), goal)
        self.assertLess(distance, 1e-3)
        self.assertLess(np.degrees(turn), 0.2)
        return path

    def to(self, goal: Pose) -> NDArray[np.float64]:
        """Goes there; the joints commanded."""
        end: NDArray[np.float64] = self.move("static", self.stand(), goal).positions[-1]
        return end

    def in_background(self, name: str, start: NDArray[np.float64], goal: Pose) -> Callable[[], Any]:
        """A slow move in a thread of its own; what is returned gives what it returned or raised."""
        outcome: List[Any] = []

        def work() -> None:
            try:
                outcome.append(self.move(name, start, goal, **SLOW))
            except (Fault, Stopped, AssertionError) as error:
                outcome.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()

        def join() -> Any:
            thread.join(60.0)
            self.assertFalse(thread.is_alive(), "the move does not end")
            return outcome[0]

        return join

    def wait_for_motion(self, distance: float = 0.05) -> None:
        start = self.arm.reading().positions
        self.arm.wait_for_reading(
            lambda reading: bool(np.max(np.abs(reading.positions - start)) > distance), RunControl(self.clock)
        )

    def off(self, goal: Pose) -> float:
        return pose_error(self.chain.fk(self.stand()), goal)[0]

    # The checks -----------------------------------------------------------------------------------------------------

    def test_each_planner_after_each_other(self) -> None:
        q = self.stand()
        for index, name in enumerate([*self.planners, *self.planners[::-1]]):
            q = self.move(name, q, self.goal(0.06 if index % 2 else -0.06, 0.0, 0.02 * index)).positions[-1]

    def test_a_pause_and_the_same_path_goes_on(self) -> None:
        for name in self.planners:
            q = self.to(self.goal(-0.1, 0.0, 0.0))
            goal = self.goal(0.1, 0.0, 0.03)
            planner: Planner = self.loaded[name]
            undisturbed = path_hash(planner.preview(q, MoveGoal(goal, SLOW)).positions)
            join = self.in_background(name, q, goal)
            self.wait_for_motion()
            self.control.pause()
            self.control.sleep_until(self.clock.now() + 2.0)
            stood = self.stand()
            self.control.sleep_until(self.clock.now() + 1.0)
            np.testing.assert_allclose(self.arm.reading().positions, stood, atol=1e-3)
            self.assertGreater(self.off(goal), 0.01)
            self.control.resume()
            path = join()
            self.assertIsInstance(path, JointPath, name)
            self.assertEqual(path_hash(path.positions), undisturbed)

    def test_a_stop_halts(self) -> None:
        for name in self.planners:
            goal = self.goal(0.1, 0.0, 0.03)
            join = self.in_background(name, self.to(self.goal(-0.1, 0.0, 0.0)), goal)
            self.wait_for_motion()
            self.control.stop()
            self.assertIsInstance(join(), Stopped, name)
            self.assertGreater(self.off(goal), 0.01)
            stood = self.stand()
            self.control = RunControl(self.clock)
            self.control.sleep_until(self.clock.now() + 1.0)
            np.testing.assert_allclose(self.arm.reading().positions, stood, atol=1e-4)

    def test_a_trajectory_that_stops_short_gets_its_rest(self) -> None:
        start = self.to(self.goal(-0.1, 0.0, 0.0))
        inject(self.inject, "short_trajectory:2")  # the rest stops short as well
        goal = self.goal(0.1, 0.0, 0.0)
        path = self.move("static", start, goal)
        self.assertEqual(
            path_hash(path.positions), path_hash(self.loaded["static"].preview(start, MoveGoal(goal)).positions)
        )

    def test_there_are_no_scripts(self) -> None:
        fault = self.fault_of(lambda: self.arm.script("stopj(1.0)"))
        self.assertEqual(fault.code, "no_script")
        self.assertIn(self.robot.name, fault.message)

    def fault_of(self, action: Callable[[], Optional[Any]]) -> Fault:
        with self.assertRaises(Fault) as caught:
            action()
        return caught.exception
