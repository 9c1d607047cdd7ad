"""How streamed joint targets travel to an arm: which ways its row lists, and at what rate each goes."""

from __future__ import annotations

import importlib.util
from typing import Optional

from iter_runner.robot.table import Robot, RobotError

JOINT_VELOCITY = "joint_velocity"
JOINT_VELOCITY_RATE = 100.0
"""Hz, no more and no less: Kinova's driver queues what comes faster, and the arm goes on by it after the stream."""
RTDE = "rtde"
RTDE_MODULE = "rtde_control"
"""What the package ur-rtde installs."""


def check_transport(robot: Robot, transport: str = "", robot_ip: Optional[str] = None) -> str:
    """The transport that ``robot`` is streamed by.

    Args:
        robot: the robot's row.
        transport: one of the row's ``transports``; empty: its first.
        robot_ip: the controller's address, "" where none is given; None: not looked at.

    Raises:
        RobotError: the row lists no such transport, or what the transport needs is missing.
    """
    chosen = transport or robot.transports[0]
    if chosen not in robot.transports:
        raise RobotError(
            f"transport '{chosen}' does not fit robot '{robot.name}': choose one of {', '.join(robot.transports)}"
        )
    if chosen == JOINT_VELOCITY and robot.stream_rate != JOINT_VELOCITY_RATE:
        raise RobotError(
            f"transport '{chosen}' takes a message {JOINT_VELOCITY_RATE:g} times a second, but robot '{robot.name}' "
            f"has stream_rate {robot.stream_rate:g}: set it to {JOINT_VELOCITY_RATE:g} in {robot.source}"
        )
    if chosen == RTDE:
        if robot_ip == "":
            raise RobotError(
                f"transport '{RTDE}' goes to the controller of '{robot.name}' itself, and needs its address: give "
                "robot_ip"
            )
        if importlib.util.find_spec(RTDE_MODULE) is None:
            raise RobotError(
                f"transport '{RTDE}' needs the Python package ur-rtde, which is not installed: pip install ur-rtde, or "
                f"choose another transport of '{robot.name}' ({', '.join(robot.transports)})"
            )
    return chosen


def streaming_robot(robot: Robot, transport: str = "") -> Robot:
    """The row as a planner is to see it that streams by ``transport``: its ``stream_rate`` is the transport's.

    Over RTDE a program on the controller takes a target every cycle, so that the stream runs at ``control_rate``.

    Raises:
        RobotError: see :func:`check_transport`.
    """
    if check_transport(robot, transport) != RTDE:
        return robot
    return robot.model_copy(update={"stream_rate": robot.control_rate})
