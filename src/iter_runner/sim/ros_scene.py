"""Between the world's bodies and the messages that carry them."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np
import rospy
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from shape_msgs.msg import SolidPrimitive
from visualization_msgs.msg import Marker, MarkerArray

from iter_runner.kinematics import ChainError
from iter_runner.kinematics.rotations import matrix_to_quaternion, pose
from iter_runner.kinematics.urdf import Urdf
from iter_runner.msg import Scene, SceneObject
from iter_runner.sim.arm_model import frame_pose
from iter_runner.sim.world import Body

MARKERS = {
    SolidPrimitive.BOX: Marker.CUBE,
    SolidPrimitive.SPHERE: Marker.SPHERE,
    SolidPrimitive.CYLINDER: Marker.CYLINDER,
}


def bodies_of(scene: Scene, urdf: Urdf, base: str) -> Tuple[List[Body], List[str]]:
    """The bodies of a scene in the frame ``base``, and what is wrong with those that were left out."""
    bodies: List[Body] = []
    faults: List[str] = []
    for item in scene.objects:
        try:
            bodies.append(_body_of(item, urdf, base))
        except (ChainError, ValueError) as error:
            faults.append(f"object '{item.name}': {error}")
    return bodies, faults


def _body_of(item: SceneObject, urdf: Urdf, base: str) -> Body:
    at, turn = item.pose.position, item.pose.orientation
    in_frame = pose([at.x, at.y, at.z], [turn.x, turn.y, turn.z, turn.w])
    frame = item.frame_id.lstrip("/") or base
    size = _size_of(item.shape)
    if not all(np.isfinite(side) and side > 0 for side in size):
        raise ValueError(f"sides above 0 expected, {size} found")
    return Body(item.name, frame_pose(urdf, frame, base) @ in_frame, size, bool(item.graspable), item)


def _size_of(shape: SolidPrimitive) -> Tuple[float, float, float]:
    """The sides of the box around a shape, m."""
    sides = tuple(shape.dimensions)
    if shape.type == SolidPrimitive.BOX and len(sides) == 3:
        return sides[0], sides[1], sides[2]
    if shape.type == SolidPrimitive.SPHERE and len(sides) == 1:
        return 2 * sides[0], 2 * sides[0], 2 * sides[0]
    if shape.type == SolidPrimitive.CYLINDER and len(sides) == 2:
        return 2 * sides[1], 2 * sides[1], sides[0]
    raise ValueError(f"a box, sphere or cylinder with its dimensions expected, type {shape.type} with {sides} found")


def scene_of(bodies: Sequence[Body], base: str, now: Optional[rospy.Time] = None) -> Scene:
    """Where the bodies are, as a message."""
    scene = Scene()
    scene.header.frame_id = base
    scene.header.stamp = now or rospy.Time()
    for body in bodies:
        source: Any = body.source
        scene.objects.append(
            SceneObject(
                name=body.name,
                frame_id=base,
                shape=source.shape,
                pose=Pose(
                    position=Point(*body.pose[:3, 3].tolist()),
                    orientation=Quaternion(*matrix_to_quaternion(body.pose[:3, :3]).tolist()),
                ),
                graspable=body.graspable,
                color=source.color,
            )
        )
    return scene


def markers_of(scene: Scene, shown_before: int) -> MarkerArray:
    """A scene for RViz; markers of a longer scene before are taken away."""
    markers = MarkerArray()
    for number, item in enumerate(scene.objects):
        marker = Marker(ns="simulator", id=number, type=MARKERS[item.shape.type], action=Marker.ADD)
        marker.header.frame_id = scene.header.frame_id  # stamp 0: at its place in that frame whatever the time
        marker.pose = item.pose
        sides = item.shape.dimensions
        if item.shape.type == SolidPrimitive.SPHERE:
            marker.scale = Vector3(2 * sides[0], 2 * sides[0], 2 * sides[0])
        elif item.shape.type == SolidPrimitive.CYLINDER:
            marker.scale = Vector3(2 * sides[1], 2 * sides[1], sides[0])
        else:
            marker.scale = Vector3(*sides)
        marker.color = item.color
        if marker.color.a == 0.0:
            marker.color.r, marker.color.g, marker.color.b, marker.color.a = 0.7, 0.55, 0.35, 1.0
        markers.markers.append(marker)
    for number in range(len(scene.objects), shown_before):
        markers.markers.append(Marker(ns="simulator", id=number, action=Marker.DELETE))
    return markers
