"""The runner's events for a node that needs every one of them: from the topic, with the gaps read from the journal."""

from __future__ import annotations

import threading
from typing import Callable, List

import rospy

from iter_runner.events import Event
from iter_runner.msg import Event as EventMessage
from iter_runner.msg import RunnerState
from iter_runner.nodes.event_message import event_from_message
from iter_runner.study.sessions import Session, SessionError, find_session, read_journal
from iter_runner.timing.session_events import SessionEvents


def read_session(name: str) -> List[Event]:
    """The events in a session's journal.

    Raises:
        ValueError: there is none, or it can't be read.
    """
    try:
        session: Session = find_session(name)
        return read_journal(session.journal)
    except SessionError as error:
        raise ValueError(str(error)) from error


class RunEvents:
    """Subscribes to /runner/events and /runner/state and hands on each event of the present session once, in order.

    Args:
        on_events: called with what is new, never empty, while ``lock`` is held.
        lock: what the caller guards its own state with.
    """

    def __init__(self, on_events: Callable[[List[Event]], None], lock: threading.Condition) -> None:
        self._on_events = on_events
        self._lock = lock
        self.record = SessionEvents(read_session, rospy.logwarn)
        self._subscribers = [
            # A queue without an end: a burst (a fast simulation) is worked off, not cut.
            rospy.Subscriber("/runner/events", EventMessage, self._on_event, queue_size=None, tcp_nodelay=True),
            # Latched: a node that starts in the middle of a run learns of it here.
            rospy.Subscriber("/runner/state", RunnerState, self._on_state, queue_size=1),
        ]

    def _on_event(self, message: EventMessage) -> None:
        try:
            event = event_from_message(message)
        except ValueError as error:
            rospy.logwarn("an event on /runner/events is left out: %s", error)
            return
        with self._lock:
            try:
                self._hand_on(self.record.feed(event))
            except rospy.ROSException:
                if not rospy.is_shutdown():  # what is handed on may be published, and the topics have closed
                    raise

    def _on_state(self, message: RunnerState) -> None:
        with self._lock:
            if message.session and message.session != self.record.session and message.state != RunnerState.IDLE:
                self._hand_on(self.record.catch_up(message.session))

    def _hand_on(self, events: List[Event]) -> None:
        if events:
            self._on_events(events)
