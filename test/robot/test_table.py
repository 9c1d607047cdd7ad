"""Rows: every shipped one loads; a wrong one says which field, what was found and what was expected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Dict
from xml.etree import ElementTree

import pytest
import yaml

from iter_runner.package import package_folder
from iter_runner.robot.table import (
    PLANNERS,
    RobotError,
    load_driver,
    load_gripper,
    load_robot,
    robot_driver,
    robot_names,
    robot_urdf,
)

SCRIPT = package_folder() / "scripts" / "robot_description"


@pytest.fixture
def row() -> Dict[str, Any]:
    """The fields of a good row, to spoil."""
    text = (package_folder() / "config" / "robots" / "ur5.yaml").read_text(encoding="utf-8")
    fields: Dict[str, Any] = yaml.safe_load(text)
    return fields


def write(folder: Path, fields: object, name: str = "lab_arm.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(fields), encoding="utf-8")
    return path


def error_of(path: Path) -> str:
    with pytest.raises(RobotError) as raised:
        load_robot(path)
    message = str(raised.value)
    assert "\n" not in message
    assert str(path) in message
    return message


@pytest.mark.parametrize("name", robot_names())
def test_shipped_rows_load(name: str) -> None:
    robot = load_robot(name)
    assert robot.name == name
    assert set(robot.planners) <= set(PLANNERS)
    assert robot_driver(robot).topic("joint_states").startswith("/")
    assert robot_driver(robot).action("follow_joint_trajectory").startswith("/")
    assert ElementTree.fromstring(robot_urdf(robot)).get("name") == name


def test_the_four_ur_arms_are_there() -> None:
    assert {"ur3", "ur3e", "ur5", "ur5e"} <= set(robot_names())
    assert load_robot("ur3e").tuck == [-1.0394, -1.2306, -1.8400, -1.6438, 1.5703, -1.0376]
    assert [load_robot(name).control_rate for name in ("ur3", "ur3e", "ur5", "ur5e")] == [125, 500, 125, 500]


def test_unknown_robot_lists_the_names() -> None:
    with pytest.raises(RobotError, match=r"no robot 'ur9'; there are .*ur3, ur3e, ur5, ur5e"):
        load_robot("ur9")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        ".",
        "../ur5",
        "ur5.yml",
        "no/such.yaml",
        "x" * 5000,
        "x" * 5000 + ".yaml",
        "\0",
        "/\0.yaml",
        "~nobody9/a.yaml",
    ],
)
def test_odd_names_are_errors(text: str) -> None:
    with pytest.raises(RobotError):
        load_robot(text)


@pytest.mark.parametrize("text", ["[" * 200000, "- " * 100000, "[" * 2**19, "name: " + "x" * 2**19])
def test_a_row_that_would_break_the_yaml_library_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(text, encoding="utf-8")
    assert len(error_of(path)) < 500


def test_a_row_that_grows_when_it_is_printed_is_an_error(tmp_path: Path) -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    path = tmp_path / "laughs.yaml"
    path.write_text(f"a0: &a0 [ha]\n{levels}tuck: *a8\n", encoding="utf-8")
    assert len(error_of(path)) < 5000


def test_a_row_outside_the_package(tmp_path: Path, row: Dict[str, Any]) -> None:
    """Its URDF is looked for beside it, then in the package; its gripper may be a file beside it."""
    gripper = yaml.safe_load((package_folder() / "config/grippers/robotiq_85.yaml").read_text(encoding="utf-8"))
    write(tmp_path, {**gripper, "name": "long_fingers", "mass": 1.1}, "long_fingers.yaml")
    robot = load_robot(write(tmp_path, {**row, "name": "lab_arm", "gripper": "long_fingers.yaml"}))
    assert load_gripper(robot.gripper).mass == 1.1
    assert ElementTree.fromstring(robot_urdf(robot)).get("name") == "lab_arm"

    text = robot_urdf(load_robot("ur5")).replace("robotiq_85", "mine").replace("gripper_tip", "mine_tip")
    (tmp_path / "arm.urdf").write_text(text, encoding="utf-8")
    plain = {**row, "name": "plain", "urdf": "arm.urdf", "urdf_arguments": {}}
    links = ElementTree.fromstring(robot_urdf(load_robot(write(tmp_path, plain)))).findall("link")
    assert {"mine_base_link", "robotiq_85_base_link"} <= {link.get("name") for link in links}


def test_an_edited_urdf_is_read_again(tmp_path: Path, row: Dict[str, Any]) -> None:
    model = tmp_path / "arm.urdf"
    text = robot_urdf(load_robot("ur5")).replace("robotiq_85", "mine").replace("gripper_tip", "mine_tip")
    model.write_text(text, encoding="utf-8")
    robot = load_robot(write(tmp_path, {**row, "urdf": "arm.urdf", "urdf_arguments": {}}))
    before = robot_urdf(robot)
    model.write_text(text.replace("mine_tip", "other_tip"), encoding="utf-8")
    assert "other_tip" in robot_urdf(robot)
    assert "other_tip" not in before


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"tuck": [0.0, 1.0]}, "tuck: 6 values expected, one for each of the joints, 2 found"),
        ({"tuck": [0, -1, 4, 0, 0, 0]}, "tuck: elbow_joint at 4.0 rad is outside its limits -3.1416 to 3.1416"),
        ({"tuck": [0, float("nan"), 0, 0, 0, 0]}, "tuck"),
        ({"tuck": ["a"] * 6}, "tuck.0: input should be a valid number"),
        ({"gripper": "claw"}, "no gripper 'claw'; there are kinova_2, kinova_3, robotiq_85"),
        ({"gripper": "claw.yaml"}, "claw.yaml; expected a gripper's YAML file"),
        ({"driver": "abb"}, "no driver 'abb'; there are"),
        ({"planners": ["relaxed_ik", "rrt"]}, "planners: no planner 'rrt'; there are relaxed_ik, static, ur"),
        ({"planners": []}, "planners"),
        ({"joints": ["a"] * 6}, "joints holds a name twice"),
        ({"joints": [f"j{i}" for i in range(6)]}, "joints: no movable joint 'j0' in the URDF; there are shoulder_pan"),
        ({"tool_frame": "tool9"}, "tool_frame"),
        ({"elbow_link": "elbow"}, "elbow_link: no link 'elbow' in the URDF"),
        ({"collision_ignore": [["tool0", "nose"]]}, "collision_ignore: no link 'nose' in the URDF"),
        ({"urdf": "nothing.xacro"}, "urdf: no file"),
        ({"urdf_arguments": {"model": "ur9"}}, "ur9.yaml"),
        ({"control_rate": 0}, "control_rate: input should be greater than 0, 0 found"),
        ({"servo": {"lookahead_time": 1.0, "gain": 300}}, "servo.lookahead_time"),
        ({"limits": {"acceleration": [1.0]}}, "limits.acceleration: 6 values expected"),
        ({"limits": {"acceleration": [-1.0] * 6}}, "limits.acceleration: accelerations above zero expected"),
        ({"tukc": []}, "tukc: no such field; fields are name, title, driver"),
    ],
)
def test_wrong_fields_are_named(tmp_path: Path, row: Dict[str, Any], changes: Dict[str, Any], expected: str) -> None:
    assert expected in error_of(write(tmp_path, {**row, **changes}))


def test_a_gripper_longer_than_its_model_is_named(tmp_path: Path, row: Dict[str, Any]) -> None:
    gripper = yaml.safe_load((package_folder() / "config" / "grippers" / "robotiq_85.yaml").read_text(encoding="utf-8"))
    (tmp_path / "long.yaml").write_text(yaml.safe_dump({**gripper, "tip_offset": 0.2}), encoding="utf-8")
    message = error_of(write(tmp_path, {**row, "gripper": "long.yaml"}))
    assert "tip_offset 0.2 m, but its URDF has gripper_tip 0.1675 m from tool0" in message


def test_all_faults_at_once(tmp_path: Path, row: Dict[str, Any]) -> None:
    del row["tuck"]
    message = error_of(write(tmp_path, {**row, "control_rate": -1, "planners": ["rrt"]}))
    for part in ("tuck: missing", "control_rate", "planners"):
        assert part in message


@pytest.mark.parametrize(
    "text", ["", "[1, 2]", "a: [", "\t", "name: {a: b", "[" * 5000, "!!python/object:os.system {}"]
)
def test_broken_files_are_one_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text, encoding="utf-8")
    error_of(path)


def test_broken_urdf_is_one_error(tmp_path: Path, row: Dict[str, Any]) -> None:
    (tmp_path / "arm.urdf").write_text("<robot name='x'><link name='a'></robot>", encoding="utf-8")
    assert "arm.urdf" in error_of(write(tmp_path, {**row, "urdf": "arm.urdf"}))


def test_gripper_relation_is_the_drivers() -> None:
    gripper = load_gripper("robotiq_85")
    for position in (0.0, 0.3, 0.8):
        assert gripper.opening_of(position) == pytest.approx(0.085 - position / 10)
        assert gripper.position_of(gripper.opening_of(position)) == pytest.approx(position)
    assert gripper.position_of(0.2) == 0.0
    assert gripper.position_of(-1.0) == pytest.approx(0.8)
    assert gripper.opening_of(-1.0) == 0.085


def test_driver_says_what_it_lacks() -> None:
    driver = load_driver("ur")
    assert driver.topic("script_command") == "/ur_hardware_interface/script_command"
    assert driver.service("unlock_protective_stop") == "/ur_hardware_interface/dashboard/unlock_protective_stop"
    with pytest.raises(RobotError, match="driver ur: no 'home' among its services"):
        driver.service("home")


class TestRobotDescription:
    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)

    def test_prints_urdf(self) -> None:
        done = self.run("ur5", "__name:=x")
        assert done.returncode == 0
        assert done.stderr == ""
        assert ElementTree.fromstring(done.stdout).get("name") == "ur5"

    def test_a_reader_that_has_seen_enough_is_no_error(self) -> None:
        command = [sys.executable, str(SCRIPT), "ur5"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as printing:
            assert printing.stdout is not None
            assert printing.stderr is not None
            printing.stdout.close()
            assert printing.stderr.read() == ""
        assert printing.returncode == 0

    def test_prints_the_tuck(self) -> None:
        done = self.run("--tuck", "ur3")
        robot = load_robot("ur3")
        assert yaml.safe_load(done.stdout) == dict(zip(robot.joints, robot.tuck))

    def test_unknown_robot_is_one_line_and_exit_code_1(self) -> None:
        done = self.run("ur9")
        assert done.returncode == 1
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
        assert "ur5e" in done.stderr

    def test_usage_is_exit_code_2(self) -> None:
        assert self.run().returncode == 2
