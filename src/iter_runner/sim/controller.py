"""The simulated controller of a UR: what moves the joints, one cycle at a time. No ROS, no wall time, no threads.

A :class:`Controller` is stepped once a cycle. It is either stopped, or runs a program (a generator that is resumed once
a cycle), or External Control, which follows trajectories.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from iter_runner.kinematics.rotations import inverse, matrix_to_rotation_vector, rotation_vector_to_matrix
from iter_runner.sim.arm_controller import (
    EXTERNAL_GAIN,
    EXTERNAL_LOOKAHEAD,
    PROGRAM_STOP,
    PROTECTIVE_STOP,
    ArmController,
    ArmModel,
    Happening,
    Kinematics,
    Matrix,
    ProtectiveStop,
)
from iter_runner.sim.poses import pose_of

SLIDER_RATE = 5.0  # 1/s, how fast the speed scaling follows the slider
TURN_RADIUS = 0.3  # m: movel counts a turn of one radian as this much way


class RobotMode(IntEnum):
    """ur_dashboard_msgs/RobotMode."""

    NO_CONTROLLER = -1
    DISCONNECTED = 0
    CONFIRM_SAFETY = 1
    BOOTING = 2
    POWER_OFF = 3
    POWER_ON = 4
    IDLE = 5
    BACKDRIVE = 6
    RUNNING = 7


class SafetyMode(IntEnum):
    """ur_dashboard_msgs/SafetyMode, as far as the simulator goes."""

    NORMAL = 1
    REDUCED = 2
    PROTECTIVE_STOP = 3
    RECOVERY = 4
    SAFEGUARD_STOP = 5
    SYSTEM_EMERGENCY_STOP = 6
    ROBOT_EMERGENCY_STOP = 7


class ProgramError(Exception):
    """A program cannot go on: the controller stops it and logs the message."""


class Trapezoid:
    """Way over time from rest to rest: constant acceleration ``a``, cruise at ``v``, constant deceleration.

    Units are the caller's (rad, rad/s, rad/s² or m, …).
    """

    def __init__(self, length: float, v: float, a: float) -> None:
        self.length = length
        self.a = a
        self.v = min(v, math.sqrt(length * a))
        self.ramp = self.v / a
        self.duration = length / self.v + self.ramp

    def way(self, time: float) -> float:
        """How far along at ``time`` s, 0 to ``length``."""
        if time <= 0.0:
            return 0.0
        if time < self.ramp:
            return 0.5 * self.a * time * time
        left = self.duration - time
        if left <= 0.0:
            return self.length
        if left < self.ramp:
            return self.length - 0.5 * self.a * left * left
        return self.v * (time - 0.5 * self.ramp)


class Controller(ArmController):
    """The controller of a UR. Everything here is to be called between cycles, from one thread."""

    def __init__(self, model: ArmModel, start: Union[Sequence[float], Matrix], unlock_delay: float = 0.0) -> None:
        super().__init__(model, start)
        self.unlock_delay = unlock_delay
        self.robot_mode = RobotMode.RUNNING
        self.safety_mode = SafetyMode.NORMAL
        self.slider = 1.0
        self.outputs = [False] * 18
        self.tool_offset: Matrix = np.eye(4)
        self.popup: Optional[str] = None

        self.external_control = True
        self.program: Optional[Iterator[None]] = None
        self.program_paused = False
        self._secondary: List[Iterator[None]] = []
        self._stopped_at = 0
        self._streamed_at = -(10**9)
        self._refusal_logged = False

    # ---- one cycle ----

    @property
    def ready(self) -> bool:
        """Whether the brakes are off and nothing has stopped the arm."""
        return self.robot_mode == RobotMode.RUNNING and self.safety_mode == SafetyMode.NORMAL

    def step(self) -> None:
        """One cycle of the controller."""
        self.cycles += 1
        wanted = 0.0 if self.program_paused else self.slider
        if self.scaling != wanted:
            self._scale(wanted)
        try:
            if self._secondary:
                self._secondary = [program for program in self._secondary if not self._finished(program)]
            if self._braking:
                self._brake(self._braking)
            elif self.program is not None:
                if self.program_paused and self.scaling == 0.0:
                    if self.moving:  # what does not keep to the speed scaling
                        self._brake(PROGRAM_STOP)
                    return
                try:
                    next(self.program)
                except StopIteration:
                    self._end_program()
            elif self.external_control:
                self._follow()
        except ProtectiveStop as stop:
            self.protective_stop(str(stop))
        except ProgramError as error:
            self.log("error", f"Program stopped: {error}")
            self._end_program()

    def _command(self, q: List[float]) -> None:
        """The joints are to be at ``q`` a cycle from now."""
        cycle = self.cycle
        v = [(b - a) / cycle for a, b in zip(self.q, q)]
        self._check(q, v)
        self.q = q
        self.v = v

    def _scale(self, wanted: float) -> None:
        change = SLIDER_RATE * self.cycle
        self.scaling += min(max(wanted - self.scaling, -change), change)
        if abs(self.scaling - wanted) < 1e-12:
            self.scaling = wanted
        self._tell("scaling", self.scaling)

    # ---- External Control ----

    def _refusal(self) -> str:
        if not (self.external_control and self.ready) or self._braking:
            return "Can't accept new action goals. Controller is not running."
        return ""

    def _stop_external_control(self, text: str) -> None:
        if self.external_control:
            self.external_control = False
            self._tell("program_running", False)
        self._drop_goal(text)

    def start_external_control(self) -> Tuple[bool, str]:
        """Sends the External Control program (headless mode); success and a message."""
        if self.robot_mode != RobotMode.RUNNING:
            return False, f"Robot mode is {self.robot_mode.name}, RUNNING expected: power on and release the brakes."
        if self.safety_mode != SafetyMode.NORMAL:
            return False, f"Safety mode is {self.safety_mode.name}, NORMAL expected: unlock the stop first."
        self._drop_program()
        if not self.external_control:
            self._catch()
            self.external_control = True
            self._tell("program_running", True)
        return True, "Successfully resent robot program."

    # ---- programs ----

    def start_program(self, program: Iterator[None]) -> bool:
        """Runs a program in the place of whatever runs, External Control included; False where the arm is stopped."""
        if not self.ready:
            if not self._refusal_logged:  # a stream brings more than a hundred programs a second
                mode, robot = self.safety_mode.name, self.robot_mode.name
                self.log("error", f"Programs are refused: safety mode is {mode}, robot mode {robot}.")
            self._refusal_logged = True
            return False
        self._refusal_logged = False
        self._stop_external_control("External Control was replaced by a script.")
        self._drop_program()
        self._braking = 0.0
        self.program = program
        return True

    def start_secondary(self, program: Iterator[None]) -> None:
        """Runs a program beside the one that runs (URScript's ``sec``); it must not move the arm."""
        self._secondary.append(program)

    def _finished(self, program: Iterator[None]) -> bool:
        """Resumes a secondary program; whether it has ended."""
        try:
            next(program)
        except StopIteration:
            return True
        except ProgramError as error:
            self.log("error", f"Secondary program stopped: {error}")
            return True
        return False

    def _drop_program(self) -> None:
        if self.program is not None:
            close = getattr(self.program, "close", None)
            self.program = None
            if close is not None:
                close()
        self.program_paused = False
        self.popup = None

    def _end_program(self) -> None:
        self._drop_program()
        if self.moving:
            self._braking = PROGRAM_STOP
        else:
            self._stand()

    # Motions: generators that are resumed once a cycle. Each yield is the end of a cycle.

    def _shares(self, length: float, v: float, a: float, t: float) -> Iterator[float]:
        """How much of a way of ``length`` is behind after each cycle, the last of them 1; in ``t`` s if above 0."""
        profile = Trapezoid(length, v, a)
        stretch = profile.duration / t if t > 0.0 else 1.0
        time = 0.0
        while time < profile.duration:
            time += self.cycle * self.scaling * stretch
            yield 1.0 if time >= profile.duration else profile.way(time) / length

    def movej(self, target: Sequence[float], a: float, v: float, t: float = 0.0) -> Iterator[None]:
        """Joint-space line to ``target`` (n,) rad with leading-axis ``a`` rad/s² and ``v`` rad/s, or in ``t`` s."""
        self._check(target, self._zeros)
        yield from self.come_to_rest()
        self._begin_motion()
        start = list(self.q)
        way = [b - a for a, b in zip(start, target)]
        length = max(map(abs, way))
        if length < 1e-12:
            self._stand()
            return
        for share in self._shares(length, v, a, t):
            self._command(list(target) if share >= 1.0 else [p + share * d for p, d in zip(start, way)])
            yield
        self._stand()

    def movel(self, target: Matrix, a: float, v: float, t: float = 0.0) -> Iterator[None]:
        """Straight line of the tool to the (4, 4) pose ``target`` in ``base``; ``a`` m/s², ``v`` m/s, or ``t`` s.

        The tool's orientation turns evenly along the way; a turn counts as TURN_RADIUS metres a radian.
        """
        kinematics = self._kinematics()
        to_flange = inverse(self.tool_offset)
        if kinematics.inverse(target @ to_flange, self.q) is None:
            raise ProgramError(f"movel: no inverse kinematics for {pose_of(target)}")
        yield from self.come_to_rest()
        self._begin_motion()
        start = kinematics.forward(self.q) @ self.tool_offset
        line = target[:3, 3] - start[:3, 3]
        turn = matrix_to_rotation_vector(start[:3, :3].T @ target[:3, :3])
        angle = float(np.linalg.norm(turn))
        length = max(float(np.linalg.norm(line)), TURN_RADIUS * angle)
        if length < 1e-9:
            self._stand()
            return
        pose = np.eye(4)
        for share in self._shares(length, v, a, t):
            pose[:3, 3] = start[:3, 3] + share * line
            pose[:3, :3] = start[:3, :3] @ rotation_vector_to_matrix(share * turn)
            q = kinematics.inverse((target if share >= 1.0 else pose) @ to_flange, self.q)
            if q is None:
                raise ProgramError(f"movel: no inverse kinematics for {pose_of(pose)} on the way to {pose_of(target)}")
            self._command(q)
            yield
        self._stand()

    def servoj(self, target: Sequence[float], t: float, lookahead: float, gain: float) -> Iterator[None]:
        """Pulls the joints towards ``target`` (n,) rad for ``t`` s; see :meth:`_servo`. Speed scaling is not for it."""
        if self.cycles - self._streamed_at > 0.25 / self.cycle:
            self._begin_motion()
        count = max(1, round(t / self.cycle))
        self._settled = False
        for _ in range(count):
            self._streamed_at = self.cycles
            self._servo(target, lookahead, gain)
            yield

    def speedj(self, speeds: Sequence[float], a: float, t: float) -> Iterator[None]:
        """Speeds up (or down) to joint ``speeds`` (n,) rad/s with ``a`` rad/s², for ``t`` s in all."""
        self._begin_motion()
        change = a * self.cycle
        time = 0.0
        while True:
            v = [now + min(max(goal - now, -change), change) for now, goal in zip(self.v, speeds)]
            self._command([p + self.cycle * value for p, value in zip(self.q, v)])
            time += self.cycle
            yield
            if time >= t - 1e-9 and (t > 0.0 or all(abs(b - g) < 1e-9 for b, g in zip(v, speeds))):
                return

    def stopj(self, a: float) -> Iterator[None]:
        """Brakes with ``a`` rad/s² of the fastest joint."""
        while self.moving:
            self._brake(a)
            yield
        self._stand()

    def stopl(self, a: float) -> Iterator[None]:
        """Brakes with ``a`` m/s² of the tool."""
        speed = self._tool_speed()
        fastest = max(map(abs, self.v))
        yield from self.stopj(a * fastest / speed if speed > 1e-6 else PROGRAM_STOP)

    def come_to_rest(self) -> Iterator[None]:
        """Brakes, where the arm still moves from what ran before."""
        if self.moving:
            yield from self.stopj(PROGRAM_STOP)

    def sleep(self, t: float) -> Iterator[None]:
        """Does nothing for ``t`` s; the arm brakes if it still moves."""
        for _ in range(max(0, round(t / self.cycle))):
            if self.moving:
                self._brake(PROGRAM_STOP)
            yield

    def _kinematics(self) -> Kinematics:
        if self.model.kinematics is None:
            raise ProgramError("this arm's controller has no inverse kinematics")
        return self.model.kinematics

    def forward(self, q: Sequence[float]) -> Matrix:
        """(4, 4) pose of the tool (TCP) in ``base``, m, at joints (n,) rad."""
        return self._kinematics().forward(q) @ self.tool_offset

    def inverse(self, tool: Matrix, near: Sequence[float]) -> List[float]:
        """Joints (n,) rad with the tool at a (4, 4) pose in ``base``, nearest to ``near``.

        Raises:
            ProgramError: out of reach.
        """
        q = self._kinematics().inverse(tool @ inverse(self.tool_offset), near)
        if q is None:
            raise ProgramError(f"no inverse kinematics for {pose_of(tool)}")
        return q

    def _tool_speed(self) -> float:
        if self.model.kinematics is None:
            return 0.0
        h = 1e-4
        ahead = [a + h * b for a, b in zip(self.q, self.v)]
        return float(np.linalg.norm(self.forward(ahead)[:3, 3] - self.forward(self.q)[:3, 3])) / h

    def set_output(self, pin: int, on: bool) -> None:
        """Sets a digital output: 0 to 7 standard, 8 to 15 configurable, 16 and 17 of the tool.

        Raises:
            ProgramError: no such output.
        """
        if not 0 <= pin < len(self.outputs):
            raise ProgramError(f"digital output {pin}: 0 to {len(self.outputs) - 1} expected")
        self.outputs[pin] = on
        self._tell("output", (pin, on))

    def show_popup(self, text: str) -> None:
        """Shows a popup on the pendant."""
        self.popup = text
        self._tell("popup", text)

    # ---- safety and power ----

    def protective_stop(self, reason: str) -> None:
        """Brakes at once, ends what runs, and stays so until unlocked."""
        if self.safety_mode != SafetyMode.NORMAL:
            return
        self.safety_mode = SafetyMode.PROTECTIVE_STOP
        self._stopped_at = self.cycles
        self.log("error", f"Protective stop: {reason}")
        self._tell("safety_mode", self.safety_mode)
        self._halt("Protective stop.")
        if self.moving:
            self._braking = PROTECTIVE_STOP

    def emergency_stop(self) -> None:
        """As the button on the pendant: cleared by ``restart_safety``, which leaves the arm without power."""
        self.safety_mode = SafetyMode.ROBOT_EMERGENCY_STOP
        self.log("error", "Emergency stop.")
        self._tell("safety_mode", self.safety_mode)
        self._halt("Emergency stop.")
        if self.moving:
            self._braking = PROTECTIVE_STOP
        self._set_robot_mode(RobotMode.POWER_OFF)

    def unlock_protective_stop(self) -> Tuple[bool, str]:
        """Success and the dashboard's answer; the program has to be sent again afterwards."""
        if self.safety_mode != SafetyMode.PROTECTIVE_STOP:
            return False, f"Safety mode is {self.safety_mode.name}, nothing to unlock."
        if (self.cycles - self._stopped_at) * self.cycle < self.unlock_delay or self._braking:
            return False, (
                f"Cannot unlock protective stop until {self.unlock_delay:g}s after occurrence. "
                "Always inspect cause of protective stop before unlocking"
            )
        self.safety_mode = SafetyMode.NORMAL
        self._tell("safety_mode", self.safety_mode)
        return True, "Protective stop releasing"

    def restart_safety(self) -> Tuple[bool, str]:
        """Clears an emergency stop or fault; the arm has to be powered on again."""
        if self.safety_mode in (SafetyMode.NORMAL, SafetyMode.PROTECTIVE_STOP):
            return False, f"Safety mode is {self.safety_mode.name}, no restart needed."
        self.safety_mode = SafetyMode.NORMAL
        self._tell("safety_mode", self.safety_mode)
        self._set_robot_mode(RobotMode.POWER_OFF)
        return True, "Restarting safety"

    def power_on(self) -> Tuple[bool, str]:
        """Powers the arm, brakes still on."""
        if self.safety_mode not in (SafetyMode.NORMAL, SafetyMode.PROTECTIVE_STOP):
            return False, f"Safety mode is {self.safety_mode.name}, NORMAL expected."
        if self.robot_mode < RobotMode.IDLE:
            self._set_robot_mode(RobotMode.IDLE)
        return True, "Powering on"

    def brake_release(self) -> Tuple[bool, str]:
        """Powers the arm if needed and releases its brakes."""
        success, answer = self.power_on()
        if success:
            self._set_robot_mode(RobotMode.RUNNING)
            answer = "Brake releasing"
        return success, answer

    def power_off(self) -> Tuple[bool, str]:
        """Ends what runs and lets the brakes fall in."""
        self._halt("Power off.")
        if self.moving:
            self._braking = PROTECTIVE_STOP
        self._set_robot_mode(RobotMode.POWER_OFF)
        return True, "Powering off"

    def play(self) -> Tuple[bool, str]:
        """Goes on with a paused program, else starts External Control, the only program installed."""
        if self.program is not None and self.program_paused:
            self.program_paused = False
            return True, "Starting program"
        success, answer = self.start_external_control()
        return success, "Starting program" if success else answer

    def pause(self) -> Tuple[bool, str]:
        """Pauses a script where it is; ends External Control, which ``play`` starts again."""
        if self.program is not None:
            self.program_paused = True
        elif self.external_control:
            self._stop_external_control("External Control was paused.")
            if self.moving:
                self._braking = PROGRAM_STOP
        else:
            return False, "No program is running"
        return True, "Pausing program"

    def stop(self) -> Tuple[bool, str]:
        """Ends whatever program runs."""
        if self.program is None and not self.external_control:
            return False, "No program is running"
        self._halt("The program was stopped.")
        if self.moving:
            self._braking = PROGRAM_STOP
        return True, "Stopped"

    def _halt(self, text: str) -> None:
        self._stop_external_control(text)
        self._drop_program()
        self._secondary = []
        if not self.moving:
            self._stand()

    def _set_robot_mode(self, mode: RobotMode) -> None:
        if mode != self.robot_mode:
            self.robot_mode = mode
            self._tell("robot_mode", mode)


__all__ = [
    "EXTERNAL_GAIN",
    "EXTERNAL_LOOKAHEAD",
    "PROGRAM_STOP",
    "PROTECTIVE_STOP",
    "ArmModel",
    "Controller",
    "Happening",
    "Kinematics",
    "ProgramError",
    "ProtectiveStop",
    "RobotMode",
    "SafetyMode",
    "Trapezoid",
]
