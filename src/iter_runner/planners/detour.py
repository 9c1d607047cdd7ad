"""Ways around what stands in the way: a search in joint space that finds the same way every time."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Sequence

import numpy as np

from iter_runner.planners.free_space import FreeSpace
from iter_runner.robot.arm import Vector

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain

SEED = 20190304
STEP = 0.5
"""rad of the fastest joint by which a tree grows at most."""
MARGIN = 1.5
"""rad beyond the start and the ends in which is searched first; then everywhere within the limits."""
NEAR_SHARE = 0.5
"""Of the work that the first search may take."""
WORK = 30000
"""Joint positions that may be looked at before there is no way: a second or two."""
SHORTCUTS = 150
"""Attempts to leave out a piece of the way."""


class _Tree:
    """Positions (N, n) rad that are reached from a root, each with its parent."""

    def __init__(self, roots: Sequence[Vector]) -> None:
        self.positions = np.array(roots, dtype=np.float64)
        self._parents = [-1] * len(self.positions)

    def nearest(self, positions: Vector) -> int:
        """The node that is soonest there."""
        return int(np.argmin(np.max(np.abs(self.positions - positions), axis=1)))

    def add(self, positions: Vector, parent: int) -> int:
        """A new node's number."""
        self.positions = np.vstack([self.positions, positions])
        self._parents.append(parent)
        return len(self._parents) - 1

    def way_to(self, node: int) -> List[Vector]:
        """From a root to the node."""
        way: List[Vector] = []
        while node >= 0:
            way.insert(0, self.positions[node])
            node = self._parents[node]
        return way


def find_detour(chain: Chain, space: FreeSpace, start: Vector, ends: Sequence[Vector]) -> Optional[List[Vector]]:
    """Corners (n,) rad of a clear way from ``start`` to one of ``ends``, both included; None where none was found.

    RRT-Connect (Kuffner and LaValle 2000) with a fixed seed and a budget of work instead of time, then pieces are left
    out as long as what remains is clear: the same arguments give the same way on any machine.
    """
    goals = [end for end in ends if space.clear(end)]
    if not goals or not space.clear(start):
        return None
    generator = np.random.default_rng(SEED)
    around = np.array([start, *goals])
    near = (
        np.maximum(chain.lower, np.min(around, axis=0) - MARGIN),
        np.minimum(chain.upper, np.max(around, axis=0) + MARGIN),
    )
    everywhere = np.maximum(chain.lower, start - 2.0 * np.pi), np.minimum(chain.upper, start + 2.0 * np.pi)
    trees = [_Tree([start]), _Tree(goals)]
    began = space.positions_checked
    turn = 0
    while True:
        done = space.positions_checked - began
        if done > WORK:
            return None
        lower, upper = near if done < NEAR_SHARE * WORK else everywhere
        sample = generator.uniform(lower, upper)
        grown = _grow(space, trees[turn], sample, once=True)
        if grown is not None:
            target = trees[turn].positions[grown]
            met = _grow(space, trees[1 - turn], target, once=False)
            if met is not None and np.array_equal(trees[1 - turn].positions[met], target):
                halves = [trees[turn].way_to(grown), trees[1 - turn].way_to(met)]
                forth, back = halves if turn == 0 else halves[::-1]
                return _shortened(space, [*forth, *back[::-1][1:]], generator)
        turn = 1 - turn


def _grow(space: FreeSpace, tree: _Tree, target: Vector, once: bool) -> Optional[int]:
    """Grows a tree towards ``target`` by one step or as far as it goes; the last node, None where it got nowhere."""
    node = tree.nearest(target)
    grown: Optional[int] = None
    while True:
        position = tree.positions[node]
        way = target - position
        length = float(np.max(np.abs(way)))
        if length == 0.0:
            return node
        reached = target.copy() if length <= STEP else position + way * (STEP / length)
        if not space.clear_between(position, reached):
            return grown
        node = grown = tree.add(reached, node)
        if once or length <= STEP:
            return grown


def _shortened(space: FreeSpace, way: List[Vector], generator: np.random.Generator) -> List[Vector]:
    """Without the corners that can be left out: every pair once, then cuts between places on the pieces."""
    way = _without_corners(space, way)
    for _ in range(SHORTCUTS):
        if len(way) < 3:
            break
        places = np.sort(generator.uniform(0.0, len(way) - 1.0, 2))
        (first, second), (share, other) = places.astype(int), places % 1.0
        if second - first < 1:
            continue
        a = way[first] + share * (way[first + 1] - way[first])
        b = way[second] + other * (way[second + 1] - way[second])
        old = np.vstack([a, *way[first + 1 : second + 1], b])
        if _length(np.vstack([a, b])) < 0.98 * _length(old) and space.clear_between(a, b):
            way = [*way[: first + 1], a, b, *way[second + 1 :]]
    return _without_corners(space, way)


def _without_corners(space: FreeSpace, way: List[Vector]) -> List[Vector]:
    kept = [way[0]]
    place = 0
    while place < len(way) - 1:
        ahead = len(way) - 1
        while ahead > place + 1 and not space.clear_between(way[place], way[ahead]):
            ahead -= 1
        kept.append(way[ahead])
        place = ahead
    return kept


def _length(way: Vector) -> float:
    """How far the fastest joint of each piece turns, rad."""
    return float(np.sum(np.max(np.abs(np.diff(way, axis=0)), axis=1)))
