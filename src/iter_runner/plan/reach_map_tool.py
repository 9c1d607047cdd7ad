"""``rosrun iter_runner reach_map``: a picture of where a robot reaches, with a plan's poses on it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.kinematics import Box, Chain, ClosedFormIK, GeometryError, load_chain
from iter_runner.kinematics.reach import draw_reach_map, reach_counts
from iter_runner.kinematics.rotations import matrix_to_rpy, rpy_to_matrix
from iter_runner.plan.frames import FrameError
from iter_runner.plan.model import PlanError
from iter_runner.robot.table import RobotError, load_robot

Array = NDArray[np.float64]
MARGIN = 0.1


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Draws the map. Returns the exit code: 0, 1 for bad input, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="reach_map",
        description="Draws, for a horizontal slice and an orientation of the flange, how many of the arm's branches "
        "(up to eight) reach each cell within the joint limits and without the arm touching itself.",
    )
    parser.add_argument("--robot", default="ur5", help="a robot of the table, or the path of a row (default ur5)")
    parser.add_argument("--plan", help="a JSON file, or the name of one in plans/, whose poses and obstacles are drawn")
    parser.add_argument("--tool-frame", metavar="FRAME", help="of the plan's poses, where it names none")
    parser.add_argument(
        "--height", type=float, metavar="M", help="of the flange above the base (default: the plan's median, or 0.2)"
    )
    parser.add_argument(
        "--rpy",
        type=float,
        nargs=3,
        metavar=("ROLL", "PITCH", "YAW"),
        help="of the flange in the base, degrees (default: the orientation of the plan's first pose, or the hand down)",
    )
    parser.add_argument(
        "--step",
        type=float,
        metavar="M",
        help="size of a cell (default 0.01, or 0.025 of an arm without a closed form, whose map takes a while)",
    )
    parser.add_argument("--output", default="reach_map.png", metavar="FILE", help="default reach_map.png")
    options = parser.parse_args(arguments)
    if options.step is not None and not 1e-3 <= options.step <= 1:
        parser.error(f"--step: 0.001 to 1 m expected, found {options.step:g}")
    if any(not np.isfinite(value) for value in [options.height or 0.0, *(options.rpy or [])]):
        parser.error("--height and --rpy: finite numbers expected")
    if not Path(options.output).suffix or Path(options.output).is_dir():
        parser.error(f"--output {options.output}: expected a picture's file, such as reach_map.png, .svg or .pdf")
    try:
        print(_draw(options))
    except (RobotError, FrameError, GeometryError, OSError, ValueError) as error:
        print(f"reach_map: {error}", file=sys.stderr)
        return 1
    except PlanError as error:
        print(f"reach_map: {options.plan}: {error}", file=sys.stderr)
        return 1
    return 0


def _draw(options: argparse.Namespace) -> str:
    robot = load_robot(options.robot)
    chain = load_chain(robot)
    flanges, rectangles = _of_plan(options, robot) if options.plan else (np.empty((0, 4, 4)), [])
    height = options.height
    if height is None:
        height = float(np.median(flanges[:, 2, 3])) if len(flanges) else 0.2
    if options.rpy is not None:
        rotation = rpy_to_matrix(np.radians(options.rpy))
    else:
        rotation = flanges[0, :3, :3] if len(flanges) else rpy_to_matrix([np.pi, 0, 0])
    step = options.step or _standard_step(chain)
    reach = _longest_reach(chain) + MARGIN
    count = max(3, 2 * int(np.ceil(reach / step)) + 1)
    cells = np.linspace(-reach, reach, count)
    counts = reach_counts(chain, rotation, height, cells, cells)
    angles = " ".join(f"{angle:.0f}" for angle in np.degrees(matrix_to_rpy(rotation)) + 0.0)
    title = f"{robot.title}: {chain.tip} {height:.3f} m above {chain.base}\nturned {angles}° (roll, pitch, yaw)"
    draw_reach_map(options.output, counts, cells, cells, title, flanges[:, :3, 3], rectangles)
    area = float(np.count_nonzero(counts)) * (cells[1] - cells[0]) ** 2
    best = float(np.count_nonzero(counts == counts.max())) * (cells[1] - cells[0]) ** 2
    return f"{options.output}: {area:.3f} m² within reach, {best:.3f} m² of it by {counts.max()} branches"


def _of_plan(options: argparse.Namespace, robot: Any) -> Tuple[Array, List[Tuple[str, Array]]]:
    """The plan's flange poses (N, 4, 4) and its obstacles' outlines, in the robot's base."""
    from iter_runner.plan.check import Workcell
    from iter_runner.plan.load import load_plan
    from iter_runner.primitives import REGISTRY

    plan = load_plan(options.plan, REGISTRY)
    workcell = Workcell(plan, robot, plan.tool_frame or options.tool_frame or robot.tool_frame)
    flanges = [
        workcell.flange(position, orientation)
        for planned in plan.steps
        for _, position, orientation in planned.step.poses()
    ]
    rectangles = []
    for box in workcell.obstacles:
        if not isinstance(box, Box):
            continue
        pose, half = np.asarray(box.pose, dtype=np.float64), np.asarray(box.size, dtype=np.float64) / 2
        corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * half
        rectangles.append((box.name, (corners @ pose[:3, :3].T + pose[:3, 3])[:, :2]))
    return np.array(flanges).reshape(-1, 4, 4), rectangles


def _standard_step(chain: Chain) -> float:
    """The size of a cell that makes a picture in seconds, m."""
    try:
        ClosedFormIK(chain)
    except GeometryError:
        return 0.025
    return 0.01


def _longest_reach(chain: Chain) -> float:
    """How far the tip can be from the base's origin at most: the sum of the links' lengths, m."""
    frames = chain.frames(np.zeros(len(chain)))
    ends = [*frames[1:, :3, 3], chain.fk(np.zeros(len(chain)))[:3, 3]]
    return float(sum(np.linalg.norm(b - a) for a, b in zip(ends[:-1], ends[1:])))
