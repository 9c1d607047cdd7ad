"""The emulated gripper as a program: words on its input make things happen."""

import subprocess
import sys
import threading

import pytest

from iter_runner.gripper.emulated import EmulatedGripper
from iter_runner.gripper.emulated_serial import EmulatedPort
from iter_runner.gripper.emulator_tool import Stage, main
from iter_runner.gripper.registers import Command
from iter_runner.gripper.serial_client import SerialClient


@pytest.fixture
def stage(gripper, port):
    return Stage(gripper, port)


def test_words_do_what_they_say(stage, gripper, port):
    assert stage.act("status\n") == "activation reset, position 230, not commanded, no fault"
    assert stage.act("fault 8").endswith("fault 8, over temperature: let it cool down below 80 °C")
    assert stage.act("fault 0").endswith("no fault")
    assert stage.act("unplug") == "unplugged" and not port.link.exists()
    assert stage.act("plug") == "plugged in" and port.link.exists()
    assert stage.act("power off") == "without power" and not gripper.powered
    assert stage.act("power on").startswith("activation reset")
    assert stage.act("damage 2") == "done"
    client = SerialClient(str(port.link))
    client.connect()
    assert client.errors == 2
    client.close()
    assert "swallow" in stage.act("help")
    assert stage.act("") == stage.act("help")


@pytest.mark.parametrize(
    "words",
    [
        "dance",
        "power",
        "power up",
        "object",
        "object wide",
        "object 3",
        "object nan",
        "fault 3",
        "fault -1",
        "damage",
        "plug in",
    ],
)
def test_other_words_are_refused(stage, words):
    with pytest.raises(ValueError, match=r"expected|there are"):
        stage.act(words)


def test_the_program(tmp_path):
    path = tmp_path / "hand"
    process = subprocess.Popen(
        [
            *[sys.executable, "-c", "from iter_runner.gripper.emulator_tool import main; main()"],
            *["--port", str(path), "--object", "0.03", "__name:=emulated"],
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    timer = threading.Timer(60, process.kill)
    timer.start()
    assert f"gripper_port:={path}" in process.stdout.readline()
    client = SerialClient(str(path))
    client.connect()
    client.send(Command(activate=True))
    client.close()
    out, err = process.communicate("status\nnonsense\nquit\n")
    timer.cancel()
    assert process.returncode == 0
    assert "activation under_way" in out or "activation done" in out
    assert err.startswith("emulated_robotiq: no 'nonsense'; there are:")
    assert not path.exists() and not path.is_symlink()


def test_a_path_that_is_taken_is_left_alone(tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    assert main(["--port", str(path)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_a_port_that_is_taken_is_named(urcap, capsys):
    assert main(["--urcap", str(urcap.tcp_port)]) == 1
    assert f"TCP port {urcap.tcp_port}" in capsys.readouterr().err
    assert main(["--urcap", "99999"]) == 1


@pytest.mark.parametrize("wrong", [["--object", "big"], ["--port", "/tmp/x", "--urcap", "1"], ["--urcap", "x"]])
def test_wrong_usage(wrong):
    with pytest.raises(SystemExit) as caught:
        main(wrong)
    assert caught.value.code == 2


def test_a_stale_link_is_replaced(tmp_path):
    path = tmp_path / "hand"
    path.symlink_to(tmp_path / "gone")
    port = EmulatedPort(EmulatedGripper(), path)
    port.plug_in()
    assert path.exists()
    port.unplug()
    port.unplug()
