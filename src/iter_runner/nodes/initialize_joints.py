"""Moves the arm to its row's tucked pose before anyone else may command it.

Parameters:
    ~robot (str, ur5): a row of config/robots/, or the path of such a YAML file.
    ~speed (float, 0.5): rad/s of the fastest joint.
    ~table_height (float, none): m, in the robot's base frame: nothing may get below it on the way.
    ~workcell (str, ""): what always stands around the arm, a name in config/workcells/ or a YAML file.
    ~preflight (bool, false): look at the driver, the arm and the gripper first, say how each is, and do not move before
        all are well.

Publishes: /arm_ready (std_msgs/Bool, latched): false until the arm stands tucked. And the commands that move the arm.
Subscribes: the driver's topics.
Services: /initialize_joints/confirm (std_srvs/Trigger): go, though the way was called unsafe.
"""

from __future__ import annotations

import re
import threading
from typing import Dict, List, Optional, Sequence

import numpy as np
import rospy
from std_msgs.msg import Bool
from std_srvs.srv import Trigger, TriggerRequest, TriggerResponse

from iter_runner.clock import MonotonicClock
from iter_runner.kinematics import Obstacle, load_chain
from iter_runner.kinematics.urdf import read_urdf
from iter_runner.nodes.preflight import Preflight
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.nodes.start import start_node
from iter_runner.planners.tuck import nearest_turn, slow_path, straight_way, what_is_unsafe
from iter_runner.robot.arm import JointReading, Vector
from iter_runner.robot.ros_arm import connect_arm
from iter_runner.robot.table import Robot, RobotError, load_robot, robot_urdf
from iter_runner.run_control import Fault, RunControl, Stopped
from iter_runner.scene import PlanningScene, SceneError
from iter_runner.scene.workcell_file import read_workcell, robot_frames

CONFIRM = "/initialize_joints/confirm"
PATIENCE = 5.0
"""Seconds of wall time between two lines that say what is waited for."""
TUCKED = 0.005
"""rad: an arm this close to its tucked pose is tucked."""
MOVED = 0.03
"""rad: an arm that stands this far from where it stood was moved by hand."""
STANDS = 0.01
"""rad/s"""
ARRIVAL = 2.0
"""Seconds, by the time of the readings, that an arm may still take to its end when its trajectory is over."""
WARNING = 3.0
"""Seconds between the word that all is well again and the motion: whoever has put something right steps back."""
TRIES = 3
"""How often the arm is sent before a person is asked why it does not arrive."""


class InitializeJoints:
    """See the module."""

    _preflight: Optional[Preflight] = None

    def __init__(
        self,
        robot: Robot,
        speed: float,
        table_height: Optional[float],
        preflight: bool = False,
        obstacles: Sequence[Obstacle] = (),
    ) -> None:
        self._robot = robot
        self._speed = speed
        self._table_height = table_height
        self._obstacles = list(obstacles)
        self._chain = load_chain(robot)
        self._tuck = np.asarray(robot.tuck, dtype=np.float64)
        joints = read_urdf(robot_urdf(robot)).joints
        self._continuous: List[bool] = [joints[name].kind == "continuous" for name in robot.joints]
        self._control = RunControl(study_clock())
        self._ready = rospy.Publisher("/arm_ready", Bool, queue_size=1, latch=True)
        self._ready.publish(Bool(False))
        self._asked = False
        self._confirmed = threading.Event()
        rospy.Service(CONFIRM, Trigger, self._on_confirm)
        self._arm = connect_arm(robot, self._control.clock, report_fault=self._control.report_fault)
        if preflight:
            self._preflight = Preflight(robot, self._arm, self._control.clock)
        rospy.on_shutdown(self._control.stop)

    def run(self) -> None:
        """Returns when the arm is tucked; raises Stopped when the node is shut down."""
        if self._preflight is not None:
            self._look_first(self._preflight)
        confirmed = False
        tries = 0
        while True:
            try:
                self._wait_for_driver()
                end = nearest_turn(self._tuck, self._still().positions, self._continuous)
                if self._is_tucked(self._still().positions, end):
                    break
                if self._tuck_arm(end, confirmed):
                    break
                confirmed = False
            except Fault as fault:
                self._control.resume()
                tries += 1
                if tries < TRIES and self._may_be_repeated(fault):
                    # The way is looked at and planned anew, from where the arm stands then.
                    rospy.logwarn("initialize_joints: %s: try %d of %d follows", fault.message, tries + 1, TRIES)
                    confirmed = False
                    continue
                tries = 0
                rospy.logerr("initialize_joints: %s", fault.message)
                # After a fault the arm does not move by itself: somebody may be at it.
                confirmed = self._ask("the motion was interrupted")
        rospy.loginfo("initialize_joints: %s is tucked", self._robot.name)
        self._arm.report_fault = None
        self._arm.close()
        self._ready.publish(Bool(True))

    def _may_be_repeated(self, fault: Fault) -> bool:
        """Whether the arm may go on by itself: it only ended short, or a simulator's messages were late."""
        simulated = not isinstance(self._control.clock, MonotonicClock)
        return fault.code == "goal_tolerance" or (simulated and fault.code == "stale_joint_states")

    def _look_first(self, preflight: Preflight) -> None:
        """Returns when every check of the preflight holds; says each that does not, and what to do."""
        told: Dict[str, str] = {}
        failed = False
        while True:
            checks = preflight.wait(self._control, PATIENCE)
            news = False
            for check in checks:
                # Ages and the like change all the time: only another fault is news.
                gist = "" if check.ok else re.sub(r"[0-9.]+", "", check.text)
                if told.get(check.name) != gist:
                    (rospy.loginfo if check.ok else rospy.logerr)("preflight: %s", check)
                    news = True
                told[check.name] = gist
            if all(check.ok for check in checks):
                break
            failed = True
            if news:
                rospy.logwarn("preflight: the arm does not move before all are ok; they are looked at until they are")
        preflight.close()
        if failed:
            rospy.logwarn("preflight: all are ok now; the arm moves in %.0f s: step back", WARNING)
            self._wait_out(WARNING)

    def _wait_out(self, seconds: float) -> None:
        """Returns ``seconds`` of the study clock later, whatever the driver says meanwhile."""
        end = self._control.clock.now() + seconds
        while self._control.clock.now() < end:
            try:
                self._control.sleep_until(end)
            except Fault:
                self._control.resume()

    def _wait_for_driver(self) -> None:
        """Returns when the driver is up and the arm would obey."""
        told = ""
        while True:
            try:
                self._arm.make_ready(self._control, PATIENCE)
                return
            except Fault as fault:
                if rospy.is_shutdown():
                    raise Stopped from fault
                if fault.message != told:
                    rospy.logwarn("initialize_joints: waiting: %s", fault.message)
                    told = fault.message
                self._control.resume()
                # What stopped the arm is over when the driver says so; looked at again at each of its messages.
                self._arm.wait_until(lambda: self._arm.fault() is None, self._control, PATIENCE)

    def _still(self) -> JointReading:
        """The joints once they stand, by a reading that is not older than this call."""
        now = self._control.clock.now()
        self._arm.wait_for_reading(lambda reading: reading.time >= now and _stands(reading), self._control)
        return self._arm.reading()

    def _arrived(self, end: Vector, expected: float) -> JointReading:
        """The joints once they stand at ``end`` (n,) rad, or when they don't :data:`ARRIVAL` after ``expected``, s.

        The news that a trajectory is over may overtake those of where the arm is: on a busy machine with a fast
        simulation, the last reading may even be from before the motion, when the arm stood as well.
        """
        give_up = max(expected, self._control.clock.now()) + ARRIVAL
        self._arm.wait_for_reading(
            lambda reading: (_stands(reading) and self._is_tucked(reading.positions, end)) or reading.time > give_up,
            self._control,
        )
        return self._arm.reading()

    def _is_tucked(self, positions: Vector, end: Vector) -> bool:
        return bool(np.max(np.abs(positions - end)) < TUCKED)

    def _tuck_arm(self, end: Vector, confirmed: bool) -> bool:
        """Moves the arm to ``end`` (n,) rad; False where the way is to be looked at again."""
        start = self._still().positions
        way = straight_way(start, end)
        unsafe = what_is_unsafe(self._chain, way, self._table_height, self._obstacles)
        if unsafe and not confirmed and not self._ask(unsafe):
            return False
        if unsafe and float(np.max(np.abs(self._still().positions - start))) > MOVED:
            return False
        seconds = slow_path(self._chain, way, self._speed)
        rospy.loginfo("initialize_joints: to the tucked pose in %.1f s", seconds.times[-1])
        expected = self._control.clock.now() + float(seconds.times[-1])
        self._arm.follow(seconds, self._control)
        reached = self._arrived(end, expected).positions
        if not self._is_tucked(reached, end):
            joint = int(np.argmax(np.abs(reached - end)))
            raise Fault(
                "goal_tolerance",
                f"{self._robot.joints[joint]} stands at {reached[joint]:.4f} rad, {end[joint]:.4f} expected",
            )
        return True

    def _ask(self, reason: str) -> bool:
        """Waits for a person: True when they confirm, False when they have moved the arm by hand."""
        rospy.logwarn(
            "initialize_joints: %s. Move the arm by hand with freedrive (the way is looked at again), or call "
            "`rosservice call %s` to go anyway",
            reason,
            CONFIRM,
        )
        self._confirmed.clear()
        self._asked = True
        try:
            before = self._arm.last_positions()

            def answered() -> bool:
                now = self._arm.last_positions()
                moved = before is not None and now is not None and float(np.max(np.abs(now - before))) > MOVED
                return self._confirmed.is_set() or moved

            self._arm.wait_until(answered, self._control)
            return self._confirmed.is_set()
        finally:
            self._asked = False

    def _on_confirm(self, _request: TriggerRequest) -> TriggerResponse:
        if not self._asked:
            return TriggerResponse(False, "nothing is to be confirmed")
        self._confirmed.set()
        self._control.notify()
        return TriggerResponse(True, "goes to the tucked pose")


def _stands(reading: JointReading) -> bool:
    return bool(np.max(np.abs(reading.velocities)) < STANDS)


def _workcell(robot: Robot) -> List[Obstacle]:
    """What the workcell's file has in the way; raises SceneError."""
    name = str(rospy.get_param("~workcell", ""))
    if not name:
        return []
    objects = read_workcell(name, robot_frames(robot_urdf(robot), robot.base_frame))
    return list(PlanningScene(objects).snapshot().obstacles)


def main() -> int:
    """Runs the node; returns its exit code."""
    start_node("initialize_joints")
    try:
        robot = load_robot(str(rospy.get_param("~robot", "ur5")))
        speed = _number("~speed", 0.5)
        if speed is None or not 0.0 < speed <= 3.0:
            raise RobotError(f"~speed is {speed}, expected more than 0 and at most 3 rad/s")
        preflight = rospy.get_param("~preflight", False)
        if not isinstance(preflight, bool):
            raise RobotError(f"~preflight is {preflight!r}, expected true or false")
        node = InitializeJoints(robot, speed, _number("~table_height", None), preflight, _workcell(robot))
    except (RobotError, SceneError) as error:
        rospy.logfatal("initialize_joints: %s", error)
        return 1
    try:
        node.run()
    except Stopped:
        return 0
    rospy.spin()
    return 0


def _number(name: str, default: Optional[float]) -> Optional[float]:
    value = rospy.get_param(name, default)
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RobotError(f"{name} is {value!r}, expected a number")
    return float(value)
