"""RelaxedIK behind the topics of its public ROS 1 wrapper: end-effector goals in, joint solutions out.

Parameters:
    ~robot (str, ur5): a row of config/robots/, or the path of such a YAML file.
    ~tool_frame (str, ""): the frame that goals are poses of; empty: the robot's row's.
    ~drive (bool, true): stream the solutions to the arm; false: publish them only, from the tucked pose on.
    ~speed (float, 0.25): m/s of the tool frame at most, up to 0.5.
    ~turn_speed (float, 1.0): rad/s of the tool frame at most, up to 3.
    ~goal_timeout (float, 0.3): s after which a goal that was not repeated is stale, up to 2.
    ~table_height (float, none): m, in the robot's base frame: the arm keeps above it.
    ~transport (str, ""): how joint targets travel, one of the robot's row's transports; empty: its first.
    ~robot_ip (str, ""): the controller's address, which the transport rtde needs.

Subscribes: /relaxed_ik/ee_pose_goals (relaxed_ik_ros1/EEPoseGoals): one absolute pose, in a frame fixed in the robot's
    URDF (no frame: the robot's base frame). A message without poses stops the arm. /arm_ready (std_msgs/Bool),
    /runner/state (iter_runner/RunnerState), and the driver's topics.
Publishes: /relaxed_ik/joint_angle_solutions (sensor_msgs/JointState), one a tick while there is a goal to go to. And
    the commands that move the arm.

The arm moves only while /arm_ready is true, no plan runs and goals keep coming. After a fault goals count again once
there were none for two seconds, or one message without poses.
"""

from __future__ import annotations

import math
from typing import Dict, List, Optional

import numpy as np
import rospy
from numpy.typing import NDArray
from relaxed_ik_ros1.msg import EEPoseGoals
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from iter_runner.kinematics import Box, load_chain
from iter_runner.msg import RunnerState
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.nodes.start import start_node
from iter_runner.plan.frames import FrameError
from iter_runner.planners.arrival import PATIENCE, STANDSTILL, Arrival
from iter_runner.planners.pursuit import TOP_SPEED, Pursuit, PursuitLimits
from iter_runner.primitives.context import ToolPose
from iter_runner.robot.arm import Servo, Vector
from iter_runner.robot.ros_arm import RosArm, connect_arm
from iter_runner.robot.table import Robot, RobotError, load_robot
from iter_runner.robot.transport import streaming_robot
from iter_runner.run_control import Fault, RunControl, Stopped
from iter_runner.runner.frames import PlanFrames, plan_frames

GOALS = "/relaxed_ik/ee_pose_goals"
SOLUTIONS = "/relaxed_ik/joint_angle_solutions"
GRAIN = 1e-6
"""s by which a tick may come early: a simulated clock is counted in steps that floats only nearly hit."""
RELEASED = 2.0
"""s without goals after which they count again after a fault: more than a sender that stumbles leaves out."""
AT_LAST = 0.01
"""rad: an arm this close to where it was last commanded to goes on from there, not from where it is measured."""
REACHED = 0.002
"""m: an arm that stands farther than this from its goal cannot get closer."""
WARN_PERIOD = 5.0
"""s between two warnings of the same thing."""


class RelaxedIKNode:
    """See the module."""

    def __init__(self, robot: Robot, tool_frame: str, limits: PursuitLimits, goal_timeout: float, drive: bool) -> None:
        self._robot = robot
        self._tool_frame = tool_frame
        self._timeout = goal_timeout
        self._frames: Dict[str, PlanFrames] = {"": plan_frames(robot, robot.base_frame, tool_frame)}
        self._chain = load_chain(robot)
        transport, robot_ip = (str(rospy.get_param(name, "")) for name in ("~transport", "~robot_ip"))
        table = _table(_number("~table_height", None, -2.0, 2.0))
        self._pursuit = Pursuit(streaming_robot(robot, transport), self._chain, limits, table)
        self._control = RunControl(study_clock())
        self._goal: Optional[NDArray[np.float64]] = None
        self._last_message = -math.inf  # study clock
        self._goal_ends = -math.inf
        self._blocked = False
        self._arm_ready = not drive
        self._plan_runs = False
        self._commanded: Optional[Vector] = None
        self._arm: Optional[RosArm] = None
        self._solutions = rospy.Publisher(SOLUTIONS, JointState, queue_size=10, tcp_nodelay=True)
        if drive:
            self._arm = connect_arm(
                robot, self._control.clock, transport, robot_ip, report_fault=self._control.report_fault
            )
            rospy.Subscriber("/arm_ready", Bool, self._on_arm_ready, queue_size=1)
            rospy.Subscriber("/runner/state", RunnerState, self._on_runner_state, queue_size=1)
        rospy.Subscriber(GOALS, EEPoseGoals, self._on_goals, queue_size=1, tcp_nodelay=True)
        rospy.on_shutdown(self._control.stop)

    # Goals.

    def _on_goals(self, message: EEPoseGoals) -> None:
        now = self._control.clock.now()
        if now - self._last_message > RELEASED or not message.ee_poses:
            self._blocked = False
        self._last_message = now
        self._goal = None
        if len(message.ee_poses) > 1:
            rospy.logwarn_throttle(
                WARN_PERIOD,
                f"relaxed_ik: {len(message.ee_poses)} poses on {GOALS}, expected 1: the robot has one end effector",
            )
        elif message.ee_poses:
            self._take(message, now)
        self._control.notify()

    def _take(self, message: EEPoseGoals, now: float) -> None:
        stamp = message.header.stamp
        age = 0.0 if stamp.is_zero() else (rospy.Time.now() - stamp).to_sec()
        if abs(age) > self._timeout:
            rospy.logwarn_throttle(
                WARN_PERIOD,
                f"relaxed_ik: a goal on {GOALS} is {age:.2f} s old, expected at most {self._timeout:g}: ignored; do "
                "the sender's clock and this one agree?",
            )
            return
        if any(
            any((twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.x, twist.angular.y, twist.angular.z))
            for twist in message.tolerances
        ):
            rospy.logwarn_once("relaxed_ik: tolerances of goals are not used: every goal is taken as exact")
        try:
            self._goal = self._flange_goal(message)
            self._goal_ends = now + self._timeout - max(0.0, age)
        except (FrameError, ValueError) as error:
            rospy.logwarn_throttle(WARN_PERIOD, f"relaxed_ik: a goal on {GOALS} is ignored: {error}")

    def _flange_goal(self, message: EEPoseGoals) -> NDArray[np.float64]:
        frame, goal = message.header.frame_id.lstrip("/"), message.ee_poses[0]
        if frame not in self._frames:
            self._frames[frame] = plan_frames(self._robot, frame, self._tool_frame)
        position = [goal.position.x, goal.position.y, goal.position.z]
        turn = [goal.orientation.x, goal.orientation.y, goal.orientation.z, goal.orientation.w]
        if not np.all(np.isfinite(position + turn)):
            raise ValueError(f"position {position}, orientation {turn}: expected finite numbers")
        size = float(np.linalg.norm(turn))
        if abs(size - 1.0) > 0.01:
            raise ValueError(f"orientation {turn} has the length {size:.3g}, expected a unit quaternion (x, y, z, w)")
        return self._frames[frame].to_tip(ToolPose(position=position, orientation=[part / size for part in turn]))

    def _on_arm_ready(self, message: Bool) -> None:
        self._arm_ready = message.data
        self._control.notify()

    def _on_runner_state(self, message: RunnerState) -> None:
        self._plan_runs = message.state not in (RunnerState.IDLE, RunnerState.WAITING_FOR_ARM)
        self._control.notify()

    @property
    def _may_move(self) -> bool:
        return self._arm_ready and not self._plan_runs

    def _present_goal(self) -> Optional[NDArray[np.float64]]:
        """The goal (4, 4) of the flange that counts now."""
        if self._blocked or self._control.clock.now() > self._goal_ends:
            return None
        if not self._may_move:
            if self._goal is not None:
                what = "a plan is running" if self._plan_runs else "/arm_ready is not true"
                rospy.logwarn_throttle(WARN_PERIOD, f"relaxed_ik: goals are ignored: {what}")
            return None
        return self._goal

    # Motion.

    def run(self) -> None:
        """Follows goals until the node is shut down, which raises Stopped."""
        while True:
            try:
                self._control.wait_for(lambda: self._present_goal() is not None)
                self._stream()
            except Fault as fault:
                rospy.logerr("relaxed_ik: %s (let go of the goal, then give it again)", fault.message)
                self._blocked = True
                self._control.resume()

    def _start(self) -> Vector:
        """The joints (n,) rad that the stream begins at, those of a standing arm."""
        if self._arm is None:
            return self._pursuit.joints
        self._arm.make_ready(self._control)
        arm, clock = self._arm, self._control.clock
        if not arm.wait_for_reading(
            lambda reading: bool(np.max(np.abs(reading.velocities)) < STANDSTILL), self._control, clock.now() + PATIENCE
        ):
            raise Fault("not_ready", "the arm is being moved by something else: it has to stand before it is led")
        measured = arm.reading().positions
        if self._commanded is not None and float(np.max(np.abs(self._commanded - measured))) < AT_LAST:
            return self._commanded
        return measured

    def _stream(self) -> None:
        """From a standing arm to a standing arm: as long as goals come."""
        pursuit, clock = self._pursuit, self._control.clock
        pursuit.reset(self._start())
        servo: Optional[Servo] = None if self._arm is None else self._arm.servo()
        arrival: Optional[Arrival] = None
        give_up = math.inf
        deadline = clock.now()
        try:
            if servo is not None:
                servo.start()
            while True:
                goal = self._present_goal()
                if not self._may_move:
                    raise _Withdrawn
                if goal is not None or not pursuit.settled:
                    arrival = None
                    joints = pursuit.tick(goal)
                    self._publish(joints)
                    self._tell_if_out_of_reach(goal)
                elif self._arm is None:
                    return
                elif arrival is None:  # hold the last target until the arm, which lags, is there
                    arrival, give_up = Arrival(self._chain, pursuit.joints), clock.now() + PATIENCE
                elif arrival.arrived(self._arm.reading()) or clock.now() > give_up:
                    break
                period = pursuit.period
                if servo is not None and self._arm is not None:
                    period /= max(self._arm.speed_scaling, 0.01)
                    servo.send(pursuit.joints, period)
                    self._commanded = pursuit.joints
                deadline += period
                if clock.now() > deadline - period / 2:  # late: ticks move on, none is skipped or hurried
                    deadline = clock.now() + period
                self._control.sleep_until(deadline - GRAIN)
            if servo is not None:
                servo.stop()
        except _Withdrawn:
            self._halt()
            rospy.logwarn("relaxed_ik: stopped: %s", "a plan runs" if self._plan_runs else "/arm_ready became false")
        except BaseException:
            self._halt()
            raise

    def _halt(self) -> None:
        self._commanded = None
        if self._arm is not None:
            self._arm.halt()

    def _publish(self, joints: Vector) -> None:
        message = JointState(name=list(self._robot.joints), position=joints.tolist())
        message.header.stamp = rospy.Time.now()
        self._solutions.publish(message)

    def _tell_if_out_of_reach(self, goal: Optional[NDArray[np.float64]]) -> None:
        if goal is None or not self._pursuit.settled:
            return
        distance, turn = self._pursuit.off(goal)
        if distance > REACHED or turn > math.radians(1.0):
            rospy.logwarn_throttle(
                WARN_PERIOD,
                f"relaxed_ik: the goal is out of reach: held {distance * 1e3:.0f} mm and {math.degrees(turn):.1f} "
                "degrees off it",
            )


class _Withdrawn(Exception):
    """The arm may not be moved any more."""


def _table(height: Optional[float]) -> List[Box]:
    if height is None:
        return []
    pose = np.eye(4)
    pose[2, 3] = height - 0.5
    return [Box("table", pose, (6.0, 6.0, 1.0))]


def _number(name: str, default: Optional[float], least: float, most: float) -> Optional[float]:
    """A parameter that is a number; None where its default is and it is empty.

    Raises:
        RobotError: it is something else.
    """
    value = rospy.get_param(name, default)
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise RobotError(f"{name} is {value!r}, expected a number from {least:g} to {most:g}")
    return float(value)


def main() -> int:
    """Runs the node; returns its exit code."""
    start_node("relaxed_ik")
    try:
        robot = load_robot(str(rospy.get_param("~robot", "ur5")))
        limits = PursuitLimits(
            speed=_number("~speed", 0.25, 0.001, TOP_SPEED) or 0.25,
            turn_speed=_number("~turn_speed", 1.0, 0.01, 3.0) or 1.0,
        )
        node = RelaxedIKNode(
            robot,
            str(rospy.get_param("~tool_frame", "")) or robot.tool_frame,
            limits,
            _number("~goal_timeout", 0.3, 0.02, 2.0) or 0.3,
            bool(rospy.get_param("~drive", True)),
        )
    except (RobotError, FrameError) as error:
        rospy.logfatal("relaxed_ik: %s", error)
        return 1
    try:
        node.run()
    except Stopped:
        return 0
    return 0
