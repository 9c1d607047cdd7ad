"""What every source of button presses has in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Protocol


class SourceError(Exception):
    """A source can't work as it was asked to; the message says why and what to do."""


@dataclass(frozen=True)
class Press:
    """The button went down.

    Attributes:
        time: of the press at its source, study clock, s.
        detail: what else the source knows; JSON values.
    """

    time: float
    detail: Mapping[str, Any] = field(default_factory=dict)


OnPress = Callable[[Press], None]
Now = Callable[[], float]
"""Reads the study clock, s."""


class Source(Protocol):
    """Watches one button."""

    name: str

    def run(self, on_press: OnPress) -> None:
        """Reports presses until :meth:`close`, from this thread.

        Raises:
            SourceError: the source can't be watched at all.
        """

    def close(self) -> None:
        """Makes :meth:`run` return; from any thread."""
