"""Robot idle, RAD, fan-out and fluency."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_strategies import RUNS
from scripted_runs import ScriptedRun

from iter_runner.timing.intervals import human_waits, run_span
from iter_runner.timing.metrics import (
    fan_out,
    fluency,
    fluency_of,
    human_activity,
    metrics,
    robot_attention_demand,
)


@given(RUNS)
def test_the_parts_add_up_to_the_run_and_robot_idle_is_the_sum_of_the_waits(run):
    numbers = metrics(run.events)
    start, end = run_span(run.events)
    assert numbers.length == pytest.approx(end - start, abs=1e-9)
    assert numbers.robot_idle + numbers.neglect + numbers.suspended == pytest.approx(numbers.length, abs=1e-9)
    assert numbers.robot_idle == pytest.approx(math.fsum(w.duration for w in human_waits(run.events)), abs=1e-9)


@given(st.floats(min_value=1e-3, max_value=1e5), st.floats(min_value=0, max_value=1e5))
def test_fan_out_is_the_inverse_of_rad(interaction, neglect):
    rad = robot_attention_demand(interaction, neglect)
    assert 0 < rad <= 1
    assert fan_out(interaction, neglect) == pytest.approx(1 / rad)


def test_what_is_not_defined_is_no_number():
    assert math.isnan(robot_attention_demand(0, 0))
    assert math.isnan(fan_out(0, 0))
    assert robot_attention_demand(0, 5) == 0
    assert fan_out(0, 5) == math.inf


def test_functional_delay_is_from_the_press_to_the_robots_next_step():
    run = ScriptedRun().start().move(1.0).wait_button(2.0, late=0.012).work(0.02).move(1.0)
    run.wait_button(2.0, late=0.5, by="timeout").move(1.0).wait_button(1.0, late=0.7).finish()
    assert metrics(run.events).functional_delay == pytest.approx(0.032)


SPANS = st.lists(st.floats(min_value=0, max_value=100), min_size=2, max_size=12, unique=True).map(
    lambda edges: list(zip(sorted(edges)[::2], sorted(edges)[1::2]))
)


@given(SPANS, SPANS)
def test_fluency_fractions_are_consistent(robot, human):
    found = fluency(robot, human, (0.0, 100.0))
    for fraction in (found.robot_idle, found.human_idle, found.concurrent_activity):
        assert -1e-9 <= fraction <= 1 + 1e-9
    assert found.concurrent_activity <= 1 - max(found.robot_idle, found.human_idle) + 1e-9
    mirrored = fluency(human, robot, (0.0, 100.0))
    assert mirrored.robot_idle == found.human_idle
    assert mirrored.concurrent_activity == pytest.approx(found.concurrent_activity)


def test_fluency_of_a_hand_over():
    # The robot works 0...4, the human 5...8, the robot 7...10: one second nobody works, one second both do.
    found = fluency([(0.0, 4.0), (7.0, 10.0)], [(5.0, 8.0)], (0.0, 10.0))
    assert found.robot_idle == pytest.approx(0.3)
    assert found.human_idle == pytest.approx(0.7)
    assert found.concurrent_activity == pytest.approx(0.1)
    assert found.functional_delay == pytest.approx((1.0 - 1.0) / 10.0)


def test_a_task_without_length_is_refused():
    with pytest.raises(ValueError, match="no length"):
        fluency([], [], (3.0, 3.0))


def test_what_the_human_does_is_known_where_the_plan_says_it():
    run = ScriptedRun().start().move(2.0).move(3.0, rad={"human_active": True}).move(1.0)
    run.wait_button(4.0, late=0.01).move(2.0).move(3.0, rad={"human_active": False}).finish()
    # At work from the second move to the press, and from the next step to the one that says otherwise.
    assert human_activity(run.events) == [(102.0, 110.0), (110.01, pytest.approx(112.01))]
    found = fluency_of(run.events)
    length = 15.01
    assert found.robot_idle == pytest.approx(4.0 / length)
    assert found.human_idle == pytest.approx((length - 10.0) / length)
    assert found.concurrent_activity == pytest.approx(6.0 / length)


def test_without_a_word_in_the_plan_there_is_no_fluency():
    run = ScriptedRun().start().move(2.0).wait_button(1.0).finish()
    assert human_activity(run.events) is None
    assert fluency_of(run.events) is None
    assert fluency_of([]) is None


@given(RUNS, st.booleans())
def test_the_humans_spans_lie_in_the_run_and_apart(run, active):
    run.begin("move", rad={"human_active": active}).end()
    spans = human_activity(run.events)
    start, end = run_span(run.events)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(start <= edge <= end for edge in edges)
