"""Between the planning scene's objects and the messages that carry them."""

from __future__ import annotations

from typing import Callable, List, Optional

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion
from numpy.typing import NDArray
from shape_msgs.msg import SolidPrimitive
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from iter_runner.kinematics.rotations import matrix_to_quaternion, pose
from iter_runner.msg import SceneObject as SceneObjectMessage
from iter_runner.scene import Origin, SceneError, SceneObject
from iter_runner.scene.objects import GREY

Matrix = NDArray[np.float64]
Locate = Callable[[str], Matrix]
"""(4, 4) pose of a frame in the chain's base. Raises ChainError."""

PRIMITIVES = {"box": SolidPrimitive.BOX, "sphere": SolidPrimitive.SPHERE, "cylinder": SolidPrimitive.CYLINDER}
MARKERS = {"box": Marker.CUBE, "sphere": Marker.SPHERE, "cylinder": Marker.CYLINDER}


def object_of(message: SceneObjectMessage, locate: Locate) -> SceneObject:
    """The object of a message, as a service adds it.

    Raises:
        SceneError: the shape is none that the scene knows, or the orientation has no direction.
        ChainError: see ``locate``.
    """
    kind = message.shape.type
    shape = next((name for name, number in PRIMITIVES.items() if number == kind), None)
    if shape is None:
        raise SceneError(f"object '{message.name}': shape type {kind}; box, sphere or cylinder expected")
    sides = tuple(float(side) for side in message.shape.dimensions)
    if shape == "cylinder":  # SolidPrimitive has the height first
        sides = sides[::-1]
    color = (message.color.r, message.color.g, message.color.b, message.color.a)
    return SceneObject(
        name=message.name,
        pose=locate(message.frame_id.lstrip("/")) @ matrix_of(message.pose),
        shape=shape,
        dimensions=sides,
        graspable=bool(message.graspable),
        color=color if color[3] > 0.0 else GREY,
        origin=Origin.SERVICE,
    )


def message_of(item: SceneObject, base_frame: str, tip: Optional[Matrix]) -> SceneObjectMessage:
    """The message of an object, in the base; of a held one with the chain's tip at ``tip`` (4, 4), if that is known."""
    sides = list(item.dimensions)
    place = item.pose if not item.held or tip is None else tip @ item.pose
    return SceneObjectMessage(
        name=item.name,
        frame_id=base_frame,
        shape=SolidPrimitive(
            type=PRIMITIVES[item.shape], dimensions=sides[::-1] if item.shape == "cylinder" else sides
        ),
        pose=pose_message(place),
        graspable=item.graspable,
        color=ColorRGBA(*item.color),
    )


def markers_of(objects: List[SceneObject], base_frame: str, tip_frame: str) -> List[Marker]:
    """All objects for RViz, in place of those shown before; held ones move with the hand."""
    markers = [Marker(action=Marker.DELETEALL)]
    for number, item in enumerate(objects):
        marker = Marker(ns="scene", id=number, type=MARKERS[item.shape], action=Marker.ADD, frame_locked=True)
        marker.header.frame_id = tip_frame if item.held else base_frame
        marker.pose = pose_message(item.pose)
        marker.scale.x, marker.scale.y, marker.scale.z = item.size
        marker.color = ColorRGBA(*item.color)
        markers.append(marker)
    return markers


def matrix_of(message: Pose) -> Matrix:
    """The (4, 4) of a pose; an orientation of only zeros, as a message begins with, is none."""
    turn = (message.orientation.x, message.orientation.y, message.orientation.z, message.orientation.w)
    at = (message.position.x, message.position.y, message.position.z)
    if not np.all(np.isfinite([*turn, *at])):
        raise SceneError("the pose holds a number that is not finite")
    return pose(at, turn if any(turn) else (0.0, 0.0, 0.0, 1.0))


def pose_message(matrix: Matrix) -> Pose:
    """The message of a pose (4, 4)."""
    return Pose(Point(*map(float, matrix[:3, 3])), Quaternion(*map(float, matrix_to_quaternion(matrix[:3, :3]))))
