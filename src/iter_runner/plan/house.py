"""The house of the studies: its blocks, where they wait, where they go, and what every house task has in common.

Large and small blocks have the sizes of the original study's. They lie in queues to the left, by kind, stacked where a
level does not hold them all; houses are built in front to the right. All is laid out relative to a few places, so that
an arm with another reach only shifts them (:mod:`iter_runner.plan.layout`). Metres and radians, in ``base_link``.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from math import pi
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from iter_runner.plan.build import Block, LayoutError, Place, PlanBuilder
from iter_runner.plan.layout import (
    EAVES,
    GABLE,
    HEIGHT,
    HOME,
    HOME_TIPS,
    OPENING,
    QUEUE_LEVELS,
    RAFTER,
    SIZES,
    TABLE,
    TABLE_CENTRE,
    WALL,
    robot_layout,
)

COLORS: Dict[str, Tuple[float, float, float]] = {"large": (0.80, 0.58, 0.34), "small": (0.45, 0.60, 0.72)}


@dataclass(frozen=True)
class Part:
    """One block of a house.

    Attributes:
        kind: large or small.
        name: what a person calls it.
        course: the layer it belongs to, from 0 at the table.
        dx, dy: from the middle of the house, m; y along the ridge.
        turn: 0 along the ridge, π/2 across.
    """

    kind: str
    name: str
    course: int
    dx: float
    dy: float
    turn: float

    def place(self, site: Place, spread: float = 1.0) -> Place:
        """Where it stands in a house whose middle is at ``site``, and which is ``spread`` times as wide."""
        return site.at(spread * self.dx, self.dy, self.course * HEIGHT, self.turn)


def house(storeys: int = 2) -> List[Part]:
    """The blocks of a house in the order in which they are laid: ``storeys`` log courses, eaves, rafters, ridge, cap.

    A storey is two large walls and two small gables across their ends; the roof is three large and three small blocks.
    """
    parts: List[Part] = []

    def pair(kind: str, name: str, course: int, dx: float, dy: float, turn: float) -> None:
        sides = ("left", "right") if dx else ("near", "far")
        for side, sign in zip(sides, (-1, 1)):
            parts.append(Part(kind, f"{side} {name}", course, sign * dx, sign * dy, turn))

    for storey in range(storeys):
        pair("large", f"wall of storey {storey + 1}", 2 * storey, WALL, 0.0, 0.0)
        pair("small", f"gable of storey {storey + 1}", 2 * storey + 1, 0.0, GABLE, pi / 2)
    roof = 2 * storeys
    pair("large", "eaves", roof, EAVES, 0.0, 0.0)
    pair("small", "rafter", roof + 1, 0.0, RAFTER, pi / 2)
    parts.append(Part("large", "ridge", roof + 2, 0.0, 0.0, 0.0))
    parts.append(Part("small", "ridge cap", roof + 3, 0.0, 0.0, 0.0))
    return parts


class HouseTask:
    """A table with queues and building sites, and a plan that begins on it.

    Args:
        title, description: of the plan.
        options: of :func:`arguments`.
        stock: the parts that the robot will lay, in any order: what has to lie in the queues.

    Raises:
        LayoutError: more blocks than the queues hold, or no robot that could lay them.

    Attributes:
        plan: the builder, for anything else that a task wants to do.
    """

    def __init__(self, title: str, description: str, options: argparse.Namespace, stock: Sequence[Part]) -> None:
        self._options = options
        layout = self._layout = robot_layout(options.robot, options.table_height)
        self.plan = PlanBuilder(
            title,
            description,
            frame_id=layout.frame_id,
            tool_frame=layout.tool_frame,
            hand=layout.hand,
            opening=OPENING,
            velocity=options.velocity,
            approach_velocity=options.approach_velocity,
        )
        x, y = TABLE_CENTRE
        self.plan.obstacle("table", (x, y + layout.shift, options.table_height - TABLE[2] / 2), TABLE)
        self._queues = {kind: self._fill(kind, [part.kind for part in stock].count(kind)) for kind in SIZES}

    def site(self, number: int) -> Place:
        """Where house ``number``, from 0, is built.

        Raises:
            LayoutError: there are fewer sites.
        """
        sites = self._layout.sites
        if number >= len(sites):
            raise LayoutError(f"house {number + 1} has no room: the table has {len(sites)} sites within reach")
        return Place(*sites[number], self._options.table_height)

    def begin(self, message: str) -> None:
        """The arm to its resting place, the fingers open, and a wait for the human to be ready."""
        self.rest()
        self.plan.release()
        self.plan.wait_for_button(message)

    def rest(self) -> None:
        """The arm out of the human's way, over the queues."""
        x, y = HOME
        self.plan.move(x, y + self._layout.shift, HOME_TIPS + self._layout.hand.tip_offset, yaw=pi / 2)

    def robot_lays(self, parts: Sequence[Part], site: Place) -> None:
        """The robot takes a block of the right kind for each part and lays it."""
        for part in parts:
            self.plan.pick_and_place(self._queues[part.kind].pop(), part.place(site, self._layout.spread))

    def human_lays(self, parts: Sequence[Part], site: Place) -> None:
        """What the human has laid by the end of the wait before: the arm keeps clear of it."""
        for part in parts:
            place = part.place(site, self._layout.spread)
            self.plan.human_places(f"{part.name} at {place.x:.2f}, {place.y:.2f}", SIZES[part.kind], place)

    def wait(self, message: str) -> None:
        """The arm rests and waits for the human, who does meanwhile what the message says."""
        self.rest()
        self.plan.wait_for_button(message)

    def finish(self) -> None:
        """Writes the plan where the options say, and a picture of it where they ask for one."""
        if self._options.output == "-":
            sys.stdout.write(self.plan.to_json())
        else:
            path = Path(self._options.output)
            self.plan.write(path)
            print(f"{path}: {len(self.plan.environment)} objects, {len(self.plan.task)} steps")
        if self._options.figure:
            from iter_runner.plan.figure import draw_layout

            draw_layout(self.plan, Path(self._options.figure))

    def _fill(self, kind: str, blocks: int) -> List[Block]:
        """Lays ``blocks`` blocks into the queue of a kind; the last one of the list is to be taken first."""
        places = [Place(x, y, self._options.table_height) for x, y in self._layout.queues[kind]]
        if blocks > QUEUE_LEVELS * len(places):
            raise LayoutError(
                f"the robot needs {blocks} {kind} blocks and the queue holds {QUEUE_LEVELS * len(places)}: "
                "fewer houses, or more of the work to the human"
            )
        return [
            self.plan.block(
                f"{kind} {number + 1}",
                SIZES[kind],
                places[number % len(places)].at(dz=number // len(places) * HEIGHT, turn=pi / 2),
                COLORS[kind],
            )
            for number in range(blocks)
        ]


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the defaults that there are."""

    def _get_help_string(self, action: argparse.Action) -> Optional[str]:
        return action.help if action.default is None else super()._get_help_string(action)


def arguments(name: str, description: str, houses: int = 1) -> argparse.ArgumentParser:
    """The options that every house generator takes, for the plan ``name`` of ``houses`` houses by default."""
    parser = argparse.ArgumentParser(prog=f"generate_{name}", description=description, formatter_class=_HelpFormatter)
    parser.add_argument("--houses", type=count, default=houses, help="how many houses are built")
    parser.add_argument(
        "--robot", default="ur3e", help="the arm that the table is laid out for: a row's name, or the path of one"
    )
    parser.add_argument("--velocity", type=_positive, help="ceiling for travelling, m/s (default: the planner's own)")
    parser.add_argument(
        "--approach-velocity", type=_positive, default=0.1, help="the same for lowering and lifting, m/s"
    )
    parser.add_argument("--table-height", type=float, default=-0.03, help="the table's top in base_link, m")
    parser.add_argument(
        "--output",
        default=str(_plans() / f"{name}.json"),
        help="the plan's file, - for the terminal; needed with options that make another plan",
    )
    parser.add_argument("--figure", help="also draw the layout into this file (png, pdf, svg)")
    return parser


def split(text: str) -> Tuple[int, int]:
    """Two whole numbers as in ``7:7``, the robot's and the human's; not both 0.

    Raises:
        argparse.ArgumentTypeError: it is anything else.
    """
    try:
        robot, human = (int(number) for number in text.split(":"))
    except ValueError:
        robot, human = -1, -1
    if robot < 0 or human < 0 or robot + human == 0:
        raise argparse.ArgumentTypeError(f"'{text}', expected robot:human as two whole numbers, e.g. 7:7")
    return robot, human


def run(generate: Callable[[argparse.Namespace], None], parser: argparse.ArgumentParser) -> None:
    """Runs a generator on the command line's options; what can't be laid out is a usage error.

    So is another plan without a file of its own: it would replace the package's.
    """
    options = parser.parse_args()
    standard = parser.parse_args([])
    if options.output == standard.output:
        for name, value in vars(standard).items():
            if name not in ("output", "figure") and getattr(options, name) != value:
                option = "--" + name.replace("_", "-")
                parser.error(f"{option} makes another plan than {standard.output}: name its file with --output")
    try:
        generate(options)
    except LayoutError as error:
        parser.error(str(error))
    except OSError as error:
        parser.exit(1, f"{parser.prog}: {error.filename}: {error.strerror}\n")


def _plans() -> Path:
    from iter_runner.package import package_folder

    return package_folder() / "plans"


def count(text: str) -> int:
    """A whole number from 1 on.

    Raises:
        argparse.ArgumentTypeError: it is anything else.
    """
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}', expected a whole number from 1 on")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}', expected a number above 0")
    return value
