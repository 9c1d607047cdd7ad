"""``rosrun iter_runner check_plan``: what is wrong in a plan, and what a robot can't do of it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

from iter_runner.plan.load import load_plan
from iter_runner.plan.model import Plan, PlanError, PlanFault, grouped, plan_hash

if TYPE_CHECKING:
    from iter_runner.scene import SceneObject


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Checks a plan. Returns the exit code: 0, 1 for a plan with faults (or no such robot), 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="check_plan",
        description="Checks a plan: its fields, and whether a robot reaches its poses within limits and clear of "
        "everything. One fault a line: JSON pointer, what was found, what is expected.",
    )
    parser.add_argument("plan", metavar="PLAN", help="a JSON file, or the name of one in plans/")
    parser.add_argument(
        "--robot", help="ur5, ur3e, ... or the path of a row; without it only the plan's fields are checked"
    )
    parser.add_argument(
        "--tool-frame", metavar="FRAME", help="of the poses, where the plan names none (the row's: tool0)"
    )
    parser.add_argument(
        "--planner",
        metavar="NAME",
        action="append",
        help="also plans every move as the run will, from the tucked pose on; may be repeated",
    )
    parser.add_argument(
        "--planner-seed", metavar="N", default="", help="of --planner ompl: the motions of a seeded run"
    )
    parser.add_argument(
        "--replay", metavar="SESSION", default="", help="of --planner replay: whose motions are looked at"
    )
    parser.add_argument(
        "--workcell", metavar="FILE", default="", help="what always stands around the arm: as workcell:= at launch"
    )
    parser.add_argument("--json", action="store_true", help="for programs: one JSON object")
    parser.add_argument("--verbose", action="store_true", help="every warning; every move's path hash, with --planner")
    options = parser.parse_args(arguments)
    if options.planner and not options.robot:
        parser.error("--planner needs --robot")
    if options.workcell and not options.robot:
        parser.error("--workcell needs --robot")
    for option, planner in (("planner_seed", "ompl"), ("replay", "replay")):
        if getattr(options, option) and planner not in (options.planner or []):
            parser.error(f"--{option.replace('_', '-')} belongs to --planner {planner}")
    try:
        report = _report(options)
        print(json.dumps(report, ensure_ascii=False, indent=2) if options.json else _text(report, options.verbose))
        sys.stdout.flush()
    except _Refused as error:
        print(f"check_plan: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `check_plan | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 1 if report["faults"] else 0


class _Refused(Exception):
    """There is nothing to check against."""


def _report(options: argparse.Namespace) -> Dict[str, Any]:
    from iter_runner.primitives import REGISTRY

    report: Dict[str, Any] = {"ok": False, "plan": options.plan, "robot": options.robot or ""}
    try:
        plan = load_plan(options.plan, REGISTRY)
    except PlanError as error:
        whole = _with_robots_faults(error, options)
        return {**report, "faults": _listed(whole.faults), "warnings": _listed(whole.warnings)}
    faults: List[PlanFault] = []
    warnings = list(plan.warnings)
    report.update(_numbers(plan))
    if options.robot:
        from iter_runner.plan.check import inspect_plan
        from iter_runner.planners.table import PlannerError
        from iter_runner.robot.table import RobotError
        from iter_runner.runner.planner_settings import planner_settings
        from iter_runner.scene import SceneError

        planners, settings = options.planner or [], {}
        try:
            for planner in planners:
                settings.update(planner_settings(planner, options.planner_seed, options.replay, plan, 0))
            result = inspect_plan(
                plan,
                options.robot,
                planners,
                options.tool_frame,
                surroundings=_surroundings(options),
                settings=settings,
            )
        except (RobotError, PlannerError, SceneError) as error:
            raise _Refused(str(error)) from error
        faults, warnings = result.faults, warnings + result.warnings
        report["paths"] = {name: [vars(path) for path in paths] for name, paths in result.paths.items()}
    return {**report, "ok": not faults, "faults": _listed(faults), "warnings": _listed(warnings)}


def _with_robots_faults(error: PlanError, options: argparse.Namespace) -> PlanError:
    if not options.robot:
        return error
    from iter_runner.plan.check import with_robots_faults
    from iter_runner.robot.table import RobotError
    from iter_runner.scene import SceneError

    try:
        return with_robots_faults(error, options.robot, options.tool_frame, _surroundings(options))
    except (RobotError, SceneError) as problem:
        raise _Refused(str(problem)) from problem


def _surroundings(options: argparse.Namespace) -> List[SceneObject]:
    """The objects of the workcell's file. Raises RobotError, SceneError."""
    if not options.workcell:
        return []
    from iter_runner.robot.table import load_robot, robot_urdf
    from iter_runner.scene.workcell_file import read_workcell, robot_frames

    robot = load_robot(options.robot)
    return read_workcell(options.workcell, robot_frames(robot_urdf(robot), robot.base_frame))


def _numbers(plan: Plan) -> Dict[str, Any]:
    names = [planned.step.name for planned in plan.steps]
    return {
        "title": plan.title,
        "plan_hash": plan_hash(plan),
        "steps": len(names),
        "moves": names.count("move"),
        "waits": names.count("wait") + names.count("prompt"),
        "objects": len(plan.environment),
    }


def _listed(faults: Sequence[PlanFault]) -> List[Dict[str, str]]:
    return [{"pointer": fault.pointer, "found": fault.found, "expected": fault.expected} for fault in faults]


def _text(report: Dict[str, Any], verbose: bool) -> str:
    faults, warnings = ([PlanFault(**item) for item in report[key]] for key in ("faults", "warnings"))
    lines = [str(fault) for fault in faults]
    lines += [f"warning: {line}" for line in (map(str, warnings) if verbose else grouped(warnings))]
    if verbose:
        for name, paths in report.get("paths", {}).items():
            lines += [
                f"{name} {path['pointer']}: {path['path_hash']} {path['duration']:.2f} s, clearance "
                f"{1000 * path['arm_clearance']:.0f} mm"
                + (
                    f" ({1000 * path['clearance']:.0f} mm of what it holds)"
                    if path["clearance"] < path["arm_clearance"]
                    else ""
                )
                for path in paths
            ]
    if report["ok"]:
        numbers = ", ".join(f"{report[key]} {key}" for key in ("steps", "moves", "waits", "objects"))
        robot = f" on {report['robot']}" if report["robot"] else ""
        lines.append(f"ok: {report['plan']}{robot}: {numbers}, plan hash {report['plan_hash'][:12]}")
    return "\n".join(lines)
