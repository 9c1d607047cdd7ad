"""docs/plan_language.md says what the code does."""

from __future__ import annotations

import json
import re

import pytest

from iter_runner.package import package_folder
from iter_runner.plan import load_plan
from iter_runner.primitives import REGISTRY

DOCUMENT = package_folder() / "docs" / "plan_language.md"
pytestmark = pytest.mark.skipif(not DOCUMENT.is_file(), reason="the documents are not installed")


def test_every_primitive_and_field_is_described() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for step_class in REGISTRY.classes():
        assert re.search(rf"\b{step_class.name}\b", text)
        for field in step_class.model_fields:
            assert field == "grip_step" or re.search(rf"\b{field}\b", text), (step_class.name, field)


def test_the_example_loads() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    plan = load_plan(text.split("```json\n")[1].split("```")[0], REGISTRY)
    assert plan.warnings == ()


def test_the_small_examples_load() -> None:
    text = DOCUMENT.read_text(encoding="utf-8").split("## Primitives")[1].split("## What is checked")[0]
    examples = re.findall(r"^    (\{\"name\": (?:.|\n)*?\})\n(?!     \")", text, re.MULTILINE)
    steps = [
        json.loads(line) for example in examples for line in re.split(r"\n    (?=\{)", example) if '"..."' not in line
    ]
    assert len(steps) >= 10
    scripted = [step for step in steps if step["name"] not in ("publish_string_from_file", "connect_object")]
    plan = load_plan(json.dumps({"version": "1.0.0", "task": scripted}), REGISTRY)
    assert plan.warnings == ()
