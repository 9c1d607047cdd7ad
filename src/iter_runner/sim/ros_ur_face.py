"""The embedded workcell behind the names and types of ur_robot_driver."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Tuple

import rospy
from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import Bool, Float64, String
from std_srvs.srv import Trigger, TriggerResponse
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

from iter_runner.sim.arm_controller import Happening
from iter_runner.sim.controller import Controller, ProgramError
from iter_runner.sim.ros_face import CLOCK_PERIOD, RosFace, latched
from iter_runner.sim.urscript import CompileError
from iter_runner.sim.workcell import Workcell


class URFace(RosFace[Controller]):
    """See :class:`iter_runner.sim.ros_face.RosFace`."""

    cell: Workcell

    def _advertise(self) -> None:
        driver, controller = self._driver, self.cell.controller
        self._publishers = {
            "robot_mode": latched(driver.topic("robot_mode"), RobotMode),
            "safety_mode": latched(driver.topic("safety_mode"), SafetyMode),
            "program_running": latched(driver.topic("robot_program_running"), Bool),
            "scaling": latched(driver.topic("speed_scaling_factor"), Float64),
        }
        self._wrench = rospy.Publisher(driver.topic("wrench"), WrenchStamped, queue_size=1)
        self._publishers["robot_mode"].publish(RobotMode(mode=controller.robot_mode))
        self._publishers["safety_mode"].publish(SafetyMode(mode=controller.safety_mode))
        self._publishers["program_running"].publish(Bool(data=controller.external_control))
        self._publishers["scaling"].publish(Float64(data=controller.scaling))
        self._subscribers.append(self._on(driver.topic("script_command"), String, lambda text: self._script(text.data)))
        self._serve()

    def _serve(self) -> None:
        driver, controller = self._driver, self.cell.controller
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
        self._services += [
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

    # ---- services ----

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

    # ---- what goes out ----

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
        elif kind == "popup":
            rospy.logwarn("Popup: %s", value)
        elif kind == "output":
            rospy.loginfo("Digital output %d is %s", value[0], "on" if value[1] else "off")
        else:
            super()._tell(happening)

    def _publish_slow(self) -> None:
        super()._publish_slow()
        if self._wrench.get_num_connections():
            message = WrenchStamped()
            message.header.stamp, message.header.frame_id = self._now(), self._robot.tool_frame
            self._wrench.publish(message)
