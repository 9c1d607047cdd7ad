"""A run cut into intervals: nothing lost, nothing counted twice."""

import pytest
from hypothesis import given
from run_strategies import RUNS
from scripted_runs import ScriptedRun

from iter_runner.events import EventKind
from iter_runner.timing.intervals import IntervalKind, human_waits, intervals, run_span, suspensions


@given(RUNS)
def test_intervals_are_contiguous_and_fill_the_run(run):
    found = intervals(run.events)
    start, end = run_span(run.events)
    assert [i.start for i in found] == ([start] + [i.end for i in found[:-1]] if found else [])
    assert (found[-1].end if found else start) == end
    assert all(i.duration > 0 for i in found)


@given(RUNS)
def test_every_wait_on_the_human_is_one_interaction(run):
    waits = human_waits(run.events)
    interactions = [i for i in intervals(run.events) if i.kind is IntervalKind.INTERACTION]
    assert [(w.started, w.ended, w.step) for w in waits] == [(i.start, i.end, i.step) for i in interactions]


@given(RUNS)
def test_neglect_and_suspension_belong_to_a_step_that_is_under_way_or_begins(run):
    starts = {e.step: e.time for e in run.events if e.kind is EventKind.STEP_STARTED}
    for interval in intervals(run.events):
        if interval.step >= 0:
            assert starts[interval.step] < interval.end


def test_the_press_at_its_source_ends_the_wait_not_its_arrival():
    run = ScriptedRun().start().move(2.0).wait_button(3.0, late=0.5).move(1.0).finish()
    found = [(i.kind.value, i.start, i.end, i.step) for i in intervals(run.events)]
    assert found == [
        ("neglect", 100.0, 102.0, 0),
        ("interaction", 102.0, 105.0, 1),
        ("neglect", 105.0, 106.5, 2),
    ]


def test_a_wait_for_a_time_is_the_robots_own():
    run = ScriptedRun().start().wait_time(4.0).finish()
    assert [(i.kind, i.duration) for i in intervals(run.events)] == [(IntervalKind.NEGLECT, 4.0)]
    assert human_waits(run.events) == []


def test_an_open_wait_counts_to_the_last_event_and_is_marked():
    run = ScriptedRun().start().move(1.0).open_wait(7.5)
    (wait,) = human_waits(run.events)
    assert wait.open and wait.by == "" and wait.duration == 7.5
    assert intervals(run.events)[-1].open


def test_a_run_under_way_is_measured_up_to_now():
    run = ScriptedRun().start().move(1.0).open_wait(7.5)
    last = intervals(run.events, now=run.now + 10.0)[-1]
    assert (last.kind, last.duration, last.open) == (IntervalKind.INTERACTION, 17.5, True)
    finished = ScriptedRun().start().move(1.0).finish()
    assert intervals(finished.events, now=1e6) == intervals(finished.events)


def test_a_pause_is_neither_neglect_nor_interaction_but_a_wait_goes_on_in_it():
    run = ScriptedRun().start().work(1.0)
    run.emit(EventKind.PAUSED)
    run.work(5.0)
    run.emit(EventKind.RESUMED, after="pause")
    run.work(1.0).begin("wait")
    run.emit(EventKind.WAIT_STARTED, condition="button")
    run.work(1.0).emit(EventKind.PAUSED)
    run.work(2.0).emit(EventKind.RESUMED, after="pause")
    run.emit(EventKind.WAIT_ENDED, condition="button", by="press", started=107.0, ended=run.now, duration=3.0)
    run.end().finish()
    assert [(i.kind.value, i.duration) for i in intervals(run.events)] == [
        ("neglect", 1.0),
        ("suspended", 5.0),
        ("neglect", 1.0),
        ("interaction", 3.0),
    ]


def test_a_fault_suspends_until_the_operator_resumes_or_the_run_ends():
    run = ScriptedRun().start().begin("move").work(1.0)
    run.emit(EventKind.FAULT, code="protective_stop", message="")
    run.work(3.0).finish("aborted")
    assert suspensions(run.events) == [(101.0, 104.0)]


def test_a_wait_that_a_fault_interrupted_ends_where_its_step_begins_again():
    run = ScriptedRun().start().open_wait(2.0)
    run.step -= 1
    run.begin("wait")
    run.emit(EventKind.WAIT_STARTED, condition="button")
    run.work(1.0).emit(EventKind.WAIT_ENDED, condition="button", by="press", started=102.0, ended=103.0)
    assert [(w.by, w.duration, w.open) for w in human_waits(run.events)] == [
        ("interrupted", 2.0, False),
        ("press", 1.0, False),
    ]


def test_a_press_from_before_the_wait_never_makes_it_negative():
    run = ScriptedRun().start().begin("wait")
    run.emit(EventKind.WAIT_STARTED, condition="button")
    run.emit(EventKind.WAIT_ENDED, condition="button", by="press", started=100.0, ended=99.9, duration=0.0)
    assert human_waits(run.events)[0].duration == 0.0


def test_no_events_no_intervals():
    assert intervals([]) == []
    with pytest.raises(ValueError, match="without an event"):
        run_span([])
