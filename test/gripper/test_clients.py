"""Both clients against emulated grippers: the real serial and socket code, and what lines do to it."""

import os
import socket
import threading

import pytest
import serial

from iter_runner.gripper.client import LinkError
from iter_runner.gripper.emulated_serial import EmulatedPort, checksum
from iter_runner.gripper.registers import Activation, Command, Obstruction
from iter_runner.gripper.serial_client import ATTEMPTS, SerialClient
from iter_runner.gripper.urcap_client import UrcapClient

PATIENCE = 30.0
ANSWER_TIME = 0.5  # longer than on hardware: a busy machine's emulated gripper answers late


@pytest.fixture(params=["serial", "urcap"])
def line(request):
    """The emulated line of each kind."""
    return request.getfixturevalue({"serial": "port", "urcap": "urcap"}[request.param])


@pytest.fixture
def client(line):
    """A connected client at it."""
    if isinstance(line, EmulatedPort):
        client = SerialClient(str(line.link), ANSWER_TIME)
    else:
        client = UrcapClient("127.0.0.1", line.tcp_port)
    client.connect()
    yield client
    client.close()


def until(client, predicate):
    """Asks again and again until a state is as wanted; that state."""
    from time import monotonic

    deadline = monotonic() + PATIENCE
    while True:
        status = client.status()
        if predicate(status):
            return status
        assert monotonic() < deadline, status


def activate(client):
    client.send(Command())
    until(client, lambda status: status.activation is Activation.RESET)
    client.send(Command(activate=True))
    return until(client, lambda status: status.activation is Activation.DONE)


def go(client, position, **fields):
    client.send(Command(activate=True, go=True, position=position, speed=255, **fields))
    return until(client, lambda status: status.requested == position and status.obstruction is not Obstruction.MOVING)


def test_connecting_moves_nothing(client, gripper):
    status = client.status()
    assert (status.activation, status.fault, status.position) == (Activation.RESET, 0, 230)
    assert client.errors == 0


def test_activation_motion_and_stop(client, gripper):
    assert activate(client).position == 3
    assert go(client, 120).position == 120
    assert gripper.look().going
    client.send(Command(activate=True, position=120))
    assert not client.status().going
    assert client.status().activation is Activation.DONE, "stopping is no activation"


def test_objects_inside_and_outside(client, gripper):
    activate(client)
    gripper.set_object_inside(0.04)
    assert go(client, 255, force=100).obstruction is Obstruction.STOPPED_CLOSING
    gripper.set_object_outside(0.06)
    assert go(client, 0).obstruction is Obstruction.STOPPED_OPENING


def test_faults_arrive(client, gripper):
    gripper.set_fault(14)
    assert client.status().fault == 14


def test_a_release_and_the_way_back(client, gripper):
    activate(client)
    client.send(Command(activate=True, release=True, release_opening=True))
    assert until(client, lambda status: status.fault == 15).position == 3
    assert activate(client).ready


@pytest.mark.parametrize("bad", [1, ATTEMPTS - 1])
@pytest.mark.parametrize("act", ["status", "send"])
def test_damaged_answers_are_asked_for_again(client, line, gripper, bad, act):
    activate(client)
    line.damage(bad)
    if act == "status":
        client.status()
    else:
        client.send(Command(activate=True, go=True, position=200))
        assert gripper.look().requested == 200
    assert client.errors == bad


def test_a_line_with_nothing_but_noise_is_given_up(client, line):
    line.damage(1000)
    with pytest.raises(LinkError) as caught:
        client.status()
    assert client.place in str(caught.value)
    assert client.errors == ATTEMPTS


def test_silence_is_given_up(client, line):
    line.swallow(1000)
    with pytest.raises(LinkError, match="does not answer") as caught:
        client.status()
    assert client.place in str(caught.value)


def test_a_cable_that_is_pulled_is_named_and_works_again(client, line):
    line.unplug()
    with pytest.raises(LinkError) as caught:
        client.send(Command())
    assert client.place in str(caught.value)
    client.close()
    with pytest.raises(LinkError, match=r"can't (open|connect)"):
        client.connect()
    line.plug_in()
    client.connect()
    assert client.status().activation is Activation.RESET


def test_a_closed_client_says_so(client):
    client.close()
    client.close()
    with pytest.raises(LinkError, match=r"not open|not connected"):
        client.status()


def test_a_swallowed_answer_is_made_good_on_the_serial_line(port, gripper):
    client = SerialClient(str(port.link), ANSWER_TIME)
    client.connect()
    activate(client)
    port.swallow(1)
    client.send(Command(activate=True, go=True, position=50))
    assert (gripper.look().requested, client.errors) == (50, 1)
    client.close()


def test_an_activation_whose_answer_is_lost_is_not_done_twice(port, gripper):
    client = SerialClient(str(port.link), ANSWER_TIME)
    client.connect()
    written = []
    write = gripper.write
    gripper.write = lambda command: (written.append(command), write(command))
    port.swallow(1)
    client.send(Command(activate=True))
    assert written == [Command(activate=True)]
    client.close()


def test_a_command_is_not_sent_again_to_a_gripper_that_has_lost_its_power_meanwhile(port, gripper):
    """Its rACT would rise with it: the fingers would move as they do when they activate, with nobody's word for it."""
    client = SerialClient(str(port.link), ANSWER_TIME)
    client.connect()
    activate(client)
    write = gripper.write

    def lose_power(command):
        write(command)
        gripper.set_power(False)
        gripper.set_power(True)
        port.swallow(1)
        gripper.write = write

    gripper.write = lose_power
    with pytest.raises(LinkError, match="without power for a moment"):
        client.send(Command(activate=True, go=True, position=50))
    assert gripper.look().activation is Activation.RESET
    client.close()


def test_without_24_volts_nothing_answers_on_the_serial_line(port, gripper):
    gripper.set_power(False)
    with pytest.raises(LinkError, match="has it 24 V"):
        SerialClient(str(port.link), ANSWER_TIME).connect()


def test_without_24_volts_the_urcap_knows_no_values(urcap, gripper):
    gripper.set_power(False)
    with pytest.raises(LinkError, match=r"knows no STA.*plugged in at the wrist"):
        UrcapClient("127.0.0.1", urcap.tcp_port).connect()


def test_a_port_that_is_not_there(tmp_path):
    with pytest.raises(LinkError, match="no such port"):
        SerialClient(str(tmp_path / "ttyUSB7")).connect()


def test_a_file_that_is_no_port(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no port\n")
    with pytest.raises(LinkError, match=f"can't open {path}"):
        SerialClient(str(path)).connect()


def test_a_port_that_another_program_has(port):
    with serial.Serial(str(port.link), exclusive=True), pytest.raises(LinkError, match="another program has it open"):
        SerialClient(str(port.link), ANSWER_TIME).connect()


def test_an_instrument_that_is_no_gripper(tmp_path):
    """Something that refuses our registers: named, not taken for a gripper."""
    ours, theirs = os.openpty()

    def refuse():
        try:
            while os.read(ours, 100):
                answer = bytes([9, 0x83, 2])
                os.write(ours, answer + checksum(answer))
        except OSError:
            pass

    import tty

    tty.setraw(theirs)
    threading.Thread(target=refuse, daemon=True).start()
    with pytest.raises(LinkError, match=r"gives no right answer.*illegal data address"):
        SerialClient(os.ttyname(theirs)).connect()
    os.close(theirs)
    os.close(ours)


class TextServer:
    """A server that answers each line with what a function says, in as many pieces as that gives."""

    def __init__(self, answer):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.lines = []
        self.answer = answer
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            while True:
                connection, _ = self.server.accept()
                for line in connection.makefile():
                    self.lines.append(line.strip())
                    for piece in self.answer(line.strip()):
                        connection.sendall(piece)
        except OSError:
            pass

    def close(self):
        self.server.close()


@pytest.fixture
def text_server():
    servers = []

    def make(answer):
        servers.append(TextServer(answer))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


VALUES = {"STA": 3, "GTO": 1, "OBJ": 3, "FLT": 0, "POS": 120}


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_urcap_without_echo_however_its_answers_end(text_server, ending):
    def answer(line):
        word, name, *_ = line.split()
        text = "ack" if word == "SET" else f"{name} {VALUES[name]}" if name in VALUES else "?"
        return [f"{text}{ending}".encode()]

    server = text_server(answer)
    client = UrcapClient("127.0.0.1", server.port)
    client.connect()
    status = client.status()
    assert (status.requested, status.position, status.ready) == (None, 120, True)
    client.send(Command(activate=True, go=True, position=7, speed=8, force=9))
    assert server.lines[-5:] == ["SET ACT 1", "SET SPE 8", "SET FOR 9", "SET POS 7", "SET GTO 1"]
    client.send(Command(activate=True, go=True, position=10, speed=8, force=9))
    assert server.lines[-4:] == ["SET SPE 8", "SET FOR 9", "SET POS 10", "SET GTO 1"]
    client.send(Command(activate=True, position=10))
    assert server.lines[-1] == "SET GTO 0"
    assert server.lines.count("GET PRE") == 1
    client.close()


def test_answers_in_pieces_are_put_together(text_server):
    def answer(line):
        word, name, *_ = line.split()
        text = "ack" if word == "SET" else f"{name} {VALUES.get(name, 5)}"
        return [text[:2].encode(), text[2:].encode() + b"\n"]

    client = UrcapClient("127.0.0.1", text_server(answer).port)
    client.connect()
    client.send(Command(activate=True, go=True))
    assert client.status().position == 120
    client.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"STA 9", "STA 9, expected at most 3"),
        (b"hello\n", "'hello.n' to 'GET STA', 3 times"),
        (b"\xff\xfe\n", "is it Robotiq's URCap"),
        (b"POS 3\n", "is it Robotiq's URCap"),
        (b"x" * 1000, "is it Robotiq's URCap"),
        (b"STA ?", "knows no STA"),
    ],
)
def test_malformed_answers_are_named(text_server, answer, words):
    client = UrcapClient("127.0.0.1", text_server(lambda line: [answer]).port, answer_time=0.1)
    with pytest.raises(LinkError, match=words):
        client.connect()


def test_a_server_that_hangs_up(text_server):
    server = text_server(lambda line: (_ for _ in ()).throw(OSError()))
    with pytest.raises(LinkError, match=f"127.0.0.1:{server.port}"):
        UrcapClient("127.0.0.1", server.port).connect()


def test_a_controller_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    with pytest.raises(LinkError, match=f"can't connect to 127.0.0.1:{free}.*URCap"):
        UrcapClient("127.0.0.1", free).connect()


def test_two_clients_of_one_urcap(urcap, gripper):
    clients = [UrcapClient("127.0.0.1", urcap.tcp_port) for _ in range(2)]
    for client in clients:
        client.connect()
    activate(clients[0])
    assert clients[1].status().ready
    for client in clients:
        client.close()


@pytest.mark.parametrize(
    ("line_", "answer"),
    [
        ("GET POS", "POS 230"),
        ("GET FLT", "FLT 00"),
        ("SET POS 100", "ack"),
        ("SET POS 100 SPE 255 FOR 10 GTO 1", "ack"),
        ("SET POS 256", "?"),
        ("SET POS x", "?"),
        ("SET XYZ 1", "?"),
        ("SET POS", "?"),
        ("GET XYZ", "XYZ ?"),
        ("DANCE", "?"),
        ("", "?"),
    ],
)
def test_lines_of_the_emulated_urcap(urcap, line_, answer):
    assert urcap.answer_to(line_) == answer
