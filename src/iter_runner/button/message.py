"""Messages of any type as presses of a button: when one is a press, and when it happened at its source."""

from __future__ import annotations

import re
from typing import Any, Optional

STALE = 10.0
"""A stamp further than this (s) from the arrival is no stamp of the press (the sender's clock is another)."""


def field_value(message: Any, path: str) -> Any:
    """The value at ``path`` in a message, e.g. ``data``, ``buttons[0]`` or ``status.pressed``.

    Raises:
        LookupError: there is none.
    """
    value = message
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        try:
            value = value[int(index)] if index else getattr(value, name)
        except (AttributeError, IndexError, TypeError) as error:
            raise LookupError(
                f"no field {path!r} in a message of type {getattr(message, '_type', type(message))}"
            ) from error
    return value


def source_stamp(message: Any) -> Optional[float]:
    """The message's own stamp (ROS time, s): its header's, or its own where it is a header; None without one."""
    header = getattr(message, "header", message)
    stamp = getattr(header, "stamp", None)
    if stamp is None or not hasattr(stamp, "to_sec"):
        return None
    seconds = float(stamp.to_sec())
    return seconds if seconds > 0 else None


def press_time(stamp: Optional[float], ros_now: float, study_now: float) -> float:
    """The study time (s) of a press that was stamped ``stamp`` on the ROS clock.

    Both clocks are read at the arrival. Without a stamp, with one in the future, or with one that is no time of a press
    (older than :data:`STALE`), the arrival counts.
    """
    if stamp is None or not 0.0 <= ros_now - stamp <= STALE:
        return study_now
    return study_now - (ros_now - stamp)


class PressDetector:
    """Which messages of a topic are presses.

    A message whose watched field turns from false (or 0) to true is one; a message without a field to watch is one each
    time it comes.

    Args:
        path: the field to watch; empty for ``data`` where that is a bool, and for nothing otherwise.
    """

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._down = False

    def is_press(self, message: Any) -> bool:
        """Whether this message, the next one of the topic, is a press.

        Raises:
            LookupError: the message has no such field.
        """
        if self._path:
            down = bool(field_value(message, self._path))
        elif isinstance(getattr(message, "data", None), bool):
            down = message.data
        else:
            return True
        pressed = down and not self._down
        self._down = down
        return pressed
