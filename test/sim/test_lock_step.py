from __future__ import annotations

import math

import pytest

from iter_runner.sim.lock_step import TRIES, LockStep


def stream(lock: LockStep, ticks: int, tick: float, offset: float, period: int, lasts: int) -> int:
    """A streamer that ticks every ``tick`` cycles against the lock; how many waits were in vain.

    It sees the clock only at publications (multiples of ``period`` cycles), and answers as long as the clock is held.
    """
    in_vain = 0
    now = 0
    sent = 0
    while sent < ticks:
        seen = now - now % period
        while sent < ticks and sent * tick + offset <= seen:
            lock.target_came(now, lasts)
            sent += 1
        if lock.holds(now):
            lock.waited_in_vain()
            in_vain += 1
        else:
            now += 1
    return in_vain


def test_a_streamer_in_step_is_never_waited_for_in_vain() -> None:
    assert stream(LockStep(1), 100, 1, 0, 1, 1) == 0
    assert stream(LockStep(4), 100, 4, 0, 4, 4) == 0


def test_a_streamer_a_rounding_error_late_costs_one_wait() -> None:
    assert stream(LockStep(1), 100, 1, 1e-9, 1, 1) <= 1
    assert stream(LockStep(4), 100, 4, 1e-9, 4, 4) <= 1


@pytest.mark.parametrize("tick", [1.25, 1.6, 2.5])
def test_ticks_between_publications_cost_few_waits(tick: float) -> None:
    assert stream(LockStep(1), 200, tick, 0, 1, math.ceil(tick)) <= 3


def test_the_clock_is_held_from_the_first_target_on_when_it_has_run_out() -> None:
    lock = LockStep(1)
    assert not lock.holds(0)
    lock.target_came(0, 5)
    assert lock.active
    assert not lock.holds(4)
    assert lock.holds(5)


def test_the_clock_is_held_only_where_it_has_been_published() -> None:
    lock = LockStep(4)
    lock.target_came(1, 4)
    assert not lock.holds(5)
    assert lock.holds(8)


def test_a_stream_that_stopped_lets_the_clock_go() -> None:
    lock = LockStep(1)
    lock.target_came(0, 1)
    lock.target_came(1, 1)
    now, waits = 2, 0
    while lock.active:
        assert now < 20
        if lock.holds(now):
            lock.waited_in_vain()
            waits += 1
        now += 1
    assert waits == TRIES
    assert not lock.holds(now)


def test_another_program_ends_the_stream() -> None:
    lock = LockStep(1)
    lock.target_came(0, 1)
    lock.target_came(1, 1)
    lock.other_came()
    assert not lock.holds(100)
