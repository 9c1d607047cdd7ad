"""``./run demo``: the house on a simulated arm with a simulated participant, from one command.

Arguments are main.launch's, e.g. ``robot:=ur3e planner:=static rate:=1 rviz:=true plan:=my_plan.json``. The exit code
is 0 where the plan finished, 1 where it did not. Without ``plan:=`` it is the package's sequential house, or the same
laid out for the robot's arm and hand where the package's does not fit them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence
from xml.etree import ElementTree

from iter_runner.launch_check import LaunchError, check_launch
from iter_runner.package import package_folder
from iter_runner.plan.registry import did_you_mean
from iter_runner.robot.table import load_robot
from iter_runner.study.report import summarise_session
from iter_runner.study.report_view import print_report
from iter_runner.study.sessions import Session, SessionError, list_sessions

DEFAULTS: Dict[str, str] = {
    "robot": "ur5",
    "planner": "relaxed_ik",
    "plan": "sequential.json",
    "participant": "auto",
    "rate": "10",
    "study": "demo",
}

# What main.launch would hand to run_plan; the demo runs that tool itself, so that it has the terminal.
_TOOL_ARGUMENTS = {"mode": "--mode", "first_step": "--first-step"}

SHUTDOWN_TIME = 15.0
"""Seconds of wall time that the nodes get to end themselves."""

DIES_WITH_US = ("setpriv", "--pdeathsig", "INT", "--")
"""What begins the command of a process that is to be interrupted if the demo is killed."""

HOUSE = "sequential"
"""The generator, and the plan of the package, that the demo runs where it is told none."""

TAIL = 15
"""Lines of the log that are shown where the launch failed."""


def free_port() -> int:
    """A TCP port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def parse_arguments(words: Sequence[str]) -> Dict[str, str]:
    """The launch arguments: the demo's, with ``name:=value`` words over them.

    Raises:
        ValueError: a word is none.
    """
    arguments = dict(DEFAULTS)
    known = launch_arguments()
    for word in words:
        name, separator, value = word.partition(":=")
        if not separator or not name.isidentifier():
            raise ValueError(f"{word!r}: expected name:=value, an argument of main.launch such as robot:=ur3e")
        if name not in known:
            raise ValueError(
                f"{word}: main.launch has no argument {name!r}, expected {did_you_mean(name, sorted(known))}"
            )
        arguments[name] = value
    if not arguments["plan"]:
        raise ValueError(
            f"plan:=: expected a plan's file or its name in plans/; without plan:= it is {DEFAULTS['plan']}"
        )
    return arguments


def fitting_plan(robot: str) -> str:
    """The package's house for this robot: its name in ``plans/``, or the path of one laid out for the arm and the hand.

    Raises:
        LaunchError: its generator can't lay it out.
    """
    from iter_runner.plan.check import inspect_plan
    from iter_runner.plan.layout import has_standard_hand
    from iter_runner.plan.load import load_plan
    from iter_runner.primitives import REGISTRY

    row = load_robot(robot)
    shipped = f"{HOUSE}.json"
    if has_standard_hand(row) and not inspect_plan(load_plan(shipped, REGISTRY), row).faults:
        return shipped
    folder = Path(os.environ.get("ROS_HOME") or Path.home() / ".ros") / "iter_runner" / "plans"
    path = folder / f"{HOUSE}_{row.name}.json"
    generator = package_folder() / "scripts" / f"generate_{HOUSE}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"can't write {folder}: {error.strerror}; choose a folder by ROS_HOME") from error
    command = [sys.executable, str(generator), "--robot", robot, "--output", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise LaunchError(f"no house for {row.name}: {reason}; name a plan by plan:=")
    return str(path)


def launch_arguments() -> List[str]:
    """The names of main.launch's arguments."""
    launch = ElementTree.parse(package_folder() / "launch" / "main.launch")
    return [str(arg.get("name")) for arg in launch.getroot().findall("arg") if arg.get("default") is not None]


def launch_command(arguments: Dict[str, str], port: int) -> List[str]:
    """The roslaunch call: everything but the plan."""
    kept = {name: value for name, value in arguments.items() if name not in ("plan", "exit_when_done")}
    words = [f"{name}:={value}" for name, value in kept.items() if name not in _TOOL_ARGUMENTS]
    return ["roslaunch", "-p", str(port), "iter_runner", "main.launch", "plan:=", *words]


def tool_command(arguments: Dict[str, str]) -> List[str]:
    """The run_plan call."""
    command = ["rosrun", "iter_runner", "run_plan", arguments["plan"], "--timeout", "180"]
    for name, option in _TOOL_ARGUMENTS.items():
        if name in arguments:
            command += [option, arguments[name]]
    if not sys.stdout.isatty():
        command.append("--stop-in-fault")
    return command


class Demo:
    """The processes of one demo."""

    def __init__(self, arguments: Dict[str, str], log: Path) -> None:
        self._arguments = arguments
        self._log = log
        port = free_port()
        # A master of its own: whatever else runs on this machine is left alone.
        self._environment = dict(os.environ, ROS_MASTER_URI=f"http://localhost:{port}", ROS_HOSTNAME="localhost")
        self._launch_command = launch_command(arguments, port)
        self._launch: Optional[subprocess.Popen] = None
        self._tool: Optional[subprocess.Popen] = None
        self._failed_early = False
        self._interrupted = False

    def interrupt(self) -> None:
        """What Ctrl-C does: run_plan, if it is there, stops the run and says how it ended; then everything ends."""
        self._interrupted = True
        if self._tool is not None:
            self._tool.send_signal(signal.SIGINT)

    def run(self) -> int:
        """Starts everything, runs the plan, ends everything; returns run_plan's exit code."""
        with self._log.open("w", encoding="utf-8") as output:
            # Its own session: Ctrl-C is not for the nodes, which are needed until the run has been stopped.
            self._launch = subprocess.Popen(
                [*DIES_WITH_US, *self._launch_command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        try:
            if not self._master_is_up():
                self._failed_early = not self._interrupted
                return 1
            # Its own session as well: it hears of an interruption from us, whichever way that came, and once.
            command = [*DIES_WITH_US, *tool_command(self._arguments)]
            tool = subprocess.Popen(command, env=self._environment, start_new_session=True)
            self._tool = tool
            if self._interrupted:
                self.interrupt()
            while True:
                try:
                    return _exit_code(tool.wait(timeout=0.2))
                except subprocess.TimeoutExpired:
                    if self._launch.poll() is not None:
                        self._failed_early = True
                        self.interrupt()
                        return _exit_code(tool.wait())
        finally:
            self._end_launch()

    @property
    def master(self) -> str:
        """The address of its ROS master."""
        return self._environment["ROS_MASTER_URI"]

    @property
    def interrupted(self) -> bool:
        """Whether the user ended it."""
        return self._interrupted

    def failed_early(self) -> bool:
        """Whether the launch ended before it was told to."""
        return self._failed_early

    def log_tail(self) -> str:
        """The end of the nodes' output."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([line for line in lines if line.strip()][-TAIL:])

    def _master_is_up(self) -> bool:
        host, port = "localhost", int(self._environment["ROS_MASTER_URI"].rsplit(":", 1)[1])
        assert self._launch is not None
        while self._launch.poll() is None and not self._interrupted:
            with socket.socket() as probe:
                if probe.connect_ex((host, port)) == 0:
                    return True
            time.sleep(0.1)
        return False

    def _end_launch(self) -> None:
        """Ends the nodes, then the master and roslaunch.

        roslaunch does not do it by itself at any time: interrupted while it starts its nodes it goes on, and hears
        nothing more.
        """
        launch = self._launch
        if launch is None or launch.poll() is not None:
            return
        launch.send_signal(signal.SIGSTOP)  # it starts nothing more, and nothing again
        started = children(launch.pid)
        nodes = [process for process in started if b"rosmaster" not in _command(process)]
        _send(signal.SIGINT, nodes)
        give_up = time.monotonic() + SHUTDOWN_TIME
        while any(_command(process) for process in nodes) and time.monotonic() < give_up:
            time.sleep(0.05)
        _send(signal.SIGKILL, started)
        launch.kill()
        launch.wait()


def children(process: int) -> List[int]:
    """The processes that a process has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            _, parent = status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2]
            if int(parent) == process:
                found.append(int(status.parent.name))
    return found


def _command(process: int) -> bytes:
    """The command line of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _send(number: signal.Signals, processes: Sequence[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _exit_code(returned: int) -> int:
    return returned if returned >= 0 else 1  # ended by a signal before it could handle it


def main(words: Optional[Sequence[str]] = None) -> int:
    """Runs the demo; returns its exit code."""
    given = list(sys.argv[1:] if words is None else words)
    if any(word in ("-h", "--help") for word in given):
        print(__doc__)
        return 0
    try:
        arguments = parse_arguments(given)
    except ValueError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    try:
        if any(word.startswith("plan:=") for word in given):
            check_launch(arguments)
        else:
            check_launch({**arguments, "plan": ""})
            arguments["plan"] = fitting_plan(arguments["robot"])
    except LaunchError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    if arguments.get("sessions"):
        os.environ["ITER_RUNNER_SESSIONS"] = arguments["sessions"]
    log = Path(os.environ.get("ROS_LOG_DIR") or Path(os.environ.get("ROS_HOME") or Path.home() / ".ros") / "log")
    log = log / f"iter_runner_demo_{os.getpid()}.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
    except OSError as error:
        print(f"demo: can't write {log}: {error.strerror}; choose a folder by ROS_LOG_DIR", file=sys.stderr)
        return 1
    demo = Demo(arguments, log)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: demo.interrupt())
    before = {session.name for session in list_sessions()}
    print(
        f"demo: {arguments['plan']} on a simulated {arguments['robot']}, planner {arguments['planner']}, "
        f"{arguments['rate']} times real time; the nodes' output is in {log}",
        flush=True,  # before what run_plan prints, in a pipe too
    )
    if arguments["participant"] == "human" and arguments.get("button", "keyboard") == "keyboard":
        print(
            f"demo: for the button, in another terminal: ROS_MASTER_URI={demo.master} ./run rosrun iter_runner button",
            flush=True,
        )
    code = demo.run()
    made: List[Session] = [session for session in list_sessions() if session.name not in before]
    if not made:
        if demo.failed_early():
            print(f"demo: the launch failed; the end of {log}:\n{demo.log_tail()}", file=sys.stderr)
        elif demo.interrupted:
            print("demo: interrupted before the run began", file=sys.stderr)
        return 1
    try:
        for session in made[-1:]:
            print()
            print_report(summarise_session(session))
            print(f"\nAgain: ./run rosrun iter_runner report {session.directory}")
    except SessionError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return code
