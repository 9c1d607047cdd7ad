"""Follows one session's events as they are published, with what was missed filled in from its journal."""

from __future__ import annotations

from typing import Callable, List, Optional, Sequence

from iter_runner.events import Event, EventKind

ReadJournal = Callable[[str], Sequence[Event]]
"""The events that a session's journal holds; the argument is the session's name. Raises OSError or ValueError."""


class SessionEvents:
    """The present session's events without a gap, whatever the topic lost and whenever the listener started.

    Events are on disk before they are published, so a gap in their numbers is always filled from the journal. Where the
    journal can't be read (another machine), what came over the topic is all there is and :attr:`missed` says how much
    is missing. A session that another one replaced is not taken up again. Not thread-safe.

    Args:
        read_journal: reads a session's journal.
        warn: told, once a session, why a journal could not be read.
    """

    def __init__(self, read_journal: ReadJournal, warn: Optional[Callable[[str], None]] = None) -> None:
        self._read_journal = read_journal
        self._warn = warn
        self._warned = False
        self._past: List[str] = []
        self.session = ""
        self.events: List[Event] = []
        self.missed = 0

    @property
    def finished(self) -> bool:
        """Whether the present session's run has ended."""
        return bool(self.events) and self.events[-1].kind is EventKind.RUN_FINISHED

    def feed(self, event: Event) -> List[Event]:
        """Takes in a published event; returns what is new because of it, in order (nothing for one already known)."""
        if event.session != self.session:
            if event.session in self._past:
                return []
            self._begin(event.session)
        expected = self._next_sequence()
        if event.sequence < expected:
            return []
        new: List[Event] = []
        if event.sequence > expected:
            new = [old for old in self._journal() if expected <= old.sequence < event.sequence]
            self.missed += event.sequence - expected - len(new)
        new.append(event)
        self.events.extend(new)
        return new

    def catch_up(self, session: str) -> List[Event]:
        """Takes in whatever ``session``'s journal holds beyond what is known; returns what is new.

        For a listener that starts in the middle of a run, before the next event comes. A journal that can't be read is
        no fault here: a session that just begins has none yet.
        """
        if not session or session in self._past:
            return []
        try:
            journal = self._read_journal(session)
        except (OSError, ValueError):
            return []
        if session != self.session and journal:
            self._begin(session)
        expected = self._next_sequence()
        new = sorted((event for event in journal if event.sequence >= expected), key=lambda event: event.sequence)
        self.events.extend(new)
        return new

    def _begin(self, session: str) -> None:
        if self.session:
            self._past.append(self.session)
        self.session = session
        self.events = []
        self.missed = 0
        self._warned = False

    def _next_sequence(self) -> int:
        return self.events[-1].sequence + 1 if self.events else 0

    def _journal(self) -> List[Event]:
        try:
            return sorted(self._read_journal(self.session), key=lambda event: event.sequence)
        except (OSError, ValueError) as error:
            if self._warn is not None and not self._warned:
                self._warned = True
                self._warn(f"the journal of session {self.session} can't be read, events may be missing: {error}")
            return []
