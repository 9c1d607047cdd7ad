"""The planner ``static``: the whole path first, then one trajectory for the driver to follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Optional, Sequence

import numpy as np

from iter_runner.kinematics import RelaxedIK
from iter_runner.planners.arrival import Arrival
from iter_runner.planners.base import MoveGoal, Planner
from iter_runner.planners.line import pose_error
from iter_runner.planners.options import read_options
from iter_runner.planners.routes import BRANCH_JUMP, NoLine, Route, Router
from iter_runner.robot.arm import Arm, JointPath, Vector
from iter_runner.run_control import RunControl

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain
    from iter_runner.robot.table import Robot

SAMPLE_RATE = 50.0
"""Points a second of the trajectory that is sent; the controller interpolates between them by cubics."""
OFF_LINE = (0.01, 0.05)
"""m and rad that RelaxedIK's path may leave the line, and correct at its end, before the exact one replaces it."""


class StaticPlanner(Planner):
    """See :class:`iter_runner.planners.base.Planner`.

    The flange's straight line is solved by RelaxedIK from end to end and timed by TOPP-RA within the joints' limits of
    speed and acceleration. Where the arm can't follow the line, the way is straight in joint space.
    """

    name: ClassVar[str] = "static"

    def __init__(self, robot: Robot, chain: Chain, obstacles: Sequence[Any] = ()) -> None:
        self._chain = chain
        self._router = Router(robot, chain, obstacles)
        self._solver = RelaxedIK(chain, weights=robot.objectives, obstacles=list(obstacles))

    def preview(self, start: Vector, goal: MoveGoal) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`."""
        options = read_options(goal.options)
        start = np.array(start, dtype=np.float64)
        route = self._router.route(start, goal.flange)
        if float(np.max(np.abs(route.joints[-1] - start))) < 1e-9:
            return JointPath(start[None, :], np.zeros(1))
        relaxed = self._relaxed(route)
        if relaxed is not None:
            try:
                profile = self._router.profile(relaxed, options)
            except NoLine:
                profile = self._router.profile(route, options)
        else:
            profile = self._router.profile(route, options)
        times, positions = profile.sample(1.0 / SAMPLE_RATE)
        positions[0], positions[-1] = start, route.joints[-1]
        return JointPath(positions, times)

    def _relaxed(self, route: Route) -> Optional[Route]:
        """The line as RelaxedIK follows it, ending exactly at the goal; None where it strays."""
        if route.line is None:
            return None
        count = len(route.joints) - 1
        self._solver.reset(route.joints[0])
        joints = [route.joints[0]]
        for k in range(1, count + 1):
            pose = route.line.pose(k / count)
            q = np.array(self._solver.solve(pose))
            distance, turn = pose_error(self._chain.fk(q), pose)
            if distance > OFF_LINE[0] or turn > OFF_LINE[1] or np.max(np.abs(q - joints[-1])) > BRANCH_JUMP:
                return None
            joints.append(q)
        # What is missing at the end is made up for along the way, smoothly.
        phase = np.linspace(0.0, 1.0, count + 1)[:, None]
        return Route(route.line, np.array(joints) + phase**2 * (3.0 - 2.0 * phase) * (route.joints[-1] - joints[-1]))

    def move(self, arm: Arm, start: Vector, goal: MoveGoal, control: RunControl) -> JointPath:
        """See :class:`iter_runner.planners.base.Planner`."""
        path = self.preview(start, goal)
        control.wait_while_paused()
        if len(path.times) > 1:
            arm.follow(path, control)
        Arrival(self._chain, path.positions[-1]).wait(arm, control)
        return path
