"""main.launch on other backends from the preflight to the plan's end: the embedded simulator stands in for the makers'
drivers, started by packages of their names."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Dict, List

from iter_runner.demo import free_port

SIMULATOR = """<launch>
  {arguments}
  <node name="simulator" pkg="iter_runner" type="simulator" output="screen">
    <param name="robot" value="{robot}"/>
    <param name="gripper" value="{gripper}"/>
    <param name="rate" value="{rate}"/>
  </node>
</launch>
"""
POSE = {"orientation": {"x": 1, "y": 0, "z": 0, "w": 0}}
PLAN = {
    "title": "There and back",
    "version": "1.0.0",
    "task": [
        {"name": "move", "position": {"x": 0.05, "y": 0.3, "z": 0.25}, **POSE},
        {"name": "grasp", "width": 0.03},
        {"name": "move", "position": {"x": 0.0, "y": 0.3, "z": 0.25}, **POSE},
        {"name": "release", "width": 0.08},
    ],
}


def package(folder: Path, name: str, file: str = "", text: str = "") -> None:
    (folder / name / "launch").mkdir(parents=True)
    (folder / name / "package.xml").write_text(
        f"<package format='2'><name>{name}</name><version>1.0.0</version><description/>"
        "<maintainer email='a@b.c'>a</maintainer><license>MIT</license></package>"
    )
    if file:
        (folder / name / "launch" / file).write_text(text)


def arguments(*names: str) -> str:
    return "".join(f'<arg name="{name}" default=""/>' for name in names)


def run(folder: Path, words: List[str]) -> str:
    """The launch terminal's lines, once the plan has ended."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps(PLAN))
    port = free_port()
    environment: Dict[str, str] = dict(
        os.environ,
        ROS_MASTER_URI=f"http://localhost:{port}",
        ROS_PACKAGE_PATH=os.pathsep.join([str(folder / "packages"), os.environ.get("ROS_PACKAGE_PATH", "")]),
        ROS_HOME=str(folder / "home"),
        ROS_LOG_DIR=str(folder / "log"),
        ITER_RUNNER_SESSIONS=str(folder / "sessions"),
    )
    words = [f"plan:={plan}", "participant:=auto", "exit_when_done:=true", *words]
    done = subprocess.run(
        ["roslaunch", "-p", str(port), "iter_runner", "main.launch", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return done.stdout


def test_hardware_ur(tmp_path: Path) -> None:
    launch = SIMULATOR.format(
        arguments=arguments("robot_ip", "headless_mode", "kinematics_config"), robot="ur5", gripper="true", rate=1
    )
    package(tmp_path / "packages", "ur_robot_driver", "ur5_bringup.launch", launch)
    words = ["backend:=hardware", "robot_ip:=127.0.0.1", "gripper_driver:=external", "transport:=script"]
    output = run(tmp_path, [*words, "planner:=static", "speed:=1.0"])
    assert "finished: all 4 steps done" in output, output
    assert "preflight: ok    joints: the 6 of ur5" in output
    assert "preflight: ok    speed slider: 1.00, as asked" in output


def test_hardware_kinova(tmp_path: Path) -> None:
    launch = SIMULATOR.format(arguments=arguments("kinova_robotType"), robot="mico-2", gripper="true", rate=1)
    package(tmp_path / "packages", "kinova_bringup", "kinova_robot.launch", launch)
    package(tmp_path / "packages", "kinova_driver")
    for name in ("joint_trajectory_action_server", "gripper_command_action_server"):
        node = tmp_path / "packages" / "kinova_driver" / name
        node.write_text("#!/bin/sh\nexec sleep 1000\n")  # the simulator serves both actions
        node.chmod(0o755)
    output = run(tmp_path, ["backend:=hardware", "robot:=mico-2"])
    assert "finished: all 4 steps done" in output, output
    assert "preflight: ok    gripper: /m1n6s200_gripper/gripper_command is served" in output


def test_gazebo_ur(tmp_path: Path) -> None:
    launch = SIMULATOR.format(arguments=arguments("gui"), robot="ur5@gazebo", gripper="false", rate=2)
    package(tmp_path / "packages", "ur_gazebo", "ur5_bringup.launch", launch)
    output = run(tmp_path, ["backend:=gazebo", "gazebo_gui:=false"])
    assert "finished: all 4 steps done" in output, output
    assert "preflight: ok    driver: ur_gazebo is up" in output
    assert "emulated_gripper: there is no hand" in output
