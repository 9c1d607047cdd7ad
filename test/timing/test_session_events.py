"""Following a session: whatever the topic loses, and whenever the listener starts, no event is missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_strategies import perform
from scripted_runs import ScriptedRun

from iter_runner.timing.session_events import SessionEvents

ACTIONS = [("move", 1.0), ("wait_button", 2.0), ("gripper", 0.5), ("wait_time", 1.0)]


def a_run(session="one"):
    return perform(ScriptedRun(session).start(), ACTIONS).finish().events


@given(st.data())
def test_lost_and_repeated_messages_do_no_harm(data):
    events = a_run()
    arriving = data.draw(st.lists(st.sampled_from(range(len(events))), min_size=1))
    arriving.sort()
    on_disk = 0

    def journal(session):
        return events[:on_disk]

    record = SessionEvents(journal)
    handed_on = []
    for index in arriving:
        on_disk = index + 1
        handed_on += record.feed(events[index])
    assert handed_on == record.events == events[: arriving[-1] + 1]
    assert record.missed == 0
    assert record.finished == (arriving[-1] == len(events) - 1)


def test_catches_up_before_the_next_event_comes():
    events = a_run()
    record = SessionEvents(lambda session: events[:7])
    assert record.catch_up("one") == events[:7]
    assert record.catch_up("one") == []
    assert record.feed(events[7]) == [events[7]]


def test_a_new_session_replaces_the_old_one_for_good():
    old, new = a_run("one"), a_run("two")
    journals = {"one": old, "two": new}
    record = SessionEvents(lambda session: journals[session])
    record.feed(old[0])
    assert record.feed(new[2]) == new[:3]
    assert record.feed(old[1]) == []
    assert record.catch_up("one") == []
    assert record.session == "two"


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("no such session")])
def test_without_a_journal_it_goes_on_and_says_what_is_missing(error):
    def journal(session):
        raise error

    warnings = []
    events = a_run()
    record = SessionEvents(journal, warnings.append)
    assert record.feed(events[3]) == [events[3]]
    assert record.feed(events[6]) == [events[6]]
    assert record.missed == 5
    assert len(warnings) == 1 and "one" in warnings[0]


def test_a_session_without_a_journal_yet_is_taken_up_with_its_first_event():
    events = a_run("two")
    warnings = []

    def journal(session):
        raise ValueError("no such session")

    record = SessionEvents(journal, warnings.append)
    record.feed(a_run("one")[0])
    assert record.catch_up("two") == [] and record.session == "one" and not warnings
    assert record.feed(events[0]) == [events[0]]
