"""The embedded workcell behind the names and types of ur_robot_driver and of a gripper's driver.

One thread steps the cell, publishes and paces; callbacks of other threads only put what came into its inbox. Joint
states and the clock, thousands of messages a second in a fast simulation, are packed by hand and written to the
subscribers' sockets directly: rospy's own way costs a thread and two context switches for each message and subscriber.
"""

from __future__ import annotations

import os
import queue
import struct
import sys
import threading
import time
import warnings
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

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
from geometry_msgs.msg import WrenchStamped
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64, String
from std_srvs.srv import Trigger, TriggerResponse
from trajectory_msgs.msg import JointTrajectoryPoint
from ur_dashboard_msgs.msg import RobotMode, SafetyMode
from ur_dashboard_msgs.srv import (
    GetRobotMode,
    GetRobotModeResponse,
    GetSafetyMode,
    GetSafetyModeResponse,
    IsProgramRunning,
    IsProgramRunningResponse,
)
from ur_msgs.srv import (
    SetIO,
    SetIORequest,
    SetIOResponse,
    SetPayload,
    SetPayloadResponse,
    SetSpeedSliderFraction,
    SetSpeedSliderFractionResponse,
)
from visualization_msgs.msg import MarkerArray

from iter_runner.kinematics.urdf import Urdf
from iter_runner.msg import Scene
from iter_runner.robot.table import Driver, GripperRow, Robot
from iter_runner.sim import trajectory
from iter_runner.sim.controller import Happening, ProgramError
from iter_runner.sim.faults import FaultError, parse_faults
from iter_runner.sim.lock_step import LockStep
from iter_runner.sim.ros_scene import bodies_of, markers_of, scene_of
from iter_runner.sim.trajectory import Goal, Point, Rejected, Tolerance
from iter_runner.sim.urscript import CompileError
from iter_runner.sim.workcell import Workcell

CLOCK_PERIOD = 0.008  # s between messages on /clock
GRIPPER_PERIOD = 0.04  # s between joint states of the fingers
SLOW_PERIOD = 0.1  # s between feedback, held objects' poses and wrenches
STATUS_WALL = 0.2  # s of wall time between action status messages
STATUS_KEPT_WALL = 5.0  # s of wall time for which they name a goal that has ended
FASTEST = 200.0  # simulated seconds in a real one that ``rate`` 0 reaches at most, or nearly
CATCH_UP_WALL = 0.05  # s that a simulation at another rate than 1 may make up after a delay
SLEEP_WALL = 0.0005  # s ahead of the wall before it pays to sleep
ANSWER_WALL = 10.0  # s that a service call waits for the simulation


class DirectPublisher:
    """Publishes packed messages of one type straight to the subscribers' sockets, never blocking.

    A subscriber that does not read loses messages, whole ones, as with a publisher's full queue.
    """

    def __init__(self, topic: str, message_class: type) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # no queue: rospy starts no thread for a connection
            self._publisher = rospy.Publisher(topic, message_class, tcp_nodelay=True, queue_size=None)
        self._rest: Dict[Any, bytes] = {}

    def write(self, data: bytes) -> None:
        """Writes one message with its length in front to every subscriber."""
        for connection in self._publisher.impl.connections or ():  # None once rospy has shut down
            sock = connection.socket
            if sock is None:
                continue
            try:
                rest = self._rest.pop(connection, None) if self._rest else None
                if rest is not None and not self._send(connection, sock, rest):
                    continue
                self._send(connection, sock, data)
            except OSError:
                self._publisher.impl.remove_connection(connection)

    def _send(self, connection: Any, sock: Any, data: bytes) -> bool:
        """Whether all of it went out; what is left of a message that was begun goes first next time."""
        try:
            sent = sock.send(data, _DO_NOT_WAIT)
        except BlockingIOError:
            return False
        if sent < len(data):
            self._rest[connection] = data[sent:]
            return False
        return True


_DO_NOT_WAIT = 0x40 | 0x4000  # MSG_DONTWAIT | MSG_NOSIGNAL on Linux


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


class JointStatePacker:
    """Packs sensor_msgs/JointState of always the same joints; see the message's definition for the layout."""

    def __init__(self, names: Sequence[str]) -> None:
        n = len(names)
        head = _string("") + struct.pack("<I", n) + b"".join(_string(name) for name in names)
        self._format = struct.Struct(f"<4I{len(head)}sI{n}dI{n}dI{n}d")
        self._head = head
        self._length = self._format.size - 4
        self._n = n
        self._zeros = (0.0,) * n
        self._sequence = 0

    def pack(self, nanoseconds: int, positions: Sequence[float], velocities: Sequence[float]) -> bytes:
        """The message with its length in front, as TCPROS sends it; efforts are 0."""
        self._sequence += 1
        seconds, rest = divmod(nanoseconds, 1_000_000_000)
        n = self._n
        return self._format.pack(
            self._length, self._sequence, seconds, rest, self._head, n, *positions, n, *velocities, n, *self._zeros
        )


class RosFace:
    """Serves one workcell on the ROS graph. Make it after ``rospy.init_node(..., disable_rostime=True)``.

    Args:
        cell: what is simulated.
        robot, driver, gripper: the rows whose names it answers on.
        urdf: the robot's description, for the frames of scenes.
        rate: simulated seconds in a real one; 0 for as many as there can be.
        begin: s on /clock at power-on, a whole number.
    """

    def __init__(
        self,
        cell: Workcell,
        robot: Robot,
        driver: Driver,
        gripper: GripperRow,
        urdf: Urdf,
        rate: float = 1.0,
        begin: int = 0,
    ) -> None:
        self.cell = cell
        self._begin_ns = begin * 1_000_000_000
        self.rate = rate
        self._robot = robot
        self._urdf = urdf
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        controller = cell.controller
        self._cycle_ns = round(controller.cycle * 1e9)
        self._clock_every = max(1, round(CLOCK_PERIOD / controller.cycle))
        self._gripper_every = max(1, round(GRIPPER_PERIOD / controller.cycle))
        self._slow_every = max(1, round(SLOW_PERIOD / controller.cycle))
        self._lock_step = LockStep(self._clock_every)
        self._trajectories: Dict[str, ServerGoalHandle] = {}
        self._grips: Dict[str, ServerGoalHandle] = {}
        self._shown = -1
        self._markers_shown = 0
        self._status_at = 0.0

        names = controller.model.joint_names
        self._order = sorted(range(len(names)), key=lambda j: names[j])
        self._arm_packer = JointStatePacker([names[j] for j in self._order])
        self._finger_packer = JointStatePacker(gripper.joints)
        self._fingers = len(gripper.joints)  # all driven ones stand at the hand's position
        self._clock_format = struct.Struct("<3I")
        self._joint_states = DirectPublisher(driver.topic("joint_states"), JointState)
        self._clock = DirectPublisher("/clock", Clock)
        self._set_time()
        self._advertise(driver)
        self._serve(driver)

        # Status is published by the loop: actionlib's own timer would wake with every message on the clock.
        rospy.set_param("~actionlib_status_frequency", 0.0)
        self._trajectory_server = ActionServer(
            driver.action("follow_joint_trajectory"),
            FollowJointTrajectoryAction,
            lambda goal: self._inbox.put(partial(self._trajectory_goal, goal)),
            lambda goal: self._inbox.put(partial(self._trajectory_cancel, goal)),
            auto_start=False,
        )
        self._gripper_server = ActionServer(
            gripper.action,
            GripperCommandAction,
            lambda goal: self._inbox.put(partial(self._gripper_goal, goal)),
            lambda goal: self._inbox.put(partial(self._gripper_cancel, goal)),
            auto_start=False,
        )
        for server in (self._trajectory_server, self._gripper_server):
            server.start()
            # How long a goal that has ended stays in the status, on a clock that may run many times faster than the
            # result travels: a client that saw the status without its goal first would call the goal lost.
            server.status_list_timeout = rospy.Duration.from_sec(STATUS_KEPT_WALL * (rate if rate > 0 else FASTEST))

    # ---- the names on the graph ----

    def _advertise(self, driver: Driver) -> None:
        def latched(topic: str, message_class: type) -> rospy.Publisher:
            return rospy.Publisher(topic, message_class, queue_size=10, latch=True, tcp_nodelay=True)

        controller = self.cell.controller
        self._publishers = {
            "robot_mode": latched(driver.topic("robot_mode"), RobotMode),
            "safety_mode": latched(driver.topic("safety_mode"), SafetyMode),
            "program_running": latched(driver.topic("robot_program_running"), Bool),
            "scaling": latched(driver.topic("speed_scaling_factor"), Float64),
        }
        self._objects = latched("/simulator/objects", Scene)
        self._markers = latched("/simulator/markers", MarkerArray)
        self._wrench = rospy.Publisher(driver.topic("wrench"), WrenchStamped, queue_size=1)
        self._publishers["robot_mode"].publish(RobotMode(mode=controller.robot_mode))
        self._publishers["safety_mode"].publish(SafetyMode(mode=controller.safety_mode))
        self._publishers["program_running"].publish(Bool(data=controller.external_control))
        self._publishers["scaling"].publish(Float64(data=controller.scaling))
        self._objects.publish(scene_of([], self._robot.base_frame))
        topics = [(driver.topic("script_command"), self._script), ("/simulator/inject_fault", self._inject)]
        self._subscribers = [
            rospy.Subscriber(
                topic, String, lambda message, act=act: self._inbox.put(partial(act, message.data)), tcp_nodelay=True
            )
            for topic, act in topics
        ]
        self._subscribers.append(
            rospy.Subscriber("/runner/scene", Scene, lambda message: self._inbox.put(partial(self._scene, message)))
        )

    def _serve(self, driver: Driver) -> None:
        controller = self.cell.controller
        actions: Dict[str, Callable[[], Tuple[bool, str]]] = {
            "resend_robot_program": self._resend,
            "zero_ftsensor": lambda: (True, "Zeroed"),
            "power_on": controller.power_on,
            "power_off": controller.power_off,
            "brake_release": controller.brake_release,
            "play": controller.play,
            "pause": controller.pause,
            "stop": controller.stop,
            "unlock_protective_stop": controller.unlock_protective_stop,
            "close_safety_popup": self._close_popup,
            "restart_safety": controller.restart_safety,
        }
        self._services = [
            rospy.Service(driver.service(purpose), Trigger, partial(self._trigger, act))
            for purpose, act in actions.items()
        ]
        dashboard = driver.service("play").rsplit("/", 1)[0]
        self._services += [
            rospy.Service(f"{dashboard}/close_popup", Trigger, partial(self._trigger, self._close_popup)),
            rospy.Service(driver.service("set_speed_slider"), SetSpeedSliderFraction, self._set_speed_slider),
            rospy.Service(driver.service("set_io"), SetIO, self._set_io),
            rospy.Service(driver.service("set_payload"), SetPayload, lambda _: SetPayloadResponse(success=True)),
            rospy.Service(f"{dashboard}/get_robot_mode", GetRobotMode, self._get_robot_mode),
            rospy.Service(f"{dashboard}/get_safety_mode", GetSafetyMode, self._get_safety_mode),
            rospy.Service(f"{dashboard}/program_running", IsProgramRunning, self._is_program_running),
        ]

    # ---- services: run by the loop, answered by rospy's thread ----

    def _ask(self, act: Callable[[], Any], otherwise: Any) -> Any:
        """What ``act`` returns, once the loop has called it between two cycles; ``otherwise`` if it stands still."""
        future: Future[Any] = Future()
        self._inbox.put(lambda: future.set_result(act()))
        try:
            return future.result(ANSWER_WALL)
        except FutureTimeout:
            return otherwise

    def _trigger(self, act: Callable[[], Tuple[bool, str]], _request: Any) -> TriggerResponse:
        success, message = self._ask(act, (False, "the simulation stands still"))
        return TriggerResponse(success=success, message=message)

    def _resend(self) -> Tuple[bool, str]:
        self._lock_step.other_came()
        return self.cell.controller.start_external_control()

    def _close_popup(self) -> Tuple[bool, str]:
        self.cell.controller.popup = None
        return True, "closing popup"

    def _set_speed_slider(self, request: Any) -> SetSpeedSliderFractionResponse:
        fraction = request.speed_slider_fraction
        if not 0.01 <= fraction <= 1.0:
            rospy.logerr("speed slider: 0.01 to 1 expected, %s found", fraction)
            return SetSpeedSliderFractionResponse(success=False)

        def act() -> bool:
            self.cell.controller.slider = fraction
            return True

        return SetSpeedSliderFractionResponse(success=self._ask(act, False))

    def _set_io(self, request: SetIORequest) -> SetIOResponse:
        def act() -> bool:
            if request.fun == SetIORequest.FUN_SET_DIGITAL_OUT:
                try:
                    self.cell.controller.set_output(request.pin, request.state != 0.0)
                except ProgramError as error:
                    rospy.logerr("set_io: %s", error)
                    return False
            return SetIORequest.FUN_SET_DIGITAL_OUT <= request.fun <= SetIORequest.FUN_SET_TOOL_VOLTAGE

        return SetIOResponse(success=self._ask(act, False))

    def _get_robot_mode(self, _request: Any) -> GetRobotModeResponse:
        mode = self.cell.controller.robot_mode
        return GetRobotModeResponse(robot_mode=RobotMode(mode=mode), answer=f"Robotmode: {mode.name}", success=True)

    def _get_safety_mode(self, _request: Any) -> GetSafetyModeResponse:
        mode = self.cell.controller.safety_mode
        return GetSafetyModeResponse(safety_mode=SafetyMode(mode=mode), answer=f"Safetymode: {mode.name}", success=True)

    def _is_program_running(self, _request: Any) -> IsProgramRunningResponse:
        controller = self.cell.controller
        running = controller.external_control or (controller.program is not None and not controller.program_paused)
        answer = f"Program running: {str(running).lower()}"
        return IsProgramRunningResponse(answer=answer, program_running=running, success=True)

    # ---- what comes in, called by the loop ----

    def _script(self, text: str) -> None:
        try:
            lasts = self.cell.run_script(text, CLOCK_PERIOD)
        except CompileError as error:
            rospy.logerr("Script refused: %s", error)
            return
        if lasts > 0.0:
            controller = self.cell.controller
            self._lock_step.target_came(controller.cycles, lasts / controller.cycle)
        else:
            self._lock_step.other_came()

    def _inject(self, text: str) -> None:
        try:
            for fault in parse_faults(text):
                self.cell.inject(fault)
        except FaultError as error:
            rospy.logerr("%s", error)

    def _scene(self, message: Scene) -> None:
        bodies, faults = bodies_of(message, self._urdf, self._robot.base_frame)
        for fault in faults:
            rospy.logerr("Scene: %s", fault)
        self.cell.world.replace(bodies, self.cell.flange())

    def _trajectory_goal(self, handle: ServerGoalHandle) -> None:
        if handle.get_goal_status().status != GoalStatus.PENDING:
            handle.set_canceled(FollowJointTrajectoryResult(), "cancelled before it began")
            return
        key = handle.get_goal_id().id
        try:
            replaced = self.cell.controller.send_goal(_goal_of(handle.get_goal(), self._now()), key)
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
            q, v, order = controller.q, controller.v, self._order
            data = self._arm_packer.pack(nanoseconds, [q[j] for j in order], [v[j] for j in order])
            self._joint_states.write(data)
            if cycles % self._gripper_every == 0:
                hand = cell.hand
                position, velocity = (hand.position,) * self._fingers, (hand.velocity,) * self._fingers
                self._joint_states.write(self._finger_packer.pack(nanoseconds, position, velocity))
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
        if kind == "robot_mode":
            self._publishers[kind].publish(RobotMode(mode=value))
        elif kind == "safety_mode":
            self._publishers[kind].publish(SafetyMode(mode=value))
        elif kind == "program_running":
            self._publishers[kind].publish(Bool(data=value))
        elif kind == "scaling":
            self._publishers[kind].publish(Float64(data=value))
        elif kind == "log":
            level, text = value
            (rospy.logerr if level == "error" else rospy.loginfo)("%s", text)
        elif kind == "popup":
            rospy.logwarn("Popup: %s", value)
        elif kind == "output":
            rospy.loginfo("Digital output %d is %s", value[0], "on" if value[1] else "off")
        elif kind == "trajectory_cancelled":
            self._cancelled(*value)
        elif kind == "trajectory_done":
            key, code, text = value
            handle = self._trajectories.pop(key)
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
        if self._wrench.get_num_connections():
            message = WrenchStamped()
            message.header.stamp, message.header.frame_id = self._now(), self._robot.tool_frame
            self._wrench.publish(message)
        now = time.monotonic()
        if now > self._status_at + STATUS_WALL:
            self._status_at = now
            self._trajectory_server.publish_status()
            self._gripper_server.publish_status()

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


def _goal_of(message: Any, now: rospy.Time) -> Goal:
    """The goal of a FollowJointTrajectoryGoal."""
    stamp = message.trajectory.header.stamp
    points: List[Point] = [
        Point(
            point.time_from_start.to_sec(), tuple(point.positions), tuple(point.velocities), tuple(point.accelerations)
        )
        for point in message.trajectory.points
    ]
    return Goal(
        joint_names=message.trajectory.joint_names,
        points=points,
        delay=(stamp - now).to_sec() if stamp else 0.0,
        path_tolerance={item.name: Tolerance(item.position, item.velocity) for item in message.path_tolerance},
        goal_tolerance={item.name: Tolerance(item.position, item.velocity) for item in message.goal_tolerance},
        goal_time_tolerance=message.goal_time_tolerance.to_sec(),
    )
