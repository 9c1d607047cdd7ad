"""What loading makes of good plans, and of everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iter_runner.package import package_folder
from iter_runner.plan import Plan, PlanError, load_plan, plan_hash
from iter_runner.primitives import REGISTRY

UPRIGHT = {"x": 0, "y": 0, "z": 0, "w": 1}
HERE = {"x": 0.3, "y": 0.25, "z": 0.2}
BLOCK = {"name": "block", "position": HERE, "orientation": UPRIGHT, "size": {"x": 0.02, "y": 0.1, "z": 0.015}}


def plan_text(*steps: Any, version: str = "1.0.0", **top: Any) -> str:
    return json.dumps({"version": version, "task": list(steps), **top})


def load(*steps: Any, version: str = "1.0.0", **top: Any) -> Plan:
    return load_plan(plan_text(*steps, version=version, **top), REGISTRY)


def move(**fields: Any) -> Dict[str, Any]:
    return {"name": "move", "position": HERE, "orientation": UPRIGHT, **fields}


def faults(source: Any) -> List[str]:
    with pytest.raises(PlanError) as refused:
        load_plan(source, REGISTRY)
    return str(refused.value).splitlines()


def the_fault(*steps: Any, **top: Any) -> str:
    lines = faults(plan_text(*steps, **top))
    assert len(lines) == 1, lines
    return lines[0]


def test_a_plan_is_a_flat_list_of_steps_with_pointers() -> None:
    plan = load(move(), {"name": "grasp", "width": 0.02}, {"name": "wait", "condition": "button"}, title="A")
    assert [(p.index, p.pointer, p.step.name) for p in plan.steps] == [
        (0, "/task/0", "move"),
        (1, "/task/1", "grasp"),
        (2, "/task/2", "wait"),
    ]
    assert (plan.title, plan.version, plan.frame_id, plan.tool_frame) == ("A", "1.0.0", "base_link", None)
    assert not plan.original
    assert plan.warnings == ()


def test_frames_and_schema_reference_are_read() -> None:
    plan = load(**{"$schema": "plan.schema.json", "frame_id": "base", "tool_frame": "ee_link"})
    assert (plan.frame_id, plan.tool_frame) == ("base", "ee_link")


def test_a_plan_is_found_by_path_and_keeps_its_name(tmp_path: Path) -> None:
    path = tmp_path / "my task.json"
    path.write_text("\ufeff" + plan_text(move()), encoding="utf-8")  # editors on Windows write a byte order mark
    for source in (path, str(path)):
        plan = load_plan(source, REGISTRY)
        assert plan.source == path
        assert plan.title == "my task"


def test_a_plan_is_found_by_its_name_even_where_a_directory_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = next(file.stem for file in (package_folder() / "plans").glob("*.json") if file.name != "plan.schema.json")
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    for source in (name, f"{name}.json", Path(name)):
        assert load_plan(source, REGISTRY).steps
    assert f"perhaps {name}.json" in faults(f"{name[:-1]}")[0]


def test_all_faults_come_at_once_in_the_order_of_the_plan() -> None:
    lines = faults(
        plan_text(
            {"name": "mvoe"},
            move(position={"x": True, "y": "0.1", "z": 0}, orientation={"x": 0, "y": 0, "z": 0, "w": 0}),
            {"name": "wait", "condition": "button", "timeout": -1},
            3,
            frame="base_link",
        )
    )
    assert [line.split(": ")[0] for line in lines] == [
        "/task/0/name",
        "/task/1/position/x",
        "/task/1/position/y",
        "/task/1/orientation",
        "/task/2/timeout",
        "/task/3",
        "/frame",
    ]
    assert "'move'" in lines[0]
    assert "'frame_id'" in lines[-1]


@pytest.mark.parametrize(
    ("step", "pointer", "words"),
    [
        ({"name": "move", "orientation": UPRIGHT}, "/task/0/position", ["found nothing", "x, y, z"]),
        (move(position=[0, 0, 0]), "/task/0/position", ["a list of 3", "an object with x, y, z"]),
        (move(position={**HERE, "x": None}), "/task/0/position/x", ["null", "a number"]),
        (move(position={"x": 0, "y": 0}), "/task/0/position/z", ["found nothing", "a number"]),
        (move(orientation={"x": 0, "y": 0, "z": 0, "w": 1.02}), "/task/0/orientation", ["length 1.02", "1 %"]),
        (move(orienation=UPRIGHT), "/task/0/orienation", ["unknown field", "'orientation'"]),
        (move(options={"speed": 0}), "/task/0/options/speed", ["found 0", "a number above 0"]),
        (move(options={"motion_type": "jump"}), "/task/0/options/motion_type", ['"jump"', "movel"]),
        (move(position={**HERE, "z": 1e300}), "/task/0/position/z", ["1e+300", "≤ 1000"]),
        ({"name": "wait", "condition": "time", "value": 1e300}, "/task/0/value", ["1e+300", "≤ 604800"]),
        (move(rad={"neglect_time": -1}), "/task/0/rad/neglect_time", ["-1", "a number ≥ 0"]),
        (move(rad={"is_interaction": 1}), "/task/0/rad/is_interaction", ["found 1", "true or false"]),
        (move(rad={"neglect_time": 1, "expected_interaction_time": 1}), "/task/0/rad", ["both", "one of them"]),
        ({"name": "wait", "condition": "time"}, "/task/0", ["without a value"]),
        ({"name": "wait", "condition": "clock"}, "/task/0/condition", ['"clock"', '"time" or "button"']),
        ({"name": "wait", "condition": "button", "value": 1}, "/task/0", ["with a value"]),
        ({"name": "wait", "condition": "time", "value": "5"}, "/task/0/value", ['"5"', "a number"]),
        ({"name": "grasp"}, "/task/0", ["neither effort nor width"]),
        ({"name": "grasp", "effort": 0.1, "width": 0.1}, "/task/0", ["both effort and width"]),
        ({"name": "grasp", "width": -0.01}, "/task/0/width", ["-0.01"]),
        ({"name": "release", "effort": 0.1, "force": 0}, "/task/0/force", ["found 0", "> 0"]),
        ({"name": "logger"}, "/task/0/msg", ["found nothing"]),
        ({"name": "logger", "msg": 3}, "/task/0/msg", ["found 3", "text"]),
        ({"nam": "logger"}, "/task/0/name", ["found nothing", "logger"]),
        ({"name": ["move"]}, "/task/0/name", ["a list of 1"]),
        ({"name": "jog", "position_step": 5}, "/task/0/position_step", ["found 5"]),
        ({"name": "publish_string_from_file", "topic": "/t", "filepath": "no/such"}, "/task/0/filepath", ["'no/such'"]),
        ({"name": "connect_object", "object_name": "blok"}, "/task/0/object_name", ['"blok"']),
    ],
)  # fmt: skip
def test_a_fault_names_pointer_what_was_found_and_what_was_expected(step: Any, pointer: str, words: List[str]) -> None:
    line = the_fault(step)
    assert line.startswith(pointer + ": found ")
    for word in words:
        assert word in line


def test_faults_inside_a_path_have_the_pointer_of_the_path() -> None:
    step = {
        "name": "pick_and_place_static",
        "object_name": "block",
        "path_to_object": [move(), {"name": "mov"}, {"name": "move", "position": HERE}],
        "path_to_destination": {"name": "move"},
        "grasp_effort": "0.5",
        "release_effort": 0.1,
    }
    lines = faults(plan_text(step, environment=[{**BLOCK, "graspable": True}]))
    assert [line.split(": ")[0] for line in lines] == [
        "/task/0/path_to_object/1/name",
        "/task/0/path_to_object/2/orientation",
        "/task/0/path_to_destination",
        "/task/0/grasp_effort",
    ]


def test_objects_are_checked() -> None:
    connect = {"name": "connect_object", "object_name": "block"}
    assert "an obstacle" in the_fault(connect, environment=[BLOCK])
    assert "'block'" in the_fault({**connect, "object_name": "blck"}, environment=[{**BLOCK, "graspable": True}])
    assert "/environment/1/name: found a second" in the_fault(environment=[BLOCK, BLOCK])
    assert "/environment/0/size/x: found -1" in the_fault(environment=[{**BLOCK, "size": {"x": -1, "y": 1, "z": 1}}])
    assert "/environment/0/colour: " in the_fault(environment=[{**BLOCK, "colour": "red"}])
    assert "/environment: found " in the_fault(environment={})


def test_a_quaternion_a_little_off_is_normalised_with_a_warning() -> None:
    plan = load(move(orientation={"x": 0.707, "y": 0, "z": -0.707, "w": 0}))
    assert [str(w) for w in plan.warnings] == [
        "/task/0/orientation: found a quaternion of length 0.999849, expected length 1; it is normalised"
    ]
    (_, _, orientation), *_ = plan.steps[0].step.poses()
    assert sum(value**2 for value in orientation.xyzw) == pytest.approx(1.0, abs=1e-15)


def test_an_unknown_option_is_a_warning_since_planners_differ() -> None:
    (warning,) = load(move(options={"sped": 0.5})).warnings
    assert "'speed'" in str(warning)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty", b"", "empty"),
        ("blank", b" \n\t", "empty"),
        ("utf16", '{"task": []}'.encode("utf-16"), "not UTF-8"),
        ("binary", bytes(range(256)), "not UTF-8"),
        ("nul", b"\0" * 100, "no JSON"),
        ("list", b"[1, 2]", "a list of 2"),
        ("null", b"null", "found null"),
        ("text", b'"move"', 'found "move"'),
        ("truncated", b'{"version": "1.0.0", "task": [{"name": "mo', "at line 1"),
        ("digits", b'{"task": [], "title": ' + b"9" * 5000 + b"}", "no JSON"),
        ("brackets", b"[" * 20_000_000, "nested thousands deep"),
        ("huge", b"[" * 50_000_000, "50 MB"),
        ("deep", b'{"task": ' + b"[" * 100 + b"]" * 100 + b"}", "deeper than 64"),
        ("deeper", b'{"task": ' + b'{"a":' * 900 + b"0" + b"}" * 900 + b"}", "deeper than 64"),
        ("no task", b"{}", "/task: found nothing, expected a list of steps"),
        ("version", b'{"version": "2.0.0", "task": []}', '/version: found "2.0.0"'),
        (
            "surrogate",
            b'{"version": "1.0.0", "title": "\\ud800", "task": []}',
            "/title: found text with half of a surrogate",
        ),
        ("odd version", b'{"version": ["1.0.0"], "task": []}', "/version: found a list"),
    ],
)
def test_files_that_are_no_plans_are_refused_with_one_clear_line(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    path = tmp_path / f"{name}.json"
    path.write_bytes(content)
    (line,) = faults(path)
    assert words in line


def test_sources_that_are_no_files_are_refused(tmp_path: Path) -> None:
    assert "a directory" in faults(tmp_path)[0]
    assert "not a regular file" in faults("/dev/zero")[0]
    assert "no file" in faults(tmp_path / "missing.json")[0]
    assert "no file" in faults("no-such-plan")[0]
    assert "no file" in faults("a\0b")[0]
    assert "empty" in faults("")[0]


def test_text_that_is_too_long_is_refused() -> None:
    assert "60 MB of text" in faults("[" * 60_000_000)[0]


def test_numbers_that_are_not_finite_and_doubled_keys_are_named_with_everything_else() -> None:
    text = """{"version": "1.0.0", "task": [
        {"name": "wait", "condition": "time", "value": NaN},
        {"name": "wait", "condition": "time", "value": 1e999},
        {"name": "logger", "msg": "a", "msg": "b"},
        {"name": "publish", "topic": "/t", "message_module": "std_msgs", "message_type": "Float64",
         "message_params": {"data": -Infinity}},
        {"name": "wave"}]}"""
    assert [line.split(", expected")[0] for line in faults(text)] == [
        "/task/0/value: found NaN",
        "/task/1/value: found Infinity",
        '/task/2/msg: found the key "msg" more than once',
        "/task/3/message_params/data: found -Infinity",
        '/task/4/name: found unknown primitive "wave"',
    ]


def test_keys_with_slashes_make_valid_pointers() -> None:
    assert the_fault(move(**{"a/b~c": 1})).startswith("/task/0/a~1b~0c: ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELD_NAMES = sorted({name for step_class in REGISTRY.classes() for name in step_class.model_fields})
STEPS = st.builds(
    lambda name, fields: {"name": name, **fields},
    st.sampled_from(REGISTRY.names()),
    st.dictionaries(st.sampled_from(FIELD_NAMES), JSON, max_size=5),
)


@settings(max_examples=150, deadline=None)
@given(
    document=st.fixed_dictionaries(
        {"task": st.lists(STEPS | JSON, max_size=3)},
        optional={
            "version": st.sampled_from(["1.0.0", "0.0.1", 1]),
            "environment": st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(BLOCK, JSON)) | JSON, max_size=2),
            "frame_id": JSON,
            "title": JSON,
        },
    )
)
def test_whatever_a_plan_holds_it_loads_or_is_refused_with_pointers(document: Any) -> None:
    try:
        plan = load_plan(json.dumps(document), REGISTRY)
    except PlanError as error:
        assert error.faults
        assert all(fault.pointer == "" or fault.pointer.startswith("/") for fault in error.faults)
    else:
        assert len(plan_hash(plan)) == 64
        assert len(plan.objects) == len(plan.environment)


@settings(max_examples=150, deadline=None)
@given(text=st.text())
def test_whatever_the_text_no_other_error_leaves(text: str) -> None:
    with pytest.raises(PlanError):
        load_plan(text, REGISTRY)


def test_the_hash_is_of_what_the_plan_says_not_of_how_it_is_written() -> None:
    one = load_plan(
        '{"version": "1.0.0", "title": "a", "task": [{"name": "wait", "condition": "time", "value": 5}]}', REGISTRY
    )
    other = load_plan(
        '{"task":[{"value":5.0,"condition":"time","name":"wait"}],\n"title":"a","version":"1.0.0"}', REGISTRY
    )
    assert plan_hash(one) == plan_hash(other)
    assert plan_hash(one) != plan_hash(load({"name": "wait", "condition": "time", "value": 6}, title="a"))
