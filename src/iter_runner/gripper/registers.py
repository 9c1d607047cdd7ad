"""The registers of a Robotiq 2F-85: what they hold, and what their counts are in metres, radians and newtons.

Three registers of two bytes each to the gripper (at 0x03E8) and from it (at 0x07D0), from Robotiq's instruction manual
of the 2F-85 and 2F-140. The URCap's socket has the same variables by name.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, List, NamedTuple, Optional, Sequence

if TYPE_CHECKING:
    from iter_runner.robot.table import GripperRow

COMMAND_ADDRESS = 0x03E8
STATUS_ADDRESS = 0x07D0
REGISTERS = 3
"""How many there are at each address."""

COUNT_OPEN = 3
COUNT_CLOSED = 230
"""Positions that the fingers have at the ends of their way, about; what is asked for beyond them is an end as well."""
COUNT_LIMIT = 255

FORCE_RANGE = (20.0, 235.0)
"""N at the counts 0 and 255."""
SPEED_RANGE = (0.02, 0.15)
"""m/s of opening at the counts 0 and 255."""
CURRENT_PER_COUNT = 0.010
"""A."""


class Activation(enum.IntEnum):
    """gSTA."""

    RESET = 0
    UNDER_WAY = 1
    UNUSED = 2
    DONE = 3


class Obstruction(enum.IntEnum):
    """gOBJ: what the fingers do, or why they stand still."""

    MOVING = 0
    STOPPED_OPENING = 1
    STOPPED_CLOSING = 2
    ARRIVED = 3


class FaultKind(NamedTuple):
    """What a fault's number means, and what a person does about it."""

    what: str
    remedy: str


FAULTS: Dict[int, FaultKind] = {
    5: FaultKind("its activation must be done first", "wait for its end, or activate it"),
    7: FaultKind("a motion has to wait for its activation", "activate it"),
    8: FaultKind("over temperature", "let it cool down below 80 °C"),
    9: FaultKind("it heard nothing for 1 s", "look at the cable, and whether this computer is overloaded"),
    10: FaultKind("under voltage", "look at its 24 V supply, then activate it"),
    11: FaultKind("an automatic release is under way", "wait for its end, then activate it"),
    12: FaultKind("internal fault", "activate it; if that does not help, ask Robotiq"),
    13: FaultKind("its activation failed", "free the fingers, then activate it"),
    14: FaultKind("overcurrent", "free the fingers, then activate it"),
    15: FaultKind("an automatic release is done", "activate it"),
}
OVER_TEMPERATURE = 8
NO_COMMUNICATION = 9
FIRST_MAJOR_FAULT = 10
"""Faults from here on end with an activation, and with nothing else."""


def describe_fault(fault: int) -> str:
    """A fault for a person: its number, name and remedy; empty where there is none."""
    if fault == 0:
        return ""
    kind = FAULTS.get(fault)
    return f"fault {fault}, {kind.what}: {kind.remedy}" if kind else f"fault {fault}, which its manual does not list"


@dataclass(frozen=True)
class Command:
    """What the gripper is told. Counts are whole numbers from 0 to 255.

    Attributes:
        activate: rACT; its rising edge activates the gripper, and the fingers move.
        go: rGTO; the fingers stand still without.
        release: rATR; lets go slowly, after which only an activation helps.
        release_opening: rARD; a release opens the fingers (closes them otherwise).
        position: rPR, 0 open to 255 closed.
        speed: rSP.
        force: rFR.
    """

    activate: bool = False
    go: bool = False
    release: bool = False
    release_opening: bool = False
    position: int = 0
    speed: int = 0
    force: int = 0

    def __post_init__(self) -> None:
        for name, count in (("position", self.position), ("speed", self.speed), ("force", self.force)):
            if not 0 <= count <= COUNT_LIMIT:
                raise ValueError(f"{name} is {count}, expected a count from 0 to {COUNT_LIMIT}")

    def registers(self) -> List[int]:
        """The three registers at 0x03E8."""
        action = self.activate | self.go << 3 | self.release << 4 | self.release_opening << 5
        return [action << 8, self.position, self.speed << 8 | self.force]

    @classmethod
    def of_registers(cls, registers: Sequence[int]) -> Command:
        """What three registers at 0x03E8 say."""
        action = registers[0] >> 8
        return cls(
            activate=bool(action & 0x01),
            go=bool(action & 0x08),
            release=bool(action & 0x10),
            release_opening=bool(action & 0x20),
            position=registers[1] & 0xFF,
            speed=registers[2] >> 8,
            force=registers[2] & 0xFF,
        )


@dataclass(frozen=True)
class Status:
    """What the gripper says.

    Attributes:
        activated: gACT, the echo of rACT.
        going: gGTO, the echo of rGTO.
        activation: gSTA.
        obstruction: gOBJ; means something only while ``going``.
        fault: gFLT, 0 for none.
        requested: gPR, the echo of rPR; None where the gripper's driver does not tell.
        position: gPO.
        current: gCU; 0 where the gripper's driver does not tell.
    """

    activated: bool = False
    going: bool = False
    activation: Activation = Activation.RESET
    obstruction: Obstruction = Obstruction.MOVING
    fault: int = 0
    requested: Optional[int] = 0
    position: int = COUNT_OPEN
    current: int = 0

    @property
    def ready(self) -> bool:
        """Whether it obeys commands."""
        return self.activation is Activation.DONE and self.fault < FIRST_MAJOR_FAULT

    def registers(self) -> List[int]:
        """The three registers at 0x07D0."""
        first = self.activated | self.going << 3 | self.activation << 4 | self.obstruction << 6
        return [first << 8, self.fault << 8 | (self.requested or 0), self.position << 8 | self.current]

    @classmethod
    def of_registers(cls, registers: Sequence[int]) -> Status:
        """What three registers at 0x07D0 say. The fault's upper half is a controller's own."""
        first = registers[0] >> 8
        return cls(
            activated=bool(first & 0x01),
            going=bool(first & 0x08),
            activation=Activation(first >> 4 & 0x3),
            obstruction=Obstruction(first >> 6 & 0x3),
            fault=registers[1] >> 8 & 0x0F,
            requested=registers[1] & 0xFF,
            position=registers[2] >> 8,
            current=registers[2] & 0xFF,
        )


def force_count(newtons: float) -> int:
    """The count of a force in N, clipped to 20 … 235 N."""
    return _count(newtons, *FORCE_RANGE)


def force_of(count: int) -> float:
    """The force (N) of a count."""
    return FORCE_RANGE[0] + count / COUNT_LIMIT * (FORCE_RANGE[1] - FORCE_RANGE[0])


def speed_count(speed: float) -> int:
    """The count of a speed in m/s of opening, clipped to 0.02 … 0.15 m/s."""
    return _count(speed, *SPEED_RANGE)


def speed_of(count: int) -> float:
    """The speed (m/s of opening) of a count."""
    return SPEED_RANGE[0] + count / COUNT_LIMIT * (SPEED_RANGE[1] - SPEED_RANGE[0])


def _count(value: float, low: float, high: float) -> int:
    return round(COUNT_LIMIT * (min(max(value, low), high) - low) / (high - low))


@dataclass(frozen=True)
class FingerScale:
    """Position counts beside the opening between the fingertips and the driver's position (knuckle angle).

    The opening is linear in the count, stroke * (230 - count) / 227; the angle is linear in the opening, by the
    gripper's row. A row whose ``position_closed`` still leaves some millimetres of opening (the original driver's
    relation does) means *closed* all the same: the ends of its range are the ends of the fingers' way, 0 and 255.

    Attributes:
        stroke: the opening with the fingers open, m.
        position_open, position_closed: the driver's positions at the ends of the row's range, rad.
        opening_closed: the opening that the row has at ``position_closed``, m.
    """

    stroke: float
    position_open: float
    position_closed: float
    opening_closed: float

    @classmethod
    def of_row(cls, row: GripperRow) -> FingerScale:
        """The scale of a gripper's row."""
        return cls(row.opening_open, row.position_open, row.position_closed, row.opening_closed)

    def opening_of_count(self, count: int) -> float:
        """m between the fingertips, clipped to 0 … stroke."""
        share = (COUNT_CLOSED - count) / (COUNT_CLOSED - COUNT_OPEN)
        return self.stroke * min(max(share, 0.0), 1.0)

    def count_of_opening(self, opening: float) -> int:
        """The count at which the fingertips are ``opening`` metres apart; 0 and 255 at the ends and beyond."""
        share = opening / self.stroke
        if share >= 1.0:
            return 0
        if share <= 0.0:
            return COUNT_LIMIT
        return round(COUNT_CLOSED - share * (COUNT_CLOSED - COUNT_OPEN))

    def angle_of_count(self, count: int) -> float:
        """The driver's position, rad, clipped to the row's range."""
        share = (self.stroke - self.opening_of_count(count)) / (self.stroke - self.opening_closed)
        return self.position_open + min(share, 1.0) * (self.position_closed - self.position_open)

    def count_of_angle(self, angle: float) -> int:
        """The count for a driver's position in rad; 0 and 255 at the ends of the row's range and beyond."""
        share = (angle - self.position_open) / (self.position_closed - self.position_open)
        if share >= 1.0 - 1e-6:
            return COUNT_LIMIT
        return self.count_of_opening(self.stroke - max(share, 0.0) * (self.stroke - self.opening_closed))

    @property
    def counts_per_metre(self) -> float:
        """How many counts a metre of opening is."""
        return (COUNT_CLOSED - COUNT_OPEN) / self.stroke
