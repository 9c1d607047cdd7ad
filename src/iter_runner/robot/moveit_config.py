"""What a user would else click together in MoveIt's setup assistant, for any row: SRDF, limits, controllers.

Everything is computed from the row and its URDF when it is asked for; only what does not depend on the robot is a file,
``config/moveit/move_group.yaml``.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple
from xml.etree import ElementTree

import numpy as np
import rospkg
import yaml
from numpy.typing import NDArray

import iter_core
from iter_runner.kinematics import load_chain
from iter_runner.kinematics.obstacles import CollisionBodies, collision_bodies
from iter_runner.kinematics.urdf import MOVABLE, Urdf, read_urdf
from iter_runner.package import package_folder
from iter_runner.robot.moveit import INSTALL
from iter_runner.robot.table import GripperRow, Robot, RobotError, load_robot, robot_driver, robot_gripper, robot_urdf

GRIPPER_GROUP = "gripper"
"""The hand's group, where the gripper's row names none."""
TUCKED = "tucked"
"""The named state of the row's tuck pose."""
SPEED_MARGIN = 0.85
ACCELERATION_MARGIN = 0.75
"""The shares of the joints' limits that the other planners keep to (planners.routes), so that speeds compare."""
FINGER_ACCELERATION = 5.0
"""rad/s² of the fingers; only their end is sent."""
SAMPLES = 20000
"""Joint positions at which links are measured; the setup assistant's own default is half of that."""
SAMPLE_SEED = 20240229
NEVER = 0.02
"""m that two links have to stay apart at all of them to count as never meeting."""
HAND_NEVER = 0.15
"""m, the same where one is of the hand: its fingers move, and are measured open."""
ALWAYS = 0.9
"""Share of the samples in contact from which on two links count as always touching."""
SETUP_ASSISTANT_SUFFIX = "kConfigDefault"
NEEDED = ("moveit_ros_move_group", "moveit_planners_ompl", "moveit_kinematics", "moveit_simple_controller_manager")
"""ROS packages that move_group.launch starts, or that move_group loads plugins from."""
PARTS = ("srdf", "kinematics", "joint_limits", "move_group")


@dataclass(frozen=True)
class Pair:
    """Two links that MoveIt does not check against each other, and why."""

    links: FrozenSet[str]
    reason: str


def srdf(robot: Robot) -> str:
    """The semantic description as XML: groups, end effector, named states, passive joints, unchecked pairs."""
    urdf = read_urdf(robot_urdf(robot))
    gripper = robot_gripper(robot)
    hand = hand_links(urdf, gripper)
    root = ElementTree.Element("robot", {"name": urdf.name})
    arm = ElementTree.SubElement(root, "group", {"name": robot.moveit_group})
    ElementTree.SubElement(arm, "chain", {"base_link": _root_of_arm(urdf, robot), "tip_link": robot.tool_frame})
    fingers = ElementTree.SubElement(root, "group", {"name": gripper_group(gripper)})
    for link in hand:
        ElementTree.SubElement(fingers, "link", {"name": link})
    for joint in gripper.joints:
        ElementTree.SubElement(fingers, "joint", {"name": joint})
    _state(root, TUCKED, robot.moveit_group, dict(zip(robot.joints, robot.tuck)))
    for name, position in (("open", gripper.position_open), ("closed", gripper.position_closed)):
        _state(root, name, gripper_group(gripper), dict.fromkeys(gripper.joints, position))
    ElementTree.SubElement(
        root,
        "end_effector",
        {
            "name": "hand",
            "parent_link": _carrier(urdf, robot, hand),
            "group": gripper_group(gripper),
            "parent_group": robot.moveit_group,
        },
    )
    for joint in passive_joints(robot, urdf, gripper):
        ElementTree.SubElement(root, "passive_joint", {"name": joint})
    for pair in unchecked_pairs(robot):
        first, second = sorted(pair.links)
        ElementTree.SubElement(root, "disable_collisions", {"link1": first, "link2": second, "reason": pair.reason})
    _indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _state(root: ElementTree.Element, name: str, group: str, positions: Mapping[str, float]) -> None:
    state = ElementTree.SubElement(root, "group_state", {"name": name, "group": group})
    for joint, position in positions.items():
        ElementTree.SubElement(state, "joint", {"name": joint, "value": f"{position:.10g}"})


def _indent(element: ElementTree.Element, depth: int = 0) -> None:
    """A line an element; ElementTree's own indent() came after Python 3.8."""
    if len(element):
        element.text = "\n" + "  " * (depth + 1)
        for child in element:
            _indent(child, depth + 1)
            child.tail = "\n" + "  " * (depth + 1)
        element[-1].tail = "\n" + "  " * depth


def gripper_group(gripper: GripperRow) -> str:
    """The name of the hand's group."""
    return gripper.moveit_group or GRIPPER_GROUP


def hand_links(urdf: Urdf, gripper: GripperRow) -> List[str]:
    """The links of the hand: below the link that carries all driven joints, that one included."""
    above = [_ancestors(urdf, urdf.joints[name].parent) for name in gripper.joints]
    common = next(link for link in above[0] if all(link in others for others in above))
    return [link for link in urdf.links if common in _ancestors(urdf, link)]


def _ancestors(urdf: Urdf, link: str) -> List[str]:
    """``link`` and the links above it, up to the root."""
    links = [link]
    joint = urdf.parent_joint(link)
    while joint is not None:
        links.append(joint.parent)
        joint = urdf.parent_joint(joint.parent)
    return links


def _root_of_arm(urdf: Urdf, robot: Robot) -> str:
    """The link that the arm's group begins at: the base frame, or what it sits on where that is no link below."""
    if robot.base_frame in _ancestors(urdf, robot.tool_frame):
        return robot.base_frame
    return urdf.joints[robot.joints[0]].parent


def _carrier(urdf: Urdf, robot: Robot, hand: Sequence[str]) -> str:
    """The link of the arm's group that the hand sits on."""
    chain = [link for link in _ancestors(urdf, robot.tool_frame) if link not in hand]
    return next((link for link in _ancestors(urdf, hand[0]) if link in chain), robot.tool_frame)


def passive_joints(robot: Robot, urdf: Urdf, gripper: GripperRow) -> List[str]:
    """Movable joints that nobody commands and no driver measures: a finger's springy tip."""
    mimics = _mimics(robot)
    known = {*robot.joints, *gripper.joints, *mimics}
    return [name for name, joint in urdf.joints.items() if joint.kind in MOVABLE and name not in known]


def _mimics(robot: Robot) -> Set[str]:
    root = ElementTree.fromstring(robot_urdf(robot))
    return {joint.get("name", "") for joint in root.findall("joint") if joint.find("mimic") is not None}


def unchecked_pairs(robot: Robot) -> List[Pair]:
    """Pairs of links with collision geometry that MoveIt need not, or must not, check, in the URDF's order.

    Rigidly connected links, neighbours over one joint, the hand's parts among themselves, the row's
    ``collision_ignore``, and what the core's distances at :data:`SAMPLES` positions say: never near, always touching.
    """
    text = robot_urdf(robot)
    urdf = read_urdf(text)
    bodied = _links_with_collision(text)
    hand = set(hand_links(urdf, robot_gripper(robot)))
    frames = {link: _frame(urdf, robot, link) for link in bodied}
    ignored = {frozenset(pair) for pair in robot.collision_ignore}
    never, always = _measured(robot, hand)
    pairs: List[Pair] = []
    for first, second in combinations(bodied, 2):
        links = frozenset((first, second))
        reason: Optional[str] = None
        if {first, second} <= hand:
            reason = "User"
        elif abs(frames[first] - frames[second]) <= 1:
            reason = "Adjacent"
        elif links in ignored:
            reason = "User"
        elif links in always:
            reason = "Default"
        elif links in never:
            reason = "Never"
        if reason is not None:
            pairs.append(Pair(links, reason))
    return pairs


def _links_with_collision(text: str) -> List[str]:
    root = ElementTree.fromstring(text)
    return [link.get("name", "") for link in root.findall("link") if link.find("collision") is not None]


def _frame(urdf: Urdf, robot: Robot, link: str) -> int:
    """How many of the arm's joints move a link."""
    count = 0
    joint = urdf.parent_joint(link)
    while joint is not None:
        count += joint.name in robot.joints
        joint = urdf.parent_joint(joint.parent)
    return count


def _measured(robot: Robot, hand: Set[str]) -> Tuple[Set[FrozenSet[str]], Set[FrozenSet[str]]]:
    """Pairs of links that never come near each other, and pairs that always touch."""
    chain = load_chain(robot)
    bodies: CollisionBodies = collision_bodies(chain)
    links = [capsule.link for capsule in chain.capsules]
    pairs = [
        (i, j) for i, j in combinations(range(len(links)), 2) if chain.capsules[i].frame != chain.capsules[j].frame
    ]
    if not pairs:
        return set(), set()
    random = np.random.default_rng(SAMPLE_SEED)
    turns = chain.upper - chain.lower >= 2.0 * np.pi
    lower, upper = np.where(turns, -np.pi, chain.lower), np.where(turns, np.pi, chain.upper)
    positions = random.uniform(lower, upper, (SAMPLES, len(chain)))
    distances = np.asarray(iter_core.CollisionModel(bodies.rows, pairs).pair_distances(chain.core, positions))
    nearest: Dict[FrozenSet[str], NDArray[np.float64]] = {}
    for column, (i, j) in enumerate(pairs):
        key = frozenset((links[i], links[j]))
        series = distances[:, column]
        nearest[key] = series if key not in nearest else np.minimum(nearest[key], series)
    never = {key for key, series in nearest.items() if series.min() > (HAND_NEVER if key & hand else NEVER)}
    always = {key for key, series in nearest.items() if np.mean(series < 0.0) >= ALWAYS}
    return never, always


def kinematics(robot: Robot) -> Dict[str, Any]:
    """``robot_description_kinematics``: which solver the arm's group has."""
    return {
        robot.moveit_group: {
            "kinematics_solver": "kdl_kinematics_plugin/KDLKinematicsPlugin",
            "kinematics_solver_search_resolution": 0.005,
            "kinematics_solver_timeout": 0.05,
        }
    }


def joint_limits(robot: Robot) -> Dict[str, Any]:
    """``robot_description_planning``: the URDF's speeds, the row's accelerations, with the other planners' margins."""
    urdf = read_urdf(robot_urdf(robot))
    limits: Dict[str, Any] = {}
    for name, acceleration in zip(robot.joints, robot.limits.acceleration):
        limits[name] = _limit(SPEED_MARGIN * urdf.joints[name].velocity, ACCELERATION_MARGIN * acceleration)
    for name in robot_gripper(robot).joints:
        limits[name] = _limit(urdf.joints[name].velocity, FINGER_ACCELERATION)
    # Noetic's own default is 0.1 of it, and every move says its share.
    return {
        "default_velocity_scaling_factor": 1.0,
        "default_acceleration_scaling_factor": 1.0,
        "joint_limits": limits,
    }


def _limit(velocity: float, acceleration: float) -> Dict[str, Any]:
    return {
        "has_velocity_limits": velocity > 0.0,
        "max_velocity": round(velocity, 9),
        "has_acceleration_limits": True,
        "max_acceleration": round(acceleration, 9),
    }


def move_group(robot: Robot) -> Dict[str, Any]:
    """The parameters below ``/move_group``: the file's, the groups of its planners, the controllers."""
    path = package_folder() / "config" / "moveit" / "move_group.yaml"
    parameters: Dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    pipeline: Dict[str, Any] = parameters["planning_pipelines"][parameters["default_planning_pipeline"]]
    configurations: Dict[str, Any] = pipeline["planner_configs"]
    configurations.update(
        {name + SETUP_ASSISTANT_SUFFIX: dict(settings) for name, settings in list(configurations.items())}
    )
    gripper = robot_gripper(robot)
    for group, joints in ((robot.moveit_group, robot.joints), (gripper_group(gripper), gripper.joints)):
        pipeline[group] = {
            "default_planner_config": "RRTConnect",
            "planner_configs": list(configurations),
            "projection_evaluator": f"joints({','.join(joints[:2])})",
            "longest_valid_segment_fraction": 0.005,
        }
    return {**parameters, **pipeline, "controller_list": controllers(robot)}


def controllers(robot: Robot) -> List[Dict[str, Any]]:
    """The list of moveit_simple_controller_manager: the driver's trajectory action and the gripper's."""
    gripper = robot_gripper(robot)
    name, action_ns = _action(robot_driver(robot).action("follow_joint_trajectory"))
    hand, hand_ns = _action(gripper.action)
    return [
        {
            "name": name,
            "action_ns": action_ns,
            "type": "FollowJointTrajectory",
            "default": True,
            "joints": list(robot.joints),
        },
        {
            "name": hand,
            "action_ns": hand_ns,
            "type": "GripperCommand",
            "default": True,
            "joints": list(gripper.joints),
            "command_joint": gripper.joints[0],  # all fingers at the driver's position; `parallel` would send their sum
            "allow_failure": True,  # an object that stops the fingers is what a grasp is for
            "max_effort": gripper.max_effort,
        },
    ]


def _action(name: str) -> Tuple[str, str]:
    """An action's name as the controller manager puts it together: ``name`` or ``name/action_ns``."""
    head, _, tail = name.strip("/").rpartition("/")
    return (head, tail) if head else (tail, "")


def missing_packages() -> str:
    """Which of :data:`NEEDED` are not there, and how to get them, for a person; empty if all are."""
    packages = rospkg.RosPack()
    missing = [name for name in NEEDED if not _is_there(packages, name)]
    if not missing:
        return ""
    return (
        f"MoveIt 1 is not installed (no ROS package {', '.join(missing)}): `sudo apt install {INSTALL}` where ROS "
        "Noetic's packages are; planner:=ompl samples without it"
    )


def _is_there(packages: rospkg.RosPack, name: str) -> bool:
    try:
        packages.get_path(name)
        return True
    except rospkg.ResourceNotFound:
        return False


def part_text(robot: Robot, part: str) -> str:
    """One of :data:`PARTS` as it is loaded: XML, or YAML."""
    if part == "srdf":
        return srdf(robot)
    data = {"kinematics": kinematics, "joint_limits": joint_limits, "move_group": move_group}[part](robot)
    return yaml.dump(data, Dumper=_PlainDumper, sort_keys=False, default_flow_style=None, width=120)


class _PlainDumper(yaml.SafeDumper):
    """Without anchors for what is there twice."""

    def ignore_aliases(self, data: Any) -> bool:
        """See yaml."""
        return True


def write_configuration(robot: Robot, folder: Path) -> List[Path]:
    """Writes the parts into ``folder``, for a MoveIt configuration package of one's own; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for part in PARTS:
        path = folder / (f"{robot.name}.srdf" if part == "srdf" else f"{part}.yaml")
        path.write_text(part_text(robot, part), encoding="utf-8")
        written.append(path)
    return written


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The tool ``moveit_config``; returns the exit code: 0, 1 for a wrong row or folder, 2 for the command line."""
    parser = argparse.ArgumentParser(
        prog="moveit_config", description="Prints or writes the MoveIt configuration of a robot's row."
    )
    parser.add_argument("--robot", default="ur5", help="a row of config/robots/, or the path of a YAML file")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--print", dest="part", choices=PARTS, help="one part, as a launch file loads it")
    what.add_argument("--out", metavar="FOLDER", help="all parts, as files")
    parser.add_argument("--check-installed", action="store_true", help="fail where move_group could not be started")
    options, unknown = parser.parse_known_args(arguments)
    surplus = [word for word in unknown if not word.startswith("__")]  # roslaunch may add __name:= and __log:=
    if surplus:
        parser.error(f"unrecognized arguments: {' '.join(surplus)}")
    lacking = missing_packages() if options.check_installed else ""
    if lacking:
        print(f"\nERROR: {lacking}\n", file=sys.stderr)
        return 1
    try:
        robot = load_robot(options.robot)
        if options.part:
            print(part_text(robot, options.part), end="")
        else:
            for path in write_configuration(robot, Path(options.out).expanduser()):
                print(path)
    except (RobotError, OSError) as error:
        print(f"moveit_config: {error}", file=sys.stderr)
        return 1
    return 0
