from __future__ import annotations

import numpy as np
import pytest
from workcell_arm import WorkcellArm

from iter_runner.kinematics import Chain, load_chain
from iter_runner.planners.base import Planner
from iter_runner.planners.table import load_planner
from iter_runner.robot.table import Robot, load_robot

ROBOTS = ("ur5", "ur3e")
PLANNERS = ("relaxed_ik", "static", "ur")


@pytest.fixture(scope="session", params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> Robot:
    return load_robot(request.param)


@pytest.fixture(scope="session")
def ur5() -> Robot:
    return load_robot("ur5")


@pytest.fixture(scope="session")
def chain(robot: Robot) -> Chain:
    return load_chain(robot)


@pytest.fixture(params=PLANNERS)
def planner(request: pytest.FixtureRequest, robot: Robot, chain: Chain) -> Planner:
    return load_planner(request.param, robot, chain)


@pytest.fixture
def arm(robot: Robot, chain: Chain) -> WorkcellArm:
    return WorkcellArm(robot, chain, np.array(robot.tuck))
