"""The embedded cell behind what all drivers of arms have on the ROS graph: joint states, trajectories, a gripper.

One thread steps the cell, publishes and paces; callbacks of other threads only put what came into its inbox.
"""

from __future__ import annotations

import os
import queue
import struct
import sys
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from operator import itemgetter
from typing import Any, Callable, Dict, Generic, List, Optional, Sequence

import rospy
from actionlib import ActionServer
from actionlib.server_goal_handle import ServerGoalHandle
from actionlib_msgs.msg import GoalStatus
from control_msgs.msg import (
    FollowJointTrajectoryAction,
    FollowJointTrajectoryFeedback,
    FollowJointTrajectoryResult,
    GripperCommandAction,
    GripperCommandFeedback,
    GripperCommandResult,
)
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import MarkerArray

from iter_runner.kinematics.urdf import Urdf
from iter_runner.msg import Scene
from iter_runner.robot.table import Driver, GripperRow, Robot
from iter_runner.sim import trajectory
from iter_runner.sim.arm_controller import Happening
from iter_runner.sim.faults import FaultError, parse_faults
from iter_runner.sim.lock_step import LockStep
from iter_runner.sim.ros_direct import DirectPublisher, JointStatePacker
from iter_runner.sim.ros_scene import bodies_of, markers_of, scene_of
from iter_runner.sim.trajectory import Goal, Point, Rejected, Tolerance
from iter_runner.sim.workcell import Cell, ControllerT

JOINT_STATES = "/joint_states"  # where robot_state_publisher and its like look for those of the whole robot
CLOCK_PERIOD = 0.008  # s between messages on /clock
GRIPPER_PERIOD = 0.04  # s between joint states of the fingers
SLOW_PERIOD = 0.1  # s between feedback, held objects' poses and wrenches
STATUS_WALL = 0.2  # s of wall time between action status messages
STATUS_KEPT_WALL = 5.0  # s of wall time for which they name a goal that has ended
FASTEST = 200.0  # simulated seconds in a real one that ``rate`` 0 reaches at most, or nearly
CATCH_UP_WALL = 0.05  # s that a simulation at another rate than 1 may make up after a delay
SLEEP_WALL = 0.0005  # s ahead of the wall before it pays to sleep
ANSWER_WALL = 10.0  # s that a service call waits for the simulation


class RosFace(Generic[ControllerT]):
    """Serves one cell on the ROS graph. Make it after ``rospy.init_node(..., disable_rostime=True)``.

    What all drivers have is here; what one has of its own is in the classes derived from this one.

    Args:
        cell: what is simulated.
        robot, driver, gripper: the rows whose names it answers on.
        urdf: the robot's description, for the frames of scenes.
        rate: simulated seconds in a real one; 0 for as many as there can be.
        begin: s on /clock at power-on, a whole number.
        serve_gripper: False where another node drives the gripper: then the fingers are where its joint states on
            /joint_states say.
    """

    def __init__(
        self,
        cell: Cell[ControllerT],
        robot: Robot,
        driver: Driver,
        gripper: GripperRow,
        urdf: Urdf,
        rate: float = 1.0,
        begin: int = 0,
        serve_gripper: bool = True,
    ) -> None:
        self.cell = cell
        self._begin_ns = begin * 1_000_000_000
        self.rate = rate
        self._robot = robot
        self._driver = driver
        self._gripper = gripper
        self._urdf = urdf
        self._serves_gripper = serve_gripper
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        controller = cell.controller
        self._cycle_ns = round(controller.cycle * 1e9)
        self._clock_every = max(1, round(CLOCK_PERIOD / controller.cycle))
        self._gripper_every = max(1, round(GRIPPER_PERIOD / controller.cycle))
        self._slow_every = max(1, round(SLOW_PERIOD / controller.cycle))
        self._lock_step = LockStep(self._clock_every)
        self._trajectories: Dict[Any, ServerGoalHandle] = {}
        self._grips: Dict[str, ServerGoalHandle] = {}
        self._shown = -1
        self._markers_shown = 0
        self._status_at = 0.0

        self._clock_format = struct.Struct("<3I")
        self._joint_states = DirectPublisher(driver.topic("joint_states"), JointState)
        self._clock = DirectPublisher("/clock", Clock)
        self._set_time()
        self._begin_joint_states()
        self._objects = latched("/simulator/objects", Scene)
        self._markers = latched("/simulator/markers", MarkerArray)
        self._objects.publish(scene_of([], robot.base_frame))
        self._subscribers = [
            self._on("/simulator/inject_fault", String, lambda message: self._inject(message.data)),
            self._on("/runner/scene", Scene, self._scene),
        ]
        if not serve_gripper:
            self._joint_states.skip_own()
            self._subscribers.append(rospy.Subscriber(JOINT_STATES, JointState, self._on_fingers, tcp_nodelay=True))
        self._services: List[rospy.Service] = []
        self._advertise()

        # Status is published by the loop: actionlib's own timer would wake with every message on the clock.
        rospy.set_param("~actionlib_status_frequency", 0.0)
        self._trajectory_server = ActionServer(
            driver.action("follow_joint_trajectory"),
            FollowJointTrajectoryAction,
            lambda goal: self._inbox.put(partial(self._trajectory_goal, goal)),
            lambda goal: self._inbox.put(partial(self._trajectory_cancel, goal)),
            auto_start=False,
        )
        self._servers = [self._trajectory_server]
        if serve_gripper:
            self._servers.append(
                ActionServer(
                    gripper.action,
                    GripperCommandAction,
                    lambda goal: self._inbox.put(partial(self._gripper_goal, goal)),
                    lambda goal: self._inbox.put(partial(self._gripper_cancel, goal)),
                    auto_start=False,
                )
            )
        for server in self._servers:
            server.start()
            # How long a goal that has ended stays in the status, on a clock that may run many times faster than the
            # result travels: a client that saw the status without its goal first would call the goal lost.
            server.status_list_timeout = rospy.Duration.from_sec(STATUS_KEPT_WALL * (rate if rate > 0 else FASTEST))

    # ---- what a driver has of its own ----

    def _advertise(self) -> None:
        """Its topics and services."""

    def _begin_joint_states(self) -> None:
        """Sets up how :meth:`_publish_joint_states` packs them: as joint_state_controller does, alphabetically."""
        names = self.cell.controller.model.joint_names
        order = sorted(range(len(names)), key=lambda j: names[j])
        self._sorted: Callable[[Sequence[float]], Any] = itemgetter(*order) if len(order) > 1 else tuple
        self._arm_packer = JointStatePacker(sorted(names))
        self._finger_packer = JointStatePacker(self._gripper.joints)
        self._fingers = len(self._gripper.joints)  # all driven ones stand at the hand's position

    def _publish_joint_states(self, cycles: int, nanoseconds: int) -> None:
        """The arm's every cycle, the fingers' in messages of their own."""
        controller = self.cell.controller
        in_order = self._sorted
        self._joint_states.write(self._arm_packer.pack(nanoseconds, in_order(controller.q), in_order(controller.v)))
        if cycles % self._gripper_every == 0 and self._serves_gripper:
            self._joint_states.write(self._packed_fingers(nanoseconds))

    def _packed_fingers(self, nanoseconds: int) -> bytes:
        hand, count = self.cell.hand, self._fingers
        return self._finger_packer.pack(nanoseconds, (hand.position,) * count, (hand.velocity,) * count)

    def _on(self, topic: str, message_class: type, act: Callable[[Any], None]) -> rospy.Subscriber:
        """Has the loop call ``act`` with every message."""
        return rospy.Subscriber(
            topic, message_class, lambda message: self._inbox.put(partial(act, message)), tcp_nodelay=True
        )

    # ---- services: run by the loop, answered by rospy's thread ----

    def _ask(self, act: Callable[[], Any], otherwise: Any) -> Any:
        """What ``act`` returns, once the loop has called it between two cycles; ``otherwise`` if it stands still."""
        future: Future[Any] = Future()
        self._inbox.put(lambda: future.set_result(act()))
        try:
            return future.result(ANSWER_WALL)
        except FutureTimeout:
            return otherwise

    # ---- what comes in, called by the loop ----

    def _inject(self, text: str) -> None:
        try:
            for fault in parse_faults(text):
                self.cell.inject(fault)
            rospy.loginfo("Fault to come: %s", text)
        except FaultError as error:
            rospy.logerr("%s", error)

    def _scene(self, message: Scene) -> None:
        bodies, faults = bodies_of(message, self._urdf, self._robot.base_frame)
        for fault in faults:
            rospy.logerr("Scene: %s", fault)
        if message.changed:
            self.cell.world.update(bodies, message.changed)
        else:
            self.cell.world.replace(bodies, self.cell.flange())

    def _trajectory_goal(self, handle: ServerGoalHandle) -> None:
        if handle.get_goal_status().status != GoalStatus.PENDING:
            handle.set_canceled(FollowJointTrajectoryResult(), "cancelled before it began")
            return
        key = handle.get_goal_id().id
        try:
            replaced = self.cell.controller.send_goal(goal_of(handle.get_goal(), self._now()), key)
        except Rejected as error:
            rospy.logerr("Trajectory refused: %s", error)
            result = FollowJointTrajectoryResult(error_code=error.code, error_string=str(error))
            handle.set_rejected(result, str(error))
            return
        self._lock_step.other_came()
        if replaced is not None:
            self._cancelled(replaced, "another goal took its place")
        self._trajectories[key] = handle
        handle.set_accepted()

    def _trajectory_cancel(self, handle: ServerGoalHandle) -> None:
        key = handle.get_goal_id().id
        if self.cell.controller.cancel_goal(key):
            self._cancelled(key, "cancelled")

    def _cancelled(self, key: str, text: str) -> None:
        handle = self._trajectories.pop(key, None)
        if handle is not None:
            handle.set_canceled(FollowJointTrajectoryResult(), text)

    def _gripper_goal(self, handle: ServerGoalHandle) -> None:
        if handle.get_goal_status().status != GoalStatus.PENDING:
            handle.set_canceled(GripperCommandResult(), "cancelled before it began")
            return
        command = handle.get_goal().command
        if not (abs(command.position) < 1e6 and abs(command.max_effort) < 1e6):
            handle.set_rejected(GripperCommandResult(), f"a position in rad expected, {command.position} found")
            return
        key = handle.get_goal_id().id
        self._grips[key] = handle
        handle.set_accepted()
        replaced = self.cell.hand.command(command.position, command.max_effort, key)
        if replaced is not None and replaced in self._grips:
            self._grips.pop(replaced).set_canceled(self._grip_result(False, False), "another goal took its place")

    def _gripper_cancel(self, handle: ServerGoalHandle) -> None:
        key = handle.get_goal_id().id
        if self.cell.hand.cancel(key):
            self._grips.pop(key).set_canceled(self._grip_result(False, False), "cancelled")

    def _grip_result(self, stalled: bool, reached: bool, effort: float = 0.0) -> GripperCommandResult:
        return GripperCommandResult(
            position=self.cell.hand.position, effort=effort, stalled=stalled, reached_goal=reached
        )

    def _on_fingers(self, message: JointState) -> None:
        """Joint states, the hand's among them; in rospy's thread."""
        for name, position in zip(message.name, message.position):
            if name == self._gripper.joints[0]:
                self._inbox.put(partial(self.cell.hand.follow, position))
                return

    # ---- what goes out ----

    def _now(self) -> rospy.Time:
        return rospy.Time(*divmod(self._begin_ns + self.cell.controller.cycles * self._cycle_ns, 1_000_000_000))

    def _set_time(self) -> None:
        """This node's own ROS time: what actionlib and the log stamp with. It does not listen to its own clock."""
        rospy.rostime._set_rostime(self._now())

    def _publish_cycle(self) -> None:
        cell = self.cell
        controller = cell.controller
        cycles = controller.cycles
        nanoseconds = self._begin_ns + cycles * self._cycle_ns
        if not cell.stale:
            self._publish_joint_states(cycles, nanoseconds)
        if cycles % self._clock_every == 0:
            self._set_time()
            self._clock.write(self._clock_format.pack(8, *divmod(nanoseconds, 1_000_000_000)))
        if controller.happenings:
            happenings, controller.happenings = controller.happenings, []
            for happening in happenings:
                self._tell(happening)
        if cell.hand.results:
            self._tell_grips()
        if cycles % self._slow_every == 0:
            self._publish_slow()

    def _tell(self, happening: Happening) -> None:
        kind, value = happening
        if kind == "log":
            level, text = value
            (rospy.logerr if level == "error" else rospy.loginfo)("%s", text)
        elif kind == "trajectory_cancelled":
            self._cancelled(*value)
        elif kind == "trajectory_done":
            key, code, text = value
            handle = self._trajectories.pop(key, None)
            if handle is None:  # nobody waits for it
                return
            result = FollowJointTrajectoryResult(error_code=code, error_string=text)
            if code == trajectory.SUCCESSFUL:
                handle.set_succeeded(result)
            else:
                rospy.logwarn("Trajectory aborted: %s", text)
                handle.set_aborted(result, text)

    def _tell_grips(self) -> None:
        hand = self.cell.hand
        results, hand.results = hand.results, []
        for done in results:
            handle = self._grips.pop(done.handle)
            result = self._grip_result(done.stalled, done.reached_goal, done.effort)
            if done.failed:
                handle.set_aborted(result, "the fingers do not move")
            else:
                handle.set_succeeded(result)
        self._publish_objects()

    def _publish_slow(self) -> None:
        cell = self.cell
        following = cell.controller.following
        if following is not None and following.handle in self._trajectories:
            self._trajectories[following.handle].publish_feedback(self._feedback())
        if cell.hand.moving and cell.hand.handle in self._grips:
            result = self._grip_result(False, False)
            feedback = GripperCommandFeedback(result.position, result.effort, result.stalled, result.reached_goal)
            self._grips[cell.hand.handle].publish_feedback(feedback)
        self._publish_objects()
        now = time.monotonic()
        if now > self._status_at + STATUS_WALL:
            self._status_at = now
            for server in self._servers:
                server.publish_status()

    def _publish_objects(self) -> None:
        world = self.cell.world
        if world.held is not None:
            world.carry(self.cell.flange())
        if world.changes == self._shown:
            return
        self._shown = world.changes
        bodies = world.listing()
        scene = scene_of(bodies, self._robot.base_frame, self._now())
        self._objects.publish(scene)
        # The latch has to hold the last markers even while nobody looks.
        self._markers.publish(markers_of(scene, self._markers_shown))
        self._markers_shown = len(bodies)

    def _feedback(self) -> FollowJointTrajectoryFeedback:
        controller = self.cell.controller
        following = controller.following
        assert following is not None
        feedback = FollowJointTrajectoryFeedback()
        feedback.header.stamp = self._now()
        feedback.joint_names = list(controller.model.joint_names)
        desired, speeds = following.desired, following.desired_velocity
        feedback.desired = JointTrajectoryPoint(positions=desired, velocities=speeds)
        feedback.actual = JointTrajectoryPoint(positions=controller.q, velocities=controller.v)
        feedback.error = JointTrajectoryPoint(
            positions=[a - b for a, b in zip(desired, controller.q)],
            velocities=[a - b for a, b in zip(speeds, controller.v)],
        )
        feedback.desired.time_from_start = rospy.Duration.from_sec(max(following.time, 0.0))
        return feedback

    # ---- the loop ----

    @property
    def time(self) -> float:
        """The moment on /clock, s."""
        return 1e-9 * self._begin_ns + self.cell.controller.time

    def run(self, told_to_end: threading.Event) -> None:
        """Steps the cell until ``told_to_end`` is set or the node is shut down."""
        try:
            self._loop(told_to_end)
        except rospy.ROSException:
            if not rospy.is_shutdown():  # publishers close while the last cycle runs
                raise

    def _loop(self, told_to_end: threading.Event) -> None:
        # A callback thread gets the interpreter this soon even while the loop is busy.
        sys.setswitchinterval(0.0005)
        period = self.cell.controller.cycle / self.rate if self.rate > 0 else 0.0
        slack = 0.0 if self.rate == 1.0 else CATCH_UP_WALL
        inbox = self._inbox
        due = time.monotonic()
        while not (told_to_end.is_set() or rospy.is_shutdown()):
            while not inbox.empty():
                inbox.get_nowait()()
            if self.rate != 1.0 and self._lock_step.holds(self.cell.controller.cycles):
                self._hold()
            self.cell.step()
            self._publish_cycle()
            if self.cell.dead:
                rospy.logerr("The driver dies (injected fault).")
                os._exit(1)
            if period == 0.0:
                continue
            due += period
            ahead = due - time.monotonic()
            if ahead > SLEEP_WALL:
                time.sleep(ahead)
            elif ahead < -slack:
                due -= ahead + slack  # too slow for the rate: simulated time lags, no cycle is skipped

    def _hold(self) -> None:
        """Waits for the next streamed target."""
        deadline = time.monotonic() + self._lock_step.patience
        while self._lock_step.holds(self.cell.controller.cycles):
            left = deadline - time.monotonic()
            try:
                act: Optional[Callable[[], None]] = self._inbox.get(timeout=left) if left > 0 else None
            except queue.Empty:
                act = None
            if act is None:
                self._lock_step.waited_in_vain()
                return
            act()


def latched(topic: str, message_class: type) -> rospy.Publisher:
    """A publisher whose last message a late subscriber gets, too."""
    return rospy.Publisher(topic, message_class, queue_size=10, latch=True, tcp_nodelay=True)


def trajectory_of(message: JointTrajectory, now: rospy.Time) -> Goal:
    """The goal of a trajectory_msgs/JointTrajectory, which has no tolerances."""
    stamp = message.header.stamp
    points: List[Point] = [
        Point(
            point.time_from_start.to_sec(), tuple(point.positions), tuple(point.velocities), tuple(point.accelerations)
        )
        for point in message.points
    ]
    return Goal(message.joint_names, points, delay=(stamp - now).to_sec() if stamp else 0.0)


def goal_of(message: Any, now: rospy.Time) -> Goal:
    """The goal of a FollowJointTrajectoryGoal."""
    return trajectory_of(message.trajectory, now)._replace(
        path_tolerance={item.name: Tolerance(item.position, item.velocity) for item in message.path_tolerance},
        goal_tolerance={item.name: Tolerance(item.position, item.velocity) for item in message.goal_tolerance},
        goal_time_tolerance=message.goal_time_tolerance.to_sec(),
    )
