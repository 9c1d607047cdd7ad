"""What a generator script imports: a builder that writes a plan step by step, from blocks and places.

A generator says what happens, in order; the builder works out the flange's poses and the heights of travel::

    plan = PlanBuilder("Two blocks")
    plan.obstacle("table", center=(0.0, 0.35, -0.04), size=(0.8, 0.5, 0.02))
    queue = Place(-0.2, 0.3, -0.03).row(2, dy=0.05)
    tower = Place(0.2, 0.3, -0.03).stack(2, height=0.015)
    for number in range(2):
        block = plan.block(f"block {number}", (0.1, 0.02, 0.015), queue[number])
        plan.pick_and_place(block, tower[number])
    plan.wait_for_button("Take the tower away and press.")
    plan.write("tower.json")

Lengths are metres and angles radians, in the plan's ``frame_id`` (z up). Numbers are written to six decimals, so that
the same script writes the same bytes everywhere.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import cos, hypot, pi, sin
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

VERSION = "1.0.0"
DECIMALS = 6
TIP_MARGIN = 0.0005
"""Between the closed fingertips and the underside of the block that they hold, m."""
HAND_RADIUS = 0.055
"""Of an upright cylinder around the hand's fingers and what they hold, m."""

Triple = Tuple[float, float, float]


class LayoutError(ValueError):
    """What was asked for does not fit: too many blocks, a block too wide for the hand, a name given twice."""


@dataclass(frozen=True)
class Place:
    """A spot that a block stands on: the centre of its underside, m, turned by ``yaw``, rad, about the vertical.

    It is also a frame: every other place can be given relative to it, in its own turned axes.
    """

    x: float
    y: float
    z: float
    yaw: float = 0.0

    def at(self, dx: float = 0.0, dy: float = 0.0, dz: float = 0.0, turn: float = 0.0) -> Place:
        """The place that is (dx, dy, dz) from here along this place's axes, and turned by ``turn`` against it."""
        c, s = cos(self.yaw), sin(self.yaw)
        return Place(self.x + c * dx - s * dy, self.y + s * dx + c * dy, self.z + dz, self.yaw + turn)

    def row(self, count: int, dx: float = 0.0, dy: float = 0.0) -> List[Place]:
        """``count`` places, each (dx, dy) further, beginning here."""
        return [self.at(i * dx, i * dy) for i in range(count)]

    def grid(self, columns: int, rows: int, dx: float, dy: float) -> List[Place]:
        """``columns`` along x times ``rows`` along y, a column at a time, beginning here."""
        return [self.at(column * dx, row * dy) for column in range(columns) for row in range(rows)]

    def stack(self, count: int, height: float) -> List[Place]:
        """``count`` places, one upon the other, beginning here."""
        return [self.at(dz=i * height) for i in range(count)]


@dataclass(frozen=True)
class Block:
    """A box that the hand can take.

    Attributes:
        name: unique in the plan.
        size: edges along its own x, y and z, m.
    """

    name: str
    size: Triple

    @property
    def width(self) -> float:
        """What the fingers close on: the shorter horizontal edge, m."""
        return min(self.size[0], self.size[1])

    @property
    def grip_turn(self) -> float:
        """From the block's yaw to the hand's, rad: the fingers close along the hand's x, across the block's width."""
        return 0.0 if self.size[0] <= self.size[1] else pi / 2


@dataclass(frozen=True)
class Hand:
    """A parallel hand as seen from the flange it hangs from; the defaults are a Robotiq 2F-85 on its coupling.

    The fingers are driven by four-bar linkages: as they close, their tips go out by a few millimetres.

    Attributes:
        tip_offset: flange to fingertips with the fingers open, m.
        widest: opening of the open fingers, m.
        crank: of a finger's linkage with the fingers open, along and across the hand's axis, m.
        angle_per_opening: how far the crank turns as the fingers close by a metre, rad/m.
        thickness: of a fingertip, along the line on which the fingers close, m.
        breadth: of a fingertip, across that line, m.
        squeeze: how much narrower than the block the fingers are told to close, m, so that they press.
    """

    tip_offset: float = 0.1675
    widest: float = 0.085
    crank: Tuple[float, float] = (0.04304, 0.0376)
    angle_per_opening: float = 10.0
    thickness: float = 0.015
    breadth: float = 0.022
    squeeze: float = 0.002

    def tip_reach(self, opening: float) -> float:
        """Flange to fingertips with the fingers ``opening`` m apart, m."""
        angle = self.angle_per_opening * (self.widest - opening)
        along, across = self.crank
        return self.tip_offset + along * (cos(angle) - 1.0) + across * sin(angle)


@dataclass(frozen=True)
class _Standing:
    """A block as an upright cylinder around it."""

    x: float
    y: float
    top: float
    radius: float


class PlanBuilder:
    """A plan in the making.

    The hand points straight down in every move. Between two places it lifts, travels and lowers in straight lines;
    travelling, it and what it holds pass over everything that stands in the way by ``clearance`` or more.

    Args:
        title: of the plan.
        description: what the task is for.
        author: who stands behind it.
        frame_id: the frame of all places and poses, fixed in the robot, z up.
        tool_frame: the frame that the poses are of, z the way the hand points, x along which its fingers close.
        hand: the gripper.
        opening: of the fingers before a grasp and after a release, m; more than the widest block's width.
        clearance: between what travels and what stands, vertically, m.
        gap: between a block's underside and what it is let go on, m.
        velocity: ceiling for travelling, m/s of the flange; None: the planner's own.
        approach_velocity: ceiling for lowering and lifting, m/s; None: the planner's own.
    """

    def __init__(
        self,
        title: str,
        description: str = "",
        author: str = "iter_runner",
        frame_id: str = "base_link",
        tool_frame: str = "tool0",
        hand: Optional[Hand] = None,
        opening: float = 0.03,
        clearance: float = 0.03,
        gap: float = 0.0005,
        velocity: Optional[float] = None,
        approach_velocity: Optional[float] = 0.1,
    ) -> None:
        self.title = title
        self.description = description
        self.author = author
        self.frame_id = frame_id
        self.tool_frame = tool_frame
        self.hand = hand or Hand()
        self.opening = opening
        self.clearance = clearance
        self.gap = gap
        self.environment: List[Dict[str, Any]] = []
        self.task: List[Dict[str, Any]] = []
        self.places: Dict[str, Place] = {}
        """Where every block stands at this point of the task, by name, the human's too; not the one in the hand."""
        self.first_places: Dict[str, Place] = {}
        """Where each of the robot's blocks stood when the task began."""
        self.laid_by_human: List[Tuple[int, str]] = []
        """The human's blocks, each with the number of steps done when it stands."""
        self.sizes: Dict[str, Triple] = {}
        """Of every block, by name, m."""
        self._travelling = _options(velocity)
        self._approaching = _options(approach_velocity)
        self._standing: Dict[str, _Standing] = {}
        self._held = ""
        self._flange: Optional[Triple] = None
        self._yaw = 0.0
        self._low = False  # the hand is still down: how high it lifts depends on where it goes next

    # Things.

    def obstacle(self, name: str, center: Triple, size: Triple, color: Sequence[float] = (0.82, 0.8, 0.76)) -> None:
        """A box that nothing may touch, e.g. the table, by its centre and edges along x, y and z, m."""
        self._add_object(name, center, 0.0, size, False, color)

    def block(self, name: str, size: Triple, place: Place, color: Sequence[float] = (0.85, 0.65, 0.4)) -> Block:
        """A block that stands at ``place`` when the task begins; ``size`` is along its own x, y and z, m.

        Raises:
            LayoutError: the name is taken, or the block is wider than the fingers' opening.
        """
        block = Block(name, size)
        if block.width >= self.opening:
            raise LayoutError(
                f"block '{name}' is {1000 * block.width:g} mm wide, expected less than the fingers' opening of "
                f"{1000 * self.opening:g} mm: give the builder a wider opening"
            )
        self._add_object(name, (place.x, place.y, place.z + size[2] / 2), place.yaw, size, True, color)
        self.first_places[name] = place
        self._stand(block, place)
        return block

    def human_places(self, name: str, size: Triple, place: Place) -> None:
        """From this step on a block of the human's stands at ``place``, and travelling keeps clear of it.

        The plan's ``environment`` does not list it: the robot never takes it.
        """
        self._lift_off()
        self.laid_by_human.append((len(self.task), name))
        self._stand(Block(name, size), place)

    def human_takes_away(self, names: Sequence[str]) -> None:
        """From this step on these blocks stand nowhere."""
        for name in names:
            del self.places[name], self._standing[name]

    # Steps.

    def step(self, name: str, **fields: Any) -> None:
        """Any primitive of the plan language, with its fields as the plan has them."""
        self._lift_off()
        self.task.append({"name": name, **fields})

    def move(self, x: float, y: float, z: float, yaw: float = 0.0, options: Optional[Mapping[str, Any]] = None) -> None:
        """Moves the flange (``tool_frame``) to (x, y, z) m, the hand pointing down.

        Args:
            x, y, z: of the flange.
            yaw: rad; 0: the fingers close along x.
            options: of the move; those for travelling otherwise.
        """
        fields: Dict[str, Any] = {
            "position": _vector((x, y, z)),
            # Half a turn about x, which points the flange's z down, then the yaw about the vertical.
            "orientation": _quaternion(cos(yaw / 2), sin(yaw / 2), 0.0, 0.0),
        }
        chosen = self._travelling if options is None else options
        if chosen:
            fields["options"] = dict(chosen)
        self.step("move", **fields)
        self._flange, self._yaw = (x, y, z), yaw

    def grasp(self, width: float) -> None:
        """Closes the fingers until they are ``width`` m apart or something stops them."""
        self.step("grasp", width=_number(width))

    def release(self, width: Optional[float] = None) -> None:
        """Opens the fingers ``width`` m wide; the builder's ``opening`` otherwise."""
        self.step("release", width=_number(self.opening if width is None else width))

    def log(self, message: str) -> None:
        """A line for the record."""
        self.step("logger", msg=message)

    def wait(self, seconds: float) -> None:
        """Stands still."""
        self.step("wait", condition="time", value=_number(seconds))

    def wait_for_button(self, message: str, timeout: Optional[float] = None) -> None:
        """Waits on the human where the arm is; ``message`` says what the human does meanwhile.

        Args:
            message: for the screen and the record.
            timeout: s after which the plan goes on without a press; None: never.
        """
        fields: Dict[str, Any] = {"condition": "button", "message": message}
        if timeout is not None:
            fields["timeout"] = _number(timeout)
        self.step("wait", **fields)

    def prompt(self, message: str) -> None:
        """Asks the human a question."""
        self.step("prompt", msg=message)

    def pick_and_place(self, block: Block, place: Place) -> None:
        """Takes a block from where it stands to ``place``; ends with the open hand above it."""
        self.pick(block)
        self.place(block, place)

    def pick(self, block: Block) -> None:
        """Takes a block and lifts it.

        Raises:
            LayoutError: the hand holds one already, or the block stands nowhere.
        """
        if self._held:
            raise LayoutError(f"block '{block.name}' can't be picked: the hand holds '{self._held}', place it first")
        if block.name not in self.places:
            raise LayoutError(f"block '{block.name}' can't be picked: it stands nowhere")
        place = self.places[block.name]
        x, y, low = self._flange_at(block, place)
        yaw = place.yaw + block.grip_turn
        self._travel(x, y, low, yaw)
        self.move(x, y, low, yaw, self._approaching)
        self.step("connect_object", object_name=block.name)
        self.grasp(block.width - self.hand.squeeze)
        self.human_takes_away([block.name])
        self._held = block.name
        self._low = True

    def place(self, block: Block, place: Place) -> None:
        """Puts the block in the hand down at ``place`` and lifts the open hand off it.

        Raises:
            LayoutError: the hand holds another block or none.
        """
        if self._held != block.name:
            held = f"the hand holds '{self._held}'" if self._held else "the hand is empty"
            raise LayoutError(f"block '{block.name}' can't be placed: {held}, pick it first")
        x, y, low = self._flange_at(block, place, self.gap)
        yaw = place.yaw + block.grip_turn
        self._travel(x, y, low, yaw)
        self.move(x, y, low, yaw, self._approaching)
        self.release()
        self.step("disconnect_object", object_name=block.name)
        self._held = ""
        self._stand(block, place)
        self._low = True

    # Writing.

    def document(self) -> Dict[str, Any]:
        """The plan as its JSON has it."""
        self._lift_off()
        return {
            "title": self.title,
            "author": self.author,
            "version": VERSION,
            "description": self.description,
            "frame_id": self.frame_id,
            "tool_frame": self.tool_frame,
            "environment": self.environment,
            "task": self.task,
        }

    def to_json(self) -> str:
        """The plan's text, a line end at its end."""
        return json.dumps(self.document(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, path: Union[str, Path]) -> None:
        """Writes the plan's text in UTF-8, the line ends the same on every system."""
        Path(path).write_bytes(self.to_json().encode("utf-8"))

    # Heights and bookkeeping.

    @property
    def _depth(self) -> float:
        """From the flange down to the underside of a block in the hand, m; the empty hand's tips are not lower."""
        return self.hand.tip_reach(self.opening - self.hand.squeeze) + TIP_MARGIN

    def _flange_at(self, block: Block, place: Place, gap: float = 0.0) -> Triple:
        """The flange when the hand holds ``block`` at ``place``: the fingertips just above its underside.

        Both the closed ones and those that have just opened: some fingers' tips rise as they close.
        """
        reach = max(self.hand.tip_reach(block.width - self.hand.squeeze), self.hand.tip_reach(self.opening))
        return (place.x, place.y, place.z + gap + reach + TIP_MARGIN)

    def _lift_off(self) -> None:
        """Lifts the hand where it is, if it is still down."""
        if self._low and self._flange is not None:
            self._low = False
            x, y, z = self._flange
            self.move(x, y, self._heights((x, y, z + self.clearance), self._flange)[0], self._yaw, self._approaching)

    def _travel(self, x: float, y: float, low: float, yaw: float) -> None:
        """From where the flange is to above (x, y, low)."""
        above = (x, y, low + self.clearance)
        if self._flange is None:
            self.move(x, y, self._heights(above, above)[1], yaw)
            return
        here_x, here_y, here = self._flange
        start, end = self._heights((here_x, here_y, here + self.clearance * self._low), above)
        if self._low or start > here + 1e-9:
            self._low = False
            self.move(here_x, here_y, start, self._yaw, self._approaching)
        self.move(x, y, end, yaw)

    def _heights(self, start: Triple, end: Triple) -> Tuple[float, float]:
        """Flange heights (m), at least those of ``start`` and ``end``, whose straight line is clear of what stands."""
        first, last = start[2], end[2]
        length = hypot(end[0] - start[0], end[1] - start[1])
        between: List[Tuple[float, float]] = []
        for thing in self._standing.values():
            reach = thing.radius + HAND_RADIUS
            need = thing.top + self.clearance + self._depth
            by_start = hypot(thing.x - start[0], thing.y - start[1]) < reach
            by_end = hypot(thing.x - end[0], thing.y - end[1]) < reach
            if by_start:
                first = max(first, need)
            if by_end:
                last = max(last, need)
            if length > 1e-9 and not (by_start or by_end):
                along = (thing.x - start[0]) * (end[0] - start[0]) + (thing.y - start[1]) * (end[1] - start[1])
                phase = min(1.0, max(0.0, along / length**2))
                x, y = start[0] + phase * (end[0] - start[0]), start[1] + phase * (end[1] - start[1])
                if hypot(thing.x - x, thing.y - y) < reach:
                    between.append((phase, need))
        missing = max([0.0, *(need - (first + phase * (last - first)) for phase, need in between)])
        return first + missing, last + missing

    def _add_object(
        self, name: str, center: Triple, yaw: float, size: Triple, graspable: bool, color: Sequence[float]
    ) -> None:
        if any(item["name"] == name for item in self.environment):
            raise LayoutError(f"there are two objects named '{name}': give each its own name")
        self.environment.append(
            {
                "name": name,
                "representation": "box",
                "position": _vector(center),
                "orientation": _quaternion(0.0, 0.0, sin(yaw / 2), cos(yaw / 2)),
                "size": _vector(size),
                "graspable": graspable,
                "color": {key: _number(value) for key, value in zip("rgba", [*color, 1.0][:4])},
            }
        )

    def _stand(self, block: Block, place: Place) -> None:
        self.places[block.name] = place
        self.sizes[block.name] = block.size
        radius = hypot(block.size[0], block.size[1]) / 2
        self._standing[block.name] = _Standing(place.x, place.y, place.z + block.size[2], radius)


def _options(velocity: Optional[float]) -> Dict[str, float]:
    return {} if velocity is None else {"velocity": _number(velocity)}


def _number(value: float) -> float:
    return round(float(value), DECIMALS) + 0.0  # + 0.0: no -0.0


def _vector(values: Triple) -> Dict[str, float]:
    return {key: _number(value) for key, value in zip("xyz", values)}


def _quaternion(x: float, y: float, z: float, w: float) -> Dict[str, float]:
    return {key: _number(value) for key, value in zip("xyzw", (x, y, z, w))}
