from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path
from typing import Dict

import pytest

from iter_runner import demo, launch_check
from iter_runner.launch_check import LaunchError, check_launch, main
from iter_runner.robot import moveit_config

GOOD: Dict[str, str] = {
    "robot": "ur3e", "planner": "static", "backend": "embedded", "participant": "auto", "rate": "0", "speed": "0.3",
    "seed": "7", "plan": "", "faults": "protective_stop@3", "exit_when_done": "True", "button": "keyboard",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _every_driver_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are not are looked at in test_launch_files.py."""
    monkeypatch.setattr(launch_check, "missing_packages", lambda robot, gripper_driver, start_driver: [])


def test_what_fits_together_passes() -> None:
    check_launch(GOOD)
    check_launch({})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("robot", "ur9", "ur3e"),
        ("robot", "my_arm.yaml", "whole path"),
        ("planner", "fast", "relaxed_ik"),
        ("backend", "hardwear", "hardware"),
        ("backend", "nope", "embedded, gazebo, hardware, ursim"),
        ("robot_ip", "192.168.1.300", "controller's address"),
        ("robot_ip", "http://10.0.0.1", "controller's address"),
        ("transport", "pigeon", "robot ur3e takes script, rtde"),
        ("transport", "rtde", "talks to a controller"),
        ("gripper_driver", "kinova", "robotiq_85 goes with"),
        ("gripper_port", "/dev/ttyUSB7", "belongs to gripper_driver:=serial"),
        ("kinematics_config", "mine.yaml", "whole path"),
        ("kinematics_config", "/nowhere/mine.yaml", "no such file"),
        ("planner_seed", "7", "belongs to planner:=ompl"),
        ("planner_seed", "1.5", "whole number"),
        ("replay", "20260101T1", "belongs to planner:=replay"),
        ("workcell", "lab", "one of example, table"),
        ("workcell", "lab.yaml", "whole path"),
        ("workcell", "/nowhere/lab.yaml", "/nowhere/lab.yaml"),
        ("start_driver", "perhaps", "true"),
        ("participant", "robot", "human"),
        ("mode", "record", "replay"),
        ("rate", "-1", "number from 0"),
        ("rate", "nan", "number from 0"),
        ("speed", "1.5", "0.01 to 1"),
        ("table_height", "low", "a height in m"),
        ("seed", "1.5", "whole number"),
        ("seed", "99999999999999999999", "2147483647"),
        ("faults", "earthquake", "protective_stop"),
        ("plan", "/nowhere.json", "/nowhere.json"),
        ("plan", "/", "directory"),
        ("sessions", "records", "sessions:=records: expected the whole path"),
        ("sessions", "/dev/null/records", "/dev/null"),
        ("sessions", "/" + 300 * "x", "path"),
        ("rviz", "maybe", "true"),
    ],
)
def test_what_does_not_is_named(name: str, value: str, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        check_launch({**GOOD, name: value})
    assert str(caught.value).startswith(f"{name}:={value}")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"plan": "sequential", "first_step": "100000"}, r"first_step:=100000: the plan sequential has steps 0 to "),
        ({"plan": "FAR", "tool_frame": "tool9"}, r"FAR: 1 fault\n/tool_frame: .*'tool9'.*tool0"),
        ({"plan": "FAR"}, r"FAR: 1 fault\n/task/0: found .* out of reach"),
    ],
)
def test_a_plan_has_to_fit_the_other_arguments(tmp_path: Path, arguments: Dict[str, str], message: str) -> None:
    far = tmp_path / "it's | FAR"
    far.write_text(
        '{"version": "1.0.0", "task": [{"name": "move", "position": {"x": 5, "y": 0, "z": 0}, '
        '"orientation": {"x": 0, "y": 0, "z": 0, "w": 1}}]}'
    )
    with pytest.raises(LaunchError, match=message):
        check_launch({key: str(far) if value == "FAR" else value for key, value in arguments.items()})


def test_a_plan_keeps_clear_of_the_workcell(tmp_path: Path) -> None:
    workcell = tmp_path / "lab.yaml"
    workcell.write_text("objects: [{name: pillar, box: [0.3, 0.3, 2.0], position: [0.0, 0.4, 0.5]}]")
    plan = tmp_path / "plan.json"
    plan.write_text(
        '{"version": "1.0.0", "task": [{"name": "move", "position": {"x": 0, "y": 0.4, "z": 0.3}, '
        '"orientation": {"x": 1, "y": 0, "z": 0, "w": 0}}]}'
    )
    check_launch({"plan": str(plan)})
    check_launch({"plan": str(plan), "workcell": "table"})
    with pytest.raises(LaunchError, match="pillar"):
        check_launch({"plan": str(plan), "workcell": str(workcell)})
    workcell.write_text("objects: [{name: pillar, position: [0.0, 0.4, 0.5]}]")
    with pytest.raises(LaunchError, match=f"workcell:={workcell}: .*one of box, sphere and cylinder"):
        check_launch({"workcell": str(workcell)})


def test_a_bar_in_a_file_name_is_no_end_of_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["robot:=ur5|plan:=a|b.json|rate:=1"]) == 1
    assert "ERROR: plan:=a|b.json: " in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["hardware", "ursim"])
def test_real_drivers_take_no_simulator_settings(backend: str) -> None:
    plain = {"backend": backend, "robot_ip": "10.0.0.2", "gripper_driver": "external"}
    check_launch({**plain, "rate": "1.0", "faults": "", "speed": "0.3"})
    for name, value in (("rate", "10"), ("faults", "protective_stop@3")):
        with pytest.raises(LaunchError, match=f"{name}:={value}: belongs to backend:=embedded"):
            check_launch({**plain, name: value})


@pytest.mark.parametrize("backend", ["hardware", "ursim"])
def test_a_ur_controller_has_an_address(backend: str) -> None:
    for address in ("10.0.0.2", "ur5.lab", "localhost", "fe80::1"):
        check_launch({"backend": backend, "robot_ip": address, "gripper_driver": "external"})
    with pytest.raises(LaunchError, match=r"robot_ip:=: .*needs the controller's address"):
        check_launch({"backend": backend, "gripper_driver": "external"})
    # Where the drivers run already only RTDE needs it.
    running = {"backend": backend, "start_driver": "false"}
    check_launch({**running, "transport": "script"})
    with pytest.raises(LaunchError, match="robot_ip"):
        check_launch(running)


def test_a_serial_gripper_is_plugged_in(tmp_path: Path) -> None:
    port = tmp_path / "ttyUSB0"
    hardware = {"backend": "hardware", "robot_ip": "10.0.0.2", "gripper_port": str(port)}
    with pytest.raises(LaunchError, match=f"gripper_port:={port}: there is no such device"):
        check_launch(hardware)
    for wrong in (tmp_path, Path(__file__)):
        with pytest.raises(LaunchError, match="expected a serial device, found a file or folder"):
            check_launch({**hardware, "gripper_port": str(wrong)})
    port.symlink_to("/dev/null")  # as those in /dev/serial/by-id are
    check_launch(hardware)
    with pytest.raises(LaunchError, match="is the button's port as well"):
        check_launch({**hardware, "button": "serial", "port": str(port)})
    check_launch({"backend": "hardware", "robot_ip": "10.0.0.2", "gripper_driver": "urcap"})
    with pytest.raises(LaunchError, match="urcap: needs robot_ip"):
        check_launch({"gripper_driver": "urcap"})
    check_launch({"backend": "ursim", "robot_ip": "localhost"})  # fingers that are only calculated need no cable


def test_what_shows_and_records_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_check, "has_package", lambda name: name == "rviz")
    check_launch({"rviz": "true", "record": "False"})
    with pytest.raises(LaunchError, match="record:=true: the ROS package rosbag is not installed"):
        check_launch({"rviz": "true", "record": "true"})


def test_a_replay_names_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_check, "check_fit", lambda robot, planner: None)
    with pytest.raises(LaunchError, match="planner:=replay: needs replay:="):
        check_launch({"planner": "replay"})
    session = tmp_path / "20260101T000000.000Z_ab12"
    named = {"planner": "replay", "replay": session.name, "sessions": str(tmp_path)}
    with pytest.raises(LaunchError, match=f"replay:={session.name}: no session"):
        check_launch(named)
    session.mkdir()
    (session / "journal.jsonl").touch()
    check_launch(named)
    check_launch({"planner": "replay", "replay": str(session)})


@pytest.mark.parametrize(
    ("button", "missing"), [("serial", "port:="), ("topic", "button_topic:="), ("web", "not built")]
)
def test_a_button_needs_its_device(button: str, missing: str) -> None:
    with pytest.raises(LaunchError, match=missing):
        check_launch({"participant": "human", "button": button})
    check_launch({"participant": "auto", "button": button})


def test_a_plan_with_faults_does_not_launch(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"version": "1.0.0", "task": [{"name": "mvoe"}]}')
    with pytest.raises(LaunchError, match="/task/0"):
        check_launch({"plan": str(plan)})


def test_the_tool_prints_one_error_and_exits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["robot:=ur5|rate:=10"]) == 0
    assert main(["robot:=ur9|rate:=10"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.strip().startswith("ERROR: robot:=ur9")
    assert main(["rubbish"]) == 2


def test_the_demo_takes_the_launch_files_arguments() -> None:
    arguments = demo.parse_arguments(["robot:=ur3e", "rate:=1", "mode:=capture", "first_step:=3"])
    assert (arguments["robot"], arguments["planner"], arguments["rate"]) == ("ur3e", "relaxed_ik", "1")
    launch = demo.launch_command(arguments, 12345)
    assert launch[:6] == ["roslaunch", "-p", "12345", "iter_runner", "main.launch", "plan:="]
    assert "robot:=ur3e" in launch
    assert not any(word.startswith(("mode:=", "first_step:=")) for word in launch)
    tool = demo.tool_command(arguments)
    assert tool[3] == demo.DEFAULTS["plan"]
    assert tool[tool.index("--mode") + 1] == "capture"
    assert tool[tool.index("--first-step") + 1] == "3"


@pytest.mark.parametrize("word", ["robot=ur5", "ur5", "robto:=ur5", ":=x", "plan:="])
def test_the_demo_refuses_what_is_no_argument(word: str) -> None:
    with pytest.raises(ValueError, match=word):
        demo.parse_arguments([word])


def test_the_demo_is_a_master_of_its_own(tmp_path: Path) -> None:
    masters = {demo.Demo(demo.DEFAULTS, tmp_path / "log").master for _ in range(2)}
    assert all(master.startswith("http://localhost:") for master in masters)


def test_the_demo_runs_a_plan_that_is_there() -> None:
    check_launch(demo.DEFAULTS)


def test_the_demo_finds_the_processes_that_another_has_started() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert child.pid in demo.children(os.getpid())
        assert demo.children(child.pid) == []
    finally:
        child.kill()
        child.wait()


def test_moveit_needs_what_it_stands_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moveit_config, "missing_packages", lambda: "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LaunchError, match=r"planner:=moveit: .*apt install ros-noetic-moveit.*planner:=ompl"):
        check_launch({"robot": "ur5", "planner": "moveit"})
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    check_launch({"robot": "ur5", "planner": "moveit"})
    monkeypatch.setattr(moveit_config, "missing_packages", lambda: "MoveIt 1 is not installed")
    with pytest.raises(LaunchError, match=r"planner:=moveit: MoveIt 1 is not installed; move_group:=false uses one"):
        check_launch({"robot": "ur5", "planner": "moveit"})
    check_launch({"robot": "ur5", "planner": "moveit", "move_group": "false"})
    with pytest.raises(LaunchError, match="move_group:=mine: expected one of false, true"):
        check_launch({"robot": "ur5", "planner": "moveit", "move_group": "mine"})
