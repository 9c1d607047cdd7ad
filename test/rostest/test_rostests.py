"""Runs every ``*.test`` of this folder through rostest, each with a roscore of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from iter_runner.robot.moveit_config import missing_packages

FOLDER = Path(__file__).resolve().parent
TIMEOUT = 500.0  # s of real time; each test's own time-limit is shorter
NEEDS = {"moveit": missing_packages}
"""What a test can't do without: says what is missing, empty if nothing."""
PYTHON_PATHS = {"moveit_double": [FOLDER.parent / "planners" / "moveit_double"]}
"""Where a test's nodes find modules that stand in for what is not installed."""


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.test")), ids=lambda file: file.stem)
def test_rostest(file: Path, tmp_path: Path) -> None:
    missing = NEEDS[file.stem]() if file.stem in NEEDS else ""
    if missing:
        pytest.skip(missing)
    environment = dict(
        os.environ,
        ROS_HOME=str(tmp_path / "ros"),
        ROS_LOG_DIR=str(tmp_path / "log"),
        ROS_TEST_RESULTS_DIR=str(tmp_path / "results"),
        ITER_RUNNER_SESSIONS=str(tmp_path / "sessions"),
        PYTHONPATH=os.pathsep.join(
            [*map(str, PYTHON_PATHS.get(file.stem, ())), str(FOLDER), os.environ.get("PYTHONPATH", "")]
        ),
    )
    done = subprocess.run(
        ["rostest", str(file)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    if done.returncode != 0:
        results = "\n".join(path.read_text() for path in (tmp_path / "results").rglob("*.xml"))
        pytest.fail(f"{done.stdout}\n{results}", pytrace=False)
