"""The simulated participant: the same responses for a seed, whatever the timing, and none to what is over."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_runs import ScriptedRun

from iter_runner.events import EventKind
from iter_runner.study.participant import ResponseTimes, SimulatedParticipant


def responses_of(run, seed):
    participant = SimulatedParticipant(ResponseTimes(seed))
    given_responses = []
    for event in run.events:
        participant.feed(event)
        if participant.pending is not None:
            given_responses.append(participant.pending)
            participant.responded(participant.pending)
    return given_responses


def test_the_nth_wait_gets_the_same_response_whatever_the_timing():
    slow = ScriptedRun("a", 5.0).start().move(9.0).wait_button(1.0).move(2.0).wait_time(3.0).wait_button(7.0)
    fast = ScriptedRun("b", 900.0).start().wait_button(0.1).wait_button(0.2)
    first, second = responses_of(slow, 7), responses_of(fast, 7)
    assert [r.response_time for r in first] == [r.response_time for r in second]
    assert first[0].time == 14.0 + first[0].response_time
    assert responses_of(slow, 8)[0].response_time != first[0].response_time


def test_a_run_twice_with_one_participant_gets_the_same_responses_twice():
    run, again = (ScriptedRun(name).start().wait_button(1.0).wait_button(1.0).finish() for name in ("a", "b"))
    both = ScriptedRun()
    both.events = run.events + again.events
    times = [r.response_time for r in responses_of(both, 3)]
    assert times[:2] == times[2:]


@given(st.integers(), st.integers(min_value=0, max_value=10_000))
def test_responses_are_positive_and_finite(seed, number):
    assert 0 < ResponseTimes(seed).response(number) < math.inf


def test_responses_are_log_normal():
    logs = [math.log(ResponseTimes(1, median=3.0, sigma=0.5).response(n)) for n in range(4000)]
    assert statistics.fmean(logs) == pytest.approx(math.log(3.0), abs=0.03)
    assert statistics.stdev(logs) == pytest.approx(0.5, abs=0.03)


def test_responses_stay_the_same_from_release_to_release():
    times = ResponseTimes(42, median=2.0, sigma=0.4)
    assert [round(times.response(n), 9) for n in range(3)] == [1.55905375, 3.308461643, 2.221117857]


def test_without_spread_every_response_is_the_median():
    assert {ResponseTimes(5, median=1.25, sigma=0.0).response(n) for n in range(5)} == {1.25}


@pytest.mark.parametrize(("median", "sigma"), [(0.0, 0.1), (-1.0, 0.1), (math.nan, 0.1), (1.0, -0.1), (1.0, math.inf)])
def test_times_that_no_person_has_are_refused(median, sigma):
    with pytest.raises(ValueError, match=r"median|sigma"):
        ResponseTimes(0, median, sigma)


@pytest.fixture
def waiting():
    """A participant who is about to respond, and the run so far."""
    run = ScriptedRun().start().open_wait(0.1)
    participant = SimulatedParticipant(ResponseTimes(0))
    for event in run.events:
        participant.feed(event)
    assert participant.pending is not None
    return participant, run


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (EventKind.WAIT_ENDED, {"condition": "button", "by": "timeout"}),
        (EventKind.RUN_FINISHED, {"outcome": "stopped"}),
        (EventKind.STEP_STARTED, {"name": "wait"}),
    ],
)
def test_a_wait_that_ended_otherwise_is_not_responded_to(waiting, kind, data):
    participant, run = waiting
    participant.feed(run.emit(kind, **data))
    assert participant.pending is None and participant.unconfirmed is None


def test_a_new_run_is_begun_afresh(waiting):
    participant, _ = waiting
    participant.feed(ScriptedRun("another").start().events[0])
    assert participant.pending is None


def test_a_press_is_given_again_unless_the_run_recorded_it(waiting):
    participant, run = waiting
    response = participant.pending
    participant.responded(response)
    assert participant.pending is None
    participant.respond_again()
    assert participant.pending is response
    participant.responded(response)
    run.press(time=response.time - 0.5)
    participant.feed(run.events[-1])
    assert participant.unconfirmed is response, "that was somebody else's press"
    run.press(time=response.time, used=True)
    participant.feed(run.events[-1])
    assert participant.unconfirmed is None
