"""The interface that every planner fills: a pose in, a motion done."""

from __future__ import annotations

import contextlib
import hashlib
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Iterator, Mapping, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from iter_runner.robot.arm import Arm, JointPath, Vector
from iter_runner.run_control import RunControl

if TYPE_CHECKING:
    from iter_runner.kinematics import AttachedBody, Obstacle


class Unreachable(Exception):
    """The planner has no motion to this goal; the message says why (which limit, which bodies, how far off)."""


class PlannerUnavailable(Exception):
    """What a planner stands on is missing (a package, a setting, a record); the message says what to do about it."""


@dataclass(frozen=True)
class MoveGoal:
    """Where the arm's flange is to go.

    Attributes:
        flange: (4, 4) pose of the chain's tip (``tool0`` convention of the robot's row) in the chain's base, m.
        options: the move's ``options`` as the plan gives them (speed, time_factor, motion_type, ...).
        key: the name under which the run keeps the motion, so that another can repeat it: the step's index in the
            plan's flat list, and behind ``_`` its count where the step moves more than once. Empty outside a run.
    """

    flange: NDArray[np.float64]
    options: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""


def motion_key(step: int, count: int = 1) -> str:
    """The ``key`` of a move: of the ``count``-th one, from 1, of the step with that index in the plan's flat list."""
    return str(step) if count == 1 else f"{step}_{count}"


def path_hash(positions: Vector) -> str:
    """SHA-256 (hex) of a commanded joint path (N, n) rad at a resolution of 1e-9 rad: equal hash, equal motion."""
    counts = np.rint(np.asarray(positions, dtype=np.float64) * 1e9).astype("<i8")
    header = np.asarray(counts.shape, dtype="<i8").tobytes()
    return hashlib.sha256(header + counts.tobytes()).hexdigest()


class Planner(ABC):
    """Plans and executes moves on one arm.

    Planning is a pure function of the start joints and the goal, so that a plan can be checked offline with the very
    motion that the study will see; execution sends it and waits until the arm is there.
    """

    name: ClassVar[str]
    SETTINGS: ClassVar[Sequence[str]] = ()
    """Keyword arguments of the class beside robot, chain and obstacles, which load_planner() passes on."""
    sends: ClassVar[str] = "trajectory"
    """How its motions reach the arm: as ``targets`` tick by tick, one ``trajectory``, or a ``program`` of its own."""
    repeats: bool = True
    """Whether the same start and goal give the same path in every process, so that a check can rehearse the run."""
    rehearses: ClassVar[bool] = True
    """Whether a check before the run plans every motion; else it looks at poses only."""
    planning_time: Optional[float] = None
    """s of wall time from the beginning of the last move until its motion was known; None where it was not measured."""

    @classmethod  # noqa: B027 - most stand on nothing that may be missing
    def check_available(cls) -> None:
        """Returns if what the planner stands on is installed; looks without starting any of it.

        Raises:
            PlannerUnavailable: it is not.
        """

    @contextlib.contextmanager
    def planning(self) -> Iterator[None]:
        """Measures :attr:`planning_time`: for the part of :meth:`move` in which the arm waits for its motion."""
        began = time.perf_counter()
        self.planning_time = None
        yield
        self.planning_time = time.perf_counter() - began

    @abstractmethod
    def update_scene(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody] = ()) -> None:
        """From now on the planner keeps clear of these and of nothing else; a move that is under way is not changed.

        The same scene gives the same motions again, whatever scenes were between.

        Args:
            obstacles: in the chain's base.
            attached: what the hand holds.
        """

    @abstractmethod
    def preview(self, start: Vector, goal: MoveGoal) -> JointPath:
        """The joint path that :meth:`move` commands from ``start`` (n,) rad. Touches no arm.

        Raises:
            Unreachable: there is none.
        """

    @abstractmethod
    def move(self, arm: Arm, start: Vector, goal: MoveGoal, control: RunControl) -> JointPath:
        """Moves the arm to ``goal`` and returns the commanded path, once the measured arm stands at its end.

        ``start`` (n,) rad is where the last move commanded the arm to (the engine has checked that it is measured
        there). While ``control.paused`` the arm stands still; afterwards the same path goes on.

        Raises:
            Unreachable: there is no motion to the goal; the arm has not moved.
            Fault, Stopped: see RunControl; the arm was halted.
        """

    def pause_stream(self) -> None:  # noqa: B027 - only streaming planners have one
        """Lets go of the arm while the hand works."""

    def resume_stream(self) -> None:  # noqa: B027
        """Takes the arm over again."""

    def close(self) -> None:  # noqa: B027
        """Ends what is still open towards the arm."""
