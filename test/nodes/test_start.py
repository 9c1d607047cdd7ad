"""How a node starts, and how it ends when it is told to meanwhile."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import rosgraph
import rospy
from rospy.exceptions import ROSInitException

from iter_runner.nodes.start import start_node
from iter_runner.package import package_folder


@pytest.mark.parametrize(("told_to_end", "raised"), [(True, SystemExit), (False, ROSInitException)])
def test_only_whoever_is_told_to_end_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, told_to_end: bool, raised: type
) -> None:
    def interrupted(name: str) -> None:
        raise ROSInitException(f"{name} interrupted before it could complete")

    monkeypatch.setattr(rosgraph, "is_master_online", lambda: True)
    monkeypatch.setattr(rospy, "init_node", interrupted)
    monkeypatch.setattr(rospy, "is_shutdown", lambda: told_to_end)
    with pytest.raises(raised) as caught:
        start_node("runner")
    if told_to_end:
        assert caught.value.code == 0


def test_without_a_master_a_node_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("localhost", 0))  # and does not listen
        monkeypatch.setenv("ROS_MASTER_URI", f"http://localhost:{nobody.getsockname()[1]}")
        with pytest.raises(SystemExit) as caught:
            start_node("runner")
    assert caught.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("runner: no ROS master at http://localhost:")


NODE = """
import sys, time
from iter_runner.nodes.start import end_with_roslaunch
end_with_roslaunch()
print("up", flush=True)
time.sleep({})
print("ends by itself", file=sys.stderr)
"""
LAUNCHER = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', sys.argv[1]]); time.sleep(60)"


@pytest.mark.parametrize(("name", "ends"), [("roslaunch", True), ("shell", False)])
def test_a_node_ends_with_the_roslaunch_that_was_killed(tmp_path: Path, name: str, ends: bool) -> None:
    launcher = tmp_path / name
    launcher.write_text(LAUNCHER)
    node = NODE.format(60 if ends else 2)
    started = subprocess.Popen(
        [sys.executable, launcher, node], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout is not None and started.stderr is not None
    assert started.stdout.readline() == "up\n"
    os.kill(started.pid, signal.SIGKILL)
    # The node holds the other end until it ends: by itself, or told to long before its time.
    assert started.stderr.read() == ("" if ends else "ends by itself\n")
    started.wait()


def test_no_node_shows_a_traceback_for_a_ctrl_c_while_it_is_loaded() -> None:
    for script in sorted((package_folder() / "scripts").iterdir()):
        text = script.read_text(encoding="utf-8")
        if "from iter_runner.nodes." in text:
            assert text.index("signal.SIG_DFL") < text.index("from iter_runner"), script.name
