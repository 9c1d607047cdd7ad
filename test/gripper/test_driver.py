"""The driver on emulated grippers: activation by a person's word only, motions, and lines that are lost."""

import queue
import threading
import time

import pytest

from iter_runner.gripper import driver as driver_module
from iter_runner.gripper.driver import GripperDriver, Outcome
from iter_runner.gripper.emulated import SCALE
from iter_runner.gripper.registers import Activation, Command
from iter_runner.gripper.serial_client import SerialClient
from iter_runner.gripper.urcap_client import UrcapClient

PATIENCE = 30.0


@pytest.fixture(params=["serial", "urcap"])
def line(request):
    """The emulated line of each kind."""
    return request.getfixturevalue({"serial": "port", "urcap": "urcap"}[request.param])


def make_client(line):
    return SerialClient(str(line.link), 0.4) if hasattr(line, "link") else UrcapClient("127.0.0.1", line.tcp_port)


class Driven:
    """A driver at work in a thread of its own."""

    def __init__(self, line, **options):
        self.said = []
        self.states = []
        self.driver = GripperDriver(
            make_client(line),
            SCALE,
            how_to_activate="call ~activate",
            say=self.said.append,
            warn=self.said.append,
            on_status=self.states.append,
            **options,
        )
        self.thread = threading.Thread(target=self.driver.run, daemon=True)
        self.thread.start()

    def move(self, target, force=100, **fields):
        ended = queue.Queue()
        motion = self.driver.move(target, force, ended.put, **fields)
        motion.ended = ended
        return motion

    def result(self, motion):
        assert motion.ended.get(timeout=PATIENCE) is motion
        return motion.outcome

    def until(self, predicate):
        deadline = time.monotonic() + PATIENCE
        while not predicate(self.driver.health()):
            assert time.monotonic() < deadline, (self.driver.health(), self.said)
            time.sleep(0.005)
        return self.driver.health()

    def connected(self):
        return self.until(lambda health: health.connected)

    def until_at(self, gripper, low, high):
        deadline = time.monotonic() + PATIENCE
        while not low < gripper.look().position < high:
            assert time.monotonic() < deadline, gripper.look()
            time.sleep(0.005)

    def close(self):
        self.driver.close()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@pytest.fixture
def drive(monkeypatch):
    monkeypatch.setattr(driver_module, "RETRY", 0.02)
    monkeypatch.setattr(driver_module, "PATIENCE", 0.0)
    driven = []

    def make(line, **options):
        driven.append(Driven(line, **options))
        return driven[-1]

    yield make
    for one in driven:
        one.close()


@pytest.fixture
def driven(drive, line):
    """A driver whose gripper is active."""
    one = drive(line)
    one.connected()
    assert one.driver.activate() == (True, "the gripper is active")
    return one


def test_nothing_moves_before_a_person_agrees(drive, line, gripper):
    one = drive(line)
    health = one.connected()
    assert not health.ready and "keep hands clear" in health.refusal and health.refusal.endswith("call ~activate")
    motion = one.move(0)
    assert one.result(motion) is Outcome.FAILED
    assert motion.text == health.refusal
    one.until(lambda health: len(one.states) > 5)
    assert gripper.look().activation is Activation.RESET and gripper.look().position == 230
    assert one.driver.activate()[0]
    assert one.driver.health().ready
    assert one.result(one.move(100)) is Outcome.ARRIVED


def test_activation_at_the_start_if_asked_for(drive, line, gripper):
    one = drive(line, activate_on_start=True)
    one.until(lambda health: health.ready)
    assert gripper.look().activation is Activation.DONE


def test_a_late_cable_activates_nothing_even_then(drive, line, gripper):
    line.unplug()
    one = drive(line, activate_on_start=True)
    one.until(lambda health: "can't" in health.refusal)
    line.plug_in()
    one.connected()
    one.until(lambda health: len(one.states) > 5)
    assert gripper.look().activation is Activation.RESET


def test_a_gripper_that_is_active_needs_no_activation(drive, line, gripper):
    gripper.write(Command(activate=True))
    while gripper.read().activation is not Activation.DONE:
        time.sleep(0.01)
    one = drive(line)
    assert one.until(lambda health: health.connected).ready
    assert one.driver.activate() == (True, "the gripper is active")
    assert gripper.look().position == 3


def test_fingers_arrive_or_meet_something(driven, gripper):
    motion = driven.move(150)
    assert driven.result(motion) is Outcome.ARRIVED
    assert motion.status.position == 150
    gripper.set_object_inside(0.02)
    motion = driven.move(255)
    assert driven.result(motion) is Outcome.STALLED
    assert SCALE.opening_of_count(motion.status.position) == pytest.approx(0.02, abs=0.0005)
    assert driven.result(driven.move(0)) is Outcome.ARRIVED
    gripper.set_object_outside(0.05)
    assert driven.result(driven.move(255)) is Outcome.STALLED
    assert driven.result(driven.move(255)) is Outcome.STALLED, "again, though nothing moves"
    assert driven.result(driven.move(0)) is Outcome.STALLED


def test_speed_is_that_of_the_motion(driven, gripper):
    began = time.monotonic()
    driven.result(driven.move(100, speed=0.15))
    fast = time.monotonic() - began
    began = time.monotonic()
    driven.result(driven.move(0, speed=0.02))
    assert time.monotonic() - began > 2 * fast


def test_stop_really_stops_the_fingers(driven, gripper):
    motion = driven.move(255, speed=0.02)
    driven.until_at(gripper, 20, 200)
    driven.driver.stop(motion)
    assert driven.result(motion) is Outcome.STOPPED
    stopped = gripper.look()
    assert not stopped.going and stopped.position < 220
    driven.until(lambda health: health.status is not None and not health.status.going)
    time.sleep(0.1)
    assert gripper.look().position == stopped.position
    assert driven.result(driven.move(0)) is Outcome.ARRIVED, "it needs no activation after that"


def test_a_stop_of_another_motion_stops_nothing(driven, gripper):
    first = driven.move(50)
    assert driven.result(first) is Outcome.ARRIVED
    second = driven.move(200)
    driven.driver.stop(first)
    assert driven.result(second) is Outcome.ARRIVED


def test_a_new_motion_takes_the_place_of_the_old(driven, gripper):
    first = driven.move(255, speed=0.02)
    driven.until_at(gripper, 10, 200)
    second = driven.move(3)
    assert driven.result(first) is Outcome.REPLACED
    assert driven.result(second) is Outcome.ARRIVED
    assert gripper.look().position == 3


def test_many_motions_at_once_end_once_each(driven):
    motions = [driven.move(target) for target in range(20, 220, 10)]
    outcomes = [driven.result(motion) for motion in motions]
    assert outcomes[:-1] == [Outcome.REPLACED] * 19 and outcomes[-1] is Outcome.ARRIVED
    assert all(motion.ended.empty() for motion in motions)


def test_a_cable_pulled_in_mid_motion(driven, line, gripper):
    motion = driven.move(255, speed=0.02)
    driven.until_at(gripper, 10, 200)
    began = time.monotonic()
    line.unplug()
    assert driven.result(motion) is Outcome.FAILED
    assert time.monotonic() - began < 1.5
    place = str(line.link) if hasattr(line, "link") else f"127.0.0.1:{line.tcp_port}"
    assert place in motion.text and "keep hands clear" in motion.text and "call ~activate" in motion.text
    assert place in driven.move(0).text, "and so are those that come while it is gone"
    assert driven.driver.activate() == (False, driven.driver.health().refusal)
    position = gripper.look().position
    line.plug_in()
    driven.connected()
    refused = driven.move(0)
    assert driven.result(refused) is Outcome.FAILED and "keep hands clear" in refused.text
    assert gripper.look().position >= position, "nothing opens by itself"
    good, text = driven.driver.activate()
    assert good, text
    assert driven.result(driven.move(0)) is Outcome.ARRIVED


def test_fingers_that_still_move_when_the_cable_is_back_stop(driven, line, gripper):
    driven.move(255, speed=0.02)
    driven.until_at(gripper, 10, 60)
    line.unplug()
    line.plug_in()
    driven.until(lambda health: health.connected and health.status is not None and not health.status.going)
    assert gripper.look().position < 220
    assert driven.driver.activate() == (True, "the gripper was active still: nothing moved")


def test_silence_in_mid_motion(driven, line, gripper):
    motion = driven.move(255, speed=0.02)
    driven.until_at(gripper, 10, 100)
    line.swallow(1000)
    assert driven.result(motion) is Outcome.FAILED
    assert "does not answer" in motion.text
    line.swallow(0)
    assert not driven.connected().ready


def test_damaged_answers_disturb_no_motion(driven, line, gripper):
    motion = driven.move(200)
    line.damage(2)
    assert driven.result(motion) is Outcome.ARRIVED
    assert driven.driver.health().errors == 2


def test_power_lost_in_mid_motion(driven, line, gripper):
    motion = driven.move(255, speed=0.02)
    driven.until_at(gripper, 10, 200)
    gripper.set_power(False)
    assert driven.result(motion) is Outcome.FAILED
    position = gripper.look().position
    gripper.set_power(True)
    assert not driven.connected().ready
    refused = driven.move(0)
    assert driven.result(refused) is Outcome.FAILED and "keep hands clear" in refused.text
    assert gripper.look().activation is Activation.RESET and gripper.look().position == position
    assert driven.driver.activate()[0]
    assert driven.result(driven.move(0)) is Outcome.ARRIVED


def test_power_lost_for_a_moment(driven, gripper):
    """Too short for a missed answer: the gripper is there and has forgotten its activation."""
    motion = driven.move(255, speed=0.02)
    driven.until_at(gripper, 10, 200)
    gripper.set_power(False)
    gripper.set_power(True)
    assert driven.result(motion) is Outcome.FAILED
    assert "not active" in motion.text or "power" in motion.text
    assert gripper.look().activation is Activation.RESET


@pytest.mark.parametrize(("fault", "word"), [(10, "under voltage"), (14, "overcurrent"), (13, "activation failed")])
def test_major_faults_end_the_motion_and_want_an_activation(driven, gripper, fault, word):
    motion = driven.move(255, speed=0.02)
    driven.until_at(gripper, 10, 200)
    gripper.set_fault(fault)
    assert driven.result(motion) is Outcome.FAILED
    assert word in motion.text and "keep hands clear" in motion.text
    assert any(word in line for line in driven.said)
    assert driven.result(driven.move(0)) is Outcome.FAILED
    assert driven.driver.activate()[0]
    assert driven.result(driven.move(0)) is Outcome.ARRIVED


def test_a_hot_gripper_rests_and_goes_on_without_an_activation(driven, gripper):
    motion = driven.move(255, speed=0.02)
    driven.until_at(gripper, 10, 200)
    gripper.set_fault(8)
    assert driven.result(motion) is Outcome.FAILED
    assert "over temperature" in motion.text and "hands" not in motion.text
    good, text = driven.driver.activate()
    assert not good and "cool down" in text and gripper.look().activation is Activation.DONE
    gripper.set_fault(0)
    health = driven.until(lambda health: health.status is not None and health.status.fault == 0)
    assert health.ready and not gripper.look().going, "it does not go on by itself when it is cool"
    assert driven.result(driven.move(0)) is Outcome.ARRIVED


def test_an_activation_that_fails_says_why(drive, line, gripper, monkeypatch):
    monkeypatch.setattr(driver_module, "GRACE", 0.05)
    one = drive(line)
    one.connected()
    write = gripper.write

    def fail(command):
        write(command)
        if command.activate:
            gripper.set_fault(13)

    gripper.write = fail
    good, text = one.driver.activate()
    assert not good and "its activation failed" in text
    gripper.write = write
    assert one.driver.activate()[0]


def test_motions_are_refused_while_it_activates(drive, line, gripper):
    gripper.activation_speed = 0.15
    one = drive(line)
    one.connected()
    answers = queue.Queue()
    callers = [threading.Thread(target=lambda: answers.put(one.driver.activate()), daemon=True) for _ in range(3)]
    for caller in callers:
        caller.start()
    one.until(lambda health: "being activated" in health.refusal)
    motion = one.move(0)
    assert one.result(motion) is Outcome.FAILED and "being activated" in motion.text
    assert [answers.get(timeout=PATIENCE)[0] for _ in callers] == [True] * 3


def test_a_cable_pulled_while_it_activates(drive, line, gripper):
    gripper.activation_speed = 0.15
    one = drive(line)
    one.connected()
    answers = queue.Queue()
    threading.Thread(target=lambda: answers.put(one.driver.activate()), daemon=True).start()
    one.until(lambda health: "being activated" in health.refusal)
    line.unplug()
    good, text = answers.get(timeout=PATIENCE)
    assert not good and "keep hands clear" in text


def test_an_activation_can_be_stopped(drive, line, gripper):
    gripper.activation_speed = 0.15
    one = drive(line)
    one.connected()
    answers = queue.Queue()
    threading.Thread(target=lambda: answers.put(one.driver.activate()), daemon=True).start()
    one.until(lambda health: "being activated" in health.refusal)
    one.until_at(gripper, 10, 220)
    one.driver.stop()
    assert answers.get(timeout=PATIENCE) == (False, "the activation was stopped")
    assert gripper.look().activation is Activation.RESET


def test_a_release_ends_the_motion_and_wants_an_activation(driven, gripper):
    gripper.set_object_inside(0.02)
    assert driven.result(driven.move(255)) is Outcome.STALLED
    driven.driver.release(opening=True)
    health = driven.until(lambda health: not health.ready)
    assert "automatic release" in health.refusal
    assert driven.driver.activate()[0]


def test_a_release_comes_before_a_motion(driven, gripper):
    motions = [driven.move(255) for _ in range(3)]
    driven.driver.release(opening=True)
    for motion in motions:
        assert driven.result(motion) in (Outcome.REPLACED, Outcome.FAILED)
    assert driven.result(driven.move(255)) is Outcome.FAILED
    assert gripper.look().fault in (11, 15)


def test_a_gripper_that_does_not_obey_is_given_up(driven, gripper, monkeypatch):
    monkeypatch.setattr(driver_module, "MARGIN", -0.5)
    write = gripper.write
    gripper.write = lambda command: None
    motion = driven.move(255, speed=0.15)
    assert driven.result(motion) is Outcome.FAILED
    assert "neither arrived" in motion.text
    gripper.write = write


def test_closing_the_driver_stops_the_fingers(driven, gripper):
    motion = driven.move(255, speed=0.02)
    driven.until_at(gripper, 10, 200)
    driven.close()
    assert driven.result(motion) is Outcome.STOPPED
    assert not gripper.look().going and gripper.look().position < 220
    refused = driven.move(0)
    assert driven.result(refused) is Outcome.FAILED and "has ended" in refused.text
    assert driven.driver.activate()[0] is False
