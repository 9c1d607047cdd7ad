"""A plan's objects in the planning scene, and where its steps bring them."""

from __future__ import annotations

from typing import Callable, Iterable, List, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics.rotations import pose
from iter_runner.plan.model import PlannedStep, PlanObject
from iter_runner.plan.step import Quaternion, Step, Vector3
from iter_runner.scene import Origin, PlanningScene, SceneObject

Matrix = NDArray[np.float64]
ToTip = Callable[[Vector3, Quaternion], Matrix]
"""(4, 4) pose of the chain's tip in its base for a pose of the plan."""


def scene_objects(objects: Sequence[PlanObject], base_from_frame: Matrix) -> List[SceneObject]:
    """A plan's objects (``Plan.objects_for``) in the chain's base.

    Args:
        objects: with their poses in the plan's frame; of several with one name the last one counts.
        base_from_frame: (4, 4) pose of the plan's frame in the base, m.
    """
    placed = {
        item.name: SceneObject(
            name=item.name,
            pose=base_from_frame
            @ pose(np.asarray(item.position, dtype=float), np.asarray(item.orientation, dtype=float)),
            shape="box",
            dimensions=item.size,
            graspable=item.graspable,
            color=item.color,
            origin=Origin.PLAN,
        )
        for item in objects
    }
    return list(placed.values())


def follow(scene: PlanningScene, step: Step, tip: Matrix) -> bool:
    """Does to the scene what ``step`` does, the chain's tip at ``tip`` (4, 4); returns whether that is anything."""
    name = getattr(step, "object_name", None)
    if name is None:
        return False
    if step.name == "connect_object":
        return scene.attach(name, tip)
    if step.name == "disconnect_object":
        return scene.detach(name, tip)
    return False


def advance(scene: PlanningScene, steps: Iterable[PlannedStep], to_tip: ToTip, tip: Optional[Matrix] = None) -> None:
    """Puts the objects where they are after ``steps``, for a run that begins behind them.

    ``tip`` (4, 4) is where the hand is before them, if that is known.
    """
    for planned in steps:
        for _, position, orientation in planned.step.poses():
            tip = to_tip(position, orientation)
        if tip is not None:
            follow(scene, planned.step, tip)
