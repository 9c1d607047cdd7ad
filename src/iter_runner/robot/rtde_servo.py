"""Streamed joint targets over RTDE: a program on the controller servoes to the latest one, every cycle."""

from __future__ import annotations

import contextlib
import importlib
import threading
from typing import Any, Callable, List, Optional, Protocol

from iter_runner.robot.arm import Vector
from iter_runner.robot.transport import RTDE_MODULE
from iter_runner.run_control import Fault


class RtdeControl(Protocol):
    """What is used of ``rtde_control.RTDEControlInterface`` (PyPI: ur-rtde)."""

    def servoJ(  # noqa: N802
        self, q: List[float], speed: float, acceleration: float, time: float, lookahead_time: float, gain: float, /
    ) -> bool:
        """The next joint target (n,) rad; speed and acceleration are unused. False where it did not get through."""

    def servoStop(self, a: float = 10.0) -> bool:  # noqa: N802
        """Ends servoing; the arm brakes with ``a``."""

    def isConnected(self) -> bool:  # noqa: N802
        """Whether the controller is connected."""

    def isProgramRunning(self) -> bool:  # noqa: N802
        """Whether any program runs on the controller, the library's or another."""

    def disconnect(self) -> None:
        """Closes the connection."""


def rtde_control(host: str, frequency: float) -> RtdeControl:
    """A connection to the controller at ``host``, whose program runs there when this returns (about a second).

    Whatever program ran before is ended. ``frequency`` in Hz is the controller's cycle.

    Raises:
        RuntimeError: the library's: no controller answers, or it takes no programs (local control).
        ImportError: the package ur-rtde is not installed.
    """
    module: Any = importlib.import_module(RTDE_MODULE)
    control: RtdeControl = module.RTDEControlInterface(host, frequency)
    return control


class RtdeServo:
    """See :class:`iter_runner.robot.arm.Servo`.

    The library's program takes the place of External Control, and the other way round: :meth:`displace` tells that it
    was replaced, ``took_over`` that it replaced what ran. It stays on the controller from one move to the next.

    Args:
        connect: makes the connection and starts its program there.
        host: for messages.
        lookahead_time: of servoj, s (0.03 to 0.2).
        gain: of servoj (100 to 2000).
        took_over: called when the program has replaced whatever ran on the controller.
    """

    fixed_period: Optional[float] = None

    def __init__(
        self,
        connect: Callable[[], RtdeControl],
        host: str,
        lookahead_time: float,
        gain: float,
        took_over: Callable[[], None],
    ) -> None:
        self._connect = connect
        self._host = host
        self._lookahead_time = float(lookahead_time)
        self._gain = float(gain)
        self._took_over = took_over
        self._lock = threading.Lock()
        self._control: Optional[RtdeControl] = None
        self._displaced = False
        self._halted = False
        self._moving = False

    def start(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`: brings the program back where it does not run.

        Raises:
            Fault(driver_lost): no connection, or the controller takes no programs.
        """
        with self._lock:
            self._halted = False
            if self._runs():
                return
            self._close()
            try:
                self._control = self._connect()
            except (RuntimeError, ImportError, OSError) as error:
                raise Fault(
                    "driver_lost",
                    f"can't stream over RTDE to {self._host}: {' '.join(str(error).split())}: check the address, the "
                    "network, and that the robot is on and in remote control, then resume",
                ) from error
            self._displaced = False
        self._took_over()

    def _runs(self) -> bool:
        try:
            return bool(
                self._control is not None
                and not self._displaced
                and self._control.isConnected()
                and self._control.isProgramRunning()
            )
        except RuntimeError:
            return False

    def send(self, positions: Vector, period: float) -> None:
        """See :class:`iter_runner.robot.arm.Servo`.

        Nothing is sent between :meth:`halt` and the next start.

        Raises:
            Fault(driver_lost): the connection is lost.
            Fault(not_ready): the controller's program has ended.
        """
        with self._lock:
            control = self._control
            if control is None or self._halted:
                return
            if self._displaced:
                raise self._fault(control, "")
            self._moving = True
            target: List[float] = positions.tolist()
            try:
                if control.servoJ(target, 0.0, 0.0, float(period), self._lookahead_time, self._gain):
                    return
                why = ""
            except RuntimeError as error:
                why = f" ({' '.join(str(error).split())})"
            raise self._fault(control, why)

    def _fault(self, control: RtdeControl, why: str) -> Fault:
        self._moving = False
        with contextlib.suppress(RuntimeError):
            if not why and control.isConnected():
                self._displaced = True
                return Fault(
                    "not_ready",
                    f"the controller at {self._host} takes no streamed targets: its program has ended (by a stop, the "
                    "pendant, another node's script?): see the pendant's log, then resume",
                )
        self._close()
        return Fault(
            "driver_lost",
            f"the RTDE connection to the controller at {self._host} is lost{why}: check the network, then resume",
        )

    def pause(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`; raises Fault(driver_lost)."""
        self.stop()

    def resume(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`; raises as :meth:`start`."""
        self.start()

    def stop(self) -> None:
        """See :class:`iter_runner.robot.arm.Servo`.

        Raises:
            Fault(driver_lost): the connection is lost: whether the arm stands is not known.
        """
        with self._lock:
            control = self._control
            if control is None or not self._moving or self._displaced:
                return
            self._moving = False
            try:
                if control.servoStop():
                    return
                why = ""
            except RuntimeError as error:
                why = f" ({' '.join(str(error).split())})"
            raise self._fault(control, why)

    # The next two take no lock: whoever halts the arm waits for nobody.

    def displace(self) -> None:
        """Another program has taken the arm over: this one has ended, and nothing is left to stop."""
        self._displaced = True
        self._moving = False

    def halt(self) -> None:
        """Whatever :meth:`send` is still asked to send is dropped."""
        self._halted = True

    def close(self) -> None:
        """Ends the program and the connection. Never raises."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        control, self._control, self._moving = self._control, None, False
        if control is not None:
            with contextlib.suppress(Exception):
                control.disconnect()
