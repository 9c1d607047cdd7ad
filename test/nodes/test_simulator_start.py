from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iter_runner.nodes.simulator import _default_start
from iter_runner.robot.table import load_robot, robot_names
from iter_runner.sim.arm_model import arm_model

SEVEN = Path(__file__).resolve().parents[1] / "rostest" / "arms" / "seven.yaml"


@pytest.mark.parametrize("name", [*robot_names(), str(SEVEN)])
def test_every_arm_is_switched_on_off_its_tuck_pose_and_inside_its_limits(name: str) -> None:
    robot = load_robot(name)
    model = arm_model(robot)
    start = np.array(_default_start(robot, model))
    assert len(start) == len(robot.joints)
    assert np.all(start >= model.lower)
    assert np.all(start <= model.upper)
    assert np.all(np.abs(start - robot.tuck) >= 0.15)
