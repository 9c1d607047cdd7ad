"""Whether a robot can do a plan: every pose reached within the joint limits and clear of everything, before it moves.

The checks are of poses; with a planner, of the very motions as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics import (
    Clearance,
    Obstacle,
    Obstacles,
    carrying,
    clearance,
    contact_on_way,
    load_chain,
    path_clearance,
)
from iter_runner.kinematics.rotations import pose as pose_matrix
from iter_runner.kinematics.urdf import read_urdf
from iter_runner.plan.frames import FrameError, fixed_pose
from iter_runner.plan.load import in_document_order
from iter_runner.plan.model import Plan, PlanError, PlanFault, PlannedStep
from iter_runner.plan.objects import APPROACH_AXES, approach
from iter_runner.plan.scene import advance, follow, scene_objects
from iter_runner.plan.step import Quaternion, Step, Vector3
from iter_runner.planners.base import MoveGoal, Planner, Unreachable, motion_key, path_hash
from iter_runner.planners.inverse import Branches
from iter_runner.planners.table import check_fit, load_planner, planner_class
from iter_runner.robot.table import GripperRow, Robot, load_robot, robot_driver, robot_gripper, robot_urdf
from iter_runner.scene import PlanningScene, SceneError, SceneObject
from iter_runner.scene.objects import checked
from iter_runner.scene.planning_scene import links_of_the_hand

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

TOUCH = 1e-3
"""How far bodies may overlap on the way (m) before a dry run calls it a collision: a stream is not exact."""
UNFORESEEN = frozenset({"jog", "move_ar_tag_pose", "pick_and_place_vision", "calibrate_robot_to_camera"})
"""Steps after which only the run knows where the arm is; so do messages to a topic for scripts."""
DOWN = 0.9
"""Cosine from which on an approach counts as from above."""


@dataclass(frozen=True)
class PlannedPath:
    """What a planner would command for a move.

    Attributes:
        step: index in the plan's flat list.
        pointer: JSON pointer of the move.
        path_hash: of the commanded joint path; what the run will have too.
        duration: s.
        clearance: the nearest that it, or what it holds, comes to itself or to an obstacle, m; negative where it hits.
            What is held is 3 mm smaller than it is on all sides (:func:`iter_runner.kinematics.carrying`): 3 mm where
            it stands on a table.
        arm_clearance: the same of the arm without what it holds.
    """

    step: int
    pointer: str
    path_hash: str
    duration: float
    clearance: float
    arm_clearance: float


@dataclass
class CheckResult:
    """What a check found.

    Attributes:
        faults: why the plan must not run.
        warnings: what a person should look at; the plan may run.
        paths: by planner, the moves that a dry run planned.
    """

    faults: List[PlanFault] = field(default_factory=list)
    warnings: List[PlanFault] = field(default_factory=list)
    paths: Dict[str, List[PlannedPath]] = field(default_factory=dict)


def check_plan(
    plan: Plan,
    robot: Union[str, Robot],
    planner: Optional[Union[str, Planner]] = None,
    tool_frame: Optional[str] = None,
    warnings: Optional[List[PlanFault]] = None,
    start: Optional[Vector] = None,
    first_step: int = 0,
    surroundings: Sequence[SceneObject] = (),
) -> List[PlanFault]:
    """What a robot can't do of a plan, each fault with its JSON pointer; empty if it can do it all.

    Args:
        plan: loaded.
        robot: a row, or the name or path of one.
        planner: its name, or itself: every move is planned as the run will plan it.
        tool_frame: of the plan's poses, if the plan names none; the robot's own where both are silent.
        warnings: gets what a person should look at.
        start: (n,) rad, where the arm is to be when the run begins, for the planner; the tucked pose if None.
        first_step: the step that the run begins at, for the planner.
        surroundings: what else is in the scene: the workcell's objects and those that services added.

    Raises:
        RobotError: there is no such robot.
        PlannerError: there is no such planner, or it does not fit the robot.
    """
    planners = [] if planner is None else [planner]
    result = inspect_plan(plan, robot, planners, tool_frame, start, first_step, surroundings)
    if warnings is not None:
        warnings.extend(result.warnings)
    return result.faults


def with_robots_faults(
    error: PlanError,
    robot: Union[str, Robot],
    tool_frame: Optional[str] = None,
    surroundings: Sequence[SceneObject] = (),
) -> PlanError:
    """``error`` of a plan that did not load, and with it what the robot can't do of the rest of the plan.

    Raises:
        RobotError: there is no such robot.
    """
    if error.loaded is None:
        return error
    result = inspect_plan(error.loaded, robot, (), tool_frame, surroundings=surroundings)
    faults = in_document_order([*error.faults, *result.faults], error.loaded.document)
    return PlanError(faults, [*error.warnings, *result.warnings], error.loaded)


def inspect_plan(
    plan: Plan,
    robot: Union[str, Robot],
    planners: Sequence[Union[str, Planner]] = (),
    tool_frame: Optional[str] = None,
    start: Optional[Vector] = None,
    first_step: int = 0,
    surroundings: Sequence[SceneObject] = (),
    settings: Mapping[str, Any] = {},
) -> CheckResult:
    """As :func:`check_plan`, with several planners (``settings`` for those by name) and all that they planned."""
    row = robot if isinstance(robot, Robot) else load_robot(robot)
    result = CheckResult()
    try:
        workcell = Workcell(plan, row, plan.tool_frame or tool_frame or row.tool_frame, surroundings)
    except FrameError as error:
        pointer, _, rest = str(error).partition("|")
        found, _, expected = rest.partition("; expected ")
        result.faults.append(PlanFault(pointer, found, expected or "a frame that is fixed in the robot's URDF"))
        return result
    workcell.check_names(result)
    workcell.check_fingers(result)
    workcell.check_scripts(result)
    workcell.check_tuck(result)
    workcell.check_poses(result)
    if plan.tool_frame is None and tool_frame is None:
        _check_approach(plan, workcell.tool_frame, result)
    for planner in planners:
        if isinstance(planner, str):
            check_fit(row, planner)
        if not (planner_class(planner) if isinstance(planner, str) else planner).rehearses:
            result.warnings.append(_not_rehearsed(planner if isinstance(planner, str) else planner.name))
            continue
        if isinstance(planner, str):
            planner = load_planner(planner, row, workcell.chain, workcell.obstacles, settings)
        workcell.dry_run(planner, result, workcell.tuck if start is None else start, first_step)
    return result


class Workcell:
    """A plan's poses and obstacles in the base of one robot's chain.

    Args:
        plan: loaded.
        robot: its row.
        tool_frame: the frame that the plan's poses are of.
        surroundings: what else is in the scene, in the base.

    Raises:
        FrameError: the plan's frames are not fixed in the robot; the message begins with the pointer and "|".
    """

    def __init__(self, plan: Plan, robot: Robot, tool_frame: str, surroundings: Sequence[SceneObject] = ()) -> None:
        self.plan = plan
        self.robot = robot
        self.tool_frame = tool_frame
        self.chain: Chain = load_chain(robot)
        self.tuck: Vector = np.array(robot.tuck, dtype=np.float64)
        self.gripper: GripperRow = robot_gripper(robot)
        urdf = robot_urdf(robot)
        self._base_from_frame = _located("/frame_id", urdf, plan.frame_id, robot.base_frame)
        self._tool_from_tip = np.linalg.inv(_located("/tool_frame", urdf, tool_frame, robot.tool_frame))
        self._surroundings = list(surroundings)
        self._placed = scene_objects(plan.objects_for(tool_frame, self.gripper.tip_offset), self._base_from_frame)
        self._links = read_urdf(urdf).links
        self.clashes: List[Tuple[str, str]] = self._empty_scene().clashes(self._placed)
        self.impossible: List[Tuple[str, str]] = _impossible(self._placed)
        self.obstacles: List[Obstacle] = list(self.scene().snapshot().obstacles)
        self._obstacles = Obstacles(self.obstacles)
        self._branches = Branches(self.chain)
        self._known: Dict[_Known, Optional[Tuple[str, str]]] = {}

    def scene(self) -> PlanningScene:
        """The scene as it is when the plan begins."""
        scene = self._empty_scene()
        left_out = {name for name, _ in [*self.clashes, *self.impossible]}
        scene.set_plan([item for item in self._placed if item.name not in left_out])
        return scene

    def _empty_scene(self) -> PlanningScene:
        """The scene without the plan's objects."""
        return PlanningScene(self._surroundings, links_of_the_hand(self.chain), self._links)

    def flange(self, position: Vector3, orientation: Quaternion) -> Matrix:
        """(4, 4) pose of the chain's tip in its base for a pose of the plan."""
        in_plan = pose_matrix(np.array(position.xyz), np.array(orientation.xyzw))
        return self._base_from_frame @ in_plan @ self._tool_from_tip

    def check_names(self, result: CheckResult) -> None:
        """Names of the plan's objects that others of the scene have, and objects that the scene can't have."""
        names = [item.get("name") for item in self.plan.document.get("environment") or [] if isinstance(item, dict)]
        for name, owner in self.clashes:
            found, expected = f"'{name}', the name of {owner}", "a name of its own"
            if name not in self._links:
                expected += ", or remove that one from the scene"
            result.faults.append(PlanFault(f"/environment/{names.index(name)}/name", found, expected))
        for name, reason in self.impossible:
            pointer = f"/environment/{names.index(name)}"
            result.faults.append(PlanFault(pointer, reason, "what a planning scene can have"))

    def check_fingers(self, result: CheckResult) -> None:
        """Finger positions outside the hand's range."""
        row = self.gripper
        low, high = sorted((row.position_open, row.position_closed))
        for planned in self.plan.steps:
            effort, width = getattr(planned.step, "effort", None), getattr(planned.step, "width", None)
            # An expanded grasp's pointer is the field itself.
            written = planned.pointer.rsplit("/", 1)[-1]
            if effort is not None and not low - 1e-9 <= effort <= high + 1e-9:
                pointer = planned.pointer + ("" if written.endswith("effort") else "/effort")
                fault = PlanFault(pointer, f"{effort:g}", f"a position of the {row.title}, {low:g} to {high:g} rad")
                (result.warnings if self.plan.original else result.faults).append(fault)
            if width is not None and not row.opening_closed - 1e-9 <= width <= row.opening_open + 1e-9:
                expected = f"an opening of the {row.title}, {row.opening_closed:g} to {row.opening_open:g} m"
                result.faults.append(PlanFault(planned.pointer + "/width", f"{width:g} m", expected))

    def check_scripts(self, result: CheckResult) -> None:
        """Programs for a controller that takes none."""
        driver = robot_driver(self.robot)
        if driver.interface == "ur":
            return
        expected = (
            f"none: {driver.title}, the driver of {self.robot.name}, takes no programs, only a UR controller does"
        )
        for planned in self.plan.steps:
            if planned.step.sends_script():
                result.faults.append(PlanFault(planned.pointer + "/topic", "a program for a UR controller", expected))

    def check_tuck(self, result: CheckResult) -> None:
        """Obstacles where the arm stands at the beginning."""
        nearest = clearance(self.chain, self.tuck, self._obstacles)
        if nearest.distance < 0:
            names = [item.get("name") for item in self.plan.document.get("environment") or [] if isinstance(item, dict)]
            hit = next((name for name in (nearest.a, nearest.b) if name in names), None)
            pointer = f"/environment/{names.index(hit)}" if hit is not None else ""
            found = f"{_overlap(nearest)} in the tucked pose of {self.robot.name}"
            fault = PlanFault(pointer, found, "room for the arm where it starts")
            # Of what else is in the scene only a warning: the run may begin where the arm stands elsewhere.
            others = {item.name for item in self._surroundings} & {nearest.a, nearest.b}
            (result.warnings if self.plan.original or others else result.faults).append(fault)

    def check_poses(self, result: CheckResult) -> None:
        """Poses that the arm can't take, with what the hand holds there."""
        walk = _Walk(self.chain, self.scene(), self.chain.fk(self.tuck))
        for planned in self.plan.steps:
            for suffix, position, orientation in planned.step.poses():
                target = self.flange(position, orientation)
                key = walk.key(target)
                if key not in self._known:
                    self._known[key] = self._pose_fault(target, position, walk)
                fault = self._known[key]
                if fault is not None:
                    result.faults.append(PlanFault(planned.pointer + suffix, *fault))
                walk.tip = target
            walk.do(planned.step)

    def _pose_fault(self, target: Matrix, position: Vector3, walk: _Walk) -> Optional[Tuple[str, str]]:
        """Why no configuration takes the tip (4, 4) to ``target`` and stays clear; None if one does."""
        where = f"({position.x:.3f}, {position.y:.3f}, {position.z:.3f}) m"
        away = float(np.linalg.norm(target[:3, 3]))
        solutions = self._branches.solve(target, self.tuck)
        if not solutions:
            return f"{where}, which takes joints beyond their limits", "a pose within the joint limits"
        reached = [solution for solution in solutions if solution.exact]
        if not reached:
            best = min(solutions, key=lambda solution: solution.position_error + 0.1 * solution.orientation_error)
            miss = f"{best.position_error:.3f} m" + (
                f" and {np.degrees(best.orientation_error):.1f}°" if best.orientation_error > 1e-3 else ""
            )
            return (
                f"{where}, with the flange {away:.3f} m from {self.robot.base_frame}: out of reach by some {miss}",
                f"a pose within the reach of {self.robot.name}",
            )
        nearest = max(
            (clearance(walk.carrier, solution.positions, walk.obstacles) for solution in reached),
            key=lambda item: item.distance,
        )
        if nearest.distance >= 0:
            return None
        return (
            f"{where}: {_overlap(nearest)} in the best of {len(reached)} configurations",
            "a pose clear of the obstacles and of the arm itself",
        )

    def dry_run(self, planner: Planner, result: CheckResult, start: Vector, first_step: int = 0) -> None:
        """Plans every move from ``first_step`` on as the run will, the first one from ``start`` (n,) rad.

        Behind a step that moves the arm in its own way, the run may plan from elsewhere: what is found there is a
        warning.
        """
        paths = result.paths.setdefault(planner.name, [])
        listed = result.faults
        scene = self.scene()
        advance(scene, self.plan.steps[:first_step], self.flange, self.chain.fk(self.tuck))
        walk = _Walk(self.chain, scene, self.chain.fk(start))
        told = -1
        for planned in self.plan.steps[first_step:]:
            if _moves_by_itself(planned.step):
                listed = result.warnings
            if planned.step.name != "move":
                walk.do(planned.step)
                continue
            for count, (suffix, position, orientation) in enumerate(planned.step.poses(), start=1):
                walk.tip = target = self.flange(position, orientation)
                known = self._known.get(walk.key(target))
                if told != walk.snapshot.version:
                    planner.update_scene(walk.snapshot.obstacles, walk.snapshot.attached)
                    told = walk.snapshot.version
                try:
                    options = dict(getattr(planned.step, "options", {}))
                    path = planner.preview(start, MoveGoal(target, options, motion_key(planned.index, count)))
                except Unreachable as error:
                    if known is None:  # else its fault is listed already
                        expected = f"a motion that the planner {planner.name} can do"
                        listed.append(PlanFault(planned.pointer + suffix, str(error), expected))
                    start = self._stand_in(target, start)
                    continue
                start = np.array(path.positions[-1], dtype=np.float64)
                nearest = alone = path_clearance(walk.carrier, path.positions, walk.obstacles)[1]
                if walk.carrier is not self.chain:
                    alone = path_clearance(self.chain, path.positions, walk.obstacles)[1]
                contact = contact_on_way(walk.carrier, path.positions, walk.obstacles, TOUCH)
                if contact is not None and known is None:
                    listed.append(
                        PlanFault(
                            planned.pointer + suffix,
                            f"{contact.a} {1000 * contact.depth:.0f} mm inside {contact.b} on the way, "
                            f"with the planner {planner.name}",
                            "a clear way: put a move in between",
                        )
                    )
                paths.append(
                    PlannedPath(
                        planned.index,
                        planned.pointer,
                        path_hash(path.positions),
                        float(path.times[-1]),
                        float(nearest.distance),
                        float(alone.distance),
                    )
                )

    def _stand_in(self, target: Matrix, start: Vector) -> Vector:
        """Where the arm would stand after a move that could not be planned."""
        reached = [solution.positions for solution in self._branches.solve(target, start) if solution.exact]
        return min(reached, key=lambda q: float(np.linalg.norm(q - start))) if reached else start


def _impossible(objects: Sequence[SceneObject]) -> List[Tuple[str, str]]:
    """The names of objects that no scene takes, each with the reason."""
    found = []
    for item in objects:
        try:
            checked(item)
        except SceneError as error:
            found.append((item.name, str(error)))
    return found


_Known = Tuple[bytes, Tuple[Tuple[str, bool, bytes], ...]]
"""A pose, and where everything is that it is checked against."""


class _Walk:
    """The scene from step to step.

    Args:
        chain: with nothing in the hand.
        scene: as it is before the first step.
        tip: (4, 4) where the chain's tip is then.

    Attributes:
        tip: where it is now; None where a check can't know.
        snapshot, obstacles, carrier: the scene now, and the chain with what it holds.
    """

    def __init__(self, chain: Chain, scene: PlanningScene, tip: Optional[Matrix]) -> None:
        self._chain = chain
        self._scene = scene
        self.tip = tip
        self._look()

    def _look(self) -> None:
        self.snapshot = self._scene.snapshot()
        self.obstacles = Obstacles(self.snapshot.obstacles)
        self.carrier = carrying(self._chain, self.snapshot.attached)
        self._state = tuple(
            (item.name, item.held, item.pose.tobytes())
            for item in self._scene.objects
            if item.held or not item.graspable
        )

    def do(self, step: Step) -> None:
        """What a step that is no move does to the scene."""
        if _moves_by_itself(step):
            self.tip = None
        if self.tip is not None and follow(self._scene, step, self.tip):
            self._look()

    def key(self, target: Matrix) -> _Known:
        """Of a pose of the tip (4, 4) in the scene as it is now."""
        return target.tobytes(), self._state


def _not_rehearsed(planner: str) -> PlanFault:
    return PlanFault(
        "/task",
        f"motions that the planner {planner} finds anew in each run: only the poses were checked",
        "a rehearsal in the simulator; planner:=replay repeats its motions exactly",
    )


def _moves_by_itself(step: Step) -> bool:
    """Whether a step may leave the arm where a dry run can't know."""
    return step.name in UNFORESEEN or "script" in getattr(step, "topic", "").lower()


def _overlap(nearest: Clearance) -> str:
    return f"{nearest.a} {-1000 * nearest.distance:.0f} mm inside {nearest.b}"


def _located(pointer: str, urdf: str, frame: str, reference: str) -> Matrix:
    try:
        return fixed_pose(urdf, frame, reference)
    except FrameError as error:
        raise FrameError(f"{pointer}|{error}") from None


def _poses(steps: Sequence[PlannedStep]) -> Iterator[Tuple[str, Vector3, Quaternion]]:
    for planned in steps:
        for suffix, position, orientation in planned.step.poses():
            yield planned.pointer + suffix, position, orientation


def _check_approach(plan: Plan, tool_frame: str, result: CheckResult) -> None:
    """A pose read in the wrong flange frame is reachable and points the hand sideways."""
    poses = list(_poses(plan.steps))

    def from_above(frame: str) -> int:
        return sum(approach(orientation, frame)[2] < -DOWN for _, _, orientation in poses)

    other = max((frame for frame in APPROACH_AXES if frame != tool_frame), key=from_above)
    if from_above(tool_frame) == 0 and from_above(other) > len(poses) / 2:
        result.warnings.append(
            PlanFault(
                "/tool_frame",
                f"nothing; taken for {tool_frame} poses, none of the {len(poses)} points the hand down",
                f'"tool_frame": "{other}" (as such {from_above(other)} do), in the plan or at launch',
            )
        )
