from __future__ import annotations

import math
from typing import Iterator, List

import numpy as np
import pytest
from cells import TUCK, kinds, logged, moved
from hypothesis import given, settings
from hypothesis import strategies as st

from iter_runner.sim import trajectory
from iter_runner.sim.controller import (
    EXTERNAL_LOOKAHEAD,
    ArmModel,
    Controller,
    ProgramError,
    ProtectiveStop,
    RobotMode,
    SafetyMode,
    Trapezoid,
)
from iter_runner.sim.trajectory import Goal, Point, Rejected, Tolerance


def goal(controller: Controller, *points: Point, **options: object) -> Goal:
    return Goal(controller.model.joint_names, points, **options)  # type: ignore[arg-type]


def steps(controller: Controller, seconds: float) -> None:
    for _ in range(round(seconds / controller.cycle)):
        controller.step()


def to_the_end(controller: Controller, longest: float = 30.0) -> float:
    """Steps until neither a program nor a trajectory runs and the arm stands; the s that it took."""
    begun = controller.time
    while controller.program is not None or controller.following is not None or controller.moving:
        controller.step()
        assert controller.time - begun < longest
    return controller.time - begun


def result(controller: Controller) -> int:
    return next(item.value[1] for item in controller.happenings if item.kind == "trajectory_done")


# Trajectories.


def test_a_trajectory_arrives_on_time_and_lags_like_external_control(controller: Controller) -> None:
    target = moved(TUCK, 0.8)
    controller.send_goal(goal(controller, Point(2.0, tuple(target))), "g")
    steps(controller, 1.0)
    assert controller.v[0] == pytest.approx(0.4, abs=1e-6)
    assert TUCK[0] + 0.4 - controller.q[0] == pytest.approx(0.4 * EXTERNAL_LOOKAHEAD, abs=1e-6)
    steps(controller, 1.2)
    assert result(controller) == trajectory.SUCCESSFUL
    to_the_end(controller)
    assert controller.q == pytest.approx(target, abs=1e-9)


def test_the_speed_slider_stretches_a_trajectory(controller: Controller) -> None:
    controller.slider = 0.5
    steps(controller, 0.2)
    assert controller.scaling == 0.5
    controller.send_goal(goal(controller, Point(1.0, tuple(moved(TUCK, 0.4)))), "g")
    steps(controller, 1.9)
    assert controller.following is not None
    steps(controller, 0.3)
    assert result(controller) == trajectory.SUCCESSFUL


def test_a_new_goal_joins_the_motion_of_the_old_one(controller: Controller) -> None:
    controller.send_goal(goal(controller, Point(2.0, tuple(moved(TUCK, 0.8)))), "first")
    steps(controller, 1.0)
    before = controller.v[0]
    assert controller.send_goal(goal(controller, Point(1.0, tuple(moved(TUCK, 0.8)), (0.0,) * 6)), "second") == "first"
    controller.step()
    assert controller.v[0] == pytest.approx(before, abs=0.02)
    to_the_end(controller)
    assert controller.q[0] == pytest.approx(TUCK[0] + 0.8, abs=1e-9)


def test_cancel_freezes_the_set_point_within_a_cycle(controller: Controller) -> None:
    controller.send_goal(goal(controller, Point(2.0, tuple(moved(TUCK, 0.8)))), "g")
    steps(controller, 1.0)
    at, speed = controller.q[0], controller.v[0]
    assert not controller.cancel_goal("another")
    assert controller.cancel_goal("g")
    to_the_end(controller)
    assert 0.0 < controller.q[0] - at <= speed * EXTERNAL_LOOKAHEAD * 1.05


def test_a_tight_path_tolerance_is_violated_by_the_lag(controller: Controller) -> None:
    tolerance = {controller.model.joint_names[0]: Tolerance(position=0.001)}
    controller.send_goal(goal(controller, Point(1.0, tuple(moved(TUCK, 0.8))), path_tolerance=tolerance), "g")
    steps(controller, 0.2)
    assert result(controller) == trajectory.PATH_TOLERANCE_VIOLATED
    to_the_end(controller)
    assert controller.q[0] < TUCK[0] + 0.1


def test_a_tight_goal_tolerance_is_violated_where_there_is_no_time_to_settle(controller: Controller) -> None:
    tolerance = {controller.model.joint_names[0]: Tolerance(position=1e-6)}
    options = {"goal_tolerance": tolerance, "goal_time_tolerance": 0.01}
    controller.send_goal(goal(controller, Point(0.5, tuple(moved(TUCK, 0.8))), **options), "g")
    steps(controller, 1.0)
    assert result(controller) == trajectory.GOAL_TOLERANCE_VIOLATED
    text = next(item.value[2] for item in controller.happenings if item.kind == "trajectory_done")
    assert controller.model.joint_names[0] in text


def test_goals_are_refused_while_external_control_is_not_running(controller: Controller) -> None:
    controller.start_program(controller.sleep(0.1))
    for _ in range(2):  # while the program runs, and after it
        with pytest.raises(Rejected) as caught:
            controller.send_goal(goal(controller, Point(1.0, tuple(TUCK))), "g")
        assert caught.value.code == trajectory.INVALID_GOAL
        assert "Controller is not running" in str(caught.value)
        steps(controller, 0.2)
    assert controller.start_external_control()[0]
    controller.send_goal(goal(controller, Point(1.0, tuple(TUCK))), "g")


def test_a_script_cancels_the_goal_and_says_that_external_control_is_over(controller: Controller) -> None:
    controller.send_goal(goal(controller, Point(2.0, tuple(moved(TUCK, 0.8)))), "g")
    steps(controller, 1.0)
    controller.start_program(controller.stopj(2.0))
    assert kinds(controller) == ["program_running", "trajectory_cancelled"]
    assert controller.happenings[0].value is False
    to_the_end(controller)


@pytest.mark.parametrize("speed", [4.0, -4.0])
def test_too_fast_a_trajectory_is_a_protective_stop_with_braking(controller: Controller, speed: float) -> None:
    controller.send_goal(goal(controller, Point(0.5, tuple(moved(TUCK, 0.5 * speed)))), "g")
    steps(controller, 0.1)
    assert controller.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert "shoulder_pan_joint: commanded speed" in logged(controller)
    assert "trajectory_cancelled" in kinds(controller)
    to_the_end(controller)


def test_a_trajectory_beyond_a_limit_is_a_protective_stop_short_of_it(controller: Controller) -> None:
    controller.send_goal(goal(controller, Point(10.0, tuple(moved(TUCK, 8.0)))), "g")
    to_the_end(controller)
    assert controller.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert controller.q[0] <= controller.model.upper[0] + 0.05
    assert "outside its limits" in logged(controller)


# After a stop.


def test_a_stop_has_to_be_unlocked_and_the_program_sent_again(ur5: ArmModel) -> None:
    controller = Controller(ur5, TUCK, unlock_delay=5.0)
    assert not controller.unlock_protective_stop()[0]
    controller.start_program(controller.movej(moved(TUCK, 1.0), 1.4, 1.05))
    steps(controller, 0.5)
    controller.protective_stop("test")
    assert not controller.start_program(controller.sleep(1.0))
    assert not controller.start_external_control()[0]
    steps(controller, 1.0)
    assert not controller.moving
    assert not controller.unlock_protective_stop()[0]
    steps(controller, 4.0)
    assert controller.unlock_protective_stop()[0]
    assert controller.safety_mode == SafetyMode.NORMAL
    with pytest.raises(Rejected):
        controller.send_goal(goal(controller, Point(1.0, tuple(controller.q))), "g")
    assert controller.start_external_control()[0]
    controller.send_goal(goal(controller, Point(1.0, tuple(controller.q))), "g")


def test_a_stream_into_a_stopped_arm_is_logged_once(controller: Controller) -> None:
    controller.protective_stop("test")
    controller.happenings.clear()
    for _ in range(100):
        assert not controller.start_program(controller.servoj(TUCK, 0.008, 0.1, 300))
        controller.step()
    assert kinds(controller) == ["log"]


def test_an_emergency_stop_takes_the_power(controller: Controller) -> None:
    controller.emergency_stop()
    assert controller.robot_mode == RobotMode.POWER_OFF
    assert not controller.brake_release()[0]
    assert not controller.unlock_protective_stop()[0]
    assert controller.restart_safety()[0]
    assert controller.power_on()[0]
    assert controller.robot_mode == RobotMode.IDLE
    assert not controller.start_external_control()[0]
    assert controller.brake_release()[0]
    assert controller.start_external_control()[0]
    assert controller.robot_mode == RobotMode.RUNNING


def test_power_off_ends_what_runs(controller: Controller) -> None:
    controller.power_off()
    assert "program_running" in kinds(controller)
    assert not controller.start_program(controller.sleep(1.0))


def test_external_control_catches_an_arm_that_still_moves(controller: Controller) -> None:
    controller.start_program(controller.movej(moved(TUCK, 1.0), 1.4, 1.05))
    steps(controller, 0.8)
    at, speed = controller.q[0], controller.v[0]
    controller.start_external_control()
    controller.send_goal(goal(controller, Point(1.0, tuple(moved(controller.q, 0.1)))), "g")  # no need to wait
    controller.cancel_goal("g")
    to_the_end(controller)
    assert controller.q[0] - at == pytest.approx(speed * EXTERNAL_LOOKAHEAD, abs=0.01)


# Motions of programs.


@given(st.floats(1e-6, 10), st.floats(0.01, 5), st.floats(0.01, 5))
def test_a_trapezoid_keeps_to_its_limits(length: float, v: float, a: float) -> None:
    profile = Trapezoid(length, v, a)
    times = np.linspace(0, profile.duration, 400)
    way = np.array([profile.way(time) for time in times])
    speed = np.diff(way) / np.diff(times)
    assert way[0] == 0.0
    assert way[-1] == pytest.approx(length)
    assert speed.min() >= -1e-9
    assert speed.max() <= v * (1 + 1e-6)
    assert np.abs(np.diff(speed) / np.diff(times)[1:]).max() <= a * (1 + 1e-3)


def test_movej_is_a_synchronous_trapezoid_that_ends_exactly(controller: Controller) -> None:
    target = moved(TUCK, 1.0, 0.5)
    controller.start_program(controller.movej(target, 1.4, 1.05))
    fastest = 0.0
    while controller.program is not None:
        controller.step()
        fastest = max(fastest, controller.v[0])
        share = (controller.q[0] - TUCK[0]) / 1.0
        assert (controller.q[1] - TUCK[1]) / 0.5 == pytest.approx(share, abs=1e-9)
    assert controller.q == target
    assert not controller.moving
    assert fastest == pytest.approx(1.05, abs=1e-9)
    assert controller.time == pytest.approx(1.0 / 1.05 + 1.05 / 1.4, abs=0.03)


def test_movej_takes_the_time_that_it_is_given(controller: Controller) -> None:
    controller.start_program(controller.movej(moved(TUCK, 0.5), 1.4, 1.05, t=3.0))
    assert to_the_end(controller) == pytest.approx(3.0, abs=0.02)


def test_movej_keeps_to_the_slider(controller: Controller) -> None:
    controller.slider = controller.scaling = 0.5
    controller.start_program(controller.movej(moved(TUCK, 0.5), 1.4, 1.05))
    whole = 0.5 / 1.05 + 1.05 / 1.4 if 0.5 > 1.05**2 / 1.4 else 2 * math.sqrt(0.5 / 1.4)
    assert to_the_end(controller) == pytest.approx(2 * whole, abs=0.03)


def test_movej_beyond_the_limits_stops_before_it_moves(controller: Controller) -> None:
    controller.start_program(controller.movej([7.0, *TUCK[1:]], 1.4, 1.05))
    controller.step()
    assert controller.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert controller.q == TUCK


def test_too_fast_a_movej_is_a_protective_stop(controller: Controller) -> None:
    controller.start_program(controller.movej(moved(TUCK, 3.0), 20.0, 6.0))
    to_the_end(controller)
    assert controller.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert controller.q[0] < TUCK[0] + 2.9


def test_movel_keeps_the_tool_on_its_line(controller: Controller) -> None:
    start = controller.forward(controller.q)
    target = start.copy()
    target[:3, 3] += [0.1, 0.0, -0.1]
    controller.start_program(controller.movel(target, 1.2, 0.25))
    length = math.hypot(0.1, 0.1)
    while controller.program is not None:
        controller.step()
        pose = controller.forward(controller.q)
        along = pose[:3, 3] - start[:3, 3]
        assert along[0] == pytest.approx(-along[2], abs=1e-9)
        assert along[1] == pytest.approx(0.0, abs=1e-9)
        assert pose[:3, :3] == pytest.approx(start[:3, :3], abs=1e-9)
    assert controller.forward(controller.q) == pytest.approx(target, abs=1e-9)
    assert controller.time == pytest.approx(length / 0.25 + 0.25 / 1.2, abs=0.02)


def test_movel_moves_the_tool_point(controller: Controller) -> None:
    controller.tool_offset = np.eye(4)
    controller.tool_offset[2, 3] = 0.15
    start = controller.forward(controller.q)
    controller.start_program(controller.movel(start, 1.2, 0.25))
    controller.step()
    assert controller.program is None
    assert controller.q == TUCK
    turned = start.copy()
    turned[:3, :3] = start[:3, :3] @ np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    controller.start_program(controller.movel(turned, 1.2, 0.25))
    while controller.program is not None:
        controller.step()
        assert controller.forward(controller.q)[:3, 3] == pytest.approx(start[:3, 3], abs=1e-9)


def test_movel_out_of_reach_ends_the_program(controller: Controller) -> None:
    target = controller.forward(controller.q)
    target[:3, 3] *= 5.0
    controller.start_program(controller.movel(target, 1.2, 0.25))
    controller.step()
    assert controller.program is None
    assert controller.q == TUCK
    assert "no inverse kinematics for p[" in logged(controller)


@pytest.mark.parametrize(("lookahead", "gain"), [(0.1, 300.0), (0.03, 2000.0), (0.2, 100.0), (0.2, 2000.0)])
def test_servoj_follows_a_ramp_late_by_its_lookahead(controller: Controller, lookahead: float, gain: float) -> None:
    speed = 0.2
    for k in range(400):
        target = moved(TUCK, speed * (k + 1) * controller.cycle)
        controller.start_program(controller.servoj(target, controller.cycle, lookahead, gain))
        controller.step()
    assert controller.v[0] == pytest.approx(speed, abs=1e-4)
    assert target[0] - controller.q[0] == pytest.approx(speed * lookahead, abs=1e-4)


def test_servoj_settles_on_a_target_that_is_repeated(controller: Controller) -> None:
    target = moved(TUCK, 0.05)
    for _ in range(300):
        controller.start_program(controller.servoj(target, controller.cycle, 0.1, 300.0))
        controller.step()
    assert controller.q == pytest.approx(target, abs=1e-7)


def test_a_jump_of_a_servo_target_is_a_protective_stop(controller: Controller) -> None:
    controller.start_program(controller.servoj(moved(TUCK, 1.0), 0.5, 0.1, 300.0))
    to_the_end(controller)
    assert controller.safety_mode == SafetyMode.PROTECTIVE_STOP


def test_the_arm_brakes_where_a_stream_ends(controller: Controller) -> None:
    for k in range(100):
        target = moved(TUCK, 0.5 * k * controller.cycle)
        controller.start_program(controller.servoj(target, controller.cycle, 0.1, 300.0))
        controller.step()
    assert controller.moving
    assert to_the_end(controller) < 0.2
    assert controller.safety_mode == SafetyMode.NORMAL


@pytest.mark.parametrize("deceleration", [1.0, 5.0])
def test_stopj_brakes_evenly(controller: Controller, deceleration: float) -> None:
    controller.start_program(controller.movej(moved(TUCK, 1.0, 0.5), 1.4, 1.05))
    steps(controller, 0.9)
    controller.start_program(controller.stopj(deceleration))
    speed, ratio = controller.v[0], controller.v[1] / controller.v[0]
    while controller.program is not None:
        controller.step()
        if controller.moving:
            assert controller.v[0] == pytest.approx(speed - deceleration * controller.cycle, abs=1e-9)
            assert controller.v[1] == pytest.approx(ratio * controller.v[0], abs=1e-9)
        speed = controller.v[0]


def test_stopl_brakes_the_tool(controller: Controller) -> None:
    target = controller.forward(controller.q)
    target[2, 3] += 0.2
    controller.start_program(controller.movel(target, 1.2, 0.25))
    steps(controller, 0.5)
    controller.start_program(controller.stopl(1.2))
    assert to_the_end(controller) == pytest.approx(0.25 / 1.2, abs=0.03)


def test_a_program_that_replaces_a_moving_one_brakes_first(controller: Controller) -> None:
    controller.start_program(controller.movej(moved(TUCK, 1.0), 1.4, 1.05))
    steps(controller, 0.9)
    controller.start_program(controller.movej(TUCK, 1.4, 1.05))
    before = controller.v[0]
    while controller.program is not None:
        controller.step()
        assert abs(controller.v[0] - before) < 11.0 * controller.cycle
        before = controller.v[0]
    assert controller.q == TUCK


def test_speedj_speeds_up_and_the_arm_brakes_afterwards(controller: Controller) -> None:
    controller.start_program(controller.speedj([0.2, 0, 0, 0, 0, 0], 1.0, 1.0))
    steps(controller, 0.5)
    assert controller.v[0] == pytest.approx(0.2)
    to_the_end(controller)
    assert controller.q[0] - TUCK[0] == pytest.approx(0.2 * 0.9, abs=0.02)


def test_a_paused_program_goes_on_where_it_was(controller: Controller) -> None:
    target = moved(TUCK, 1.0)
    controller.start_program(controller.movej(target, 1.4, 1.05))
    steps(controller, 0.8)
    controller.pause()
    steps(controller, 0.5)
    at = list(controller.q)
    steps(controller, 1.0)
    assert controller.q == at
    assert not controller.moving
    assert controller.play()[0]
    to_the_end(controller)
    assert controller.q == target
    assert controller.safety_mode == SafetyMode.NORMAL


def test_pause_and_stop_of_external_control(controller: Controller) -> None:
    assert controller.pause()[0]
    assert not controller.external_control
    assert not controller.pause()[0]
    assert controller.play()[0]
    assert controller.external_control
    assert controller.stop()[0]
    assert not controller.stop()[0]


def test_a_failing_program_ends_and_is_logged(controller: Controller) -> None:
    def program() -> Iterator[None]:
        yield
        raise ProgramError("out of luck")

    controller.start_program(program())
    steps(controller, 0.1)
    assert controller.program is None
    assert "out of luck" in logged(controller)


def test_motions_are_counted_a_stream_as_one(controller: Controller) -> None:
    counted: List[int] = []
    controller.before_motion = counted.append
    controller.send_goal(goal(controller, Point(0.1, tuple(TUCK))), "g")
    to_the_end(controller)
    for _ in range(50):
        controller.start_program(controller.servoj(TUCK, controller.cycle, 0.1, 300.0))
        controller.step()
    steps(controller, 1.0)
    for _ in range(50):
        controller.start_program(controller.servoj(TUCK, controller.cycle, 0.1, 300.0))
        controller.step()
    controller.start_program(controller.movej(moved(TUCK, 0.1), 1.4, 1.05))
    to_the_end(controller)
    assert counted == [1, 2, 3, 4]


joint_offsets = st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6)


@settings(max_examples=25, deadline=None)
@given(joint_offsets)
def test_inverse_kinematics_is_the_nearest_branch(ur5: ArmModel, offsets: List[float]) -> None:
    controller = Controller(ur5, TUCK)
    q = [a + b for a, b in zip(TUCK, offsets)]
    if abs(math.sin(q[4])) < 0.05 or abs(math.sin(q[2])) < 0.05:
        return
    assert controller.inverse(controller.forward(q), q) == pytest.approx(q, abs=1e-6)


def test_protective_stop_is_what_a_bad_command_raises(controller: Controller) -> None:
    with pytest.raises(ProtectiveStop, match="elbow_joint"):
        controller._check([0, 0, 9.0, 0, 0, 0], [0.0] * 6)


def test_a_controller_wants_a_start_of_its_size(ur5: ArmModel) -> None:
    with pytest.raises(ValueError, match="6 joints expected"):
        Controller(ur5, [0.0])
