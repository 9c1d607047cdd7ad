"""The hand: grasp and release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from pydantic import ConfigDict, Field, model_validator

from iter_runner.events import EventKind
from iter_runner.plan.registry import primitive
from iter_runner.plan.step import Step, fault
from iter_runner.run_control import Fault

if TYPE_CHECKING:
    from iter_runner.primitives.context import RunContext

DRIVER_FORCE = 0.0
"""The max_effort of a goal that leaves the force to the gripper's row."""


class FingerMotion(Step):
    """The fingers to a position; what grasp and release have in common."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["effort"]}, {"required": ["width"]}]})

    effort: Optional[float] = Field(
        default=None,
        ge=0,
        description="the gripper driver's position: a Robotiq's knuckle angle 0 open … 0.8 closed, rad",
    )
    width: Optional[float] = Field(default=None, ge=0, description="between the fingertips, m; instead of effort")
    force: Optional[float] = Field(default=None, gt=0, description="at most, N; the gripper's own default otherwise")

    @model_validator(mode="after")
    def _one_position(self) -> FingerMotion:
        if (self.effort is None) == (self.width is None):
            found = "neither effort nor width" if self.effort is None else "both effort and width"
            raise fault(found, "one of them: effort (the driver's position) or width (m)")
        return self

    def execute(self, run: RunContext) -> None:
        """Returns when the fingers stand still."""
        if run.gripper is None:
            raise Fault(
                "gripper", f"this robot has no gripper for {self.name}: choose a row of config/robots/ with one"
            )
        position = run.gripper.position_of(self.width) if self.width is not None else float(self.effort or 0.0)
        with run.hand_at_work():
            reading = run.gripper.move(position, DRIVER_FORCE if self.force is None else self.force, run.control)
        run.emit(
            EventKind.GRIPPER_FINISHED,
            action=self.name,
            position=reading.position,
            stalled=reading.stalled,
            reached_goal=reading.reached_goal,
            opening=reading.opening,
        )

    def describe(self) -> str:
        """How far."""
        amount = f"to {1000 * self.width:.0f} mm" if self.width is not None else f"effort {self.effort:g}"
        return f"{'grasping' if self.name == 'grasp' else 'releasing'}, {amount}"


@primitive("grasp")
class Grasp(FingerMotion):
    """Closes the fingers to a position, or until something stops them."""


@primitive("release")
class Release(FingerMotion):
    """Opens the fingers to a position."""
