"""The arm: move, get_pose, jog."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np
from pydantic import Field

from iter_runner.events import EventKind
from iter_runner.plan.read import describe
from iter_runner.plan.registry import did_you_mean, primitive
from iter_runner.plan.step import LoadContext, Problem, Quaternion, Step, Vector3
from iter_runner.planners.base import Unreachable
from iter_runner.planners.options import FOREIGN, OPTIONS_SCHEMA, MoveOptions, read_options
from iter_runner.primitives.context import ToolPose
from iter_runner.primitives.waiting import ask
from iter_runner.run_control import Fault

if TYPE_CHECKING:
    from iter_runner.primitives.context import RunContext

_ORIGINAL_MOTION_TYPES = {"joint": "movej", "linear": "movel"}
_KNOWN_OPTIONS = [option.name for option in fields(MoveOptions)] + sorted(FOREIGN)


@primitive("move")
class Move(Step):
    """Moves the tool frame to a pose, by the planner of the run."""

    position: Vector3 = Field(description="of the tool frame in frame_id, m")
    orientation: Quaternion = Field(description="of the tool frame in frame_id")
    options: Dict[str, Any] = Field(
        default={},
        description="for the planner: speed, time_factor, motion_type, ...; one ignores what it does not know",
        json_schema_extra={"properties": dict(OPTIONS_SCHEMA)},
    )

    @classmethod
    def adapt_original(cls, fields: Dict[str, Any]) -> Tuple[Dict[str, Any], List[Problem]]:
        """The original's words for motion types; an option that no planner could take is left out."""
        options = fields.get("options")
        if not isinstance(options, dict):
            return fields, []
        kept = dict(options)
        if kept.get("motion_type") in ("joint", "linear"):
            kept["motion_type"] = _ORIGINAL_MOTION_TYPES[kept["motion_type"]]
        problems = [replace(problem, warning=True) for problem in _option_problems(kept)]
        for problem in problems:
            kept.pop(problem.field.split("/")[-1], None)
        return {**fields, "options": kept}, problems

    def prepare(self, context: LoadContext) -> Iterable[Problem]:
        """Options that no planner takes."""
        yield from _option_problems(self.options)
        if not context.original:
            for key in self.options:
                if key not in _KNOWN_OPTIONS:
                    yield Problem(
                        "/options", f"unknown option {key!r}", did_you_mean(key, _KNOWN_OPTIONS), warning=True
                    )

    def poses(self) -> Iterable[Tuple[str, Vector3, Quaternion]]:
        """Its pose."""
        return [("", self.position, self.orientation)]

    def execute(self, run: RunContext) -> None:
        """Returns when the arm stands there."""
        run.move(ToolPose(self.position.xyz, self.orientation.xyzw), self.options)

    def describe(self) -> str:
        """Where to."""
        x, y, z = self.position.xyz
        return f"moving to ({x:.2f}, {y:.2f}, {z:.2f}) m"


def _option_problems(options: Dict[str, Any]) -> Iterator[Problem]:
    for key, value in options.items():
        if key not in _KNOWN_OPTIONS:
            continue
        try:
            read_options({key: value})
        except Unreachable as error:
            yield Problem(f"/options/{key}", describe(value), str(error).split(", expected ")[-1])


@primitive("get_pose")
class GetPose(Step):
    """Records where the tool frame and the joints are."""

    def execute(self, run: RunContext) -> None:
        """Emits a pose event."""
        pose = run.tool_pose()
        joints = run.arm.reading().positions
        run.emit(
            EventKind.POSE,
            position=[float(value) for value in pose.position],
            orientation=[float(value) for value in pose.orientation],
            joints=[float(value) for value in joints],
        )

    def describe(self) -> str:
        """What it reads."""
        return "reading the pose of the tool"


# The original's keys beside words that need no table.
_JOG_KEYS = {
    "d": "x+", "a": "x-", "w": "y+", "s": "y-", "q": "z+", "z": "z-",
    "l": "rx+", "j": "rx-", "i": "ry+", "k": "ry-", "u": "rz+", "m": "rz-", "c": "done",
}  # fmt: skip
_JOG_AXES = {"x": 0, "y": 1, "z": 2}


@primitive("jog", aliases=("jog_pose",))
class Jog(Step):
    """Small moves that the operator commands one by one, about the axes of the plan's frame."""

    position_step: float = Field(default=0.01, gt=0, le=0.1, description="m a command")
    rotation_step: float = Field(default=0.05, gt=0, le=0.5, description="rad a command")
    grip_step: Optional[float] = Field(default=None, gt=0, description="for the original's plans; not used")
    options: Dict[str, Any] = Field(
        default={},
        description="of the moves, as move takes them",
        json_schema_extra={"properties": dict(OPTIONS_SCHEMA)},
    )

    def execute(self, run: RunContext) -> None:
        """Asks, moves, asks again, until the answer is "done" or empty."""
        pose = run.tool_pose()
        note = ""
        while True:
            answer = ask(run, f"{note}jog: x+ x- y+ y- z+ z- rx+ rx- ry+ ry- rz+ rz-, several at once, or done", None)
            note = ""
            words = [_JOG_KEYS.get(word, word) for word in (answer or "done").lower().replace(",", " ").split()]
            unknown = [word for word in words if word != "done" and self._delta(word) is None]
            if unknown:
                note = f"{' '.join(unknown)} is not a jog command. "
                continue
            wanted = self._moved(pose, [word for word in words if word != "done"])
            if wanted is not pose:
                try:
                    run.move(wanted, self.options)
                    pose = wanted
                except Fault as error:
                    if error.code != "unreachable":
                        raise
                    note = f"Out of reach, the arm stays where it is ({error.message}). "
                    continue
            if "done" in words or not words:
                return

    def _delta(self, word: str) -> Optional[Tuple[bool, int, float]]:
        """Whether it is a rotation, about or along which axis, by how much; None for an unknown word."""
        if len(word) < 2 or word[-1] not in "+-":
            return None
        axis, sign = word[:-1], 1.0 if word[-1] == "+" else -1.0
        rotation = len(axis) == 2 and axis[0] == "r"
        index = _JOG_AXES.get(axis[-1]) if rotation or len(axis) == 1 else None
        if index is None:
            return None
        return rotation, index, sign * (self.rotation_step if rotation else self.position_step)

    def _moved(self, pose: ToolPose, words: List[str]) -> ToolPose:
        from iter_runner.kinematics.rotations import (
            matrix_to_quaternion,
            quaternion_to_matrix,
            rotation_vector_to_matrix,
        )

        position = np.array(pose.position, dtype=np.float64)
        rotation = quaternion_to_matrix(np.array(pose.orientation, dtype=np.float64))
        for word in words:
            delta = self._delta(word)
            if delta is not None:
                step = np.zeros(3)
                step[delta[1]] = delta[2]
                if delta[0]:
                    rotation = rotation_vector_to_matrix(step) @ rotation
                else:
                    position = position + step
        if not words:
            return pose
        return ToolPose(
            [float(value) for value in position], [float(value) for value in matrix_to_quaternion(rotation)]
        )

    def describe(self) -> str:
        """Who moves."""
        return "jogging by the operator"
