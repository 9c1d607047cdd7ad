"""A Robotiq 2F-85 on a USB serial adapter: Modbus RTU, 115200 baud, 8N1, slave 9."""

from __future__ import annotations

import contextlib
import termios
from typing import Callable, Optional, TypeVar

import serial
from minimalmodbus import Instrument, ModbusException, NoResponseError

from iter_runner.gripper.client import LinkError
from iter_runner.gripper.registers import COMMAND_ADDRESS, REGISTERS, STATUS_ADDRESS, Command, Status
from iter_runner.serial_port import why_not_open

BAUD = 115200
SLAVE = 9
ANSWER_TIME = 0.2
"""Seconds that the gripper has for an answer; it needs some milliseconds."""
ATTEMPTS = 3
"""How often a request is sent before the gripper counts as lost."""

Answer = TypeVar("Answer")


class SerialClient:
    """See :class:`iter_runner.gripper.client.GripperClient`.

    Requests may be repeated: writing the same registers twice changes nothing the second time.

    Args:
        port: the device, e.g. ``/dev/ttyUSB0`` or its name in ``/dev/serial/by-id/``.
        answer_time: s, until a request is sent again.
    """

    def __init__(self, port: str, answer_time: float = ANSWER_TIME) -> None:
        self.place = port
        self.errors = 0
        self._answer_time = answer_time
        self._line: Optional[serial.Serial] = None
        self._instrument: Optional[Instrument] = None
        self._activated = False

    def connect(self) -> None:
        """See :class:`iter_runner.gripper.client.GripperClient`."""
        try:
            # Exclusive: two programs on one line would take each other's answers.
            self._line = serial.Serial(
                self.place, BAUD, timeout=self._answer_time, write_timeout=self._answer_time, exclusive=True
            )
        except (OSError, ValueError, termios.error) as error:  # SerialException is an OSError
            raise LinkError(f"can't open {self.place}: {why_not_open(self.place, error)}") from None
        with contextlib.suppress(AttributeError, NotImplementedError, OSError, ValueError):  # adapters that can't
            self._line.set_low_latency_mode(True)  # else an FTDI chip keeps each answer for 16 ms
        self._instrument = Instrument(self._line, SLAVE)
        try:
            self.status()
        except LinkError:
            self.close()
            raise

    def status(self) -> Status:
        """See :class:`iter_runner.gripper.client.GripperClient`."""
        status = Status.of_registers(self._ask(lambda line: line.read_registers(STATUS_ADDRESS, REGISTERS)))
        self._activated = status.activated
        return status

    def send(self, command: Command) -> None:
        """See :class:`iter_runner.gripper.client.GripperClient`."""
        activated = self._activated
        again = False

        def write(line: Instrument) -> None:
            nonlocal again
            if again:
                # A gripper that was without power meanwhile would take any command for its activation, and move.
                found = Status.of_registers(line.read_registers(STATUS_ADDRESS, REGISTERS)).activated
                if found != activated and found == command.activate:
                    return  # the command had arrived, its answer had not
                if found != activated:
                    raise LinkError(f"the gripper on {self.place} was without power for a moment: look at its supply")
            again = True
            line.write_registers(COMMAND_ADDRESS, registers)

        registers = command.registers()
        self._ask(write)
        self._activated = command.activate

    def close(self) -> None:
        """See :class:`iter_runner.gripper.client.GripperClient`."""
        line, self._line, self._instrument = self._line, None, None
        if line is not None:
            with contextlib.suppress(OSError, termios.error):  # its device is gone
                line.close()

    def _ask(self, request: Callable[[Instrument], Answer]) -> Answer:
        if self._instrument is None:
            raise LinkError(f"{self.place} is not open")
        answers = trouble = ""
        for _ in range(ATTEMPTS):
            try:
                return request(self._instrument)
            except ModbusException as error:  # no answer, a wrong checksum, an answer to something else
                self.errors += 1
                answers = "does not answer" if isinstance(error, NoResponseError) else "gives no right answer"
                trouble = " ".join(str(error).split())
            except (OSError, termios.error) as error:
                raise LinkError(f"lost {self.place} ({_reason(error)}): is its cable in?") from None
        raise LinkError(
            f"the gripper on {self.place} {answers}, asked {ATTEMPTS} times ({trouble}): "
            "has it 24 V, and is this its port?"
        )


def _reason(error: Exception) -> str:
    """What the system says of a port; termios' errors are a number and that."""
    return str(error.args[-1]) if isinstance(error, termios.error) else str(error)
