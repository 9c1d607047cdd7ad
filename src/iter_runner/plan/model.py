"""A plan as the rest of the package sees it: a flat list of steps, the objects around the robot, and its faults."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from pydantic import Field

from iter_runner.plan.step import FAR, PlanModel, Quaternion, Step, Vector3

VERSION = "1.0.0"
"""The version that new plans carry."""
ORIGINAL_VERSION = "0.0.1"
"""The version of the original ITER's plans."""


@dataclass(frozen=True)
class PlanFault:
    """One thing that is wrong in a plan.

    Attributes:
        pointer: JSON pointer (RFC 6901) into the plan as written; "" for the whole document.
        found: what is there.
        expected: what should be there, or what to do about it.
    """

    pointer: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.pointer or '(plan)'}: found {self.found}, expected {self.expected}"


def grouped(faults: Iterable[PlanFault]) -> List[str]:
    """One line for all faults that say the same, e.g. the rounded quaternions of an original plan."""
    groups: Dict[Tuple[str, str], List[PlanFault]] = {}
    for fault in faults:
        groups.setdefault((fault.found, fault.expected), []).append(fault)
    return [
        str(group[0]) + (f" (and {len(group) - 1} more like it)" if len(group) > 1 else "") for group in groups.values()
    ]


class PlanError(Exception):
    """A plan that can't be run; ``str()`` gives all its faults, one a line.

    Attributes:
        faults, warnings: what was found.
        loaded: what of the plan could be loaded all the same, for further checks; None where nothing could.
    """

    def __init__(
        self, faults: Sequence[PlanFault], warnings: Sequence[PlanFault] = (), loaded: Optional[Plan] = None
    ) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = list(faults)
        self.warnings = list(warnings)
        self.loaded = loaded


class Color(PlanModel):
    """A colour for pictures, components 0…1."""

    r: float = Field(ge=0, le=1)
    g: float = Field(ge=0, le=1)
    b: float = Field(ge=0, le=1)
    a: float = Field(default=1.0, ge=0, le=1)


class Size(PlanModel):
    """Lengths of a box's edges, m."""

    x: float = Field(ge=0, le=FAR)
    y: float = Field(ge=0, le=FAR)
    z: float = Field(ge=0, le=FAR)

    @property
    def xyz(self) -> Tuple[float, float, float]:
        """The lengths in order."""
        return (self.x, self.y, self.z)


class EnvironmentObject(PlanModel):
    """A box in the workcell, as the plan's ``environment`` lists it."""

    name: str = Field(min_length=1)
    position: Vector3 = Field(description="centre of the box in frame_id, m")
    orientation: Quaternion = Field(description="of the box in frame_id")
    size: Size = Field(description="edges, m")
    graspable: bool = Field(default=False, description="the hand works on it; otherwise it is an obstacle")
    representation: str = Field(default="box", description="box")
    color: Optional[Color] = None
    description: str = ""


class PlanDocument(PlanModel):
    """The top level of a plan's JSON."""

    schema_reference: str = Field(default="", alias="$schema", description="where an editor finds this schema")
    title: str = ""
    author: str = ""
    version: str = VERSION
    description: str = ""
    frame_id: str = Field(default="base_link", min_length=1, description="frame of all poses, fixed in the robot")
    tool_frame: Optional[str] = Field(
        default=None, min_length=1, description="the flange frame that poses are of: tool0 (default), ee_link, flange"
    )
    environment: List[EnvironmentObject] = []
    task: List[Step]


@dataclass(frozen=True)
class PlannedStep:
    """One simple step of the flat list.

    Attributes:
        index: place in the list, from 0.
        pointer: JSON pointer of where it stands in the plan as written.
        step: what to do.
    """

    index: int
    pointer: str
    step: Step


@dataclass(frozen=True)
class PlanObject:
    """A box in the workcell with its true centre.

    Attributes:
        name: unique in the plan.
        position: (3,) centre in the plan's frame, m.
        orientation: quaternion xyzw of the box in the plan's frame.
        size: (3,) edges, m.
        graspable: the hand works on it; False for an obstacle.
        color: r, g, b, a in 0…1.
    """

    name: str
    position: Tuple[float, float, float]
    orientation: Tuple[float, float, float, float]
    size: Tuple[float, float, float]
    graspable: bool
    color: Tuple[float, float, float, float] = (0.6, 0.6, 0.6, 1.0)


@dataclass(frozen=True)
class Plan:
    """A loaded, expanded plan.

    Attributes:
        title, author, version, description: as written.
        frame_id: frame of all poses.
        tool_frame: the flange frame that poses are of; None where the plan leaves it to the launch or the robot's row.
        environment: the objects as written; :attr:`objects` has their true centres.
        steps: the flat list that the runner works through.
        document: the JSON as written.
        source: the file it came from; None for text.
        warnings: what was put right on loading.
    """

    title: str
    author: str
    version: str
    description: str
    frame_id: str
    tool_frame: Optional[str]
    environment: Tuple[EnvironmentObject, ...]
    steps: List[PlannedStep]
    document: Mapping[str, Any]
    source: Optional[Path] = None
    warnings: Tuple[PlanFault, ...] = field(default=())

    @property
    def original(self) -> bool:
        """Whether it is a plan of the original ITER."""
        return self.version != VERSION

    @property
    def objects(self) -> List[PlanObject]:
        """:meth:`objects_for` the plan's own tool frame (``tool0`` where it names none)."""
        return self.objects_for(self.tool_frame or "tool0")

    def objects_for(self, tool_frame: str, tip_offset: float = 0.1675) -> List[PlanObject]:
        """The plan's objects with their true centres, if its poses are of ``tool_frame``.

        Args:
            tool_frame: the frame that the run takes the plan's poses to be of.
            tip_offset: from the flange to the fingertips, m.
        """
        from iter_runner.plan.objects import plan_objects

        return plan_objects(self, tool_frame, tip_offset)


def plan_hash(plan: Plan) -> str:
    """SHA-256 (hex) of the plan's canonical JSON: keys sorted, no spaces, whole numbers without a fraction."""
    text = json.dumps(_canonical(plan.document), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return int(value)
    return value
