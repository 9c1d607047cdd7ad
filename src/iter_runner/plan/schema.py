"""The JSON Schema of plans, generated from their models, so that an editor completes and checks them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

from iter_runner.plan.model import ORIGINAL_VERSION, VERSION, PlanDocument
from iter_runner.plan.registry import Registry

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEMPLATE = "#/$defs/{model}"


def plan_schema(registry: Registry) -> Dict[str, Any]:
    """The schema (draft 2020-12) of plans that may use the registry's primitives."""
    definitions: Dict[str, Any] = {}
    references: List[Dict[str, str]] = []
    for step_class in registry.classes():
        schema = step_class.model_json_schema(ref_template=TEMPLATE)
        definitions.update(schema.pop("$defs", {}))
        names = [step_class.name, *step_class.aliases]
        word = {"const": names[0]} if len(names) == 1 else {"enum": names}
        schema["properties"] = {"name": word, **schema.get("properties", {})}
        schema["required"] = ["name", *schema.get("required", [])]
        schema["title"] = step_class.name
        schema["description"] = (step_class.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
        definitions[f"primitive_{step_class.name}"] = schema
        references.append({"$ref": TEMPLATE.format(model=f"primitive_{step_class.name}")})
    document = PlanDocument.model_json_schema(ref_template=TEMPLATE)
    definitions.update(document.pop("$defs", {}))
    # By the name first: an editor then completes the fields of that primitive and names its faults only.
    definitions["Step"] = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"enum": sorted(_names(registry))}},
        "oneOf": references,
    }
    document["properties"]["version"] = {"enum": [VERSION, ORIGINAL_VERSION], "default": VERSION}
    document["required"] = ["version", *document.get("required", [])]
    document["title"] = "A plan of iter_runner"
    document["description"] = "What docs/plan_language.md says. Original plans (0.0.1) may be looser than this."
    whole = {"$schema": DRAFT, **document, "$defs": dict(sorted(definitions.items()))}
    return {**_plain(whole), "title": document["title"]}


def schema_text(registry: Registry) -> str:
    """The schema as the file ``plans/plan.schema.json`` holds it."""
    return json.dumps(plan_schema(registry), indent=2, ensure_ascii=False) + "\n"


def write_schema(registry: Registry, path: Path) -> None:
    """Writes :func:`schema_text`."""
    path.write_text(schema_text(registry), encoding="utf-8")


def _plain(schema: Any) -> Any:
    """Without what an editor has no use for and what differs between releases of pydantic."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {}
    for key, value in schema.items():
        if key == "properties":
            plain[key] = {name: _plain(item) for name, item in value.items()}
        elif key == "anyOf" and {"type": "null"} in value and len(value) == 2:  # a field that may be left out
            plain.update(_plain(next(item for item in value if item != {"type": "null"})))
        elif not (
            key == "title" or (key == "default" and value is None) or (key, value) == ("additionalProperties", True)
        ):
            plain[key] = _plain(value)
    return plain


def _names(registry: Registry) -> List[str]:
    return [name for step_class in registry.classes() for name in (step_class.name, *step_class.aliases)]


if __name__ == "__main__":
    from iter_runner.package import package_folder
    from iter_runner.primitives import REGISTRY

    write_schema(REGISTRY, package_folder() / "plans" / "plan.schema.json")
