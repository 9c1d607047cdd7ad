"""An emulated gripper behind the socket of Robotiq's URCap: ``SET POS 120`` → ``ack``, ``GET POS`` → ``POS 120``."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import socketserver
import threading
from typing import Any, Dict, List, Optional, Set

from iter_runner.gripper.emulated import EmulatedGripper
from iter_runner.gripper.registers import COUNT_LIMIT, Command

SETTABLE = {
    "ACT": "activate",
    "GTO": "go",
    "ATR": "release",
    "ARD": "release_opening",
    "POS": "position",
    "SPE": "speed",
    "FOR": "force",
}
"""Variables that may be set, and which field of a command each is."""


class EmulatedUrcap:
    """The URCap's server. The controller keeps the connection to the gripper alive by itself.

    Args:
        gripper: what is on the arm's wrist.
        tcp_port: to listen on; 0 takes a free one.
        host: the address to listen on.
    """

    def __init__(self, gripper: EmulatedGripper, tcp_port: int = 0, host: str = "127.0.0.1") -> None:
        self.gripper = gripper
        self.tcp_port = tcp_port
        self._host = host
        self._command = Command()
        self._lock = threading.Lock()
        self._connections: Set[socket.socket] = set()
        self._server: Optional[socketserver.ThreadingTCPServer] = None
        self._thread = threading.Thread()
        self._nonsense = 0
        self._unanswered = 0

    def plug_in(self) -> None:
        """The controller's network is there. Raises OSError where the port is taken."""
        if self._server is not None:
            return
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            """One client."""

            def handle(self) -> None:
                """Answers line after line."""
                outer._connections.add(self.connection)
                try:
                    for line in self.rfile:
                        answer = outer.answer_to(line.decode("ascii", "replace"))
                        if answer is not None:
                            self.wfile.write(answer.encode("ascii"))
                except (OSError, ValueError):  # the client is gone, or we are
                    pass
                finally:
                    outer._connections.discard(self.connection)

        class Server(socketserver.ThreadingTCPServer):
            """A thread for each client."""

            allow_reuse_address = True
            daemon_threads = True
            block_on_close = False

        self._server = Server((self._host, self.tcp_port), Handler)
        self.tcp_port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def unplug(self) -> None:
        """The controller is gone, with all its connections."""
        if self._server is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server = None
        for connection in list(self._connections):
            with contextlib.suppress(OSError):  # its client closed it first
                connection.shutdown(socket.SHUT_RDWR)

    def damage(self, answers: int) -> None:
        """The next answers are nonsense."""
        self._nonsense = answers

    def swallow(self, answers: int) -> None:
        """The next answers do not arrive."""
        self._unanswered = answers

    def answer_to(self, line: str) -> Optional[str]:
        """What a line is answered by, without a line feed as the URCap does; None for silence."""
        with self._lock:
            words = line.split()
            answer = self._act(words) if words else "?"
            if self._unanswered:
                self._unanswered -= 1
                return None
            if self._nonsense:
                self._nonsense -= 1
                return "%$#"
            return answer

    def _act(self, words: List[str]) -> str:
        if words[0] == "SET" and len(words) >= 3 and len(words) % 2 == 1:
            return self._set(dict(zip(words[1::2], words[2::2])))
        if words[0] == "GET" and len(words) == 2:
            value = self._values().get(words[1]) if self.gripper.powered else None
            return f"{words[1]} {'?' if value is None else value}"
        return "?"

    def _set(self, settings: Dict[str, str]) -> str:
        fields: Dict[str, Any] = {}
        for name, text in settings.items():
            if name not in SETTABLE or not text.isdigit() or int(text) > COUNT_LIMIT:
                return "?"
            value = int(text)
            fields[SETTABLE[name]] = value if name in ("POS", "SPE", "FOR") else bool(value)
        self._command = dataclasses.replace(self._command, **fields)
        if self.gripper.powered:
            self.gripper.write(self._command)
        return "ack"

    def _values(self) -> Dict[str, object]:
        status, command = self.gripper.read(), self._command
        return {
            "ACT": int(command.activate),
            "GTO": int(status.going),
            "ATR": int(command.release),
            "ARD": int(command.release_opening),
            "SPE": command.speed,
            "FOR": command.force,
            "POS": status.position,
            "PRE": status.requested,
            "OBJ": int(status.obstruction),
            "STA": int(status.activation),
            "FLT": f"{status.fault:02d}",
            "COU": status.current,
        }
