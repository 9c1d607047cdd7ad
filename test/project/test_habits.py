"""What a reader finds in the same place in every module and every file of the package."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "iter_runner"
VERSION = ElementTree.parse(ROOT / "package.xml").findtext("version") or ""

# A room may not know these others. What is not listed is free; nodes/ may know everybody.
FORBIDDEN: Dict[str, Set[str]] = {
    "kinematics": {"scene", "planners", "plan", "primitives", "runner", "timing", "study", "sim", "nodes", "button"},
    "scene": {"robot", "planners", "plan", "primitives", "runner", "timing", "study", "sim", "nodes", "button"},
    "robot": {"scene", "planners", "plan", "primitives", "runner", "timing", "study", "sim", "nodes", "button"},
    "planners": {"scene", "plan", "primitives", "runner", "timing", "study", "sim", "nodes", "button"},
    "plan": {"primitives", "runner", "timing", "study", "sim", "nodes", "button"},
    "primitives": {"runner", "timing", "study", "sim", "nodes", "button"},
    "runner": {"timing", "sim", "nodes", "button"},
    "timing": {"scene", "runner", "primitives", "planners", "robot", "kinematics", "sim", "nodes", "button"},
    "study": {"scene", "runner", "primitives", "planners", "robot", "kinematics", "sim", "nodes", "button"},
    "sim": {"runner", "primitives", "planners", "plan", "timing", "study", "nodes", "button"},
    "button": {"scene", "runner", "primitives", "planners", "plan", "robot", "kinematics", "sim", "nodes"},
}
# Lines to a gripper are its node's affair: nobody else knows them, and they know of rows only.
FORBIDDEN = {room: others | {"gripper"} for room, others in FORBIDDEN.items()}
FORBIDDEN["gripper"] = (set(FORBIDDEN) | {"nodes"}) - {"robot"}
# It stands above the rooms as nodes/ does: nobody knows it.
FORBIDDEN = {room: others | {"repeatability"} for room, others in FORBIDDEN.items()}
FORBIDDEN["repeatability"] = {"nodes", "button", "gripper"}
ROS = {"rospy", "actionlib", "rosgraph", "tf2_ros"}
# A tool's main hands work to the rooms above its own: where a person starts it is where it belongs.
TOOLS = {"plan/check_tool.py", "plan/reach_map_tool.py", "plan/schema.py", "study/report_tool.py"}


def modules() -> List[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Dotted names that a module imports when it runs; those for type checkers only are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def tracked() -> List[Path]:
    """Files under version control, or all that are not ignored by name where there is no git."""
    result = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if result.returncode == 0:
        return [ROOT / name for name in result.stdout.split("\0") if name and (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and not {".venv", ".workspace"} & set(path.parts)]


def test_rooms_know_only_whom_they_may() -> None:
    found = []
    for path in modules():
        room, name = path.relative_to(PACKAGE).parts[0], path.relative_to(PACKAGE).as_posix()
        if name in TOOLS:
            continue
        for imported in imports(path):
            parts = imported.split(".")
            if parts[0] == "iter_runner" and len(parts) > 1 and parts[1] in FORBIDDEN.get(room, set()):
                found.append(f"{name} imports {imported}")
    assert found == []


def test_only_nodes_and_ros_implementations_import_ros() -> None:
    found = []
    for path in modules():
        parts = path.relative_to(PACKAGE).parts
        allowed = parts[0] == "nodes" or (parts[0] in ("robot", "sim") and parts[-1].startswith("ros_"))
        if not allowed:
            found += [
                f"{path.relative_to(PACKAGE)} imports {name}" for name in imports(path) if name.split(".")[0] in ROS
            ]
    assert found == []


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils", "util", "helpers", "helper", "misc", "common", "tools"}
    assert [path for path in modules() if {*path.parts, path.stem} & drawers] == []


def test_every_folder_with_modules_is_a_package() -> None:
    assert [str(path.parent) for path in modules() if not (path.parent / "__init__.py").is_file()] == []


@pytest.mark.parametrize("script", sorted(p.name for p in (ROOT / "scripts").iterdir() if p.is_file()))
def test_scripts_are_executables_of_a_few_lines(script: str) -> None:
    path = ROOT / "scripts" / script
    text = path.read_text(encoding="utf-8")
    assert "." not in script, "an executable's name has no ending"
    assert os.access(path, os.X_OK), f"chmod +x scripts/{script}"
    assert text.startswith('#!/usr/bin/env python3\n"""')
    assert len(text.splitlines()) <= 60, "the work belongs into a module that tests can import"


def test_front_doors_are_executable() -> None:
    assert all(os.access(ROOT / name, os.X_OK) for name in ("run", ".ci/run"))


def test_changelog_is_of_this_version() -> None:
    text = (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8")
    releases = re.findall(r"^(\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)\n-+$", text, re.MULTILINE)
    assert re.match(r"\^+\nChangelog for package iter_runner\n\^+\n", text)
    assert releases and releases[0] == VERSION


def test_licence_is_where_the_manifest_says() -> None:
    element = ElementTree.parse(ROOT / "package.xml").find("license")
    assert element is not None and element.text == "MIT"
    assert (ROOT / element.attrib["file"]).read_text(encoding="utf-8").startswith("MIT License")


@pytest.mark.parametrize("kind", ["msg", "srv", "action"])
def test_every_interface_is_built(kind: str) -> None:
    built = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert [path.name for path in (ROOT / kind).iterdir() if not re.search(rf"\b{path.name}\b", built)] == []


def links(path: Path) -> Iterator[Tuple[int, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if not re.match(r"[a-z]+:", target) and not target.startswith("#"):
                yield number, target.split("#")[0]


def test_links_between_documents_lead_somewhere() -> None:
    documents = [path for path in tracked() if path.suffix == ".md"]
    assert documents
    broken = [
        f"{path.relative_to(ROOT)}:{number}: {target}"
        for path in documents
        for number, target in links(path)
        if not (path.parent / target).exists()
    ]
    assert broken == []


def test_a_newcomers_first_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^ *(\./run \w+)", text, re.MULTILINE)[:2] == ["./run demo", "./run test"]


def test_ci_runs_the_tests_and_nothing_else() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == "exec ./run test"


def test_no_path_of_one_machine() -> None:
    pattern = re.compile(r"(?<![\w.])/(?:home|Users|root|work|mnt)/\w")
    found = []
    for path in tracked():
        if path.suffix not in {".png", ".npz"} and path != Path(__file__).resolve():
            text = path.read_bytes().decode("utf-8", errors="ignore")
            found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in pattern.finditer(text)]
    assert found == []


def test_nothing_heavy_is_tracked() -> None:
    assert [str(path) for path in tracked() if path.stat().st_size > 1_000_000] == []


def test_json_and_yaml_files_parse() -> None:
    import yaml

    for path in tracked():
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix in {".yaml", ".yml"}:
            list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
