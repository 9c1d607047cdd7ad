"""The table of robots: one YAML row an arm, gripper and driver family, read and checked before anything starts.

A row is looked up by its name in the package's ``config/robots/``, or given as the path of a YAML file anywhere: a lab
adds its own arm by writing a row and a URDF. docs/robots.md goes through the fields.
"""

from __future__ import annotations

import math
import reprlib
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union
from xml.etree import ElementTree

import numpy as np
import xacro
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from iter_runner.kinematics.urdf import ChainError, read_urdf
from iter_runner.package import package_folder

# Names that rows may carry; config/planners.yaml, which says what implements each, adds its own.
PLANNERS = ("relaxed_ik", "static", "ur", "ompl", "moveit", "replay")


_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times as fast, where there is one


SIZE_LIMIT = 2**18
"""The longest row that is read, characters; the shipped ones are some 3000."""
DEPTH_LIMIT = 32
"""The deepest nesting in a row."""
TIP_TOLERANCE = 0.001
"""m, by which a gripper's ``tip_offset`` and its model may differ."""

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 1  # aliases in YAML make trees that are small in memory and endless on the screen


class RobotError(Exception):
    """A row is missing or wrong; the message names the file, the field, what was found and what was expected."""


class _Row(BaseModel):
    """What all rows share: unknown fields are errors, and a row does not change once loaded."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    title: str


class Bringup(BaseModel):
    """How main.launch starts a family of drivers.

    All may hold ``{placeholders}``, filled from the robot's row: its ``driver_arguments`` and ``urdf_arguments``.

    Attributes:
        launch: the launch file that starts them, in the package's ``launch/`` if it is no whole path.
        arguments: what it takes from the row.
        needs: what of other packages it starts or includes, as PACKAGE or PACKAGE/FILE, and how to get it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    launch: str
    arguments: Dict[str, str] = {}
    needs: Dict[str, str] = {}


class Driver(_Row):
    """A family of drivers: the names that it has on the ROS graph, by what they are for.

    Names may hold ``{placeholders}``, filled from the ``driver_arguments`` of a robot's row.

    Attributes:
        interface: whose manners it has: what its topics, services and actions do, beside their names.
        topics, services, actions, parameters: names by purpose.
        bringup: how main.launch starts it; None: whoever has the arm starts its drivers.
    """

    interface: Literal["ur", "kinova", "ros_control"]
    bringup: Optional[Bringup] = None
    topics: Dict[str, str]
    services: Dict[str, str] = {}
    actions: Dict[str, str]
    parameters: Dict[str, str] = {}

    def topic(self, purpose: str) -> str:
        """The topic's name. Raises RobotError where this family has none for ``purpose``."""
        return self._name("topics", self.topics, purpose)

    def service(self, purpose: str) -> str:
        """The service's name. Raises RobotError where this family has none for ``purpose``."""
        return self._name("services", self.services, purpose)

    def action(self, purpose: str) -> str:
        """The action's name. Raises RobotError where this family has none for ``purpose``."""
        return self._name("actions", self.actions, purpose)

    def _name(self, kind: str, names: Mapping[str, str], purpose: str) -> str:
        if purpose not in names:
            raise RobotError(f"driver {self.name}: no '{purpose}' among its {kind}: {', '.join(sorted(names))}")
        return names[purpose]


class Fingers(BaseModel):
    """How much room a gripper's fingers take beside what they hold, m, for the layout of plans; a Robotiq 2F-85's.

    Attributes:
        thickness: of a fingertip, along the line on which the fingers close.
        breadth: of the fingertips of a side, across that line.
        radius: around the hand's axis, of what is next to things of a hand's height that stand beside.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    thickness: float = Field(default=0.015, gt=0)
    breadth: float = Field(default=0.022, gt=0)
    radius: float = Field(default=0.03, gt=0)


class GripperRow(_Row):
    """A gripper: its driver's action, its model, and how its driver's position relates to the opening.

    ``action``, ``joints`` and ``macro_arguments`` may hold ``{placeholders}``, filled from the ``driver_arguments`` of
    the robot that carries it.

    Attributes:
        action: name of the control_msgs/GripperCommand action.
        urdf: xacro file, relative to the package's ``urdf/`` (or to the row's folder, outside the package).
        macro: the macro in it that puts the gripper on the link ``parent``.
        macro_arguments: what else the macro takes.
        joints: the driven joints, all at the driver's position; others mimic them.
        drivers: what can drive it on hardware, the usual one first; ``external`` is a server of somebody else's.
        mass: kg, coupling included.
        tip_offset: m, from the flange to the fingertips.
        position_open, position_closed: the driver's positions at the ends, rad.
        opening_open, opening_closed: between the fingertips at those ends, m; linear between them,
        openings: or linear between these pairs of position (rad) and opening (m) on the way from one end to the other.
        fingers: how much room they take beside what they hold.
        max_effort: N, where a plan gives none.
        moveit_group: with the planner ``moveit``, grasp and release go through this group of its SRDF; empty: to the
            action, as with all other planners.
    """

    action: str
    urdf: str
    macro: str
    macro_arguments: Dict[str, str] = {}
    joints: List[str] = Field(min_length=1)
    drivers: List[Literal["kinova", "serial", "urcap", "external"]] = Field(min_length=1)
    mass: float = Field(ge=0)
    tip_offset: float = Field(ge=0)
    position_open: float
    position_closed: float
    opening_open: float = Field(ge=0)
    opening_closed: float = Field(ge=0)
    openings: List[Tuple[float, float]] = []
    fingers: Fingers = Fingers()
    max_effort: float = Field(gt=0)
    moveit_group: str = ""

    @model_validator(mode="after")
    def _ends_differ(self) -> GripperRow:
        if self.position_open == self.position_closed:
            raise ValueError(f"position_open and position_closed are both {self.position_open}")
        if self.opening_open <= self.opening_closed:
            raise ValueError(f"opening_open {self.opening_open} is not above opening_closed {self.opening_closed}")
        points = self._points
        closing = math.copysign(1.0, self.position_closed - self.position_open)
        for (position, opening), (after, narrower) in zip(points, points[1:]):
            if closing * (after - position) <= 0 or narrower >= opening:
                raise ValueError(
                    f"openings: on the way from open to closed, [{after:g}, {narrower:g}] can't follow "
                    f"[{position:g}, {opening:g}]"
                )
        return self

    @property
    def _points(self) -> List[Tuple[float, float]]:
        """Pairs of position (rad) and opening (m), open to closed, between which all is linear."""
        ends = (self.position_open, self.opening_open), (self.position_closed, self.opening_closed)
        return [ends[0], *self.openings, ends[1]]

    def opening_of(self, position: float) -> float:
        """The opening (m) at the driver's ``position`` (rad), clipped to the range."""
        return piecewise(position, self._points)

    def position_of(self, opening: float) -> float:
        """The driver's position (rad) at which the fingertips are ``opening`` metres apart, clipped to the range."""
        return piecewise(opening, [(opening, position) for position, opening in self._points])


def piecewise(value: float, points: Sequence[Tuple[float, float]]) -> float:
    """What belongs to ``value``, linear between ``points`` (either way ordered), clipped to the first and last."""
    for index, ((start, before), (end, after)) in enumerate(zip(points, points[1:])):
        share = (value - start) / (end - start)
        if share <= 1.0 or index == len(points) - 2:
            return before + min(max(share, 0.0), 1.0) * (after - before)
    raise ValueError(f"two points expected, {len(points)} found")


class Servo(BaseModel):
    """Parameters of URScript's servoj: ``lookahead_time`` in s (0.03 to 0.2) and ``gain`` (100 to 2000)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lookahead_time: float = Field(default=0.1, ge=0.03, le=0.2)
    gain: float = Field(default=300, ge=100, le=2000)


class Limits(BaseModel):
    """What planners keep to, beside the URDF's limits of position and speed.

    Attributes:
        acceleration: rad/s², one for each joint.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    acceleration: List[float]

    @field_validator("acceleration")
    @classmethod
    def _above_zero(cls, values: List[float]) -> List[float]:
        if any(not (0 < value < math.inf) for value in values):
            raise ValueError(f"accelerations above zero expected, {values} found")
        return values


class Robot(_Row):
    """An arm with its gripper, driver and manners.

    Attributes:
        driver: which driver's names it has: a row of ``config/drivers/``.
        driver_arguments: fill the ``{placeholders}`` of the driver's names.
        gazebo_driver: the same for the arm in Gazebo, where it has another driver; None: it is not there.
        urdf: URDF or xacro file, relative to the package's ``urdf/`` (to the row's folder first, outside the package).
        urdf_arguments: xacro arguments.
        transports: how streamed joint targets can travel to its driver, the simulator's default first.
        gripper: a row of ``config/grippers/``, or the path of such a YAML file.
        gripper_link: link that carries the gripper, if that is not ``tool_frame``; turned like it, and on its axis.
        base_frame, tool_frame: links of the URDF; the chain's base and tip. Plans' poses are in ``base_frame``.
        joints: names, base to tip; every joint vector elsewhere is in this order.
        planners: which planners fit it.
        moveit_group: the group of its joints in MoveIt's SRDF, for the planner ``moveit``.
        payload: kg that it can carry at its flange, the gripper included; None: not said.
        tuck: (n,) rad, where the arm starts.
        control_rate: Hz, the controller's cycle.
        stream_rate: Hz, ticks of streamed targets.
        servo, limits: see there.
        elbow_link: its origin is what the elbow-up objective lifts.
        objectives: RelaxedIK's weights by name, over the defaults of iter_runner.kinematics.
        collision_ignore: pairs of links that may touch, beside neighbours in the chain.
        source: the file that the row came from.
    """

    driver: str
    driver_arguments: Dict[str, str] = {}
    gazebo_driver: Optional[str] = None
    transports: List[Literal["script", "rtde", "joint_velocity", "trajectory_topic"]] = Field(min_length=1)
    urdf: str
    urdf_arguments: Dict[str, Union[str, float]] = {}
    gripper: str
    gripper_link: Optional[str] = None
    base_frame: str = "base_link"
    tool_frame: str = "tool0"
    joints: List[str] = Field(min_length=1)
    planners: List[str] = Field(min_length=1)
    moveit_group: str = "manipulator"
    payload: Optional[float] = Field(default=None, gt=0)
    tuck: List[float]
    control_rate: float = Field(gt=0)
    stream_rate: float = Field(gt=0)
    servo: Servo = Servo()
    limits: Limits
    elbow_link: Optional[str] = None
    objectives: Dict[str, float] = {}
    collision_ignore: List[Tuple[str, str]] = []
    source: Path

    @field_validator("planners")
    @classmethod
    def _known_planners(cls, names: List[str]) -> List[str]:
        known = _planner_names()
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"no planner {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
        return names

    @model_validator(mode="after")
    def _one_value_a_joint(self) -> Robot:
        count = len(self.joints)
        if len(set(self.joints)) != count:
            raise ValueError(f"joints holds a name twice: {', '.join(self.joints)}")
        for field, values in (("tuck", self.tuck), ("limits.acceleration", self.limits.acceleration)):
            if len(values) != count:
                raise ValueError(f"{field}: {count} values expected, one for each of the joints, {len(values)} found")
        return self


def robot_names() -> List[str]:
    """The names of the package's rows, sorted."""
    return _names("robots")


IN_GAZEBO = "@gazebo"
"""What a robot's name ends in where the arm is Gazebo's."""


def load_robot(name_or_path: Union[str, Path]) -> Robot:
    """The row of that name, or of the YAML file at that path, checked whole: fields, driver, gripper and URDF.

    ``ur5@gazebo`` is the row of ``ur5`` with the driver that the arm has in Gazebo.

    Raises:
        RobotError: there is no such row, or it is wrong; names the field, what was found and what was expected.
    """
    if str(name_or_path).endswith(IN_GAZEBO):
        return _in_gazebo(load_robot(str(name_or_path)[: -len(IN_GAZEBO)]))
    path = _find("robots", "robot", name_or_path)
    robot = _read(path, Robot, {"source": path})
    if robot.gripper.endswith((".yaml", ".yml")):
        robot = robot.model_copy(update={"gripper": str((path.parent / robot.gripper).resolve())})
    try:
        load_driver(robot.driver, robot.driver_arguments)
        _check_model(robot, robot_gripper(robot), robot_urdf(robot))
    except RobotError as error:
        raise RobotError(f"{path}: {error}") from None
    return robot


def _in_gazebo(robot: Robot) -> Robot:
    """The robot as it is in Gazebo: an arm behind ros_control, and no controller that takes scripts."""
    if robot.gazebo_driver is None:
        raise RobotError(f"robot {robot.name} has no gazebo_driver in its row: add it, or use another backend")
    load_driver(robot.gazebo_driver, robot.driver_arguments)
    planners = [name for name in robot.planners if name != "ur"]
    return robot.model_copy(
        update={"driver": robot.gazebo_driver, "transports": ["trajectory_topic"], "planners": planners}
    )


def load_gripper(name_or_path: Union[str, Path], arguments: Optional[Mapping[str, str]] = None) -> GripperRow:
    """The gripper's row of that name or path, its placeholders filled from ``arguments``. Raises RobotError."""
    path = _find("grippers", "gripper", name_or_path)
    gripper = _read(path, GripperRow, {})
    values = arguments or {}
    try:
        filled: Dict[str, Any] = {
            "action": gripper.action.format(**values),
            "joints": [name.format(**values) for name in gripper.joints],
            "macro_arguments": {name: text.format(**values) for name, text in gripper.macro_arguments.items()},
        }
    except KeyError as missing:
        raise RobotError(f"gripper {gripper.name}: driver_arguments has no {missing}, which its names need") from None
    return gripper.model_copy(update={**filled, "urdf": str(_model_file(path, gripper.urdf))})


def robot_gripper(robot: Robot) -> GripperRow:
    """The gripper of a robot, its names as on the graph, its ``tip_offset`` from the robot's ``tool_frame``.

    Raises:
        RobotError: there is no such gripper, or it does not sit on the axis of the tool frame.
    """
    gripper = load_gripper(robot.gripper, robot.driver_arguments)
    if robot.gripper_link is None:
        return gripper
    return gripper.model_copy(update={"tip_offset": round(gripper.tip_offset + _mount_height(robot), 9)})


def _mount_height(robot: Robot) -> float:
    """How far (m) the link that carries the gripper is out along the tool frame's z."""
    try:
        mount = read_urdf(robot_urdf(robot)).fixed_pose(robot.gripper_link or "", robot.tool_frame)
    except ChainError as error:
        raise RobotError(f"gripper_link: {error}") from None
    x, y, height = (float(value) for value in mount[:3, 3])
    if math.hypot(x, y) > TIP_TOLERANCE or abs(mount[:3, :3] - np.eye(3)).max() > TIP_TOLERANCE:
        raise RobotError(
            f"gripper_link: {robot.gripper_link} expected on the z axis of {robot.tool_frame} and turned like it, "
            f"({x:g}, {y:g}, {height:g}) m from it and otherwise turned found"
        )
    return height


def load_driver(name: str, arguments: Optional[Mapping[str, str]] = None) -> Driver:
    """The driver family's row of that name, its placeholders filled from ``arguments``. Raises RobotError."""
    path = _find("drivers", "driver", name)
    driver = _read(path, Driver, {})
    try:
        return driver.model_copy(
            update={
                kind: {purpose: text.format(**(arguments or {})) for purpose, text in getattr(driver, kind).items()}
                for kind in ("topics", "services", "actions", "parameters")
            }
        )
    except KeyError as missing:
        raise RobotError(f"driver {name}: driver_arguments has no {missing}, which its names need") from None


def robot_driver(robot: Robot) -> Driver:
    """The driver of a robot, its names as on the graph. Raises RobotError."""
    return load_driver(robot.driver, robot.driver_arguments)


def robot_urdf(robot: Robot) -> str:
    """The robot's URDF with its gripper in place, as XML text.

    Raises:
        RobotError: a file is missing, or xacro refuses it.
    """
    gripper = load_gripper(robot.gripper, robot.driver_arguments)
    model = _model_file(robot.source, robot.urdf)
    arguments = tuple(sorted((key, str(value)) for key, value in robot.urdf_arguments.items()))
    macro_arguments = (("parent", robot.gripper_link or robot.tool_frame), *sorted(gripper.macro_arguments.items()))
    stamps = tuple(path.stat().st_mtime_ns for path in (model, Path(gripper.urdf)))
    return _process(robot.name, str(model), arguments, gripper.urdf, gripper.macro, macro_arguments, stamps)


@lru_cache(maxsize=16)
def _process(
    name: str,
    model: str,
    arguments: Tuple[Tuple[str, str], ...],
    gripper_model: str,
    macro: str,
    macro_arguments: Tuple[Tuple[str, str], ...],
    stamps: Tuple[int, ...],
) -> str:
    """Runs xacro over the arm's model and the gripper's macro; ``stamps`` makes an edited file count as new."""
    root = ElementTree.Element("robot", {"name": name, "xmlns:xacro": "http://www.ros.org/wiki/xacro"})
    for filename in (model, gripper_model):
        ElementTree.SubElement(root, "xacro:include", {"filename": filename})
    ElementTree.SubElement(root, f"xacro:{macro}", dict(macro_arguments))
    try:
        document = xacro.parse(ElementTree.tostring(root, encoding="unicode"))
        xacro.process_doc(document, mappings=dict(arguments))
    except Exception as error:  # xacro raises what its expressions raise
        raise RobotError(f"urdf {model} with gripper {gripper_model}: {' '.join(str(error).split())}") from None
    return str(document.toprettyxml(indent="  "))


def _names(kind: str) -> List[str]:
    return sorted(path.stem for path in (package_folder() / "config" / kind).glob("*.yaml"))


def _planner_names() -> List[str]:
    path = package_folder() / "config" / "planners.yaml"
    listed = yaml.load(path.read_text(encoding="utf-8"), Loader=_YAML_LOADER) if path.is_file() else None
    return list(PLANNERS) + [name for name in (listed or {}) if name not in PLANNERS]


def _find(kind: str, word: str, name_or_path: Union[str, Path]) -> Path:
    text = str(name_or_path)
    names = _names(kind)
    if text in names:
        return package_folder() / "config" / kind / f"{text}.yaml"
    if text.endswith((".yaml", ".yml")) or "/" in text:
        try:
            path = Path(text).expanduser().resolve()
            found = path.is_file()
        except (OSError, ValueError, RuntimeError) as error:  # too long, a null byte, no home folder
            raise RobotError(f"{word} {text!r} is no usable path: {error}") from None
        if not found:
            raise RobotError(f"no file {path}; expected a {word}'s YAML file, or one of {', '.join(names)}")
        return path
    raise RobotError(
        f"no {word} '{text}'; there are {', '.join(names)}; or give the path of a YAML file that ends in .yaml"
    )


RowType = TypeVar("RowType", bound=_Row)


def _read(path: Path, model: Type[RowType], extra: Mapping[str, Any]) -> RowType:
    """The row in a YAML file, all its faults at once."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(SIZE_LIMIT + 1)
        if len(text) > SIZE_LIMIT:
            raise RobotError(f"{path}: a row of more than {SIZE_LIMIT // 2**10} KiB; expected a few lines of YAML")
        if _is_deeper(text, DEPTH_LIMIT):
            raise RobotError(f"{path}: nested more than {DEPTH_LIMIT} deep; expected the fields of a row")
        data = yaml.load(text, Loader=_YAML_LOADER)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise RobotError(f"{path}: cannot be read as YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise RobotError(f"{path}: fields expected (name: …), {type(data).__name__} found")
    try:
        return model(**{**{str(key): value for key, value in data.items()}, **extra})
    except ValidationError as error:
        raise RobotError(f"{path}: {_faults(error, model)}") from None


def _is_deeper(text: str, limit: int) -> bool:
    """Whether a YAML text is nested deeper than that. The C loader recurses, and takes the process with it."""
    depth = 0
    for event in yaml.parse(text, Loader=_YAML_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > limit:
            return True
    return False


def _faults(error: ValidationError, model: Type[BaseModel]) -> str:
    parts = []
    for fault in error.errors():
        where = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "missing":
            text = "missing"
        elif fault["type"] == "extra_forbidden":
            text = f"no such field; fields are {', '.join(name for name in model.model_fields if name != 'source')}"
        elif fault["type"] == "value_error":
            text = str(fault["ctx"]["error"])
        else:
            text = f"{fault['msg'][0].lower()}{fault['msg'][1:]}, {_SHORT.repr(fault['input'])} found"
        parts.append(f"{where}: {text}" if where else text)
    return "; ".join(parts)


def _model_file(row: Path, name: str) -> Path:
    """A row's URDF file: relative to the row's own folder where it lies outside the package, else in ``urdf/``."""
    package = package_folder()
    candidates = [package / "urdf" / name]
    if package / "config" not in row.parents:
        candidates.insert(0, row.parent / name)
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    raise RobotError(f"urdf: no file {' or '.join(str(candidate) for candidate in candidates)}")


def _check_model(robot: Robot, gripper: GripperRow, urdf: str) -> None:
    """Faults of a row that only show against its URDF, all at once."""
    root = ElementTree.fromstring(urdf)
    links = {link.get("name", "") for link in root.findall("link")}
    joints = {joint.get("name", ""): joint for joint in root.findall("joint")}
    movable = [name for name, joint in joints.items() if joint.get("type") != "fixed" and joint.find("mimic") is None]
    faults = []

    named_links = [("base_frame", robot.base_frame), ("tool_frame", robot.tool_frame)]
    if robot.elbow_link is not None:
        named_links.append(("elbow_link", robot.elbow_link))
    named_links += [("collision_ignore", link) for pair in robot.collision_ignore for link in pair]
    for field, link in named_links:
        if link not in links:
            faults.append(f"{field}: no link '{link}' in the URDF; there are {', '.join(sorted(links))}")

    for name, position in zip(robot.joints, robot.tuck):
        if name not in movable:
            faults.append(f"joints: no movable joint '{name}' in the URDF; there are {', '.join(movable)}")
            continue
        limit = joints[name].find("limit")
        if limit is None or joints[name].get("type") == "continuous":
            continue
        lower, upper = float(limit.get("lower", 0)), float(limit.get("upper", 0))
        if not lower <= position <= upper:
            faults.append(f"tuck: {name} at {position} rad is outside its limits {lower:.4f} to {upper:.4f}")
    for name in gripper.joints:
        if name not in joints:
            faults.append(f"gripper {gripper.name}: no joint '{name}' in its URDF; there are {', '.join(movable)}")
    if "gripper_tip" in links and robot.tool_frame in links:
        faults += _tip_faults(robot, gripper, urdf)
    if faults:
        raise RobotError("; ".join(faults))


def _tip_faults(robot: Robot, gripper: GripperRow, urdf: str) -> List[str]:
    try:
        modelled = float(np.linalg.norm(read_urdf(urdf).fixed_pose("gripper_tip", robot.tool_frame)[:3, 3]))
    except ChainError as error:
        return [f"gripper {gripper.name}: {error}"]
    if abs(modelled - gripper.tip_offset) <= TIP_TOLERANCE:
        return []
    return [
        f"gripper {gripper.name}: tip_offset {gripper.tip_offset:g} m, but its URDF has gripper_tip "
        f"{modelled:g} m from {robot.tool_frame}"
    ]
