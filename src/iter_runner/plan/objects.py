"""Where a plan's objects really are: original plans often give the pose of the flange that grasps them instead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.plan.model import EnvironmentObject, PlanObject
from iter_runner.plan.step import Quaternion, Vector3

if TYPE_CHECKING:
    from iter_runner.plan.model import Plan

INFLATION = 0.01
"""How far outside an original plan's box a waypoint may be to count as one that works on it, m."""
PLATE = 0.15
"""A box with two edges longer than this (m) is a table or a wall, however near the hand comes to it."""

APPROACH_AXES: Dict[str, int] = {"ee_link": 0, "flange": 0, "tool0": 2}
"""The axis of each flange frame that points out of the flange's face."""


@dataclass(frozen=True)
class _Waypoint:
    flange: NDArray[np.float64]
    tip: NDArray[np.float64]


def approach(orientation: Quaternion, tool_frame: str) -> NDArray[np.float64]:
    """The direction (3,) out of the flange's face, in the plan's frame; an unknown tool frame counts as ``tool0``."""
    return _rotation(orientation)[:, APPROACH_AXES.get(tool_frame, 2)]


def plan_objects(plan: Plan, tool_frame: str, tip_offset: float) -> List[PlanObject]:
    """The plan's objects with their true centres; see ``Plan.objects_for``.

    In a plan of version 1.0.0 they are as written. In an original plan, an object whose written position is the
    flange's when the hand works on it has its centre at the fingertips; one that the fingertips come to is where it is
    written. Both are graspable, and so is what an ``object_name`` names and every object of the same size as one of
    these (the blocks of a queue that the run leaves over); all others are obstacles.
    """
    if not plan.original:
        return [_object(item, _array(item.position), item.graspable) for item in plan.environment]
    waypoints: List[_Waypoint] = []
    grasps: Dict[str, _Waypoint] = {}
    for planned in plan.steps:
        for _, position, orientation in planned.step.poses():
            flange = _array(position)
            waypoints.append(_Waypoint(flange, flange + tip_offset * approach(orientation, tool_frame)))
        name = getattr(planned.step, "object_name", None)
        if name is not None and waypoints:
            grasps.setdefault(name, waypoints[-1])
    named = {getattr(planned.step, "object_name", None) for planned in plan.steps}
    objects = [
        _original_object(item, item.name in named, grasps.get(item.name), waypoints, tool_frame, tip_offset)
        for item in plan.environment
    ]
    sizes = {item.size for item in objects if item.graspable}
    return [replace(item, graspable=item.graspable or item.size in sizes) for item in objects]


def _original_object(
    item: EnvironmentObject,
    named: bool,
    grasp: Optional[_Waypoint],
    waypoints: List[_Waypoint],
    tool_frame: str,
    tip_offset: float,
) -> PlanObject:
    written = _array(item.position)
    rotation = _rotation(item.orientation)
    reach = np.asarray(item.size.xyz) / 2 + INFLATION

    def nearest(points: List[_Waypoint]) -> Optional[Tuple[float, bool, _Waypoint]]:
        found: Optional[Tuple[float, bool, _Waypoint]] = None
        for waypoint in points:
            for at_flange, point in ((True, waypoint.flange), (False, waypoint.tip)):
                offset = rotation.T @ (point - written)
                distance = float(np.linalg.norm(offset))
                if np.all(np.abs(offset) <= reach) and (found is None or distance < found[0] - 1e-9):
                    found = (distance, at_flange, waypoint)
        return found

    match = nearest([grasp]) if grasp is not None else None
    if match is None and sorted(item.size.xyz)[1] <= PLATE:
        match = nearest(waypoints)
    if match is not None:
        _, at_flange, waypoint = match
        return _object(item, written + (waypoint.tip - waypoint.flange if at_flange else 0.0), True)
    if named:
        return _object(item, written + tip_offset * approach(item.orientation, tool_frame), True)
    return _object(item, written, item.graspable)


def _object(item: EnvironmentObject, position: NDArray[np.float64], graspable: bool) -> PlanObject:
    color = item.color
    return PlanObject(
        name=item.name,
        position=(float(position[0]), float(position[1]), float(position[2])),
        orientation=item.orientation.xyzw,
        size=item.size.xyz,
        graspable=graspable,
        color=(color.r, color.g, color.b, color.a) if color is not None else (0.6, 0.6, 0.6, 1.0),
    )


def _array(vector: Vector3) -> NDArray[np.float64]:
    return np.array(vector.xyz, dtype=np.float64)


def _rotation(orientation: Quaternion) -> NDArray[np.float64]:
    x, y, z, w = orientation.xyzw
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
