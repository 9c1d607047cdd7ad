"""An emulated gripper on a pseudo-terminal, which stands for the USB serial adapter: Modbus RTU, slave 9."""

from __future__ import annotations

import os
import select
import struct
import threading
import tty
from pathlib import Path
from typing import List, Optional, Tuple

from iter_runner.gripper.emulated import EmulatedGripper
from iter_runner.gripper.registers import COMMAND_ADDRESS, REGISTERS, STATUS_ADDRESS, Command
from iter_runner.gripper.serial_client import SLAVE

READ_HOLDING, READ_INPUT, WRITE, READ_WRITE = 3, 4, 16, 23
ILLEGAL_FUNCTION, ILLEGAL_ADDRESS = 1, 2
SILENCE = 0.05
"""Seconds after which what was received is not the beginning of a frame any more."""


def checksum(data: bytes) -> bytes:
    """Modbus RTU's CRC-16 of ``data``, as it follows on the line."""
    value = 0xFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0xA001 if value & 1 else value >> 1
    return struct.pack("<H", value)


def request_length(frame: bytes) -> Optional[int]:
    """How long a request is that begins like this, checksum included; None where more has to come to know it.

    Functions that the gripper lacks count as the eight bytes that most have.
    """
    if len(frame) < 2:
        return None
    counted_at = {WRITE: 6, READ_WRITE: 10}.get(frame[1])
    if counted_at is None:
        return 8
    return counted_at + 1 + frame[counted_at] + 2 if len(frame) > counted_at else None


def answer_to(frame: bytes, gripper: EmulatedGripper) -> bytes:
    """What the gripper answers to a whole request: nothing where that is damaged or for another slave."""
    body = frame[:-2]
    if checksum(body) != frame[-2:] or body[0] != SLAVE:
        return b""
    function = body[1]
    try:
        answer = body[:2] + _act(function, body, gripper)
    except _RefusedError as refused:
        answer = bytes([body[0], function | 0x80, refused.args[0]])
    return answer + checksum(answer)


class _RefusedError(Exception):
    """The gripper refuses a request, with that exception code."""


def _act(function: int, body: bytes, gripper: EmulatedGripper) -> bytes:
    if function in (READ_HOLDING, READ_INPUT):
        return _read(gripper, *struct.unpack(">HH", body[2:6]))
    if function == WRITE:
        address, count = struct.unpack(">HH", body[2:6])
        _write(gripper, address, count, body[7:])
        return body[2:6]
    if function == READ_WRITE:
        read_address, read_count, address, count = struct.unpack(">HHHH", body[2:10])
        _write(gripper, address, count, body[11:])
        return _read(gripper, read_address, read_count)
    raise _RefusedError(ILLEGAL_FUNCTION)


def _read(gripper: EmulatedGripper, address: int, count: int) -> bytes:
    first = address - STATUS_ADDRESS
    if first < 0 or not 0 < count <= REGISTERS - first:
        raise _RefusedError(ILLEGAL_ADDRESS)
    registers: List[int] = gripper.read().registers()[first : first + count]
    return struct.pack(f">B{count}H", 2 * count, *registers)


def _write(gripper: EmulatedGripper, address: int, count: int, data: bytes) -> None:
    if (address, count, len(data)) != (COMMAND_ADDRESS, REGISTERS, 2 * REGISTERS):
        raise _RefusedError(ILLEGAL_ADDRESS)
    gripper.write(Command.of_registers(struct.unpack(f">{REGISTERS}H", data)))


class EmulatedPort:
    """The gripper's cable in a port that has the name ``link``, a symbolic link such as udev makes.

    Args:
        gripper: what is at the other end.
        link: the port's path; its folder is made.
    """

    def __init__(self, gripper: EmulatedGripper, link: Path) -> None:
        self.gripper = gripper
        self.link = link
        self._damaged = 0
        self._unanswered = 0
        self._wires: Optional[Tuple[int, int]] = None
        self._thread = threading.Thread()
        self._wake: Tuple[int, int] = (-1, -1)

    def plug_in(self) -> None:
        """The port appears. Nothing where it is there.

        Raises:
            OSError: the path is something else than a symbolic link, or can't be made.
        """
        if self._wires is not None:
            return
        if self.link.exists() and not self.link.is_symlink():
            raise FileExistsError(f"{self.link} is there already, and no emulated port")
        ours, theirs = os.openpty()
        tty.setraw(theirs)
        os.set_blocking(ours, False)
        try:
            self.link.parent.mkdir(parents=True, exist_ok=True)
            new = self.link.with_name(f".{self.link.name}.new")
            if new.is_symlink():
                new.unlink()
            new.symlink_to(os.ttyname(theirs))
            new.replace(self.link)
        except OSError:
            os.close(ours)
            os.close(theirs)
            raise
        self._wires, self._wake = (ours, theirs), os.pipe()
        self._thread = threading.Thread(target=self._serve, args=(ours, self._wake[0]), daemon=True)
        self._thread.start()

    def unplug(self) -> None:
        """The port is gone, in the midst of whatever went through it. Nothing where it is gone."""
        if self._wires is None:
            return
        if self.link.is_symlink():
            self.link.unlink()
        os.close(self._wake[1])
        self._thread.join()
        for end in (*self._wires, self._wake[0]):
            os.close(end)
        self._wires = None

    def damage(self, answers: int) -> None:
        """The next answers arrive with a wrong checksum."""
        self._damaged = answers

    def swallow(self, answers: int) -> None:
        """The next answers do not arrive."""
        self._unanswered = answers

    def _serve(self, line: int, wake: int) -> None:
        frame = b""
        while True:
            ready, _, _ = select.select([line, wake], [], [], SILENCE if frame else None)
            if wake in ready:
                return
            if not ready:
                frame = b""
                continue
            frame += os.read(line, 256)
            length = request_length(frame)
            while length is not None and len(frame) >= length:
                self._answer(line, answer_to(frame[:length], self.gripper) if self.gripper.powered else b"")
                frame = frame[length:]
                length = request_length(frame)

    def _answer(self, line: int, answer: bytes) -> None:
        if not answer:
            return
        if self._unanswered:
            self._unanswered -= 1
            return
        if self._damaged:
            self._damaged -= 1
            answer = answer[:-1] + bytes([answer[-1] ^ 0xFF])
        os.write(line, answer)
