"""The participant's button: watches one source and publishes each press with the time it happened.

Bounces and presses that nobody waits for are published too: the runner records them and says why it ignored them.

Parameters:
    ~source (str, keyboard): keyboard, serial or topic.
    ~port (str, ""), ~baud (int, 9600), ~trigger (str, ""): of the serial source: the device, its speed, and what it
        sends when it is pressed (anything where empty; ``\\n`` and ``\\xNN`` are understood).
    ~topic (str, ""), ~field (str, ""): of the topic source: any topic, and the field that turns true or non-zero with a
        press, e.g. ``buttons[0]`` of a sensor_msgs/Joy (by default ``data`` of a std_msgs/Bool; else each message is a
        press).
    ~keys (str, ""): of the keyboard source: the keys that count, e.g. ``b``; space and Enter where empty.

Publishes: /button/press (iter_runner/ButtonPress). Subscribes: ~topic, of any type.
"""

from __future__ import annotations

import json
import threading
from typing import Any

import roslib.message
import rospy

from iter_runner.button.message import PressDetector, press_time, source_stamp
from iter_runner.button.source import OnPress, Press, Source, SourceError
from iter_runner.clock import Clock
from iter_runner.msg import ButtonPress
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.nodes.start import start_node

SOURCES = ("keyboard", "serial", "topic", "web")


class TopicSource:
    """Messages of any type on a topic as presses; the stamp in a message's header is when the press happened."""

    name = "topic"

    def __init__(self, clock: Clock, topic: str, field: str) -> None:
        if not topic:
            raise SourceError(
                "the topic source needs ~topic, the name of the topic that says when the button is pressed"
            )
        self._clock = clock
        self._topic = rospy.resolve_name(topic)
        self._detector = PressDetector(field)
        self._closed = threading.Event()

    def run(self, on_press: OnPress) -> None:
        """See :class:`iter_runner.button.source.Source`."""

        def on_message(raw: rospy.AnyMsg) -> None:
            time, ros_now = self._clock.now(), rospy.Time.now().to_sec()
            type_name = raw._connection_header["type"]
            message_class = roslib.message.get_message_class(type_name)
            if message_class is None:
                rospy.logerr_once("button: %s carries %s, whose definition is not here", self._topic, type_name)
                return
            message: Any = message_class()
            message.deserialize(raw._buff)
            try:
                pressed = self._detector.is_press(message)
            except LookupError as error:
                rospy.logerr_throttle(10.0, f"button: {self._topic}: {error}")
                return
            if pressed:
                on_press(Press(press_time(source_stamp(message), ros_now, time), {"topic": self._topic}))

        subscriber = rospy.Subscriber(self._topic, rospy.AnyMsg, on_message, queue_size=None, tcp_nodelay=True)
        rospy.loginfo("button: listening to %s", self._topic)
        self._closed.wait()
        subscriber.unregister()

    def close(self) -> None:
        """See :class:`iter_runner.button.source.Source`."""
        self._closed.set()


def make_source(name: str, clock: Clock) -> Source:
    """The source that the node's parameters describe.

    Raises:
        SourceError: there is no such source, or a parameter of it is missing or wrong.
    """
    if name == "keyboard":
        from iter_runner.button.keyboard import DEFAULT_KEYS, Keyboard

        return Keyboard(clock.now, keys=str(rospy.get_param("~keys", "")) or DEFAULT_KEYS)
    if name == "serial":
        from iter_runner.button.serial_line import SerialLine, parse_trigger

        baud = rospy.get_param("~baud", 9600)
        if not isinstance(baud, int):
            raise SourceError(f"~baud is {baud!r}, expected a whole number of bits per second, e.g. 9600")
        return SerialLine(
            clock.now,
            port=str(rospy.get_param("~port", "")),
            baud=baud,
            trigger=parse_trigger(str(rospy.get_param("~trigger", ""))),
            warn=rospy.logwarn,
            say=rospy.loginfo,
        )
    if name == "topic":
        return TopicSource(clock, str(rospy.get_param("~topic", "")), str(rospy.get_param("~field", "")))
    if name == "web":
        raise SourceError("the web page is not built yet; use source keyboard, serial or topic")
    raise SourceError(f"no source {name!r}; there are: {', '.join(SOURCES)}")


def main() -> int:
    """Runs the node; returns its exit code."""
    start_node("button")
    clock = study_clock()
    publisher = rospy.Publisher("/button/press", ButtonPress, queue_size=100, tcp_nodelay=True)
    try:
        source = make_source(str(rospy.get_param("~source", "keyboard")), clock)
        rospy.on_shutdown(source.close)

        def publish(press: Press) -> None:
            message = ButtonPress(time=press.time, source=source.name, detail=json.dumps(press.detail))
            age = max(0.0, clock.now() - press.time)
            message.header.stamp = rospy.Time.from_sec(max(0.0, rospy.Time.now().to_sec() - age))
            publisher.publish(message)
            rospy.loginfo("button: pressed%s", "" if publisher.get_num_connections() else ", but no runner listens")

        if source.name == "keyboard":
            rospy.loginfo("button: press space or Enter in this terminal; Ctrl-C ends it")
        source.run(publish)
    except SourceError as error:
        rospy.logfatal("button: %s", error)
        return 1
    return 0
