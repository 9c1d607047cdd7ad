"""A node's first act."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

import rosgraph
import rospy
from rospy.exceptions import ROSInitException

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when whoever started it ends."""
LAUNCHERS = ("roslaunch", "rostest")


def end_with_roslaunch() -> None:
    """Has the kernel end this process (SIGTERM) when the roslaunch that started it is killed; nothing elsewhere.

    A roslaunch that ends by itself ends its nodes; one that is killed leaves them, and an arm that moves on while
    nobody sees what it does.
    """
    launcher = os.getppid()
    try:
        command = Path(f"/proc/{launcher}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):  # no Linux
        return
    if not any(Path(word).name in LAUNCHERS for word in command[:2]):  # the interpreter, and its script
        return
    # Not SIGINT, which shells have their background jobs ignore, and with them all that these start.
    prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != launcher:  # it was killed meanwhile
        os.kill(os.getpid(), signal.SIGTERM)


def require_master(name: str) -> None:
    """Ends the program with one line and exit code 1 where there is no ROS master: rospy would try for ever."""
    if not rosgraph.is_master_online():
        print(
            f"{name}: no ROS master at {rosgraph.get_master_uri()}; start everything with "
            "`roslaunch iter_runner main.launch`, or look at ROS_MASTER_URI",
            file=sys.stderr,
        )
        sys.exit(1)


def start_node(name: str) -> None:
    """Registers the node, and waits for the clock where it is simulated.

    Whoever is told to end meanwhile (Ctrl-C while everything comes up) ends, with exit code 0 and no traceback; without
    a ROS master it ends with exit code 1.
    """
    end_with_roslaunch()
    require_master(name)
    try:
        rospy.init_node(name)
    except ROSInitException:
        if rospy.is_shutdown():
            sys.exit(0)
        raise
