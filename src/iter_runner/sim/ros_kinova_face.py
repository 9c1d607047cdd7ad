"""The embedded cell behind the names and types of kinova-ros."""

from __future__ import annotations

import math
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

import rospy
from kinova_msgs.msg import JointVelocity
from kinova_msgs.srv import HomeArm, HomeArmResponse, Start, StartResponse, Stop, StopResponse
from sensor_msgs.msg import JointState

from iter_runner.sim import trajectory
from iter_runner.sim.arm_controller import Happening
from iter_runner.sim.kinova_controller import VELOCITY_PERIOD, KinovaController
from iter_runner.sim.ros_direct import DirectPublisher, JointStatePacker
from iter_runner.sim.ros_face import JOINT_STATES, RosFace
from iter_runner.sim.trajectory import Rejected

VELOCITY_FIELDS = tuple(f"joint{j}" for j in range(1, 8))
HOME_WALL = 300.0  # s of real time that the arm may take home


class KinovaFace(RosFace[KinovaController]):
    """See :class:`iter_runner.sim.ros_face.RosFace`."""

    def _advertise(self) -> None:
        driver = self._driver
        self._subscribers.append(self._on(driver.topic("joint_velocity"), JointVelocity, self._velocity))
        self._services += [
            rospy.Service(driver.service("home_arm"), HomeArm, self._home),
            rospy.Service(driver.service("start"), Start, self._start),
            rospy.Service(driver.service("stop"), Stop, self._stop),
        ]

    # ---- joint states: arm and fingers in one message, base to tip ----

    def _begin_joint_states(self) -> None:
        super()._begin_joint_states()
        self._has_fingers = self._serves_gripper and "kinova" in self._gripper.drivers
        names = list(self.cell.controller.model.joint_names)
        self._packer = JointStatePacker(names + self._gripper.joints if self._has_fingers else names)
        if self._serves_gripper and not self._has_fingers:  # a gripper with a driver, and a topic, of its own
            self._finger_states = DirectPublisher(JOINT_STATES, JointState)

    def _publish_joint_states(self, cycles: int, nanoseconds: int) -> None:
        controller, hand = self.cell.controller, self.cell.hand
        q, v = controller.q, controller.v
        if self._has_fingers:
            q, v = [*q, *(hand.position,) * self._fingers], [*v, *(0.0,) * self._fingers]  # as the driver: no speeds
        self._joint_states.write(self._packer.pack(nanoseconds, q, v))
        if self._serves_gripper and not self._has_fingers and cycles % self._gripper_every == 0:
            self._finger_states.write(self._packed_fingers(nanoseconds))

    # ---- services ----

    def _home(self, _request: Any) -> HomeArmResponse:
        arrived: Future[str] = Future()

        def act() -> str:
            try:
                begun = self.cell.controller.home(self._robot.tuck, arrived)
            except Rejected as error:
                return str(error)
            self._lock_step.other_came()
            return "" if begun else "The arm is stopped: call its start service first."

        answer = self._ask(act, "the simulation stands still")
        if not answer:
            try:
                answer = arrived.result(HOME_WALL)
            except FutureTimeout:
                answer = "the arm is still on its way"
        return HomeArmResponse(homearm_result=answer)

    def _start(self, _request: Any) -> StartResponse:
        self._ask(self.cell.controller.start, None)
        return StartResponse(start_result="Arm started")

    def _stop(self, _request: Any) -> StopResponse:
        def act() -> None:
            self._lock_step.other_came()
            self.cell.controller.stop()

        self._ask(act, None)
        return StopResponse(stop_result="Arm stopped")

    # ---- what comes in, called by the loop ----

    def _velocity(self, message: JointVelocity) -> None:
        controller = self.cell.controller
        degrees = [getattr(message, field) for field in VELOCITY_FIELDS[: len(controller.q)]]
        if not controller.command_velocity([math.radians(value) for value in degrees]):
            return
        if any(degrees):
            self._lock_step.target_came(controller.cycles, VELOCITY_PERIOD / controller.cycle)
        else:
            self._lock_step.other_came()  # the stream ends

    # ---- what goes out ----

    def _tell(self, happening: Happening) -> None:
        kind, value = happening
        if kind.startswith("trajectory_") and isinstance(value[0], Future):
            arrived = kind == "trajectory_done" and value[1] == trajectory.SUCCESSFUL
            value[0].set_result("KINOVA ARM HAS BEEN RETURNED HOME" if arrived else f"Not home: {value[-1]}")
        else:
            super()._tell(happening)

    def _cancelled(self, key: Any, text: str) -> None:
        if isinstance(key, Future):
            key.set_result(f"Not home: {text}")
        else:
            super()._cancelled(key, text)
