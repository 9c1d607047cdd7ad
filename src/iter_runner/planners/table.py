"""The table of planners: config/planners.yaml names them, this module finds their classes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Type

import yaml

from iter_runner.package import package_folder
from iter_runner.planners.base import Planner

if TYPE_CHECKING:
    from iter_runner.kinematics import Chain
    from iter_runner.robot.table import Robot


class PlannerError(ValueError):
    """There is no such planner, or it does not fit the robot; the message lists those that do."""


def _rows() -> Dict[str, str]:
    with (package_folder() / "config" / "planners.yaml").open(encoding="utf-8") as file:
        rows = yaml.safe_load(file)
    return {str(name): str(target) for name, target in rows.items()}


def planner_names() -> List[str]:
    """The names of config/planners.yaml, in its order."""
    return list(_rows())


def check_fit(robot: Robot, planner: str) -> None:
    """Returns if ``planner`` is installed and moves ``robot``.

    Raises:
        PlannerError: it is not, or does not; the message lists the planners that do.
    """
    installed = planner_names()
    fitting = [name for name in robot.planners if name in installed]
    if planner in fitting:
        return
    if planner in installed:
        reason = f"planner '{planner}' does not fit robot '{robot.name}'"
    elif planner in robot.planners:
        reason = f"planner '{planner}' fits robot '{robot.name}' but is not built yet (config/planners.yaml)"
    else:
        reason = f"there is no planner '{planner}'"
    raise PlannerError(f"{reason}: choose one of {', '.join(fitting) or '(none)'}")


def load_planner(name: str, robot: Robot, chain: Chain, obstacles: Sequence[Any] = ()) -> Planner:
    """The planner ``name`` for ``robot``.

    Args:
        name: a name of config/planners.yaml.
        robot: the robot's row.
        chain: from ``robot.base_frame`` to ``robot.tool_frame``.
        obstacles: bodies of iter_runner.kinematics to keep clear of, in the chain's base.

    Raises:
        PlannerError: see :func:`check_fit`.
    """
    check_fit(robot, name)
    module, _, attribute = _rows()[name].partition(":")
    planner_class: Type[Any] = getattr(importlib.import_module(module), attribute)
    planner = planner_class(robot, chain, obstacles)
    if not isinstance(planner, Planner):
        raise TypeError(f"{module}:{attribute} of config/planners.yaml is not a Planner")
    return planner
