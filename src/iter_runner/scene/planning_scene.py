"""The scene: who may change what, and what planners are told of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics import AttachedBody, Chain, Obstacle
from iter_runner.kinematics.rotations import inverse
from iter_runner.scene.objects import Origin, SceneError, SceneObject, checked

Matrix = NDArray[np.float64]

PLACED_BY: Mapping[Origin, str] = {
    Origin.WORKCELL: "the workcell's file has",
    Origin.SERVICE: "was added by a service",
    Origin.PLAN: "the plan has in its environment",
}


@dataclass(frozen=True)
class Snapshot:
    """What a planner keeps clear of, and with what.

    Attributes:
        version: of the scene: equal versions, equal snapshots.
        obstacles: in the chain's base: everything that is neither graspable nor held.
        attached: on the chain's tip: everything that is held.
    """

    version: int
    obstacles: Sequence[Obstacle]
    attached: Sequence[AttachedBody]


class PlanningScene:
    """All objects around an arm and in its hand. Any thread may ask and change it.

    Graspable objects that lie about are no obstacles: the hand goes between them, and blocks are put on each other.
    In the hand each object is checked against all obstacles and the arm, whatever it is.

    Args:
        objects: the first ones.
        touch_links: links that a held object may touch, see :func:`links_of_the_hand`.
        reserved: names that no object may have: the robot's links.

    Raises:
        SceneError: see :meth:`add`.
    """

    def __init__(
        self,
        objects: Iterable[SceneObject] = (),
        touch_links: Sequence[str] = (),
        reserved: Iterable[str] = (),
    ) -> None:
        self._lock = threading.RLock()
        self._touch_links = tuple(touch_links)
        self._reserved = frozenset(reserved)
        self._objects: Dict[str, SceneObject] = {}
        self._version = 0
        for item in objects:
            self.add(item)

    @property
    def version(self) -> int:
        """Counts up with every change."""
        return self._version

    @property
    def objects(self) -> List[SceneObject]:
        """All of them as they are now: the workcell's and what services added, then the plan's, each in its order."""
        with self._lock:
            return sorted(self._objects.values(), key=lambda item: item.origin is Origin.PLAN)

    def get(self, name: str) -> SceneObject:
        """The object of that name.

        Raises:
            SceneError: there is none; lists the names.
        """
        with self._lock:
            if name not in self._objects:
                there = ", ".join(item.name for item in self.objects) or "(none)"
                raise SceneError(f"there is no object '{name}'; objects are {there}")
            return self._objects[name]

    def add(self, item: SceneObject) -> None:
        """Adds an object.

        Raises:
            SceneError: it can't be, or its name is taken; says by whom.
        """
        checked(item)
        with self._lock:
            if item.name in self._reserved:
                raise SceneError(f"'{item.name}' is a link of the robot: choose another name")
            if item.name in self._objects:
                origin = self._objects[item.name].origin
                raise SceneError(
                    f"the name '{item.name}' is taken, by an object that {PLACED_BY[origin]}: choose another name, or "
                    "remove or move that one (rosrun iter_runner scene)"
                )
            self._put(item)

    def move(self, name: str, pose: Matrix) -> None:
        """Puts an object's centre at ``pose`` (4, 4) in the chain's base.

        Raises:
            SceneError: there is none of that name, the hand holds it, or the pose is no pose.
        """
        with self._lock:
            item = self.get(name)
            if item.held:
                raise SceneError(f"the hand holds '{name}': it is where the hand is until it is let go")
            self._put(checked(item.at(pose)))

    def remove(self, name: str) -> SceneObject:
        """Takes an object away, out of the hand too. Raises SceneError."""
        with self._lock:
            item = self.get(name)
            del self._objects[name]
            self._version += 1
            return item

    def clashes(self, objects: Iterable[SceneObject]) -> List[Tuple[str, str]]:
        """The names of a plan's ``objects`` that others than plans have taken, each with what took it."""
        taken = dict.fromkeys(self._reserved, "a link of the robot")
        with self._lock:
            for item in self._objects.values():
                if item.origin is not Origin.PLAN:
                    taken[item.name] = f"an object that {PLACED_BY[item.origin]}"
        names = dict.fromkeys(item.name for item in objects)
        return [(name, taken[name]) for name in names if name in taken]

    def set_plan(self, objects: Sequence[SceneObject], tip: Optional[Matrix] = None) -> None:
        """A plan begins: its ``objects`` take the place of the last plan's, and the hand at ``tip`` (4, 4) is empty.

        Raises:
            SceneError: names that are taken, each with who took it, or an object that can't be; nothing has changed
                then.
        """
        with self._lock:
            clashes = self.clashes(objects)
            if clashes:
                raise SceneError(
                    "; ".join(f"the plan's object '{name}' has the name of {what}" for name, what in clashes)
                    + ": rename one, or remove that one (rosrun iter_runner scene)"
                )
            for item in objects:
                checked(item)
            for item in self.objects:
                if item.origin is Origin.PLAN:
                    del self._objects[item.name]
                elif item.held and tip is not None:
                    self._objects[item.name] = item.at(tip @ item.pose)
            for item in objects:
                self._put(item)
            self._version += 1

    def attach(self, name: str, tip: Matrix) -> bool:
        """Ties an object to the hand, whose chain's tip is at ``tip`` (4, 4) in the base.

        Returns whether that changed something: unknown names and what is held already do not.
        """
        with self._lock:
            item = self._objects.get(name)
            if item is None or item.held:
                return False
            self._put(item.at(inverse(tip) @ item.pose, held=True))
            return True

    def detach(self, name: str, tip: Matrix) -> bool:
        """Leaves an object where the hand at ``tip`` (4, 4) has brought it; returns as :meth:`attach`."""
        with self._lock:
            item = self._objects.get(name)
            if item is None or not item.held:
                return False
            self._put(item.at(tip @ item.pose))
            return True

    def snapshot(self) -> Snapshot:
        """What planners have to know of it now."""
        with self._lock:
            items = self.objects
            return Snapshot(
                self._version,
                [item.obstacle() for item in items if not item.held and not item.graspable],
                [item.attached(self._touch_links) for item in items if item.held],
            )

    def _put(self, item: SceneObject) -> None:
        self._objects[item.name] = item
        self._version += 1


def links_of_the_hand(chain: Chain) -> List[str]:
    """The links that move with the chain's tip: the last link, the gripper's, and whatever else is on them."""
    return sorted({capsule.link for capsule in chain.capsules if capsule.frame == len(chain)} | {chain.tip})
