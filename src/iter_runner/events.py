"""Events: what the runner says happened, as the journal keeps it and as everybody else reads it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Mapping

RUN_MODES = ("run", "capture", "replay")
"""How a plan is run: plainly, to write the measured times into it, or to count down to the times that it carries."""


class EventKind(str, Enum):
    """Every kind of event, with the fields of its ``data`` (durations in seconds, times on the study clock)."""

    RUN_STARTED = "run_started"
    """title, plan_hash, robot, planner, mode, steps, first_step, study, participant_id, condition, tool_frame;
    of planner replay: replay_of (the session), replayed_planner (whose motions they are)"""
    STEP_STARTED = "step_started"
    """name, rad (as written in the plan, or null)"""
    STEP_FINISHED = "step_finished"
    """name, duration"""
    MOVE_FINISHED = "move_finished"
    """path_hash, duration, position_error (m), orientation_error (rad), commanded_path (file in the session folder),
    start (commanded or measured), planning_time (where the planner measures it)"""
    GRIPPER_FINISHED = "gripper_finished"
    """action (grasp or release), position, stalled, reached_goal, opening (m)"""
    WAIT_STARTED = "wait_started"
    """condition (button, time or prompt), timeout, message"""
    WAIT_ENDED = "wait_ended"
    """condition, by (press, time, timeout, answer, stop), started, ended, duration, answer (prompt)"""
    PRESS = "press"
    """source, time (of the press at its source), used (bool), reason (why it was ignored), detail"""
    POSE = "pose"
    """position, orientation, joints: what get_pose read"""
    LOG = "log"
    """message"""
    PUBLISHED = "published"
    """topic, type"""
    OBJECT_ATTACHED = "object_attached"
    """object_name"""
    OBJECT_DETACHED = "object_detached"
    """object_name"""
    SCENE_CHANGED = "scene_changed"
    """change (added, moved, removed), object_name, object (as it is now, or was: shape, dimensions, position and
    orientation in the chain's base, graspable, held, origin), in_contact (bodies that overlap it then)"""
    PAUSED = "paused"
    """(nothing)"""
    RESUMED = "resumed"
    """after (pause or fault)"""
    FAULT = "fault"
    """code, message"""
    RUN_FINISHED = "run_finished"
    """outcome (finished, stopped, aborted), message, steps_done"""


@dataclass(frozen=True)
class Event:
    """One thing that happened; see ``msg/Event.msg`` for the fields."""

    sequence: int
    session: str
    kind: EventKind
    time: float
    wall_time: float
    step: int = -1
    pointer: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line of JSON without a line end; floats round-trip exactly."""
        record = asdict(self)
        record["kind"] = self.kind.value
        return json.dumps(record, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> Event:
        """The event that a journal's line holds.

        Raises:
            ValueError: the line is not a whole event (a write that was cut short).
        """
        try:
            record = json.loads(line)
            record["kind"] = EventKind(record["kind"])
            return cls(**record)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not an event: {line[:80]!r}") from error
