"""What every primitive of a plan has in common, and the field types that primitives are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Iterable, List, Optional, Tuple

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from iter_runner.primitives.context import RunContext

QUATERNION_TOLERANCE = 0.01
"""How far a quaternion's length may be from 1 to be normalised; a length further off is a mistake."""

FAR = 1000.0
"""No coordinate in a workcell is larger, m: beyond it stand slips like millimetres for metres."""
LONG = 604800.0
"""No wait in a study is longer, s: a week."""


def fault(found: str, expected: str) -> PydanticCustomError:
    """The error that a validator of a plan's field raises: what it found and what should be there."""
    return PydanticCustomError("plan", "found {found}, expected {expected}", {"found": found, "expected": expected})


class PlanModel(BaseModel):
    """Base of everything that a plan's JSON holds: no conversions between types, no NaN, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)


class Vector3(PlanModel):
    """A position, m."""

    x: float = Field(ge=-FAR, le=FAR)
    y: float = Field(ge=-FAR, le=FAR)
    z: float = Field(ge=-FAR, le=FAR)

    @property
    def xyz(self) -> Tuple[float, float, float]:
        """The numbers in order."""
        return (self.x, self.y, self.z)


class Quaternion(PlanModel):
    """A rotation; normalised if its length is within 1 % of 1, refused otherwise."""

    x: float = Field(ge=-2, le=2)
    y: float = Field(ge=-2, le=2)
    z: float = Field(ge=-2, le=2)
    w: float = Field(ge=-2, le=2)

    _length: float = PrivateAttr(default=1.0)

    @model_validator(mode="after")
    def _normalise(self) -> Quaternion:
        length = math.sqrt(self.x**2 + self.y**2 + self.z**2 + self.w**2)
        if length < 1e-9:
            raise fault("a quaternion of length 0", "a rotation, e.g. x 0, y 0, z 0, w 1")
        if abs(length - 1.0) > QUATERNION_TOLERANCE:
            raise fault(f"a quaternion of length {length:.6g}", "length 1 (up to 1 % off is normalised)")
        self._length = length
        return self

    @property
    def length(self) -> float:
        """The length as written."""
        return self._length

    @property
    def xyzw(self) -> Tuple[float, float, float, float]:
        """The unit quaternion."""
        return (self.x / self._length, self.y / self._length, self.z / self._length, self.w / self._length)


class Pose(PlanModel):
    """Position (m) and orientation."""

    position: Vector3
    orientation: Quaternion


class Rad(PlanModel):
    """The times that capture mode measured and that replay mode expects, seconds."""

    neglect_time: Optional[float] = Field(default=None, ge=0, description="seconds the robot works by itself")
    expected_interaction_time: Optional[float] = Field(default=None, ge=0, description="seconds the human takes")
    is_interaction: bool = Field(default=False, description="true where the robot waits on the human")
    human_active: Optional[bool] = Field(
        default=None,
        description="from this step on the human is at work (true) or has nothing to do (false); else as before",
    )

    @model_validator(mode="after")
    def _one_time(self) -> Rad:
        if self.neglect_time is not None and self.expected_interaction_time is not None:
            raise fault("both neglect_time and expected_interaction_time", "one of them")
        if self.is_interaction and self.neglect_time is not None:
            raise fault("neglect_time of an interaction", "expected_interaction_time, or is_interaction false")
        return self


@dataclass(frozen=True)
class LoadContext:
    """What a step may look at while its plan is loaded.

    Attributes:
        folder: where the plan's file is; None for a plan that came as text.
        original: the plan is one of the original ITER ("version": "0.0.1").
    """

    folder: Optional[Path] = None
    original: bool = False


@dataclass(frozen=True)
class Problem:
    """Something that :meth:`Step.prepare` found.

    Attributes:
        field: JSON pointer relative to the step, e.g. "/filepath"; "" for the step itself.
        found: what is there.
        expected: what should be there.
        warning: the plan may run all the same.
    """

    field: str
    found: str
    expected: str
    warning: bool = False


class Step(PlanModel):
    """A primitive: its fields as the plan's JSON gives them, and what it does.

    A subclass is decorated with :func:`iter_runner.plan.registry.primitive`, lists its fields as a pydantic model does,
    and overrides :meth:`execute`, or :meth:`expand` where it stands for several simple steps. A field of type
    ``List[Step]`` holds steps of any primitive.
    """

    name: ClassVar[str] = ""
    """The plan's word for the primitive; the decorator sets it."""
    aliases: ClassVar[Tuple[str, ...]] = ()
    """Other words for it in original plans."""

    rad: Optional[Rad] = None

    @classmethod
    def adapt_original(cls, fields: Dict[str, Any]) -> Tuple[Dict[str, Any], List[Problem]]:
        """Rewrites the fields of an original plan's step to what the class takes, with a warning for each change."""
        return fields, []

    def prepare(self, context: LoadContext) -> Iterable[Problem]:
        """Looks at what the step needs from outside the plan (files, message types) while the plan is loaded."""
        return ()

    def expand(self) -> Optional[List[Tuple[str, Step]]]:
        """The simple steps that this one stands for, each with its JSON pointer relative to this step.

        None for a simple step, which is executed itself.
        """
        return None

    def poses(self) -> Iterable[Tuple[str, Vector3, Quaternion]]:
        """The poses of the tool that a simple step goes to, each with its JSON pointer relative to the step.

        What the plan's checker tries to reach.
        """
        return ()

    def sends_script(self) -> bool:
        """Whether it sends a program to the arm's controller, which only some arms take."""
        return False

    def execute(self, run: RunContext) -> None:
        """Does it; returns when it is done.

        Raises:
            Fault, Stopped: see ``iter_runner.run_control``.
        """
        raise NotImplementedError(f"{type(self).__name__} neither expands nor executes")

    def describe(self) -> str:
        """One line for a person: what the robot does in this step."""
        return self.name.replace("_", " ")
