"""The world outside arm and hand, as a run reaches it over ROS: any topic, and the scene."""

from __future__ import annotations

import importlib
import threading
from typing import Any, Callable, Dict, List, Mapping, Tuple

import genpy.message
import numpy as np
import rosgraph
import rospy
from geometry_msgs.msg import Point, Pose, Quaternion
from numpy.typing import NDArray
from shape_msgs.msg import SolidPrimitive
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from iter_runner.kinematics.rotations import matrix_to_quaternion
from iter_runner.msg import Scene, SceneObject
from iter_runner.run_control import Fault
from iter_runner.runner.scene import PlacedObject, SceneModel

CONNECT_TIME = 2.0
"""Seconds of wall time that a message waits for the subscribers that the master knows of."""


class TopicPublishers(rospy.SubscribeListener):
    """Publishers of whatever a plan publishes on, made before the run so that their subscribers have connected."""

    def __init__(self) -> None:
        super().__init__()
        self._publishers: Dict[Tuple[str, str], rospy.Publisher] = {}
        self._changed = threading.Condition()

    def peer_subscribe(self, topic_name: str, topic_publish: object, peer_publish: object) -> None:
        """A subscriber's connection is up (called by rospy)."""
        with self._changed:
            self._changed.notify_all()

    def advertise(self, topic: str, message_type: str) -> rospy.Publisher:
        """The publisher of ``package/Type`` on a topic.

        Raises:
            Fault(publish): there is no such type, or the topic carries another one in this node.
        """
        name = rospy.resolve_name(topic)
        if (name, message_type) not in self._publishers:
            package, _, type_name = message_type.partition("/")
            try:
                message_class = getattr(importlib.import_module(f"{package}.msg"), type_name)
                self._publishers[name, message_type] = rospy.Publisher(
                    name, message_class, queue_size=100, subscriber_listener=self, tcp_nodelay=True
                )
            except (ImportError, AttributeError, ValueError, rospy.ROSException) as error:
                raise Fault("publish", f"can't publish {message_type} on {name}: {error}") from error
        return self._publishers[name, message_type]

    def publish(self, topic: str, message_type: str, fields: Mapping[str, Any]) -> None:
        """Publishes one message when those who listen to the topic are connected, or :data:`CONNECT_TIME` later."""
        publisher = self.advertise(topic, message_type)
        message = publisher.data_class()
        try:
            genpy.message.fill_message_args(message, [dict(fields)])
        except (genpy.MessageException, TypeError, ValueError) as error:
            raise Fault(
                "publish", f"the fields do not fit {message_type} on {publisher.resolved_name}: {error}"
            ) from error
        wanted = _subscribers(publisher.resolved_name)
        with self._changed:
            self._changed.wait_for(lambda: publisher.get_num_connections() >= wanted, CONNECT_TIME)
        publisher.publish(message)


class RosWorkcell:
    """See :class:`iter_runner.runner.engine.Workcell`.

    Args:
        base_frame, tip_frame: of the robot's chain.
    """

    def __init__(self, base_frame: str, tip_frame: str) -> None:
        self.topics = TopicPublishers()
        self._base_frame = base_frame
        self._tip_frame = tip_frame
        self._scene = rospy.Publisher("/runner/scene", Scene, queue_size=1, latch=True)
        self._markers = rospy.Publisher("/runner/scene_markers", MarkerArray, queue_size=1, latch=True)
        self._model: SceneModel
        self._tip_pose: Callable[[], NDArray[np.float64]] = lambda: np.eye(4)

    def begin(self, model: SceneModel, tip_pose: Callable[[], NDArray[np.float64]], publish: bool = True) -> None:
        """Shows a run's scene.

        Args:
            model: its objects.
            tip_pose: where the chain's tip is now, (4, 4) in its base.
            publish: to the workcell too, which then puts every object there; else as markers only.
        """
        self._model = model
        self._tip_pose = tip_pose
        if publish:
            self._publish_scene(tip_pose())
        self._show()

    def _publish_scene(self, tip: NDArray[np.float64]) -> None:
        scene = Scene()
        scene.header.stamp = rospy.Time.now()
        scene.header.frame_id = self._base_frame
        scene.objects = [self._scene_object(placed, tip) for placed in self._model.objects]
        self._scene.publish(scene)

    def publish(self, topic: str, message_type: str, fields: Mapping[str, Any]) -> None:
        """See :class:`iter_runner.runner.engine.Workcell`."""
        self.topics.publish(topic, message_type, fields)

    def attach(self, object_name: str) -> None:
        """See :class:`iter_runner.runner.engine.Workcell`."""
        self._model.attach(object_name, self._tip_pose())
        self._show()

    def detach(self, object_name: str) -> None:
        """See :class:`iter_runner.runner.engine.Workcell`."""
        self._model.detach(object_name, self._tip_pose())
        self._show()

    def _scene_object(self, placed: PlacedObject, tip: NDArray[np.float64]) -> SceneObject:
        return SceneObject(
            name=placed.object.name,
            frame_id=self._base_frame,
            shape=SolidPrimitive(type=SolidPrimitive.BOX, dimensions=list(placed.object.size)),
            pose=_pose(tip @ placed.pose if placed.held else placed.pose),
            graspable=placed.object.graspable,
            color=ColorRGBA(*placed.object.color),
        )

    def _show(self) -> None:
        markers: List[Marker] = [Marker(action=Marker.DELETEALL)]
        for number, placed in enumerate(self._model.objects):
            marker = Marker(ns="scene", id=number, type=Marker.CUBE, action=Marker.ADD, frame_locked=True)
            marker.header.frame_id = self._tip_frame if placed.held else self._base_frame
            marker.pose = _pose(placed.pose)
            marker.scale.x, marker.scale.y, marker.scale.z = placed.object.size
            marker.color = ColorRGBA(*placed.object.color)
            markers.append(marker)
        self._markers.publish(MarkerArray(markers))


def _pose(matrix: NDArray[np.float64]) -> Pose:
    return Pose(Point(*map(float, matrix[:3, 3])), Quaternion(*map(float, matrix_to_quaternion(matrix[:3, :3]))))


def _subscribers(topic: str) -> int:
    """How many nodes the master knows to listen to a topic."""
    try:
        _, subscribers, _ = rosgraph.Master(rospy.get_name()).getSystemState()
    except (OSError, rosgraph.MasterException):
        return 0
    return len(dict(subscribers).get(topic, []))
