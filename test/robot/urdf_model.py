"""A small reader of URDFs for tests: frames and capsules straight from the XML, independent of iter_core."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from iter_runner.robot.table import Robot, robot_urdf

Matrix = NDArray[np.float64]


class Capsule(NamedTuple):
    link: str
    start: Matrix
    end: Matrix
    radius: float


def rotation_about(axis: Sequence[float], angle: float) -> Matrix:
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)


def _vector(text: str) -> Matrix:
    return np.array([float(part) for part in text.split()])


@lru_cache(maxsize=None)
def _origin(element: ElementTree.Element) -> Matrix:
    pose = np.eye(4)
    origin = element.find("origin")
    if origin is not None:
        roll, pitch, yaw = _vector(origin.get("rpy", "0 0 0"))
        pose[:3, :3] = (
            rotation_about((0, 0, 1), yaw) @ rotation_about((0, 1, 0), pitch) @ rotation_about((1, 0, 0), roll)
        )
        pose[:3, 3] = _vector(origin.get("xyz", "0 0 0"))
    return pose


def segment_distance(a: Capsule, b: Capsule) -> float:
    """Distance of two capsules' surfaces, by minimising over both segments alternately (a convex problem)."""
    u, v = a.end - a.start, b.end - b.start
    s = t = 0.5
    for _ in range(200):
        t = 0.5 if v @ v < 1e-15 else float(np.clip((a.start + s * u - b.start) @ v / (v @ v), 0, 1))
        before = s
        s = 0.5 if u @ u < 1e-15 else float(np.clip((b.start + t * v - a.start) @ u / (u @ u), 0, 1))
        if abs(s - before) < 1e-9:
            break
    return float(np.linalg.norm(a.start + s * u - b.start - t * v)) - a.radius - b.radius


class UrdfModel:
    """Frames and capsules of a robot, gripper at ``knuckle`` rad."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.root = ElementTree.fromstring(robot_urdf(robot))
        self.joints = {joint.get("name", ""): joint for joint in self.root.findall("joint")}
        self._above = {joint.find("child").get("link"): joint for joint in self.joints.values()}  # type: ignore[union-attr]
        self._checked: Dict[Tuple[str, str], bool] = {}
        self.links = [link.get("name", "") for link in self.root.findall("link")]

    def parent(self, link: str) -> Optional[str]:
        joint = self._above.get(link)
        return None if joint is None else joint.find("parent").get("link")  # type: ignore[union-attr]

    def frames(self, q: Sequence[float], others: Optional[Mapping[str, float]] = None) -> Dict[str, Matrix]:
        """Poses (4, 4) of all links in the root link."""
        positions = {**dict(zip(self.robot.joints, q)), **(others or {})}
        poses: Dict[str, Matrix] = {}

        def place(link: str) -> Matrix:
            if link not in poses:
                joint, parent = self._above.get(link), self.parent(link)
                if joint is None or parent is None:
                    poses[link] = np.eye(4)
                else:
                    poses[link] = place(parent) @ _origin(joint) @ self._turn(joint, positions)
            return poses[link]

        for link in self.links:
            place(link)
        return poses

    def _turn(self, joint: ElementTree.Element, positions: Mapping[str, float]) -> Matrix:
        pose = np.eye(4)
        if joint.get("type") != "fixed":
            mimic = joint.find("mimic")
            if mimic is None:
                angle = positions.get(joint.get("name", ""), 0.0)
            else:
                angle = positions.get(mimic.get("joint", ""), 0.0) * float(mimic.get("multiplier", "1"))
            pose[:3, :3] = rotation_about(_vector(joint.find("axis").get("xyz")), angle)  # type: ignore[union-attr, arg-type]
        return pose

    def pose(self, q: Sequence[float], link: str, base: str = "base_link") -> Matrix:
        frames = self.frames(q)
        return np.asarray(np.linalg.inv(frames[base]) @ frames[link])

    def capsules(self, q: Sequence[float], others: Optional[Mapping[str, float]] = None) -> List[Capsule]:
        frames, found = self.frames(q, others), []
        for link in self.root.findall("link"):
            for collision in link.findall("collision"):
                pose = frames[link.get("name", "")] @ _origin(collision)
                cylinder = collision.find("geometry/cylinder")
                assert cylinder is not None, "the package's own URDFs use cylinders only"
                radius, length = float(cylinder.get("radius", "")), float(cylinder.get("length", ""))
                reach = max(0.0, length / 2 - radius) * pose[:3, 2]
                found.append(Capsule(link.get("name", ""), pose[:3, 3] - reach, pose[:3, 3] + reach, radius))
        return found

    def limits(self, name: str) -> Tuple[float, float]:
        """Of a joint, rad; a continuous one may make two turns."""
        limit = self.joints[name].find("limit")
        assert limit is not None
        if self.joints[name].get("type") == "continuous":
            return -2 * np.pi, 2 * np.pi
        return float(limit.get("lower", "")), float(limit.get("upper", ""))

    def _body(self, link: str) -> str:
        """The link next to the arm's joint that carries ``link``; whatever is fixed together is one body."""
        while link in self._above and self._above[link].get("name") not in self.robot.joints:
            link = self.parent(link) or link
        return link

    def self_distances(self, q: Sequence[float]) -> Dict[Tuple[str, str], float]:
        """Distances between links that are neither one body, nor neighbours, nor listed in collision_ignore."""
        distances: Dict[Tuple[str, str], float] = {}
        for a, b in itertools.combinations(self.capsules(q), 2):
            pair = (a.link, b.link)
            if pair not in self._checked:
                self._checked[pair] = self._is_checked(*pair)
            if self._checked[pair]:
                distances[pair] = min(distances.get(pair, np.inf), segment_distance(a, b))
        return distances

    def _is_checked(self, a: str, b: str) -> bool:
        one, other = self._body(a), self._body(b)
        neighbours = one == other or any(
            above is not None and self._body(above) == far
            for above, far in ((self.parent(one), other), (self.parent(other), one))
        )
        return not neighbours and not {(a, b), (b, a)} & set(self.robot.collision_ignore)

    def jacobian(self, q: Sequence[float]) -> Matrix:
        """(6, n): linear then angular velocity of the tool frame in the root link."""
        frames = self.frames(q)
        tool = frames[self.robot.tool_frame][:3, 3]
        columns = []
        for name in self.robot.joints:
            pose = frames[self.joints[name].find("child").get("link")]  # type: ignore[union-attr]
            columns.append(np.r_[np.cross(pose[:3, 2], tool - pose[:3, 3]), pose[:3, 2]])
        return np.array(columns).T

    def reach(self, start: Sequence[float], flange: Matrix) -> Optional[Matrix]:
        """The joints (n,) near ``start`` whose tool frame is at ``flange`` in the root link, or None."""
        q = np.array(start, dtype=float)
        for _ in range(100):
            pose = self.frames(q)[self.robot.tool_frame]
            turn = flange[:3, :3] @ pose[:3, :3].T
            axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
            error = np.r_[flange[:3, 3] - pose[:3, 3], 0.5 * axis]
            if np.abs(error).max() < 1e-6 and np.trace(turn) > 2.9:
                return q
            jacobian = self.jacobian(q)
            step = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-6 * np.eye(6), error)
            q = q + step * min(1.0, 0.3 / np.abs(step).max())
        return None
