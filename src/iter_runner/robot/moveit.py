"""What MoveIt 1 is asked and what it answers, as far as no ROS is needed: requests, error codes, results, trajectories.

Facts are moveit_commander's of Noetic (1.1.x) and Melodic (1.0.x), and moveit_msgs/MoveItErrorCodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iter_runner.robot.arm import JointPath, Vector

if TYPE_CHECKING:
    from iter_runner.kinematics import AttachedBody, Obstacle

INSTALL = "ros-noetic-moveit"
"""The Debian package that has all of MoveIt (apt install)."""
SUCCESS = 1

DEFAULT_PLANNING_TIME = 5.0
DEFAULT_ATTEMPTS = 1
DEFAULT_POSITION_TOLERANCE = 1e-4
DEFAULT_ORIENTATION_TOLERANCE = 1e-3
DEFAULT_JOINT_TOLERANCE = 1e-4
CARTESIAN_STEP = 0.005
"""m between two poses of a cartesian line, as fine as the other planners look."""
CARTESIAN_JUMP = 5.0
"""How many times the mean a step in joint space may be, for releases that take a threshold."""


@dataclass(frozen=True)
class MotionRequest:
    """How MoveIt is to plan one motion; all of it is said anew with each, since its commander remembers.

    Attributes:
        planner_id: the algorithm of its pipeline; empty: the group's default.
        planning_time: s that one search may take.
        attempts: searches, of which the shortest path is taken.
        velocity_scaling, acceleration_scaling: shares of the joints' limits, above 0 to 1.
        position_tolerance, orientation_tolerance, joint_tolerance: of the goal, m, rad, rad.
        eef_step: m between two poses of a cartesian line.
        jump_threshold: see :data:`CARTESIAN_JUMP`; 0: not looked at.
    """

    planner_id: str = ""
    planning_time: float = DEFAULT_PLANNING_TIME
    attempts: int = DEFAULT_ATTEMPTS
    velocity_scaling: float = 1.0
    acceleration_scaling: float = 1.0
    position_tolerance: float = DEFAULT_POSITION_TOLERANCE
    orientation_tolerance: float = DEFAULT_ORIENTATION_TOLERANCE
    joint_tolerance: float = DEFAULT_JOINT_TOLERANCE
    eef_step: float = CARTESIAN_STEP
    jump_threshold: float = CARTESIAN_JUMP


class Commander(Protocol):
    """A group of joints in a running move_group; what it plans begins at given joints, never at the measured ones."""

    def plan(self, start: Vector, flange: NDArray[np.float64], request: MotionRequest) -> Any:
        """moveit_commander's own result, see :func:`read_plan`, for a pose (4, 4) of the tip in the base, m.

        ``start`` is (n,) rad. Raises Fault where move_group is gone or refuses the question itself.
        """

    def cartesian(self, start: Vector, flange: NDArray[np.float64], request: MotionRequest) -> Tuple[Any, float]:
        """The tip's straight line to a pose (4, 4): moveit_msgs/RobotTrajectory, and what share of the line it is."""

    def planner_ids(self) -> Sequence[str]:
        """What :attr:`MotionRequest.planner_id` may be; empty where move_group does not say."""

    def mirror(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody]) -> None:
        """Makes MoveIt's scene hold these, in the base and on the tip; raises Fault where it does not take them."""

    def show(self, path: JointPath) -> None:
        """Shows to whoever looks what is about to be executed."""


class MoveItError(NamedTuple):
    """An error code's name, whether its cause is in the set-up rather than in the motion asked for, and what to do."""

    name: str
    setup: bool
    advice: str


ERRORS: Mapping[int, MoveItError] = {
    99999: MoveItError("FAILURE", False, "is move_group running? Its output says more"),
    -1: MoveItError(
        "PLANNING_FAILED",
        False,
        "it found no way in time: give it more (options.planning_time, num_planning_attempts), another planner_id, or "
        "put a move in between",
    ),
    -2: MoveItError(
        "INVALID_MOTION_PLAN",
        False,
        "the path that it found runs into something between its points: try again, or put a move in between",
    ),
    -3: MoveItError("MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE", False, "the scene changed meanwhile: try again"),
    -4: MoveItError("CONTROL_FAILED", True, "look at the controllers that move_group was given"),
    -5: MoveItError("UNABLE_TO_AQUIRE_SENSOR_DATA", True, "look at move_group's sensors"),
    -6: MoveItError(
        "TIMED_OUT", False, "it found no way in time: give it more (options.planning_time), or put a move in between"
    ),
    -7: MoveItError("PREEMPTED", False, "somebody else asked move_group for a motion: only one may"),
    -10: MoveItError(
        "START_STATE_IN_COLLISION",
        False,
        "the arm, the hand or what it holds touches something where it stands: look at the scene in RViz, and move the "
        "arm free",
    ),
    -11: MoveItError("START_STATE_VIOLATES_PATH_CONSTRAINTS", False, "take the constraints out of move_group"),
    -12: MoveItError(
        "GOAL_IN_COLLISION",
        False,
        "the arm, the hand or what it holds touches something there: move the goal or the object",
    ),
    -13: MoveItError("GOAL_VIOLATES_PATH_CONSTRAINTS", False, "take the constraints out of move_group"),
    -14: MoveItError(
        "GOAL_CONSTRAINTS_VIOLATED",
        False,
        "no joints within their limits fulfil the goal: move it, or widen its tolerances",
    ),
    -15: MoveItError(
        "INVALID_GROUP_NAME", True, "the robot's row (moveit_group) and move_group's SRDF have to name the same group"
    ),
    -16: MoveItError(
        "INVALID_GOAL_CONSTRAINTS", True, "MoveIt understands no goal for this tip: is it a link of move_group's model?"
    ),
    -17: MoveItError("INVALID_ROBOT_STATE", True, "move_group's model has other joints than the robot's row"),
    -18: MoveItError("INVALID_LINK_NAME", True, "move_group's model lacks the link: was it started for another robot?"),
    -19: MoveItError("INVALID_OBJECT_NAME", True, "an object of the scene is not in move_group's"),
    -21: MoveItError(
        "FRAME_TRANSFORM_FAILURE", True, "move_group can't place the base frame: is robot_state_publisher running?"
    ),
    -22: MoveItError("COLLISION_CHECKING_UNAVAILABLE", True, "look at move_group's output"),
    -23: MoveItError("ROBOT_STATE_STALE", True, "move_group gets no joint states: is the driver running?"),
    -24: MoveItError("SENSOR_INFO_STALE", True, "look at move_group's sensors"),
    -25: MoveItError("COMMUNICATION_FAILURE", True, "move_group does not answer: is it running?"),
    -26: MoveItError("START_STATE_INVALID", False, "a joint is beyond its limits where the arm stands: move it back"),
    -27: MoveItError("GOAL_STATE_INVALID", False, "no joints within their limits fulfil the goal: move it"),
    -28: MoveItError("UNRECOGNIZED_GOAL_TYPE", True, "move_group's planner takes no poses: choose another pipeline"),
    -29: MoveItError("CRASH", True, "the planner crashed: look at move_group's output, start it again, then resume"),
    -30: MoveItError("ABORT", False, "the planner gave up: move_group's output says why"),
    -31: MoveItError(
        "NO_IK_SOLUTION",
        False,
        "no joints reach the pose free of collisions: move it, or look at the tool frame that the plan's poses are of",
    ),
}
"""moveit_msgs/MoveItErrorCodes by number."""


def describe_error(code: Optional[int], detail: str = "") -> str:
    """``MoveIt: NO_IK_SOLUTION (-31): what to do``; None is a release that gives no codes."""
    said = f" ({detail})" if detail else ""
    if code is None:
        return f"MoveIt found no motion{said}; this release does not say why, move_group's output does"
    error = ERRORS.get(code)
    if error is None:
        return f"MoveIt: error {code}{said}; move_group's output says more"
    return f"MoveIt: {error.name} ({code}){said}: {error.advice}"


class PlanResult(NamedTuple):
    """What ``plan()`` returned, in one shape for all releases.

    Attributes:
        trajectory: moveit_msgs/RobotTrajectory, None where there is none.
        code: of :data:`ERRORS`, 1 for success; None where the release gives none and there is no trajectory.
        detail: what the planner says besides, often empty.
    """

    trajectory: Optional[Any]
    code: Optional[int]
    detail: str = ""


def read_plan(result: Any) -> PlanResult:
    """The answer of MoveGroupCommander.plan(): (success, trajectory, time, error code), before Noetic a trajectory.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(result, (tuple, list)):
        if len(result) != 4:
            raise ValueError(f"plan() of moveit_commander: 4 values or a trajectory expected, {len(result)} found")
        success, trajectory, _, error = result
        code = int(error.val if hasattr(error, "val") else error)
        detail = str(getattr(error, "message", "") or getattr(error, "error_message", "") or "")
        if success and code == SUCCESS and _has_points(trajectory):
            return PlanResult(trajectory, SUCCESS)
        return PlanResult(None, -1 if code == SUCCESS else code, detail)
    if not hasattr(result, "joint_trajectory"):
        raise ValueError(f"plan() of moveit_commander: a trajectory expected, {type(result).__name__} found")
    return PlanResult(result, SUCCESS) if _has_points(result) else PlanResult(None, None)


def _has_points(trajectory: Any) -> bool:
    return len(trajectory.joint_trajectory.points) > 0


class TrajectoryError(ValueError):
    """A trajectory is not one of the arm from where it stands; the message says what is wrong."""


@dataclass(frozen=True)
class RawTrajectory:
    """A trajectory's points by the row's joint order, on the turns that continue the start.

    Attributes:
        positions: (N, n) rad, the first the start itself.
        times: (N,) s rising from 0, None where the trajectory has no such times.
        velocities: (N, n) rad/s, None where it has none.
    """

    positions: Vector
    times: Optional[Vector]
    velocities: Optional[Vector]


STARTS_AT = 1e-3
"""rad that a trajectory's first point may be off the start."""


def read_trajectory(
    trajectory: Any, joints: Sequence[str], start: ArrayLike, continuous: Sequence[bool] = ()
) -> RawTrajectory:
    """The points of a moveit_msgs/RobotTrajectory.

    Args:
        trajectory: of a group that holds these joints, in any order; others in it are left out.
        joints: n names.
        start: (n,) rad, where the trajectory was asked to begin.
        continuous: (n) whether MoveIt may give the joint's position on another full turn.

    Raises:
        TrajectoryError: a joint is missing, a number is not finite, or it begins elsewhere.
    """
    message = trajectory.joint_trajectory
    names = list(message.joint_names)
    missing = [name for name in joints if name not in names]
    if missing:
        raise TrajectoryError(
            f"MoveIt's trajectory lacks {', '.join(missing)}; it moves {', '.join(names) or 'nothing'}: was move_group "
            "started for another robot, or for another group?"
        )
    columns = [names.index(name) for name in joints]
    begin = np.array(start, dtype=np.float64)
    positions = np.array([[point.positions[i] for i in columns] for point in message.points], dtype=np.float64)
    if not np.all(np.isfinite(positions)):
        raise TrajectoryError("MoveIt's trajectory holds numbers that are not finite")
    for joint, turns in enumerate(continuous):
        if turns:
            column = np.unwrap(positions[:, joint])
            positions[:, joint] = column + 2.0 * np.pi * np.rint((begin[joint] - column[0]) / (2.0 * np.pi))
    off = np.abs(positions[0] - begin)
    if np.max(off) > STARTS_AT:
        joint = int(np.argmax(off))
        raise TrajectoryError(
            f"MoveIt's trajectory begins {off[joint]:.3f} rad off where {joints[joint]} was commanded to"
        )
    positions[0] = begin
    times = np.array([_seconds(point.time_from_start) for point in message.points], dtype=np.float64)
    timed = times[0] == 0.0 and np.all(np.diff(times) > 0.0) and len(times) > 1
    velocities = None
    if all(len(point.velocities) == len(names) for point in message.points):
        velocities = np.array([[point.velocities[i] for i in columns] for point in message.points], dtype=np.float64)
        if not np.all(np.isfinite(velocities)):
            velocities = None
    return RawTrajectory(positions, times if timed else None, velocities)


def _seconds(duration: Any) -> float:
    return float(duration.to_sec()) if hasattr(duration, "to_sec") else float(duration)


def sample_cubics(raw: RawTrajectory, period: float) -> JointPath:
    """A timed trajectory as a controller follows it, cubics between its points, at most ``period`` s apart.

    Its points are up to a tenth of a second apart: sent as they are, another choice of velocities between them would be
    another motion. Raises ValueError where it has no times or velocities.
    """
    if raw.times is None or raw.velocities is None:
        raise ValueError("a trajectory with times and velocities expected")
    times, points, speeds = raw.times, raw.positions, raw.velocities
    count = max(1, int(np.ceil(times[-1] / period - 1e-9)))
    moments = np.linspace(0.0, times[-1], count + 1)
    index = np.clip(np.searchsorted(times, moments, side="right") - 1, 0, len(times) - 2)
    length = np.diff(times)[index]
    share = ((moments - times[index]) / length)[:, None]
    length = length[:, None]
    positions = (
        (1.0 + 2.0 * share) * (1.0 - share) ** 2 * points[index]
        + share * (1.0 - share) ** 2 * length * speeds[index]
        + share**2 * (3.0 - 2.0 * share) * points[index + 1]
        + share**2 * (share - 1.0) * length * speeds[index + 1]
    )
    positions[0], positions[-1] = points[0], points[-1]
    return JointPath(positions, moments)


def known_planner(planner_id: str, group: str, ids: Sequence[str]) -> Optional[str]:
    """How move_group's configuration calls the algorithm ``planner_id``; None where it has none.

    The setup assistant calls RRTConnect ``RRTConnectkConfigDefault``; move_group lists it with its group before it,
    ``manipulator[RRTConnectkConfigDefault]``.
    Nothing listed, everything goes: MoveIt itself falls back to the group's default, with no more than a warning.
    """
    plain = [name[len(group) + 1 : -1] if name.startswith(f"{group}[") and name.endswith("]") else name for name in ids]
    if not planner_id or not plain:
        return planner_id
    suffix = "kConfigDefault"
    short = planner_id[: -len(suffix)] if planner_id.endswith(suffix) else planner_id
    for name in (planner_id, short, short + suffix):
        if name in plain:
            return name
    return None


def plain_planner_names(group: str, ids: Sequence[str]) -> List[str]:
    """The algorithms of a list of planner ids, for a person."""
    names: Dict[str, None] = {}
    for name in ids:
        if name.startswith(f"{group}[") and name.endswith("]"):
            names[name[len(group) + 1 : -1]] = None
        elif "[" not in name and name != group:
            names[name] = None
    return list(names)
