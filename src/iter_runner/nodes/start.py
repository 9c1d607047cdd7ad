"""A node's first act."""

from __future__ import annotations

import sys

import rospy
from rospy.exceptions import ROSInitException


def start_node(name: str) -> None:
    """Registers the node, and waits for the clock where it is simulated.

    Whoever is told to end meanwhile (Ctrl-C while everything comes up) ends, with exit code 0 and no traceback.
    """
    try:
        rospy.init_node(name)
    except ROSInitException:
        if rospy.is_shutdown():
            sys.exit(0)
        raise
