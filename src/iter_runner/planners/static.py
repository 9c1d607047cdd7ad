"""The planner ``static``: the whole path first, then one trajectory for the driver to follow."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar, Optional, Sequence

import numpy as np

from iter_runner.kinematics import AttachedBody, Obstacle, RelaxedIK
from iter_runner.planners.arrival import Arrival
from iter_runner.planners.base import MoveGoal, Planner
from iter_runner.planners.options import MoveOptions, read_options
from iter_runner.planners.profile import Profile
from iter_runner.planners.routes import BRANCH_JUMP, NoLine, Route, Router
from iter_runner.robot.arm import Arm, JointPath, Vector
from iter_runner.run_control import RunControl

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain
    from iter_runner.robot.table import Robot

SAMPLE_RATE = 50.0
"""Points a second of the trajectory that is sent; the controller interpolates between them by cubics."""
STRAY = (0.01, 0.05)
"""m and rad that RelaxedIK's path may leave the line before the exact one replaces it."""


class StaticPlanner(Planner):
    """See :class:`iter_runner.planners.base.Planner`.

    The flange's straight line is solved by RelaxedIK from end to end and timed by TOPP-RA within the joints' limits of
    speed and acceleration. Where the arm can't follow the line, the way is straight in joint space.
    """

    name: ClassVar[str] = "static"

    def __init__(self, robot: Robot, chain: Chain, obstacles: Sequence[Obstacle] = ()) -> None:
        self._robot = robot
        self._chain = chain
        self._router = Router(robot, chain)
        self.update_scene(obstacles)

    def update_scene(self, obstacles: Sequence[Obstacle], attached: Sequence[AttachedBody] = ()) -> None:
        """See :class:`iter_runner.planners.base.Planner`."""
        self._router.update_scene(obstacles, attached)
        self._solver = RelaxedIK(self._router.chain, weights=self._robot.objectives, obstacles=list(obstacles))

    def preview(self, start: Vector, goal: MoveGoal) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`."""
        options = read_options(goal.options)
        start = np.array(start, dtype=np.float64)
        routes = self._router.routes(start, goal.flange)
        if float(np.max(np.abs(routes[-1].joints[-1] - start))) < 1e-9:
            return JointPath(start[None, :], np.zeros(1))
        times, positions = [np.zeros(1)], [start[None, :]]
        for route in routes:
            part_times, part_positions = self._profile(route, options).sample(1.0 / SAMPLE_RATE)
            part_positions[-1] = route.joints[-1]
            times.append(times[-1][-1] + part_times[1:])
            positions.append(part_positions[1:])
        return JointPath(np.concatenate(positions), np.concatenate(times))

    def _profile(self, route: Route, options: MoveOptions) -> Profile:
        relaxed = self._relaxed(route)
        if relaxed is not None:
            with contextlib.suppress(NoLine):
                return self._router.profile(relaxed, options)
        return self._router.profile(route, options)

    def _relaxed(self, route: Route) -> Optional[Route]:
        """The line as RelaxedIK follows it, ending exactly at the goal; None where it strays, or meets something."""
        if route.line is None:
            return None
        poses = route.line.poses(np.linspace(0.0, 1.0, len(route.joints))[1:])
        self._solver.reset(route.joints[0])
        joints = np.vstack([route.joints[:1], self._solver.solve_path(poses)])
        reached = self._chain.fk(joints[1:])
        distance = np.linalg.norm(reached[:, :3, 3] - poses[:, :3, 3], axis=1)
        turn = np.linalg.norm(reached[:, :3, :3] - poses[:, :3, :3], axis=(1, 2)) / np.sqrt(2.0)  # of small angles
        jump = np.max(np.abs(np.diff(joints, axis=0)))
        missing = route.joints[-1] - joints[-1]
        if (
            np.max(distance) > STRAY[0]
            or np.max(turn) > STRAY[1]
            or jump > BRANCH_JUMP
            or np.max(np.abs(missing)) > 0.1
        ):
            return None
        # What is missing at the end is made up for along the way, smoothly.
        phase = np.linspace(0.0, 1.0, len(joints))[:, None]
        joints = joints + phase**2 * (3.0 - 2.0 * phase) * missing
        joints[-1] = route.joints[-1]
        if not self._router.clear(joints):
            return None
        return Route(route.line, joints)

    def move(self, arm: Arm, start: Vector, goal: MoveGoal, control: RunControl) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`."""
        with self.planning():
            path = self.preview(start, goal)
        control.wait_while_paused()
        if len(path.times) > 1:
            arm.follow(path, control)
        Arrival(self._chain, path.positions[-1]).wait(arm, control)
        return path
