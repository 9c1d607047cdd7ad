"""The RTDE transport: against a recording fake of the library's class, and the library itself as far as it goes."""

from __future__ import annotations

import os
import re
import socket
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import pytest

from iter_runner.robot.rtde_servo import RtdeServo, rtde_control
from iter_runner.robot.table import load_robot
from iter_runner.robot.transport import RTDE_MODULE
from iter_runner.run_control import Fault

RTDE_PORT = 30004
Q = np.array([0.1, -1.5, 1.2, -1.3, -1.5, 0.0])


class Controller:
    """A UR controller, as far as programs replace each other on it.

    Attributes:
        program: what runs: external_control, rtde, or nothing.
        calls: methods called by (name, arguments), of all connections.
    """

    def __init__(self) -> None:
        self.program = "external_control"
        self.reachable = True
        self.takes_programs = True
        self.calls: List[Tuple[str, Tuple[Any, ...]]] = []

    def names(self) -> List[str]:
        return [name for name, _ in self.calls]


class RTDEControlInterface:
    """Same names, signatures and answers as the library's."""

    controller = Controller()

    def __init__(
        self, hostname: str, frequency: float = -1.0, flags: int = 1, ur_cap_port: int = 50002, rt_priority: int = 0
    ) -> None:
        self._record("__init__", hostname, frequency)
        if not self.controller.reachable:
            raise RuntimeError(f"Error: Could not connect to: {hostname} at 30004, verify the IP")
        if not self.controller.takes_programs:
            raise RuntimeError("ur_rtde: Please enable remote control on the robot!")
        self.controller.program = "rtde"
        self._connected = True

    def _record(self, name: str, *arguments: Any) -> None:
        self.controller.calls.append((name, arguments))

    def servoJ(  # noqa: N802
        self, arg0: List[float], arg1: float, arg2: float, arg3: float, arg4: float, arg5: float, /
    ) -> bool:
        self._record("servoJ", arg0, arg1, arg2, arg3, arg4, arg5)
        return self.isConnected() and self.controller.program == "rtde"

    def servoStop(self, a: float = 10.0) -> bool:  # noqa: N802
        self._record("servoStop")
        return self.isConnected() and self.controller.program == "rtde"

    def isConnected(self) -> bool:  # noqa: N802
        return self._connected and self.controller.reachable

    def isProgramRunning(self) -> bool:  # noqa: N802
        if not self.isConnected():
            raise RuntimeError("receive: end of file")
        return self.controller.program != ""

    def disconnect(self) -> None:
        self._record("disconnect")
        self._connected = False


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Controller:
    controller = Controller()
    monkeypatch.setattr(RTDEControlInterface, "controller", controller)
    return controller


@pytest.fixture
def took_over() -> List[str]:
    return []


@pytest.fixture
def servo(controller: Controller, took_over: List[str]) -> RtdeServo:
    return RtdeServo(
        lambda: RTDEControlInterface("10.0.0.9", 125.0), "10.0.0.9", 0.05, 400, lambda: took_over.append("took over")
    )


def fault_of(action: Callable[[], None]) -> Fault:
    with pytest.raises(Fault) as caught:
        action()
    return caught.value


def test_targets_go_out_with_the_rows_lookahead_and_gain(servo: RtdeServo, controller: Controller) -> None:
    servo.start()
    servo.send(Q, 0.008)
    assert controller.calls == [
        ("__init__", ("10.0.0.9", 125.0)),
        ("servoJ", (Q.tolist(), 0.0, 0.0, 0.008, 0.05, 400.0)),
    ]
    assert all(type(value) is float for value in controller.calls[1][1][0])


def test_pause_and_stop_are_servo_stop_once_and_only_where_the_arm_moved(
    servo: RtdeServo, controller: Controller
) -> None:
    servo.start()
    servo.pause()
    assert "servoStop" not in controller.names()
    servo.resume()
    servo.send(Q, 0.008)
    servo.pause()
    servo.resume()
    servo.send(Q, 0.008)
    servo.stop()
    servo.stop()
    assert controller.names() == ["__init__", "servoJ", "servoStop", "servoJ", "servoStop"]


def test_the_program_stays_between_moves_and_says_once_that_it_replaced_what_ran(
    servo: RtdeServo, controller: Controller, took_over: List[str]
) -> None:
    for _ in range(3):
        servo.start()
        servo.send(Q, 0.008)
        servo.stop()
    assert controller.names().count("__init__") == 1
    assert took_over == ["took over"]


def test_after_another_program_its_own_is_brought_back(
    servo: RtdeServo, controller: Controller, took_over: List[str]
) -> None:
    servo.start()
    servo.send(Q, 0.008)
    servo.stop()
    controller.program = "external_control"  # for a trajectory; the library can't tell it from its own
    servo.displace()
    servo.stop()
    servo.start()
    assert controller.program == "rtde"
    assert controller.names() == ["__init__", "servoJ", "servoStop", "disconnect", "__init__"]
    assert len(took_over) == 2


def test_after_a_protective_stop_the_program_is_brought_back(servo: RtdeServo, controller: Controller) -> None:
    servo.start()
    servo.send(Q, 0.008)
    controller.program = ""
    fault = fault_of(lambda: servo.send(Q, 0.008))
    assert fault.code == "not_ready" and "10.0.0.9" in fault.message
    servo.start()
    servo.send(Q, 0.008)
    assert controller.program == "rtde"


def test_another_nodes_program_in_mid_stream_is_a_fault(servo: RtdeServo, controller: Controller) -> None:
    servo.start()
    servo.send(Q, 0.008)
    servo.displace()
    assert fault_of(lambda: servo.send(Q, 0.008)).code == "not_ready"
    assert controller.names().count("servoJ") == 1


def test_a_halted_stream_sends_nothing_and_is_no_fault(servo: RtdeServo, controller: Controller) -> None:
    servo.start()
    servo.send(Q, 0.008)
    servo.halt()
    servo.displace()  # by the script that stops the arm
    servo.send(Q, 0.008)
    servo.stop()
    assert controller.names() == ["__init__", "servoJ"]


def test_a_halt_that_no_driver_hears_goes_past_it(servo: RtdeServo, controller: Controller) -> None:
    servo.start()
    servo.send(Q, 0.008)
    servo.halt()
    servo.stop()
    assert controller.names()[-1] == "servoStop"


def test_a_lost_connection_is_a_fault_and_comes_back_by_itself(servo: RtdeServo, controller: Controller) -> None:
    servo.start()
    servo.send(Q, 0.008)
    controller.reachable = False
    for action in (lambda: servo.send(Q, 0.008), servo.start):
        fault = fault_of(action)
        assert fault.code == "driver_lost"
        assert "10.0.0.9" in fault.message and "resume" in fault.message
    controller.reachable = True
    servo.start()
    servo.send(Q, 0.008)
    assert controller.names()[-1] == "servoJ"


def test_a_connection_that_is_lost_when_the_arm_is_to_stop_is_a_fault(servo: RtdeServo, controller: Controller) -> None:
    servo.start()
    servo.send(Q, 0.008)
    controller.reachable = False
    assert fault_of(servo.stop).code == "driver_lost"
    servo.close()


def test_local_control_is_a_fault_with_the_librarys_reason(servo: RtdeServo, controller: Controller) -> None:
    controller.takes_programs = False
    assert "enable remote control" in fault_of(servo.start).message


def library() -> Any:
    return pytest.importorskip(RTDE_MODULE, reason="ur-rtde is not installed").RTDEControlInterface


def parameters(documentation: str) -> List[str]:
    """Parameters by a pybind11 signature, without self."""
    match = re.search(r"\((.*)\)", documentation.splitlines()[0])
    assert match is not None
    bare = re.sub(r"<[^>]*>|\[[^\]]*\]", "", match.group(1))
    return [part.split(":")[0].strip() for part in bare.split(",")][1:]


def test_the_library_has_what_is_used_of_it_with_these_signatures() -> None:
    theirs = library()
    expected: Dict[str, List[str]] = {
        "__init__": ["hostname", "frequency", "flags", "ur_cap_port", "rt_priority"],
        "servoStop": ["a"],
        "isConnected": [],
        "isProgramRunning": [],
        "disconnect": [],
    }
    for name, names in expected.items():
        assert parameters(getattr(theirs, name).__doc__) == names
    documentation = theirs.servoJ.__doc__
    assert len(parameters(documentation)) == 6
    assert re.findall(r"Parameter ``(\w+)``", documentation) == [
        "q",
        "speed",
        "acceleration",
        "time",
        "lookahead_time",
        "gain",
    ]


def test_the_library_says_that_no_controller_answers_as_the_fake_does() -> None:
    library()
    with socket.socket() as free:  # bound but not listening: refuses
        free.bind(("127.0.0.1", 0))
        host = "127.0.0.1"
        if answers(host):
            pytest.skip("a controller answers on this machine")
        servo = RtdeServo(lambda: rtde_control(host, 125.0), host, 0.1, 300, lambda: None)
        fault = fault_of(servo.start)
    assert fault.code == "driver_lost" and host in fault.message


def answers(host: Optional[str]) -> bool:
    try:
        with socket.create_connection((host or "", RTDE_PORT), timeout=2.0):
            return True
    except OSError:
        return False


def test_a_controller_holds_its_pose_over_rtde() -> None:
    """On URSim or an arm: streams the pose that it has for a second."""
    host = os.environ.get("ITER_RUNNER_RTDE_HOST", "")
    if not host:
        pytest.skip("no controller: ITER_RUNNER_RTDE_HOST is not set")
    if not answers(host):
        pytest.skip(f"no RTDE server answers on {host}:{RTDE_PORT}")
    library()
    receive = pytest.importorskip("rtde_receive").RTDEReceiveInterface(host)
    rate = load_robot(os.environ.get("ITER_RUNNER_RTDE_ROBOT", "ur5e")).control_rate
    here = np.array(receive.getActualQ())
    servo = RtdeServo(lambda: rtde_control(host, rate), host, 0.1, 300, lambda: None)
    servo.start()
    for _ in range(round(rate)):
        servo.send(here, 1.0 / rate)
    servo.stop()
    servo.close()
    np.testing.assert_allclose(receive.getActualQ(), here, atol=1e-3)
