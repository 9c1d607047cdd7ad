"""Chains of joints from a robot's row, a URDF or DH parameters: forward kinematics, Jacobian, limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

import iter_core
from iter_runner.kinematics.rotations import inverse
from iter_runner.kinematics.urdf import MOVABLE, ChainError, Urdf, UrdfJoint, read_urdf

if TYPE_CHECKING:
    from iter_runner.robot.table import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinkCapsule:
    """A capsule that moves with the chain.

    Attributes:
        link: the URDF link that it belongs to.
        frame: how many of the chain's joints move it (0: it is fixed to the base).
        start, end: (3,) m, in the frame that joint ``frame`` moves.
        radius: m.
    """

    link: str
    frame: int
    start: Array
    end: Array
    radius: float


@dataclass(frozen=True)
class _Row:
    """One joint as the core takes it."""

    name: str
    origin: Array
    axis: Array
    prismatic: bool
    lower: float
    upper: float
    velocity: float


class Chain:
    """A serial chain of any number of joints from ``base`` to ``tip``. Made by load_chain() or chain_from_dh().

    Attributes:
        joint_names: n names, base to tip; every q here is (n,) in this order, rad (m for prismatic joints).
        lower, upper: (n,) limits, rad. Continuous joints have -2 pi and 2 pi.
        velocity_limits: (n,) rad/s, infinite where the description has none.
        base, tip: names of the links.
        tip_pose: (4, 4) of the tip in the frame that the last joint moves, m.
        capsules: collision geometry of every link rigidly attached to a link of the chain.
        elbow: (frame, offset): the point that the elbow-up objective lifts, or None.
        collision_ignore: pairs of link names that may touch.
        objectives: RelaxedIK weights of the robot's row, by name.
    """

    def __init__(
        self,
        rows: Sequence[_Row],
        tip_pose: Array,
        base: str,
        tip: str,
        capsules: Sequence[LinkCapsule] = (),
        elbow: Optional[Tuple[int, Array]] = None,
        collision_ignore: Sequence[Tuple[str, str]] = (),
        objectives: Optional[Mapping[str, float]] = None,
    ) -> None:
        self.joint_names: List[str] = [row.name for row in rows]
        self.lower: Array = np.array([row.lower for row in rows], dtype=np.float64)
        self.upper: Array = np.array([row.upper for row in rows], dtype=np.float64)
        self.velocity_limits: Array = np.array([row.velocity or np.inf for row in rows], dtype=np.float64)
        self.base = base
        self.tip = tip
        self.tip_pose = np.asarray(tip_pose, dtype=np.float64)
        self.capsules = list(capsules)
        self.elbow = elbow
        self.collision_ignore = [(str(a), str(b)) for a, b in collision_ignore]
        self.objectives: Dict[str, float] = dict(objectives or {})
        self.collision_bodies: Any = None  # made when first asked for, see obstacles.collision_bodies()
        self.carriers: Dict[Any, Chain] = {}  # see attached.carrying()
        self.core = iter_core.Chain(
            [(row.origin, row.axis, row.prismatic, row.lower, row.upper, row.velocity) for row in rows], tip_pose
        )

    def __len__(self) -> int:
        return len(self.joint_names)

    def __repr__(self) -> str:
        return f"Chain({self.base} -> {self.tip}: {', '.join(self.joint_names)})"

    def fk(self, q: ArrayLike) -> Array:
        """The tip's pose in the base, (4, 4), m; for q (N, n) the poses (N, 4, 4)."""
        if getattr(q, "ndim", 1) == 2:
            return self.core.fk_batch(q)
        return self.core.fk(q)

    def frames(self, q: ArrayLike) -> Array:
        """The base's frame and the frame that each joint moves, (n + 1, 4, 4), in the base."""
        return self.core.frames(q)

    def jacobian(self, q: ArrayLike) -> Array:
        """The tip's geometric Jacobian (6, n) in the base's frame: linear velocity (m/s) over angular (rad/s)."""
        return self.core.jacobian(q)

    def within_limits(self, q: ArrayLike, tolerance: float = 0.0) -> bool:
        """Whether q (n,) or every row of q (N, n) is inside the position limits, give or take ``tolerance`` rad."""
        q = np.asarray(q, dtype=np.float64)
        return bool(np.all(q >= self.lower - tolerance) and np.all(q <= self.upper + tolerance))


def load_chain(robot: Union[str, Robot], tip: Optional[str] = None, base: Optional[str] = None) -> Chain:
    """The chain of a robot: the name of a row of config/robots (or its path), a Robot, or URDF text.

    ``tip`` and ``base`` are links; by default the row's ``tool_frame`` and ``base_frame``, or for URDF text the root
    and the last link (the only one that carries no other). Any link may be the base: joints between it and the root
    run backwards.

    Raises:
        ChainError: no such link (lists the links), no joints between base and tip, or a faulty URDF.
        RobotError: no such robot.
    """
    row: Any = None
    if isinstance(robot, str) and robot.lstrip().startswith("<"):
        text = robot
    else:
        from iter_runner.robot.table import load_robot, robot_urdf

        row = load_robot(robot) if isinstance(robot, str) else robot
        text = robot_urdf(row)
    urdf = read_urdf(text)
    if base is None:
        base = row.base_frame if row is not None else urdf.root()
    if tip is None:
        if row is None and len(urdf.leaves()) != 1:
            raise ChainError(f"several links could be the tip, name one: {', '.join(urdf.leaves())}")
        tip = row.tool_frame if row is not None else urdf.leaves()[0]
    return _chain_of(urdf, base, tip, row)


def chain_from_dh(
    alpha: ArrayLike,
    a: ArrayLike,
    d: ArrayLike,
    lower: Optional[ArrayLike] = None,
    upper: Optional[ArrayLike] = None,
    velocity: Optional[ArrayLike] = None,
) -> Chain:
    """A chain of revolute joints from standard DH parameters, T_i = Rz(q_i) Tz(d_i) Tx(a_i) Rx(alpha_i), rad and m.

    Limits default to +-2 pi and no speed limit.
    """
    alphas, lengths, offsets = (np.atleast_1d(np.asarray(values, dtype=np.float64)) for values in (alpha, a, d))
    n = len(alphas)
    if not (alphas.shape == lengths.shape == offsets.shape == (n,)) or n == 0:
        raise ChainError(f"alpha, a, d of one length expected, found {alphas.shape}, {lengths.shape}, {offsets.shape}")
    lowers = np.full(n, -2 * np.pi) if lower is None else np.asarray(lower, dtype=np.float64)
    uppers = np.full(n, 2 * np.pi) if upper is None else np.asarray(upper, dtype=np.float64)
    velocities = np.zeros(n) if velocity is None else np.asarray(velocity, dtype=np.float64)
    rows = []
    fixed = np.eye(4)
    for i in range(n):
        rows.append(
            _Row(f"joint_{i + 1}", fixed, np.array([0.0, 0, 1]), False, lowers[i], uppers[i], float(velocities[i]))
        )
        # Right angles exactly: what rounding leaves of them would tilt axes that are meant to be parallel.
        quarter = float(np.round(alphas[i] / (np.pi / 2)))
        exact = abs(alphas[i] - quarter * np.pi / 2) < 1e-15
        c = [1.0, 0.0, -1.0, 0.0][int(quarter) % 4] if exact else np.cos(alphas[i])
        s = [0.0, 1.0, 0.0, -1.0][int(quarter) % 4] if exact else np.sin(alphas[i])
        fixed = np.array([[1.0, 0, 0, lengths[i]], [0, c, -s, 0], [0, s, c, offsets[i]], [0, 0, 0, 1]])
    return Chain(rows, fixed, "base", "tip")


def _path_from_root(urdf: Urdf, link: str) -> List[UrdfJoint]:
    path: List[UrdfJoint] = []
    joint = urdf.parent_joint(link)
    while joint is not None:
        if joint in path:
            raise ChainError(f"joints of '{urdf.name}' go in a circle at '{joint.name}'")
        path.insert(0, joint)
        joint = urdf.parent_joint(joint.parent)
    return path


def _chain_of(urdf: Urdf, base: str, tip: str, robot: Any) -> Chain:
    for word, link in (("base", base), ("tip", tip)):
        if link not in urdf.links:
            raise ChainError(f"no link '{link}' for the {word} in '{urdf.name}'; links are {', '.join(urdf.links)}")
    up, down = _path_from_root(urdf, base), _path_from_root(urdf, tip)
    while up and down and up[0] == down[0]:
        up, down = up[1:], down[1:]

    rows: List[_Row] = []
    places: Dict[str, Tuple[int, Array]] = {base: (0, np.eye(4))}  # link -> joints that move it, pose in that frame
    fixed = np.eye(4)
    for joint in reversed(up):  # from the base towards the root, each joint run backwards
        if joint.kind in MOVABLE:
            rows.append(
                _Row(
                    joint.name,
                    fixed,
                    -joint.axis,
                    joint.kind == "prismatic",
                    joint.lower,
                    joint.upper,
                    joint.velocity,
                )
            )
            fixed = np.eye(4)
        fixed = fixed @ inverse(joint.origin)
        places[joint.parent] = (len(rows), fixed)
    for joint in down:
        fixed = fixed @ joint.origin
        if joint.kind in MOVABLE:
            rows.append(
                _Row(joint.name, fixed, joint.axis, joint.kind == "prismatic", joint.lower, joint.upper, joint.velocity)
            )
            fixed = np.eye(4)
        places[joint.child] = (len(rows), fixed)
    if not rows:
        raise ChainError(f"no joint moves between '{base}' and '{tip}' of '{urdf.name}'")
    tip_pose = places[tip][1]

    # What hangs on the chain's links moves with them, its own joints at zero.
    waiting = list(places)
    while waiting:
        link = waiting.pop()
        frame, at = places[link]
        for joint in urdf.joints.values():
            neighbour = joint.child if joint.parent == link else joint.parent if joint.child == link else None
            if neighbour is not None and neighbour not in places:
                step = joint.origin if neighbour == joint.child else inverse(joint.origin)
                places[neighbour] = (frame, at @ step)
                waiting.append(neighbour)
    capsules = []
    for capsule in urdf.capsules:
        frame, at = places[capsule.link]
        start, end = (at[:3, :3] @ point + at[:3, 3] for point in (capsule.start, capsule.end))
        capsules.append(LinkCapsule(capsule.link, frame, start, end, capsule.radius))

    elbow = None
    if robot is not None and robot.elbow_link is not None:
        if robot.elbow_link not in places:
            raise ChainError(f"no link '{robot.elbow_link}' for elbow_link; links are {', '.join(urdf.links)}")
        frame, at = places[robot.elbow_link]
        elbow = (frame, at[:3, 3]) if frame > 0 else None
    ignore = robot.collision_ignore if robot is not None else ()
    objectives = robot.objectives if robot is not None else {}
    return Chain(rows, tip_pose, base, tip, capsules, elbow, ignore, objectives)
