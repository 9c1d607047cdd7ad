"""``./run demo``: the house on a simulated arm with a simulated participant, from one command.

Arguments are main.launch's, e.g. ``robot:=ur3e planner:=static rate:=1 rviz:=true plan:=my_plan.json``. The exit code
is 0 where the plan finished, 1 where it did not.
"""

from __future__ import annotations

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

SHUTDOWN_TIME = 20.0
"""Seconds of wall time that roslaunch gets to end its nodes."""

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
    return arguments


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
        self._failed_early = False

    def run(self) -> int:
        """Starts everything, runs the plan, ends everything; returns run_plan's exit code."""
        with self._log.open("w", encoding="utf-8") as output:
            # Its own session: Ctrl-C reaches run_plan, which stops the run and says how it ended.
            self._launch = subprocess.Popen(
                self._launch_command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        try:
            if not self._master_is_up():
                self._failed_early = True
                return 1
            tool = subprocess.Popen(tool_command(self._arguments), env=self._environment)
            while True:
                try:
                    return tool.wait(timeout=0.2)
                except subprocess.TimeoutExpired:
                    if self._launch.poll() is not None:
                        self._failed_early = True
                        tool.send_signal(signal.SIGINT)
                        return tool.wait()
        finally:
            self._end_launch()

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
        while self._launch.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex((host, port)) == 0:
                    return True
            time.sleep(0.1)
        return False

    def _end_launch(self) -> None:
        launch = self._launch
        if launch is None or launch.poll() is not None:
            return
        launch.send_signal(signal.SIGINT)
        try:
            launch.wait(SHUTDOWN_TIME)
        except subprocess.TimeoutExpired:
            os.killpg(launch.pid, signal.SIGKILL)
            launch.wait()


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
        check_launch(arguments)
    except LaunchError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    if arguments.get("sessions"):
        os.environ["ITER_RUNNER_SESSIONS"] = arguments["sessions"]
    log = Path(os.environ.get("ROS_LOG_DIR") or Path(os.environ.get("ROS_HOME") or Path.home() / ".ros") / "log")
    log = log / f"iter_runner_demo_{os.getpid()}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    before = {session.name for session in list_sessions()}
    print(
        f"demo: {arguments['plan']} on a simulated {arguments['robot']}, planner {arguments['planner']}, "
        f"{arguments['rate']} times real time; the nodes' output is in {log}"
    )
    signal.signal(signal.SIGINT, lambda *_: None)  # run_plan's to handle
    demo = Demo(arguments, log)
    code = demo.run()
    made: List[Session] = [session for session in list_sessions() if session.name not in before]
    if not made:
        if demo.failed_early():
            print(f"demo: the launch failed; the end of {log}:\n{demo.log_tail()}", file=sys.stderr)
        return 1
    try:
        for session in made[-1:]:
            print()
            print_report(summarise_session(session))
            print(f"\nThe record is in {session.directory}; `rosrun iter_runner report --last` prints this again.")
    except SessionError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return code
