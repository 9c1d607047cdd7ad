"""A double of moveit_commander: the same classes, signatures and return shapes, by release; plans by our own core.

It refuses what the real one refuses, in the same way: by an exception, a False, an error code, or no more than a line
in move_group's log (``node.log``). A test starts ``move_group`` by setting ``MoveGroupNode.running``.
"""

from __future__ import annotations

from .commander import (
    MelodicMoveGroupCommander,
    MoveGroupCommander,
    MoveItCommanderException,
    NewNoeticMoveGroupCommander,
    PlanningSceneInterface,
    RobotCommander,
    roscpp_initialize,
    roscpp_shutdown,
)
from .node import MoveGroupNode

__all__ = [
    "MelodicMoveGroupCommander",
    "MoveGroupCommander",
    "MoveGroupNode",
    "MoveItCommanderException",
    "NewNoeticMoveGroupCommander",
    "PlanningSceneInterface",
    "RobotCommander",
    "roscpp_initialize",
    "roscpp_shutdown",
]
