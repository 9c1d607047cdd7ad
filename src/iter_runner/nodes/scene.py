"""The planning scene on the graph: services that change it, whoever shows it, and its memory across runners."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import numpy as np
import rospy
from numpy.typing import NDArray
from visualization_msgs.msg import MarkerArray

from iter_runner.kinematics import Chain, ChainError, carrying, clearance
from iter_runner.kinematics.urdf import read_urdf
from iter_runner.msg import Scene
from iter_runner.nodes.scene_message import markers_of, matrix_of, message_of, object_of
from iter_runner.robot.table import Robot, robot_urdf
from iter_runner.run_control import Fault
from iter_runner.scene import Origin, PlanningScene, SceneError, SceneObject
from iter_runner.scene.planning_scene import links_of_the_hand
from iter_runner.scene.workcell_file import read_workcell, robot_frames
from iter_runner.srv import (
    SceneAdd,
    SceneAddRequest,
    SceneAddResponse,
    SceneList,
    SceneListRequest,
    SceneListResponse,
    SceneMove,
    SceneMoveRequest,
    SceneMoveResponse,
    SceneRemove,
    SceneRemoveRequest,
    SceneRemoveResponse,
)

Matrix = NDArray[np.float64]

OBJECTS_PARAMETER = "/runner/scene_objects"
"""The scene as JSON, kept by the parameter server so that a new runner knows it too."""


class RosScene:
    """Owns the planning scene of one arm.

    Args:
        robot: its row.
        chain: from its base to its flange.
        workcell: a name in config/workcells or a file; empty: nothing stands there always.
        joints: (n,) rad where the arm is measured. Raises Fault where its driver does not say.
        on_change: told of every change by a service, with the data of a SCENE_CHANGED event; returns whether a plan
            runs.

    Raises:
        SceneError: see :func:`iter_runner.scene.workcell_file.read_workcell`.
    """

    def __init__(
        self,
        robot: Robot,
        chain: Chain,
        workcell: str,
        joints: Callable[[], NDArray[np.float64]],
        on_change: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        self._robot = robot
        self._chain = chain
        self._joints = joints
        self._on_change = on_change
        self._changing = threading.RLock()  # one change is shown and kept before the next
        urdf = robot_urdf(robot)
        self._locate = robot_frames(urdf, robot.base_frame)
        always = read_workcell(workcell, self._locate) if workcell else []
        self.scene = PlanningScene(always, links_of_the_hand(chain), read_urdf(urdf).links)
        self._publisher = rospy.Publisher("/runner/scene", Scene, queue_size=1, latch=True)
        self._markers = rospy.Publisher("/runner/scene_markers", MarkerArray, queue_size=1, latch=True)
        self._recall()
        if self.scene.objects:
            self.show()
        rospy.Service("/runner/scene/add", SceneAdd, self._add)
        rospy.Service("/runner/scene/move", SceneMove, self._move)
        rospy.Service("/runner/scene/remove", SceneRemove, self._remove)
        rospy.Service("/runner/scene/list", SceneList, self._list)

    @property
    def surroundings(self) -> List[SceneObject]:
        """What is there whatever plan runs."""
        return [item for item in self.scene.objects if item.origin is not Origin.PLAN]

    def tip(self) -> Optional[Matrix]:
        """(4, 4) where the chain's tip is measured; None where the arm's driver does not say."""
        try:
            return np.asarray(self._chain.fk(self._joints()))
        except Fault:
            return None

    def begin(self, objects: Sequence[SceneObject], advance: Callable[[PlanningScene], None], anew: bool) -> None:
        """A plan begins.

        Args:
            objects: its own, in the base.
            advance: brings them to where they are at the first step.
            anew: the workcell is to put everything where it is given; else it is only shown to people.

        Raises:
            SceneError: see :meth:`PlanningScene.set_plan`.
        """
        with self._changing:
            self.scene.set_plan(objects, self.tip())
            advance(self.scene)
            if anew:
                self._publish()
            self.show()

    def show(self) -> None:
        """Shows people the scene as it is now, and keeps it for the next runner."""
        with self._changing:
            items = self.scene.objects
            self._markers.publish(MarkerArray(markers_of(items, self._robot.base_frame, self._robot.tool_frame)))
            kept = [item.to_record() for item in items if item.origin is not Origin.WORKCELL]
            rospy.set_param(OBJECTS_PARAMETER, json.dumps({"robot": self._robot.name, "objects": kept}))

    def _publish(self, changed: Sequence[str] = ()) -> None:
        """Tells the workcell; ``changed`` are the names that differ from what it was told before, all if empty."""
        tip = self.tip()
        scene = Scene(changed=list(changed))
        scene.header.stamp = rospy.Time.now()
        scene.header.frame_id = self._robot.base_frame
        scene.objects = [message_of(item, self._robot.base_frame, tip) for item in self.scene.objects]
        self._publisher.publish(scene)

    def _recall(self) -> None:
        """Takes over what a runner before this one has kept."""
        text = rospy.get_param(OBJECTS_PARAMETER, "")
        try:
            kept = json.loads(text) if text else {}
            records = kept.get("objects", [])
            if kept and kept.get("robot") != self._robot.name:
                rospy.logwarn("runner: the scene that was kept is of robot %s: not taken over", kept.get("robot"))
                return
        except (ValueError, AttributeError) as error:
            rospy.logwarn("runner: %s is no scene (%s): not taken over", OBJECTS_PARAMETER, error)
            return
        for record in records:
            try:
                self.scene.add(SceneObject.from_record(record))
            except SceneError as error:
                rospy.logwarn("runner: an object of the scene before is not taken over: %s", error)

    # Services ------------------------------------------------------------------------------------------------------

    def _add(self, request: SceneAddRequest) -> SceneAddResponse:
        def change() -> str:
            item = object_of(request.object, self._locate)
            self.scene.add(item)
            return self._changed("added", item)

        return SceneAddResponse(*self._answer(change))

    def _move(self, request: SceneMoveRequest) -> SceneMoveResponse:
        def change() -> str:
            self.scene.move(request.name, self._locate(request.frame_id.lstrip("/")) @ matrix_of(request.pose))
            return self._changed("moved", self.scene.get(request.name))

        return SceneMoveResponse(*self._answer(change))

    def _remove(self, request: SceneRemoveRequest) -> SceneRemoveResponse:
        def change() -> str:
            return self._changed("removed", self.scene.remove(request.name))

        return SceneRemoveResponse(*self._answer(change))

    def _list(self, _request: SceneListRequest) -> SceneListResponse:
        items, tip = self.scene.objects, self.tip()
        return SceneListResponse(
            objects=[message_of(item, self._robot.base_frame, tip) for item in items],
            origins=[item.origin.value for item in items],
            held=[item.held for item in items],
        )

    def _answer(self, change: Callable[[], str]) -> Any:
        try:
            with self._changing:
                return True, change()
        except (SceneError, ChainError, ValueError) as error:
            return False, str(error)

    def _changed(self, change: str, item: SceneObject) -> str:
        """Shows, keeps and records a change; a line for whoever asked for it."""
        contact = None if change == "removed" else self._contact(item)
        self._publish([item.name])
        self.show()
        data: Dict[str, Any] = {
            "change": change,
            "object_name": item.name,
            "object": item.to_record(),
            "in_contact": None if contact is None else contact[0],
        }
        running = self._on_change(data)
        parts = [f"{change} {describe(item, self._robot.base_frame)}"]
        if contact is not None:
            overlap = f"{contact[0]} overlaps it by {contact[1] * 1e3:.0f} mm now"
            parts.append(f"{overlap}: the next move has to lead out of it")
        if running:
            parts.append(f"the run's next move is planned {'without' if change == 'removed' else 'with'} it")
        if change == "removed" and item.origin is Origin.WORKCELL:
            parts.append("it comes back when the runner is started again, from the workcell's file")
        return "; ".join(parts)

    def _contact(self, item: SceneObject) -> Any:
        """The link (or what the hand holds) that overlaps an object now, and by how much (m); None if none does."""
        if item.graspable or item.held:
            return None
        try:
            found = clearance(carrying(self._chain, self.scene.snapshot().attached), self._joints(), [item.obstacle()])
        except Fault:
            return None
        return (found.a, -found.distance) if found.with_obstacle and found.distance < 0.0 else None


def describe(item: SceneObject, base_frame: str) -> str:
    """What an object is and where, for a person."""
    sides = " x ".join(f"{side:.3f}" for side in item.dimensions)
    kind = {"box": f"a box of {sides} m", "sphere": f"a sphere of radius {sides} m"}.get(
        item.shape, f"a cylinder (radius x length) of {sides} m"
    )
    x, y, z = (float(value) for value in item.pose[:3, 3])
    where = "in the hand" if item.held else f"with its centre at ({x:.3f}, {y:.3f}, {z:.3f}) m in {base_frame}"
    return f"'{item.name}', {kind} {where}"
