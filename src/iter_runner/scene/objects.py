"""One object of the planning scene."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Dict, Mapping, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics import AttachedBody, Box, Cylinder, Obstacle, Sphere
from iter_runner.kinematics.rotations import matrix_to_quaternion, pose

Matrix = NDArray[np.float64]

GREY = (0.6, 0.6, 0.6, 1.0)
SHAPES: Dict[str, Tuple[str, ...]] = {
    "box": ("x", "y", "z"),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
}
"""The numbers that describe a shape, m."""

LEAST, MOST = 1e-6, 1000.0
"""m, of what a dimension may be and of how far away (each way) an object may be.

Beyond, distances lose their meaning in rounding, and such numbers are no metres: what stands around an arm is nearer.
"""


class SceneError(ValueError):
    """An object that can't be, or that there is not; the message says what was found and what to do."""


class Origin(str, Enum):
    """Who put an object into the scene, and so how long it stays."""

    WORKCELL = "workcell"
    """The workcell's file: as long as the runner runs."""
    SERVICE = "service"
    """A service: until it is removed."""
    PLAN = "plan"
    """The environment of the last plan: until the next plan begins."""


@dataclass(frozen=True)
class SceneObject:
    """An object, as it is now.

    Attributes:
        name: one of a kind in its scene.
        pose: (4, 4) of its centre in the chain's base, or in the chain's tip while it is ``held``, m.
        shape: one of :data:`SHAPES`; a cylinder's axis is its z.
        dimensions: of the shape, m.
        graspable: a part that the hand may take; False: an obstacle.
        color: red, green, blue, alpha, 0 to 1.
        origin: who put it there.
        held: the hand carries it.
    """

    name: str
    pose: Matrix
    shape: str
    dimensions: Tuple[float, ...]
    graspable: bool = False
    color: Tuple[float, float, float, float] = GREY
    origin: Origin = Origin.SERVICE
    held: bool = False

    @property
    def size(self) -> Tuple[float, float, float]:
        """The sides of the box around it, m."""
        if self.shape == "sphere":
            return (2.0 * self.dimensions[0],) * 3
        if self.shape == "cylinder":
            radius, length = self.dimensions
            return 2.0 * radius, 2.0 * radius, length
        x, y, z = self.dimensions
        return x, y, z

    def at(self, place: Matrix, held: bool = False) -> SceneObject:
        """The same object elsewhere."""
        return replace(self, pose=place, held=held)

    def obstacle(self) -> Obstacle:
        """The body to keep clear of, in the chain's base."""
        if self.shape == "sphere":
            return Sphere(self.name, self.pose[:3, 3], self.dimensions[0])
        if self.shape == "cylinder":
            return Cylinder(self.name, self.pose, *self.dimensions)
        return Box(self.name, self.pose, self.dimensions)

    def attached(self, touch_links: Sequence[str]) -> AttachedBody:
        """The body on the tip that is to be kept clear of everything, while it is held."""
        return AttachedBody(self.name, self.pose, self.size, touch_links, self.shape)

    def to_record(self) -> Dict[str, Any]:
        """What JSON can hold; see :meth:`from_record`."""
        return {
            "name": self.name,
            "shape": self.shape,
            "dimensions": list(self.dimensions),
            "position": [float(value) for value in self.pose[:3, 3]],
            "orientation": [float(value) for value in matrix_to_quaternion(self.pose[:3, :3])],
            "graspable": self.graspable,
            "color": list(self.color),
            "origin": self.origin.value,
            "held": self.held,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> SceneObject:
        """The object of a record. Raises SceneError."""
        try:
            return checked(
                cls(
                    name=str(record["name"]),
                    pose=pose(record["position"], record["orientation"]),
                    shape=str(record["shape"]),
                    dimensions=tuple(float(value) for value in record["dimensions"]),
                    graspable=bool(record["graspable"]),
                    color=_color(record["color"]),
                    origin=Origin(record["origin"]),
                    held=bool(record["held"]),
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SceneError(f"not an object of a scene: {record!r} ({error})") from error


def _color(values: Sequence[float]) -> Tuple[float, float, float, float]:
    red, green, blue, alpha = (float(value) for value in values)
    return red, green, blue, alpha


def checked(item: SceneObject) -> SceneObject:
    """``item`` itself.

    Raises:
        SceneError: no name, an unknown shape, other dimensions than the shape has, a number that can't be, or that
            can't be metres.
    """
    if not item.name or item.name != item.name.strip() or any(ord(sign) < 32 for sign in item.name):
        raise SceneError(f"an object's name is {item.name!r}: letters expected, without blanks around them")
    if item.shape not in SHAPES:
        raise SceneError(f"object '{item.name}' is a {item.shape!r}: one of {', '.join(SHAPES)} expected")
    parts = SHAPES[item.shape]
    if len(item.dimensions) != len(parts):
        raise SceneError(
            f"object '{item.name}': a {item.shape} has {len(parts)} dimensions ({', '.join(parts)}), "
            f"{len(item.dimensions)} found"
        )
    if not all(math.isfinite(side) and side > 0.0 for side in item.dimensions):
        raise SceneError(f"object '{item.name}': dimensions above 0 m expected, found {list(item.dimensions)}")
    if not all(LEAST <= side <= MOST for side in item.dimensions):
        raise SceneError(
            f"object '{item.name}': dimensions of {LEAST:g} to {MOST:g} m expected, found "
            f"{[float(side) for side in item.dimensions]}"
        )
    if item.pose.shape != (4, 4) or not np.all(np.isfinite(item.pose)):
        raise SceneError(f"object '{item.name}': its pose holds a number that is not finite")
    if np.any(np.abs(item.pose[:3, 3]) > MOST):
        raise SceneError(
            f"object '{item.name}': a place within {MOST:g} m expected, found {item.pose[:3, 3].tolist()} m"
        )
    if len(item.color) != 4 or not all(0.0 <= value <= 1.0 for value in item.color):
        raise SceneError(
            f"object '{item.name}': red, green, blue and alpha of 0 to 1 expected, found {list(item.color)}"
        )
    return item
