from __future__ import annotations

import importlib.util

import pytest

from iter_runner.robot.table import Robot, RobotError, load_robot
from iter_runner.robot.transport import RTDE_MODULE, check_transport, streaming_robot


def test_the_rows_first_is_the_default() -> None:
    assert check_transport(load_robot("ur5")) == "script"
    assert check_transport(load_robot("mico-2")) == "joint_velocity"


@pytest.mark.parametrize("transport", ["carrier_pigeon", "joint_velocity", "trajectory_topic"])
def test_a_transport_that_the_row_does_not_list_is_refused_with_those_that_it_does(transport: str) -> None:
    with pytest.raises(RobotError) as refused:
        check_transport(load_robot("ur3e"), transport)
    for part in (transport, "ur3e", "script", "rtde"):
        assert part in str(refused.value)


@pytest.mark.parametrize(("name", "rate"), [("ur3", 125.0), ("ur5", 125.0), ("ur3e", 500.0), ("ur5e", 500.0)])
def test_over_rtde_the_stream_runs_at_the_controllers_rate(name: str, rate: float) -> None:
    pytest.importorskip(RTDE_MODULE, reason="ur-rtde is not installed")
    robot = load_robot(name)
    assert streaming_robot(robot, "rtde").stream_rate == rate
    assert streaming_robot(robot, "script") is robot
    assert streaming_robot(robot) is robot


def test_rtde_needs_the_controllers_address() -> None:
    pytest.importorskip(RTDE_MODULE, reason="ur-rtde is not installed")
    with pytest.raises(RobotError, match="robot_ip"):
        check_transport(load_robot("ur5"), "rtde", "")
    assert check_transport(load_robot("ur5"), "rtde", "10.0.0.9") == "rtde"
    assert check_transport(load_robot("ur5"), "script", "") == "script"


def test_without_its_package_rtde_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RobotError, match="pip install ur-rtde"):
        check_transport(load_robot("ur5"), "rtde")


def test_joint_velocities_go_at_their_drivers_rate() -> None:
    robot: Robot = load_robot("mico-2").model_copy(update={"stream_rate": 125.0})
    with pytest.raises(RobotError, match="stream_rate 125"):
        check_transport(robot)
