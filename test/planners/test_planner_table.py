from __future__ import annotations

import pytest

from iter_runner.planners.table import PlannerError, check_fit, planner_names
from iter_runner.robot.table import load_robot, robot_names


def test_every_planner_of_the_table_loads_for_every_robot_that_it_fits() -> None:
    assert {"relaxed_ik", "static", "ur"} <= set(planner_names())
    for robot in map(load_robot, robot_names()):
        for name in ("relaxed_ik", "static"):
            check_fit(robot, name)


def test_an_unknown_planner_lists_those_that_fit() -> None:
    with pytest.raises(PlannerError, match="no planner 'teleport': choose one of relaxed_ik, static, ur"):
        check_fit(load_robot("ur5"), "teleport")


def test_a_planner_that_does_not_fit_says_so() -> None:
    mico_like = load_robot("ur5").model_copy(update={"name": "mico-2", "planners": ["static"]})
    with pytest.raises(PlannerError, match="planner 'ur' does not fit robot 'mico-2': choose one of static"):
        check_fit(mico_like, "ur")
