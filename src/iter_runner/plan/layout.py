"""How a house task lies on the table of one robot: what its hand needs, and where its arm reaches.

The standard table is as far out as the robot's arm needs it, and keeps of its places what the arm reaches. Any row of
the robots' table will do, or one of a lab's own. Metres and radians, in the robot's base frame.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from math import pi
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

import numpy as np

from iter_runner.kinematics import Box, Chain, ChainError, Obstacles, clearance, load_chain
from iter_runner.kinematics.rotations import rpy_to_matrix
from iter_runner.kinematics.urdf import Urdf, read_urdf
from iter_runner.plan.build import TIP_MARGIN, Hand, LayoutError, Triple
from iter_runner.planners.inverse import Branches
from iter_runner.robot.table import GripperRow, Robot, RobotError, load_robot, robot_gripper, robot_urdf

Spot = Tuple[float, float]

LARGE: Triple = (0.02032, 0.1, 0.01524)
SMALL: Triple = (0.02032, 0.05842, 0.01524)
SIZES: Dict[str, Triple] = {"large": LARGE, "small": SMALL}
WIDTH, HEIGHT = LARGE[0], LARGE[2]
DENSITY = 700.0
"""kg/m³ of the blocks, as of hardwood."""

WALL = 0.0211  # from the ridge line to the middle of a wall: the hand lets go of one without touching the other
GABLE = (LARGE[1] - SMALL[0]) / 2  # from the middle to a gable, flush with the walls' ends
EAVES = 0.024  # the roof's lowest blocks stand out over the walls
RAFTER = 0.026
OVERHANG = SMALL[1] / 2 - 0.002  # the eaves rest on the gables, and their middle has to

QUEUE_COLUMNS: Dict[str, Tuple[float, float]] = {"large": (-0.29, -0.18), "small": (-0.085, -0.015)}
QUEUE_FRONT = 0.22
QUEUE_ROWS = 4
QUEUE_PITCH = 0.05
QUEUE_LEVELS = 4
SITES: Sequence[Spot] = ((0.23, 0.245), (0.23, 0.37), (0.13, 0.245), (0.13, 0.37))
HOME = (-0.02, 0.26)
HOME_TIPS = 0.1325
"""Height of the fingertips where the arm rests."""
TABLE: Triple = (0.9, 0.48, 0.02)
TABLE_CENTRE = (0.0, 0.36)

SHIFTS = tuple(round(0.005 * step, 3) for step in range(61))
"""How much further out than on the standard table the places may be."""
LONG = 0.9
"""Of the arm's links together: one that is longer needs places further out, away from its folded elbow."""
LONG_SHIFT = 0.015
OPENING = 0.03
"""Of the fingers before a grasp and after a release."""
SPARE = 0.002
"""Between the fingers and what stands beside them."""
CLEAR = 0.004
"""Between the arm and itself, at every place; the fingertips come as near to the table as the blocks are."""
STARTS = 160
"""Of the numeric search: a place that takes more is none for a plan."""


@dataclass(frozen=True)
class MeasuredHand(Hand):
    """A hand whose fingertips' reach is measured on its model.

    Attributes:
        reach: of the opening, m: from the tool frame to the fingertips, m.
    """

    reach: Optional[Callable[[float], float]] = field(default=None, compare=False)

    def tip_reach(self, opening: float) -> float:
        """See :class:`iter_runner.plan.build.Hand`."""
        return super().tip_reach(opening) if self.reach is None else self.reach(opening)


@dataclass(frozen=True)
class Layout:
    """Of one robot's table.

    Attributes:
        frame_id, tool_frame: of the plan's poses.
        hand: the robot's.
        shift: how much further out than on the standard table its places are, along y.
        spread: how much wider than the standard house is, so that the fingers fit between its walls.
        sites: middles of the houses, (x, y), with ``shift``.
        queues: by kind of block, where its queue's blocks lie, (x, y) with ``shift``, in the order of filling.
    """

    frame_id: str
    tool_frame: str
    hand: Hand
    shift: float
    spread: float
    sites: Sequence[Spot]
    queues: Dict[str, Sequence[Spot]]


def robot_layout(robot: Union[str, Robot], table_height: float) -> Layout:
    """The layout for a robot, by its row or the name or path of one; ``table_height``: the table's top, m.

    Raises:
        LayoutError: there is no such robot, its hand can't take the blocks, or its arm reaches no place for a house.
    """
    try:
        row = robot if isinstance(robot, Robot) else load_robot(robot)
        chain = load_chain(row)
    except (RobotError, ChainError) as error:
        raise LayoutError(str(error)) from error
    gripper = robot_gripper(row)
    _check_hand(row, gripper)
    hand = robot_hand(row)
    beside = OPENING / 2 + gripper.fingers.thickness + SPARE  # from a block's middle to what may stand beside it
    spread = min(max(1.0, (beside + WIDTH / 2) / (2 * WALL)), OVERHANG / EAVES)
    if beside + WIDTH / 2 > 2 * WALL * spread + SPARE:
        raise LayoutError(
            f"{row.name}: the fingers of the {gripper.title} are {1e3 * gripper.fingers.thickness:.0f} mm thick, too "
            "thick to build a house between its walls"
        )
    arm = _Arm(row, chain, hand, table_height)
    sites = _sites(gripper, spread)
    places = {kind: _queue(kind) for kind in SIZES}
    needed = [[*_queue_poses(spot)] for spots in places.values() for spot in spots]
    needed += [[*_site_poses(site, spread)] for site in sites]
    shifts = [shift for shift in SHIFTS if shift >= LONG_SHIFT or _length(chain) <= LONG]
    for shift in shifts:
        if arm.rests(shift) and all(arm.reaches(poses, shift) for poses in needed):
            break
    else:  # no table is within reach as a whole: the one of which most is
        shift = max(shifts[::6], key=lambda out: arm.rests(out) * sum(arm.reaches(poses, out) for poses in needed))
        sites = [site for site in sites if arm.reaches(_site_poses(site, spread), shift)]
        places = {
            kind: [spot for spot in spots if arm.reaches(_queue_poses(spot), shift)] for kind, spots in places.items()
        }
    if not sites or not all(places.values()) or not arm.rests(shift):
        raise LayoutError(
            f"{row.name}: no table whose top is at {table_height:g} m in {row.base_frame} has both a queue and a place "
            "for a house within the arm's reach, hand down"
        )
    return Layout(
        row.base_frame,
        _portable_frame(row),
        hand,
        shift,
        spread,
        [(x, y + shift) for x, y in sites],
        {kind: [(x, y + shift) for x, y in spots] for kind, spots in places.items()},
    )


def _length(chain: Chain) -> float:
    """The lengths of the links behind the first joint together, m."""
    ends = [*chain.frames(np.zeros(len(chain)))[2:, :3, 3], chain.fk(np.zeros(len(chain)))[:3, 3]]
    return float(sum(np.linalg.norm(end - start) for start, end in zip(ends, ends[1:])))


def _check_hand(robot: Robot, gripper: GripperRow) -> None:
    """Raises LayoutError where the hand can't take the blocks, or the arm can't carry them."""
    narrowest = WIDTH - Hand.squeeze
    if gripper.opening_closed > narrowest or gripper.opening_open < OPENING:
        raise LayoutError(
            f"{robot.name}: the {gripper.title} opens {1e3 * gripper.opening_closed:.0f} to "
            f"{1e3 * gripper.opening_open:.0f} mm, and the blocks take {1e3 * narrowest:.0f} to {1e3 * OPENING:.0f} mm"
        )
    weight = gripper.mass + DENSITY * LARGE[0] * LARGE[1] * LARGE[2]
    if robot.payload is not None and weight > robot.payload:
        raise LayoutError(
            f"{robot.name}: hand and block weigh {weight:.2f} kg, more than its payload of {robot.payload:g} kg"
        )


def _sites(gripper: GripperRow, spread: float) -> List[Spot]:
    """The standard sites, as far apart as the hand needs it beside a house that is finished."""
    (x, y), (_, far), (aside, _), _ = SITES
    room = gripper.fingers.radius + 0.005
    pitch_x = max(x - aside, 2 * spread * EAVES + WIDTH / 2 + room)
    pitch_y = max(far - y, GABLE + LARGE[1] / 2 + room)
    if pitch_x == x - aside and pitch_y == far - y:
        return list(SITES)
    return [(x, y), (x, y + pitch_y), (x - pitch_x, y), (x - pitch_x, y + pitch_y)]


def _queue(kind: str) -> List[Spot]:
    return [(x, QUEUE_FRONT + row * QUEUE_PITCH) for x in QUEUE_COLUMNS[kind] for row in range(QUEUE_ROWS)]


Stand = Tuple[float, float, float, float]
"""x, y, height over the table and yaw of what the hand holds."""


def _queue_poses(spot: Spot) -> Iterator[Stand]:
    for height in (0.0, QUEUE_LEVELS * HEIGHT + 0.05):
        yield (*spot, height, pi / 2)


def _site_poses(site: Spot, spread: float) -> Iterator[Stand]:
    x, y = site
    for height in (0.0, 7 * HEIGHT + 0.05):
        for side in (-1, 1):
            yield x + side * spread * EAVES, y, height, 0.0
            yield x, y + side * GABLE, height, pi / 2


class _Arm:
    """Where one arm reaches, hand down over a table."""

    def __init__(self, robot: Robot, chain: Chain, hand: Hand, table_height: float) -> None:
        self._chain = chain
        self._hand = hand
        self._height = table_height
        self._tuck = np.array(robot.tuck, dtype=np.float64)
        self._branches = Branches(chain, STARTS)
        self._known: Dict[Stand, bool] = {}

    def rests(self, shift: float) -> bool:
        """Whether it reaches its resting place."""
        return self.reaches([(*HOME, HOME_TIPS - self._height, pi / 2)], shift)

    def reaches(self, stands: Iterable[Stand], shift: float) -> bool:
        """Whether it reaches all of them, ``shift`` further out, clear of the table and of itself."""
        return all(self._reaches((x, round(y + shift, 6), height, yaw), shift) for x, y, height, yaw in stands)

    def _reaches(self, stand: Stand, shift: float) -> bool:
        if stand not in self._known:
            x, y, height, yaw = stand
            flange = np.eye(4)
            flange[:3, :3] = rpy_to_matrix([0.0, 0.0, yaw]) @ rpy_to_matrix([pi, 0.0, 0.0])
            reach = max(self._hand.tip_reach(WIDTH - self._hand.squeeze), self._hand.tip_reach(OPENING))
            flange[:3, 3] = x, y, self._height + height + reach + TIP_MARGIN
            solutions = self._branches.solve(flange, self._tuck)
            centre = np.eye(4)
            centre[:3, 3] = TABLE_CENTRE[0], TABLE_CENTRE[1] + shift, self._height - TABLE[2] / 2
            table = Obstacles([Box("table", centre, TABLE)])
            self._known[stand] = any(
                solution.exact
                and clearance(self._chain, solution.positions).distance >= CLEAR
                and clearance(self._chain, solution.positions, table).distance >= 0.0
                for solution in solutions
            )
        return self._known[stand]


def _portable_frame(robot: Robot) -> str:
    """``tool0`` where the robot has it at its own tool frame: the plan runs on others as well then."""
    urdf = read_urdf(robot_urdf(robot))
    if "tool0" in urdf.links:
        with contextlib.suppress(ChainError):
            if np.allclose(urdf.fixed_pose("tool0", robot.tool_frame), np.eye(4), atol=1e-9):
                return "tool0"
    return robot.tool_frame


def robot_hand(robot: Robot) -> Hand:
    """The robot's hand as a plan's builder needs it, its fingertips measured on its model at every opening."""
    gripper = robot_gripper(robot)
    urdf = read_urdf(robot_urdf(robot))
    moving = _moved_by(urdf, gripper.joints)
    capsules = [capsule for capsule in urdf.capsules if capsule.link in moving]

    def reach(opening: float) -> float:
        position = gripper.position_of(opening)
        poses = urdf.poses(dict.fromkeys(gripper.joints, position))
        tool = np.linalg.inv(poses[robot.tool_frame])
        ends = [
            float((tool @ poses[capsule.link] @ np.append(end, 1.0))[2]) + capsule.radius
            for capsule in capsules
            for end in (capsule.start, capsule.end)
        ]
        return max(ends, default=gripper.tip_offset)

    return MeasuredHand(
        tip_offset=gripper.tip_offset,
        widest=gripper.opening_open,
        thickness=gripper.fingers.thickness,
        breadth=gripper.fingers.breadth,
        reach=reach,
    )


def has_standard_hand(robot: Robot) -> bool:
    """Whether its hand, from ``tool0`` on, is the one that the package's plans are made for."""
    hand = robot_hand(robot)
    return _portable_frame(robot) == "tool0" and all(
        abs(hand.tip_reach(opening) - Hand().tip_reach(opening)) < SPARE / 2 for opening in (WIDTH, OPENING)
    )


def _moved_by(urdf: Urdf, names: Sequence[str]) -> Set[str]:
    """The links that these joints move, or joints that mimic them."""
    moved: Set[str] = set()
    while True:
        more = {
            joint.child
            for joint in urdf.joints.values()
            if joint.name in names or (joint.mimic is not None and joint.mimic[0] in names) or joint.parent in moved
        }
        if more == moved:
            return moved
        moved = more
