"""Objects in the hand: connect_object, disconnect_object and pick_and_place_static."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Tuple

from pydantic import Field

from iter_runner.events import EventKind
from iter_runner.plan.registry import primitive
from iter_runner.plan.step import Step
from iter_runner.primitives.gripper import Grasp, Release

if TYPE_CHECKING:
    from iter_runner.primitives.context import RunContext


@primitive("connect_object")
class ConnectObject(Step):
    """From here on the object counts as held: it moves with the hand."""

    object_name: str = Field(min_length=1, description="of an object in the environment")

    def execute(self, run: RunContext) -> None:
        """Marks it in the scene."""
        run.attach(self.object_name)
        run.emit(EventKind.OBJECT_ATTACHED, object_name=self.object_name)

    def describe(self) -> str:
        """Which."""
        return f"connecting object {self.object_name}"


@primitive("disconnect_object")
class DisconnectObject(Step):
    """From here on the object stays where it is."""

    object_name: str = Field(min_length=1, description="of an object in the environment")

    def execute(self, run: RunContext) -> None:
        """Marks it in the scene."""
        run.detach(self.object_name)
        run.emit(EventKind.OBJECT_DETACHED, object_name=self.object_name)

    def describe(self) -> str:
        """Which."""
        return f"disconnecting object {self.object_name}"


@primitive("pick_and_place_static")
class PickAndPlaceStatic(Step):
    """Takes an object from a known place to another.

    Expands to: the steps of path_to_object, connect_object, grasp, the steps of path_to_destination, release,
    disconnect_object.
    """

    object_name: str = Field(min_length=1, description="of an object in the environment")
    path_to_object: List[Step] = Field(description="moves from where the arm is to the grasp")
    path_to_destination: List[Step] = Field(description="moves from the grasp to where the object is let go")
    grasp_effort: float = Field(ge=0, description="effort of the grasp")
    release_effort: float = Field(ge=0, description="effort of the release")

    def expand(self) -> List[Tuple[str, Step]]:
        """The simple steps, each with the field that it comes from."""
        return [
            *((f"/path_to_object/{index}", step) for index, step in enumerate(self.path_to_object)),
            ("/object_name", ConnectObject(object_name=self.object_name)),
            ("/grasp_effort", Grasp(effort=self.grasp_effort)),
            *((f"/path_to_destination/{index}", step) for index, step in enumerate(self.path_to_destination)),
            ("/release_effort", Release(effort=self.release_effort)),
            ("/object_name", DisconnectObject(object_name=self.object_name)),
        ]
