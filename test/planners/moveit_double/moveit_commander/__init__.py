"""A double of moveit_commander: the same classes, signatures and return shapes, by release; plans by our own core.

It refuses what the real one refuses, in the same way: by an exception, a False, an error code, or no more than a line
in move_group's log (``node.log``). A test starts ``move_group`` by setting ``MoveGroupNode.running``, or for nodes of
its own by the environment variable ITER_RUNNER_MOVEIT_DOUBLE: a robot's row.
"""

from __future__ import annotations

import os

from .commander import (
    MelodicMoveGroupCommander,
    MelodicPlanningSceneInterface,
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
    "MelodicPlanningSceneInterface",
    "MoveGroupCommander",
    "MoveGroupNode",
    "MoveItCommanderException",
    "NewNoeticMoveGroupCommander",
    "PlanningSceneInterface",
    "RobotCommander",
    "roscpp_initialize",
    "roscpp_shutdown",
]

if "ITER_RUNNER_MOVEIT_DOUBLE" in os.environ:
    MoveGroupNode.running = MoveGroupNode.of(os.environ["ITER_RUNNER_MOVEIT_DOUBLE"])
