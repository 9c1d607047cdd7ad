"""A button on a serial line: a byte or a line of text for each press (an Arduino, a USB foot switch, a relay box)."""

from __future__ import annotations

import threading
from typing import Callable, List

import serial

from iter_runner.button.source import Now, OnPress, Press, SourceError
from iter_runner.serial_port import ports_here, why_not_open

SILENCE = 0.03
"""Bytes that follow each other within this (s) belong to one message."""

RETRY = 1.0
"""How long to leave a port alone that could not be opened, s."""


def parse_trigger(text: str) -> bytes:
    """The bytes that a parameter's text stands for; ``\\n``, ``\\r``, ``\\t``, ``\\\\`` and ``\\xNN`` as in C.

    Raises:
        SourceError: an escape that is none of these.
    """
    try:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise SourceError(f"~trigger is {text!r}: {error}; write bytes as \\xNN") from error


class MessageReader:
    """Tells presses from the bytes of a line.

    A message is what the device sends at a time: bytes up to a line feed, or up to a silence. Each message is one
    press, at the arrival of its first byte; with a trigger, only messages that hold it are.

    Args:
        trigger: bytes that mean a press; any message where empty.
        silence: that ends a message without a line feed, s.
    """

    def __init__(self, trigger: bytes = b"", silence: float = SILENCE) -> None:
        self._trigger = trigger
        self._silence = silence
        self._message = b""
        self._began = 0.0
        self._last = -silence
        self._reported = False

    def feed(self, data: bytes, time: float) -> List[float]:
        """Takes in what arrived at ``time`` (s); returns the times of the presses that it completes."""
        presses: List[float] = []
        if self._message and time - self._last > self._silence:
            self._end()
        self._last = time
        for value in data:
            if not self._message:
                self._began = time
            self._message += bytes([value])
            if not self._reported and self._trigger in self._message:
                self._reported = True
                presses.append(self._began)
            # Without line feeds the end of a long message is all that can still hold the trigger.
            self._message = self._message[-max(64, len(self._trigger)) :]
            if value == 0x0A:
                self._end()
        return presses

    def _end(self) -> None:
        self._message = b""
        self._reported = False


class SerialLine:
    """The button on a serial port. A port that goes away is waited for, and said so.

    Args:
        now: reads the study clock.
        port: the device, e.g. ``/dev/ttyACM0``.
        baud: bits per second.
        trigger: bytes that mean a press; anything does where empty.
        warn, say: told what happens to the port.
    """

    name = "serial"

    def __init__(
        self,
        now: Now,
        port: str,
        baud: int = 9600,
        trigger: bytes = b"",
        warn: Callable[[str], None] = print,
        say: Callable[[str], None] = print,
    ) -> None:
        if not port:
            raise SourceError(f"the serial source needs ~port; serial ports here: {ports_here()}")
        self._now = now
        self._port = port
        self._trigger = trigger
        self._warn = warn
        self._say = say
        self._closed = threading.Event()
        try:
            self._line = serial.Serial(None, baudrate=baud, timeout=None)
        except ValueError as error:
            raise SourceError(f"~baud is {baud}, no speed that a serial port has: {error}") from error
        self._line.port = port

    def run(self, on_press: OnPress) -> None:
        """See :class:`~iter_runner.button.source.Source`."""
        lost = ""
        while not self._closed.is_set():
            try:
                self._line.open()
                self._line.reset_input_buffer()  # what the device sent before we listened is no press
            except (OSError, ValueError) as error:  # SerialException is an OSError
                reason = why_not_open(self._port, error)
                if reason != lost:
                    self._warn(f"button: can't open {self._port}: {reason}; trying again every {RETRY:g} s")
                    lost = reason
                self._closed.wait(RETRY)
                continue
            self._say(f"button: listening on {self._port} at {self._line.baudrate} baud")
            lost = ""
            reason = self._read(on_press)
            self._line.close()
            if not self._closed.is_set():
                self._warn(f"button: lost {self._port} ({reason}): presses are not seen until it is plugged in again")
                self._closed.wait(RETRY)

    def close(self) -> None:
        """See :class:`~iter_runner.button.source.Source`."""
        self._closed.set()
        if self._line.is_open:
            self._line.cancel_read()

    def _read(self, on_press: OnPress) -> str:
        """Reads until the line is lost or closed; returns why."""
        reader = MessageReader(self._trigger)
        while not self._closed.is_set():
            try:
                data = self._line.read(1)
                time = self._now()
                data += self._line.read(self._line.in_waiting)
            except (OSError, TypeError) as error:  # TypeError: pyserial closed the descriptor under its own read
                return str(error)
            if not data and not self._closed.is_set():
                return "it sends the end of its data"
            for press in reader.feed(data, time):
                on_press(Press(press, {"port": self._port, "data": data.decode("latin-1")}))
        return "closed"
