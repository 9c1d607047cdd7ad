"""From something that happened to an event that is on disk and then published, in one order for everybody."""

from __future__ import annotations

import math
import threading
import time
from enum import Enum
from typing import Any, Callable, List, Mapping, Protocol, Sequence

import numpy as np

from iter_runner.clock import Clock
from iter_runner.events import Event, EventKind


class EventStore(Protocol):
    """Where events are kept, such as :class:`iter_runner.runner.journal.Journal`."""

    def append(self, events: Sequence[Event]) -> None:
        """Brings ``events`` to the disk; JournalError where it can't."""


class EventLog:
    """Numbers events, journals them and publishes them, from any thread.

    One write to the disk is the dear part of an event, so events of one moment (the end of a step and the beginning of
    the next) share one: an event added with ``hold`` waits for the next one that is not, and is published after it is
    on disk, never before. Events that the disk refused stay in line and are tried again by the next call.
    """

    def __init__(
        self,
        session: str,
        store: EventStore,
        publish: Callable[[Event], None],
        clock: Clock,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._session = session
        self._store = store
        self._publish = publish
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.RLock()
        self._sequence = 0
        self._held: List[Event] = []

    def add(
        self, kind: EventKind, step: int = -1, pointer: str = "", data: Mapping[str, Any] = {}, hold: bool = False
    ) -> Event:
        """Takes an event in, stamped now.

        Raises:
            JournalError: the disk refused it; it is kept for another try.
        """
        with self._lock:
            event = Event(
                sequence=self._sequence,
                session=self._session,
                kind=kind,
                time=self._clock.now(),
                wall_time=self._wall_clock(),
                step=step,
                pointer=pointer,
                data=plain(data),
            )
            self._sequence += 1
            self._held.append(event)
            if not hold:
                self.flush()
            return event

    def flush(self) -> None:
        """Journals, then publishes, what is held.

        Raises:
            JournalError: as :meth:`add`.
        """
        with self._lock:
            if not self._held:
                return
            self._store.append(self._held)
            events, self._held = self._held, []
            for event in events:
                self._publish(event)


def plain(value: Any) -> Any:
    """``value`` as JSON knows it: arrays become lists, what is not a finite number becomes null."""
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)
