from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
from rich.console import Console

from iter_runner.plan.step import Rad
from iter_runner.runner.progress import PlainView, duration_text, make_view, render, status_text
from iter_runner.runner.state import RunState, State, expected_remaining

RUNNING = RunState(State.RUNNING, "s", "House", 2, 10, "move", "moving to (0, 0, 0) m", "", "", 100.0, 65.0)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3661, "1:01:01"), (-3, "0:00"), (math.nan, "-")]
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_whom_the_run_waits_for_is_said() -> None:
    waiting = replace(RUNNING, state=State.WAITING_FOR_HUMAN, waiting_for="button")
    assert status_text(waiting) == "WAITING FOR button"
    assert status_text(replace(waiting, state=State.PAUSED)) == "PAUSED (waiting for button)"
    assert status_text(replace(RUNNING, state=State.FAULTED, fault="no air")) == "FAULTED: no air"


def test_the_live_view_counts_down() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(render(RUNNING, now=130.0, since=5.0))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for words in ("House", "3 of 10", "moving to (0, 0, 0) m", "0:30 elapsed, 1:00 expected to remain"):
        assert words in text


def test_without_expected_times_nothing_is_said_about_the_rest() -> None:
    console = Console(file=io.StringIO(), width=100)
    console.print(render(replace(RUNNING, remaining=math.nan), now=130.0, since=0.0))
    assert "remain" not in console.file.getvalue()  # type: ignore[attr-defined]


def test_plain_output_has_a_line_for_every_step_and_every_stop() -> None:
    output = io.StringIO()
    view = make_view(Console(file=output, width=200), "x")
    assert isinstance(view, PlainView)
    waiting = replace(RUNNING, step=3, state=State.RUNNING, doing="waiting for the button")
    open_wait = replace(waiting, state=State.WAITING_FOR_HUMAN, waiting_for="button")
    paused = replace(open_wait, state=State.PAUSED)
    passed = [RUNNING, waiting, open_wait, paused, open_wait, waiting, replace(RUNNING, step=4, doing="on")]
    view.show(passed[-1], passed, 101.5)
    view.show(passed[-1], [], 102.0)
    lines = [line.split("s  ", 1)[1] for line in output.getvalue().splitlines()]
    assert lines == [
        "step 3 of 10: moving to (0, 0, 0) m",
        "step 4 of 10: waiting for the button",
        "step 4 of 10: waiting for the button [WAITING FOR button]",
        "step 4 of 10: waiting for the button [PAUSED (waiting for button)]",
        "step 4 of 10: waiting for the button [WAITING FOR button]",
        "step 5 of 10: on",
    ]


def test_a_clock_a_tick_behind_the_runs_shows_no_negative_time() -> None:
    output = io.StringIO()
    make_view(Console(file=output, width=200), "x").show(RUNNING, [RUNNING], 99.992)
    assert output.getvalue().startswith("    0.000 s  step 3 of 10")


def test_what_remains_is_what_the_steps_expect() -> None:
    assert expected_remaining([Rad(neglect_time=2.0), None, Rad(expected_interaction_time=3.0)]) == [5, 3, 3, 0]
    assert all(math.isnan(value) for value in expected_remaining([None, None]))
