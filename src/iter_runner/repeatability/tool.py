"""``rosrun iter_runner repeatability``: how much the motions of one plan differ from run to run, planner by planner."""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from iter_runner.plan import Plan, PlanError, load_plan
from iter_runner.plan.frames import FrameError
from iter_runner.planners.table import PlannerError, check_fit, planner_class
from iter_runner.repeatability.comparison import Comparison, compare
from iter_runner.repeatability.rehearsal import Rehearsal, recording, rehearse
from iter_runner.robot.table import Robot, RobotError, load_robot
from iter_runner.run_control import Fault
from iter_runner.study.report_view import report_console

PLANNERS = ("relaxed_ik", "static", "ur", "ompl", "replay")
"""What is compared where the user does not say; of these, those that fit the robot."""


class ToolError(Exception):
    """Nothing can be measured; the message says why."""


@dataclass(frozen=True)
class Variant:
    """One row of the table.

    Attributes:
        label: what it is called.
        planner: its planner.
        settings: the planner's.
        replayed: the row whose first finished run the planner ``replay`` repeats.
    """

    label: str
    planner: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    replayed: Optional[Variant] = None


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the tool; the exit code: 0 measured, 1 can't be measured, 2 wrong usage."""
    parser = argparse.ArgumentParser(
        prog="repeatability",
        description="Runs a plan again and again on the simulated arm, every wait answered at once, planner by "
        "planner, and compares the commanded motions: one table, one figure.",
    )
    parser.add_argument("plan", metavar="PLAN", help="a JSON file, or the name of one in plans/")
    parser.add_argument("--robot", default="ur5", help="a row, or the path of one (default: %(default)s)")
    parser.add_argument(
        "--planners",
        metavar="NAME,NAME",
        help=f"what to compare (default: of {','.join(PLANNERS)} what fits the robot); replay repeats the first run of "
        "the planner named before it",
    )
    parser.add_argument("--runs", type=_count, default=20, help="of each planner (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="also runs ompl with this seed, with which it repeats: a row more"
    )
    parser.add_argument(
        "--out", metavar="FILE", default="repeatability.png", help="the figure: .png, .pdf, .svg (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=_count, default=os.cpu_count() or 1, help="runs at a time (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="for programs: one JSON object in place of the table")
    options = parser.parse_args(arguments)
    try:
        plan, robot, variants = _prepare(options)
        results = _measure(plan, robot, options, variants)
        comparisons = [compare(variant.label, results[variant.label]) for variant in variants]
        if not any(comparison.finished for comparison in comparisons):
            reasons = [f"{row.planner}: {reason}" for row in comparisons for reason in row.failures]
            raise ToolError("no run of any planner finished: " + "; ".join(reasons))
        _draw(plan, robot, options, results, comparisons)
    except ToolError as error:
        print(f"repeatability: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps([_plain(comparison) for comparison in comparisons], indent=2))
    else:
        _print(comparisons, options)
    return 0


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 expected, {text!r} found")
    return value


def _prepare(options: argparse.Namespace) -> Tuple[Plan, Robot, List[Variant]]:
    try:
        robot = load_robot(options.robot)
        plan = _load(options.plan)
        if options.planners:
            names = [name.strip() for name in options.planners.split(",") if name.strip()]
        else:
            names = [name for name in PLANNERS if name in robot.planners]
        for name in names:
            check_fit(robot, name)
        variants = _variants(names, options.seed)
        if options.seed is not None:
            check_fit(robot, "ompl")
    except PlanError as error:
        count = len(error.faults)
        raise ToolError(
            f"{options.plan}: {count} fault{'s' if count != 1 else ''}, which check_plan lists; the first: "
            f"{error.faults[0]}"
        ) from error
    except (RobotError, PlannerError) as error:
        raise ToolError(str(error)) from error
    if not any(planned.step.name == "move" for planned in plan.steps):
        raise ToolError(f"{options.plan}: the plan has no move that could be compared")
    folder = Path(options.out).expanduser().resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ToolError(f"--out {options.out}: {folder} is no folder that can be written to")
    if Path(options.out).suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ToolError(f"--out {options.out}: a file that ends in .png, .pdf or .svg expected")
    return plan, robot, variants


def _variants(names: Sequence[str], seed: Optional[int]) -> List[Variant]:
    """The rows for planners by name. Raises ToolError."""
    variants: List[Variant] = []
    for name in dict.fromkeys(names):
        if name != "replay":
            variants.append(Variant(name, name))
        elif variants and planner_class(variants[-1].planner).sends != "program":
            variants.append(Variant(f"replay of {variants[-1].label}", name, replayed=variants[-1]))
        else:
            before = variants[-1].label if variants else "nothing"
            raise ToolError(
                f"--planners {','.join(names)}: replay repeats a run of the planner named before it, and that is "
                f"{before}; a planner whose joint paths are recorded expected, e.g. ompl,replay"
            )
    if seed is not None:
        variants.append(Variant(f"ompl, seed {seed}", "ompl", {"planner_seed": seed}))
    if not variants:
        raise ToolError("--planners: the name of a planner expected, none found")
    return variants


def _load(name: str) -> Plan:
    from iter_runner.primitives import REGISTRY

    return load_plan(name, REGISTRY)


def _rehearse(plan: str, robot: str, planner: str, settings: Mapping[str, Any]) -> Rehearsal:
    row = load_robot(robot)
    try:
        if planner == "moveit":
            from iter_runner.robot.ros_moveit import become_node

            become_node(row)
        return rehearse(_load(plan), row, planner, settings)
    except Fault as error:  # of a planner that can't begin; this one travels between processes
        raise ToolError(f"{planner}: {error.message}") from error


def _measure(
    plan: Plan, robot: Robot, options: argparse.Namespace, variants: Sequence[Variant]
) -> Dict[str, List[Rehearsal]]:
    """Every run in a process that may be another: what differs between processes differs between a study's sessions."""
    # Forked processes would share the state of their random numbers.
    context = multiprocessing.get_context("spawn")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    results: Dict[str, List[Rehearsal]] = {}
    with ProcessPoolExecutor(options.jobs, context) as pool, Progress(
        *columns, console=Console(stderr=True)
    ) as progress:
        for variant in variants:
            settings = dict(variant.settings)
            if variant.replayed is not None:
                finished = [run for run in results[variant.replayed.label] if not run.failure]
                if not finished:
                    results[variant.label] = []
                    continue
                settings["replay"] = recording(finished[0], plan, robot, variant.replayed.planner)
            task = progress.add_task(variant.label, total=options.runs)
            futures = [
                pool.submit(_rehearse, options.plan, options.robot, variant.planner, settings)
                for _ in range(options.runs)
            ]
            try:
                for _ in as_completed(futures):
                    progress.advance(task)
                results[variant.label] = [future.result() for future in futures]
            except (FrameError, PlannerError, RobotError) as error:
                pool.shutdown(wait=False)
                raise ToolError(str(error)) from error
            except BrokenProcessPool as error:
                raise ToolError(
                    "a process that ran the plan was killed: was there enough memory? Try --jobs 1"
                ) from error
    return results


def _draw(
    plan: Plan,
    robot: Robot,
    options: argparse.Namespace,
    results: Mapping[str, Sequence[Rehearsal]],
    comparisons: Sequence[Comparison],
) -> None:
    from iter_runner.repeatability.figure import draw

    title = f"{plan.title or options.plan} on {robot.name}: {options.runs} runs of each planner"
    try:
        draw(title, results, comparisons, Path(options.out).expanduser())
    except OSError as error:
        raise ToolError(f"--out {options.out}: {error.strerror or error}") from error


def _print(comparisons: Sequence[Comparison], options: argparse.Namespace) -> None:
    console = report_console(150)
    table = Table(title="Motions of one plan from run to run")
    for heading in (
        "planner", "equal runs", "max joint\ndeviation (rad)", "mean joint\ndeviation (rad)",
        "tools apart\nat most (mm)", "tool path (m)", "joint travel (rad)", "in motion (s)", "planning (s)", "failed",
    ):  # fmt: skip
        table.add_column(heading, justify="left" if heading == "planner" else "right")
    for row in comparisons:
        table.add_row(
            row.planner,
            f"{row.identical} of {row.runs}",
            _number(row.maximum_deviation, ".4f"),
            _number(row.mean_deviation, ".4f"),
            _number(1e3 * row.tool_spread, ".1f"),
            _number(row.path_length, ".2f"),
            _number(row.joint_travel, ".1f"),
            _number(row.motion_time, ".1f"),
            _number(row.planning_time, ".2f"),
            str(row.runs - row.finished),
        )
    console.print(table)
    for row in comparisons:
        for reason, count in row.failures.items():
            console.print(f"{row.planner}: {count} of {row.runs} runs failed: {reason}", soft_wrap=True)
    console.print(
        "Equal: every commanded joint position of every move, to 1e-9 rad. Deviations: between two runs at the same\n"
        "share of a move's duration. Path, travel, motion, planning: sums over a run's moves, means over the runs."
    )
    console.print(f"figure: {Path(options.out).expanduser().resolve()}", soft_wrap=True)


def _number(value: float, form: str) -> str:
    return "0" if value == 0.0 else "-" if math.isnan(value) else format(value, form)


def _plain(comparison: Comparison) -> Dict[str, Any]:
    def finite(value: Any) -> Any:
        return None if isinstance(value, float) and math.isnan(value) else value

    plain = {name: finite(value) for name, value in asdict(comparison).items() if name != "moves"}
    moves = [
        {
            "key": move.key,
            "runs": move.runs,
            "equal": move.equal,
            "maximum_deviation": float(move.joint_range.max()),
            "mean_deviation": move.mean_deviation,
            "tool_spread": move.tool_spread,
        }
        for move in comparison.moves
    ]
    return {**plain, "finished": comparison.finished, "moves": moves}
