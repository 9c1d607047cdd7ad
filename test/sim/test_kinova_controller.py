from __future__ import annotations

import math
from typing import List

import pytest
from cells import kinds, logged

from iter_runner.robot.table import load_robot
from iter_runner.sim import trajectory
from iter_runner.sim.arm_controller import ArmModel
from iter_runner.sim.arm_model import arm_model
from iter_runner.sim.kinova_controller import VELOCITY_PERIOD, KinovaController
from iter_runner.sim.trajectory import Goal, Point, Rejected

SPEED = math.radians(20)
MICO = load_robot("mico-2")


@pytest.fixture(scope="module")
def model() -> ArmModel:
    return arm_model(MICO)


@pytest.fixture
def arm(model: ArmModel) -> KinovaController:
    return KinovaController(model, MICO.tuck)


def only(joint: int, speed: float = SPEED) -> List[float]:
    return [speed if j == joint else 0.0 for j in range(6)]


def to_rest(arm: KinovaController, longest: float = 10.0) -> float:
    begun = arm.time
    arm.step()
    while arm.moving or arm.queued or arm.following is not None:
        arm.step()
        assert arm.time - begun < longest
    return arm.time - begun


def test_velocities_at_the_arms_own_rate_move_it_by_their_sum(arm: KinovaController) -> None:
    start = arm.q[0]
    for _ in range(100):
        arm.command_velocity(only(0))
        arm.step()
    assert arm.v[0] == pytest.approx(SPEED)
    ramp = arm.q[0]
    to_rest(arm)
    assert arm.q[0] - start == pytest.approx(SPEED * 100 * VELOCITY_PERIOD)  # what starting lacks, stopping adds
    assert arm.q[0] - ramp == pytest.approx(SPEED * SPEED / (2 * arm.model.acceleration_limits[0]), abs=2e-3)
    assert arm.q[1:] == MICO.tuck[1:]


def test_messages_faster_than_the_rate_pile_up_and_the_arm_goes_on(arm: KinovaController) -> None:
    start = arm.q[0]
    for _ in range(100):
        arm.command_velocity(only(0))
        arm.command_velocity(only(0))
        arm.step()
    assert arm.queued == 100
    assert to_rest(arm) > 1.0
    assert arm.q[0] - start == pytest.approx(2 * SPEED)


def test_without_a_message_the_arm_slows_down_at_the_next_cycle(arm: KinovaController) -> None:
    for _ in range(100):
        arm.command_velocity(only(3))
        arm.step()
    arm.step()
    assert arm.v[3] == pytest.approx(SPEED - arm.model.acceleration_limits[3] * arm.cycle)
    to_rest(arm)
    assert kinds(arm) == []


def test_a_controller_of_another_rate_carries_each_velocity_out_for_its_time(model: ArmModel) -> None:
    for cycle in (0.002, 0.008, 0.01, 0.02):
        fast = ArmModel(
            model.joint_names, model.lower, model.upper, model.velocity_limits, cycle,
            acceleration_limits=model.acceleration_limits,
        )  # fmt: skip
        arm = KinovaController(fast, MICO.tuck)
        for _ in range(200):
            arm.command_velocity(only(0))
        to_rest(arm)
        assert arm.q[0] - MICO.tuck[0] == pytest.approx(SPEED * 200 * VELOCITY_PERIOD, rel=0.02)


def test_speeds_and_accelerations_are_those_of_the_arm(arm: KinovaController) -> None:
    before = 0.0
    for _ in range(200):
        arm.command_velocity(only(5, 10.0))
        arm.step()
        assert arm.v[5] - before <= arm.model.acceleration_limits[5] * arm.cycle + 1e-12
        before = arm.v[5]
    assert arm.v[5] == pytest.approx(math.radians(48))


def test_a_joint_stands_at_its_limit_and_comes_back_from_it(arm: KinovaController) -> None:
    for _ in range(1500):
        arm.command_velocity(only(1))
        arm.step()
    assert arm.q[1] == pytest.approx(math.radians(310))
    assert arm.v[1] == 0.0
    for _ in range(100):
        arm.command_velocity(only(1, -SPEED))
        arm.step()
    assert arm.q[1] < math.radians(300)


def test_a_continuous_joint_goes_on_for_more_than_a_turn(arm: KinovaController) -> None:
    for _ in range(2000):
        arm.command_velocity(only(3, math.radians(40)))
        arm.step()
    to_rest(arm)
    assert arm.q[3] == pytest.approx(MICO.tuck[3] + math.radians(800))


def test_a_stream_displaces_a_trajectory_and_a_trajectory_a_stream(arm: KinovaController) -> None:
    target = [MICO.tuck[0] + 0.5, *MICO.tuck[1:]]
    arm.send_goal(Goal(arm.model.joint_names, [Point(3.0, tuple(target))]), "goal")
    for _ in range(100):
        arm.step()
    arm.command_velocity(only(0, -SPEED))
    assert kinds(arm) == ["trajectory_cancelled"]
    for _ in range(50):
        arm.command_velocity(only(0, -SPEED))
        arm.command_velocity(only(0, -SPEED))
        arm.step()
    speed = arm.v[0]
    arm.send_goal(Goal(arm.model.joint_names, [Point(3.0, tuple(target))]), "next")
    assert arm.queued == 0
    arm.step()
    assert abs(arm.v[0] - speed) < 0.2
    to_rest(arm)
    assert arm.q == pytest.approx(target, abs=1e-6)
    assert arm.motions == 3


def test_a_stopped_arm_refuses_everything_until_it_is_started(arm: KinovaController) -> None:
    arm.send_goal(Goal(arm.model.joint_names, [Point(3.0, (*MICO.tuck[:5], 0.0))]), "goal")
    for _ in range(100):
        arm.step()
    arm.stop()
    done = next(item.value for item in arm.happenings if item.kind == "trajectory_done")
    assert done == ("goal", trajectory.PATH_TOLERANCE_VIOLATED, "the arm was stopped")
    assert to_rest(arm) < 0.1
    at = list(arm.q)
    assert not arm.command_velocity(only(0))
    assert not arm.command_velocity(only(0))
    assert logged(arm).count("refused") == 1
    assert not arm.home(MICO.tuck, "home")
    with pytest.raises(Rejected, match="start service"):
        arm.send_goal(Goal(arm.model.joint_names, [Point(3.0, tuple(at))]), "goal")
    to_rest(arm)
    assert arm.q == at
    arm.start()
    assert arm.command_velocity(only(0))


def test_what_is_no_number_is_refused(arm: KinovaController) -> None:
    assert not arm.command_velocity(only(2, math.nan))
    assert "finite numbers expected" in logged(arm)
    arm.step()
    assert arm.q == MICO.tuck


def test_it_goes_home_within_its_limits(arm: KinovaController, model: ArmModel) -> None:
    away = KinovaController(model, [value + 0.6 for value in MICO.tuck])
    assert away.home(MICO.tuck, "home")
    fastest = 0.0
    while away.following is not None:
        away.step()
        fastest = max(fastest, *(abs(v) / limit for v, limit in zip(away.v, model.velocity_limits)))
    to_rest(away)
    assert away.q == pytest.approx(MICO.tuck, abs=1e-6)
    assert 0.3 < fastest < 0.55
    assert away.happenings[0].value[:2] == ("home", trajectory.SUCCESSFUL)


def test_faults_stop_the_arm_until_it_is_started(arm: KinovaController) -> None:
    for stop in (arm.emergency_stop, lambda: arm.protective_stop("injected fault")):
        for _ in range(50):
            assert arm.command_velocity(only(0))
            arm.step()
        stop()
        to_rest(arm)
        assert not arm.enabled
        arm.start()
