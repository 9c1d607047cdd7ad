"""Who may change the scene, what the hand carries, and what planners are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iter_runner.kinematics import Box, Cylinder, Sphere, load_chain
from iter_runner.kinematics.rotations import pose
from iter_runner.scene import Origin, PlanningScene, SceneError, SceneObject
from iter_runner.scene.planning_scene import links_of_the_hand


def item(name: str, x: float = 0.0, **fields: Any) -> SceneObject:
    values = {"shape": "box", "dimensions": (0.1, 0.2, 0.3), **fields}
    return SceneObject(name, pose((x, 0.0, 0.0)), **values)


def of_plan(name: str, x: float = 0.0, **fields: Any) -> SceneObject:
    return item(name, x, origin=Origin.PLAN, graspable=True, **fields)


def tip_at(x: float) -> np.ndarray:
    return pose((x, 0.0, 0.0))


def place(scene: PlanningScene, name: str) -> float:
    return float(scene.get(name).pose[0, 3])


def test_a_held_object_follows_the_hand_and_stays_where_it_is_let_go() -> None:
    scene = PlanningScene()
    scene.set_plan([of_plan("a", 0.1), of_plan("b", 0.5)])
    assert scene.attach("a", tip_at(0.2))
    assert scene.get("a").held
    assert place(scene, "a") == pytest.approx(-0.1)
    assert scene.detach("a", tip_at(0.7))
    assert [place(scene, name) for name in "ab"] == pytest.approx([0.6, 0.5])


def test_names_that_are_not_there_or_not_held_change_nothing() -> None:
    scene = PlanningScene([item("a")])
    version = scene.version
    assert not scene.attach("nobody", tip_at(0.0))
    assert not scene.detach("a", tip_at(0.0))
    assert scene.version == version


def test_parts_are_no_obstacles_until_they_are_held_and_fixed_ones_are_until_then() -> None:
    scene = PlanningScene([item("wall")], touch_links=["finger"])
    scene.set_plan([of_plan("block", 0.3)])
    before = scene.snapshot()
    assert [obstacle.name for obstacle in before.obstacles] == ["wall"]
    assert before.attached == []
    scene.attach("block", tip_at(0.2))
    scene.attach("wall", tip_at(0.2))
    held = scene.snapshot()
    assert held.version > before.version
    assert held.obstacles == []
    assert [body.name for body in held.attached] == ["wall", "block"]
    assert list(held.attached[1].touch_links) == ["finger"]
    assert tuple(held.attached[1].size) == (0.1, 0.2, 0.3)


def test_shapes_become_what_the_core_knows() -> None:
    scene = PlanningScene(
        [item("a"), item("b", shape="sphere", dimensions=(0.1,)), item("c", shape="cylinder", dimensions=(0.1, 0.4))]
    )
    box, sphere, cylinder = scene.snapshot().obstacles
    assert isinstance(box, Box)
    assert isinstance(sphere, Sphere)
    assert isinstance(cylinder, Cylinder)
    assert scene.get("b").size == (0.2, 0.2, 0.2)
    assert scene.get("c").size == (0.2, 0.2, 0.4)


def test_a_plan_replaces_the_last_ones_objects_and_no_others() -> None:
    scene = PlanningScene([item("post", origin=Origin.WORKCELL)])
    scene.set_plan([of_plan("a"), of_plan("b")])
    scene.add(item("box"))
    scene.set_plan([of_plan("c")])
    assert [known.name for known in scene.objects] == ["post", "box", "c"]


def test_a_plan_begins_with_an_empty_hand() -> None:
    scene = PlanningScene([item("cup", 0.3)])
    scene.attach("cup", tip_at(0.1))
    scene.set_plan([], tip_at(0.5))
    assert not scene.get("cup").held
    assert place(scene, "cup") == pytest.approx(0.7)


def test_a_taken_name_is_refused_with_both_origins_and_changes_nothing() -> None:
    scene = PlanningScene([item("table", origin=Origin.WORKCELL), item("cup")])
    scene.set_plan([of_plan("a")])
    with pytest.raises(SceneError, match=r"plan's object 'table'.*workcell's file.*'cup'.*service"):
        scene.set_plan([of_plan("table"), of_plan("cup"), of_plan("b")])
    assert [known.name for known in scene.objects] == ["table", "cup", "a"]
    with pytest.raises(SceneError, match=r"'a' is taken.*plan has in its environment"):
        scene.add(item("a"))


def test_a_link_of_the_robot_is_no_name() -> None:
    scene = PlanningScene(reserved=["forearm_link"])
    with pytest.raises(SceneError, match="link of the robot"):
        scene.add(item("forearm_link"))
    with pytest.raises(SceneError, match="'forearm_link' has the name of a link of the robot"):
        scene.set_plan([of_plan("forearm_link")])
    assert scene.objects == []


def test_moving_and_removing() -> None:
    scene = PlanningScene([item("a")])
    scene.move("a", tip_at(0.4))
    assert place(scene, "a") == 0.4
    scene.attach("a", tip_at(0.0))
    with pytest.raises(SceneError, match="hand holds"):
        scene.move("a", tip_at(0.0))
    assert scene.remove("a").name == "a"
    with pytest.raises(SceneError, match=r"no object 'a'; objects are \(none\)"):
        scene.remove("a")
    assert scene.snapshot().attached == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "name"),
        ({"name": " a"}, "blanks"),
        ({"shape": "cone"}, "box, sphere, cylinder"),
        ({"dimensions": (0.1, 0.1)}, "x, y, z"),
        ({"dimensions": (0.1, 0.1, 0.0)}, "above 0"),
        ({"dimensions": (0.1, 0.1, float("nan"))}, "above 0"),
        ({"dimensions": (0.1, 0.1, 1e300)}, "1e-06 to 1000 m"),
        ({"dimensions": (0.1, 0.1, 1e-300)}, "1e-06 to 1000 m"),
        ({"pose": np.full((4, 4), np.inf)}, "finite"),
        ({"pose": pose((0.0, -1450.0, 0.0))}, "within 1000 m"),
        ({"color": (0.5, 0.5, 0.5, float("nan"))}, "0 to 1"),
        ({"color": (255.0, 0.0, 0.0, 1.0)}, "0 to 1"),
    ],
)
def test_objects_that_can_not_be_are_refused(fields: Any, message: str) -> None:
    values = {"name": "a", "pose": np.eye(4), "shape": "box", "dimensions": (0.1, 0.1, 0.1), **fields}
    with pytest.raises(SceneError, match=message):
        PlanningScene([SceneObject(**values)])


def test_a_record_brings_the_object_back() -> None:
    known = SceneObject(
        "a", pose((0.1, 0.2, 0.3), (0.5, 0.5, -0.5, 0.5)), "cylinder", (0.1, 0.2), True, (1.0, 0.0, 0.5, 1.0),
        Origin.PLAN, held=True,
    )  # fmt: skip
    again = SceneObject.from_record(known.to_record())
    np.testing.assert_allclose(again.pose, known.pose, atol=1e-15)
    assert again.to_record() == known.to_record()
    with pytest.raises(SceneError, match="not an object"):
        SceneObject.from_record({"name": "a"})


def test_the_hand_is_what_moves_with_the_tip() -> None:
    links = links_of_the_hand(load_chain("ur5"))
    assert "tool0" in links
    assert "wrist_3_link" in links
    assert any("robotiq" in link for link in links)
    assert "wrist_2_link" not in links
