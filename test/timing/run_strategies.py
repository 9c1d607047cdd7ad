"""Hypothesis strategies of whole runs."""

from __future__ import annotations

from typing import List, Tuple

from hypothesis import strategies as st
from scripted_runs import ScriptedRun

from iter_runner.events import EventKind

SECONDS = st.floats(min_value=0.01, max_value=60.0, allow_nan=False).map(lambda value: round(value, 3))

ACTIONS = st.one_of(
    st.tuples(st.just("move"), SECONDS),
    st.tuples(st.just("gripper"), SECONDS),
    st.tuples(st.just("wait_time"), SECONDS),
    st.tuples(st.just("wait_button"), SECONDS),
    st.tuples(st.just("gap"), SECONDS),
    st.tuples(st.just("pause"), SECONDS),
)


def perform(run: ScriptedRun, actions: List[Tuple[str, float]], late: float = 0.004) -> ScriptedRun:
    """Lets the run go through the actions; the runner hears of a press ``late`` seconds after it."""
    for name, seconds in actions:
        if name == "move":
            run.move(seconds)
        elif name == "gripper":
            run.gripper("grasp", seconds)
        elif name == "wait_time":
            run.wait_time(seconds)
        elif name == "wait_button":
            run.wait_button(seconds, late=late)
        elif name == "gap":
            run.work(seconds)
        elif name == "pause":
            run.emit(EventKind.PAUSED)
            run.work(seconds)
            run.emit(EventKind.RESUMED, after="pause")
    return run


RUNS = st.builds(
    lambda actions, finished: (
        perform(ScriptedRun().start(), actions).finish() if finished else perform(ScriptedRun().start(), actions)
    ),
    st.lists(ACTIONS, max_size=25),
    st.booleans(),
)
