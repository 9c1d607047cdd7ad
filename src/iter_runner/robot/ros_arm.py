"""An arm behind its driver, as far as all drivers are alike: joint states by name, trajectories, faults."""

from __future__ import annotations

import contextlib
import importlib
import math
import socket
import threading
import time
from typing import Any, Callable, ClassVar, Dict, List, Optional, Sequence, Tuple, Type
from urllib.parse import urlparse

import actionlib
import numpy as np
import rosgraph
import rospy
from actionlib_msgs.msg import GoalStatus
from control_msgs.msg import FollowJointTrajectoryAction, FollowJointTrajectoryGoal, FollowJointTrajectoryResult
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from iter_runner.clock import Clock, MonotonicClock
from iter_runner.kinematics.urdf import UrdfJoint, read_urdf
from iter_runner.robot.arm import JointPath, JointReading, Servo, Vector
from iter_runner.robot.joint_paths import central_velocities, distance_from, in_turns_of, nearest_turns, remaining_path
from iter_runner.robot.preflight import Condition
from iter_runner.robot.ros_action import ActionCall, connected
from iter_runner.robot.table import Robot, robot_driver, robot_urdf
from iter_runner.robot.transport import check_transport
from iter_runner.run_control import Fault, RunControl

SIMULATED_STALE_AGE = 0.5
"""Seconds without a joint state after which the arm is not to be trusted, on a simulated clock: it may run many times
faster than messages travel."""
SIMULATED_STALE_WALL = 0.5
"""Seconds of wall time that have to pass as well on a simulated clock."""
LOST_WALL = 3.0
"""Seconds of wall time without a joint state after which a simulated driver is lost even though its clock stands."""
CLOCK_BEHIND = 0.5
"""Seconds that a joint state may be ahead of a simulated clock; more is the clock of a simulator that has died, while
its successor's joint states come already. What is measured on that clock would be wrong by as much."""
STANDSTILL = 0.002
"""rad/s below which a joint stands."""

UNLOCKING = 1.0
"""Seconds of wall time that a cleared stop may take to show in the driver's modes."""

REASON_WALL = 0.5
"""Seconds of wall time that a stop which ended a trajectory may take to show in the driver's modes."""

SHORT = 0.001
"""rad: a joint that stands farther from a trajectory's end, when the driver calls it done, gets the rest of it."""
FAR_SHORT = 0.005
"""rad: as far off after :data:`SHORT_TRIES` it is a fault; what is between is left to who judges the tool's pose."""
SHORT_TRIES = 3
"""How often the rest of a trajectory is sent that the driver called done before its end."""
SETTLING = 0.3
"""Seconds that a standing arm is given to come closer when its driver calls the trajectory done."""
SIMULATED_SETTLING = 2.0
"""The same on a simulated clock, where that news may overtake those of where the arm is by far."""
RESTLESS = 2.0
"""Seconds after which an arm that never comes to rest is judged where it is."""
UNSEEN_WALL = 0.5
"""Seconds of wall time after which a reading says no more that the arm stands."""
OFF_PATH = 0.2
"""rad: an arm that stands farther from its path was moved by something else, and does not go back by itself."""
OFF_START = 0.1
"""rad that a joint may be off a trajectory's start: a controller goes there as fast as it can."""


# FollowJointTrajectory error code → (fault code, what it means).
TRAJECTORY_FAULTS: Dict[int, Tuple[str, str]] = {
    FollowJointTrajectoryResult.INVALID_GOAL: ("trajectory_rejected", "the controller calls the trajectory invalid"),
    FollowJointTrajectoryResult.INVALID_JOINTS: ("trajectory_rejected", "the controller has other joints"),
    FollowJointTrajectoryResult.OLD_HEADER_TIMESTAMP: ("trajectory_rejected", "the trajectory's time has passed"),
    FollowJointTrajectoryResult.PATH_TOLERANCE_VIOLATED: ("path_tolerance", "the arm left the trajectory on the way"),
    FollowJointTrajectoryResult.GOAL_TOLERANCE_VIOLATED: ("goal_tolerance", "the arm did not arrive at the end"),
}


def trajectory_goal(joint_names: Sequence[str], path: JointPath) -> FollowJointTrajectoryGoal:
    """The action goal that makes a controller follow ``path``, on which the arm stands at the first point."""
    velocities = central_velocities(path)
    goal = FollowJointTrajectoryGoal()
    goal.trajectory.joint_names = list(joint_names)
    first = 1 if len(path.times) > 1 else 0
    for positions, velocity, moment in zip(
        path.positions[first:].tolist(), velocities[first:].tolist(), path.times[first:].tolist()
    ):
        goal.trajectory.points.append(
            JointTrajectoryPoint(
                positions=positions, velocities=velocity, time_from_start=rospy.Duration.from_sec(moment)
            )
        )
    return goal


def stands_still(reading: JointReading) -> bool:
    """Whether no joint moves faster than :data:`STANDSTILL`."""
    return bool(np.max(np.abs(reading.velocities)) < STANDSTILL)


class RosArm:
    """See :class:`iter_runner.robot.arm.Arm`. What a maker's driver has of its own is in the classes derived from it.

    Attributes:
        stale_age: s without a joint state after which the arm is not to be trusted.

    Args:
        robot: the robot's row.
        clock: the study clock.
        report_fault: called from callback threads with what the driver reports: stops, stale joint states, a lost
            driver. May be set later.
    """

    stale_age: ClassVar[float] = 0.1

    def __init__(self, robot: Robot, clock: Clock, report_fault: Optional[Callable[[Fault], None]] = None) -> None:
        self.joint_names: Sequence[str] = tuple(robot.joints)
        self.report_fault = report_fault
        self.speed_scaling = 1.0
        self._robot = robot
        self._driver = driver = robot_driver(robot)
        joints = read_urdf(robot_urdf(robot)).joints
        self._joints: List[UrdfJoint] = [joints[name] for name in robot.joints]
        self._continuous = [joint.kind == "continuous" for joint in self._joints]
        self._clock = clock
        self._hardware = isinstance(clock, MonotonicClock)
        self._turns = np.zeros(len(robot.joints))
        """(n,) rad, whole turns of continuous joints that the driver counts more than everybody above it does. Above,
        they begin nearest to the tuck pose and go on from the last reading: equal plans have equal paths, wherever the
        driver began to count."""
        self._reading: Optional[JointReading] = None
        self._received = 0.0
        self._columns: Dict[Tuple[str, ...], Optional[List[int]]] = {}
        self._waiting: Optional[RunControl] = None
        self._closed = threading.Event()
        self._call: Optional[ActionCall] = None

        self._trajectory = actionlib.ActionClient(driver.action("follow_joint_trajectory"), FollowJointTrajectoryAction)
        self._subscribers = [
            rospy.Subscriber(
                driver.topic("joint_states"), JointState, self._on_joint_state, queue_size=1, tcp_nodelay=True
            )
        ]
        threading.Thread(target=self._watch, name="joint_state_watch", daemon=True).start()

    def close(self) -> None:
        """Lets go of the topics; moves nothing."""
        self._closed.set()
        for subscriber in self._subscribers:
            subscriber.unregister()

    # What a driver may have of its own.

    def _missing(self) -> str:
        """What of the driver's own topics :meth:`make_ready` still waits for, empty if nothing."""
        return ""

    def _own_fault(self) -> Optional[Fault]:
        """What the driver itself says keeps the arm from obeying, or None."""
        return None

    def conditions(self) -> List[Condition]:
        """What the driver itself reports of the arm."""
        return []

    def _trusted(self, reading: JointReading) -> JointReading:
        """``reading`` as the driver's measurements are to be taken."""
        return reading

    def _before_trajectory(self, control: RunControl) -> None:
        """Whatever the trajectory controller needs before it takes a goal; raises Fault, Stopped."""

    def _advice(self) -> str:
        """What a person may do about an arm that does not obey, though nothing says why."""
        return "look at the arm"

    def script(self, program: str) -> None:
        """See :class:`iter_runner.robot.arm.Arm`."""
        raise Fault(
            "no_script",
            f"{self._robot.name}: its driver ({self._driver.title}) takes no scripts; only a Universal Robots "
            "controller does: take the step out of the plan, or run the plan on such an arm",
        )

    def wait_for_script(self, control: RunControl) -> None:
        """See :class:`iter_runner.robot.arm.Arm`: there is none."""

    def servo(self) -> Servo:
        """See :class:`iter_runner.robot.arm.Arm`."""
        raise NotImplementedError

    # What the driver says.

    def _on_joint_state(self, message: JointState) -> None:
        names = tuple(message.name)
        if names not in self._columns:
            known = all(name in names for name in self.joint_names)
            self._columns[names] = [names.index(name) for name in self.joint_names] if known else None
        columns = self._columns[names]
        if columns is None:  # a gripper's own joint states
            return
        position, velocity = message.position, message.velocity
        stamp = message.header.stamp
        positions = np.array([position[i] for i in columns])
        if any(self._continuous):
            before = np.asarray(self._robot.tuck) if self._reading is None else self._reading.positions
            turned = nearest_turns(positions, before, self._continuous)
            self._turns = positions - turned
            positions = turned
        self._reading = self._trusted(
            JointReading(
                positions,
                np.array([velocity[i] for i in columns]) if velocity else np.zeros(len(columns)),
                self._clock.now() if self._hardware else stamp.secs + 1e-9 * stamp.nsecs,
            )
        )
        self._received = time.monotonic()
        self._wake()

    def _as_driver_counts(self, positions: Vector) -> Vector:
        """Joints (…, n) rad as the driver is to be told them: its continuous joints may be on other turns."""
        counted: Vector = positions + self._turns
        return counted

    def _wake(self) -> None:
        control = self._waiting
        if control is not None:
            control.notify()

    def _report(self, fault: Optional[Fault]) -> None:
        if fault is not None and self.report_fault is not None:
            self.report_fault(fault)

    # Faults.

    def _staleness(self) -> Optional[Fault]:
        reading = self._reading
        if reading is None:
            return Fault(
                "not_ready",
                f"{self._robot.name}: no joint states of {', '.join(self.joint_names)} on "
                f"{self._driver.topic('joint_states')}: is the driver running?",
            )
        wall_age = time.monotonic() - self._received
        age = self._clock.now() - reading.time
        if self._hardware:
            stale = age > self.stale_age
        else:
            stale = (age > SIMULATED_STALE_AGE and wall_age > SIMULATED_STALE_WALL) or wall_age > LOST_WALL
        if not stale:
            return None
        if not self._publisher_answers():
            return Fault(
                "driver_lost",
                f"{self._robot.name}: the driver that published {self._driver.topic('joint_states')} is gone (last "
                f"message {wall_age:.1f} s ago): start it again, then resume",
            )
        return Fault(
            "stale_joint_states",
            f"{self._robot.name}: the last joint state is {max(age, wall_age):.2f} s old: check the network cable to "
            "the controller and the driver's output, then resume",
        )

    def _publisher_answers(self) -> bool:
        """Whether a node that claims to publish the joint states can be reached."""
        try:
            master = rosgraph.Master(rospy.get_name())
            publishers, _, _ = master.getSystemState()
            for node in dict(publishers).get(self._driver.topic("joint_states"), []):
                address = urlparse(master.lookupNode(node))
                with contextlib.suppress(OSError), socket.create_connection(
                    (address.hostname or "localhost", address.port or 0), timeout=0.5
                ):
                    return True
        except (OSError, rosgraph.MasterException):
            pass
        return False

    def _watch(self) -> None:
        """Reports stale joint states: that nothing comes can't be subscribed to."""
        healthy = False
        while not self._closed.wait(0.05):
            if self._reading is None:
                continue
            fault = self._staleness()
            if healthy and fault is not None:
                rospy.logerr("%s", fault.message)
                self._report(fault)
            healthy = fault is None

    def fault(self) -> Optional[Fault]:
        """What keeps the arm from obeying motions at this moment, or None."""
        return self._staleness() or self._own_fault()

    def what_is_missing(self) -> str:
        """One line on what :meth:`make_ready` still waits for, empty if nothing."""
        if self._reading is None:
            return f"joint states on {self._driver.topic('joint_states')}"
        if not self._hardware and self._reading.time > self._clock.now() + CLOCK_BEHIND:
            return "the simulator's /clock"
        missing = self._missing()
        if missing:
            return missing
        if not connected(self._trajectory):
            return f"the action {self._driver.action('follow_joint_trajectory')}"
        return ""

    # Arm.

    def reading(self) -> JointReading:
        """See :class:`iter_runner.robot.arm.Arm`."""
        reading, fault = self._reading, self._staleness()
        if fault is not None:
            raise fault
        assert reading is not None
        return reading

    def wait_for_reading(
        self, predicate: Callable[[JointReading], bool], control: RunControl, deadline: Optional[float] = None
    ) -> bool:
        """See :class:`iter_runner.robot.arm.Arm`."""
        return self._wait(lambda: predicate(self.reading()), control, deadline)

    def last_positions(self) -> Optional[Vector]:
        """The last joint positions (n,) rad that came, however old; None before the first."""
        return None if self._reading is None else self._reading.positions

    def wait_until(self, predicate: Callable[[], bool], control: RunControl, patience: Optional[float] = None) -> bool:
        """Looks at ``predicate`` at every message of the driver, for ``patience`` s of wall time; whether it held.

        Raises:
            Fault, Stopped: see RunControl.
        """
        limit = None if patience is None else time.monotonic() + patience
        self._wait(lambda: predicate() or (limit is not None and time.monotonic() > limit), control)
        return predicate()

    def _wait(self, predicate: Callable[[], bool], control: RunControl, deadline: Optional[float] = None) -> bool:
        """``control.wait_for`` that looks again at every message of the driver."""
        before, self._waiting = self._waiting, control
        try:
            return control.wait_for(predicate, deadline)
        finally:
            self._waiting = before

    def make_ready(self, control: RunControl, patience: float = 10.0) -> None:
        """See :class:`iter_runner.robot.arm.Arm`.

        Args:
            control: the run's.
            patience: wall time to wait for the driver's topics to appear, s.
        """
        self.wait_until(lambda: not self.what_is_missing(), control, patience)
        missing = self.what_is_missing()
        if missing:
            raise Fault(
                "not_ready",
                f"{self._robot.name}: waited {patience:.0f} s for {missing}: is the driver running? "
                f"(rosnode list; rostopic hz {self._driver.topic('joint_states')})",
            )
        # Who has just unlocked a stop need not wait for the driver to say so.
        if not self.wait_until(lambda: self.fault() is None, control, UNLOCKING):
            fault = self.fault()
            if fault is not None:
                raise fault

    def follow(self, path: JointPath, control: RunControl) -> None:
        """See :class:`iter_runner.robot.arm.Arm`.

        While the run is paused the arm stands; then the rest follows. Drivers are known to call a trajectory done that
        they ended early: the arm is measured, and the rest sent as well.

        Raises:
            Fault(short_trajectory): it still stands short of the end after :data:`SHORT_TRIES` of that.
            Fault(path_tolerance): it stands somewhere else altogether.
        """
        end = path.positions[-1]
        begun, tries, off = False, 0, math.inf
        try:
            while True:
                self._wait(lambda: not control.paused, control)
                rest = self._rest(path) if begun else self._begin(path)
                begun = True
                self._before_trajectory(control)
                expected = self._clock.now() + float(rest.times[-1])
                if not self._run_trajectory(rest, control):
                    self.wait_for_reading(stands_still, control)
                    continue
                at_rest = self._settle(end, expected, control)
                before, off = off, float(np.max(np.abs(self._missing_to(end))))
                # Where the rest brings it no closer, and it is close, that is as exact as the arm is.
                if off <= SHORT or (off <= FAR_SHORT and (tries == SHORT_TRIES or off > 0.8 * before)):
                    return
                if tries == SHORT_TRIES or not at_rest:
                    raise self._short_fault(end, tries)
                tries += 1
                rospy.logwarn(
                    f"{self._robot.name}: the driver called the trajectory done {off:.3f} rad off its end: the rest "
                    f"follows ({tries} of {SHORT_TRIES})"
                )
        except BaseException:
            self.halt()
            raise

    def _begin(self, path: JointPath) -> JointPath:
        """``path``, at whose start the arm is measured; raises Fault(path_tolerance) where it is not."""
        off = np.abs(self._missing_to(path.positions[0]))
        joint = int(np.argmax(off))
        if off[joint] > OFF_START:
            raise Fault(
                "path_tolerance",
                f"{self._robot.name}: {self.joint_names[joint]} is {off[joint]:.2f} rad off the trajectory's start: "
                "was the arm moved by hand, or by another node? When it may move, resume (it goes on from where it "
                "stands), or stop",
            )
        return path

    def _missing_to(self, end: Vector) -> Vector:
        """How far (n,) rad the arm is measured from ``end`` (n,) rad."""
        return end - nearest_turns(self.reading().positions, end, self._continuous)

    def _rest(self, path: JointPath) -> JointPath:
        """What is left of ``path`` from where the arm is measured; raises Fault(path_tolerance)."""
        here = in_turns_of(path, self.reading().positions, self._continuous)
        off = distance_from(path, here)
        if off > OFF_PATH:
            raise Fault(
                "path_tolerance",
                f"{self._robot.name}: the arm stands {off:.2f} rad off the trajectory that it was sent: was it moved "
                "by hand, or by another node? When it may move, resume (it goes on from where it stands), or stop",
            )
        return remaining_path(path, here)

    def _settle(self, end: Vector, expected: float, control: RunControl) -> bool:
        """Returns when the arm stands at ``end`` (n,) rad, or stands short of it for long enough to be believed.

        ``expected`` is when, on the study clock, it was to be there, s. By the readings' own time: the news that a
        trajectory is over may overtake those of where the arm is. False where it never came to rest.
        """
        judged = max(expected, self._clock.now()) + (SETTLING if self._hardware else SIMULATED_SETTLING)

        def settled(reading: JointReading) -> bool:
            there = float(np.max(np.abs(end - nearest_turns(reading.positions, end, self._continuous)))) <= SHORT
            return (stands_still(reading) and (there or reading.time > judged)) or reading.time > judged + RESTLESS

        self.wait_for_reading(settled, control)
        return stands_still(self.reading())

    def _short_fault(self, end: Vector, tries: int) -> Fault:
        off = np.abs(self._missing_to(end))
        joint = int(np.argmax(off))
        return Fault(
            "short_trajectory",
            f"{self._robot.name}: the driver calls the trajectory done, but {self.joint_names[joint]} is "
            f"{off[joint]:.3f} rad ({math.degrees(off[joint]):.1f} degrees) off its end (expected within "
            f"{FAR_SHORT:g} rad) after the rest of the way was sent {tries} times: {self._advice()}, or start "
            "the driver again, then resume",
        )

    def _run_trajectory(self, path: JointPath, control: RunControl) -> bool:
        """Runs one goal; True when it is done, False when a pause cut it short."""
        path = JointPath(self._as_driver_counts(path.positions), path.times)
        call = self._call = ActionCall(self._trajectory, trajectory_goal(self.joint_names, path), control)
        control.wait_for(lambda: call.finished or control.paused)
        if not call.finished:
            call.cancel()
            control.wait_for(lambda: call.finished)
        result = call.result
        if call.state == GoalStatus.SUCCEEDED and (
            result is None or result.error_code == FollowJointTrajectoryResult.SUCCESSFUL
        ):
            return True
        if call.taken_over and control.paused:
            return False
        # Why the controller gave up may be told a moment later, on another topic; what is reported is raised here.
        self.wait_until(lambda: self.fault() is not None, control, REASON_WALL)
        raise self._trajectory_fault(call)

    def _trajectory_fault(self, call: ActionCall) -> Fault:
        own = self.fault()
        if own is not None:  # why the controller gave up
            return own
        text, result = call.text, call.result
        code, meaning = "trajectory_rejected", "the controller refused the trajectory"
        if call.taken_over:
            code, meaning = "trajectory_preempted", "another node took the arm over"
        elif call.state == GoalStatus.LOST:
            code, meaning = "driver_lost", "the controller forgot the trajectory: did the driver restart?"
        elif result is not None and result.error_code in TRAJECTORY_FAULTS:
            code, meaning = TRAJECTORY_FAULTS[result.error_code]
            text = result.error_string or text
        elif call.state == GoalStatus.ABORTED:
            code, meaning = "trajectory_aborted", "the controller aborted the trajectory"
        detail = f" ({text})" if text else ""
        return Fault(code, f"{self._robot.name}: {meaning}{detail}: {self._advice()}, then resume or stop")

    def _may_move(self) -> bool:
        """Whether the arm has to be stopped: it does not surely stand, or follows a trajectory of ours.

        What stops a standing arm would, if it is late, stop the next motion.
        """
        call, reading = self._call, self._reading
        follows = call is not None and not call.finished
        unknown = reading is None or time.monotonic() - self._received > UNSEEN_WALL
        return follows or unknown or (reading is not None and not stands_still(reading))

    def halt(self) -> None:
        """See :class:`iter_runner.robot.arm.Arm`."""
        with contextlib.suppress(Exception):
            if self._call is not None:
                self._call.cancel()


ARMS: Dict[str, str] = {
    "ur": "iter_runner.robot.ros_ur:URArm",
    "kinova": "iter_runner.robot.ros_kinova:KinovaArm",
    "ros_control": "iter_runner.robot.ros_control_arm:RosControlArm",
}
"""Whose manners a driver has (its row's ``interface``), and the class that has them; imported when it is wanted, since
each needs its maker's messages."""


def connect_arm(
    robot: Robot,
    clock: Clock,
    transport: str = "",
    robot_ip: str = "",
    report_fault: Optional[Callable[[Fault], None]] = None,
) -> RosArm:
    """The arm of ``robot`` behind its driver.

    Args:
        robot: the robot's row.
        clock: the study clock.
        transport: how streamed targets travel, one of the row's ``transports``; empty: its first.
        robot_ip: the controller's address, for transports that go past the driver (rtde).
        report_fault: see :class:`RosArm`.

    Raises:
        RobotError: the robot has no such transport, or what the transport needs is missing.
    """
    module, _, name = ARMS[robot_driver(robot).interface].partition(":")
    arm_class: Type[Any] = getattr(importlib.import_module(module), name)
    arm: RosArm = arm_class(robot, clock, report_fault, check_transport(robot, transport, robot_ip), robot_ip)
    return arm
