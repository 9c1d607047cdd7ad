"""What main.launch starts on other backends than the simulator, beside made-up packages of the drivers' names.

The packages' launch files write down what they are given, as parameters; nothing is started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

import pytest

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


READ = """
import json, sys, roslaunch
launch = roslaunch.rlutil.resolve_launch_arguments(["iter_runner", "main.launch"])
config = roslaunch.config.load_config_default([(launch[0], sys.argv[1:])], None, assign_machines=False)
print(json.dumps({"nodes": [node.name for node in config.nodes], "given": {name: parameter.value for name, parameter
      in config.params.items() if isinstance(parameter.value, (str, bool, int, float))}}))
"""


def environment(home: Path, packages: str) -> Dict[str, str]:
    path = os.pathsep.join([packages, os.environ.get("ROS_PACKAGE_PATH", "")])
    return dict(os.environ, ROS_PACKAGE_PATH=path, ROS_HOME=str(home))


def read_launch(home: Path, packages: Path, *words: str) -> Tuple[List[str], Dict[str, Any]]:
    """The nodes and the parameters of main.launch, as roslaunch reads it."""
    done = subprocess.run(
        [sys.executable, "-c", READ, *words],
        env=environment(home, str(packages)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout.splitlines()[-1])
    return read["nodes"], read["given"]


def given(parameters: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    """What the made-up launch files were given, by their labels."""
    found: Dict[str, Dict[str, Any]] = {}
    for name, value in parameters.items():
        parts = name.split("/")
        if parts[1] == "given":
            found.setdefault(parts[2], {})[parts[3]] = value
    return found


UR = {"robot_ip": "ur.lab", "headless_mode": "true", "kinematics_config": "none"}
OURS = {"robotiq_85", "emulated_gripper", "simulator", "gripper_state_publisher"}
"""Nodes that are there on some backends only, beside the makers'."""
TWO = {f"m1n6s200_{KINOVA_ARM}", f"m1n6s200_{KINOVA_HAND}"}
THREE = {f"m1n6s300_{KINOVA_ARM}", f"m1n6s300_{KINOVA_HAND}"}


@pytest.mark.parametrize(
    ("words", "included", "nodes"),
    [
        ("hardware robot:=ur5 robot_ip:=ur.lab gripper_driver:=urcap", {"ur5_bringup": UR}, {"robotiq_85"}),
        ("hardware robot:=ur3e robot_ip:=ur.lab gripper_port:=PORT", {"ur3e_bringup": UR}, {"robotiq_85"}),
        ("hardware robot:=ur5 robot_ip:=ur.lab gripper_driver:=external", {"ur5_bringup": UR}, set()),
        ("hardware robot:=ur5 robot_ip:=ur.lab start_driver:=false", {}, set()),
        ("ursim robot:=ur5 robot_ip:=ur.lab", {"ur5_bringup": UR}, {"emulated_gripper"}),
        ("hardware robot:=mico-2", {"kinova_robot": {"kinova_robotType": "m1n6s200"}}, TWO),
        ("hardware robot:=mico-3", {"kinova_robot": {"kinova_robotType": "m1n6s300"}}, THREE),
        (
            "hardware robot:=mico-robotiq85 gripper_port:=PORT",
            {"kinova_robot": {"kinova_robotType": "m1n6s200"}},
            {f"m1n6s200_{KINOVA_ARM}", "gripper_state_publisher", "robotiq_85"},
        ),
        ("gazebo robot:=ur5 gazebo_gui:=false", {"ur5_gazebo": {"gui": "false"}}, {"emulated_gripper"}),
        (
            "gazebo robot:=mico-3",
            {"kinova_gazebo": {"kinova_robotType": "m1n6s300", "gui": "true"}},
            {"emulated_gripper"},
        ),
        ("gazebo robot:=ur5 start_driver:=false", {}, set()),
        ("embedded robot:=ur5", {}, {"simulator"}),
        ("embedded robot:=ur5 gripper_driver:=emulated", {}, {"simulator", "emulated_gripper"}),
    ],
)
def test_the_row_decides_what_is_started(
    tmp_path: Path, packages: Path, words: str, included: Dict[str, Any], nodes: Set[str]
) -> None:
    port = tmp_path / "ttyUSB9"
    port.symlink_to("/dev/null")  # a device, as the real one is
    started, parameters = read_launch(
        tmp_path / "home", packages, *f"backend:={words}".replace("PORT", str(port)).split()
    )
    assert given(parameters) == included
    known = OURS | TWO | THREE
    assert {node.strip("/") for node in started} & known == nodes
    backend = words.split()[0]
    assert parameters["/use_sim_time"] is (backend in ("embedded", "gazebo"))
    there = words.split("robot:=")[1].split()[0] + ("@gazebo" if backend == "gazebo" else "")
    assert parameters["/runner/robot"] == parameters["/initialize_joints/robot"] == there
    assert parameters["/initialize_joints/preflight"] is (backend != "embedded")
    # Gazebo's controllers need what its own description says.
    assert ("/robot_description" in parameters) is (backend != "gazebo")


def test_a_calibration_is_handed_on(tmp_path: Path, packages: Path) -> None:
    calibration = tmp_path / "my ur5.yaml"
    calibration.write_text("kinematics: {hash: calib_1}\n")
    words = ["backend:=hardware", "robot_ip:=10.0.0.9", f"kinematics_config:={calibration}", "gripper_driver:=external"]
    _, parameters = read_launch(tmp_path / "home", packages, *words)
    assert given(parameters)["ur5_bringup"]["kinematics_config"] == str(calibration)


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
    done = subprocess.run(
        ["roslaunch", "--nodes", "iter_runner", "main.launch", *words.split()],
        env=environment(tmp_path / "home", str(tmp_path)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
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
