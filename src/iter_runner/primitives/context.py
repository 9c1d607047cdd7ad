"""What a primitive may use of the run that executes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ContextManager, Mapping, NamedTuple, Optional, Protocol, Sequence

from iter_runner.clock import Clock
from iter_runner.events import Event, EventKind
from iter_runner.run_control import RunControl

if TYPE_CHECKING:
    from iter_runner.robot.arm import Arm, Gripper


@dataclass(frozen=True)
class ToolPose:
    """A pose of the plan's tool frame in the plan's frame: position (m) and orientation (quaternion xyzw)."""

    position: Sequence[float]
    orientation: Sequence[float]


class PromptAnswer(NamedTuple):
    """What a person answered, and when on the study clock, s: a press of the button at its source, with no text."""

    text: str
    time: float


class RunContext(Protocol):
    """One run, as its steps see it; the engine implements it, tests fake it."""

    control: RunControl
    clock: Clock
    arm: Arm
    gripper: Optional[Gripper]

    def emit(self, kind: EventKind, **data: Any) -> Event:
        """Journals, then publishes an event of the present step."""

    def move(self, pose: ToolPose, options: Mapping[str, Any]) -> None:
        """Moves the plan's tool frame to ``pose`` by the run's planner, and journals the move.

        Raises:
            Fault(unreachable), any other Fault, Stopped.
        """

    def tool_pose(self) -> ToolPose:
        """Where the measured arm's tool frame is."""

    def wait_for_press(self, deadline: Optional[float]) -> Optional[float]:
        """Blocks until the button is pressed; the time of the press at its source (study clock), None at the deadline.

        One press ends one wait: a press before this call is not this wait's.
        """

    def wait_for_answer(self, message: str, deadline: Optional[float]) -> Optional[PromptAnswer]:
        """Shows ``message`` to the person and blocks until it is answered; None at the deadline.

        A press of the button answers with an empty text.
        """

    def hand_at_work(self) -> ContextManager[None]:
        """While it is open the planner's stream has let go of the arm."""

    def publish(self, topic: str, message_type: str, fields: Mapping[str, Any]) -> None:
        """Publishes one message of ``package/Type`` once a subscriber is connected (or a moment later without one)."""

    def script(self, program: str) -> None:
        """Sends a program to the arm's controller and returns at once; the next move begins when it has ended.

        Raises:
            Fault: see Arm.script.
        """

    def attach(self, object_name: str) -> None:
        """Marks the scene's object as held by the hand."""

    def detach(self, object_name: str) -> None:
        """Marks the scene's object as let go."""
