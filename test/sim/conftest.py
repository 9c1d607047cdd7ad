from __future__ import annotations

from typing import Callable

import pytest
from cells import HAND, TIP, TUCK

from iter_runner.robot.table import load_robot
from iter_runner.sim.arm_model import arm_model
from iter_runner.sim.controller import ArmModel, Controller
from iter_runner.sim.workcell import Workcell


@pytest.fixture(scope="session")
def ur5() -> ArmModel:
    return arm_model(load_robot("ur5"))


@pytest.fixture
def controller(ur5: ArmModel) -> Controller:
    return Controller(ur5, TUCK)


@pytest.fixture
def cell(ur5: ArmModel) -> Workcell:
    return Workcell(ur5, HAND, TIP, TUCK)


@pytest.fixture
def make_cell(ur5: ArmModel) -> Callable[..., Workcell]:
    def make(**options: object) -> Workcell:
        return Workcell(ur5, HAND, TIP, TUCK, **options)  # type: ignore[arg-type]

    return make
