"""Frames fixed in a robot's model: where a plan's ``frame_id`` and ``tool_frame`` are."""

from __future__ import annotations

from typing import Dict, List, Tuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics.rotations import rpy_to_matrix
from iter_runner.plan.registry import did_you_mean

Matrix = NDArray[np.float64]


class FrameError(ValueError):
    """There is no such frame, or it is not fixed to the other; the message names the frames that are."""


def fixed_pose(urdf: str, frame: str, reference: str) -> Matrix:
    """The pose (4, 4) of a link in another one that it does not move against, m.

    Args:
        urdf: the robot's URDF as XML text.
        frame: the link whose pose is asked for.
        reference: the link in whose frame the pose is.

    Raises:
        FrameError: one of them is no link, or joints move between them.
    """
    root = ElementTree.fromstring(urdf)
    parents: Dict[str, Tuple[str, ElementTree.Element]] = {}
    for joint in root.findall("joint"):
        parent, child = joint.find("parent"), joint.find("child")
        if parent is not None and child is not None:
            parents[str(child.get("link"))] = (str(parent.get("link")), joint)
    links = [str(link.get("name")) for link in root.findall("link")]
    if reference not in links:
        raise FrameError(f"the robot has no frame '{reference}'")
    anchor, reference_pose = _rigid_root(parents, reference)
    fixed = sorted(link for link in links if _rigid_root(parents, link)[0] == anchor)
    if frame not in fixed:
        what = f"'{frame}' moves against '{reference}'" if frame in links else f"the robot has no frame '{frame}'"
        raise FrameError(f"{what}; expected {did_you_mean(frame, fixed)}")
    return np.linalg.inv(reference_pose) @ _rigid_root(parents, frame)[1]


def _rigid_root(parents: Dict[str, Tuple[str, ElementTree.Element]], link: str) -> Tuple[str, Matrix]:
    """The first link of the rigid body that a link belongs to, and the link's pose in it."""
    joints: List[ElementTree.Element] = []
    while link in parents and parents[link][1].get("type") == "fixed":
        joints.append(parents[link][1])
        link = parents[link][0]
    pose = np.eye(4)
    for joint in reversed(joints):
        pose = pose @ _origin(joint)
    return link, pose


def _origin(joint: ElementTree.Element) -> Matrix:
    pose = np.eye(4)
    origin = joint.find("origin")
    if origin is not None:
        pose[:3, :3] = rpy_to_matrix(np.array([float(word) for word in origin.get("rpy", "0 0 0").split()]))
        pose[:3, 3] = [float(word) for word in origin.get("xyz", "0 0 0").split()]
    return pose
