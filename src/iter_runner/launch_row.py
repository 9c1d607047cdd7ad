"""What roslaunch has to know of a robot's row before it reads the drivers' launch files.

roslaunch can't look into a YAML file, but which drivers to include, with which arguments, has to stand in a launch
file. So main.launch's check, which roslaunch runs while it reads main.launch, writes one from the row, and main.launch
includes it. It follows from the row and the backend alone; what the user chose comes through as roslaunch's arguments.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Dict, List, Tuple
from xml.etree import ElementTree

import rospkg

from iter_runner.package import package_folder
from iter_runner.robot.table import GripperRow, Robot, RobotError, robot_driver, robot_gripper

EMULATED = "emulated"
"""The gripper driver of any robot whose hand is not there: fingers that are only calculated."""
CONTROLLER_BACKENDS = ("ursim", "hardware")
"""Those with the maker's controller, or the maker's simulator of it."""
_KINOVA_DRIVER = {
    "kinova_driver": "clone https://github.com/Kinovarobotics/kinova-ros (branch noetic-devel) into your workspace and "
    "build it"
}
"""What Kinova's hands need, on whatever arm."""


def default_gripper_driver(gripper: GripperRow, backend: str, start_driver: bool = True) -> str:
    """What moves the fingers where ``gripper_driver:=`` is empty; empty itself where the arm's simulator does it."""
    if backend == "embedded":
        return ""
    if not start_driver:
        return "external"
    return gripper.drivers[0] if backend == "hardware" else EMULATED


def default_transport(robot: Robot, backend: str) -> str:
    """How streamed targets travel where ``transport:=`` is empty."""
    return "rtde" if backend in CONTROLLER_BACKENDS and "rtde" in robot.transports else robot.transports[0]


def bringup_of(robot: Robot) -> Tuple[str, Dict[str, str], Dict[str, str]]:
    """The launch file of a robot's driver, what it takes from the row, and what it needs (see ``Bringup``).

    All empty where whoever has the arm starts its drivers.

    Raises:
        RobotError: the row lacks a name that the driver's bringup needs.
    """
    bringup = robot_driver(robot).bringup
    if bringup is None:
        return "", {}, {}
    values = {**{name: str(value) for name, value in robot.urdf_arguments.items()}, **robot.driver_arguments}
    try:
        arguments = {name: text.format(**values) for name, text in bringup.arguments.items()}
        needs = {text.format(**values): how for text, how in bringup.needs.items()}
    except KeyError as missing:
        raise RobotError(
            f"robot {robot.name}: neither urdf_arguments nor driver_arguments of its row has {missing}, which the "
            f"launch of its driver '{robot.driver}' needs: add it, or start the drivers yourself (start_driver:=false)"
        ) from None
    file = Path(bringup.launch)
    return str(file if file.is_absolute() else package_folder() / "launch" / file), arguments, needs


def has_package(name: str) -> bool:
    """Whether there is a ROS package of that name."""
    try:
        rospkg.RosPack().get_path(name)
    except rospkg.ResourceNotFound:
        return False
    return True


def missing_packages(robot: Robot, gripper_driver: str, start_driver: bool) -> List[str]:
    """What the launch would start something of and that is not there, and how to get it: a line each.

    Raises:
        RobotError: see :func:`bringup_of`.
    """
    needs: Dict[str, str] = dict(bringup_of(robot)[2]) if start_driver else {}
    if gripper_driver == "kinova":
        needs = {**needs, **{name: how for name, how in _KINOVA_DRIVER.items() if name not in needs}}
    packages = rospkg.RosPack()
    lacking: Dict[str, List[str]] = {}
    lines: List[str] = []
    for need, how in needs.items():
        name, _, file = need.partition("/")
        try:
            folder = Path(packages.get_path(name))
        except rospkg.ResourceNotFound:
            lacking.setdefault(" ".join(how.split()), []).append(name)
            continue
        if file and not (folder / file).is_file():
            lines.append(f"the ROS package {name} at {folder} has no {file}: its version does not know this arm")
    for how, names in lacking.items():
        plural = len(names) > 1
        verb = "s {} are" if plural else " {} is"
        lines.append(f"the ROS package{verb.format(' and '.join(names))} not installed: {how}")
    return lines


def row_launch(robot: Robot, backend: str) -> str:
    """The launch file (XML) that includes the backend's, and the driver's, with what they have to know of the row.

    Raises:
        RobotError: see :func:`bringup_of`.
    """
    gripper = robot_gripper(robot)
    started, running = (default_gripper_driver(gripper, backend, start) for start in (True, False))
    launch = ElementTree.Element("launch")
    launch.append(ElementTree.Comment(f" Written from the row of {robot.name} at each launch: changes are lost. "))
    transport = f"$(eval arg('transport') or '{default_transport(robot, backend)}')"
    ElementTree.SubElement(launch, "param", {"name": "/runner/transport", "type": "str", "value": transport})
    facts = {
        "joint_states": robot_driver(robot).topic("joint_states"),
        "prefix": robot.driver_arguments.get("prefix", ""),
        "gripper_driver": f"$(eval arg('gripper_driver') or ('{started}' if arg('start_driver') else '{running}'))",
    }
    _include(launch, str(package_folder() / "launch" / f"backend_{backend}.launch"), facts)
    if backend != "embedded":
        file, arguments, _ = bringup_of(robot)
        if file:
            _include(ElementTree.SubElement(launch, "group", {"if": "$(arg start_driver)"}), file, arguments)
    return ElementTree.tostring(launch, encoding="unicode") + "\n"


def _include(parent: ElementTree.Element, file: str, arguments: Dict[str, str]) -> None:
    include = ElementTree.SubElement(parent, "include", {"file": file, "pass_all_args": "true"})
    for name, value in arguments.items():
        ElementTree.SubElement(include, "arg", {"name": name, "value": value})


def write_row_launch(path: Path, robot: Robot, backend: str) -> None:
    """Writes :func:`row_launch` to ``path``, whole or not at all: another launch may be reading it.

    Raises:
        RobotError: see :func:`bringup_of`.
        OSError: it can't be written.
    """
    text = row_launch(robot, backend)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as file:
        file.write(text)
    Path(file.name).replace(path)
