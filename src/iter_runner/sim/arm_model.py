"""The controller's model of a row of the robots' table: its limits and its kinematics."""

from __future__ import annotations

import contextlib
import math
from typing import List, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics import Chain, ChainError, ClosedFormIK, GeometryError, load_chain
from iter_runner.kinematics.rotations import inverse
from iter_runner.kinematics.urdf import Urdf, read_urdf
from iter_runner.robot.table import Robot, robot_driver, robot_urdf
from iter_runner.sim.arm_controller import ArmModel

Matrix = NDArray[np.float64]

BASE_FROM_BASE_LINK: Matrix = np.diag([-1.0, -1.0, 1.0, 1.0])
"""A UR controller's own frame, ``base``, is ``base_link`` turned half about z; the matrix is its own inverse."""

TURN = 2.0 * math.pi

DRIVE_RESERVE = 2.0
"""How much more acceleration the drives have than the row lets planners ask for."""


class ClosedFormKinematics:
    """See :class:`iter_runner.sim.controller.Kinematics`."""

    def __init__(self, chain: Chain) -> None:
        """``chain``: from ``base_link`` to ``tool0``. Raises GeometryError where it has no closed form."""
        self._chain = chain
        self._solver = ClosedFormIK(chain)
        self._lower = chain.lower
        self._upper = chain.upper

    def forward(self, q: Sequence[float]) -> Matrix:
        """See :class:`iter_runner.sim.controller.Kinematics`."""
        return BASE_FROM_BASE_LINK @ self._chain.fk(q)

    def inverse(self, flange: Matrix, near: Sequence[float]) -> Optional[List[float]]:
        """See :class:`iter_runner.sim.controller.Kinematics`."""
        solutions, exact = self._solver.solve(BASE_FROM_BASE_LINK @ flange)
        if not exact.any():
            return None
        q = solutions[exact]
        q = q + np.rint((np.asarray(near) - q) / TURN) * TURN  # every joint turns twice: the nearest turn
        q = np.where(q > self._upper, q - TURN, np.where(q < self._lower, q + TURN, q))
        q = q[((q >= self._lower) & (q <= self._upper)).all(axis=1)]
        if not len(q):
            return None
        best = int(np.argmin(((q - near) ** 2).sum(axis=1)))
        return q[best].tolist()


def arm_model(robot: Robot, chain: Optional[Chain] = None) -> ArmModel:
    """The controller's model of a row: its limits, and for a UR with a closed form its inverse kinematics.

    ``chain`` is the row's chain, where the caller has it already.
    """
    if chain is None:
        chain = load_chain(robot)
    joints = read_urdf(robot_urdf(robot)).joints
    endless = [joints[name].kind == "continuous" for name in chain.joint_names]  # as far as the arm is concerned
    kinematics: Optional[ClosedFormKinematics] = None
    if robot_driver(robot).interface == "ur":
        with contextlib.suppress(GeometryError):
            kinematics = ClosedFormKinematics(chain)
    return ArmModel(
        joint_names=tuple(chain.joint_names),
        lower=tuple(np.where(endless, -np.inf, chain.lower).tolist()),
        upper=tuple(np.where(endless, np.inf, chain.upper).tolist()),
        velocity_limits=tuple(chain.velocity_limits.tolist()),
        cycle=1.0 / robot.control_rate,
        kinematics=kinematics,
        flange=chain.fk,
        acceleration_limits=tuple(DRIVE_RESERVE * value for value in robot.limits.acceleration),
    )


def frame_pose(urdf: Urdf, frame: str, base: str) -> Matrix:
    """(4, 4) pose in ``base`` of a frame that is fixed to it.

    Raises:
        ChainError: there is no such frame, or a joint moves it.
    """
    to_root = []
    for link in (base, frame):
        if link not in urdf.links:
            raise ChainError(f"no frame '{link}'; there are {', '.join(urdf.links)}")
        pose = np.eye(4)
        joint = urdf.parent_joint(link)
        while joint is not None:
            if joint.kind != "fixed":
                raise ChainError(f"frame '{link}' moves with joint {joint.name}; a frame fixed to '{base}' expected")
            pose = joint.origin @ pose
            joint = urdf.parent_joint(joint.parent)
        to_root.append(pose)
    return inverse(to_root[0]) @ to_root[1]
