"""Faults on purpose: what a driver, an arm or a gripper may do wrong, at an exact moment, for tests and rehearsals."""

from __future__ import annotations

import math
from typing import Dict, List, NamedTuple, Optional, Tuple


class FaultError(Exception):
    """A fault's text is wrong; the message says what was expected."""


class FaultKind(NamedTuple):
    """``counted``: its ``@`` is a count from 1; else a time. ``lasting``: it may have a duration, counted or in s."""

    counted: bool
    lasting: bool
    summary: str


KINDS: Dict[str, FaultKind] = {
    "protective_stop": FaultKind(True, False, "during the n-th motion that the controller executes"),
    "emergency_stop": FaultKind(True, False, "during the n-th motion that the controller executes"),
    "stale_joint_states": FaultKind(False, True, "from that simulated time on nothing is published (for so many s)"),
    "driver_dies": FaultKind(False, False, "at that simulated time the process exits without a goodbye"),
    "gripper_stuck": FaultKind(True, False, "the n-th gripper command moves nothing and is aborted"),
    "short_trajectory": FaultKind(
        True, True, "the n-th trajectory (and as many as its duration says) ends at 90 % of its way and reports success"
    ),
}


class Fault(NamedTuple):
    """A fault to come: ``at`` is its count or time (s), None for at once (the next one of its kind).

    ``duration`` is in s, without end where the text names none; of a counted one how many in a row, 1 without a word.
    """

    name: str
    at: Optional[float] = None
    duration: float = math.inf


def parse_faults(text: str) -> List[Fault]:
    """The faults of a list such as ``protective_stop@3, stale_joint_states@5.0:2, driver_dies@7.0``.

    Raises:
        FaultError: an unknown fault, or one whose moment is not what it has to be.
    """
    return [_parse(part.strip()) for part in text.split(",") if part.strip()]


def _parse(text: str) -> Fault:
    rest, colon, length = text.partition(":")
    name, at_sign, moment = (part.strip() for part in rest.partition("@"))
    kind = KINDS.get(name)
    if kind is None:
        raise FaultError(f"fault '{text}': no fault '{name}'; there are {', '.join(KINDS)}")
    at: Optional[float] = None
    if at_sign:
        at = _number(moment)
        if kind.counted and (at is None or at < 1 or at != int(at)):
            raise FaultError(f"fault '{text}': after @ a count from 1 expected, '{moment}' found")
        if at is None or at < 0:
            raise FaultError(f"fault '{text}': after @ a time in s expected, '{moment}' found")
    duration = 1.0 if kind.counted and kind.lasting else math.inf
    if colon:
        given = _duration(kind, length.strip())
        if given is None:
            counts = ", ".join(name for name, kind in KINDS.items() if kind.lasting and kind.counted)
            times = ", ".join(name for name, kind in KINDS.items() if kind.lasting and not kind.counted)
            raise FaultError(
                f"fault '{text}': a duration in s after : is for {times}, a count or 'all' for {counts}; "
                f"'{length}' found"
            )
        duration = given
    return Fault(name, at, duration)


def _duration(kind: FaultKind, text: str) -> Optional[float]:
    if not kind.lasting:
        return None
    if kind.counted and text == "all":
        return math.inf
    value = _number(text)
    if value is None or value <= 0 or (kind.counted and value != int(value)):
        return None
    return value


def _number(text: str) -> Optional[float]:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def due(faults: List[Fault], now: float) -> Tuple[List[Fault], List[Fault]]:
    """Timed faults whose moment has come, and all others."""
    ripe = [fault for fault in faults if fault.at is None or fault.at <= now]
    return ripe, [fault for fault in faults if fault not in ripe]
