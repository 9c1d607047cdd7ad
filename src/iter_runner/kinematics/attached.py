"""What a hand carries: bodies rigidly on a chain's tip, filled from inside by capsules."""

from __future__ import annotations

import copy
import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, List, Sequence, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iter_runner.kinematics.chain import LinkCapsule

if TYPE_CHECKING:
    from iter_runner.kinematics.chain import Chain

Array = NDArray[np.float64]
Segment = Tuple[Array, Array, float]
"""Ends (3,) and radius of a capsule, in the body's own frame, m."""

GAP = 0.003
"""m that the surface of a carried body may be from its filling, of bodies up to 15 cm."""
GAP_SHARE = 0.02
"""The same as a share of the longest side, of larger ones: they would take too many capsules."""
SINK = 0.003
"""m that a carried body may sink into what it is put down on: plans and grasps are no more exact.

As much as RelaxedIK's margin for obstacles: what stands on a table is not pushed off it.
"""
LINE_RADIUS = 4.0
"""Radius of the capsules that fill a face, in gaps: thicker ones leave more of its rim, thinner ones are many."""
CARRIERS = 64
"""Chains with something on the tip that a chain remembers: what bodies may touch is not quickly known."""
SHAPES = ("box", "sphere", "cylinder")


@dataclass(frozen=True)
class AttachedBody:
    """A body that the hand holds.

    Attributes:
        name: unlike any link's.
        pose: (4, 4) of its centre in the chain's tip, m.
        size: (3,) m along its own axes; of a cylinder (axis z) and a sphere the box around it.
        touch_links: links that may touch it: the gripper's.
        shape: one of :data:`SHAPES`.
    """

    name: str
    pose: ArrayLike
    size: ArrayLike
    touch_links: Sequence[str] = ()
    shape: str = "box"


def carrying(chain: Chain, attached: Sequence[AttachedBody]) -> Chain:
    """The same joints with the ``attached`` bodies on the tip, as further ``capsules``; without any, ``chain`` itself.

    The capsules stay inside each body made :data:`SINK` smaller on all sides, so that one put down on a table touches
    nothing, and come within :func:`gap` of that one's surface, so that no contact deeper than both together is missed.

    Raises:
        ValueError: a size that is not above 0, a number that is not finite, an unknown shape.
    """
    if not attached:
        return chain
    key = tuple((body.name, *_numbers(body), body.shape, *body.touch_links) for body in attached)
    if key not in chain.carriers:
        if len(chain.carriers) >= CARRIERS:
            chain.carriers.clear()
        chain.carriers[key] = _carrying(chain, attached)
    return chain.carriers[key]


def _carrying(chain: Chain, attached: Sequence[AttachedBody]) -> Chain:
    carrier = copy.copy(chain)
    carrier.collision_bodies = None
    carrier.carriers = {}
    carrier.capsules = list(chain.capsules)
    carrier.collision_ignore = list(chain.collision_ignore)
    for body in attached:
        pose = chain.tip_pose @ np.asarray(body.pose, dtype=np.float64)
        for start, end, radius in filling(body.size, body.shape):
            start, end = (pose[:3, :3] @ point + pose[:3, 3] for point in (start, end))
            carrier.capsules.append(LinkCapsule(body.name, len(chain), start, end, radius))
        carrier.collision_ignore += [(body.name, link) for link in body.touch_links]
    return carrier


def _numbers(body: AttachedBody) -> List[float]:
    """The pose's and the size's numbers, checked."""
    pose = _checked(body.pose, (4, 4), f"the pose of '{body.name}'")
    size = _checked(body.size, (3,), f"the size of '{body.name}'")
    if np.any(size <= 0.0):
        raise ValueError(f"the size of '{body.name}': sides above 0 expected, found {size.tolist()}")
    return [*pose.ravel().tolist(), *size.tolist()]


def gap(size: ArrayLike, shape: str = "box") -> float:
    """How far, m, the surface of a body with these sides (3,) may be from its filling; twice that of a cylinder."""
    return (2.0 if shape == "cylinder" else 1.0) * max(GAP, GAP_SHARE * float(np.max(np.asarray(size))))


def filling(size: ArrayLike, shape: str = "box") -> List[Segment]:
    """Capsules inside a body of ``size`` (3,) made :data:`SINK` smaller on all sides (at most by half).

    Raises:
        ValueError: an unknown shape.
    """
    if shape not in SHAPES:
        raise ValueError(f"shape '{shape}': one of {', '.join(SHAPES)} expected")
    sides = np.asarray(size, dtype=np.float64)
    half = np.maximum(0.5 * sides - SINK, 0.25 * sides)
    x, y, z = (float(value) for value in half)
    return list(_filling(x, y, z, gap(sides, shape), shape))


@functools.lru_cache(maxsize=64)
def _filling(x: float, y: float, z: float, most: float, shape: str) -> Tuple[Segment, ...]:
    half = np.array([x, y, z])
    if shape == "sphere":
        return ((np.zeros(3), np.zeros(3), min(x, y, z)),)
    if shape == "cylinder":
        return tuple(_fill_cylinder(min(x, y), z, most))
    return tuple(_fill_box(half, most))


def _fill_box(half: Array, most: float) -> List[Segment]:
    """A thick capsule through the middle, a thin one along every edge, and what the faces still need.

    A capsule of radius r that touches a face covers a strip of it: to sqrt(2 r m + m²) from its line no point is
    farther than m from it. One along an edge leaves (sqrt(3) - 1) r at the corner.
    """
    order = np.argsort(half, kind="stable")
    short, long = int(order[0]), int(order[2])
    middle = np.zeros(3)
    middle[long] = half[long] - half[short]
    segments: List[Segment] = [(-middle, middle, float(half[short]))]
    edge = min(most / (math.sqrt(3.0) - 1.0), float(half[short]))
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        signs = {(a, b) for a in _sides(half[u] - edge) for b in _sides(half[v] - edge)}
        for a, b in sorted(signs):
            end = np.zeros(3)
            end[axis], end[u], end[v] = half[axis] - edge, a * (half[u] - edge), b * (half[v] - edge)
            start = end.copy()
            start[axis] = -end[axis]
            segments.append((start, end, edge))
    rim = edge + math.sqrt(2.0 * edge * most + most**2)
    for normal in range(3):
        u, v = sorted(((normal + 1) % 3, (normal + 2) % 3), key=lambda axis: (half[axis], axis))
        face = _face_points(half, normal, u, v)
        if _farthest(face, segments) <= 0.95 * most:  # between the points it is a little more
            continue
        radius = min(LINE_RADIUS * most, float(half[normal]), float(half[u]))
        reach = math.sqrt(2.0 * radius * most + most**2)
        width = math.sqrt(max(reach**2 - max(0.0, radius - rim) ** 2, 0.0))
        count = max(1, math.ceil((half[u] - rim) / width))
        for place in (np.arange(count) + 0.5) * (2.0 * (half[u] - rim) / count) - (half[u] - rim):
            for sign in _sides(half[normal] - radius):
                end = np.zeros(3)
                end[normal], end[u], end[v] = sign * (half[normal] - radius), place, half[v] - radius
                start = end.copy()
                start[v] = -end[v]
                segments.append((start, end, radius))
    return segments


def _sides(distance: float) -> Tuple[float, ...]:
    """Both signs, or one where the two places would be the same."""
    return (-1.0, 1.0) if distance > 1e-9 else (1.0,)


def _face_points(half: Array, normal: int, u: int, v: int) -> Array:
    """Points (N, 3) all over the face at +``half`` of the axis ``normal``: the other one is its mirror image."""
    counts = [max(3, math.ceil(half[axis] / 5e-4) + 1) if half[axis] < 0.03 else 61 for axis in (u, v)]
    points = np.zeros((counts[0] * counts[1], 3))
    grid = np.meshgrid(np.linspace(0.0, half[u], counts[0]), np.linspace(0.0, half[v], counts[1]))
    points[:, normal], points[:, u], points[:, v] = half[normal], grid[0].ravel(), grid[1].ravel()
    return points


def _farthest(points: Array, segments: Sequence[Segment]) -> float:
    """The largest distance, m, of points (N, 3) from the capsule that is nearest to each."""
    nearest = np.full(len(points), np.inf)
    for start, end, radius in segments:
        way = end - start
        length = float(way @ way)
        share = np.clip((points - start) @ way / length, 0.0, 1.0) if length > 0.0 else np.zeros(len(points))
        away = np.linalg.norm(points - start - share[:, None] * way, axis=1) - radius
        nearest = np.minimum(nearest, away)
    return float(np.max(nearest))


def _fill_cylinder(radius: float, half: float, most: float) -> List[Segment]:
    """A thick capsule through the middle, thin ones along the side, chords on both ends."""
    segments: List[Segment] = []
    if half >= radius:
        middle = np.array([0.0, 0.0, half - radius])
        segments.append((-middle, middle, radius))
    # Halfway between two lines, at the rim, a point is sqrt(t² + 4 r (r - t) sin²(a / 4)) from the next line's end
    # seen along the axis, and t seen across it.
    thin = min(most, radius, half)
    circle = radius - thin
    count = 1
    if circle > 1e-9:
        share = math.sqrt((most**2 + 2.0 * most * thin - thin**2) / (4.0 * radius * circle))
        count = max(3, math.ceil(0.5 * math.pi / math.asin(min(share, 1.0))))
    for angle in 2.0 * np.pi * np.arange(count) / count:
        end = np.array([circle * math.cos(angle), circle * math.sin(angle), half - thin])
        segments.append((end * [1.0, 1.0, -1.0], end, thin))
    if circle > 1e-9:
        width = math.sqrt(2.0 * thin * most + most**2)
        rows = max(1, math.ceil(circle / width))
        for place in (np.arange(rows) + 0.5) * (2.0 * circle / rows) - circle:
            chord = math.sqrt(max(circle**2 - place**2, 0.0))
            for sign in _sides(half - thin):
                end = np.array([chord, place, sign * (half - thin)])
                segments.append((end * [-1.0, 1.0, 1.0], end, thin))
    return segments


def _checked(values: ArrayLike, shape: Tuple[int, ...], what: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise ValueError(f"{what}: finite numbers of the shape {shape} expected, found {values!r}")
    return array
