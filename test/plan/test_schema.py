"""The JSON Schema that is shipped."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, Dict

import jsonschema
import pytest

from iter_runner.package import package_folder
from iter_runner.plan.schema import plan_schema, schema_text
from iter_runner.planners.options import MoveOptions
from iter_runner.primitives import REGISTRY

POSE = {"position": {"x": 0.3, "y": 0.2, "z": 0.1}, "orientation": {"x": 0, "y": 0, "z": 0, "w": 1}}


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = plan_schema(REGISTRY)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def plan(*steps: Dict[str, Any]) -> Dict[str, Any]:
    return {"$schema": "plan.schema.json", "version": "1.0.0", "task": list(steps)}


def test_the_shipped_schema_is_up_to_date() -> None:
    file = package_folder() / "plans" / "plan.schema.json"
    assert file.read_text(encoding="utf-8") == schema_text(REGISTRY), (
        "plans/plan.schema.json is old: ./run python3 -m iter_runner.plan.schema"
    )


def test_it_takes_plans_and_refuses_slips(validator: Any) -> None:
    path = [{"name": "move", **POSE}]
    place = {
        "name": "pick_and_place_static",
        "object_name": "a",
        "path_to_object": path,
        "path_to_destination": path,
        "grasp_effort": 0.5,
        "release_effort": 0.2,
    }
    assert validator.is_valid(plan({"name": "move", **POSE}, {"name": "wait", "condition": "button"}, place))
    for wrong in (
        {"name": "mvoe"},
        {"name": "move"},
        {"name": "move", **POSE, "speed": 1},
        {"name": "move", **POSE, "options": {"speed": 5}},
        {"name": "move", **POSE, "options": {"motion_type": "movex"}},
        {"name": "wait", "condition": "clock"},
        {"name": "wait", "condition": "time"},
        {"name": "wait", "condition": "button", "value": 1},
        {"name": "grasp"},
        {"name": "release", "effort": 0.1, "width": 0.05},
        {**place, "path_to_object": [{"name": "move"}]},
    ):
        assert not validator.is_valid(plan(wrong))
    assert not validator.is_valid({"version": "1.0.0"})


def test_an_editor_completes_what_the_planners_take(validator: Any) -> None:
    options = validator.schema["$defs"]["primitive_move"]["properties"]["options"]
    assert set(options["properties"]) == {field.name for field in fields(MoveOptions)}
    assert all(option["description"] for option in options["properties"].values())
    good = {"speed": 0.5, "time_factor": 2, "velocity": 0.1, "acceleration": 1, "motion_type": "movej"}
    assert validator.is_valid(plan({"name": "move", **POSE, "options": good}, {"name": "grasp", "width": 0.03}))


def test_every_field_says_what_it_is() -> None:
    for step_class in REGISTRY.classes():
        for name, field in step_class.model_fields.items():
            assert name in ("rad", "topic", "grasp_effort", "release_effort") or field.description, (
                step_class.name,
                name,
            )


def test_shipped_plans_keep_to_it(validator: Any) -> None:
    for file in sorted((package_folder() / "plans").rglob("*.json")):
        if file.name != "plan.schema.json":
            errors = [error.message for error in validator.iter_errors(json.loads(file.read_text(encoding="utf-8")))]
            assert errors == [], file
