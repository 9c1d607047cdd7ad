"""What the demo leaves behind when it is ended early: nothing that runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import List

import pytest

from iter_runner.demo import fitting_plan
from iter_runner.launch_check import LaunchError
from iter_runner.package import package_folder
from iter_runner.plan.check import inspect_plan
from iter_runner.plan.load import load_plan
from iter_runner.primitives import REGISTRY

pytest.importorskip("roslaunch")

PATIENCE = 60.0  # s of real time after which a test has failed; never waited for in a test that passes


def marked(mark: str) -> List[int]:
    """The processes that have a mark in their environment."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in file.read_bytes():
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("the nodes' output is in", signal.SIGINT),
        ("waiting for the runner", signal.SIGTERM),
        ("step 1 of", signal.SIGINT),
        ("step 1 of", signal.SIGKILL),
    ],
)
def test_nothing_is_left_of_a_demo_that_is_ended(tmp_path: Path, moment: str, number: signal.Signals) -> None:
    mark = f"DEMO_MARK={uuid.uuid4()}"
    environment = dict([mark.split("=")], PYTHONUNBUFFERED="1", ROS_HOME=str(tmp_path), ROS_LOG_DIR=str(tmp_path))
    environment["ITER_RUNNER_SESSIONS"] = str(tmp_path / "sessions")
    demo = subprocess.Popen(
        [sys.executable, "-c", "import sys; from iter_runner.demo import main; sys.exit(main(['rate:=10']))"],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert demo.stdout is not None
    output = ""
    for line in demo.stdout:
        output += line
        if moment in line:
            break
    demo.send_signal(number)
    output += demo.stdout.read()
    assert demo.wait(PATIENCE) == (-number if number == signal.SIGKILL else 1), output
    assert "Traceback" not in output
    deadline = time.monotonic() + PATIENCE
    while marked(mark):
        assert time.monotonic() < deadline, [Path(f"/proc/{pid}/cmdline").read_text() for pid in marked(mark)]
        time.sleep(0.1)


@pytest.mark.parametrize("robot", ["ur5", "ur3e"])
def test_the_package_s_house_is_for_arms_that_it_fits(robot: str) -> None:
    assert fitting_plan(robot) == "sequential.json"


def test_another_hand_gets_a_house_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    path = Path(fitting_plan("mico-2"))
    assert path.parent == tmp_path / "iter_runner" / "plans"
    assert inspect_plan(load_plan(path, REGISTRY), "mico-2").faults == []


def test_an_arm_without_a_table_in_reach_is_told_to_name_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    row = (package_folder() / "config/robots/mico-2.yaml").read_text(encoding="utf-8")
    weak = tmp_path / "weak.yaml"
    weak.write_text(row.replace("payload: 1.8", "payload: 0.5"), encoding="utf-8")
    with pytest.raises(LaunchError, match=r"no house for mico-2: .*payload of 0.5 kg; name a plan by plan:="):
        fitting_plan(str(weak))
