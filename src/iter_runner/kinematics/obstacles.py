"""Obstacles, and how far a chain is clear of them and of itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

import iter_core
from iter_runner.kinematics.chain import Chain

Array = NDArray[np.float64]

ROUNDING = 1e-6
"""m by which a contact may seem to deepen."""

CYLINDER_SIDES = 12
"""An even number."""


@dataclass(frozen=True)
class Box:
    """A box: ``pose`` (4, 4) of its centre in the chain's base, ``size`` (3,) along its axes, m."""

    name: str
    pose: ArrayLike
    size: ArrayLike


@dataclass(frozen=True)
class Sphere:
    """A sphere: ``center`` (3,) in the chain's base, ``radius``, m."""

    name: str
    center: ArrayLike
    radius: float


@dataclass(frozen=True)
class Capsule:
    """All points within ``radius`` of the segment from ``start`` (3,) to ``end`` (3,) in the chain's base, m."""

    name: str
    start: ArrayLike
    end: ArrayLike
    radius: float


@dataclass(frozen=True)
class Cylinder:
    """A cylinder: ``pose`` (4, 4) of its centre in the chain's base, its axis along z, ``radius`` and ``length``, m.

    What keeps clear of it keeps clear of the prism with :data:`CYLINDER_SIDES` sides around it, 3.5 % wider at most.
    """

    name: str
    pose: ArrayLike
    radius: float
    length: float


Obstacle = Union[Box, Sphere, Capsule, Cylinder]


class Obstacles:
    """Named obstacles that may be added, moved and removed between two solves, at no cost.

    Args:
        obstacles: the first ones.
    """

    def __init__(self, obstacles: Iterable[Obstacle] = ()) -> None:
        self.core = iter_core.World()
        self._ids: Dict[str, List[int]] = {}
        self._obstacles: Dict[str, Obstacle] = {}
        for obstacle in obstacles:
            self.add(obstacle)

    def __len__(self) -> int:
        return len(self._obstacles)

    def __iter__(self) -> Iterator[Obstacle]:
        return iter(self._obstacles.values())

    def __contains__(self, name: object) -> bool:
        return name in self._obstacles

    def add(self, obstacle: Obstacle) -> None:
        """Adds an obstacle; one of the same name is replaced."""
        _check(obstacle)
        known = self._obstacles.get(obstacle.name)
        parts = _parts(obstacle)
        if known is not None and [type(part) for part in _parts(known)] == [type(part) for part in parts]:
            for identifier, part in zip(self._ids[obstacle.name], parts):
                if isinstance(part, Box):
                    self.core.replace_box(identifier, part.pose, part.size)
                else:
                    self.core.replace_capsule(identifier, *_segment(part))
        else:
            if known is not None:
                self.remove(obstacle.name)
            self._ids[obstacle.name] = [
                self.core.add_box(part.pose, part.size)
                if isinstance(part, Box)
                else self.core.add_capsule(*_segment(part))
                for part in parts
            ]
        self._obstacles[obstacle.name] = obstacle

    def move(self, name: str, pose: ArrayLike) -> None:
        """Puts a box's or cylinder's centre at ``pose`` (4, 4), or a sphere's at its position. Raises KeyError.

        A capsule is moved by adding it again under its name.
        """
        obstacle = self._obstacles[name]
        if isinstance(obstacle, Box):
            self.add(Box(name, pose, obstacle.size))
        elif isinstance(obstacle, Cylinder):
            self.add(Cylinder(name, pose, obstacle.radius, obstacle.length))
        elif isinstance(obstacle, Sphere):
            self.add(Sphere(name, np.asarray(pose, dtype=np.float64)[:3, 3], obstacle.radius))
        else:
            raise ValueError(f"capsule '{name}' has no pose to set: add it again with its new ends")

    def remove(self, name: str) -> None:
        """Takes an obstacle away. Raises KeyError."""
        for identifier in self._ids.pop(name):
            self.core.remove(identifier)
        del self._obstacles[name]

    def name_of(self, identifier: int) -> str:
        """The name of the obstacle that the core knows by a number."""
        return next(name for name, known in self._ids.items() if identifier in known)


def _parts(obstacle: Obstacle) -> List[Union[Box, Sphere, Capsule]]:
    """What the core knows an obstacle as; of a cylinder a box for each two opposite sides of the prism around it."""
    if not isinstance(obstacle, Cylinder):
        return [obstacle]
    side = 2.0 * obstacle.radius * math.tan(math.pi / CYLINDER_SIDES)
    boxes: List[Union[Box, Sphere, Capsule]] = []
    for number in range(CYLINDER_SIDES // 2):
        angle = 2.0 * math.pi * number / CYLINDER_SIDES
        turn = np.eye(4)
        turn[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        pose = np.asarray(obstacle.pose, dtype=np.float64) @ turn
        boxes.append(Box(obstacle.name, pose, (2.0 * obstacle.radius, side, obstacle.length)))
    return boxes


def _segment(obstacle: Union[Sphere, Capsule]) -> Tuple[ArrayLike, ArrayLike, float]:
    if isinstance(obstacle, Sphere):
        return obstacle.center, obstacle.center, obstacle.radius
    return obstacle.start, obstacle.end, obstacle.radius


def _check(obstacle: Obstacle) -> None:
    numbers: List[ArrayLike]
    if isinstance(obstacle, Box):
        numbers = [obstacle.pose, obstacle.size]
        if np.any(np.asarray(obstacle.size, dtype=np.float64) < 0):
            raise ValueError(f"obstacle '{obstacle.name}': sizes >= 0 expected, found {obstacle.size!r}")
    elif isinstance(obstacle, Cylinder):
        numbers = [obstacle.pose, obstacle.radius, obstacle.length]
        if obstacle.radius < 0 or obstacle.length < 0:
            found = f"{obstacle.radius} and {obstacle.length}"
            raise ValueError(f"obstacle '{obstacle.name}': a radius and a length >= 0 expected, found {found}")
    else:
        numbers = [np.asarray(part) for part in _segment(obstacle)]
        if obstacle.radius < 0:
            raise ValueError(f"obstacle '{obstacle.name}': a radius >= 0 expected, found {obstacle.radius}")
    if not all(np.all(np.isfinite(np.asarray(part, dtype=np.float64))) for part in numbers):
        raise ValueError(f"obstacle '{obstacle.name}' holds a number that is not finite")


@dataclass(frozen=True)
class Clearance:
    """The smallest distance at some joint positions.

    Attributes:
        distance: m, negative in contact, infinite where there is nothing to measure.
        a, b: names of the link, and of the other link or obstacle.
        point_a, point_b: (3,) m in the base, on their surfaces.
        gradient: (n,) change of the distance per joint, m/rad.
        with_obstacle: whether ``b`` is an obstacle.
    """

    distance: float
    a: str
    b: str
    point_a: Array
    point_b: Array
    gradient: Array
    with_obstacle: bool


@dataclass(frozen=True)
class Contact:
    """Two bodies that a path takes into each other.

    Attributes:
        row: of the path, where they are deepest.
        a, b: names of the link, and of the other link or obstacle.
        depth: m, above 0.
    """

    row: int
    a: str
    b: str
    depth: float


class CollisionBodies:
    """A chain's capsules and the pairs of them that must not touch.

    Left out are links that the same joint moves or that one joint separates (neighbours), the chain's
    ``collision_ignore``, and pairs that touch at (nearly) all joint positions, whose distance says nothing.
    """

    SAMPLES = 128
    ALWAYS = 0.9

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        bodies = chain.capsules
        ignored = {frozenset(pair) for pair in chain.collision_ignore}
        candidates = [
            (i, j)
            for i in range(len(bodies))
            for j in range(i + 1, len(bodies))
            if abs(bodies[i].frame - bodies[j].frame) >= 2
            and frozenset((bodies[i].link, bodies[j].link)) not in ignored
        ]
        self.rows = [(body.frame, body.start, body.end, body.radius) for body in bodies]
        self.pairs = candidates
        if candidates:
            distances = iter_core.CollisionModel(self.rows, candidates).pair_distances(chain.core, _spread(chain))
            contact = np.mean(distances < 0, axis=0)
            self.pairs = [pair for pair, share in zip(candidates, contact) if share < self.ALWAYS]
        self.core = iter_core.CollisionModel(self.rows, self.pairs)

    def clearance(self, q: ArrayLike, obstacles: Optional[Obstacles] = None) -> Clearance:
        """The smallest distance at q (n,)."""
        world = None if obstacles is None else obstacles.core
        distance, body, other, identifier, point_a, point_b, gradient = self.core.nearest(self.chain.core, q, world)
        links = self.chain.capsules
        a = links[body].link if body >= 0 else ""
        b = links[other].link if other >= 0 else ""
        if identifier >= 0 and obstacles is not None:
            b = obstacles.name_of(identifier)
        return Clearance(distance, a, b, point_a, point_b, gradient, identifier >= 0)

    def distances(self, path: ArrayLike, obstacles: Optional[Obstacles] = None) -> Array:
        """The smallest distance (N,) at every row of a path (N, n)."""
        world = None if obstacles is None else obstacles.core
        return self.core.nearest_batch(self.chain.core, path, world)

    def pair_series(self, path: ArrayLike, obstacles: Obstacles) -> Iterator[Tuple[str, str, Array]]:
        """The distances (N,) along a path (N, n) of each pair of links, and of links to each obstacle.

        An obstacle that nothing touches at the first row comes once, with the link nearest to it.
        """
        links = [body.link for body in self.chain.capsules]
        if self.pairs:
            columns = np.asarray(self.core.pair_distances(self.chain.core, path)).T
            for (i, j), distances in zip(self.pairs, columns):
                yield links[i], links[j], distances
        together = iter_core.CollisionModel(self.rows, [])
        for obstacle in obstacles:
            world = Obstacles([obstacle])
            distances = together.nearest_batch(self.chain.core, path, world.core)
            if distances[0] >= 0.0:
                nearest = together.nearest(self.chain.core, path[int(np.argmin(distances))], world.core)  # type: ignore[index]
                yield links[nearest[1]] if nearest[1] >= 0 else "", obstacle.name, distances
                continue
            for link, row in zip(links, self.rows):
                yield (
                    link,
                    obstacle.name,
                    iter_core.CollisionModel([row], []).nearest_batch(self.chain.core, path, world.core),
                )


def _spread(chain: Chain) -> Array:
    """The same joint positions every time, spread evenly: a Kronecker sequence of square roots of primes.

    Over the joints' limits; over one turn, ±pi where that is within them, of a joint that turns further.
    """
    primes = [p for p in range(2, 400) if all(p % k for k in range(2, int(p**0.5) + 1))]
    steps = np.sqrt(np.array(primes[: len(chain)], dtype=np.float64)) % 1.0
    turns = chain.upper - chain.lower > 2.0 * np.pi
    lower = np.where(turns, np.minimum(np.maximum(chain.lower, -np.pi), chain.upper - 2.0 * np.pi), chain.lower)
    upper = np.where(turns, lower + 2.0 * np.pi, chain.upper)
    share = (np.arange(1, CollisionBodies.SAMPLES + 1)[:, None] * steps) % 1.0
    return np.asarray(lower + share * (upper - lower), dtype=np.float64)


def collision_bodies(chain: Chain) -> CollisionBodies:
    """The chain's bodies, made once a chain."""
    if chain.collision_bodies is None:
        chain.collision_bodies = CollisionBodies(chain)
    bodies = chain.collision_bodies
    assert isinstance(bodies, CollisionBodies)
    return bodies


def as_obstacles(obstacles: Union[Obstacles, Iterable[Obstacle], None]) -> Obstacles:
    """``obstacles`` itself, or a new collection of what it lists."""
    return obstacles if isinstance(obstacles, Obstacles) else Obstacles(obstacles or ())


def clearance(chain: Chain, q: ArrayLike, obstacles: Union[Obstacles, Iterable[Obstacle], None] = None) -> Clearance:
    """How far the chain at q (n,) is clear of itself and of ``obstacles`` (in the chain's base).

    Links fixed to the base are not measured against obstacles: no joint moves them.
    """
    return collision_bodies(chain).clearance(q, as_obstacles(obstacles))


def path_clearance(
    chain: Chain, path: ArrayLike, obstacles: Union[Obstacles, Iterable[Obstacle], None] = None
) -> Tuple[int, Clearance]:
    """The row of a path (N, n) with the smallest clearance, and that clearance. Raises ValueError on an empty path."""
    world = as_obstacles(obstacles)
    rows = np.ascontiguousarray(path, dtype=np.float64)
    bodies = collision_bodies(chain)
    row = int(np.argmin(bodies.distances(rows, world)))
    return row, bodies.clearance(rows[row], world)


def contact_on_way(
    chain: Chain, path: ArrayLike, obstacles: Union[Obstacles, Iterable[Obstacle], None] = None, touch: float = 0.0
) -> Optional[Contact]:
    """The deepest contact that a path (N, n) makes; None where none is deeper than ``touch``, m.

    A contact that is there at the first row, so that the arm may get out of it, does not count as long as it only
    becomes less from row to row, for each two bodies; once apart they stay apart.
    """
    world = as_obstacles(obstacles)
    rows = np.ascontiguousarray(path, dtype=np.float64)
    bodies = collision_bodies(chain)
    distances = bodies.distances(rows, world)
    row = int(np.argmin(distances))
    if distances[row] >= -touch:
        return None
    if distances[0] >= -touch:
        nearest = bodies.clearance(rows[row], world)
        return Contact(row, nearest.a, nearest.b, -nearest.distance)
    worst: Optional[Contact] = None
    for a, b, series in bodies.pair_series(rows, world):
        floor = np.minimum(-touch, np.maximum.accumulate(series))
        deeper = np.flatnonzero(series[1:] < floor[:-1] - ROUNDING) + 1
        if len(deeper):
            row = int(deeper[np.argmin(series[deeper])])
            if worst is None or -series[row] > worst.depth:
                worst = Contact(row, a, b, float(-series[row]))
    return worst
