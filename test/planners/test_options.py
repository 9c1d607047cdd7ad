from __future__ import annotations

import logging
from typing import Any

import pytest

from iter_runner.planners.base import Unreachable
from iter_runner.planners.options import read_options


def test_defaults() -> None:
    options = read_options({})
    assert (options.stretch, options.velocity, options.motion_type) == (1.0, None, "")


def test_speed_and_time_factor_stretch() -> None:
    assert read_options({"speed": 0.5, "time_factor": 3}).stretch == 6.0


def test_a_time_factor_below_one_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    assert read_options({"time_factor": 0.5}).stretch == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"speed": 0},
        {"speed": 1.5},
        {"speed": "fast"},
        {"velocity": -1},
        {"velocity": float("nan")},
        {"acceleration": True},
        {"motion_type": "movep"},
        {"time_factor": float("inf") * 0},
    ],
)
def test_a_wrong_value_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(Unreachable, match=f"options.{next(iter(wrong))} is .*, expected"):
        read_options(wrong)


def test_unknown_options_warn_once_and_the_originals_do_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            read_options({"steady_state_threshold": 0.001, "spin": 1})
    assert [record.getMessage() for record in caplog.records] == ["option 'spin' of a move is unknown and ignored"]
