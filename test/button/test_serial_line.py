"""The serial source, over a pseudo-terminal pair in place of the line."""

import itertools
import os
import queue
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iter_runner.button import serial_line
from iter_runner.button.serial_line import SILENCE, MessageReader, SerialLine, parse_trigger
from iter_runner.button.source import SourceError


def presses_of(chunks, trigger=b""):
    reader = MessageReader(trigger)
    return [time for data, moment in chunks for time in reader.feed(data, moment)]


def test_a_byte_is_a_press_and_so_is_a_line_however_it_arrives():
    assert presses_of([(b"x", 1.0), (b"x", 2.0)]) == [1.0, 2.0]
    assert presses_of([(b"pressed\r\n", 1.0), (b"pressed\r\n", 1.01)]) == [1.0, 1.01]
    assert presses_of([(b"pre", 1.0), (b"ss", 1.01), (b"ed\r", 1.02), (b"\n", 1.03), (b"p", 2.0)]) == [1.0, 2.0]
    assert presses_of([(b"\r\n", 1.0), (b"\r\n", 2.0)]) == [1.0, 2.0]
    assert presses_of([(b"a\nb\n", 1.0)]) == [1.0, 1.0], "two presses that arrive together are two"


def test_with_a_trigger_only_messages_that_hold_it_are_presses():
    assert presses_of([(b"ready\n", 0.0), (b"down\n", 1.0), (b"up\n", 1.2), (b"down\n", 2.0)], b"down") == [1.0, 2.0]
    assert presses_of([(b"do", 1.0), (b"wn", 1.02)], b"down") == [1.0], "at the arrival of its first byte"
    assert presses_of([(b"1", 1.0), (b"0", 1.5), (b"1", 2.0)], b"1") == [1.0, 2.0]
    assert presses_of([(b"do", 1.0), (b"wn", 5.0)], b"down") == []


@given(st.lists(st.binary(min_size=1, max_size=5).filter(lambda data: b"\n" not in data), max_size=20))
def test_messages_apart_in_time_are_one_press_each(messages):
    chunks = [(data, number * (SILENCE * 2)) for number, data in enumerate(messages)]
    assert presses_of(chunks) == [moment for _, moment in chunks]


@given(st.binary(max_size=300), st.lists(st.integers(min_value=1, max_value=7), min_size=300, max_size=300))
def test_how_the_bytes_are_cut_makes_no_difference(data, cuts):
    chunks, rest = [], data
    for size in cuts:
        chunks.append((rest[:size], 1.0))
        rest = rest[size:]
    assert presses_of(chunks, b"ab") == presses_of([(data, 1.0)], b"ab")


def test_a_trigger_may_hold_any_byte():
    assert parse_trigger("P") == b"P"
    assert parse_trigger(r"\x01\n") == b"\x01\n"
    with pytest.raises(SourceError, match="trigger"):
        parse_trigger(r"\xZZ")
    with pytest.raises(SourceError, match="trigger"):
        parse_trigger("Ω")


class Line:
    """A serial source on one end of a pseudo-terminal pair; the test holds the other."""

    def __init__(self, path, **options):
        self.path = path
        self.presses = queue.Queue()
        self.said = queue.Queue()
        self.times = itertools.count(1.0)
        self.source = SerialLine(lambda: next(self.times), str(path), warn=self.said.put, say=self.said.put, **options)
        self.thread = threading.Thread(target=self.source.run, args=(self.presses.put,), daemon=True)
        self.thread.start()

    def close(self):
        self.source.close()
        self.thread.join(10)
        assert not self.thread.is_alive()


def plug_in(path):
    """A device at ``path``; the end that the button holds."""
    ours, theirs = os.openpty()
    path.unlink(missing_ok=True)
    path.symlink_to(os.ttyname(theirs))
    return ours, theirs


@pytest.fixture
def port(tmp_path, monkeypatch):
    monkeypatch.setattr(serial_line, "RETRY", 0.02)
    return tmp_path / "ttyBUTTON"


def test_presses_arrive_with_the_time_they_were_read(port):
    ours, theirs = plug_in(port)
    line = Line(port, baud=115200)
    assert "listening" in line.said.get(timeout=10)
    os.write(ours, b"p\n")
    first = line.presses.get(timeout=10)
    os.write(ours, b"p\n")
    second = line.presses.get(timeout=10)
    line.close()
    assert (first.time, second.time) == (1.0, 2.0)
    assert first.detail["port"] == str(port)
    os.close(ours)
    os.close(theirs)


def test_an_unplugged_port_is_named_and_taken_up_again(port):
    ours, theirs = plug_in(port)
    line = Line(port)
    assert "listening" in line.said.get(timeout=10)
    os.close(theirs)
    os.close(ours)
    port.unlink()
    lost = line.said.get(timeout=10)
    assert str(port) in lost and "lost" in lost
    missing = line.said.get(timeout=10)
    assert str(port) in missing and "no such port" in missing
    ours, theirs = plug_in(port)
    assert "listening" in line.said.get(timeout=10), "the same failure is not told again and again"
    os.write(ours, b"x")
    assert line.presses.get(timeout=10)
    line.close()
    os.close(ours)
    os.close(theirs)


def test_a_port_that_is_not_there_yet_is_waited_for_and_can_be_given_up(port):
    line = Line(port)
    assert "no such port" in line.said.get(timeout=10)
    line.close()


def test_what_the_device_said_before_is_no_press(port):
    ours, theirs = plug_in(port)
    os.write(ours, b"booting\n")
    line = Line(port)
    assert "listening" in line.said.get(timeout=10)
    os.write(ours, b"x")
    press = line.presses.get(timeout=10)
    assert press.detail["data"] == "x"
    line.close()
    os.close(ours)
    os.close(theirs)


def test_parameters_that_make_no_sense_are_refused():
    with pytest.raises(SourceError, match="~port"):
        SerialLine(lambda: 0.0, "")
    with pytest.raises(SourceError, match="~baud"):
        SerialLine(lambda: 0.0, "/dev/null", baud=-5)


def test_a_file_that_is_no_port_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(serial_line, "RETRY", 0.02)
    (tmp_path / "file").write_text("x")
    line = Line(tmp_path / "file")
    assert str(tmp_path / "file") in line.said.get(timeout=10)
    line.close()
