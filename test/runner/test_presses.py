from __future__ import annotations

import math

import pytest

from iter_runner.runner.presses import Press, PressBox


def test_a_press_in_an_open_wait_ends_it_at_its_own_time() -> None:
    box = PressBox()
    box.open(10.0)
    assert box.judge(Press(12.0), now=12.5).used
    assert box.taken == Press(12.0)


def test_one_press_ends_one_wait() -> None:
    box = PressBox()
    box.open(10.0)
    assert box.judge(Press(12.0), now=12.0).used
    second = box.judge(Press(13.0), now=13.0)
    assert (second.used, second.reason) == (False, "another press has ended this wait")
    box.close()
    box.open(14.0)
    assert box.taken is None
    assert box.judge(Press(15.0), now=15.0).used


@pytest.mark.parametrize(
    ("press", "reason"),
    [
        (Press(9.5), "0.500 s before the wait began"),
        (Press(21.0), "after the wait's time was up"),
        (Press(25.0), "in the future"),
        (Press(math.nan), "not a number"),
    ],
)
def test_presses_that_do_not_count_say_why(press: Press, reason: str) -> None:
    box = PressBox()
    box.open(10.0)
    box.set_deadline(20.0)
    verdict = box.judge(press, now=21.0)
    assert not verdict.used
    assert reason in verdict.reason


def test_without_a_wait_a_press_is_not_used() -> None:
    box = PressBox()
    assert box.judge(Press(1.0), now=1.0).reason == "no open wait"
    box.open(0.0)
    box.close()
    assert box.judge(Press(2.0), now=2.0).reason == "no open wait"


def test_a_bouncing_contact_is_one_press_also_into_the_next_wait() -> None:
    box = PressBox()
    box.open(10.0)
    assert box.judge(Press(11.0, "serial"), now=11.0).used
    box.close()
    box.open(11.005)
    for bounce in (11.010, 11.035, 11.060):  # each close to the one before it
        assert "bounce" in box.judge(Press(bounce, "serial"), now=bounce).reason
    assert box.judge(Press(11.091, "serial"), now=11.1).used


def test_two_sources_do_not_bounce_each_other() -> None:
    box = PressBox()
    box.judge(Press(11.0, "serial"), now=11.0)
    box.open(11.005)
    assert box.judge(Press(11.010, "keyboard"), now=11.01).used
