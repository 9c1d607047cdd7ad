"""The planner ``ompl``: a sampling planner of the Open Motion Planning Library, in joint space."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import re
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from iter_runner.kinematics import AttachedBody, Obstacle, clearance
from iter_runner.planners.arrival import Arrival
from iter_runner.planners.base import MoveGoal, Planner, PlannerUnavailable, Unreachable
from iter_runner.planners.corners import distinct, rounded
from iter_runner.planners.free_space import FreeSpace
from iter_runner.planners.options import MoveOptions, read_options
from iter_runner.planners.profile import Profile, straight, time_optimal
from iter_runner.planners.routes import CHECK_PARTS, JOINT_STEP, NoLine, Router
from iter_runner.robot.arm import Arm, JointPath, Vector
from iter_runner.run_control import RunControl

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain
    from iter_runner.robot.table import Robot

ALGORITHM = "RRTConnect"
"""What searches where a move does not say."""
PLANNING_TIME = 5.0
"""s that a search may take where a move does not say."""
LEAST_SEARCH = 0.02
"""s that each of several searches gets: shorter ones would all end before they find anything."""
SAMPLE_RATE = 50.0
"""Points a second of the trajectory that is sent; the controller interpolates between them by cubics."""
WORK_RATE = 500e3
"""Units of work that count as a second of a seeded search: about what a core does in one. See :class:`_Budget`."""
STEP_WORK = 50
"""Units that an algorithm's first step counts as, beside the positions that it looks at."""
STEP_GROWTH = 0.05
"""Units more that each further step counts as: trees and graphs that have grown take longer."""
THREADED = frozenset({"PRM", "PRMstar"})
"""Algorithms that look for their solution in a thread of their own, which Python's lock and theirs bring to a halt."""
MARGIN = 0.01
"""m that everything is to be apart on a way, where start and goal leave that: a model is no more exact than that."""
MARGIN_SHARE = 0.5
"""Of their own distance, where start or goal are closer to something."""
PATIENCE_SHARE = 0.25
"""Of the time, what the search for a way with this margin gets before one without is looked for."""
SHORTCUT_ROUNDS = 4
"""How often at most the path is shortened again."""
EXIT_DISTANCES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""rad (norm) from where the arm stands in contact, at which a free place is looked for."""
EXIT_SAMPLES = 24
"""Places looked at for each of these."""
CHECK_STEP = JOINT_STEP / CHECK_PARTS
"""rad of the fastest joint between two positions at which a finished way is checked, as other planners' are."""

# Its messages go to stderr past everybody's logging, one a plan and more.
_quiet = False
# Its random numbers are one sequence a process.
_LOCK = threading.Lock()


class _Part(NamedTuple):
    """A way from standstill to standstill, with its timing, and where (n,) rad it ends."""

    profile: Profile
    end: Vector


class OmplPlanner(Planner):
    """See :class:`iter_runner.planners.base.Planner`.

    Every joint solution of the goal is a goal of the search. What it finds is shortened, its corners are rounded, and
    it is timed by TOPP-RA within the joints' limits of speed and acceleration.

    Args:
        robot: the row.
        chain: from its base to its flange.
        obstacles: to keep clear of.
        planner_seed: with it, each motion is a pure function of seed, start, goal and scene; None (or an empty text):
            another one every time.

    Raises:
        PlannerUnavailable: the package ``ompl`` is not installed, or ``planner_seed`` is no whole number from 0.
    """

    name: ClassVar[str] = "ompl"
    SETTINGS: ClassVar[Sequence[str]] = ("planner_seed",)

    def __init__(
        self,
        robot: Robot,
        chain: Chain,
        obstacles: Sequence[Obstacle] = (),
        planner_seed: Optional[Union[int, str]] = None,
    ) -> None:
        self.check_available()
        self._chain = chain
        self._seed = _seed(planner_seed)
        self.repeats = self._seed is not None
        self._router = Router(robot, chain)
        self.update_scene(obstacles)

    @classmethod
    def check_available(cls) -> None:
        """See :class:`iter_runner.planners.base.Planner`."""
        if importlib.util.find_spec("ompl") is None:
            python = "{}.{}".format(*sys.version_info[:2])
            too_old = f" (for Python 3.10 and later; this is {python})" if sys.version_info < (3, 10) else ""
            raise PlannerUnavailable(
                f"planner 'ompl' needs the Python package ompl: `pip install ompl`{too_old}; "
                "relaxed_ik and static need nothing more"
            )

    def update_scene(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody] = ()) -> None:
        """See :class:`iter_runner.planners.base.Planner`."""
        self._router.update_scene(obstacles, attached)
        self._obstacles = list(obstacles)

    def preview(self, start: Vector, goal: MoveGoal) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`. Without a seed it is not what :meth:`move` will command."""
        return self._plan(start, goal, lambda: False)

    def move(self, arm: Arm, start: Vector, goal: MoveGoal, control: RunControl) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`."""
        with self.planning():
            path = self._plan(start, goal, lambda: control.stopped)
        control.wait_while_paused()
        if len(path.times) > 1:
            arm.follow(path, control)
        Arrival(self._chain, path.positions[-1]).wait(arm, control)
        return path

    # From goal to path -------------------------------------------------------------------------------------------

    def _plan(self, start: Vector, goal: MoveGoal, given_up: Callable[[], bool]) -> JointPath:
        options = read_options(goal.options)
        algorithm = _algorithm(options.planner_id)
        start = np.array(start, dtype=np.float64)
        if options.straight:
            return _sampled(start, [self._along_line(start, goal, options)])
        ends = self._router.clear_ends(start, goal.flange)
        if min(float(np.max(np.abs(end - start))) for end in ends) < 1e-9:
            return JointPath(start[None, :], np.zeros(1))
        random = np.random.default_rng(self._entropy(start, goal))
        free = FreeSpace(self._router.chain, self._obstacles)
        way = self._way_out(start, free, random)
        # In an order of chance: which of a set an algorithm tries first should not be what its makers happened to like.
        ends = [ends[k] for k in random.permutation(len(ends))]
        search = _Search(free, way[-1], ends, self._bounds(way[-1], ends))
        seconds = options.planning_time or PLANNING_TIME
        budget = _Budget(seconds, free, self._seed is not None, given_up)
        attempts = min(options.num_planning_attempts or 1, max(1, int(seconds / LEAST_SEARCH)))
        found: List[List[_Part]] = []
        for margin, share in _margins(free, way[-1], ends):
            free.margin = margin
            for attempt in range(attempts):
                over = budget.share(share / (attempts - attempt))
                corners = search.solve(algorithm, int(random.integers(1, 2**31)), over)
                if corners is not None:
                    found.append(self._timed(distinct(np.vstack([*way[:-1], corners])), free, options))
                if budget.spent():
                    break
            if found:
                break
        if not found:
            x, y, z = goal.flange[:3, 3]
            raise Unreachable(
                f"{algorithm} found no way to the pose ({x:.3f}, {y:.3f}, {z:.3f}) m in {self._chain.base} "
                f"within {budget}: something may enclose it; options.planning_time and options.planner_id give it "
                "more time or another algorithm"
            )
        return _sampled(start, min(found, key=lambda parts: sum(part.profile.duration for part in parts)))

    def _along_line(self, start: Vector, goal: MoveGoal, options: MoveOptions) -> _Part:
        """The flange's straight line, for a move that asks for it: nothing is searched for."""
        try:
            route = self._router.line(start, goal.flange)
            return _Part(self._router.profile(route, options), route.joints[-1])
        except NoLine as error:
            raise Unreachable(f"options.motion_type asks for a straight line: {error}") from error

    def _entropy(self, start: Vector, goal: MoveGoal) -> Optional[List[int]]:
        """What a move's random numbers begin with: seed, start and goal, or (None) whatever the system gives."""
        if self._seed is None:
            return None
        text = (
            str(self._seed).encode() + start.tobytes() + np.ascontiguousarray(goal.flange, dtype=np.float64).tobytes()
        )
        return [int(word) for word in np.frombuffer(hashlib.sha256(text).digest(), dtype="<u4")]

    def _bounds(self, start: Vector, ends: Sequence[Vector]) -> Vector:
        """(2, n) rad: where to search. A joint that can turn more than once gets the full turn around ``start``.

        Within its limits: at the end of its range the full turn that still is.
        """
        lower, upper = np.array(self._chain.lower), np.array(self._chain.upper)
        low = np.maximum(lower, np.minimum(start - np.pi, upper - 2.0 * np.pi))
        high = np.minimum(upper, np.maximum(start + np.pi, lower + 2.0 * np.pi))
        known = np.vstack([start[None, :], *ends])
        return np.vstack([np.minimum(low, np.min(known, axis=0)), np.maximum(high, np.max(known, axis=0))])

    def _way_out(self, start: Vector, free: FreeSpace, random: np.random.Generator) -> List[Vector]:
        """Positions from ``start`` to the first at which nothing overlaps; only ``start`` where nothing does there.

        Raises:
            Unreachable: the arm does not get out of what it stands in.
        """
        if free.clear(start):
            return [start]
        chain = self._router.chain
        nearest = clearance(chain, start, self._obstacles)
        uphill = nearest.gradient / max(float(np.linalg.norm(nearest.gradient)), 1e-12)
        for distance in EXIT_DISTANCES:
            directions = random.normal(size=(EXIT_SAMPLES, len(start)))
            directions /= np.linalg.norm(directions, axis=1)[:, None]
            for direction in (uphill, *directions):
                place = np.clip(start + distance * direction, chain.lower, chain.upper)
                if free.clear(place) and self._router.clear(_straight(start, place)):
                    return [start, place]
        raise Unreachable(
            f"where the arm stands {nearest.a} and {nearest.b} overlap by {-nearest.distance * 1e3:.1f} mm, and no way "
            "out of that was found: move the arm by hand"
        )

    def _timed(self, corners: Vector, free: FreeSpace, options: MoveOptions) -> List[_Part]:
        """The timing of the way along ``corners`` (N, n) rad, in parts from standstill to standstill."""
        try:
            smooth = [_Part(self._profile(way, options), way[-1]) for way in rounded(corners, free.clear_along)]
            if not self._router.blocked(_finely(smooth)):
                return smooth
        except ValueError as error:
            logging.getLogger(__name__).debug("stops at each corner: %s", error)
        parts = []
        for begin, end in zip(corners[:-1], corners[1:]):
            profile = straight(begin, end, self._router.velocity, self._router.acceleration, options.stretch)
            parts.append(_Part(self._ceiled(profile, options), end))
        blocked = self._router.blocked(_finely(parts))
        if blocked:
            raise Unreachable(f"in joint space {blocked}")
        return parts

    def _profile(self, positions: Vector, options: MoveOptions) -> Profile:
        router = self._router
        count = max(100, len(positions))
        profile = time_optimal(
            positions, router.velocity, router.acceleration, stretch=options.stretch, intervals=count
        )
        return self._ceiled(profile, options)

    def _ceiled(self, profile: Profile, options: MoveOptions) -> Profile:
        """Slower where the flange would exceed the ceilings of speed and acceleration that the options set."""
        if options.velocity is None and options.acceleration is None:
            return profile
        times, positions = profile.sample(0.008)
        places = np.asarray(self._chain.fk(positions))[:, :3, 3]
        velocities = np.diff(places, axis=0) / (times[1] - times[0])
        rises = np.diff(velocities, axis=0) / (times[1] - times[0])
        factor = 1.0
        if options.velocity is not None:
            factor = max(factor, float(np.max(np.linalg.norm(velocities, axis=1))) / options.velocity)
        if options.acceleration is not None:
            factor = max(factor, float(np.sqrt(np.max(np.linalg.norm(rises, axis=1)) / options.acceleration)))
        return profile.stretched(factor)


class _Budget:
    """How long a search may go on.

    Without a seed by the clock. With one by work, because the clock would make the result depend on the machine: a unit
    is a joint position whose distances were computed, and a step of the algorithm some of them.
    """

    def __init__(self, seconds: float, free: FreeSpace, by_work: bool, given_up: Callable[[], bool]) -> None:
        self._seconds = seconds
        self._free = free
        self._by_work = by_work
        self._given_up = given_up
        self._steps = 0
        self._work = 0.0
        self._began = time.monotonic()

    def __str__(self) -> str:
        return f"{self._seconds:g} s" + (" (counted in steps)" if self._by_work else "")

    def used(self) -> float:
        """Seconds, or what counts as such."""
        if self._by_work:
            return (self._free.positions_checked + self._work) / WORK_RATE
        return time.monotonic() - self._began

    def spent(self) -> bool:
        """Whether nothing is left of it."""
        return self._given_up() or self.used() >= self._seconds

    def share(self, share: float) -> Callable[[], bool]:
        """Whether it is time to end, asked once a step, for a search that may use this share of what is left."""
        until = self.used() + share * max(0.0, self._seconds - self.used())

        def over() -> bool:
            self._work += STEP_WORK + STEP_GROWTH * self._steps
            self._steps += 1
            return self._given_up() or self.used() >= until

        return over


class _Search:
    """One problem for OMPL: from ``start`` to any of ``ends``, (n,) rad, inside ``bounds`` (2, n)."""

    def __init__(self, free: FreeSpace, start: Vector, ends: Sequence[Vector], bounds: Vector) -> None:
        self._free = free
        self._start = start
        self._ends = ends
        self._bounds = bounds

    def solve(self, algorithm: str, seed: int, over: Callable[[], bool]) -> Optional[Vector]:
        """Corners (N, n) rad of a way from the start to one of the ends, None where none was found in time."""
        base, geometric = _ompl("base"), _ompl("geometric")
        with _LOCK:
            # Everything made from here on draws its seeds from this one.
            _ompl("util").RNG.setSeed(seed)
            information = self._information(base)
            problem = base.ProblemDefinition(information)
            problem.addStartState(_state(information, self._start))
            goals = base.GoalStates(information)
            for end in self._ends:
                if self._free.clear(end):
                    goals.addState(_state(information, end))
            problem.setGoal(goals)
            planner = getattr(geometric, algorithm)(information)
            planner.setProblemDefinition(problem)
            planner.setup()
            planner.solve(base.PlannerTerminationCondition(over))
            if not problem.hasExactSolution():
                return None
            path = problem.getSolutionPath()
            simplifier = geometric.PathSimplifier(information)
            for _ in range(SHORTCUT_ROUNDS):
                before = path.length()
                simplifier.reduceVertices(path)
                simplifier.partialShortcutPath(path)
                simplifier.collapseCloseVertices(path)
                if path.length() > 0.999 * before:
                    break
            count = len(self._start)
            corners = np.array([state[0:count] for state in path.getStates()])
        corners[0] = self._start
        return corners

    def _information(self, base: Any) -> Any:
        """The space, with what is clear in it."""
        count = len(self._start)
        space = base.RealVectorStateSpace(count)
        bounds = base.RealVectorBounds(count)
        for k in range(count):
            bounds.setLow(k, float(self._bounds[0, k]))
            bounds.setHigh(k, float(self._bounds[1, k]))
        space.setBounds(bounds)
        information = base.SpaceInformation(space)
        free = self._free

        def clear(state: Any) -> bool:
            return free.clear(np.array(state[0:count]))

        class Motions(base.MotionValidator):
            """Straight ways between states."""

            def checkMotion(self, start: Any, end: Any, *_: Any) -> bool:  # noqa: N802 - OMPL's name
                return free.clear_between(np.array(start[0:count]), np.array(end[0:count]))

        information.setStateValidityChecker(clear)
        information.setMotionValidator(Motions(information))
        information.setup()
        return information


def _margins(free: FreeSpace, start: Vector, ends: Sequence[Vector]) -> List[Tuple[float, float]]:
    """The margins to search with, one after the other, each with its share of the time that is left then."""
    own = min(free.distance(start), max(free.distance(end) for end in ends))
    margin = min(MARGIN, MARGIN_SHARE * own)
    return [(margin, PATIENCE_SHARE), (free.margin, 1.0)] if margin > 0.0 else [(free.margin, 1.0)]


def algorithm_names() -> List[str]:
    """The algorithms of the installed OMPL that planner_id takes, sorted."""
    return sorted(_algorithms().values())


def _algorithms() -> Dict[str, str]:
    """By name in small letters."""
    geometric, planner = _ompl("geometric"), _ompl("base").Planner
    found = {}
    for name in dir(geometric):
        candidate = getattr(geometric, name)
        if isinstance(candidate, type) and issubclass(candidate, planner) and name not in THREADED:
            found[name.lower()] = name
    return found


def _algorithm(planner_id: str) -> str:
    """OMPL's name for an algorithm that a move names as OMPL or as MoveIt does.

    Raises:
        Unreachable: there is none; the message lists those that there are.
    """
    if not planner_id.strip():
        return ALGORITHM
    # MoveIt's configurations: RRTConnectkConfigDefault, geometric::RRTConnect, manipulator[RRTConnectkConfigDefault].
    bare = re.sub(r"^.*\[(.*)\]$", r"\1", planner_id.strip())
    bare = re.sub(r"(kConfig\w*)$", "", bare.rsplit("::", 1)[-1])
    found = _algorithms().get(bare.lower())
    if found is None:
        raise Unreachable(
            f"options.planner_id is {planner_id!r}, which the planner ompl does not have: choose one of "
            f"{', '.join(algorithm_names())}"
        )
    return found


def _ompl(module: str) -> Any:
    """A module of the package, which is imported by the first plan."""
    global _quiet
    if not _quiet:
        importlib.import_module("ompl.util").noOutputHandler()
        _quiet = True
    return importlib.import_module(f"ompl.{module}")


def _state(information: Any, positions: Vector) -> Any:
    state = information.allocState()
    state[0 : len(positions)] = [float(value) for value in positions]
    return state


def _seed(value: Optional[Union[int, str]]) -> Optional[int]:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        seed = int(value)
    except ValueError:
        seed = -1
    if seed < 0 or isinstance(value, (bool, float)):
        raise PlannerUnavailable(f"planner_seed is {value!r}, expected a whole number from 0, or nothing")
    return seed


def _straight(start: Vector, end: Vector) -> Vector:
    count = max(2, int(np.ceil(float(np.max(np.abs(end - start))) / CHECK_STEP)))
    way = start + np.linspace(0.0, 1.0, count + 1)[:, None] * (end - start)
    way[-1] = end
    return way


def _finely(parts: Sequence[_Part]) -> Vector:
    """Positions (N, n) rad along the parts, :data:`CHECK_STEP` apart."""
    rows = [parts[0].profile.positions(np.zeros(1))]
    for profile, end in parts:
        dense = profile.positions(
            np.linspace(0.0, profile.duration, max(8, int(np.ceil(profile.duration / 0.002))) + 1)
        )
        turned = np.concatenate([[0.0], np.cumsum(np.max(np.abs(np.diff(dense, axis=0)), axis=1))])
        count = max(1, int(np.ceil(turned[-1] / CHECK_STEP)))
        rows.append(dense[np.searchsorted(turned, np.linspace(0.0, turned[-1], count + 1)[1:-1])])
        rows.append(end[None, :])
    return np.vstack(rows)


def _sampled(start: Vector, parts: Sequence[_Part]) -> JointPath:
    """The path that is sent: all parts one after the other."""
    times, positions = [np.zeros(1)], [start[None, :]]
    for part in parts:
        part_times, part_positions = part.profile.sample(1.0 / SAMPLE_RATE)
        part_positions[-1] = part.end
        times.append(times[-1][-1] + part_times[1:])
        positions.append(part_positions[1:])
    return JointPath(np.concatenate(positions), np.concatenate(times))
