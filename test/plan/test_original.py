"""Plans of the original ITER: they load as they are, loose as they may be."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict

import pytest

from iter_runner.plan import Plan, PlanError, load_plan
from iter_runner.plan.objects import plan_objects
from iter_runner.primitives import REGISTRY

FOLDER = Path(os.environ.get("ITER_PLANS", Path(__file__).parents[3] / "shared" / "iter_plans"))
FILES = sorted(FOLDER.rglob("*.json"))
NO_FILES = pytest.mark.skipif(
    not FILES, reason=f"the original plans are not in {FOLDER}; ITER_PLANS names another folder"
)

REFUSED = {
    "tests/primitives/move_ar_tag_pose.json": ["/task: found nothing"],
    "tests/primitives/publish_string_from_file.json": ["/task/0/filepath: found '../catkin_ws/"],
    "cases/s2_s.json": ["/task/2/filepath: found", "/task/5/filepath: found", "/task/8/filepath: found"],
}
STEPS = {
    "ur3e/pooled_static.json": 120,
    "ur5/house_static.json": 73,
    "tests/primitives/pick_and_place_static.json": 8,
    "tests/environment/static_pick_and_place.json": 9,
    "tests/empty.json": 0,
}

UPRIGHT = {"x": 0, "y": 0, "z": 0, "w": 1}
MOVE: Dict[str, Any] = {"name": "move", "position": {"x": 0.3, "y": 0.2, "z": 0.1}, "orientation": UPRIGHT}


def load(*steps: Any, **top: Any) -> Plan:
    return load_plan(json.dumps({"version": "0.0.1", "task": list(steps), **top}), REGISTRY)


@NO_FILES
def test_there_are_as_many_as_we_know() -> None:
    assert len(FILES) == 29


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=str(path.relative_to(FOLDER))) for path in FILES] or [pytest.param(FOLDER, marks=NO_FILES)],
)
def test_every_original_plan_loads_or_is_refused_for_a_stated_reason(path: Path) -> None:
    name = str(path.relative_to(FOLDER))
    if name in REFUSED:
        with pytest.raises(PlanError) as refused:
            load_plan(path, REGISTRY)
        lines = str(refused.value).splitlines()
        assert len(lines) == len(REFUSED[name])
        for line, start in zip(lines, REFUSED[name]):
            assert line.startswith(start)
        return
    plan = load_plan(path, REGISTRY)
    assert plan.original
    document = json.loads(path.read_text(encoding="utf-8"))
    assert len(plan.steps) == STEPS.get(name, len(document["task"]))
    assert [planned.index for planned in plan.steps] == list(range(len(plan.steps)))
    for planned in plan.steps:
        place = document
        for part in planned.pointer.split("/")[1:]:
            place = place[int(part)] if isinstance(place, list) else place[part]
    assert len(plan.objects_for("ee_link")) == len(plan.environment)


@NO_FILES
def test_the_ur5_house_has_true_centres_and_one_obstacle() -> None:
    plan = load_plan(FOLDER / "ur5/house_static.json", REGISTRY)
    objects = plan.objects_for("ee_link")
    assert [item.name for item in objects if not item.graspable] == ["tabletop"]
    written = {item.name: item.position.xyz for item in plan.environment}
    for item in objects:
        assert item.position == pytest.approx(written[item.name])


@NO_FILES
def test_the_ur3e_house_gives_flange_poses_and_its_blocks_are_at_the_fingertips() -> None:
    plan = load_plan(FOLDER / "ur3e/pooled_static.json", REGISTRY)
    objects = plan_objects(plan, "ee_link", 0.16)
    assert [item.name for item in objects if not item.graspable] == ["tabletop"]
    written = {item.name: item.position.xyz for item in plan.environment}
    for item in objects[1:]:
        x, y, z = written[item.name]
        assert item.position == pytest.approx((x, y, z - 0.16), abs=1e-4)


def test_what_the_original_never_looked_at_is_a_warning() -> None:
    plan = load(
        {
            **MOVE,
            "weight": 3,
            "position": {**MOVE["position"], "frame": "a"},
            "options": {"steady_state_threshold": 0.1},
        },
        {"name": "wait", "condition": "button", "value": True},
        {"name": "logger", "msg": 5},
        {"name": "wait", "condition": "button", "timeout": None},
        environment=None,
        comment="none",
    )
    assert sorted(warning.pointer for warning in plan.warnings) == [
        "/comment",
        "/task/0/position/frame",
        "/task/0/weight",
        "/task/1/value",
        "/task/2/msg",
    ]
    assert plan.steps[2].step.msg == "5"  # type: ignore[attr-defined]


def test_without_a_version_a_plan_is_an_original_one() -> None:
    plan = load_plan(json.dumps({"task": [MOVE]}), REGISTRY)
    assert plan.original
    assert plan.warnings[0].pointer == "/version"


def test_motion_types_of_the_original_are_ours_by_other_names() -> None:
    plan = load(
        {**MOVE, "options": {"motion_type": "joint", "velocity": 1.5}}, {**MOVE, "options": {"motion_type": "arc"}}
    )
    assert plan.steps[0].step.options == {"motion_type": "movej", "velocity": 1.5}  # type: ignore[attr-defined]
    assert plan.steps[1].step.options == {}  # type: ignore[attr-defined]
    assert [warning.pointer for warning in plan.warnings] == ["/task/1/options/motion_type"]


def test_paths_may_hold_nameless_moves_and_other_steps() -> None:
    nameless = {key: value for key, value in MOVE.items() if key != "name"}
    plan = load(
        {
            "name": "pick_and_place_static",
            "path_to_object": [{"name": "release", "effort": 0.3}, nameless],
            "path_to_destination": [],
            "object_name": "block",
            "grasp_effort": 1,
            "release_effort": 0,
        }
    )
    assert [planned.step.name for planned in plan.steps] == [
        "release",
        "move",
        "connect_object",
        "grasp",
        "release",
        "disconnect_object",
    ]
    assert [warning.pointer for warning in plan.warnings] == ["/task/0/path_to_object/1/name", "/task/0/object_name"]


def test_mistakes_are_faults_in_original_plans_too() -> None:
    with pytest.raises(PlanError) as refused:
        load({"name": "move", "position": {"x": "0.1", "y": 0, "z": 0}, "orientation": {**UPRIGHT, "w": 2}})
    assert [fault.pointer for fault in refused.value.faults] == ["/task/0/position/x", "/task/0/orientation"]


def test_colours_that_are_none_and_doubled_objects_do_not_stop_an_original_plan() -> None:
    block = {
        "name": "a",
        "position": {"x": 1, "y": 0, "z": 0},
        "orientation": UPRIGHT,
        "size": {"x": 1, "y": 1, "z": 1},
    }
    plan = load(environment=[{**block, "color": "red"}, {**block, "color": {"r": 255, "g": 0, "b": 0, "a": 1}}, block])
    assert len(plan.environment) == 1
    assert [warning.pointer for warning in plan.warnings] == [
        "/environment/0/color",
        "/environment/1/color",
        "/environment/1/name",
        "/environment/2/name",
    ]
