"""What a planner takes beside the arm and the scene: the seed, the session to repeat."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from iter_runner.plan import Plan, plan_hash
from iter_runner.planners.base import PlannerUnavailable
from iter_runner.planners.replay import check_recording
from iter_runner.planners.table import PlannerError
from iter_runner.study.recorded_run import recorded_run
from iter_runner.study.sessions import SessionError, find_session


def planner_settings(planner: str, seed: Any, session: str, plan: Plan, first_step: int) -> Dict[str, Any]:
    """The settings for :func:`iter_runner.planners.table.load_planner`, for a run of ``plan`` from a step on.

    Args:
        planner: its name.
        seed: of the planner ``ompl``; empty: none.
        session: that the planner ``replay`` is to repeat, by name or folder.
        plan, first_step: what is to be run.

    Raises:
        PlannerError: the session can't be found, or can't be repeated by this run.
    """
    settings: Dict[str, Any] = {"planner_seed": seed}
    if planner == "replay" and session:
        try:
            recording = recorded_run(find_session(session))
            check_recording(recording, plan_hash(plan), first_step, len(plan.steps))
        except (SessionError, PlannerUnavailable) as error:
            raise PlannerError(f"replay: {error}") from error
        settings["replay"] = recording
    return settings


def replayed(settings: Mapping[str, Any]) -> Dict[str, str]:
    """What a run's record says of the session that it repeats; empty where it repeats none."""
    recording = settings.get("replay")
    if recording is None:
        return {}
    return {"replay_of": recording.name, "replayed_planner": recording.planner}
