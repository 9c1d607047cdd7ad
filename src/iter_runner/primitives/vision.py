"""Primitives that need a camera. They load and are checked; there is no vision service to execute them yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Tuple

from pydantic import Field

from iter_runner.plan.registry import primitive
from iter_runner.plan.step import Pose, Quaternion, Step, Vector3
from iter_runner.run_control import Fault

if TYPE_CHECKING:
    from iter_runner.primitives.context import RunContext


class VisionStep(Step):
    """What needs the vision service."""

    def execute(self, run: RunContext) -> None:
        """Raises Fault(no_vision_service)."""
        raise Fault(
            "no_vision_service",
            f"{self.name} needs a vision service and none is running: stop the run, or use the static primitives "
            "(pick_and_place_static, connect_object)",
        )


def _path_poses(field: str, path: List[Step]) -> Iterator[Tuple[str, Vector3, Quaternion]]:
    for index, step in enumerate(path):
        for suffix, position, orientation in step.poses():
            yield f"/{field}/{index}{suffix}", position, orientation


@primitive("find_vision_object")
class FindVisionObject(VisionStep):
    """Looks for an object and puts it into the scene."""

    object_type: str = Field(description="what to look for")
    vision_params: Dict[str, Any] = Field(default={}, description="for the vision service, e.g. min_hue, max_hue")


@primitive("pick_and_place_vision")
class PickAndPlaceVision(VisionStep):
    """Takes an object from where the camera sees it to a known place."""

    object_type: str = Field(description="what to look for")
    path_to_region: List[Step] = Field(description="moves to where the object may be")
    path_to_destination: List[Step] = Field(description="moves from the grasp to where the object is let go")
    grasp_effort: float = Field(ge=0)
    release_effort: float = Field(ge=0)
    grasp_offset: Optional[Pose] = Field(default=None, description="of the tool from the object's pose")
    safe_height: Optional[float] = Field(default=None, description="of the approach, m")
    vision_params: Dict[str, Any] = Field(default={}, description="for the vision service")

    def poses(self) -> Iterable[Tuple[str, Vector3, Quaternion]]:
        """The known ones."""
        yield from _path_poses("path_to_region", self.path_to_region)
        yield from _path_poses("path_to_destination", self.path_to_destination)


@primitive("calibrate_robot_to_camera")
class CalibrateRobotToCamera(VisionStep):
    """Shows a tag on the hand to the camera, to learn where the camera is."""

    path_to_region: List[Step] = Field(description="moves that bring the tag before the camera")
    tag_to_ee_transform: Pose = Field(description="of the tag in the tool frame")
    tag_id: str = Field(default="", description="which tag")

    def poses(self) -> Iterable[Tuple[str, Vector3, Quaternion]]:
        """The path's."""
        return _path_poses("path_to_region", self.path_to_region)


@primitive("calibrate_vision_pose")
class CalibrateVisionPose(VisionStep):
    """Corrects the offset between where the camera sees an object and where the hand grasps it."""

    object_type: str = Field(description="what to look for")
    step: float = Field(gt=0, description="of the operator's corrections, m")
    grasp_offset: Pose = Field(description="of the tool from the object's pose, to begin with")
    safe_height: float = Field(description="of the approach, m")
    home_pose: Pose = Field(description="of the tool, to begin and end at")
    vision_params: Dict[str, Any] = Field(default={}, description="for the vision service")

    def poses(self) -> Iterable[Tuple[str, Vector3, Quaternion]]:
        """The home pose."""
        return [("/home_pose", self.home_pose.position, self.home_pose.orientation)]


@primitive("move_ar_tag_pose")
class MoveArTagPose(VisionStep):
    """Moves the tool to a pose relative to a tag that the camera sees."""

    tag_id: str = Field(default="", description="which tag")
    offset: Optional[Pose] = Field(default=None, description="of the tool from the tag")
    options: Dict[str, Any] = Field(default={}, description="as move takes them")
