"""What the emulated gripper does, on a clock of the test's."""

import pytest

from iter_runner.gripper.emulated import SCALE, EmulatedGripper
from iter_runner.gripper.emulated_serial import answer_to, checksum, request_length
from iter_runner.gripper.registers import Activation, Command, Obstruction

GO = {"activate": True, "go": True}


@pytest.fixture
def active(clock):
    gripper = EmulatedGripper(clock)
    gripper.write(Command(activate=True))
    clock.pass_(0.9)
    gripper.read()
    clock.pass_(0.9)
    assert gripper.read().activation is Activation.DONE
    return gripper


def wait(gripper, clock, seconds):
    """Lets time pass as under a driver that asks 50 times a second; the last state."""
    for _ in range(round(seconds / 0.02)):
        clock.pass_(0.02)
        status = gripper.read()
    return status


def test_activation_moves_the_fingers_and_takes_its_time(clock):
    gripper = EmulatedGripper(clock, position=100)
    assert gripper.read().activation is Activation.RESET
    gripper.write(Command(activate=True))
    positions = set()
    while gripper.read().activation is not Activation.DONE:
        assert gripper.read().activation is Activation.UNDER_WAY
        positions.add(wait(gripper, clock, 0.02).position)
    assert {min(positions), max(positions)} == {3, max(positions)} and max(positions) > 220
    assert 1.0 < clock() - 100.0 < 3.0
    assert gripper.read().position == 3


def test_setting_the_bit_again_activates_nothing(active):
    active.write(Command(activate=True))
    assert active.read().activation is Activation.DONE
    active.write(Command())
    assert active.read().activation is Activation.RESET
    active.write(Command(activate=True))
    assert active.read().activation is Activation.UNDER_WAY


def test_a_command_before_the_activation_is_done_moves_nothing(clock):
    gripper = EmulatedGripper(clock, position=100)
    gripper.write(Command(go=True, position=0))
    assert (gripper.read().fault, wait(gripper, clock, 1.0).position) == (7, 100)
    gripper.write(Command(activate=True))
    gripper.write(Command(**GO, position=255))
    assert gripper.read().fault == 5
    assert wait(gripper, clock, 2.0).fault == 0
    assert gripper.read().position == 3


@pytest.mark.parametrize(("speed", "metres_per_second"), [(0, 0.02), (255, 0.15)])
def test_fingers_have_the_speed_asked_for(active, clock, speed, metres_per_second):
    active.write(Command(**GO, position=255, speed=speed))
    status = wait(active, clock, 0.2)
    assert status.obstruction is Obstruction.MOVING and status.going and status.current > 0
    gone = SCALE.opening_of_count(3) - SCALE.opening_of_count(status.position)
    assert gone == pytest.approx(0.2 * metres_per_second, abs=0.0005)
    status = wait(active, clock, 0.085 / metres_per_second)
    assert (status.obstruction, status.position, status.current) == (Obstruction.ARRIVED, 230, 0)


def test_an_object_stops_closing_fingers_until_it_is_taken_away(active, clock):
    active.set_object_inside(0.04)
    active.write(Command(**GO, position=255, speed=255, force=200))
    status = wait(active, clock, 1.0)
    assert status.obstruction is Obstruction.STOPPED_CLOSING
    assert SCALE.opening_of_count(status.position) == pytest.approx(0.04, abs=0.0003)
    assert status.current > 50
    active.set_object_inside(None)
    assert wait(active, clock, 0.04).obstruction is Obstruction.MOVING
    assert wait(active, clock, 1.0).obstruction is Obstruction.ARRIVED


def test_a_hole_stops_opening_fingers(active, clock):
    active.write(Command(**GO, position=255, speed=255))
    wait(active, clock, 1.0)
    active.set_object_outside(0.05)
    active.write(Command(**GO, position=0, speed=255))
    status = wait(active, clock, 1.0)
    assert status.obstruction is Obstruction.STOPPED_OPENING
    assert SCALE.opening_of_count(status.position) == pytest.approx(0.05, abs=0.0003)


def test_an_object_that_is_smaller_than_what_was_asked_for_stops_nothing(active, clock):
    active.set_object_inside(0.02)
    active.write(Command(**GO, position=100, speed=255))
    status = wait(active, clock, 1.0)
    assert (status.obstruction, status.position) == (Obstruction.ARRIVED, 100)


def test_without_the_go_bit_fingers_stand(active, clock):
    active.write(Command(**GO, position=255))
    wait(active, clock, 0.4)
    active.write(Command(activate=True, position=255))
    stopped = active.read()
    assert 3 < stopped.position < 230 and not stopped.going
    assert wait(active, clock, 1.0).position == stopped.position


@pytest.mark.parametrize("fault", [8, 10, 14])
def test_faults_stop_the_fingers(active, clock, fault):
    active.write(Command(**GO, position=255))
    wait(active, clock, 0.4)
    active.set_fault(fault)
    stopped = active.read()
    assert stopped.fault == fault
    active.write(Command(**GO, position=0))
    assert wait(active, clock, 0.5).position == stopped.position


def test_an_activation_ends_a_major_fault(active, clock):
    active.set_fault(14)
    active.write(Command())
    active.write(Command(activate=True))
    assert wait(active, clock, 2.0).ready


def test_silence_is_a_fault_until_it_is_asked_again(active, clock):
    clock.pass_(1.5)
    assert active.look().fault == 9, "who only looks is not heard"
    assert active.read().fault == 9
    assert active.read().fault == 0


def test_a_release_opens_slowly_and_needs_an_activation(active, clock):
    active.write(Command(**GO, position=255, speed=255))
    wait(active, clock, 1.0)
    active.write(Command(activate=True, release=True, release_opening=True))
    status = wait(active, clock, 0.5)
    assert (status.fault, status.activation) == (11, Activation.RESET) and 3 < status.position < 230
    status = wait(active, clock, 5.0)
    assert (status.fault, status.position) == (15, 3)
    active.write(Command(**GO, position=255))
    assert wait(active, clock, 0.5).position == 3
    active.write(Command())
    active.write(Command(activate=True))
    assert wait(active, clock, 2.0).ready


def test_without_power_it_forgets_its_activation(active, clock):
    active.write(Command(**GO, position=255))
    wait(active, clock, 0.4)
    active.set_power(False)
    clock.pass_(5.0)
    active.set_power(True)
    status = active.read()
    assert (status.activation, status.going, status.fault) == (Activation.RESET, False, 0)
    assert 3 < status.position < 230


@pytest.mark.parametrize(
    "line",
    [
        "09 10 03 E8 00 03 06 09 00 00 00 FF FF 72 19",
        "09 03 06 F9 00 00 00 0D 00 56 4C",
        "09 04 06 B9 00 00 FF BD 00 5C 9A",
        "09 04 07 D0 00 03 B1 CE",
    ],
)
def test_checksums_of_the_manual(line):
    frame = bytes.fromhex(line)
    assert checksum(frame[:-2]) == frame[-2:]


def framed(text):
    body = bytes.fromhex(text)
    return body + checksum(body)


def test_requests_of_the_manual_and_their_answers(active):
    write = bytes.fromhex("09 10 03 E8 00 03 06 09 00 00 00 FF FF 72 19")
    assert answer_to(write, active) == bytes.fromhex("09 10 03 E8 00 03 01 30")
    answer = answer_to(bytes.fromhex("09 04 07 D0 00 03 B1 CE"), active)
    assert answer == framed("09 04 06 F9 00 00 00 03 00")
    both = framed("09 17 07 D0 00 02 03 E8 00 03 06 09 00 00 E6 3C C8")
    assert answer_to(both, active) == framed("09 17 04 39 00 00 E6")
    for request in (write, both):
        assert [request_length(request[:length]) for length in (0, 1)] == [None, None]
        assert request_length(request[:11]) == len(request)


def test_damaged_frames_and_those_of_others_are_not_answered(active):
    assert answer_to(bytes.fromhex("09 04 07 D0 00 03 B1 CF"), active) == b""
    assert answer_to(framed("08 03 07 D0 00 03"), active) == b""


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ("09 06 03 E8 00 01", "09 86 01"),
        ("09 03 07 CF 00 03", "09 83 02"),
        ("09 03 07 D0 00 04", "09 83 02"),
        ("09 03 07 D0 00 00", "09 83 02"),
        ("09 10 03 E9 00 03 06 09 00 00 00 FF FF", "09 90 02"),
    ],
)
def test_what_it_cannot_do_is_refused(active, request_, answer):
    assert answer_to(framed(request_), active) == framed(answer)
