"""Messages that come by the thousand a second, packed by hand and written to the subscribers' sockets directly.

rospy's own way costs a thread and two context switches for each message and subscriber.
"""

from __future__ import annotations

import struct
import warnings
from typing import Any, Dict, Sequence

import rospy


class DirectPublisher:
    """Publishes packed messages of one type straight to the subscribers' sockets, never blocking.

    A subscriber that does not read loses messages, whole ones, as with a publisher's full queue.
    """

    def __init__(self, topic: str, message_class: type) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # no queue: rospy starts no thread for a connection
            self._publisher = rospy.Publisher(topic, message_class, tcp_nodelay=True, queue_size=None)
        self._rest: Dict[Any, bytes] = {}
        self._own_name = ""

    def skip_own(self) -> None:
        """Writes nothing to this node's own subscriber of the topic, which is there for what others publish."""
        self._own_name = rospy.get_name()

    def write(self, data: bytes) -> None:
        """Writes one message with its length in front to every subscriber."""
        for connection in self._publisher.impl.connections or ():  # None once rospy has shut down
            sock = connection.socket
            if sock is None or (self._own_name and connection.endpoint_id == self._own_name):
                continue
            try:
                rest = self._rest.pop(connection, None) if self._rest else None
                if rest is not None and not self._send(connection, sock, rest):
                    continue
                self._send(connection, sock, data)
            except OSError:
                self._publisher.impl.remove_connection(connection)

    def _send(self, connection: Any, sock: Any, data: bytes) -> bool:
        """Whether all of it went out; what is left of a message that was begun goes first next time."""
        try:
            sent = sock.send(data, _DO_NOT_WAIT)
        except BlockingIOError:
            return False
        if sent < len(data):
            self._rest[connection] = data[sent:]
            return False
        return True


_DO_NOT_WAIT = 0x40 | 0x4000  # MSG_DONTWAIT | MSG_NOSIGNAL on Linux


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


class JointStatePacker:
    """Packs sensor_msgs/JointState of always the same joints; see the message's definition for the layout."""

    def __init__(self, names: Sequence[str]) -> None:
        n = len(names)
        head = _string("") + struct.pack("<I", n) + b"".join(_string(name) for name in names)
        self._format = struct.Struct(f"<4I{len(head)}sI{n}dI{n}dI{n}d")
        self._head = head
        self._length = self._format.size - 4
        self._n = n
        self._zeros = (0.0,) * n
        self._sequence = 0

    def pack(self, nanoseconds: int, positions: Sequence[float], velocities: Sequence[float]) -> bytes:
        """The message with its length in front, as TCPROS sends it; efforts are 0."""
        self._sequence += 1
        seconds, rest = divmod(nanoseconds, 1_000_000_000)
        n = self._n
        return self._format.pack(
            self._length, self._sequence, seconds, rest, self._head, n, *positions, n, *velocities, n, *self._zeros
        )
