from __future__ import annotations

import math
from typing import Callable

import pytest
from cells import TUCK, logged, moved, run_for

from iter_runner.sim.controller import RobotMode, SafetyMode
from iter_runner.sim.faults import Fault, FaultError, parse_faults
from iter_runner.sim.workcell import STOP_DELAY, Workcell


def test_a_list_of_faults_is_read() -> None:
    assert parse_faults(" protective_stop@3, stale_joint_states@5.0:2 ,driver_dies@7.5,gripper_stuck,") == [
        Fault("protective_stop", 3),
        Fault("stale_joint_states", 5.0, 2.0),
        Fault("driver_dies", 7.5),
        Fault("gripper_stuck"),
    ]
    assert parse_faults("") == []
    assert parse_faults("stale_joint_states")[0].duration == math.inf


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("earthquake@3", "no fault 'earthquake'; there are protective_stop, "),
        ("protective_stop@x", "a count from 1 expected, 'x' found"),
        ("protective_stop@0", "a count from 1"),
        ("gripper_stuck@1.5", "a count from 1"),
        ("driver_dies@soon", "a time in s expected"),
        ("driver_dies@-1", "a time in s expected"),
        ("driver_dies@nan", "a time in s expected"),
        ("driver_dies@3:2", "a duration in s after : is for stale_joint_states"),
        ("stale_joint_states@1:0", "a duration"),
        ("protective_stop@", "a count from 1"),
    ],
)
def test_a_wrong_fault_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(FaultError) as caught:
        parse_faults(text)
    assert message in str(caught.value)


MakeCell = Callable[..., Workcell]


def test_the_nth_motion_is_stopped_in_its_midst(make_cell: MakeCell) -> None:
    cell = make_cell(faults=parse_faults("protective_stop@2"))
    for offset in (0.1, 0.5):
        assert cell.controller.safety_mode == SafetyMode.NORMAL
        begun = cell.controller.time
        cell.run_script(f"movej({moved(TUCK, offset)})")
        while cell.controller.program is not None:
            cell.step()
    assert cell.controller.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert cell.controller.time - begun == pytest.approx(STOP_DELAY, abs=0.02)
    assert TUCK[0] + 0.1 < cell.controller.q[0] < TUCK[0] + 0.2
    assert "injected fault" in logged(cell.controller)
    run_for(cell, 1.0)
    assert cell.controller.unlock_protective_stop()[0]
    cell.run_script(f"movej({moved(TUCK, 0.5)})")
    run_for(cell, 5.0)
    assert cell.controller.q == moved(TUCK, 0.5)


def test_a_fault_without_a_count_is_the_first_at_the_start_and_at_once_later(make_cell: MakeCell) -> None:
    cell = make_cell(faults=parse_faults("protective_stop"))
    run_for(cell, 1.0)
    assert cell.controller.safety_mode == SafetyMode.NORMAL
    cell.inject(Fault("protective_stop"))
    cell.step()
    assert cell.controller.safety_mode == SafetyMode.PROTECTIVE_STOP


def test_an_emergency_stop_can_be_injected(cell: Workcell) -> None:
    cell.inject(Fault("emergency_stop"))
    cell.step()
    assert cell.controller.safety_mode == SafetyMode.ROBOT_EMERGENCY_STOP
    assert cell.controller.robot_mode == RobotMode.POWER_OFF


def test_joint_states_go_stale_for_a_while(make_cell: MakeCell) -> None:
    cell = make_cell(faults=parse_faults("stale_joint_states@0.5:0.2"))
    stale = []
    for _ in range(125):
        cell.step()
        if cell.stale:
            stale.append(cell.controller.time)
    assert stale[0] == pytest.approx(0.5, abs=0.009)
    assert stale[-1] == pytest.approx(0.7, abs=0.009)


def test_the_driver_dies_at_its_time(make_cell: MakeCell) -> None:
    cell = make_cell(faults=parse_faults("driver_dies@0.5"))
    run_for(cell, 0.48)
    assert not cell.dead
    run_for(cell, 0.04)
    assert cell.dead


def test_the_nth_gripper_command_does_nothing(make_cell: MakeCell) -> None:
    cell = make_cell(faults=parse_faults("gripper_stuck@2"))
    outcomes = []
    for number, position in enumerate((0.4, 0.8, 0.8)):
        cell.hand.command(position, 50.0, number)
        run_for(cell, 1.0)
        outcomes.append((cell.hand.results[-1].failed, cell.hand.position))
    assert outcomes == [(False, 0.4), (True, 0.4), (False, 0.8)]


@pytest.mark.parametrize("text", ["short_trajectory:0", "short_trajectory@2:1.5", "short_trajectory:some"])
def test_how_many_trajectories_stop_short_is_a_count(text: str) -> None:
    with pytest.raises(FaultError, match="a count or 'all' for short_trajectory"):
        parse_faults(text)
    assert parse_faults("short_trajectory@2:3, short_trajectory:all, short_trajectory") == [
        Fault("short_trajectory", 2, 3),
        Fault("short_trajectory", None, math.inf),
        Fault("short_trajectory", None, 1),
    ]
