from __future__ import annotations

import logging
from typing import Any, List

import numpy as np
import pytest
from goals import pose

from iter_runner.kinematics import load_chain
from iter_runner.planners import profile, routes
from iter_runner.planners.base import MoveGoal
from iter_runner.planners.profile import straight, time_optimal
from iter_runner.planners.table import load_planner
from iter_runner.robot.table import load_robot

VELOCITY, ACCELERATION = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 9.0])


def worst_shares(found: profile.Profile) -> tuple[float, float]:
    times, positions = found.sample(1e-3)
    speeds = np.diff(positions, axis=0) / np.diff(times)[:, None]
    rises = np.diff(speeds, axis=0) / np.diff(times)[1:, None]
    return float(np.max(np.abs(speeds) / VELOCITY)), float(np.max(np.abs(rises) / ACCELERATION))


@pytest.mark.parametrize("way", [[2.0, 0.5, -0.3], [0.1, 0.0, 0.0], [0.0, 0.4, -3.0]])
def test_a_straight_way_is_as_fast_as_its_limits_allow(way: List[float]) -> None:
    start = np.array([0.3, -0.2, 1.0])
    found = straight(start, start + way, VELOCITY, ACCELERATION)
    speed, rise = worst_shares(found)
    assert speed <= 1.0 + 1e-6
    assert rise == pytest.approx(1.0, abs=1e-3)
    times, positions = found.sample(0.008)
    np.testing.assert_allclose(positions[[0, -1]], [start, start + way], atol=1e-12)
    assert np.all(np.diff(found.phases(times)) > 0.0)
    assert found.stretched(3.0).duration == pytest.approx(3.0 * found.duration)


def test_a_bent_way_keeps_its_limits_and_takes_longer_than_its_parts() -> None:
    turn = np.linspace(0.0, 3.0, 40)
    way = np.column_stack([np.sin(turn), 1.0 - np.cos(turn), 0.2 * turn])
    found = time_optimal(way, VELOCITY, ACCELERATION)
    speed, rise = worst_shares(found)
    assert 0.9 < max(speed, rise) < 1.1
    np.testing.assert_allclose(found.positions(np.array([0.0, found.duration])), way[[0, -1]], atol=1e-9)
    assert found.duration > straight(way[0], way[-1], VELOCITY, ACCELERATION).duration


def test_nothing_to_move_is_an_error() -> None:
    with pytest.raises(ValueError, match="no way"):
        straight(np.zeros(3), np.zeros(3), VELOCITY, ACCELERATION)


@pytest.mark.parametrize("name", ["relaxed_ik", "static"])
def test_a_line_is_timed_once_and_nothing_is_formatted_for_a_log(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load_robot("ur5")
    planner = load_planner(name, robot, load_chain(robot))
    timed: List[int] = []
    optimal = routes.time_optimal

    def count(positions: Any, *others: Any) -> Any:
        timed.append(len(positions))
        return optimal(positions, *others)

    monkeypatch.setattr(routes, "time_optimal", count)
    monkeypatch.setattr(logging.getLogger("toppra").manager, "disable", logging.NOTSET)
    path = planner.preview(np.array(robot.tuck), MoveGoal(pose(-0.35, 0.35, 0.3)))
    assert len(path.times) > 20
    assert len(timed) == 1
    assert not logging.getLogger("toppra.algorithm").isEnabledFor(logging.WARNING)
