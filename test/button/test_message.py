"""Messages of any type as presses."""

from types import SimpleNamespace

import pytest

from iter_runner.button.message import PressDetector, field_value, press_time, source_stamp


class Stamp:
    def __init__(self, seconds):
        self.seconds = seconds

    def to_sec(self):
        return self.seconds


def test_a_message_without_a_state_is_a_press_each_time():
    detector = PressDetector()
    assert [detector.is_press(SimpleNamespace()) for _ in range(3)] == [True, True, True]
    assert detector.is_press(SimpleNamespace(data="text"))


def test_a_bool_is_a_press_when_it_turns_true():
    detector = PressDetector()
    states = [False, True, True, False, False, True]
    assert [detector.is_press(SimpleNamespace(data=s)) for s in states] == [False, True, False, False, False, True]


def test_a_field_inside_the_message_can_be_the_button():
    detector = PressDetector("buttons[1]")
    states = [[1, 0], [1, 1], [0, 1], [0, 0], [0, 5]]
    assert [detector.is_press(SimpleNamespace(buttons=s)) for s in states] == [False, True, False, False, True]
    with pytest.raises(LookupError, match=r"buttons\[1\]"):
        detector.is_press(SimpleNamespace(buttons=[1]))
    assert field_value(SimpleNamespace(a=SimpleNamespace(b=[3, 4])), "a.b[1]") == 4


def test_the_stamp_is_the_headers_or_the_headers_own():
    assert source_stamp(SimpleNamespace(header=SimpleNamespace(stamp=Stamp(12.5)))) == 12.5
    assert source_stamp(SimpleNamespace(stamp=Stamp(3.0), frame_id="")) == 3.0
    assert source_stamp(SimpleNamespace(data=True)) is None
    assert source_stamp(SimpleNamespace(stamp=Stamp(0.0))) is None, "nobody filled it in"


def test_a_stamp_is_carried_over_to_the_study_clock():
    # ROS time (wall) and the study clock (monotonic) have nothing in common but their pace.
    assert press_time(1000.25, ros_now=1000.5, study_now=77.0) == 76.75
    assert press_time(None, ros_now=1000.5, study_now=77.0) == 77.0


@pytest.mark.parametrize("stamp", [1000.6, 2000.0, 900.0, 1.0])
def test_a_stamp_of_another_clock_is_not_believed(stamp):
    assert press_time(stamp, ros_now=1000.5, study_now=77.0) == 77.0
