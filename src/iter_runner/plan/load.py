"""A plan's JSON becomes a :class:`~iter_runner.plan.model.Plan`, or all its faults at once."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, Type, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from iter_runner.plan.expand import expand
from iter_runner.plan.model import (
    ORIGINAL_VERSION,
    VERSION,
    EnvironmentObject,
    Plan,
    PlanDocument,
    PlanError,
    PlanFault,
)
from iter_runner.plan.read import describe, escape, parse, read_source
from iter_runner.plan.registry import Registry, did_you_mean
from iter_runner.plan.step import LoadContext, Quaternion, Step

Model = TypeVar("Model", bound=BaseModel)

OFF_UNIT = 1e-6
"""A quaternion's length further from 1 than this is worth a warning."""


def load_plan(source: Union[str, Path], registry: Registry) -> Plan:
    """Loads, validates and expands a plan.

    Args:
        source: JSON text, the path of a file, or the name of a file in the package's ``plans/``.
        registry: the primitives that it may use, e.g. ``iter_runner.primitives.REGISTRY``.

    Raises:
        PlanError: with everything that is wrong in it. No other exception leaves for any input.
    """
    text, path = read_source(source)
    document, faults = parse(text)
    if not isinstance(document, dict):
        raise PlanError([PlanFault("", describe(document), 'an object: {"version": "1.0.0", "task": [...]}')])
    return _Loader(registry, document, path, faults).load()


class _Loader:
    """One load: collects faults and warnings on its way through the document."""

    def __init__(
        self, registry: Registry, document: Dict[str, Any], path: Optional[Path], faults: Sequence[PlanFault]
    ) -> None:
        self._registry = registry
        self._document = document
        self._path = path
        self._faults: List[PlanFault] = list(faults)
        self._warnings: List[PlanFault] = []
        self._named: List[Tuple[str, str]] = []
        self._version = self._find_version()
        self._original = self._version == ORIGINAL_VERSION
        self._context = LoadContext(path.resolve().parent if path is not None else None, self._original)

    def load(self) -> Plan:
        """The plan; raises PlanError."""
        document = self._document
        steps = self._steps(document.get("task"), "/task")
        environment = self._environment()
        rest = {key: value for key, value in document.items() if key != "version"}
        for key in ("task", "environment"):
            if isinstance(rest.get(key), list):
                rest[key] = []  # loaded above, item by item
        if self._original:
            rest = {key: value for key, value in rest.items() if value is not None or key == "task"}
        head = self._validate(PlanDocument, rest, "")
        self._check_names(environment)
        if self._faults or head is None:
            # Where an original plan's objects are shows in its moves, some of which may be missing here.
            part = self._plan(head or _frames_of(document), [] if self._original else environment, steps)
            raise PlanError(in_document_order(self._faults, document), self._warnings, part)
        return self._plan(head, environment, steps)

    def _plan(
        self, head: PlanDocument, environment: Sequence[EnvironmentObject], steps: Sequence[Tuple[str, Step]]
    ) -> Plan:
        return Plan(
            title=head.title or (self._path.stem if self._path is not None else ""),
            author=head.author,
            version=self._version,
            description=head.description,
            frame_id=head.frame_id.lstrip("/"),  # tf's names before ROS Hydro began with a slash
            tool_frame=head.tool_frame.lstrip("/") if head.tool_frame is not None else None,
            environment=tuple(environment),
            steps=expand(steps),
            document=self._document,
            source=self._path,
            warnings=tuple(in_document_order(self._warnings, self._document)),
        )

    def _find_version(self) -> str:
        if "version" not in self._document:
            if "task" in self._document:
                self._warn(
                    "/version", "nothing", f'"{VERSION}"; the plan is taken for an original one, "{ORIGINAL_VERSION}"'
                )
            return ORIGINAL_VERSION
        version = self._document["version"]
        if version not in (VERSION, ORIGINAL_VERSION):
            self._fault("/version", describe(version), f'"{VERSION}", or "{ORIGINAL_VERSION}" for an original plan')
            return VERSION
        return str(version)

    def _steps(self, items: Any, pointer: str) -> List[Tuple[str, Step]]:
        if not isinstance(items, list):
            return []  # the document's own validation names it
        steps: List[Tuple[str, Step]] = []
        for index, item in enumerate(items):
            step = self._step(item, f"{pointer}/{index}", in_path=pointer != "/task")
            if step is not None:
                steps.append((f"{pointer}/{index}", step))
        return steps

    def _step(self, item: Any, pointer: str, in_path: bool) -> Optional[Step]:
        if not isinstance(item, dict):
            self._fault(pointer, describe(item), 'a step: an object with "name"')
            return None
        fields = dict(item)
        name = fields.pop("name", None)
        if name is None and in_path and self._original:
            name = "move"  # the original never looked at the names in a path
            self._warn(pointer + "/name", "nothing", '"move"')
        if not isinstance(name, str):
            found = describe(item["name"]) if "name" in item else "nothing"
            self._fault(pointer + "/name", found, f"the name of a primitive: {', '.join(self._registry.names())}")
            return None
        step_class = self._registry.find(name)
        if step_class is None:
            self._fault(
                pointer + "/name", f"unknown primitive {describe(name)}", did_you_mean(name, self._registry.names())
            )
            return None
        if self._original:
            fields = {key: value for key, value in fields.items() if value is not None}
            fields, changes = step_class.adapt_original(fields)
            for change in changes:
                self._warn(pointer + change.field, change.found, change.expected)
        for key, field in step_class.model_fields.items():
            if _is_step_list(field.annotation) and isinstance(fields.get(key), list):
                count = len(fields[key])
                loaded = [step for _, step in self._steps(fields[key], f"{pointer}/{escape(key)}")]
                # What is broken has its own fault: stand-ins keep the list's length right.
                fields[key] = loaded + [Step() for _ in range(count - len(loaded))]
        step = self._validate(step_class, fields, pointer)
        if step is None:
            return None
        for problem in step.prepare(self._context):
            report = self._warn if problem.warning else self._fault
            report(pointer + problem.field, problem.found, problem.expected)
        object_name = getattr(step, "object_name", None)
        if isinstance(object_name, str):
            self._named.append((pointer + "/object_name", object_name))
        return step

    def _environment(self) -> List[EnvironmentObject]:
        items = self._document.get("environment")
        if not isinstance(items, list):
            return []
        objects: List[EnvironmentObject] = []
        seen: Set[str] = set()
        for index, item in enumerate(items):
            pointer = f"/environment/{index}"
            if self._original and isinstance(item, dict):
                item = self._adapt_object(item, pointer)
            loaded = self._validate(EnvironmentObject, item, pointer)
            if loaded is None:
                continue
            if loaded.representation != "box":
                report = self._warn if self._original else self._fault
                report(pointer + "/representation", describe(loaded.representation), '"box"')
            if loaded.name in seen:
                if not self._original:
                    self._fault(pointer + "/name", f"a second object {describe(loaded.name)}", "a name of its own")
                    continue
                self._warn(
                    pointer + "/name", f"a second object {describe(loaded.name)}", "a name of its own; the last counts"
                )
                objects = [other for other in objects if other.name != loaded.name]
            seen.add(loaded.name)
            objects.append(loaded)
        return objects

    def _adapt_object(self, item: Dict[str, Any], pointer: str) -> Dict[str, Any]:
        kept = {key: value for key, value in item.items() if value is not None}
        try:
            EnvironmentObject.model_validate(kept)
        except ValidationError as error:
            # Colours, like descriptions, were never looked at.
            for key in {str(detail["loc"][0]) for detail in error.errors(include_url=False) if detail["loc"]}:
                if key in ("color", "description", "representation", "graspable"):
                    self._warn(f"{pointer}/{key}", describe(kept.pop(key)), "one that can be used; it is left out")
        return kept

    def _check_names(self, environment: Sequence[EnvironmentObject]) -> None:
        objects = {item.name: item for item in environment}
        for pointer, name in self._named:
            if name not in objects:
                report = self._warn if self._original else self._fault
                known = did_you_mean(name, list(objects)) if objects else "objects in the environment"
                report(pointer, f"unknown object {describe(name)}", known)
            elif not self._original and not objects[name].graspable:
                self._fault(
                    pointer, f"{describe(name)}, an obstacle", '"graspable": true on an object that the hand takes'
                )

    def _validate(self, model: Type[Model], fields: Any, pointer: str) -> Optional[Model]:
        """The model's instance; None after its faults were collected."""
        for _ in range(2):
            try:
                loaded = model.model_validate(fields)
            except ValidationError as error:
                details = error.errors(include_url=False)
                unknown = [detail for detail in details if detail["type"] == "extra_forbidden"]
                if self._original and unknown:  # the original never looked at them either
                    fields = copy.deepcopy(fields)
                    for detail in unknown:
                        found, expected = _explain(model, detail)
                        self._warn(pointer + _pointer(detail["loc"]), found + ", which is ignored", expected)
                        parent = fields
                        for part in detail["loc"][:-1]:
                            parent = parent[part]
                        del parent[detail["loc"][-1]]
                    continue
                for detail in details:
                    self._fault(pointer + _pointer(detail["loc"]), *_explain(model, detail))
                return None
            for suffix, length in _off_unit(loaded):
                self._warn(pointer + suffix, f"a quaternion of length {length:.6g}", "length 1; it is normalised")
            return loaded
        return None

    def _fault(self, pointer: str, found: str, expected: str) -> None:
        self._faults.append(PlanFault(pointer, found, expected))

    def _warn(self, pointer: str, found: str, expected: str) -> None:
        self._warnings.append(PlanFault(pointer, found, expected))


def _frames_of(document: Dict[str, Any]) -> PlanDocument:
    """A plan's head that is broken elsewhere."""
    names = {key: document.get(key) for key in ("frame_id", "tool_frame")}
    usable = {key: name for key, name in names.items() if isinstance(name, str) and name}
    return PlanDocument.model_validate({"task": [], **usable})


def _is_step_list(annotation: Any) -> bool:
    if get_origin(annotation) is Union:
        return any(_is_step_list(argument) for argument in get_args(annotation))
    return get_origin(annotation) is list and get_args(annotation) == (Step,)


def _pointer(location: Sequence[Union[int, str]]) -> str:
    return "".join("/" + escape(str(part)) for part in location)


def _off_unit(value: Any, pointer: str = "") -> List[Tuple[str, float]]:
    """Quaternions in a model whose length is not quite 1."""
    if isinstance(value, Quaternion):
        return [(pointer, value.length)] if abs(value.length - 1.0) > OFF_UNIT else []
    found: List[Tuple[str, float]] = []
    if isinstance(value, BaseModel):
        for key in type(value).model_fields:
            item = getattr(value, key)
            if isinstance(item, BaseModel) and not isinstance(item, Step):
                found.extend(_off_unit(item, f"{pointer}/{escape(key)}"))
    return found


_EXPECTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "string_too_short": "text that is not empty",
    "list_type": "a list",
    "finite_number": "a finite number",
    "dict_type": "an object",
    "too_short": "a list that is not empty",
}

_COMPARISONS = {
    "greater_than": ("gt", ">"),
    "greater_than_equal": ("ge", "≥"),
    "less_than": ("lt", "<"),
    "less_than_equal": ("le", "≤"),
}


_PLAIN_TYPES = {"float": "a number", "str": "text", "bool": "true or false", "int": "a whole number"}


def _explain(model: Type[BaseModel], detail: Any) -> Tuple[str, str]:
    """What one of pydantic's errors means: (found, expected)."""
    kind, location, context = detail["type"], detail["loc"], detail.get("ctx", {})
    if kind == "plan":
        return context["found"], context["expected"]
    if kind == "missing":
        owner = _model_at(model, location[:-1])
        return "nothing", _field_text(owner, str(location[-1]))
    if kind == "extra_forbidden":
        owner = _model_at(model, location[:-1])
        names = [field.alias or name for name, field in owner.model_fields.items()] if owner is not None else []
        if owner is not None and issubclass(owner, Step):
            names.append("name")
        return f"unknown field {describe(str(location[-1]))}", did_you_mean(str(location[-1]), names)
    if kind in ("model_type", "model_attributes_type"):
        owner = _model_at(model, location)
        return describe(detail["input"]), "an object" + (f" with {_required(owner)}" if owner is not None else "")
    if kind in _COMPARISONS:
        key, sign = _COMPARISONS[kind]
        return describe(detail["input"]), f"a number {sign} {context[key]:g}"
    if kind == "literal_error":
        return describe(detail["input"]), str(context["expected"]).replace("'", '"')
    return describe(detail["input"]), _EXPECTED.get(kind, detail["msg"])


def _required(model: Type[BaseModel]) -> str:
    names = [field.alias or name for name, field in model.model_fields.items() if field.is_required()]
    return ", ".join(names)


def _inner_model(annotation: Any) -> Optional[Type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        inner = _inner_model(argument)
        if inner is not None:
            return inner
    return None


def _model_at(model: Type[BaseModel], location: Sequence[Union[int, str]]) -> Optional[Type[BaseModel]]:
    """The model whose fields are at a place inside another model."""
    current: Optional[Type[BaseModel]] = model
    for part in location:
        if isinstance(part, int) or current is None:
            continue
        field = current.model_fields.get(part)
        current = _inner_model(field.annotation) if field is not None else None
    return current


def _field_text(model: Optional[Type[BaseModel]], name: str) -> str:
    """What a field that is missing should hold."""
    field = model.model_fields.get(name) if model is not None else None
    if field is None:
        return f'"{name}"'
    inner = _inner_model(field.annotation)
    if _is_step_list(field.annotation):
        kind = "a list of steps"
    elif inner is not None:
        kind = f"an object with {_required(inner)}"
    else:
        kind = _PLAIN_TYPES.get(str(getattr(field.annotation, "__name__", "")), "a value")
    return kind + (f" ({field.description})" if field.description else "")


def in_document_order(faults: Sequence[PlanFault], document: Any) -> List[PlanFault]:
    """Sorted by where the pointers are in the document; doubles left out."""
    order = {key: index for index, key in enumerate(document)}

    def place(fault: PlanFault) -> Tuple[Any, ...]:
        parts = fault.pointer.split("/")[1:]
        head = order.get(parts[0], -1) if parts else -2
        return (head, int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else -1)

    return sorted(dict.fromkeys(faults), key=place)
