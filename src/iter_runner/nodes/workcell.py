"""The world outside arm and hand, as a run reaches it over ROS: any topic, and the scene."""

from __future__ import annotations

import importlib
import threading
from typing import Any, Callable, Dict, Mapping, Tuple

import genpy.message
import rosgraph
import rospy

from iter_runner.run_control import Fault

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
        show: shows the scene as it is by now.
    """

    def __init__(self, show: Callable[[], None]) -> None:
        self.topics = TopicPublishers()
        self._show = show

    def publish(self, topic: str, message_type: str, fields: Mapping[str, Any]) -> None:
        """See :class:`iter_runner.runner.engine.Workcell`."""
        self.topics.publish(topic, message_type, fields)

    def attach(self, object_name: str) -> None:
        """See :class:`iter_runner.runner.engine.Workcell`."""
        self._show()

    def detach(self, object_name: str) -> None:
        """See :class:`iter_runner.runner.engine.Workcell`."""
        self._show()


def _subscribers(topic: str) -> int:
    """How many nodes the master knows to listen to a topic."""
    try:
        _, subscribers, _ = rosgraph.Master(rospy.get_name()).getSystemState()
    except (OSError, rosgraph.MasterException):
        return 0
    return len(dict(subscribers).get(topic, []))
