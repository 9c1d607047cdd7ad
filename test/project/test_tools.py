"""The linters and formatters that a change has to satisfy; settings are in pyproject.toml and .clang-format."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Sequence

ROOT = Path(__file__).resolve().parents[2]


def run(tool: str, *arguments: str, accepted: Sequence[int] = (0,)) -> str:
    """Runs a tool of the environment at the root; its output, which is what a failure shows."""
    beside_python = Path(sys.executable).parent / tool
    program = str(beside_python) if beside_python.exists() else shutil.which(tool)
    assert program, f"{tool} is not installed: ./run setup"
    result = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)
    output = result.stdout + result.stderr
    assert result.returncode in accepted, f"{tool} {' '.join(arguments)}\n{output}"
    return output


def test_ruff_finds_nothing() -> None:
    run("ruff", "check", "--no-cache", "--output-format", "concise")


def test_python_is_formatted() -> None:
    run("ruff", "format", "--no-cache", "--check")


def test_types_hold() -> None:
    run("mypy")


def test_run_time_code_is_python_3_8() -> None:
    # Annotations stay text (from __future__ import annotations) and may be newer than the interpreter.
    run("vermin", "--target=3.8-", "--no-tips", "--no-parse-comments", "--violations", "src/iter_runner", "scripts")


def test_cpp_is_formatted() -> None:
    sources = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "src" / "iter_core").rglob("*.[ch]pp"))]
    assert sources
    run("clang-format", "--dry-run", "--Werror", *sources)


def test_catkin_lint_is_silent() -> None:
    # A clone may have any name; which rosdep keys exist is not this machine's to say.
    output = run("catkin_lint", "-W2", "--strict", "--offline", "--quiet", "--ignore", "package_path_name", ".")
    assert "iter_runner:" not in output, output


def test_the_shell_scripts_parse() -> None:
    for script in ("run", ".ci/run"):
        run("bash", "-n", script)
