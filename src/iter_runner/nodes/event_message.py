"""Events as messages and back."""

from __future__ import annotations

import json

from iter_runner.events import Event, EventKind
from iter_runner.msg import Event as EventMessage


def event_to_message(event: Event) -> EventMessage:
    """The message on /runner/events that carries an event."""
    return EventMessage(
        sequence=event.sequence,
        session=event.session,
        kind=event.kind.value,
        time=event.time,
        wall_time=event.wall_time,
        step=event.step,
        pointer=event.pointer,
        data=json.dumps(event.data, separators=(",", ":")),
    )


def event_from_message(message: EventMessage) -> Event:
    """The event that a message on /runner/events carries.

    Raises:
        ValueError: its kind is none of ours, or its data is not a JSON object.
    """
    data = json.loads(message.data) if message.data else {}
    if not isinstance(data, dict):
        raise ValueError(f"event {message.sequence} of session {message.session}: data is {data!r}, not a JSON object")
    return Event(
        sequence=message.sequence,
        session=message.session,
        kind=EventKind(message.kind),
        time=message.time,
        wall_time=message.wall_time,
        step=message.step,
        pointer=message.pointer,
        data=data,
    )
