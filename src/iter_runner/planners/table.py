"""The table of planners: config/planners.yaml names them, this module finds their classes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Type

import yaml

from iter_runner.package import package_folder
from iter_runner.planners.base import Planner, PlannerUnavailable

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
    """Returns if ``planner`` moves ``robot`` and what it stands on is installed.

    Raises:
        PlannerError: it does not, or is not; the message lists the planners that do, or says what to install.
    """
    installed = planner_names()
    fitting = [name for name in robot.planners if name in installed]
    if planner in fitting:
        try:
            planner_class(planner).check_available()
        except PlannerUnavailable as error:
            raise PlannerError(str(error)) from error
        return
    if planner in installed:
        reason = f"planner '{planner}' does not fit robot '{robot.name}'"
    elif planner in robot.planners:
        reason = f"planner '{planner}' fits robot '{robot.name}' but is not built yet (config/planners.yaml)"
    else:
        reason = f"there is no planner '{planner}'"
    raise PlannerError(f"{reason}: choose one of {', '.join(fitting) or '(none)'}")


def planner_class(name: str) -> Type[Any]:
    """The class of a planner of config/planners.yaml. Raises KeyError."""
    module, _, attribute = _rows()[name].partition(":")
    found: Type[Any] = getattr(importlib.import_module(module), attribute)
    return found


def load_planner(
    name: str, robot: Robot, chain: Chain, obstacles: Sequence[Any] = (), settings: Mapping[str, Any] = {}
) -> Planner:
    """The planner ``name`` for ``robot``.

    Args:
        name: a name of config/planners.yaml.
        robot: the robot's row.
        chain: from ``robot.base_frame`` to ``robot.tool_frame``.
        obstacles: bodies of iter_runner.kinematics to keep clear of, in the chain's base.
        settings: what planners take besides, by name; each gets those that its class lists in ``SETTINGS``.

    Raises:
        PlannerError: see :func:`check_fit`; or a setting is missing or wrong.
    """
    check_fit(robot, name)
    chosen = planner_class(name)
    own = {setting: settings[setting] for setting in chosen.SETTINGS if setting in settings}
    try:
        planner = chosen(robot, chain, obstacles, **own)
    except PlannerUnavailable as error:
        raise PlannerError(str(error)) from error
    if not isinstance(planner, Planner):
        raise TypeError(f"{_rows()[name]} of config/planners.yaml is not a Planner")
    return planner
