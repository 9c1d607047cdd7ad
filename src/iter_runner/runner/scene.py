"""Where the plan's objects are while the hand carries them about, as far as the plan says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterable, List, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics.rotations import inverse, pose
from iter_runner.plan.model import PlannedStep, PlanObject
from iter_runner.primitives.context import ToolPose
from iter_runner.runner.frames import PlanFrames

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class PlacedObject:
    """An object of the plan and where it is now.

    Attributes:
        pose: (4, 4) of its centre, in the chain's base, or in the chain's tip while it is ``held``, m.
    """

    object: PlanObject
    pose: Matrix
    held: bool = False


class SceneModel:
    """The plan's objects; ``connect_object`` and ``disconnect_object`` tie them to the hand and let them go.

    Args:
        objects: with their poses in the plan's frame.
        frames: of the plan.
    """

    def __init__(self, objects: Sequence[PlanObject], frames: PlanFrames) -> None:
        self._frames = frames
        self._placed: Dict[str, PlacedObject] = {}
        for item in objects:
            in_plan = pose(np.asarray(item.position, dtype=float), np.asarray(item.orientation, dtype=float))
            self._placed[item.name] = PlacedObject(item, frames.base_from_frame @ in_plan)

    @property
    def objects(self) -> List[PlacedObject]:
        """All objects, in the plan's order."""
        return list(self._placed.values())

    def attach(self, name: str, tip: Matrix) -> None:
        """Ties an object to the hand, whose chain's tip is at ``tip`` (4, 4) in the base; unknown names do nothing."""
        placed = self._placed.get(name)
        if placed is not None and not placed.held:
            self._placed[name] = PlacedObject(placed.object, inverse(tip) @ placed.pose, held=True)

    def detach(self, name: str, tip: Matrix) -> None:
        """Leaves an object where the hand at ``tip`` (4, 4) has brought it; unknown names do nothing."""
        placed = self._placed.get(name)
        if placed is not None and placed.held:
            self._placed[name] = PlacedObject(placed.object, tip @ placed.pose)

    def advance(self, steps: Iterable[PlannedStep]) -> None:
        """Puts the objects where they are after ``steps``, for a run that begins behind them."""
        tip: Optional[Matrix] = None
        for planned in steps:
            for _, position, orientation in planned.step.poses():
                tip = self._frames.to_tip(ToolPose(position.xyz, orientation.xyzw))
            name = getattr(planned.step, "object_name", None)
            if tip is None or name is None:
                continue
            if planned.step.name == "connect_object":
                self.attach(name, tip)
            elif planned.step.name == "disconnect_object":
                self.detach(name, tip)
