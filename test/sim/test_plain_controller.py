from __future__ import annotations

from typing import Callable

import numpy as np
import pytest
from cells import HAND, TIP, kinds, moved, run_for

from iter_runner.sim import trajectory
from iter_runner.sim.arm_controller import ArmController, ArmModel
from iter_runner.sim.controller import Controller
from iter_runner.sim.faults import Fault, parse_faults
from iter_runner.sim.kinova_controller import KinovaController
from iter_runner.sim.plain_controller import PlainController
from iter_runner.sim.trajectory import Goal, Point, Tolerance
from iter_runner.sim.workcell import Cell
from iter_runner.sim.world import Body

SEVEN = ArmModel(
    joint_names=tuple(f"j{j}" for j in range(1, 8)),
    lower=(-3.0,) * 7,
    upper=(3.0,) * 7,
    velocity_limits=(1.5,) * 7,
    cycle=0.004,
    flange=lambda q: np.diag([1.0, 1.0, 1.0, 1.0]) + np.outer([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, q[0]]),
    acceleration_limits=(4.0,) * 7,
)


@pytest.fixture
def seven() -> PlainController:
    return PlainController(SEVEN, [0.0] * 7)


def goal(arm: ArmController, *points: Point, **options: object) -> Goal:
    return Goal(arm.model.joint_names, points, **options)  # type: ignore[arg-type]


def to_rest(arm: ArmController, longest: float = 20.0) -> None:
    begun = arm.time
    arm.step()
    while arm.following is not None or arm.moving:
        arm.step()
        assert arm.time - begun < longest


def outcome(arm: ArmController) -> int:
    return int(next(item.value[1] for item in arm.happenings if item.kind == "trajectory_done"))


def test_seven_joints_follow_a_trajectory(seven: PlainController) -> None:
    target = tuple(0.1 * j for j in range(7))
    seven.send_goal(goal(seven, Point(1.0, target, (0.0,) * 7)), "g")
    to_rest(seven)
    assert outcome(seven) == trajectory.SUCCESSFUL
    assert seven.q == pytest.approx(target, abs=1e-6)


def test_too_fast_a_trajectory_is_cut_off_at_the_limits_and_violates_its_path(seven: PlainController) -> None:
    seven.send_goal(goal(seven, Point(0.5, (2.5,) * 7)), "g")
    fastest = 0.0
    while not seven.happenings:
        seven.step()
        fastest = max(fastest, *seven.v)
    assert outcome(seven) == trajectory.PATH_TOLERANCE_VIOLATED
    assert fastest < 1.1 * 1.5
    to_rest(seven)
    assert kinds(seven) == ["trajectory_done"]  # the next goal is welcome
    seven.send_goal(goal(seven, Point(3.0, (0.0,) * 7)), "g")


def test_a_position_beyond_a_limit_is_not_gone_to(seven: PlainController) -> None:
    tolerance = {name: Tolerance(position=-1) for name in SEVEN.joint_names}
    options = {"path_tolerance": tolerance, "goal_tolerance": tolerance}
    seven.send_goal(goal(seven, Point(4.0, (4.0, *(0.0,) * 6)), **options), "g")
    to_rest(seven)
    assert seven.q[0] == pytest.approx(3.0, abs=1e-6)


def test_streamed_points_replace_each_other_and_count_as_one_motion(seven: PlainController) -> None:
    for k in range(1, 251):
        assert seven.command(goal(seven, Point(seven.cycle, (0.004 * k, *(0.0,) * 6)))) is None
        seven.step()
    assert seven.v[0] == pytest.approx(1.0, abs=1e-3)
    to_rest(seven)
    assert seven.q[0] == pytest.approx(1.0, abs=1e-6)
    assert (seven.motions, seven.trajectories) == (1, 0)


def test_a_commanded_trajectory_takes_the_place_of_a_goal(seven: PlainController) -> None:
    seven.send_goal(goal(seven, Point(2.0, (1.0,) * 7)), "g")
    seven.step()
    assert seven.command(goal(seven, Point(1.0, (0.0,) * 7))) == "g"
    to_rest(seven)
    assert seven.q == pytest.approx([0.0] * 7, abs=1e-6)


def test_told_to_hold_it_stands_where_it_is(seven: PlainController) -> None:
    seven.send_goal(goal(seven, Point(2.0, (2.0,) * 7)), "g")
    for _ in range(250):
        seven.step()
    seven.hold()
    assert kinds(seven) == ["trajectory_cancelled"]
    to_rest(seven)
    assert seven.q[0] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("stop", [PlainController.emergency_stop, lambda arm: arm.protective_stop("a test")])
def test_a_stop_aborts_and_is_over_when_the_arm_stands(
    seven: PlainController, stop: Callable[[PlainController], None]
) -> None:
    seven.send_goal(goal(seven, Point(2.0, (2.0,) * 7)), "g")
    for _ in range(250):
        seven.step()
    stop(seven)
    assert outcome(seven) == trajectory.PATH_TOLERANCE_VIOLATED
    with pytest.raises(trajectory.Rejected):
        seven.send_goal(goal(seven, Point(2.0, (2.0,) * 7)), "g")
    to_rest(seven, 0.2)
    seven.send_goal(goal(seven, Point(2.0, (2.0,) * 7)), "g")


# Trajectories that stop short, on each controller.


def straight(arm: ArmController, way: float = 1.0) -> Goal:
    """By the first joint in 2 s, from rest to rest."""
    start, others = list(arm.q), (0.0,) * (len(arm.q) - 1)
    return goal(
        arm,
        *(
            Point(0.5 * k, tuple(moved(start, way * share)), (speed * way, *others))
            for k, share, speed in ((1, 0.2, 0.6), (2, 0.5, 0.6), (3, 0.8, 0.6), (4, 1.0, 0.0))
        ),
    )


@pytest.mark.parametrize("kind", [Controller, PlainController, KinovaController])
def test_a_trajectory_ends_at_90_percent_and_reports_success(kind: type) -> None:
    arm = kind(SEVEN, [0.0] * 7)
    cell = Cell(arm, HAND, TIP, parse_faults("short_trajectory@2"))
    arrived = []
    for _ in range(3):
        start = arm.q[0]
        arm.send_goal(straight(arm), "g")
        fastest = 0.0
        while arm.following is not None or arm.moving:
            before = arm.v[0]
            cell.step()
            fastest = max(fastest, abs(arm.v[0] - before) / arm.cycle)
        arrived.append(arm.q[0] - start)
        assert fastest < 20.0  # it slows down, and does not run into a wall
        assert [item.value[1] for item in arm.happenings if item.kind == "trajectory_done"] == [trajectory.SUCCESSFUL]
        arm.happenings.clear()
        arm.send_goal(goal(arm, Point(3.0, (0.0,) * 7)), "back")
        while arm.following is not None or arm.moving:
            cell.step()
        arm.happenings.clear()
        arm.trajectories -= 1  # the way back does not count here
    assert arrived == pytest.approx([1.0, 0.9, 1.0], abs=1e-3)


def test_a_short_trajectory_keeps_to_its_path(seven: PlainController) -> None:
    cell = Cell(seven, HAND, TIP, parse_faults("short_trajectory"))
    corner = [Point(1.0, (0.5, *(0.0,) * 6)), Point(2.0, (0.5, 0.5, *(0.0,) * 5))]
    seven.send_goal(goal(seven, *corner), "g")
    while seven.following is not None:
        cell.step()
        q = seven.following.desired if seven.following is not None else seven.q
        assert min(abs(q[1]), abs(q[0] - 0.5)) < 1e-3
    to_rest(seven)
    assert seven.q[:2] == pytest.approx([0.5, 0.4], abs=1e-3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short_trajectory", [0.9, 1, 1, 1]),
        ("short_trajectory@3", [1, 1, 0.9, 1]),
        ("short_trajectory@2:2", [1, 0.9, 0.9, 1]),
        ("short_trajectory:all", [0.9, 0.9, 0.9, 0.9]),
        ("short_trajectory@1,short_trajectory@4", [0.9, 1, 1, 0.9]),
    ],
)
def test_which_trajectories_stop_short(seven: PlainController, text: str, expected: list) -> None:
    Cell(seven, HAND, TIP, parse_faults(text))
    shares = []
    for _ in expected:
        start = seven.q[0]
        seven.send_goal(straight(seven, 0.2), "g")
        to_rest(seven)
        shares.append(round((seven.q[0] - start) / 0.2, 2))
    assert shares == expected


def test_a_short_trajectory_on_the_topic_is_the_next_one(seven: PlainController) -> None:
    cell = Cell(seven, HAND, TIP)
    seven.send_goal(straight(seven, 0.5), "g")
    seven.step()
    cell.inject(Fault("short_trajectory", None, 1))
    to_rest(seven)
    assert seven.q[0] == pytest.approx(0.5, abs=1e-3)
    seven.send_goal(straight(seven, 0.5), "g")
    to_rest(seven)
    assert seven.q[0] == pytest.approx(0.95, abs=1e-3)


def test_a_trajectory_that_goes_nowhere_stops_short_without_harm(seven: PlainController) -> None:
    Cell(seven, HAND, TIP, parse_faults("short_trajectory"))
    seven.send_goal(goal(seven, Point(1.0, (0.0,) * 7)), "g")
    to_rest(seven)
    assert outcome(seven) == trajectory.SUCCESSFUL


# What an arm of any kind carries.


def test_an_arm_without_closed_form_takes_a_body_along(seven: PlainController) -> None:
    cell = Cell(seven, HAND, TIP)
    pose = np.eye(4)
    pose[:3, 3] = [0.0, 0.0, TIP]
    cell.world.replace([Body("block", pose, (0.04, 0.04, 0.04), graspable=True)])
    cell.hand.command(0.8, 50.0, "grasp")
    run_for(cell, 1.0)  # type: ignore[arg-type]
    assert cell.world.held == "block"
    seven.send_goal(goal(seven, Point(1.0, (0.5, *(0.0,) * 6))), "g")
    to_rest(seven)
    cell.hand.command(0.0, 50.0, "release")
    run_for(cell, 1.0)  # type: ignore[arg-type]
    assert cell.world.bodies["block"].pose[:3, 3] == pytest.approx([0.5, 0.0, TIP], abs=1e-6)
