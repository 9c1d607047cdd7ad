"""Between a plan's poses and the chain's: ``frame_id`` and ``tool_frame`` are fixed frames of the robot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics.rotations import angle_between, inverse, matrix_to_quaternion, pose
from iter_runner.plan.frames import fixed_pose
from iter_runner.plan.step import Quaternion, Vector3
from iter_runner.primitives.context import ToolPose
from iter_runner.robot.table import Robot, robot_urdf

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class PlanFrames:
    """Where the plan's two frames are.

    Attributes:
        base_from_frame: (4, 4) pose of the plan's ``frame_id`` in the chain's base, m.
        tip_from_tool: (4, 4) pose of the plan's ``tool_frame`` in the chain's tip, m.
    """

    base_from_frame: Matrix
    tip_from_tool: Matrix

    def to_tip(self, tool: ToolPose) -> Matrix:
        """(4, 4) pose of the chain's tip in its base for a pose of the plan's tool frame in the plan's frame."""
        in_plan = pose(np.asarray(tool.position, dtype=float), np.asarray(tool.orientation, dtype=float))
        return self.base_from_frame @ in_plan @ inverse(self.tip_from_tool)

    def tip_of(self, position: Vector3, orientation: Quaternion) -> Matrix:
        """:meth:`to_tip` of a step's pose."""
        return self.to_tip(ToolPose(position.xyz, orientation.xyzw))

    def to_plan(self, tip: Matrix) -> ToolPose:
        """The inverse of :meth:`to_tip`."""
        in_plan = inverse(self.base_from_frame) @ tip @ self.tip_from_tool
        return ToolPose(
            position=[float(value) for value in in_plan[:3, 3]],
            orientation=[float(value) for value in matrix_to_quaternion(in_plan[:3, :3])],
        )


def pose_error(actual: Matrix, wanted: Matrix) -> Tuple[float, float]:
    """How far apart two poses (4, 4) are: m and rad."""
    distance = float(np.linalg.norm(actual[:3, 3] - wanted[:3, 3]))
    return distance, float(angle_between(actual[:3, :3], wanted[:3, :3]))


def plan_frames(robot: Robot, frame_id: str, tool_frame: str) -> PlanFrames:
    """The frames of a plan on a robot.

    Raises:
        FrameError: one of them is no link of the robot's URDF, or a joint is between it and where it belongs.
    """
    urdf = robot_urdf(robot)
    return PlanFrames(
        base_from_frame=fixed_pose(urdf, frame_id, robot.base_frame),
        tip_from_tool=fixed_pose(urdf, tool_frame, robot.tool_frame),
    )
