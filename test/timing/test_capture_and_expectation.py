"""Capture writes what was measured; replay expects exactly that."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_strategies import ACTIONS, SECONDS, perform
from scripted_runs import ScriptedRun

from iter_runner.events import EventKind
from iter_runner.timing.capture import captured_plan, entry_times
from iter_runner.timing.expectation import (
    countdown,
    expected_intervals,
    expected_rad,
    expected_step,
    projected_rad,
)
from iter_runner.timing.intervals import IntervalKind, intervals
from iter_runner.timing.metrics import robot_attention_demand, total


def plan_of(run):
    """A plan with an entry for each step that the run began."""
    names = {e.step: e.data["name"] for e in run.events if e.kind is EventKind.STEP_STARTED}
    return {"version": "1.0.0", "task": [{"name": names[step]} for step in sorted(names)]}


def expectation_of(plan):
    return expected_intervals(
        [expected_step(index, f"/task/{index}", entry.get("rad")) for index, entry in enumerate(plan["task"])]
    )


@given(st.lists(ACTIONS, max_size=25))
def test_a_captured_plan_expects_the_intervals_that_were_measured(actions):
    run = perform(ScriptedRun().start(), actions).finish()
    expected = expectation_of(captured_plan(plan_of(run), run.events))
    # What lies between two waits without a step between them has no entry to be written to.
    measured = [
        interval
        for interval in intervals(run.events)
        if interval.kind is IntervalKind.INTERACTION
        or any(
            e.kind is EventKind.STEP_STARTED and e.data["name"] != "wait" and interval.start <= e.time < interval.end
            for e in run.events
        )
    ]
    waits = [i.duration for i in intervals(run.events) if i.kind is IntervalKind.INTERACTION]
    assert [i.duration for i in expected if i.kind is IntervalKind.INTERACTION] == pytest.approx(waits, abs=2e-6)
    if all(name in ("move", "wait_button", "gripper") for name, _ in actions) and not _adjacent_waits(actions):
        assert [i.kind for i in expected] == [i.kind for i in measured]
        assert [i.duration for i in expected] == pytest.approx([i.duration for i in measured], abs=1e-4)
        assert [i.step for i in expected] == [i.step for i in measured]


def _adjacent_waits(actions):
    names = [name for name, _ in actions]
    return (
        any(a == b == "wait_button" for a, b in zip(names, names[1:]))
        or names[:1] == ["wait_button"]
        or (names[-1:] == ["wait_button"])
    )


def test_each_entry_carries_its_own_share_and_pauses_are_left_out():
    run = ScriptedRun().start().move(2.0).gripper("grasp", 0.5).wait_button(3.0, late=0.25).move(1.0)
    run.emit(EventKind.PAUSED)
    run.work(9.0).emit(EventKind.RESUMED, after="pause")
    run.wait_time(4.0).finish()
    assert entry_times(run.events) == {
        0: {"is_interaction": False, "neglect_time": 2.0},
        1: {"is_interaction": False, "neglect_time": 0.5},
        2: {"is_interaction": True, "expected_interaction_time": 3.0},
        3: {"is_interaction": False, "neglect_time": 1.25},
        4: {"is_interaction": False, "neglect_time": 4.0},
    }


def test_a_composite_entry_gets_the_time_of_all_its_steps():
    run = ScriptedRun().start().move(1.0, pointer="/task/0")
    for part in range(3):
        run.move(2.0, pointer=f"/task/1/path_to_destination/{part}")
    run.wait_button(1.5, pointer="/task/2").finish()
    plan = captured_plan({"task": [{"name": "move"}, {"name": "pick_and_place_static"}, {"name": "wait"}]}, run.events)
    assert plan["task"][1]["rad"] == {"is_interaction": False, "neglect_time": 6.0}
    assert plan["task"][2]["rad"] == {"is_interaction": True, "expected_interaction_time": 1.5}


def test_what_the_run_did_not_finish_keeps_what_the_plan_said():
    run = ScriptedRun().start().move(1.0).begin("move").work(5.0).finish("stopped")
    plan = {"task": [{"name": "move"}, {"name": "move", "rad": {"neglect_time": 7.0}}, {"name": "wait"}]}
    captured = captured_plan(plan, run.events)
    assert captured["task"][0]["rad"]["neglect_time"] == 1.0
    assert captured["task"][1:] == plan["task"][1:]
    assert "rad" not in plan["task"][0], "the plan that was given is left alone"


def test_what_the_plan_says_of_the_human_stays():
    run = ScriptedRun().start().move(1.0).finish()
    captured = captured_plan(
        {"task": [{"name": "move", "rad": {"neglect_time": 9.0, "human_active": True}}]}, run.events
    )
    assert captured["task"][0]["rad"] == {"is_interaction": False, "neglect_time": 1.0, "human_active": True}


def test_a_composite_that_was_stopped_between_its_steps_is_not_finished():
    run = ScriptedRun().start().move(1.0, pointer="/task/0/path_to_destination/0").finish("stopped")
    assert entry_times(run.events) == {}


def test_a_captured_plan_is_a_plan():
    plan_load = pytest.importorskip("iter_runner.plan.load")
    primitives = pytest.importorskip("iter_runner.primitives")
    plan = {
        "version": "1.0.0",
        "task": [
            {"name": "wait", "condition": "time", "value": 1},
            {"name": "wait", "condition": "button"},
            {"name": "logger", "msg": "done"},
        ],
    }
    run = ScriptedRun().start().wait_time(1.0).wait_button(2.5, late=0.01).begin("logger").end().finish()
    loaded = plan_load.load_plan(json.dumps(captured_plan(plan, run.events)), primitives.REGISTRY)
    rads = [planned.step.rad.model_dump(exclude_none=True) for planned in loaded.steps]
    assert rads == [
        {"is_interaction": False, "neglect_time": 1.0},
        {"is_interaction": True, "expected_interaction_time": 2.5},
        {"is_interaction": False, "neglect_time": 0.01},
    ]


@given(st.lists(SECONDS, min_size=1, max_size=6))
def test_neglect_on_the_first_step_or_on_each_step_is_the_same_interval(seconds):
    each = [expected_step(k, "", {"neglect_time": s}) for k, s in enumerate(seconds)]
    first = [expected_step(k, "", {"neglect_time": sum(seconds)} if k == 0 else None) for k in range(len(seconds))]
    (a,), (b,) = expected_intervals(each), expected_intervals(first)
    assert (a.kind, a.step, a.start) == (b.kind, b.step, b.start)
    assert a.end == pytest.approx(b.end)


@pytest.fixture
def plan():
    """Ten seconds of work in two steps, a wait of 4, five of work, a wait of 2."""
    times = [(6.0, False), (4.0, False), (4.0, True), (5.0, False), (2.0, True)]
    return expected_intervals(
        [
            expected_step(k, f"/task/{k}", {"expected_interaction_time" if human else "neglect_time": seconds})
            for k, (seconds, human) in enumerate(times)
        ]
    )


def test_the_countdown_follows_the_run(plan):
    run = ScriptedRun().start()

    def left(after):
        present = countdown(plan, intervals(run.events, run.now + after))
        return (present.neglect, present.interaction)

    assert left(0.0) == (0.0, 0.0)
    run.begin("move")
    assert left(2.5) == (7.5, 0.0)
    run.work(7.0).end().begin("move")
    assert left(1.0) == (2.0, 0.0)
    assert left(60.0) == (0.0, 0.0), "the robot takes longer than expected"
    run.end().begin("wait")
    run.emit(EventKind.WAIT_STARTED, condition="button")
    assert left(1.5) == (0.0, 2.5)
    run.work(3.0).emit(EventKind.WAIT_ENDED, condition="button", by="press", ended=run.now)
    assert left(1.0) == (4.0, 0.0), "the next neglect begins with the press, before its first step does"
    run.end().begin("move").work(2.0).emit(EventKind.PAUSED)
    assert left(30.0) == (3.0, 0.0), "a pause stops the countdown"
    run.work(30.0).emit(EventKind.RESUMED, after="pause")
    assert left(1.0) == (2.0, 0.0)
    run.work(1.0).end().finish("stopped")
    assert left(1.0) == (0.0, 0.0)


def test_a_wait_that_the_plan_has_no_time_for_counts_down_from_nothing(plan):
    run = ScriptedRun().start().begin("wait")
    run.emit(EventKind.WAIT_STARTED, condition="button")
    assert countdown(plan, intervals(run.events, run.now + 1)).interaction == 0.0


def test_the_projected_rad_goes_from_the_plans_to_the_runs(plan):
    assert projected_rad(plan, []) == expected_rad(plan) == pytest.approx(6 / 21)
    run = ScriptedRun().start().move(6.0).move(4.0)
    on_schedule = projected_rad(plan, intervals(run.events, run.now + 0.0))
    assert on_schedule == pytest.approx(6 / 21)
    run.wait_button(8.0)
    assert projected_rad(plan, intervals(run.events, run.now + 0.001)) == pytest.approx(10 / 25)
    run.move(5.0).wait_button(2.0).finish()
    measured = intervals(run.events)
    assert projected_rad(plan, measured) == robot_attention_demand(
        total(measured, IntervalKind.INTERACTION), total(measured, IntervalKind.NEGLECT)
    )


def test_a_plan_without_times_expects_nothing():
    assert expected_intervals([expected_step(0, "/task/0", None), expected_step(1, "/task/1", {})]) == []
    assert math.isnan(expected_rad([]))
    assert math.isnan(projected_rad([], []))
