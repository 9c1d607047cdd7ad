"""A move's ``options``, read once and the same way by every planner."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Set

from iter_runner.planners.base import Unreachable

LOGGER = logging.getLogger(__name__)

# What the original system's planners took and ours have no use for: named here so that plans written for it load
# without a warning a move.
FOREIGN = frozenset({"planner_id", "planning_time", "num_planning_attempts", "steady_state_threshold"})

OPTIONS_SCHEMA: Mapping[str, Any] = {
    "speed": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
        "description": "the share of the planner's own speed",
    },
    "time_factor": {"type": "number", "minimum": 1, "description": "stretches the motion in time"},
    "velocity": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "ceiling, m/s of the flange (rad/s of the fastest joint for movej)",
    },
    "acceleration": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "ceiling, m/s² of the flange (rad/s² for movej)",
    },
    "motion_type": {"enum": ["movel", "movej"], "description": "for the planner ur"},
}
"""JSON Schema of what :func:`read_options` takes, for editors."""

_warned: Set[str] = set()


@dataclass(frozen=True)
class MoveOptions:
    """What a plan may ask of one move; everything has a default.

    Attributes:
        speed: 0 to 1, the share of the planner's own speed.
        time_factor: 1 or more, stretches the motion in time over ``speed``.
        velocity: ceiling, m/s of the flange (rad/s of the fastest joint for ``movej``); None: the planner's own.
        acceleration: ceiling, m/s² (rad/s² for ``movej``); None: the planner's own.
        motion_type: of the planner ``ur``: ``movel``, ``movej``, or empty for its default.
    """

    speed: float = 1.0
    time_factor: float = 1.0
    velocity: Optional[float] = None
    acceleration: Optional[float] = None
    motion_type: str = ""

    @property
    def stretch(self) -> float:
        """How much longer than at the planner's own speed the motion takes, 1 or more."""
        return self.time_factor / self.speed


def read_options(options: Mapping[str, Any]) -> MoveOptions:
    """The options of a move; unknown ones are ignored with one warning each in a process.

    ``steady_state_threshold`` of the original system said how still the joints had to stand before a move counted as
    done. Every planner here waits until the arm stands where it was commanded to, which is stricter.

    Raises:
        Unreachable: a value is not what the option takes.
    """
    values: Dict[str, Any] = {}
    for name, value in options.items():
        if name == "speed":
            values[name] = _number(name, value, 0.0, 1.0)
        elif name == "time_factor":
            factor = _number(name, value, 0.0, math.inf)
            if factor < 1.0:
                _warn("time_factor<1", f"time_factor {factor:g} is below 1: motions run at the arm's limits already")
            values[name] = max(1.0, factor)
        elif name in ("velocity", "acceleration"):
            values[name] = _number(name, value, 0.0, math.inf)
        elif name == "motion_type":
            if value not in ("movel", "movej"):
                raise Unreachable(f"options.motion_type is {value!r}, expected 'movel' or 'movej'")
            values[name] = value
        elif name not in FOREIGN:
            _warn(name, f"option '{name}' of a move is unknown and ignored")
    return MoveOptions(**values)


def _number(name: str, value: Any, above: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not above < value <= most:
        wanted = f"a number above {above:g}" + (f" and at most {most:g}" if math.isfinite(most) else "")
        raise Unreachable(f"options.{name} is {value!r}, expected {wanted}")
    return float(value)


def _warn(key: str, message: str) -> None:
    if key not in _warned:
        _warned.add(key)
        LOGGER.warning("%s", message)
