"""The arm and the gripper as planners and primitives see them; implementations talk to real drivers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional, Protocol, Sequence

import numpy as np
from numpy.typing import NDArray

from iter_runner.run_control import RunControl

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class JointReading:
    """What the driver last measured, in the order of the robot's row.

    Attributes:
        positions: (n,) rad.
        velocities: (n,) rad/s.
        time: study clock, s.
    """

    positions: Vector
    velocities: Vector
    time: float


@dataclass(frozen=True)
class JointPath:
    """A commanded joint path with its timing.

    Attributes:
        positions: (N, n) rad.
        times: (N,) s from the start of the motion, increasing from 0.
    """

    positions: Vector
    times: Vector


class Servo(Protocol):
    """A transport of streamed joint targets: the script topic, a controller-side loop, joint velocities.

    Attributes:
        fixed_period: s between targets where the driver takes no other pace; None: every target has its own.
    """

    fixed_period: Optional[float]

    def start(self) -> None:
        """Takes the arm over for streaming."""

    def send(self, positions: Vector, period: float) -> None:
        """One joint target (n,) rad, to be reached within ``period`` s; returns without waiting for the arm."""

    def pause(self) -> None:
        """Lets go of the arm while the hand works; the arm stands still."""

    def resume(self) -> None:
        """Takes the arm over again after :meth:`pause`."""

    def stop(self) -> None:
        """Ends the stream; the arm stands still."""


class Arm(Protocol):
    """An arm behind its driver.

    Faults of the driver (protective stop, lost driver, stale joint states) reach the run by
    ``RunControl.report_fault`` from the implementation's callbacks, and are raised by its methods.
    """

    joint_names: Sequence[str]
    speed_scaling: float
    """What part of its commanded speed the controller runs at (the speed slider), 0 to 1."""

    def reading(self) -> JointReading:
        """The last measured joint state. Raises Fault(stale_joint_states) if none came lately."""

    def wait_for_reading(
        self, predicate: Callable[[JointReading], bool], control: RunControl, deadline: Optional[float] = None
    ) -> bool:
        """Blocks until ``predicate`` holds for a joint state as it comes (True) or until ``deadline`` (False).

        ``deadline`` is on the study clock; raises Fault and Stopped as ``control.wait_for`` does.
        """

    def make_ready(self, control: RunControl) -> None:
        """Returns when the arm will obey motions (driver up, no stop, program running); else raises Fault."""

    def follow(self, path: JointPath, control: RunControl) -> None:
        """Sends ``path`` as one trajectory and blocks until the driver says it is done.

        Brings the trajectory controller back first where a script displaced it.

        Raises:
            Fault: refused, tolerance violated, or the driver's own fault.
            Stopped: the run was stopped; the arm was halted.
        """

    def script(self, program: str) -> None:
        """Sends a program to the controller (UR only; Fault elsewhere). Returns at once."""

    def wait_for_script(self, control: RunControl) -> None:
        """Returns when the program that :meth:`script` sent last has ended and the arm stands.

        Raises:
            Fault, Stopped: see RunControl.
        """

    def servo(self) -> Servo:
        """The stream of joint targets."""

    def halt(self) -> None:
        """Stops whatever moves the arm, at once. Never raises."""


@dataclass(frozen=True)
class GripperReading:
    """The gripper driver's answer.

    Attributes:
        position: in the driver's unit (a Robotiq's knuckle angle, a Mico's finger angle), rad.
        opening: between the fingertips, m.
        stalled: an object, or something else, stopped the fingers.
        reached_goal: the fingers are where they were asked to be.
    """

    position: float
    opening: float
    stalled: bool
    reached_goal: bool


class Gripper(Protocol):
    """A gripper behind its control_msgs/GripperCommand action."""

    def move(self, position: float, max_effort: float, control: RunControl) -> GripperReading:
        """Moves the fingers to ``position`` (driver's unit, rad) and blocks until they stand still.

        A ``max_effort`` (N) of 0 leaves the force to the gripper's row.

        Raises:
            Fault(gripper): aborted or no answer.
            Stopped: the run was stopped; the fingers were halted.
        """

    def position_of(self, opening: float) -> float:
        """The driver's position (rad) at which the fingertips are ``opening`` metres apart, clipped to the range."""

    def opening_of(self, position: float) -> float:
        """The inverse of :meth:`position_of`, m."""
