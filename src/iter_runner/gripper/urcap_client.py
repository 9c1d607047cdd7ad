"""A Robotiq 2F-85 on the wrist of a UR arm, behind the socket that Robotiq's URCap opens on the controller.

Lines of ASCII: ``SET POS 120`` is answered by ``ack``, ``GET POS`` by ``POS 120``; the variables are the registers'.
The answers end without a line feed. Each client has a connection of its own.
"""

from __future__ import annotations

import re
import socket
from typing import List, Optional, Pattern, Tuple

from iter_runner.gripper.client import LinkError
from iter_runner.gripper.registers import Activation, Command, Obstruction, Status

TCP_PORT = 63352
CONNECT_TIME = 1.0
"""Seconds that a controller has to accept the connection."""
ANSWER_TIME = 0.5
"""Seconds that it has for an answer; it needs some milliseconds."""
ATTEMPTS = 3
"""How often something is asked that was answered by nonsense."""
LONGEST_ANSWER = 64

ACKNOWLEDGED = re.compile(r"\s*(ack)\s*")


class _NonsenseError(LinkError):
    """Something answers, but nothing that was asked for."""


class UrcapClient:
    """See :class:`iter_runner.gripper.client.GripperClient`.

    Args:
        host: the controller's name or address.
        tcp_port: of the URCap's server.
        answer_time: s, after which the controller counts as lost.
    """

    def __init__(self, host: str, tcp_port: int = TCP_PORT, answer_time: float = ANSWER_TIME) -> None:
        self.place = f"{host}:{tcp_port}"
        self.errors = 0
        self._address = (host, tcp_port)
        self._answer_time = answer_time
        self._socket: Optional[socket.socket] = None
        self._activated: Optional[bool] = None
        self._releasing = False
        self._has_echo: Optional[bool] = None

    def connect(self) -> None:
        """See :class:`iter_runner.gripper.client.GripperClient`."""
        self._activated, self._releasing, self._has_echo = None, False, None
        try:
            self._socket = socket.create_connection(self._address, CONNECT_TIME)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.settimeout(self._answer_time)
        except (OSError, UnicodeError) as error:
            self.close()
            raise LinkError(
                f"can't connect to {self.place}: {error}: is it the robot's address, is the robot up, and is Robotiq's "
                "gripper URCap installed on it?"
            ) from None
        try:
            self.status()
        except LinkError:
            self.close()
            raise

    def status(self) -> Status:
        """See :class:`iter_runner.gripper.client.GripperClient`."""
        requested = self._echo()
        activation = Activation(self._get("STA", 3))
        return Status(
            activated=activation is not Activation.RESET,
            going=self._get("GTO", 1) == 1,
            activation=activation,
            obstruction=Obstruction(self._get("OBJ", 3)),
            fault=self._get("FLT", 255) & 0x0F,
            requested=requested,
            position=self._get("POS", 255),
        )

    def send(self, command: Command) -> None:
        """See :class:`iter_runner.gripper.client.GripperClient`."""
        for name, value in self._settings(command):
            self._ask(f"SET {name} {value}", ACKNOWLEDGED)
        self._activated, self._releasing = command.activate, command.release

    def close(self) -> None:
        """See :class:`iter_runner.gripper.client.GripperClient`."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _settings(self, command: Command) -> List[Tuple[str, int]]:
        """The variables to set, in this order: fingers stop first and go last, with everything in place."""
        settings: List[Tuple[str, int]] = []
        if not command.go:
            settings.append(("GTO", 0))
        if command.release or self._releasing:
            settings += [("ARD", int(command.release_opening)), ("ATR", int(command.release))]
        if not command.activate or not self._activated:
            settings.append(("ACT", int(command.activate)))
        if command.go:
            settings += [("SPE", command.speed), ("FOR", command.force), ("POS", command.position), ("GTO", 1)]
        return settings

    def _echo(self) -> Optional[int]:
        """The requested position, where the server tells it."""
        if self._has_echo is False:
            return None
        try:
            answer = self._ask("GET PRE", _value_of("PRE"))
        except _NonsenseError:
            if self._has_echo:
                raise
            answer = "?"
        self._has_echo = answer != "?"
        return int(answer) if self._has_echo else None

    def _get(self, name: str, largest: int) -> int:
        answer = self._ask(f"GET {name}", _value_of(name))
        if answer == "?":
            raise LinkError(
                f"{self.place} knows no {name}: is the gripper plugged in at the wrist, powered, and set up in the "
                "installation on the pendant?"
            )
        value = int(answer)
        if value > largest:
            raise LinkError(f"{self.place} answered {name} {value}, expected at most {largest}: is it Robotiq's URCap?")
        return value

    def _ask(self, line: str, expected: Pattern[str]) -> str:
        """Sends a line and waits for an answer of the expected form; its first group."""
        answer = ""
        for _ in range(ATTEMPTS):
            answer = self._exchange(line, expected)
            match = expected.fullmatch(answer)
            if match:
                return match.group(1)
            self.errors += 1
        raise _NonsenseError(
            f"{self.place} answered {answer[:LONGEST_ANSWER]!r} to '{line}', {ATTEMPTS} times: is it Robotiq's URCap?"
        )

    def _exchange(self, line: str, expected: Pattern[str]) -> str:
        if self._socket is None:
            raise LinkError(f"{self.place} is not connected")
        answer = b""
        try:
            self._drain(self._socket)
            self._socket.sendall(f"{line}\n".encode("ascii"))
            while len(answer) < LONGEST_ANSWER:
                data = self._socket.recv(LONGEST_ANSWER)
                if not data:
                    raise LinkError(f"{self.place} closed the connection: is the robot's controller up?")
                answer += data
                # Nothing marks an answer's end: it is whole when it looks like one, or when a line ends.
                if answer.endswith(b"\n") or expected.fullmatch(answer.decode("ascii", "replace")):
                    break
        except socket.timeout:
            if answer:
                return answer.decode("ascii", "replace")
            self.errors += 1
            # What was asked may still be answered, and then for another question: only a new connection is in step.
            raise LinkError(
                f"{self.place} does not answer within {self._answer_time:g} s: is the network up, and the controller?"
            ) from None
        except OSError as error:
            raise LinkError(f"lost {self.place} ({error}): is the network up, and the controller?") from None
        return answer.decode("ascii", "replace")

    def _drain(self, line: socket.socket) -> None:
        """Throws away what came late for an earlier question."""
        line.setblocking(False)
        try:
            while line.recv(LONGEST_ANSWER):
                pass
        except BlockingIOError:
            pass
        finally:
            line.settimeout(self._answer_time)


def _value_of(name: str) -> Pattern[str]:
    """What an answer to ``GET name`` looks like; a question mark stands for a value that is not known."""
    return re.compile(rf"\s*(?:{name}\s+)?(\d+|\?)\s*")
