"""The simulator's arm in this process, with a memory of where it has been."""

from __future__ import annotations

from typing import List, Tuple

import numpy as np

from iter_runner.kinematics import Chain
from iter_runner.robot.arm import Vector
from iter_runner.robot.table import Robot
from iter_runner.sim import workcell_arm


class WorkcellArm(workcell_arm.WorkcellArm):
    """See there.

    Attributes:
        history: (time, joints) of every controller cycle.
    """

    def __init__(self, robot: Robot, chain: Chain, start: Vector) -> None:
        super().__init__(robot, chain, start)
        self.history: List[Tuple[float, Vector]] = []
        self.on_cycle = lambda: self.history.append((self.now(), np.array(self.controller.q)))
