"""Looks at main.launch's arguments before any node starts, so that a wrong one is one clear line.

``check_launch 'name:=value|name:=value|...'`` prints nothing and exits with 0 where they fit together, else with 1.
"""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from iter_runner.events import RUN_MODES
from iter_runner.plan.registry import did_you_mean
from iter_runner.planners.table import PlannerError, check_fit
from iter_runner.robot.table import RobotError, load_robot
from iter_runner.sim.faults import FaultError, parse_faults

BACKENDS = ("embedded", "gazebo", "ursim", "hardware")
BUILT_BACKENDS = ("embedded", "ursim", "hardware")
PARTICIPANTS = ("human", "auto")
BUTTONS = ("keyboard", "serial", "topic", "web")
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
        _check_faults,
        _check_button,
        _check_sessions,
        _check_plan,
    ):
        check(arguments)


def _check_words(arguments: Mapping[str, str]) -> None:
    choices = {
        "backend": BACKENDS,
        "participant": PARTICIPANTS,
        "button": BUTTONS,
        "mode": RUN_MODES,
        **dict.fromkeys(("exit_when_done", "rviz", "record"), ("true", "false")),
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


def _check_robot(arguments: Mapping[str, str]) -> None:
    name = arguments.get("robot", "ur5")
    if name.endswith((".yaml", ".yml")) and not Path(name).is_absolute():
        raise LaunchError(f"robot:={name}: expected the whole path: nodes do not run in this folder")
    try:
        robot = load_robot(name)
        check_fit(robot, arguments.get("planner", "relaxed_ik"))
    except RobotError as error:
        raise LaunchError(f"robot:={arguments.get('robot')}: {error}") from error
    except PlannerError as error:
        raise LaunchError(f"planner:={arguments.get('planner')}: {error}") from error


def _check_backend(arguments: Mapping[str, str]) -> None:
    backend = arguments.get("backend", BACKENDS[0])
    if backend not in BUILT_BACKENDS:
        raise LaunchError(
            f"backend:={backend}: is not built yet; use backend:=embedded, the simulator that comes with the package"
        )
    if backend != "embedded":
        for name, plain in (("rate", 1.0), ("faults", "")):
            value = arguments.get(name, "")
            if value and (plain == "" or float(value) != plain):
                raise LaunchError(
                    f"{name}:={value}: belongs to backend:=embedded, leave it out with backend:={backend}"
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

    name, robot, tool_frame = (arguments.get(key, "") for key in ("plan", "robot", "tool_frame"))
    if not name:
        return
    try:
        try:
            plan = load_plan(find_plan(name), REGISTRY)
        except PlanError as error:
            raise with_robots_faults(error, robot or "ur5", tool_frame or None) from error
        # The runner looks again, and at the ways too; but roslaunch ends with 0 whatever its nodes refuse.
        faults = check_plan(plan, robot or "ur5", tool_frame=tool_frame or None)
        if faults:
            raise PlanError(faults)
    except PlanError as error:
        count = len(error.faults)
        raise LaunchError(f"plan:={name}: {count} fault{'s' if count != 1 else ''}\n{error}") from error
    first_step = int(float(arguments.get("first_step") or 0))
    if first_step >= max(1, len(plan.steps)):
        raise LaunchError(f"first_step:={first_step}: the plan {name} has steps 0 to {len(plan.steps) - 1}")


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
    joined = "|".join(sys.argv[1:] if arguments is None else arguments)
    words: List[str] = re.split(r"\|(?=\w+:=)", joined)  # a file's name may hold a bar
    named: Dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not separator:
            print(f"check_launch: {word!r}: expected name:=value", file=sys.stderr)
            return 2
        named[name] = value
    try:
        check_launch(named)
    except LaunchError as error:
        print(f"\nERROR: {error}\n", file=sys.stderr)
        return 1
    return 0
