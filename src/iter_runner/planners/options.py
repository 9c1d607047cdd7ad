"""A move's ``options``, read once and the same way by every planner."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Set, Tuple

from iter_runner.planners.base import Unreachable

LOGGER = logging.getLogger(__name__)

# What the original system's planners took and ours have no use for: named here so that plans written for it load
# without a warning a move.
FOREIGN = frozenset({"steady_state_threshold"})

MOTION_TYPES = ("movel", "movej", "cartesian")

# Numbers above the first bound and up to the second.
_NUMBERS: Mapping[str, Tuple[float, float]] = {
    "speed": (0.0, 1.0),
    "velocity": (0.0, math.inf),
    "acceleration": (0.0, math.inf),
    "planning_time": (0.0, math.inf),
    "max_velocity_scaling_factor": (0.0, 1.0),
    "max_acceleration_scaling_factor": (0.0, 1.0),
    "goal_position_tolerance": (0.0, math.inf),
    "goal_orientation_tolerance": (0.0, math.inf),
    "goal_joint_tolerance": (0.0, math.inf),
    "eef_step": (0.0, math.inf),
}

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
    "motion_type": {
        "enum": list(MOTION_TYPES),
        "description": "for ur and moveit: movel or cartesian, a straight line or nothing; movej, in joint space",
    },
    "planner_id": {"type": "string", "description": "for ompl and moveit: the algorithm, e.g. RRTConnect"},
    "planning_time": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "for ompl and moveit: s that the search may take",
    },
    "num_planning_attempts": {
        "type": "integer",
        "minimum": 1,
        "description": "for ompl and moveit: searches, of which the best result is taken",
    },
    "max_velocity_scaling_factor": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
        "description": "for moveit: the share of the joints' speed limits",
    },
    "max_acceleration_scaling_factor": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
        "description": "for moveit: the share of the joints' acceleration limits",
    },
    "goal_position_tolerance": {"type": "number", "exclusiveMinimum": 0, "description": "for moveit, m"},
    "goal_orientation_tolerance": {"type": "number", "exclusiveMinimum": 0, "description": "for moveit, rad"},
    "goal_joint_tolerance": {"type": "number", "exclusiveMinimum": 0, "description": "for moveit, rad"},
    "eef_step": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "for moveit's cartesian motions: m between two poses of the line",
    },
    "jump_threshold": {
        "type": "number",
        "minimum": 0,
        "description": "for moveit's cartesian motions: how many times the mean a joint step may be; 0: not looked at",
    },
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
        motion_type: of the planners ``ur`` and ``moveit``: ``movel`` or ``cartesian`` (:attr:`straight`), ``movej``,
            or empty for their defaults.
        planner_id: of ``ompl`` and ``moveit``: the algorithm's name; empty: the planner's own choice.
        planning_time: of the same: s that one search may take; None: the planner's own.
        num_planning_attempts: of the same: searches of which the best result is taken; None: the planner's own.
        max_velocity_scaling_factor, max_acceleration_scaling_factor: of ``moveit``: shares of the joints' limits, above
            0 to 1, over which ``speed`` and ``time_factor`` stretch further; None: 1.
        goal_position_tolerance, goal_orientation_tolerance, goal_joint_tolerance: of ``moveit``: m, rad, rad; None: its
            own.
        eef_step: of ``moveit``: m between two poses of a cartesian line; None: the planner's own.
        jump_threshold: of ``moveit``: how many times the mean step a step in joint space may be, 0 unchecked; for
            releases that take it; None: the planner's own.
    """

    speed: float = 1.0
    time_factor: float = 1.0
    velocity: Optional[float] = None
    acceleration: Optional[float] = None
    motion_type: str = ""
    planner_id: str = ""
    planning_time: Optional[float] = None
    num_planning_attempts: Optional[int] = None
    max_velocity_scaling_factor: Optional[float] = None
    max_acceleration_scaling_factor: Optional[float] = None
    goal_position_tolerance: Optional[float] = None
    goal_orientation_tolerance: Optional[float] = None
    goal_joint_tolerance: Optional[float] = None
    eef_step: Optional[float] = None
    jump_threshold: Optional[float] = None

    @property
    def straight(self) -> bool:
        """Whether the flange has to go along a straight line."""
        return self.motion_type in ("movel", "cartesian")

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
        if name == "time_factor":
            factor = _number(name, value, 0.0, math.inf)
            if factor < 1.0:
                _warn("time_factor<1", f"time_factor {factor:g} is below 1: motions run at the arm's limits already")
            values[name] = max(1.0, factor)
        elif name in _NUMBERS:
            values[name] = _number(name, value, *_NUMBERS[name])
        elif name == "jump_threshold":
            values[name] = 0.0 if value == 0 and not isinstance(value, bool) else _number(name, value, 0.0, math.inf)
        elif name == "num_planning_attempts":
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise Unreachable(f"options.{name} is {value!r}, expected a whole number from 1")
            values[name] = value
        elif name == "planner_id":
            if not isinstance(value, str):
                raise Unreachable(f"options.{name} is {value!r}, expected the name of an algorithm, or an empty text")
            values[name] = value
        elif name == "motion_type":
            if value not in MOTION_TYPES:
                raise Unreachable(f"options.motion_type is {value!r}, expected 'movel', 'movej' or 'cartesian'")
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
