"""The file of what always stands around the arm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iter_runner.kinematics import clearance, load_chain
from iter_runner.robot.table import load_robot, robot_names, robot_urdf
from iter_runner.scene import Origin, PlanningScene, SceneError
from iter_runner.scene.workcell_file import read_workcell, robot_frames, workcell_names

UR5 = load_robot("ur5")
LOCATE = robot_frames(robot_urdf(UR5), UR5.base_frame)


def written(folder: Path, text: str) -> str:
    path = folder / "cell.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", workcell_names())
@pytest.mark.parametrize("robot", robot_names())
def test_every_shipped_workcell_leaves_room_for_every_tucked_arm(name: str, robot: str) -> None:
    row = load_robot(robot)
    objects = read_workcell(name, robot_frames(robot_urdf(row), row.base_frame))
    found = clearance(load_chain(row), np.array(row.tuck), PlanningScene(objects).snapshot().obstacles)
    assert found.distance > 0.0, f"{found.a} and {found.b}"


def test_positions_are_in_the_frame_that_the_file_names(tmp_path: Path) -> None:
    text = "frame: base\nobjects:\n- {name: a, box: [0.1, 0.2, 0.3], position: [0.3, 0.2, 0.1]}\n"
    (found,) = read_workcell(written(tmp_path, text), LOCATE)
    np.testing.assert_allclose(found.pose[:3, 3], (-0.3, -0.2, 0.1), atol=1e-12)  # base is base_link half about z
    assert found.origin is Origin.WORKCELL
    assert not found.graspable


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("objects: [{name: a, box: [1, 1, 1]}]", "objects.0.position: missing"),
        ("objects: [{name: a, position: [0, 0, 0]}]", "one of box, sphere and cylinder expected, found none"),
        ("objects: [{name: a, box: [1, 1, 1], sphere: 1, position: [0, 0, 0]}]", "found box and sphere"),
        ("objects: [{name: a, box: [1, 1], position: [0, 0, 0]}]", "objects.0.box"),
        ("objects: [{name: a, box: [1, 1, -1], position: [0, 0, 0]}]", "above 0"),
        ("objects: [{name: a, sphere: 1, position: [0, 0, 0], colour: red}]", "colour: no such field; fields are name"),
        ("objects: [{name: a, sphere: 1, position: [0, 0, 0], frame: forearm_link}]", "moves 'forearm_link'"),
        ("objects: [{name: a, sphere: 1, position: [0, 0, 0], frame: moon}]", "no link 'moon'"),
        ("objects: [{name: a, sphere: 1, position: [0, 0, 0], rpy: [0, 0, 0], orientation: [0, 0, 0, 1]}]", "both"),
        (
            "objects: [{name: a, sphere: 1, position: [0, 0, 0]}, {name: a, sphere: 1, position: [0, 0, 0]}]",
            "'a' is there twice",
        ),
        ("objects: [{name: a, sphere: 1, position: [5, 0, 0]}]\nobjects: []", "'objects' is there twice"),
        (
            "objects: [{name: a, sphere: .nan, position: [0, 0, 0]}]",
            "objects.0.sphere: input should be a finite",
        ),
        ("objects: [a]", "objects.0: fields (name, box"),
        ("objects: [", "cell.yaml"),
        ("", "the file: fields (frame, objects) expected, None found"),
        ("[1, 2]", "cell.yaml"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SceneError) as found:
        read_workcell(written(tmp_path, text), LOCATE)
    assert message in str(found.value)
    assert "cell.yaml" in str(found.value)


def test_what_yaml_repeats_by_reference_may_be_given_anew(tmp_path: Path) -> None:
    text = (
        "objects:\n- &first {name: a, sphere: 0.1, position: [5, 0, 0]}\n- {<<: *first, name: b, position: [0, 5, 0]}\n"
    )
    assert [(found.name, found.dimensions) for found in read_workcell(written(tmp_path, text), LOCATE)] == [
        ("a", (0.1,)), ("b", (0.1,)),
    ]  # fmt: skip


def test_a_name_that_is_not_there_lists_those_that_are() -> None:
    with pytest.raises(SceneError, match="example, table"):
        read_workcell("kitchen", LOCATE)
