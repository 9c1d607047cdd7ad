from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest

from iter_runner.events import Event, EventKind
from iter_runner.runner.event_log import EventLog, plain
from iter_runner.runner.journal import Journal, JournalError
from iter_runner.study import sessions
from iter_runner.study.sessions import SessionError

SOURCE = Path(__file__).resolve().parents[2] / "src"


class StoppedClock:
    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time


def log_event(sequence: int, **data: object) -> Event:
    return Event(sequence, "s", EventKind.LOG, 1.0, 2.0, 3, "/task/3", data)


def test_what_was_appended_is_read_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    events = [log_event(0, message="ä\n"), log_event(1, value=0.1 + 0.2)]
    journal.append(events)
    assert sessions.read_journal(tmp_path) == events


def test_a_second_journal_does_not_overwrite_the_first(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.jsonl")
    with pytest.raises(JournalError, match="can't make the journal"):
        Journal(tmp_path / "journal.jsonl")


def test_a_full_disk_leaves_no_half_event_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append([log_event(0)])
    real_write = os.pwrite
    tries = iter([True, False])

    def half_written(descriptor: int, content: bytes, offset: int) -> int:
        if next(tries):
            return real_write(descriptor, content[: len(content) // 2], offset)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", half_written)
    with pytest.raises(JournalError, match="No space left"):
        journal.append([log_event(1)])
    monkeypatch.setattr(os, "pwrite", real_write)
    assert [event.sequence for event in sessions.read_journal(tmp_path)] == [0]
    journal.append([log_event(1)])
    assert [event.sequence for event in sessions.read_journal(tmp_path)] == [0, 1]


@pytest.mark.parametrize("tail", [b"", b'{"sequence":2,"ses', b"\0\0\0\0", b'{"sequence":2}\n', b"\0\0\0\n\0\0"])
def test_a_torn_end_is_left_out(tmp_path: Path, tail: bytes) -> None:
    file = tmp_path / "journal.jsonl"
    Journal(file).append([log_event(0), log_event(1)])
    with file.open("ab") as stream:
        stream.write(tail)
    assert [event.sequence for event in sessions.read_journal(file)] == [0, 1]


def test_damage_in_the_middle_is_said(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_text(f"{log_event(0).to_json()}\nnonsense\n{log_event(2).to_json()}\n")
    with pytest.raises(SessionError, match="line 2"):
        sessions.read_journal(file)


WRITER = """
import sys
from pathlib import Path
from iter_runner.clock import MonotonicClock
from iter_runner.events import EventKind
from iter_runner.runner.event_log import EventLog
from iter_runner.runner.journal import Journal

journal = Journal(Path(sys.argv[1]) / "journal.jsonl")
log = EventLog("s", journal, lambda event: print(event.sequence, flush=True), MonotonicClock())
while True:
    log.add(EventKind.STEP_FINISHED, data={"filler": "x" * 300}, hold=True)
    log.add(EventKind.STEP_STARTED, data={"filler": "x" * 300})
"""


def test_everything_that_was_published_survives_a_kill(tmp_path: Path) -> None:
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]))
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, env=environment, text=True
        )
        assert writer.stdout is not None
        published = [int(writer.stdout.readline()) for _ in range(20)]
        time.sleep(0.001 * attempt)
        writer.send_signal(signal.SIGKILL)
        published += [int(line) for line in writer.stdout.read().splitlines() if line]
        writer.wait()
        journalled = [event.sequence for event in sessions.read_journal(folder)]
        assert journalled == list(range(len(journalled)))
        assert set(published) <= set(journalled)


class RecordingStore:
    def __init__(self) -> None:
        self.writes: list[list[Event]] = []
        self.full = False

    def append(self, events: list[Event]) -> None:
        if self.full:
            raise JournalError("full")
        self.writes.append(list(events))


def test_events_are_published_after_they_are_stored_and_in_order() -> None:
    store, published = RecordingStore(), []

    def publish(event: Event) -> None:
        assert event in store.writes[-1]
        published.append(event.sequence)

    log = EventLog("s", store, publish, StoppedClock())
    log.add(EventKind.STEP_FINISHED, hold=True)
    assert (store.writes, published) == ([], [])
    log.add(EventKind.STEP_STARTED)
    assert [len(write) for write in store.writes] == [2]
    assert published == [0, 1]


def test_events_that_the_disk_refused_stay_in_line() -> None:
    store, published = RecordingStore(), []
    log = EventLog("s", store, published.append, StoppedClock())
    store.full = True
    with pytest.raises(JournalError):
        log.add(EventKind.LOG)
    assert published == []
    store.full = False
    log.add(EventKind.LOG)
    assert [event.sequence for event in published] == [0, 1]


def test_data_becomes_what_json_knows() -> None:
    data = {"a": np.arange(2), "b": np.float64(0.5), "c": float("nan"), "d": (1, Path("/x")), "e": EventKind.LOG}
    assert plain(data) == {"a": [0, 1], "b": 0.5, "c": None, "d": [1, "/x"], "e": "log"}


def test_a_session_is_named_for_what_it_is_filed_under(tmp_path: Path) -> None:
    now = datetime(2026, 3, 4, 5, 6, 7, 89000, tzinfo=timezone.utc)
    session = sessions.create_session('{"task": []}', "pilot study", "../P07", "", folder=tmp_path, now=now)
    assert session.name.startswith("20260304T050607.089Z_pilot-study_P07_")
    assert session.directory.parent == tmp_path
    assert session.plan.read_text() == '{"task": []}'
    assert session.paths.is_dir()


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SessionError, match="ITER_RUNNER_SESSIONS"):
        sessions.create_session("{}", folder=tmp_path / "file" / "sessions")


def test_sessions_are_found_by_name_beginning_path_or_as_the_last(tmp_path: Path) -> None:
    made = []
    for minute in (1, 2):
        now = datetime(2026, 1, 1, 1, minute, tzinfo=timezone.utc)
        session = sessions.create_session("{}", f"study{minute}", folder=tmp_path, now=now)
        Journal(session.journal)
        made.append(session)
    sessions.create_session("{}", folder=tmp_path)  # cut short before it had a journal
    assert sessions.find_session(folder=tmp_path) == made[1]
    assert sessions.find_session(made[0].name, tmp_path).name == made[0].name
    assert sessions.find_session(str(made[0].directory)).name == made[0].name
    assert sessions.find_session("20260101T0101", tmp_path).name == made[0].name
    with pytest.raises(SessionError, match="fits 2"):
        sessions.find_session("2026", tmp_path)
    with pytest.raises(SessionError, match="no session 'nobody'"):
        sessions.find_session("nobody", tmp_path)
    with pytest.raises(SessionError, match="no session in"):
        sessions.find_session(folder=tmp_path / "nowhere")


def test_the_last_commanded_joints_are_those_of_the_newest_path_that_is_whole(tmp_path: Path) -> None:
    session = sessions.create_session("{}", folder=tmp_path)
    assert sessions.last_commanded_joints(session) is None
    names = ["a", "b"]
    for number in (2, 10):
        positions = np.array([[0.0, 0.0], [number, 0.1]])
        file = sessions.save_path(session, str(number), positions, np.array([0.0, 1.0]), names)
        os.utime(session.directory / file, ns=(number, number))
    torn = session.paths / "11.npz"
    torn.write_bytes((session.paths / "10.npz").read_bytes()[:50])
    np.testing.assert_array_equal(sessions.last_commanded_joints(session), [10, 0.1])
    positions, times = sessions.load_path(session.paths / "2.npz")
    np.testing.assert_array_equal(times, [0.0, 1.0])


@pytest.mark.parametrize(
    ("kinds", "step"),
    [
        ([], None),
        ([(EventKind.RUN_STARTED, -1)], 4),
        ([(EventKind.RUN_STARTED, -1), (EventKind.STEP_STARTED, 5)], 5),
        ([(EventKind.STEP_STARTED, 5), (EventKind.STEP_FINISHED, 5)], 6),
        ([(EventKind.STEP_STARTED, 5), (EventKind.FAULT, 5)], 5),
    ],
)
def test_a_run_that_was_cut_short_goes_on_at_its_step(
    tmp_path: Path, kinds: list[tuple[EventKind, int]], step: int | None
) -> None:
    session = sessions.create_session("{}", folder=tmp_path)
    events = [Event(i, "s", kind, 0.0, 0.0, at, "", {"first_step": 4}) for i, (kind, at) in enumerate(kinds)]
    Journal(session.journal).append(events)
    assert sessions.step_to_resume(session) == step


def test_a_finished_run_has_nothing_to_go_on_with(tmp_path: Path) -> None:
    session = sessions.create_session("{}", folder=tmp_path)
    journal = Journal(session.journal)
    journal.append([Event(0, "s", EventKind.STEP_FINISHED, 0.0, 0.0, 3)])
    journal.append([Event(1, "s", EventKind.RUN_FINISHED, 0.0, 0.0, -1, "", {"outcome": "finished"})])
    assert sessions.step_to_resume(session) is None
