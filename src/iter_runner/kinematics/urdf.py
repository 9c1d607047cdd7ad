"""A small reader of URDF: links, joints and the capsules of collision geometry, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics.rotations import inverse, rotation_vector_to_matrix, rpy_to_matrix

Array = NDArray[np.float64]

MOVABLE = ("revolute", "continuous", "prismatic")


class ChainError(ValueError):
    """A chain cannot be had from this description; the message says what was found and what was expected."""


@dataclass(frozen=True)
class UrdfJoint:
    """A joint of a URDF.

    Attributes:
        origin: (4, 4) of the joint in the parent link.
        axis: (3,) unit vector.
        lower, upper: rad (m); a continuous joint has -2 pi and 2 pi.
        velocity: rad/s (m/s); 0 where the description has none.
        mimic: the joint that it follows, with factor and offset; None: it stands by itself.
    """

    name: str
    kind: str
    parent: str
    child: str
    origin: Array
    axis: Array
    lower: float
    upper: float
    velocity: float
    mimic: Optional[Tuple[str, float, float]] = None

    def motion(self, position: float) -> Array:
        """(4, 4) of the child in the joint's own frame at ``position``, rad (m)."""
        moved = np.eye(4)
        if self.kind == "prismatic":
            moved[:3, 3] = position * self.axis
        elif self.kind in MOVABLE:
            moved[:3, :3] = rotation_vector_to_matrix(position * self.axis)
        return moved


@dataclass(frozen=True)
class UrdfCapsule:
    """A capsule of a link: (start, end) in the link's frame, m."""

    link: str
    start: Array
    end: Array
    radius: float


@dataclass(frozen=True)
class Urdf:
    """What a chain needs of a URDF."""

    name: str
    links: List[str]
    joints: Dict[str, UrdfJoint] = field(default_factory=dict)
    capsules: List[UrdfCapsule] = field(default_factory=list)

    def parent_joint(self, link: str) -> Optional[UrdfJoint]:
        """The joint that carries ``link``, None for the root."""
        return next((joint for joint in self.joints.values() if joint.child == link), None)

    def root(self) -> str:
        """The link that no joint carries. Raises ChainError where there is not exactly one."""
        children = {joint.child for joint in self.joints.values()}
        roots = [link for link in self.links if link not in children]
        if len(roots) != 1:
            raise ChainError(f"robot '{self.name}': one root link expected, found {', '.join(roots) or 'none'}")
        return roots[0]

    def fixed_pose(self, link: str, base: str) -> Array:
        """The pose (4, 4) of ``link`` in ``base``, which no joint moves against it.

        Raises:
            ChainError: there is no such link, or a joint moves it.
        """
        paths = []
        for name in (base, link):
            if name not in self.links:
                raise ChainError(f"no link '{name}' in '{self.name}'; links are {', '.join(self.links)}")
            path: List[UrdfJoint] = []
            joint = self.parent_joint(name)
            while joint is not None and joint not in path:
                path.insert(0, joint)
                joint = self.parent_joint(joint.parent)
            paths.append(path)
        up, down = paths
        while up and down and up[0] is down[0]:
            up, down = up[1:], down[1:]
        moving = [joint.name for joint in up + down if joint.kind != "fixed"]
        if moving:
            raise ChainError(f"joint {moving[0]} moves '{link}' against '{base}'; a fixed link expected")
        poses = [np.eye(4), np.eye(4)]
        for index, path in enumerate((up, down)):
            for joint in path:
                poses[index] = poses[index] @ joint.origin
        return inverse(poses[0]) @ poses[1]

    def poses(self, positions: Mapping[str, float]) -> Dict[str, Array]:
        """Poses (4, 4) of all links in the root; joints at ``positions`` rad (m), mimics following, others at 0.

        Raises:
            ChainError: there is not exactly one root.
        """
        poses = {self.root(): np.eye(4)}
        waiting = list(self.joints.values())
        while waiting:
            joint = next((joint for joint in waiting if joint.parent in poses), None)
            if joint is None:
                raise ChainError(f"joints of '{self.name}' go in a circle at '{waiting[0].name}'")
            waiting.remove(joint)
            source, factor, offset = joint.mimic or (joint.name, 1.0, 0.0)
            position = factor * positions.get(source, 0.0) + offset
            poses[joint.child] = poses[joint.parent] @ joint.origin @ joint.motion(position)
        return poses

    def leaves(self) -> List[str]:
        """The links that carry no joint."""
        parents = {joint.parent for joint in self.joints.values()}
        return [link for link in self.links if link not in parents]


def _numbers(text: Optional[str], default: Tuple[float, ...], what: str) -> Array:
    if text is None:
        return np.array(default)
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        values = []
    if len(values) != len(default) or not np.all(np.isfinite(values)):
        raise ChainError(f"{what}: {len(default)} numbers expected, found {text!r}")
    return np.array(values)


def _origin(element: ElementTree.Element, what: str) -> Array:
    origin = element.find("origin")
    matrix = np.eye(4)
    if origin is not None:
        matrix[:3, :3] = rpy_to_matrix(_numbers(origin.get("rpy"), (0, 0, 0), f"{what}, origin rpy"))
        matrix[:3, 3] = _numbers(origin.get("xyz"), (0, 0, 0), f"{what}, origin xyz")
    return matrix


def _joint(element: ElementTree.Element) -> UrdfJoint:
    name = element.get("name", "")
    what = f"joint '{name}'"
    kind = element.get("type", "")
    parent, child = element.find("parent"), element.find("child")
    if parent is None or child is None:
        raise ChainError(f"{what}: a parent and a child expected")
    axis = np.array([1.0, 0.0, 0.0])
    lower = upper = velocity = 0.0
    if kind in MOVABLE:
        axis_element = element.find("axis")
        if axis_element is not None:
            axis = _numbers(axis_element.get("xyz"), (1, 0, 0), f"{what}, axis")
        length = float(np.linalg.norm(axis))
        if length == 0:
            raise ChainError(f"{what}: an axis of some length expected, found 0 0 0")
        axis = axis / length
        limit = element.find("limit")
        attributes = {} if limit is None else limit.attrib
        velocity = float(_numbers(attributes.get("velocity"), (0,), f"{what}, velocity")[0])
        if kind == "continuous":
            lower, upper = -2 * np.pi, 2 * np.pi
        else:
            if limit is None:
                raise ChainError(f"{what}: a {kind} joint needs a limit element")
            lower = float(_numbers(attributes.get("lower"), (0,), f"{what}, lower limit")[0])
            upper = float(_numbers(attributes.get("upper"), (0,), f"{what}, upper limit")[0])
            if lower > upper:
                raise ChainError(f"{what}: lower limit {lower} is above upper limit {upper}")
    mimic = element.find("mimic")
    follows = None
    if mimic is not None:
        factor, offset = (
            float(_numbers(mimic.get(key), (default,), f"{what}, mimic {key}")[0])
            for key, default in (("multiplier", 1.0), ("offset", 0.0))
        )
        follows = (mimic.get("joint", ""), factor, offset)
    links = parent.get("link", ""), child.get("link", "")
    return UrdfJoint(name, kind, *links, _origin(element, what), axis, lower, upper, velocity, follows)


def _capsule(link: str, collision: ElementTree.Element) -> Optional[UrdfCapsule]:
    """A cylinder's length is the capsule's overall length; a box becomes the capsule around it; meshes have none."""
    what = f"link '{link}', collision"
    origin = _origin(collision, what)
    axis, half, radius = 2, 0.0, 0.0
    cylinder, sphere, box = (collision.find(f"geometry/{shape}") for shape in ("cylinder", "sphere", "box"))
    if cylinder is not None:
        radius = float(_numbers(cylinder.get("radius"), (0,), f"{what}, radius")[0])
        half = max(0.0, float(_numbers(cylinder.get("length"), (0,), f"{what}, length")[0]) / 2 - radius)
    elif sphere is not None:
        radius = float(_numbers(sphere.get("radius"), (0,), f"{what}, radius")[0])
    elif box is not None:
        size = _numbers(box.get("size"), (0, 0, 0), f"{what}, size") / 2
        axis = int(np.argmax(size))
        radius = float(np.linalg.norm(np.delete(size, axis)))
        half = float(size[axis])
    else:
        return None
    direction = origin[:3, axis] * half
    return UrdfCapsule(link, origin[:3, 3] - direction, origin[:3, 3] + direction, radius)


def read_urdf(text: str) -> Urdf:
    """Reads URDF text (xacro already processed). Raises ChainError."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ChainError(f"not XML: {error}") from None
    if root.tag != "robot":
        raise ChainError(f"a URDF's <robot> expected, found <{root.tag}>")
    links = [link.get("name", "") for link in root.findall("link")]
    joints = [_joint(element) for element in root.findall("joint")]
    for joint in joints:
        for link in (joint.parent, joint.child):
            if link not in links:
                raise ChainError(f"joint '{joint.name}': no link '{link}'; links are {', '.join(links)}")
    capsules = [
        capsule
        for link in root.findall("link")
        for collision in link.findall("collision")
        for capsule in [_capsule(link.get("name", ""), collision)]
        if capsule is not None
    ]
    return Urdf(root.get("name", ""), links, {joint.name: joint for joint in joints}, capsules)
