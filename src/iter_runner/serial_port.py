"""What is wrong with a serial port, for a person."""

from __future__ import annotations

import errno
from pathlib import Path


def ports_here() -> str:
    """The serial ports of this machine, separated by commas; ``none`` where there are none."""
    from serial.tools.list_ports import comports

    return ", ".join(sorted(port.device for port in comports())) or "none"


def why_not_open(port: str, error: Exception) -> str:
    """Why a port could not be opened, and what to do about it.

    Args:
        port: the device's path.
        error: what pyserial raised.
    """
    number = getattr(error, "errno", None)
    if number == errno.EACCES:
        return "permission denied (add yourself to the group that owns it, often dialout, and log in again)"
    if number == errno.ENOENT or not Path(port).exists():
        return f"no such port (is it plugged in? serial ports here: {ports_here()})"
    if number == errno.EBUSY or "exclusively lock" in str(error):
        return "another program has it open"
    return str(error)
