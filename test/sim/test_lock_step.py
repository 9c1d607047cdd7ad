from __future__ import annotations

import random
from typing import Callable, Tuple

import pytest

from iter_runner.sim.lock_step import PATIENCE, LockStep


def stream(
    period: int, tick: float, error: Callable[[], float] = lambda: 0.0, late: int = 0, ticks: int = 400
) -> Tuple[int, int]:
    """A streamer against the lock: how many waits were in vain, and the cycles that went by.

    It sees the clock only at publications (multiples of ``period`` cycles); its ticks are ``tick`` cycles apart, give
    or take a rounding ``error``, and it begins ``late`` ticks behind them.
    """
    lock = LockStep(period)
    in_vain = now = sent = 0
    while sent < ticks:
        seen = now - now % period
        if (sent - late) * tick + error() <= seen and (sent == 0 or lock.holds(now) or not late):
            lock.target_came(now, tick)
            sent += 1
        elif lock.holds(now):
            lock.waited_in_vain()
            in_vain += 1
        else:
            now += 1
    return in_vain, now


@pytest.mark.parametrize(("period", "tick"), [(1, 1), (4, 4), (1, 1.25), (4, 5), (1, 2.5), (4, 3.7)])
def test_a_streamer_in_step_costs_hardly_a_wait(period: int, tick: float) -> None:
    in_vain, cycles = stream(period, tick)
    assert in_vain <= 2
    assert cycles == pytest.approx(400 * tick, abs=3 * period + tick)


@pytest.mark.parametrize(("period", "tick"), [(1, 1), (4, 4), (1, 1.25)])
def test_a_streamer_whose_ticks_round_either_way_costs_hardly_a_wait(period: int, tick: float) -> None:
    random.seed(5)
    in_vain, cycles = stream(period, tick, lambda: random.choice((-1e-9, 0.0, 1e-9)))
    assert in_vain <= 2
    assert cycles == pytest.approx(400 * tick, abs=3 * period + tick)


@pytest.mark.parametrize(("period", "tick"), [(1, 1), (4, 4), (1, 1.25), (4, 5)])
def test_a_streamer_behind_its_ticks_gets_one_tick_of_the_clock_a_target(period: int, tick: float) -> None:
    in_vain, cycles = stream(period, tick, late=10_000)
    assert in_vain == 0
    assert cycles == pytest.approx(400 * tick, abs=3 * period + tick)


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


def test_a_burst_of_targets_does_not_let_the_clock_run_away() -> None:
    lock = LockStep(1)
    for _ in range(20):
        lock.target_came(7, 1)
    assert lock.holds(9)


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
        else:
            now += 1
    assert waits == len(PATIENCE)
    assert not lock.holds(now)


def test_another_program_ends_the_stream() -> None:
    lock = LockStep(1)
    lock.target_came(0, 1)
    lock.target_came(1, 1)
    lock.other_came()
    assert not lock.holds(100)
