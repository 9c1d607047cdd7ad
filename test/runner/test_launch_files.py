"""What main.launch starts on other backends than the simulator, beside made-up packages of the drivers' names.

The packages' launch files write down what they are given, as parameters; ``roslaunch --dump-params`` starts nothing.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import pytest
import yaml

from iter_runner.launch_row import default_transport, missing_packages, write_row_launch
from iter_runner.robot.table import load_robot, robot_names

UR_ARGUMENTS = ("robot_ip", "headless_mode", "kinematics_config")
FILES: Mapping[str, Tuple[str, Sequence[str]]] = {
    # The launch files that the real packages have, and the arguments that these take.
    **{
        f"ur_robot_driver/launch/{model}_bringup.launch": (f"{model}_bringup", UR_ARGUMENTS)
        for model in ("ur3", "ur3e", "ur5", "ur5e")
    },
    "kinova_bringup/launch/kinova_robot.launch": ("kinova_robot", ("kinova_robotType",)),
    "ur_gazebo/launch/ur5_bringup.launch": ("ur5_gazebo", ("gui",)),
    "kinova_gazebo/launch/robot_launch.launch": ("kinova_gazebo", ("kinova_robotType", "gui")),
}
KINOVA_ARM, KINOVA_HAND = "joint_trajectory_action_server", "gripper_command_action_server"
PACKAGES = ("ur_robot_driver", "kinova_bringup", "kinova_driver", "ur_gazebo", "kinova_gazebo")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with packages of the drivers' names."""
    folder = tmp_path / "packages"
    for name in PACKAGES:
        (folder / name).mkdir(parents=True)
        (folder / name / "package.xml").write_text(
            f"<package format='2'><name>{name}</name><version>1.0.0</version><description/>"
            "<maintainer email='a@b.c'>a</maintainer><license>MIT</license></package>"
        )
    for file, (label, arguments) in FILES.items():
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        lines = [f"<arg name='{name}' default='none'/>" for name in arguments]
        lines += [f"<param name='/given/{label}/{name}' type='str' value='$(arg {name})'/>" for name in arguments]
        path.write_text(f"<launch>{''.join(lines)}</launch>")
    for name in (KINOVA_ARM, KINOVA_HAND):
        node = folder / "kinova_driver" / name
        node.write_text("#!/bin/sh\n")
        node.chmod(0o755)
    return folder


def roslaunch(option: str, home: Path, packages: str, *words: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join([packages, os.environ.get("ROS_PACKAGE_PATH", "")])
    return subprocess.run(
        ["roslaunch", option, "iter_runner", "main.launch", *words],
        env=dict(os.environ, ROS_PACKAGE_PATH=path, ROS_HOME=str(home)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def given(output: str) -> Dict[str, Any]:
    """What the made-up launch files were given, by their labels."""
    found: Dict[str, Dict[str, Any]] = {}
    for name, value in yaml.safe_load(output).items():
        parts = name.split("/")
        if parts[1] == "given":
            found.setdefault(parts[2], {})[parts[3]] = value
    return found


UR_HARDWARE = {"robot_ip": "10.0.0.9", "headless_mode": "true", "kinematics_config": "none"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("backend:=hardware robot:=ur5 gripper_driver:=external", {"ur5_bringup": UR_HARDWARE}),
        ("backend:=hardware robot:=ur3e gripper_driver:=external", {"ur3e_bringup": UR_HARDWARE}),
        ("backend:=ursim robot:=ur5", {"ur5_bringup": UR_HARDWARE}),
        ("backend:=hardware robot:=mico-2", {"kinova_robot": {"kinova_robotType": "m1n6s200"}}),
        ("backend:=hardware robot:=mico-3", {"kinova_robot": {"kinova_robotType": "m1n6s300"}}),
        (
            "backend:=hardware robot:=mico-robotiq85 gripper_driver:=external",
            {"kinova_robot": {"kinova_robotType": "m1n6s200"}},
        ),
        ("backend:=gazebo robot:=ur5 gazebo_gui:=false", {"ur5_gazebo": {"gui": "false"}}),
        ("backend:=gazebo robot:=mico-2", {"kinova_gazebo": {"kinova_robotType": "m1n6s200", "gui": "true"}}),
        ("backend:=hardware robot:=ur5 start_driver:=false", {}),
        ("backend:=gazebo robot:=ur5 start_driver:=false", {}),
    ],
)
def test_the_row_decides_which_driver_is_started(
    tmp_path: Path, packages: Path, words: str, expected: Dict[str, Any]
) -> None:
    address = () if "mico" in words or "gazebo" in words else ("robot_ip:=10.0.0.9",)
    done = roslaunch("--dump-params", tmp_path / "home", str(packages), *words.split(), *address)
    assert done.returncode == 0, done.stderr
    assert given(done.stdout) == expected
    parameters = yaml.safe_load(done.stdout)
    assert parameters["/use_sim_time"] is ("gazebo" in words)
    there = words.split("robot:=")[1].split()[0] + ("@gazebo" if "gazebo" in words else "")
    assert parameters["/runner/robot"] == parameters["/initialize_joints/robot"] == there
    assert parameters["/initialize_joints/preflight"] is True
    # Gazebo's controllers need what its own description says.
    assert ("/robot_description" in parameters) is ("gazebo" not in words)


@pytest.mark.parametrize(
    ("words", "started", "not_started"),
    [
        ("robot:=mico-2", [f"m1n6s200_{KINOVA_ARM}", f"m1n6s200_{KINOVA_HAND}"], ["robotiq_85"]),
        ("robot:=mico-3", [f"m1n6s300_{KINOVA_ARM}", f"m1n6s300_{KINOVA_HAND}"], ["robotiq_85"]),
        (
            "robot:=mico-robotiq85 gripper_driver:=external",
            [f"m1n6s200_{KINOVA_ARM}", "gripper_state_publisher"],
            [f"m1n6s200_{KINOVA_HAND}", "robotiq_85"],
        ),
        ("robot:=ur5 robot_ip:=ur5.lab gripper_driver:=urcap", ["robotiq_85"], ["simulator", "emulated_gripper"]),
        ("robot:=ur5 robot_ip:=ur5.lab gripper_port:=PORT", ["robotiq_85"], ["emulated_gripper"]),
        ("robot:=ur5 robot_ip:=ur5.lab start_driver:=false", ["initialize_joints"], ["robotiq_85", "emulated_gripper"]),
        ("backend:=ursim robot:=ur5 robot_ip:=localhost", ["emulated_gripper"], ["robotiq_85", "simulator"]),
        ("backend:=gazebo robot:=mico-3", ["emulated_gripper"], [f"m1n6s300_{KINOVA_ARM}"]),
        ("backend:=embedded robot:=ur5", ["simulator"], ["emulated_gripper", "robotiq_85", "gripper_state_publisher"]),
        ("backend:=embedded robot:=ur5 gripper_driver:=emulated", ["simulator", "emulated_gripper"], ["robotiq_85"]),
    ],
)  # fmt: skip
def test_nodes_beside_the_driver(
    tmp_path: Path, packages: Path, words: str, started: List[str], not_started: List[str]
) -> None:
    port = tmp_path / "ttyUSB9"
    port.touch()
    arguments = words.replace("PORT", str(port)).split()
    if "backend:=" not in words:
        arguments.append("backend:=hardware")
    done = roslaunch("--nodes", tmp_path / "home", str(packages), *arguments)
    assert done.returncode == 0, done.stderr
    nodes = [line.strip("/") for line in done.stdout.split()]
    assert set(started) <= set(nodes)
    assert not set(not_started) & set(nodes)


def test_a_calibration_is_handed_on(tmp_path: Path, packages: Path) -> None:
    calibration = tmp_path / "my ur5.yaml"
    calibration.write_text("kinematics: {hash: calib_1}\n")
    words = ["backend:=hardware", "robot_ip:=10.0.0.9", f"kinematics_config:={calibration}", "gripper_driver:=external"]
    done = roslaunch("--dump-params", tmp_path / "home", str(packages), *words)
    assert given(done.stdout)["ur5_bringup"]["kinematics_config"] == str(calibration)


@pytest.mark.parametrize(
    ("words", "lacking", "how"),
    [
        (
            "backend:=hardware robot_ip:=10.0.0.9 gripper_driver:=external",
            "ur_robot_driver",
            "apt install ros-noetic-ur",
        ),
        ("backend:=ursim robot_ip:=10.0.0.9", "ur_robot_driver", "apt install ros-noetic-ur-robot-driver"),
        ("backend:=hardware robot:=mico-3", "kinova_bringup and kinova_driver", "Kinovarobotics/kinova-ros"),
        ("backend:=gazebo", "ur_gazebo", "apt install ros-noetic-ur-gazebo"),
        ("backend:=gazebo robot:=mico-2", "kinova_gazebo", "Kinovarobotics/kinova-ros"),
    ],
)
def test_a_missing_package_is_one_line(tmp_path: Path, words: str, lacking: str, how: str) -> None:
    done = roslaunch("--nodes", tmp_path / "home", str(tmp_path), *words.split())
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
    assert len(errors) == 1
    for text in (lacking, how, "backend:=embedded", "start_driver:=false"):
        assert text in errors[0]
    assert "Resource not found" not in done.stderr


def test_a_driver_of_another_version_is_named(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(packages))
    robot = load_robot("ur5").model_copy(update={"urdf_arguments": {"model": "ur9"}})
    (line,) = missing_packages(robot, "external", True)
    assert "has no launch/ur9_bringup.launch" in line
    assert missing_packages(load_robot("ur5"), "external", True) == []


def test_an_arm_behind_drivers_of_its_own_needs_none(tmp_path: Path) -> None:
    robot = load_robot("ur5").model_copy(
        update={"driver": "ros_control", "driver_arguments": {"controller": "arm"}, "transports": ["trajectory_topic"]}
    )
    assert missing_packages(robot, "external", True) == []
    file = tmp_path / "new" / "row.launch"
    write_row_launch(file, robot, "hardware")
    assert "backend_hardware.launch" in file.read_text()
    assert "driver_" not in file.read_text().replace("gripper_driver", "").replace("start_driver", "")


def test_streams_go_past_the_driver_where_there_is_a_controller() -> None:
    ways = {
        (name, backend): default_transport(load_robot(name), backend)
        for name in robot_names()
        for backend in ("embedded", "hardware")
    }
    assert ways["ur5", "embedded"] == "script"
    assert ways["ur5", "hardware"] == "rtde"
    assert ways["mico-2", "embedded"] == ways["mico-2", "hardware"] == "joint_velocity"
