"""A key of this terminal's keyboard as the button."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import tty
from typing import Optional, TextIO

from iter_runner.button.source import Now, OnPress, Press, SourceError

REPEAT = 0.1
"""Keys that follow each other faster than this (s) come from one that is held down."""

DEFAULT_KEYS = " \r\n"
"""Space and Enter."""

_NAMES = {" ": "space", "\r": "enter", "\n": "enter"}


class Keyboard:
    """Space or Enter, without waiting for the end of a line; the terminal is as before when it ends.

    A key that is held down is one press: what the terminal repeats is left out (a terminal's first repeat, a quarter
    to half a second after the press, can't be told from a second press).

    Args:
        now: reads the study clock.
        terminal: in place of the standard input.
        keys: characters that count, in place of space and Enter.
    """

    name = "keyboard"

    def __init__(self, now: Now, terminal: Optional[TextIO] = None, keys: str = DEFAULT_KEYS) -> None:
        self._now = now
        self._terminal = terminal if terminal is not None else sys.stdin
        self._keys = keys
        self._wake_read, self._wake_write = os.pipe()

    def run(self, on_press: OnPress) -> None:
        """See :class:`~iter_runner.button.source.Source`.

        Raises:
            SourceError: there is no terminal.
        """
        try:
            descriptor = self._terminal.fileno()
            before = termios.tcgetattr(descriptor)
        except (OSError, ValueError, AttributeError, termios.error) as error:
            raise SourceError(
                "the keyboard source reads keys from a terminal and its standard input is none (roslaunch gives nodes "
                "none); run `rosrun iter_runner button _source:=keyboard` in a terminal of its own"
            ) from error
        try:
            # Single keys without echo; Ctrl-C still interrupts.
            tty.setcbreak(descriptor, termios.TCSADRAIN)
            self._read(descriptor, on_press)
        finally:
            with contextlib.suppress(termios.error):  # a window that was closed has no settings any more
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

    def close(self) -> None:
        """See :class:`~iter_runner.button.source.Source`."""
        os.write(self._wake_write, b"x")

    def _read(self, descriptor: int, on_press: OnPress) -> None:
        last_key, last_time = "", -REPEAT
        while True:
            ready, _, _ = select.select([descriptor, self._wake_read], [], [])
            time = self._now()
            if self._wake_read in ready:
                return
            try:
                data = os.read(descriptor, 64)
            except OSError:  # the terminal's other end is gone
                data = b""
            if not data:
                return
            for key in data.decode("utf-8", "replace"):
                repeated = key == last_key and time - last_time < REPEAT
                last_key, last_time = key, time
                if key in self._keys and not repeated:
                    on_press(Press(time, {"key": _NAMES.get(key, key)}))
