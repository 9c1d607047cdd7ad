"""What a plan's steps do to the scene, and what a check sees of it."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Sequence

import numpy as np
import pytest

from iter_runner.kinematics.attached import SINK
from iter_runner.kinematics.rotations import pose
from iter_runner.plan import Plan, load_plan
from iter_runner.plan.check import check_plan, inspect_plan
from iter_runner.plan.scene import advance, scene_objects
from iter_runner.primitives import REGISTRY
from iter_runner.scene import Origin, PlanningScene, SceneObject

DOWN = {"x": 1.0, "y": 0.0, "z": 0.0, "w": 0.0}
UPRIGHT = {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}
TIP = 0.17
"""m from the flange to the middle of what the fingers hold."""


def point(x: float, y: float, z: float) -> Dict[str, float]:
    return {"x": x, "y": y, "z": z}


def move(x: float, y: float, z: float) -> Dict[str, Any]:
    """The middle of the fingers to a place, the hand from above."""
    return {"name": "move", "position": point(x, y, z + TIP), "orientation": DOWN}


def connect(name: str) -> Dict[str, Any]:
    return {"name": "connect_object", "object_name": name}


def disconnect(name: str) -> Dict[str, Any]:
    return {"name": "disconnect_object", "object_name": name}


def box(name: str, centre: Sequence[float], size: Sequence[float], graspable: bool = False) -> Dict[str, Any]:
    return {
        "name": name, "position": point(*centre), "orientation": UPRIGHT, "size": point(*size), "graspable": graspable,
    }  # fmt: skip


TABLE = box("table", (0.0, 0.35, -0.05), (0.9, 0.5, 0.02))
BLOCK = box("block", (0.2, 0.35, -0.01), (0.04, 0.04, 0.06), True)


def plan(*steps: Any, environment: Sequence[Any] = (TABLE, BLOCK)) -> Plan:
    document = {"version": "1.0.0", "tool_frame": "tool0", "task": list(steps), "environment": list(environment)}
    return load_plan(json.dumps(document), REGISTRY)


def pick_and_place(*between: Any, end: float = -0.01) -> List[Any]:
    """The block from the table along ``between`` to another place on the table."""
    return [
        move(0.2, 0.35, 0.15), move(0.2, 0.35, -0.01), connect("block"), move(0.2, 0.35, 0.15), *between,
        move(-0.2, 0.35, end), disconnect("block"), move(-0.2, 0.35, 0.15),
    ]  # fmt: skip


def test_a_run_that_begins_later_finds_objects_where_the_plan_has_put_them() -> None:
    document = plan(*pick_and_place())
    for done, x, held in ((2, 0.2, False), (3, 0.2, True), (5, -0.2, True), (6, -0.2, False), (7, -0.2, False)):
        scene = PlanningScene()
        scene.set_plan(scene_objects(document.objects, np.eye(4)))
        tips = []

        def to_tip(position: Any, orientation: Any, tips: List[Any] = tips) -> np.ndarray:
            tips.append(pose(position.xyz, orientation.xyzw))
            return tips[-1]

        advance(scene, document.steps[:done], to_tip)
        found = scene.get("block")
        assert found.held is held
        centre = (tips[-1] @ found.pose if held else found.pose)[:3, 3]
        np.testing.assert_allclose(centre, (x, 0.35, -0.01), atol=1e-12)


def test_an_object_is_connected_where_the_hand_is_before_the_first_move() -> None:
    document = plan(connect("block"))
    scene = PlanningScene()
    scene.set_plan(scene_objects(document.objects, np.eye(4)))
    advance(scene, document.steps, lambda *_: np.eye(4))
    assert not scene.get("block").held
    advance(scene, document.steps, lambda *_: np.eye(4), np.eye(4))
    assert scene.get("block").held


@pytest.mark.parametrize("planner", ["relaxed_ik", "static", "ur"])
def test_a_block_is_lifted_from_a_table_and_put_down_on_it(planner: str) -> None:
    for end in (-0.01, -0.0103, -0.008):  # exact, 0.3 mm too low, 2 mm above
        faults = check_plan(plan(*pick_and_place(move(-0.2, 0.35, 0.15), end=end)), "ur5", planner)
        assert faults == [], list(map(str, faults))


@pytest.mark.parametrize("planner", ["relaxed_ik", "static", "ur"])
def test_a_block_that_is_pushed_through_a_table_is_refused_by_both_names(planner: str) -> None:
    faults = check_plan(plan(*pick_and_place(move(-0.2, 0.35, 0.15), end=-0.025)), "ur5", planner)
    assert [fault.pointer for fault in faults] == ["/task/5"]
    assert "block" in str(faults[0])
    assert "table" in str(faults[0])


def test_a_block_stands_on_another() -> None:
    second = box("second", (-0.2, 0.35, -0.01), (0.04, 0.04, 0.06), True)
    steps = pick_and_place(move(-0.2, 0.35, 0.15), end=0.05)
    assert check_plan(plan(*steps, environment=[TABLE, BLOCK, second]), "ur5", "relaxed_ik") == []


def test_a_fixed_post_is_seen_by_what_the_hand_carries_only() -> None:
    # A rod of 40 cm across the hand, and a post that the hand itself passes by.
    rod = box("rod", (0.2, 0.35, -0.025), (0.03, 0.4, 0.03), True)
    post = box("post", (-0.2, 0.52, 0.15), (0.04, 0.04, 0.38))
    way = [move(0.2, 0.35, 0.15), move(0.2, 0.35, -0.02), connect("rod"), move(0.2, 0.35, 0.15)]
    free = [*way[:2], *way[3:], move(-0.2, 0.35, 0.15)]
    assert check_plan(plan(*free, environment=[TABLE, rod, post]), "ur5", "static") == []
    faults = check_plan(plan(*way, move(-0.2, 0.35, 0.15), environment=[TABLE, rod, post]), "ur5", "static")
    assert [fault.pointer for fault in faults] == ["/task/4"]
    assert "rod" in str(faults[0])
    assert "post" in str(faults[0])
    let_go = [*way, move(0.2, 0.35, -0.02), disconnect("rod"), move(0.2, 0.35, 0.15), move(-0.2, 0.35, 0.15)]
    assert check_plan(plan(*let_go, environment=[TABLE, rod, post]), "ur5", "static") == []


def test_what_else_stands_there_is_seen_and_keeps_its_name() -> None:
    crate = SceneObject("crate", pose((-0.2, 0.35, 0.2)), "box", (0.2, 0.2, 0.3), origin=Origin.SERVICE)
    document = plan(*pick_and_place(move(-0.2, 0.35, 0.15)))
    faults = check_plan(document, "ur5", "static", surroundings=[crate])
    assert {fault.pointer for fault in faults} == {"/task/4", "/task/5", "/task/7"}
    assert all("crate" in str(fault) for fault in faults)
    taken = SceneObject("block", pose((0.0, 0.0, 1.5)), "box", (0.1, 0.1, 0.1), origin=Origin.WORKCELL)
    faults = check_plan(plan(move(0.2, 0.35, 0.15)), "ur5", surroundings=[taken])
    assert [fault.pointer for fault in faults] == ["/environment/1/name"]
    assert "workcell" in str(faults[0])


@pytest.mark.parametrize(
    ("item", "pointer", "words"),
    [
        (box("sheet", (0.4, 0.0, 0.5), (0.1, 0.1, 0.0)), "/environment/1", "dimensions above 0"),
        (box(" cup", (0.4, 0.0, 0.5), (0.1, 0.1, 0.1), True), "/environment/1", "without blanks"),
        (box("forearm_link", (0.4, 0.0, 0.5), (0.1, 0.1, 0.1), True), "/environment/1/name", "link of the robot"),
    ],
)
def test_objects_that_a_scene_can_not_have_are_faults_of_the_plan(item: Any, pointer: str, words: str) -> None:
    (fault,) = check_plan(plan(move(0.2, 0.35, 0.15), environment=[TABLE, item]), "ur5")
    assert fault.pointer == pointer
    assert words in str(fault)


def test_a_block_on_a_table_says_nothing_of_the_arms_own_clearance() -> None:
    result = inspect_plan(plan(*pick_and_place(move(-0.2, 0.35, 0.15))), "ur5", ["static"])
    assert result.faults == []
    first, *_, last = result.paths["static"]
    for path in (first, last):  # nothing in the hand
        assert path.arm_clearance == path.clearance
    down = next(path for path in result.paths["static"] if path.pointer == "/task/5")
    assert down.clearance == pytest.approx(SINK, abs=1e-6)
    assert down.arm_clearance > 0.004


def test_a_rehearsal_from_a_later_step_holds_what_is_held_there() -> None:
    document = plan(*pick_and_place(move(-0.2, 0.35, 0.15), end=-0.025))
    assert check_plan(document, "ur5", "static", first_step=5)
    assert {fault.pointer for fault in check_plan(document, "ur5", "static", first_step=6)} == {"/task/5"}
