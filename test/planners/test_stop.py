"""How soon a stop is obeyed in the midst of a move, and how hard the arm brakes."""

from __future__ import annotations

from typing import List

import numpy as np
import pytest
from goals import pose
from workcell_arm import WorkcellArm

from iter_runner.planners.base import MoveGoal, Planner
from iter_runner.robot.table import Robot
from iter_runner.run_control import Stopped
from iter_runner.sim.controller import SafetyMode

BRAKING = 10.0
"""rad/s² at most of any joint; stopj asks for 5."""


@pytest.mark.parametrize("moment", [0.3, 0.6, 0.9])
def test_the_arm_brakes_from_the_next_cycle_on(planner: Planner, arm: WorkcellArm, robot: Robot, moment: float) -> None:
    side = 0.35 if robot.name == "ur5" else 0.25
    speeds: List[float] = []

    def stop() -> None:
        speeds.append(float(np.max(np.abs(arm.reading().velocities))))
        arm.control.stop()
        arm.halt()  # as the runner's service does, whatever thread the move is in

    arm.at = [(moment, stop)]
    with pytest.raises(Stopped):
        planner.move(arm, np.array(robot.tuck), MoveGoal(pose(-side, side, 0.3)), arm.control)
    for _ in range(200):
        arm.cycle()
    cycle = arm.controller.cycle
    times = np.array([time for time, _ in arm.history])
    joints = np.array([q for _, q in arm.history])
    velocities = np.diff(joints, axis=0) / cycle
    fastest = np.max(np.abs(velocities), axis=1)
    asked = int(np.searchsorted(times, moment - 1e-9))
    assert speeds[0] > 0.05
    assert fastest[asked + 1] < fastest[asked - 1]
    braked = np.abs(np.diff(velocities[asked:], axis=0)) / cycle
    assert np.max(braked) <= BRAKING + 1e-6
    assert np.all(np.diff(fastest[asked + 1 :]) <= 1e-9)
    assert fastest[asked + 2 + int(speeds[0] / 5.0 / cycle) + 2] < 1e-6
    assert arm.controller.safety_mode == SafetyMode.NORMAL
