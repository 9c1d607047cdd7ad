"""The registers, with the manual's own examples, and what their counts stand for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iter_runner.gripper.registers import (
    FAULTS,
    Activation,
    Command,
    FingerScale,
    Obstruction,
    Status,
    describe_fault,
    force_count,
    force_of,
    speed_count,
    speed_of,
)
from iter_runner.robot.table import load_gripper

ROW = load_gripper("robotiq_85")
SCALE = FingerScale.of_row(ROW)
counts = st.integers(0, 255)


def test_the_manuals_commands():
    assert Command().registers() == [0x0000, 0x0000, 0x0000]
    assert Command(activate=True).registers() == [0x0100, 0x0000, 0x0000]
    assert Command(activate=True, go=True, position=255, speed=255, force=255).registers() == [0x0900, 0x00FF, 0xFFFF]
    assert Command(activate=True, release=True, release_opening=True).registers()[0] == 0x3100


@pytest.mark.parametrize(
    ("registers", "expected"),
    [
        ([0xF900, 0x0000, 0x0D00], Status(True, True, Activation.DONE, Obstruction.ARRIVED, 0, 0, 13, 0)),
        ([0xB900, 0x00FF, 0xBD00], Status(True, True, Activation.DONE, Obstruction.STOPPED_CLOSING, 0, 255, 189, 0)),
        ([0x3900, 0x0000, 0xBB10], Status(True, True, Activation.DONE, Obstruction.MOVING, 0, 0, 187, 16)),
        ([0x1100, 0x0500, 0x0300], Status(True, False, Activation.UNDER_WAY, Obstruction.MOVING, 5, 0, 3, 0)),
    ],
)
def test_the_manuals_answers(registers, expected):
    assert Status.of_registers(registers) == expected
    assert expected.registers() == registers


@given(st.booleans(), st.booleans(), st.booleans(), st.booleans(), counts, counts, counts)
def test_commands_survive_their_registers(activate, go, release, opening, position, speed, force):
    command = Command(activate, go, release, opening, position, speed, force)
    assert Command.of_registers(command.registers()) == command


@given(st.lists(st.integers(0, 0xFFFF), min_size=3, max_size=3))
def test_any_registers_are_some_state(registers):
    Status.of_registers(registers)


@pytest.mark.parametrize("wrong", [{"position": 256}, {"speed": -1}, {"force": 1000}])
def test_a_count_beyond_a_byte_is_refused(wrong):
    with pytest.raises(ValueError, match="expected a count from 0 to 255"):
        Command(**wrong)


def test_force_and_speed_are_linear_and_clipped():
    assert [force_count(value) for value in (0.0, 20.0, 127.5, 235.0, 1000.0)] == [0, 0, 128, 255, 255]
    assert [speed_count(value) for value in (0.0, 0.02, 0.0855, 0.15, 9.0)] == [0, 0, 128, 255, 255]
    for newtons in (20.0, 60.0, 101.3, 235.0):
        assert math.isclose(force_of(force_count(newtons)), newtons, abs_tol=0.5)
    for speed in (0.02, 0.1, 0.15):
        assert math.isclose(speed_of(speed_count(speed)), speed, abs_tol=3e-4)


def test_openings_are_those_of_the_facts():
    assert SCALE.opening_of_count(3) == pytest.approx(0.085)
    assert SCALE.opening_of_count(230) == pytest.approx(0.0)
    assert SCALE.opening_of_count(0) == pytest.approx(0.085)
    assert SCALE.opening_of_count(255) == 0.0
    assert SCALE.opening_of_count(120) == pytest.approx(0.085 * 110 / 227)


def test_the_ends_of_the_rows_range_are_the_ends_of_the_fingers_way():
    assert SCALE.count_of_angle(ROW.position_open) == 0
    assert SCALE.count_of_angle(ROW.position_closed) == 255
    assert SCALE.count_of_angle(-3.0) == 0
    assert SCALE.count_of_angle(3.0) == 255
    assert SCALE.angle_of_count(3) == pytest.approx(ROW.position_open, abs=1e-9)
    assert SCALE.angle_of_count(230) == ROW.position_closed


@given(st.floats(0.006, 0.084))
def test_between_the_ends_an_opening_is_the_same_by_angle_and_by_count(opening):
    count = SCALE.count_of_angle(ROW.position_of(opening))
    assert SCALE.opening_of_count(count) == pytest.approx(opening, abs=0.0002)
    assert ROW.opening_of(SCALE.angle_of_count(count)) == pytest.approx(opening, abs=0.0002)
    assert abs(SCALE.count_of_opening(opening) - count) <= 1


@given(st.floats(-1.0, 2.0), st.floats(-1.0, 2.0))
def test_a_larger_angle_is_never_more_open(first, second):
    low, high = sorted((first, second))
    assert SCALE.count_of_angle(low) <= SCALE.count_of_angle(high)


def test_faults_say_what_to_do():
    assert describe_fault(0) == ""
    assert describe_fault(8) == "fault 8, over temperature: let it cool down below 80 °C"
    assert "under voltage" in describe_fault(10)
    assert "fault 3" in describe_fault(3)
    assert set(FAULTS) == {5, 7, 8, 9, 10, 11, 12, 13, 14, 15}


def test_a_major_fault_is_not_ready_though_active():
    active = {"activated": True, "activation": Activation.DONE}
    assert Status(**active).ready
    assert Status(**active, fault=9).ready
    assert not Status(**active, fault=14).ready
    assert not Status(activation=Activation.UNDER_WAY).ready
