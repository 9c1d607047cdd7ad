"""The planner ``replay``: the joint paths of an earlier session once more, as they were commanded then."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, List, Mapping, Optional, Protocol, Sequence

import numpy as np

from iter_runner.kinematics import AttachedBody, Obstacle, Obstacles, carrying, contact_on_way
from iter_runner.planners.arrival import TOLERANCE, Arrival
from iter_runner.planners.base import MoveGoal, Planner, PlannerUnavailable, Unreachable, path_hash
from iter_runner.planners.line import pose_error
from iter_runner.planners.stream import stream_targets
from iter_runner.planners.table import planner_class
from iter_runner.robot.arm import Arm, JointPath, Vector
from iter_runner.robot.joint_paths import closest_time, remaining_path
from iter_runner.run_control import Fault, RunControl

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain
    from iter_runner.robot.table import Robot

AT_START = 5e-3
"""rad, each joint: within this of a path's beginning the arm stands there."""
ON_PATH = 0.05
"""rad, each joint: within this of a path an arm that was stopped on it still is on it."""
TOUCH = 1e-3
"""m that bodies may overlap: as far as a dry run lets a motion, so that what was run can be repeated."""
SAME_PERIOD = 0.01
"""Share by which a recorded tick may differ from the transport's."""


class Motion(Protocol):
    """A recorded move: positions (N, n) rad, times (N,) s, and where that is kept."""

    @property
    def positions(self) -> Vector:
        """(N, n) rad."""

    @property
    def times(self) -> Vector:
        """(N,) s."""

    @property
    def joint_names(self) -> Sequence[str]:
        """Of the columns."""

    @property
    def path_hash(self) -> str:
        """As it was recorded."""

    @property
    def file(self) -> str:
        """For messages."""


class Recording(Protocol):
    """An earlier session; see :class:`iter_runner.study.recorded_run.RecordedRun`."""

    @property
    def name(self) -> str:
        """The session's."""

    @property
    def robot(self) -> str:
        """The row's name."""

    @property
    def planner(self) -> str:
        """That its motions were made by."""

    @property
    def plan_hash(self) -> str:
        """Of its plan."""

    @property
    def outcome(self) -> str:
        """Of its run; empty where the record ends without one."""

    @property
    def done(self) -> Sequence[int]:
        """Indices of the steps that it finished."""

    @property
    def motions(self) -> Mapping[str, Motion]:
        """By :attr:`iter_runner.planners.base.MoveGoal.key`."""

    @property
    def repeated(self) -> Sequence[int]:
        """Indices of the steps that were repeated after a fault."""


def check_recording(recording: Recording, plan_hash: str, first_step: int, steps: int) -> None:
    """Returns if a run of a plan of ``steps`` steps can repeat ``recording`` from the step of that index on.

    Raises:
        PlannerUnavailable: it is another plan's, did not finish, or has not got all these steps.
    """
    session = f"session {recording.name}"
    if recording.plan_hash != plan_hash:
        raise PlannerUnavailable(
            f"{session} is of another plan: its hash is {recording.plan_hash[:12] or 'not recorded'}, this plan's is "
            f"{plan_hash[:12]}. Run the plan.json in the session's folder, or replay a session of this plan"
        )
    if recording.outcome != "finished":
        how = f"it was {recording.outcome}" if recording.outcome else "its record ends in the midst of it"
        raise PlannerUnavailable(f"{session} did not finish ({how}): replay one that did")
    missing = sorted(set(range(first_step, steps)) - set(recording.done))
    if missing:
        raise PlannerUnavailable(
            f"{session} has no motions of the steps before {missing[-1] + 2}: its own run began there. Replay a "
            f"session that has them, or begin with step {missing[-1] + 2} (first_step {missing[-1] + 1})"
        )


class ReplayPlanner(Planner):
    """See :class:`iter_runner.planners.base.Planner`.

    Nothing is planned: a move is looked up by its key, and refused where the arm does not stand at the beginning of the
    recorded path, where that does not end at the move's goal, or meets something that is in the scene now. It is sent
    as the planner that made it sends its motions; those of the planner ``ur`` are the controller's and not on record.

    Args:
        robot: the row, its ``stream_rate`` that of the transport.
        chain: from its base to its flange.
        obstacles: the scene to begin with.
        replay: the session.

    Raises:
        PlannerUnavailable: there is no session, or it is another robot's, damaged, or can't be repeated in this way.
    """

    name: ClassVar[str] = "replay"
    SETTINGS: ClassVar[Sequence[str]] = ("replay",)

    def __init__(
        self,
        robot: Robot,
        chain: Chain,
        obstacles: Sequence[Obstacle] = (),
        replay: Optional[Recording] = None,
    ) -> None:
        if replay is None:
            raise PlannerUnavailable(
                "planner 'replay' needs the session whose motions it is to repeat: replay:=SESSION with the launch, "
                "--replay SESSION with check_plan"
            )
        self._recording = replay
        self._chain = chain
        self._period = 1.0 / robot.stream_rate
        self._streamed = _is_streamed(replay)
        self._interrupted = ""  # key of the move that was begun and has not come to its end
        self._check(robot)
        self.update_scene(obstacles)

    def _check(self, robot: Robot) -> None:
        session = f"session {self._recording.name}"
        if self._recording.robot != robot.name:
            raise PlannerUnavailable(
                f"{session} is of robot '{self._recording.robot}', and this is '{robot.name}': replay a session of "
                f"this robot, or launch with robot:={self._recording.robot}"
            )
        for motion in self._recording.motions.values():
            if list(motion.joint_names) != list(self._chain.joint_names) or motion.positions.ndim != 2:
                raise PlannerUnavailable(
                    f"{session}, {motion.file}: recorded for the joints {', '.join(motion.joint_names)}; "
                    f"{robot.name} has {', '.join(self._chain.joint_names)}"
                )
            if path_hash(motion.positions) != motion.path_hash or len(motion.positions) != len(motion.times):
                raise PlannerUnavailable(
                    f"{session}, {motion.file}: not the path that the journal has the hash of; the file was changed or "
                    "damaged: replay another session"
                )
            if self._streamed and len(motion.times) > 1:
                period = float(motion.times[1] - motion.times[0])
                if abs(period - self._period) > SAME_PERIOD * self._period:
                    raise PlannerUnavailable(
                        f"{session} was streamed at {1.0 / period:.0f} targets a second, and this transport takes "
                        f"{1.0 / self._period:.0f}: launch with the transport:= of that session"
                    )

    def update_scene(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody] = ()) -> None:
        """See :class:`iter_runner.planners.base.Planner`: nothing bends around these, but nothing is sent into them."""
        self._carrier = carrying(self._chain, attached)
        self._obstacles = Obstacles(obstacles)

    def preview(self, start: Vector, goal: MoveGoal) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`: the recorded path, if it may be sent."""
        path = self._recorded(goal)
        off = self._off_start(start, path, goal)
        if off:
            raise Unreachable(off)
        self._check_clear(path)
        return path

    def move(self, arm: Arm, start: Vector, goal: MoveGoal, control: RunControl) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`.

        A move that a fault interrupted on its way goes on from where the arm stands, along what is left of its path;
        that rest is then what is returned.

        Raises:
            Fault(start_differs): the arm does not stand where the recorded path begins; nothing has moved.
        """
        with self.planning():
            path = self._recorded(goal)
            off = self._off_start(start, path, goal)
            if off:
                rest = self._rest(path, start) if goal.key == self._interrupted else None
                if rest is None:
                    raise Fault("start_differs", f"{off}; bring the arm there, then resume")
                path = rest
            self._check_clear(path)
        control.wait_while_paused()
        self._interrupted = goal.key
        if self._streamed and len(path.times) > 1:
            self._stream(arm, path, control)
        else:
            if len(path.times) > 1:
                arm.follow(path, control)
            Arrival(self._chain, path.positions[-1]).wait(arm, control)
        self._interrupted = ""
        return path

    def _stream(self, arm: Arm, path: JointPath, control: RunControl) -> None:
        try:
            first, *others = path.positions[1:]
            stream_targets(arm, arm.servo(), path.positions[0], first, iter(others), self._period, self._chain, control)
        except BaseException:
            arm.halt()
            raise

    def _recorded(self, goal: MoveGoal) -> JointPath:
        """The path recorded for a move. Raises Unreachable: there is none, or it ends elsewhere."""
        motion = self._recording.motions.get(goal.key)
        if motion is None:
            raise Unreachable(f"session {self._recording.name} has no motion {goal.key!r}: its step did not move then")
        end = motion.positions[-1]
        distance, turn = pose_error(self._chain.fk(end), goal.flange)
        if distance > TOLERANCE[0] or turn > TOLERANCE[1]:
            raise Unreachable(
                f"the recorded motion {goal.key} of session {self._recording.name} ends {distance * 1e3:.1f} mm and "
                f"{math.degrees(turn):.1f} degrees from where this move goes: its tool_frame or what a camera saw was "
                "another"
            )
        return JointPath(np.array(motion.positions), np.array(motion.times))

    def _off_start(self, start: Vector, path: JointPath, goal: MoveGoal) -> str:
        """Which joint is how far from the path's beginning; empty where the arm stands there."""
        off = np.asarray(start, dtype=np.float64) - path.positions[0]
        joint = int(np.argmax(np.abs(off)))
        if abs(off[joint]) <= AT_START:
            return ""
        text = (
            f"{self._chain.joint_names[joint]} is at {start[joint]:.4f} rad, {abs(off[joint]):.4f} rad "
            f"({math.degrees(abs(off[joint])):.1f} degrees) from where the recorded motion {goal.key} of session "
            f"{self._recording.name} begins ({path.positions[0][joint]:.4f} rad)"
        )
        if goal.key.isdigit() and int(goal.key) in self._recording.repeated:
            text += (
                "; a fault interrupted that motion then, and its record begins where the arm stood: replay a session "
            )
            text += "that went through without one"
        return text

    def _check_clear(self, path: JointPath) -> None:
        """Raises Unreachable where the path meets something of the present scene."""
        contact = contact_on_way(self._carrier, path.positions, self._obstacles, TOUCH)
        if contact is not None:
            share = 100.0 * contact.row / max(1, len(path.positions) - 1)
            raise Unreachable(
                f"on the recorded motion {contact.a} and {contact.b} overlap by {contact.depth * 1e3:.1f} mm at "
                f"{share:.0f} % of the way: take away what was not there in session {self._recording.name}"
            )

    def _rest(self, path: JointPath, start: Vector) -> Optional[JointPath]:
        """What is left of a path for an arm that stands on it at ``start`` (n,) rad; None where it does not."""
        if len(path.times) < 2:
            return None
        begin = closest_time(path, start)
        nearest = _at(path, np.array([begin]))[0]
        if float(np.max(np.abs(nearest - start))) > ON_PATH:
            return None
        rest = remaining_path(path, start)
        if not self._streamed:
            return rest
        ticks = math.ceil(float(rest.times[-1]) / self._period - 1e-9)
        times = self._period * np.arange(ticks + 1, dtype=np.float64)
        positions = _at(rest, times)
        positions[-1] = path.positions[-1]
        return JointPath(positions, times)


def _at(path: JointPath, times: Vector) -> Vector:
    """Positions (N, n) rad of a path at times (N,) s."""
    columns: List[Vector] = [np.interp(times, path.times, column) for column in path.positions.T]
    return np.column_stack(columns)


def _is_streamed(recording: Recording) -> bool:
    """Whether the recorded motions were targets, tick by tick, and not trajectories.

    Raises:
        PlannerUnavailable: they were neither.
    """
    try:
        sends = planner_class(recording.planner).sends
    except KeyError:
        raise PlannerUnavailable(
            f"session {recording.name} was run by planner '{recording.planner}', which config/planners.yaml does not "
            "have: how its motions are sent is not known"
        ) from None
    if sends == "program":
        raise PlannerUnavailable(
            f"session {recording.name} was run by planner '{recording.planner}', whose motions the controller makes "
            "by itself: its record has what was asked for, not what the controller did. "
            f"planner:={recording.planner} asks for the same again"
        )
    return bool(sends == "targets")
