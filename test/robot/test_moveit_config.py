"""MoveIt's configuration of every row: what the setup assistant would have asked for, and that it fits the URDF."""

from __future__ import annotations

import os
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterator, List, Set, Tuple
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import iter_core
from iter_runner.kinematics import Chain, load_chain
from iter_runner.kinematics.obstacles import collision_bodies
from iter_runner.kinematics.rotations import rotation_vector_to_matrix, rpy_to_matrix
from iter_runner.kinematics.urdf import Urdf, read_urdf
from iter_runner.package import package_folder
from iter_runner.robot import moveit_config
from iter_runner.robot.moveit_config import (
    GRIPPER_GROUP,
    NEEDED,
    controllers,
    hand_links,
    joint_limits,
    kinematics,
    main,
    missing_packages,
    move_group,
    passive_joints,
    srdf,
    unchecked_pairs,
)
from iter_runner.robot.table import Robot, load_robot, robot_driver, robot_gripper, robot_names, robot_urdf

DOUBLE = Path(__file__).parents[1] / "planners" / "moveit_double"


@pytest.fixture(scope="module", params=robot_names())
def robot(request: pytest.FixtureRequest) -> Robot:
    return load_robot(request.param)


@pytest.fixture(scope="module")
def urdf(robot: Robot) -> Urdf:
    return read_urdf(robot_urdf(robot))


@pytest.fixture(scope="module")
def semantics(robot: Robot) -> ElementTree.Element:
    return ElementTree.fromstring(srdf(robot))


@pytest.fixture(scope="module")
def chain(robot: Robot) -> Chain:
    return load_chain(robot)


def names(elements: List[ElementTree.Element], attribute: str = "name") -> List[str]:
    return [element.get(attribute, "") for element in elements]


def test_it_is_of_the_same_robot_as_the_urdf(robot: Robot, semantics: ElementTree.Element) -> None:
    """Else MoveIt refuses it."""
    assert semantics.tag == "robot"
    assert semantics.get("name") == ElementTree.fromstring(robot_urdf(robot)).get("name")
    allowed = {"group", "group_state", "end_effector", "passive_joint", "disable_collisions"}
    assert {child.tag for child in semantics} <= allowed


def test_links_and_joints_are_the_urdfs(urdf: Urdf, semantics: ElementTree.Element) -> None:
    links = {
        *names(semantics.findall("group/link")),
        *names(semantics.findall("group/chain"), "base_link"),
        *names(semantics.findall("group/chain"), "tip_link"),
        *names(semantics.findall("end_effector"), "parent_link"),
        *names(semantics.findall("disable_collisions"), "link1"),
        *names(semantics.findall("disable_collisions"), "link2"),
    }
    joints = {
        *names(semantics.findall("group/joint")),
        *names(semantics.findall("group_state/joint")),
        *names(semantics.findall("passive_joint")),
    }
    assert links <= set(urdf.links)
    assert joints <= set(urdf.joints)


def test_the_groups_are_the_arm_and_the_hand(robot: Robot, urdf: Urdf, semantics: ElementTree.Element) -> None:
    assert names(semantics.findall("group")) == [robot.moveit_group, GRIPPER_GROUP]
    assert robot.moveit_group == ("arm" if robot.name.startswith("mico") else "manipulator")
    way = semantics.find("group/chain")
    assert way is not None
    assert load_chain(robot_urdf(robot), way.get("tip_link"), way.get("base_link")).joint_names == robot.joints
    assert names(semantics.findall(f"group[@name='{GRIPPER_GROUP}']/joint")) == robot_gripper(robot).joints


def test_the_hand_is_an_end_effector_on_the_arm(robot: Robot, urdf: Urdf, semantics: ElementTree.Element) -> None:
    effector = semantics.find("end_effector")
    assert effector is not None
    hand = hand_links(urdf, robot_gripper(robot))
    assert (effector.get("group"), effector.get("parent_group")) == (GRIPPER_GROUP, robot.moveit_group)
    assert effector.get("parent_link") not in hand
    above = [robot.tool_frame]
    while above[-1] != urdf.joints[robot.joints[0]].parent:
        joint = urdf.parent_joint(above[-1])
        assert joint is not None
        above.append(joint.parent)
    assert effector.get("parent_link") in above  # a link of the arm's group
    assert {urdf.joints[name].child for name in robot_gripper(robot).joints} < set(hand)
    assert not set(hand) & set(above)


def test_named_states_are_the_rows(robot: Robot, urdf: Urdf, semantics: ElementTree.Element) -> None:
    states = {state.get("name"): state for state in semantics.findall("group_state")}
    assert list(states) == ["tucked", "open", "closed"]
    for state in states.values():
        for joint in state.findall("joint"):
            row = urdf.joints[joint.get("name", "")]
            assert row.lower - 1e-9 <= float(joint.get("value", "nan")) <= row.upper + 1e-9
    values = [float(joint.get("value", "nan")) for joint in states["tucked"].findall("joint")]
    np.testing.assert_allclose(values, robot.tuck, atol=1e-9)


def test_a_joint_that_nobody_measures_is_passive(robot: Robot) -> None:
    gripper = robot_gripper(robot)
    text = robot_urdf(robot).replace("</robot>", "") + (
        "<link name='spring'/><joint name='springy' type='revolute'><parent link='base_link'/><child link='spring'/>"
        "<limit lower='0' upper='1' effort='1' velocity='1'/></joint></robot>"
    )
    assert passive_joints(robot, read_urdf(text), gripper) == [
        *passive_joints(robot, read_urdf(robot_urdf(robot)), gripper),
        "springy",
    ]


# Pairs that are not checked ------------------------------------------------------------------------------------------


def test_pairs_are_listed_once_and_have_bodies(robot: Robot, semantics: ElementTree.Element) -> None:
    pairs = [pair.links for pair in unchecked_pairs(robot)]
    assert all(len(pair) == 2 for pair in pairs)
    assert len(set(pairs)) == len(pairs)
    root = ElementTree.fromstring(robot_urdf(robot))
    bodied = {link.get("name") for link in root.findall("link") if link.find("collision") is not None}
    assert set().union(*pairs) <= bodied
    assert {pair.get("reason") for pair in semantics.findall("disable_collisions")} <= {
        "Adjacent", "Never", "User", "Default",
    }  # fmt: skip


def touching(chain: Chain, positions: np.ndarray) -> Set[FrozenSet[str]]:
    """The pairs of links that the core checks and that meet at any of the positions."""
    bodies = collision_bodies(chain)
    distances = np.asarray(iter_core.CollisionModel(bodies.rows, bodies.pairs).pair_distances(chain.core, positions))
    met = np.flatnonzero(np.min(distances, axis=0) < 0.0)
    return {frozenset((chain.capsules[i].link, chain.capsules[j].link)) for i, j in (bodies.pairs[k] for k in met)}


def test_no_pair_that_can_collide_is_left_unchecked(robot: Robot, chain: Chain) -> None:
    random = np.random.default_rng(77)
    lower, upper = np.maximum(chain.lower, -np.pi), np.minimum(chain.upper, 2 * np.pi)
    met = touching(chain, random.uniform(lower, upper, (30000, len(chain))))
    assert met, "no two links meet at all"
    assert not met & {pair.links for pair in unchecked_pairs(robot)}


def test_what_the_core_leaves_out_is_left_out(robot: Robot, chain: Chain) -> None:
    """Neighbours overlap by design: MoveIt would call every pose a collision."""
    unchecked = {pair.links for pair in unchecked_pairs(robot)}
    for first, second in combinations(chain.capsules, 2):
        if first.link != second.link and abs(first.frame - second.frame) <= 1:
            assert frozenset((first.link, second.link)) in unchecked
    assert {frozenset(pair) for pair in robot.collision_ignore} <= unchecked


Shape = Tuple[str, np.ndarray, np.ndarray]


def shapes(robot: Robot, urdf: Urdf) -> Iterator[Tuple[str, Shape]]:
    """The collision shapes as MoveIt takes them, in the root, in the tuck pose."""
    at = dict(zip(robot.joints, robot.tuck))

    def place(link: str) -> np.ndarray:
        joint = urdf.parent_joint(link)
        if joint is None:
            return np.eye(4)
        turn = np.eye(4)
        turn[:3, :3] = rotation_vector_to_matrix(joint.axis * at.get(joint.name, 0.0))
        return place(joint.parent) @ joint.origin @ turn

    for link in ElementTree.fromstring(robot_urdf(robot)).findall("link"):
        for collision in link.findall("collision"):
            local = np.eye(4)
            origin = collision.find("origin")
            if origin is not None:
                local[:3, 3] = [float(v) for v in origin.get("xyz", "0 0 0").split()]
                local[:3, :3] = rpy_to_matrix([float(v) for v in origin.get("rpy", "0 0 0").split()])
            shape = collision.find("geometry")[0]  # type: ignore[index]
            sizes = [float(v) for key in ("radius", "length", "size") for v in shape.get(key, "").split()]
            name = link.get("name", "")
            yield name, (shape.tag, np.array(sizes), place(name) @ local)


def extent(shape: Shape, directions: np.ndarray) -> np.ndarray:
    """How far (N,) a shape reaches along unit directions (N, 3)."""
    kind, sizes, pose = shape
    local = directions @ pose[:3, :3]
    centre = directions @ pose[:3, 3]
    if kind == "sphere":
        return centre + sizes[0]
    if kind == "box":
        return centre + np.abs(local) @ (sizes / 2)
    assert kind == "cylinder"
    return centre + sizes[0] * np.hypot(local[:, 0], local[:, 1]) + np.abs(local[:, 2]) * sizes[1] / 2


def test_in_the_tuck_pose_moveits_own_shapes_touch_nowhere(robot: Robot, urdf: Urdf) -> None:
    """Its cylinders have flat ends, which the core's capsules lack: every plan from there would fail else."""
    unchecked = {pair.links for pair in unchecked_pairs(robot)}
    directions = np.random.default_rng(1).normal(size=(20000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    for (a, first), (b, second) in combinations(list(shapes(robot, urdf)), 2):
        if a == b or frozenset((a, b)) in unchecked:
            continue
        gap = -extent(second, -directions) - extent(first, directions)  # a plane between them
        assert np.max(gap) > 0.0, f"{a} and {b} touch in the tuck pose"


# Parameters ----------------------------------------------------------------------------------------------------------


def test_limits_are_within_the_urdfs(robot: Robot, urdf: Urdf) -> None:
    limits = joint_limits(robot)["joint_limits"]
    assert list(limits) == [*robot.joints, *robot_gripper(robot).joints]
    for name, acceleration in zip(robot.joints, robot.limits.acceleration):
        assert 0.0 < limits[name]["max_velocity"] < urdf.joints[name].velocity
        assert 0.0 < limits[name]["max_acceleration"] < acceleration


def test_every_group_can_be_planned_for(robot: Robot) -> None:
    parameters = move_group(robot)
    pipeline = parameters["planning_pipelines"]["ompl"]
    for where in (pipeline, parameters):  # Noetic, Melodic
        for group in (robot.moveit_group, GRIPPER_GROUP):
            assert where[group]["default_planner_config"] in where["planner_configs"]
            assert set(where[group]["planner_configs"]) == set(where["planner_configs"])
        assert "AddTimeParameterization" in where["request_adapters"]
    assert pipeline["planner_configs"]["RRTConnectkConfigDefault"]["type"] == "geometric::RRTConnect"
    assert list(kinematics(robot)) == [robot.moveit_group]


def test_controllers_are_the_drivers_actions(robot: Robot) -> None:
    arm, hand = controllers(robot)
    assert "/" + "/".join(part for part in (arm["name"], arm["action_ns"]) if part) == robot_driver(robot).action(
        "follow_joint_trajectory"
    )
    assert "/" + "/".join(part for part in (hand["name"], hand["action_ns"]) if part) == robot_gripper(robot).action
    assert arm["joints"] == robot.joints
    assert hand["joints"] == robot_gripper(robot).joints


# The tool and the launch file ----------------------------------------------------------------------------------------


def test_the_tool_writes_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["--robot", "mico-3", "--out", str(tmp_path / "config")]) == 0
    written = sorted(path.name for path in (tmp_path / "config").iterdir())
    assert written == ["joint_limits.yaml", "kinematics.yaml", "mico-3.srdf", "move_group.yaml"]
    assert yaml.safe_load((tmp_path / "config" / "kinematics.yaml").read_text())["arm"]
    assert str(tmp_path) in capsys.readouterr().out


def test_the_tool_names_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["--robot", "ur77", "--print", "srdf"]) == 1
    assert "moveit_config: " in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["--robot", "ur5", "--out", str(tmp_path / "file")]) == 1
    with pytest.raises(SystemExit) as left:
        main(["--robot", "ur5"])
    assert left.value.code == 2


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Packages with the names of MoveIt's."""
    for name in NEEDED:
        (tmp_path / "ros" / name).mkdir(parents=True)
        (tmp_path / "ros" / name / "package.xml").write_text(
            f"<package format='2'><name>{name}</name><version>1.1.16</version><description/>"
            "<maintainer email='a@b.c'>a</maintainer><license>BSD</license></package>"
        )
    node = tmp_path / "ros" / "moveit_ros_move_group" / "move_group"
    node.write_text("#!/bin/sh\n")
    node.chmod(0o755)
    return tmp_path / "ros"


def roslaunch(packages: Path, *words: str) -> subprocess.CompletedProcess:
    environment = dict(
        os.environ,
        ROS_PACKAGE_PATH=os.pathsep.join([str(packages), os.environ.get("ROS_PACKAGE_PATH", "")]),
        PYTHONPATH=os.pathsep.join([str(DOUBLE), os.environ.get("PYTHONPATH", "")]),
        ROS_HOME=str(packages.parent / "home"),
    )
    return subprocess.run(
        ["roslaunch", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_launch_file_loads_all_of_it(packages: Path) -> None:
    done = roslaunch(packages, "--dump-params", "iter_runner", "move_group.launch", "robot:=mico-robotiq85")
    assert done.returncode == 0, done.stderr
    parameters: Dict[str, Any] = yaml.safe_load(done.stdout[done.stdout.index("/") :])
    robot = load_robot("mico-robotiq85")
    assert parameters["/robot_description_semantic"] == srdf(robot)
    assert parameters["/robot_description_kinematics"] == kinematics(robot)
    assert parameters["/robot_description_planning"] == joint_limits(robot)
    assert parameters["/move_group"] == move_group(robot)
    assert "/robot_description" in parameters


def test_main_launch_starts_move_group_for_the_planner_moveit(packages: Path) -> None:
    words = ("--nodes", "iter_runner", "main.launch")
    assert "/move_group" in roslaunch(packages, *words, "planner:=moveit").stdout.split()
    assert "/move_group" not in roslaunch(packages, *words, "planner:=moveit", "move_group:=false").stdout.split()
    assert "/move_group" not in roslaunch(packages, *words).stdout.split()


def test_where_moveit_is_missing_the_launch_file_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(moveit_config, "NEEDED", ("moveit_ros_move_group", "iter_runner"))
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(package_folder()))
    assert "no ROS package moveit_ros_move_group)" in missing_packages()
    assert main(["--robot", "ur5", "--print", "srdf", "--check-installed"]) == 1
    printed = capsys.readouterr()
    assert "apt install ros-noetic-moveit" in printed.err
    assert not printed.out
