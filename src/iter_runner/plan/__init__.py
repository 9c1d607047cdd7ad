"""The plan language: loading, expanding, checking and building task plans."""

from iter_runner.plan.load import load_plan
from iter_runner.plan.model import Plan, PlanError, PlanFault, PlannedStep, PlanObject, plan_hash
from iter_runner.plan.registry import Registry, primitive
from iter_runner.plan.step import Step

__all__ = [
    "Plan",
    "PlanError",
    "PlanFault",
    "PlanObject",
    "PlannedStep",
    "Registry",
    "Step",
    "load_plan",
    "plan_hash",
    "primitive",
]
