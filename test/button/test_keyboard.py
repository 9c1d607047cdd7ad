"""The keyboard source, over a pseudo-terminal."""

import io
import itertools
import os
import termios
import threading

import pytest

from iter_runner.button.keyboard import REPEAT, Keyboard
from iter_runner.button.source import SourceError


class Typist:
    """A keyboard source on a pseudo-terminal, watched by a thread of its own."""

    def __init__(self, times, keys=None):
        self.ours, self.theirs = os.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.presses = []
        self.pressed = threading.Semaphore(0)
        options = {} if keys is None else {"keys": keys}
        times = iter(times)
        self.source = Keyboard(lambda: next(times), os.fdopen(self.theirs, closefd=False), **options)
        self.thread = threading.Thread(target=self.source.run, args=(self._on_press,), daemon=True)
        self.thread.start()
        self._await_raw_mode()

    def _on_press(self, press):
        self.presses.append(press)
        self.pressed.release()

    def _await_raw_mode(self):
        tick = threading.Event()
        while termios.tcgetattr(self.theirs)[3] & termios.ICANON:
            tick.wait(0.001)

    def type(self, keys, presses):
        os.write(self.ours, keys)
        for _ in range(presses):
            assert self.pressed.acquire(timeout=10)

    def close(self):
        self.source.close()
        self.thread.join(10)
        assert not self.thread.is_alive()
        assert termios.tcgetattr(self.theirs) == self.before, "the terminal is as it was"
        os.close(self.ours)
        os.close(self.theirs)


def test_space_and_enter_are_presses_without_waiting_for_a_line():
    typist = Typist(itertools.count(10.0))
    typist.type(b" ", 1)
    typist.type(b"\r", 1)
    typist.type(b"xyz ", 1)
    typist.close()
    assert [press.time for press in typist.presses] == [10.0, 11.0, 12.0]
    assert [press.detail["key"] for press in typist.presses] == ["space", "enter", "space"]


def test_a_key_held_down_is_not_a_press_each_time_the_terminal_repeats_it():
    typist = Typist([1.0, 1.0 + REPEAT / 2, 1.0 + REPEAT, 1.0 + REPEAT * 1.5, 1.0 + REPEAT * 4, 9.0])
    typist.type(b" ", 1)
    for _ in range(3):
        # One read each: what the terminal takes in is seen by the reader before the next key.
        os.write(typist.ours, b" ")
        threading.Event().wait(0.02)
    typist.type(b" ", 1)
    typist.close()
    assert [press.time for press in typist.presses] == [1.0, 1.0 + REPEAT * 4]


def test_other_keys_can_be_chosen():
    typist = Typist(itertools.count(0.0), keys="b")
    typist.type(b" ab", 1)
    typist.close()
    assert [press.detail["key"] for press in typist.presses] == ["b"]


def test_without_a_terminal_it_says_what_to_do():
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream, pytest.raises(SourceError, match="terminal of its own"):
        Keyboard(lambda: 0.0, stream).run(lambda press: None)
    os.close(writing)
    with pytest.raises(SourceError, match="terminal"):
        Keyboard(lambda: 0.0, io.StringIO()).run(lambda press: None)


def test_it_ends_when_the_terminal_is_closed():
    typist = Typist(itertools.count(0.0))
    os.close(typist.ours)
    typist.thread.join(10)
    assert not typist.thread.is_alive()
    os.close(typist.theirs)
