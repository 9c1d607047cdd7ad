"""Looks at main.launch's arguments before any node starts, so that a wrong one is one clear line.

``check_launch 'name:=value|name:=value|...'`` prints nothing and exits with 0 where they fit together, else with 1.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
import sys
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from iter_runner.events import RUN_MODES
from iter_runner.launch_row import (
    CONTROLLER_BACKENDS,
    EMULATED,
    default_gripper_driver,
    default_transport,
    has_package,
    missing_packages,
    write_row_launch,
)
from iter_runner.plan.registry import did_you_mean
from iter_runner.planners.table import PlannerError, check_fit
from iter_runner.robot import moveit_config
from iter_runner.robot.table import IN_GAZEBO, Robot, RobotError, load_robot, robot_driver, robot_gripper, robot_urdf
from iter_runner.robot.transport import check_transport
from iter_runner.scene.objects import SceneError, SceneObject
from iter_runner.scene.workcell_file import read_workcell, robot_frames
from iter_runner.sim.faults import FaultError, parse_faults
from iter_runner.study.sessions import SessionError, find_session

BACKENDS = ("embedded", "gazebo", "ursim", "hardware")
GRIPPER_PORT = "/dev/ttyUSB0"
"""Where a serial gripper is if nothing is said."""
PARTICIPANTS = ("human", "auto")
BUTTONS = ("keyboard", "serial", "topic", "web")
SWITCHES = ("exit_when_done", "rviz", "record", "start_driver", "preflight", "gazebo_gui", "move_group")
LARGEST = 2**31 - 1
"""The largest whole number that the parameter server takes."""


class LaunchError(ValueError):
    """An argument is wrong, or two do not fit together; the message names it, the value and what was expected."""


def check_launch(arguments: Mapping[str, str]) -> None:
    """Returns if main.launch may start with these arguments; those left out are not looked at.

    Raises:
        LaunchError: with the first thing that is wrong.
    """
    for check in (
        _check_words,
        _check_numbers,
        _check_robot,
        _check_backend,
        _check_controller,
        _check_transport,
        _check_gripper,
        _check_packages,
        _check_faults,
        _check_button,
        _check_sessions,
        _check_replay,
        _check_workcell,
        _check_plan,
    ):
        check(arguments)


def _check_words(arguments: Mapping[str, str]) -> None:
    choices = {
        "backend": BACKENDS,
        "participant": PARTICIPANTS,
        "button": BUTTONS,
        "mode": RUN_MODES,
        **dict.fromkeys(SWITCHES, ("true", "false")),
    }
    for name, words in choices.items():
        value = arguments.get(name, words[0])
        if value not in words and not (words == ("true", "false") and value.lower() in ("true", "false", "1", "0")):
            raise LaunchError(f"{name}:={value}: expected {did_you_mean(value, words)}")


def _check_numbers(arguments: Mapping[str, str]) -> None:
    ranges: Dict[str, Tuple[Callable[[float], bool], str]] = {
        "rate": (lambda value: 0 <= value <= 1000, "a number from 0 (as fast as it can) to 1000, times real time"),
        "speed": (lambda value: 0.01 <= value <= 1, "a number from 0.01 to 1, the arm's speed slider"),
        "table_height": (math.isfinite, "a height in m, in the robot's base frame"),
        "response_median": (lambda value: value > 0, "seconds above 0"),
        "response_sigma": (lambda value: value >= 0, "a number from 0"),
        "baud": (lambda value: value > 0 and _is_whole(value), "a whole number of bits per second"),
        "seed": (lambda value: value >= 0 and _is_whole(value), f"a whole number up to {LARGEST}"),
        "planner_seed": (lambda value: value >= 0 and _is_whole(value), f"a whole number up to {LARGEST}"),
        "first_step": (lambda value: value >= 0 and _is_whole(value), "a whole number, counted from 0"),
    }
    for name, (fits, expected) in ranges.items():
        text = arguments.get(name, "")
        if not text:
            continue
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not fits(value):
            raise LaunchError(f"{name}:={text}: expected {expected}")


def _is_whole(value: float) -> bool:
    return value.is_integer() and abs(value) <= LARGEST


def _robot(arguments: Mapping[str, str]) -> Robot:
    name = arguments.get("robot", "ur5")
    return load_robot(name + IN_GAZEBO if _backend(arguments) == "gazebo" else name)


def _backend(arguments: Mapping[str, str]) -> str:
    return arguments.get("backend", BACKENDS[0])


def _starts_driver(arguments: Mapping[str, str]) -> bool:
    return arguments.get("start_driver", "true").lower() in ("true", "1")


def _check_robot(arguments: Mapping[str, str]) -> None:
    name = arguments.get("robot", "ur5")
    if name.endswith((".yaml", ".yml")) and not Path(name).is_absolute():
        raise LaunchError(f"robot:={name}: expected the whole path: nodes do not run in this folder")
    try:
        robot = _robot(arguments)
        check_fit(robot, arguments.get("planner", "relaxed_ik"))
    except RobotError as error:
        raise LaunchError(f"robot:={arguments.get('robot')}: {error}") from error
    except PlannerError as error:
        raise LaunchError(f"planner:={arguments.get('planner')}: {error}") from error
    own = arguments.get("move_group", "true").lower() in ("true", "1")
    missing = moveit_config.missing_packages() if own and arguments.get("planner") == "moveit" else ""
    if missing:
        raise LaunchError(f"planner:=moveit: {missing}; move_group:=false uses one that runs already")


def _check_backend(arguments: Mapping[str, str]) -> None:
    backend = _backend(arguments)
    if backend != "embedded":
        for name, plain in (("rate", 1.0), ("faults", "")):
            value = arguments.get(name, "")
            if value and (plain == "" or float(value) != plain):
                raise LaunchError(
                    f"{name}:={value}: belongs to backend:=embedded, leave it out with backend:={backend}"
                )
    interface = robot_driver(_robot(arguments)).interface
    if backend == "ursim" and interface != "ur":
        raise LaunchError(
            f"backend:=ursim: is Universal Robots' own simulator; robot:={arguments.get('robot')} has a driver of "
            f"the kind '{interface}', use backend:=embedded to rehearse"
        )


def _check_controller(arguments: Mapping[str, str]) -> None:
    backend, address = _backend(arguments), arguments.get("robot_ip", "")
    if address and not _is_host(address):
        raise LaunchError(f"robot_ip:={address}: expected the controller's address, such as 192.168.1.10 or a name")
    # Drivers that run already know their address; streaming by RTDE goes past them.
    needed = _starts_driver(arguments) or arguments.get("transport", "") in ("", "rtde")
    if needed and backend in CONTROLLER_BACKENDS and not address and robot_driver(_robot(arguments)).interface == "ur":
        hint = "robot_ip:=127.0.0.1 where it runs on this machine" if backend == "ursim" else "robot_ip:=192.168.1.10"
        raise LaunchError(f"robot_ip:=: backend:={backend} needs the controller's address, such as {hint}")
    name = arguments.get("kinematics_config", "")
    if not name:
        return
    if not Path(name).is_absolute():
        raise LaunchError(f"kinematics_config:={name}: expected the whole path: nodes do not run in this folder")
    if not Path(name).is_file():
        raise LaunchError(f"kinematics_config:={name}: there is no such file; ur_calibration writes it")


def _is_host(text: str) -> bool:
    """Whether it can be an IPv4 or IPv6 address, or a host's name by RFC 1123."""
    try:
        ipaddress.ip_address(text)
        return True
    except ValueError:
        labels = text.rstrip(".").split(".")
        digits = all(label.isdigit() for label in labels)  # an IPv4 address that is none
        fits = all(re.fullmatch(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)", label) for label in labels)
        return len(text) <= 253 and fits and not digits


def _check_transport(arguments: Mapping[str, str]) -> None:
    transport, robot, backend = arguments.get("transport", ""), _robot(arguments), _backend(arguments)
    if transport and transport not in robot.transports:
        raise LaunchError(f"transport:={transport}: robot {robot.name} takes {', '.join(robot.transports)}")
    if transport == "rtde" and backend not in CONTROLLER_BACKENDS:
        others = ", ".join(name for name in robot.transports if name != "rtde")
        raise LaunchError(
            f"transport:=rtde: talks to a controller, which backend:={backend} has not; "
            f"use backend:=hardware or ursim, or transport:={others}"
        )
    try:
        check_transport(robot, transport or default_transport(robot, backend), arguments.get("robot_ip", ""))
    except RobotError as error:
        raise LaunchError(f"transport:={transport}: {error}") from error


def _check_gripper(arguments: Mapping[str, str]) -> None:
    robot, backend = _robot(arguments), _backend(arguments)
    gripper = robot_gripper(robot)
    driver, port = arguments.get("gripper_driver", ""), arguments.get("gripper_port", "")
    fitting = list(dict.fromkeys([*gripper.drivers, "external", EMULATED]))
    if driver and driver not in fitting:
        raise LaunchError(f"gripper_driver:={driver}: gripper {gripper.name} goes with {did_you_mean(driver, fitting)}")
    driver = driver or default_gripper_driver(gripper, backend, _starts_driver(arguments))
    if port and driver != "serial":
        raise LaunchError(
            f"gripper_port:={port}: belongs to gripper_driver:=serial, leave it out with {driver or 'the simulator'}"
        )
    if driver == "serial":
        port = port or GRIPPER_PORT
        if not Path(port).exists():
            raise LaunchError(
                f"gripper_port:={port}: there is no such device; plug the gripper's adapter in and look with "
                f"`ls /dev/serial/by-id`, or choose gripper_driver:={', '.join(fitting[1:])}"
            )
        if not Path(port).is_char_device():
            raise LaunchError(
                f"gripper_port:={port}: expected a serial device, found a file or folder; look with "
                "`ls /dev/serial/by-id`"
            )
        if arguments.get("button") == "serial" and Path(arguments.get("port", "")).resolve() == Path(port).resolve():
            raise LaunchError(
                f"gripper_port:={port}: is the button's port as well; give each its own (/dev/serial/by-id)"
            )
    if driver == "urcap" and not arguments.get("robot_ip", ""):
        raise LaunchError("gripper_driver:=urcap: needs robot_ip:= as well, the controller that the gripper hangs on")


def _check_packages(arguments: Mapping[str, str]) -> None:
    for name, package in (("rviz", "rviz"), ("record", "rosbag")):
        if arguments.get(name, "").lower() in ("true", "1") and not has_package(package):
            raise LaunchError(
                f"{name}:={arguments[name]}: the ROS package {package} is not installed; leave {name}:= out"
            )
    backend, starts = _backend(arguments), _starts_driver(arguments)
    robot = _robot(arguments)
    driver = arguments.get("gripper_driver", "") or default_gripper_driver(robot_gripper(robot), backend, starts)
    try:
        missing = missing_packages(robot, driver, starts and backend != "embedded")
    except RobotError as error:
        raise LaunchError(f"robot:={arguments.get('robot')}: {error}") from error
    if missing:
        raise LaunchError(
            f"backend:={backend}: {'; '.join(missing)}. Without that, backend:=embedded "
            "rehearses everything, and start_driver:=false uses drivers that run already"
        )


def _check_faults(arguments: Mapping[str, str]) -> None:
    try:
        parse_faults(arguments.get("faults", ""))
    except FaultError as error:
        raise LaunchError(f"faults:={arguments.get('faults')}: {error}") from error


def _check_button(arguments: Mapping[str, str]) -> None:
    button = arguments.get("button", BUTTONS[0])
    if arguments.get("participant", PARTICIPANTS[0]) != "human":
        return
    if button == "web":
        raise LaunchError("button:=web: is not built yet; use keyboard, serial or topic")
    if button == "serial" and not arguments.get("port", ""):
        raise LaunchError("button:=serial: expected port:= as well, the serial device, e.g. port:=/dev/ttyUSB0")
    if button == "topic" and not arguments.get("button_topic", ""):
        raise LaunchError("button:=topic: expected button_topic:= as well, e.g. button_topic:=/joy")


def _check_plan(arguments: Mapping[str, str]) -> None:
    from iter_runner.plan import PlanError, load_plan
    from iter_runner.plan.check import check_plan, with_robots_faults
    from iter_runner.plan.read import find_plan
    from iter_runner.primitives import REGISTRY

    name, tool_frame = arguments.get("plan", ""), arguments.get("tool_frame", "") or None
    if not name:
        return
    robot, around = _robot(arguments), _surroundings(arguments)
    try:
        try:
            plan = load_plan(find_plan(name), REGISTRY)
        except PlanError as error:
            raise with_robots_faults(error, robot, tool_frame, around) from error
        # The runner looks again, and at the ways too; but roslaunch ends with 0 whatever its nodes refuse.
        faults = check_plan(plan, robot, tool_frame=tool_frame, surroundings=around)
        if faults:
            raise PlanError(faults)
    except PlanError as error:
        count = len(error.faults)
        raise LaunchError(f"plan:={name}: {count} fault{'s' if count != 1 else ''}\n{error}") from error
    first_step = int(float(arguments.get("first_step") or 0))
    if first_step >= max(1, len(plan.steps)):
        raise LaunchError(f"first_step:={first_step}: the plan {name} has steps 0 to {len(plan.steps) - 1}")


def _check_replay(arguments: Mapping[str, str]) -> None:
    planner, session = arguments.get("planner", "relaxed_ik"), arguments.get("replay", "")
    if planner == "replay" and not session:
        raise LaunchError(
            "planner:=replay: needs replay:= as well, the session to repeat; `report --last` names the last"
        )
    if session and planner != "replay":
        raise LaunchError(f"replay:={session}: belongs to planner:=replay, leave it out with planner:={planner}")
    seed = arguments.get("planner_seed", "")
    if seed and planner != "ompl":
        raise LaunchError(f"planner_seed:={seed}: belongs to planner:=ompl, leave it out with planner:={planner}")
    if not session:
        return
    if "/" in session and not session.startswith(("/", "~")):
        raise LaunchError(f"replay:={session}: expected a session's name or its whole path")
    folder = arguments.get("sessions", "")
    try:
        find_session(session, Path(folder).expanduser() if folder else None)
    except (SessionError, OSError, RuntimeError) as error:
        raise LaunchError(f"replay:={session}: {error}") from error


def _check_workcell(arguments: Mapping[str, str]) -> None:
    _surroundings(arguments)


def _surroundings(arguments: Mapping[str, str]) -> List[SceneObject]:
    """What the workcell's file has around the arm."""
    name = arguments.get("workcell", "")
    if not name:
        return []
    if name.endswith((".yaml", ".yml")) and not Path(name).is_absolute():
        raise LaunchError(f"workcell:={name}: expected the whole path: nodes do not run in this folder")
    robot = _robot(arguments)
    try:
        return read_workcell(name, robot_frames(robot_urdf(robot), robot.base_frame))
    except SceneError as error:
        raise LaunchError(f"workcell:={name}: {error}") from error


def _check_sessions(arguments: Mapping[str, str]) -> None:
    name = arguments.get("sessions", "")
    if not name:
        return
    if not name.startswith(("/", "~")):
        raise LaunchError(f"sessions:={name}: expected the whole path: nodes do not run in this folder")
    try:
        folder = Path(name).expanduser()
        existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
        usable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    except (OSError, ValueError, RuntimeError) as error:  # too long, a null byte, no such user's home
        raise LaunchError(f"sessions:={name}: can't be a path ({error})") from error
    if not usable:
        raise LaunchError(f"sessions:={name}: {existing} is no folder that can be written to; choose another")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the check; returns the exit code."""
    words: List[str] = list(sys.argv[1:] if arguments is None else arguments)
    row_file = ""
    if words[:1] == ["--row"] and len(words) > 1:
        row_file, words = words[1], words[2:]
    named: Dict[str, str] = {}
    for word in re.split(r"\|(?=\w+:=)", "|".join(words)):  # a file's name may hold a bar
        name, separator, value = word.partition(":=")
        if not separator:
            print(f"check_launch: {word!r}: expected name:=value", file=sys.stderr)
            return 2
        named[name] = value
    try:
        check_launch(named)
        if row_file:
            _write_row(Path(row_file), named)
    except LaunchError as error:
        print(f"\nERROR: {error}\n", file=sys.stderr)
        return 1
    return 0


def _write_row(file: Path, arguments: Mapping[str, str]) -> None:
    robot, backend = _robot(arguments), _backend(arguments)
    try:
        write_row_launch(file, robot, backend)
    except OSError as error:
        raise LaunchError(f"can't write {file}: {error.strerror}; choose a folder by the variable ROS_HOME") from error
    if backend not in ("embedded", "gazebo") and _starts_driver(arguments) and robot_driver(robot).bringup is None:
        print(
            f"NOTE: the driver '{robot.driver}' of {robot.name} is not started from here: start it yourself, on the "
            f"names of config/drivers/{robot.driver}.yaml",
            file=sys.stderr,
        )
