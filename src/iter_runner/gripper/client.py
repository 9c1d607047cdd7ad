"""A gripper as its driver sees it, whichever way the bytes go."""

from __future__ import annotations

from typing import Protocol

from iter_runner.gripper.registers import Command, Status


class LinkError(Exception):
    """The gripper can't be reached; the message names the port, what was found and what to do."""


class GripperClient(Protocol):
    """One gripper at the end of a line. Used by one thread.

    Each method raises LinkError where the gripper can't be reached, also after a bounded number of retries; the
    line is to be closed and connected again then.
    """

    place: str
    """The port, as users know it: ``/dev/ttyUSB0``, ``192.168.1.5:63352``."""
    errors: int
    """How many answers were missing or wrong so far; most are made good by asking again."""

    def connect(self) -> None:
        """Opens the line and asks the gripper for its state once. Nothing moves."""

    def status(self) -> Status:
        """What the gripper says now."""

    def send(self, command: Command) -> None:
        """Tells the gripper what to do; returns when it has acknowledged that, not when the fingers are there."""

    def close(self) -> None:
        """Lets go of the line; what the gripper does does not change. Never raises."""
