"""``rosrun iter_runner emulated_robotiq``: a gripper that is not there, to rehearse with the real driver."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, TextIO, Union

from iter_runner.gripper.emulated import EmulatedGripper
from iter_runner.gripper.emulated_serial import EmulatedPort
from iter_runner.gripper.emulated_urcap import EmulatedUrcap
from iter_runner.gripper.registers import FAULTS, describe_fault

Line = Union[EmulatedPort, EmulatedUrcap]

HELP = """\
unplug             pull the cable (the controller's network)
plug               put it in again
power off|on       the gripper's 24 V
object WIDTH|none  something of that width (m) between the fingers
hole WIDTH|none    something around them
fault N            give it a fault, 0 takes it away
damage N           the next N answers arrive damaged
swallow N          the next N answers do not arrive
status             what the gripper says
quit"""


class Stage:
    """What may happen to an emulated gripper, by a word.

    Args:
        gripper: it.
        line: what it hangs on.
    """

    def __init__(self, gripper: EmulatedGripper, line: Line) -> None:
        self._gripper = gripper
        self._line = line
        self._acts: Dict[str, Callable[[List[str]], str]] = {
            "unplug": lambda words: self._plug(words, False),
            "plug": lambda words: self._plug(words, True),
            "power": self._power,
            "object": lambda words: self._place(words, gripper.set_object_inside),
            "hole": lambda words: self._place(words, gripper.set_object_outside),
            "fault": self._fault,
            "damage": lambda words: self._count(words, line.damage),
            "swallow": lambda words: self._count(words, line.swallow),
            "status": lambda words: self.status(),
            "help": lambda words: HELP,
        }

    def act(self, text: str) -> str:
        """Does what a line of text says; what there is to say about it. Raises ValueError for what is no act."""
        word, *words = text.split() or ["help"]
        if word not in self._acts:
            raise ValueError(f"no {word!r}; there are:\n{HELP}")
        return self._acts[word](words)

    def status(self) -> str:
        """The gripper's state in a line."""
        if not self._gripper.powered:
            return "without power"
        status = self._gripper.look()
        going = status.obstruction.name.lower().replace("_", " ") if status.going else "not commanded"
        fault = describe_fault(status.fault) or "no fault"
        return f"activation {status.activation.name.lower()}, position {status.position}, {going}, {fault}"

    def _plug(self, words: List[str], there: bool) -> str:
        if words:
            raise ValueError(f"nothing more expected, {' '.join(words)!r} found")
        if there:
            self._line.plug_in()
            return "plugged in"
        self._line.unplug()
        return "unplugged"

    def _power(self, words: List[str]) -> str:
        if words not in (["on"], ["off"]):
            raise ValueError(f"on or off expected, {' '.join(words)!r} found")
        self._gripper.set_power(words == ["on"])
        return self.status()

    def _place(self, words: List[str], place: Callable[[Optional[float]], None]) -> str:
        try:
            (text,) = words
            width = None if text == "none" else float(text)
        except ValueError:
            raise ValueError(f"a width in m or none expected, {' '.join(words)!r} found") from None
        if width is not None and not 0.0 <= width <= 0.1:
            raise ValueError(f"a width of 0 to 0.1 m expected, {width:g} found")
        place(width)
        return self.status()

    def _fault(self, words: List[str]) -> str:
        def set_fault(fault: int) -> None:
            if fault and fault not in FAULTS:
                raise ValueError(f"one of 0, {', '.join(map(str, sorted(FAULTS)))} expected, {fault} found")
            self._gripper.set_fault(fault)

        self._count(words, set_fault)
        return self.status()

    @staticmethod
    def _count(words: List[str], use: Callable[[int], None]) -> str:
        if len(words) != 1 or not words[0].isdecimal():
            raise ValueError(f"a whole number expected, {' '.join(words)!r} found")
        use(int(words[0]))
        return "done"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the emulated gripper until it is told to end. Returns the exit code: 0, 1 for a port that can't be made."""
    parser = argparse.ArgumentParser(
        prog="emulated_robotiq",
        description="An emulated Robotiq 2F-85 for rehearsals without the hand: robotiq_85 can't tell the difference.",
        epilog=f"Lines on its standard input make things happen:\n{HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--port", metavar="PATH", type=Path, default=Path("/tmp/emulated_robotiq"), help="name of the port"
    )
    where.add_argument("--urcap", metavar="TCP_PORT", type=int, help="behind a URCap's socket instead; 63352 is usual")
    parser.add_argument("--object", metavar="WIDTH", help="something of that width (m) between the fingers")
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = parser.parse_args([word for word in words if not word.startswith("__")])  # roslaunch adds __name:=
    gripper = EmulatedGripper()
    line: Line = (
        EmulatedPort(gripper, options.port.absolute())
        if options.urcap is None
        else EmulatedUrcap(gripper, options.urcap)
    )
    stage = Stage(gripper, line)
    try:
        if options.object is not None:
            stage.act(f"object {options.object}")
        line.plug_in()
    except ValueError as error:
        parser.error(f"--object: {error}")
    except (OSError, OverflowError) as error:
        where_text = options.port if options.urcap is None else f"TCP port {options.urcap}"
        print(f"emulated_robotiq: can't make {where_text}: {error}", file=sys.stderr)
        return 1
    if isinstance(line, EmulatedPort):
        print(f"emulated_robotiq: on {line.link}; use gripper_driver:=serial gripper_port:={line.link}", flush=True)
    else:
        print(
            f"emulated_robotiq: on port {line.tcp_port} of this machine; use ~driver urcap, ~host 127.0.0.1", flush=True
        )
    told_to_end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told_to_end.set())
    threading.Thread(target=_listen, args=(stage, sys.stdin, told_to_end), daemon=True).start()
    told_to_end.wait()
    line.unplug()
    return 0


def _listen(stage: Stage, lines: TextIO, told_to_end: threading.Event) -> None:
    """Acts on lines until there are no more; ``quit`` ends the tool, an end of the input does not."""
    for line in lines:
        if line.strip() == "quit":
            told_to_end.set()
            return
        try:
            print(stage.act(line), flush=True)
        except (ValueError, OSError) as error:
            print(f"emulated_robotiq: {error}", file=sys.stderr, flush=True)
