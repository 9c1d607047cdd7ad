"""An arm that pursues a goal: no jumps, within its limits, still at the end."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np
import pytest

from iter_runner.kinematics import Box, clearance, load_chain
from iter_runner.kinematics.rotations import rotation_vector_to_matrix
from iter_runner.planners.pursuit import LONGEST_STEP, Pursuit, PursuitLimits
from iter_runner.robot.table import load_robot


class Led:
    """A pursuit and the joints that it has given, from the row's tucked pose on."""

    def __init__(self, name: str, obstacles: Tuple[Any, ...] = (), limits: Optional[PursuitLimits] = None) -> None:
        self.robot = load_robot(name)
        self.chain = load_chain(self.robot)
        self.pursuit = Pursuit(self.robot, self.chain, limits, obstacles)
        self.joints: List[Any] = [self.pursuit.joints]
        self.start = np.array(self.chain.fk(self.pursuit.joints))

    def goal(self, *offset: float, turn: Tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Any:
        goal = self.start.copy()
        goal[:3, 3] += offset or (0.0, 0.0, 0.0)
        goal[:3, :3] = rotation_vector_to_matrix(turn) @ goal[:3, :3]
        return goal

    def until_settled(self, goal: Any, most: int = 3000) -> int:
        """Ticks until the joints stand for good."""
        for tick in range(most):
            self.joints.append(self.pursuit.tick(goal))
            if tick > 20 and self.pursuit.settled:
                return tick
        raise AssertionError(f"not settled after {most} ticks")

    def ticks(self, goal: Any, count: int) -> None:
        self.joints.extend(self.pursuit.tick(goal) for _ in range(count))

    def off(self, goal: Any) -> float:
        return self.pursuit.off(goal)[0]

    def travels(self) -> Any:
        tools = np.array([self.chain.fk(joints)[:3, 3] for joints in self.joints])
        return np.linalg.norm(np.diff(tools, axis=0), axis=1)

    def check(self) -> None:
        joints = np.array(self.joints)
        speeds = np.abs(np.diff(joints, axis=0)) / self.pursuit.period
        assert np.all(speeds <= self.chain.velocity_limits)
        assert np.all(joints >= self.chain.lower - 1e-9) and np.all(joints <= self.chain.upper + 1e-9)
        assert np.max(self.travels()) <= LONGEST_STEP + 1e-9

    def accelerations(self) -> Any:
        return np.abs(np.diff(np.array(self.joints), n=2, axis=0)) / self.pursuit.period**2


@pytest.mark.parametrize("name", ["ur5", "ur3e"])
def test_reaches_a_goal_given_at_once(name: str) -> None:
    led = Led(name)
    for goal in (led.goal(0.1, 0.05, -0.03), led.goal(0.05, 0.05, 0.0, turn=(0.4, 0.0, 0.3)), led.goal()):
        led.until_settled(goal)
        assert led.off(goal) < 1e-3
    led.check()
    assert np.all(led.accelerations() <= np.array(led.robot.limits.acceleration) + 1e-6)


def test_speed_is_the_one_asked_for() -> None:
    led = Led("ur5", limits=PursuitLimits(speed=0.1))
    led.until_settled(led.goal(0.2, 0.0, 0.0))
    assert 0.095 < np.max(led.travels()) / led.pursuit.period < 0.105


def test_goal_out_of_reach_is_held_at_the_nearest_and_left_again() -> None:
    led = Led("ur5")
    far = led.goal(0.0, 1.5, 0.2)
    led.until_settled(far)
    held = np.array(led.pursuit.joints)
    led.ticks(far, 200)
    assert led.pursuit.off(led.chain.fk(held))[0] < 2e-3  # it may still creep towards the very nearest
    # The wrist's sphere about the shoulder, seen from the goal: nothing of the arm gets nearer with the tool down.
    assert 0.85 < led.chain.fk(held)[1, 3] < 0.95
    led.until_settled(led.goal())
    assert led.off(led.goal()) < 1e-3
    led.check()


def test_no_goal_brings_the_arm_to_rest() -> None:
    led = Led("ur5")
    led.ticks(led.goal(0.3, 0.0, 0.1), 60)
    there = np.array(led.chain.fk(led.pursuit.joints))
    assert led.until_settled(None) < 100
    assert np.linalg.norm(led.chain.fk(led.pursuit.joints)[:3, 3] - there[:3, 3]) < 0.05
    led.check()


def test_keeps_off_the_table() -> None:
    pose = np.eye(4)
    pose[2, 3] = -0.5
    table = Box("table", pose, (4.0, 4.0, 1.0))
    led = Led("ur5", (table,))
    led.until_settled(led.goal(0.0, 0.0, -0.5))
    assert min(clearance(led.chain, joints, [table]).distance for joints in led.joints[::5]) > 0.0
    led.until_settled(led.goal())
    assert led.off(led.goal()) < 1e-3
    led.check()


def test_same_goals_same_joints() -> None:
    runs = []
    for _ in range(2):
        led = Led("ur5")
        led.ticks(led.goal(0.2, 0.0, 0.1), 80)
        led.ticks(led.goal(-0.1, 0.1, 0.0), 80)
        runs.append(np.array(led.joints))
    assert np.array_equal(runs[0], runs[1])
