"""The journal: events on disk before anybody hears of them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Optional, Sequence

from iter_runner.events import Event


class JournalError(Exception):
    """Events could not be brought to the disk; the message says why."""


class Journal:
    """A file of events, one JSON object a line, that grows by whole writes.

    What :meth:`append` returned from survives a kill or a power cut. A write that failed half-way (a full disk) is cut
    off again, so that the file never holds half an event followed by others.

    Args:
        path: the file; it is made, and must not be there yet.

    Raises:
        JournalError: it can't be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._end = 0
        self._descriptor: Optional[int]
        try:
            self._descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise JournalError(f"can't make the journal {path}: {error.strerror or error}") from error

    def append(self, events: Sequence[Event]) -> None:
        """Writes all of ``events`` in one go and waits until the disk has them.

        Raises:
            JournalError: none of them counts as written; the same call may be tried again.
        """
        if self._descriptor is None:
            raise JournalError(f"the journal {self.path} is closed")
        content = "".join(event.to_json() + "\n" for event in events).encode("utf-8")
        try:
            written = 0
            while written < len(content):
                written += os.pwrite(self._descriptor, content[written:], self._end + written)
            os.fdatasync(self._descriptor)
        except OSError as error:
            self._cut()
            raise JournalError(f"can't write the journal {self.path}: {error.strerror or error}") from error
        self._end += len(content)

    def close(self) -> None:
        """Lets go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _cut(self) -> None:
        # Where even this fails the rest stands after the last whole event and is overwritten by the next try.
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, self._end)
