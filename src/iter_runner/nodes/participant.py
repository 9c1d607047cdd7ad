"""A simulated participant: presses the button, or answers, a drawn time after the robot begins to wait.

Parameters:
    ~seed (int, 0): equal seeds, equal response times.
    ~median (float, 2.0): s, half of the responses are shorter.
    ~sigma (float, 0.4): spread, the standard deviation of the response's logarithm; 0: every response is the median.
    ~answer (str, ""): what to answer prompts with; empty: a press of the button, which answers with an empty text.

Publishes: /button/press (iter_runner/ButtonPress). Subscribes: /runner/events, /runner/state. Calls: /runner/answer.
"""

from __future__ import annotations

import json
import threading
from typing import List, Optional

import rospy

from iter_runner.events import Event
from iter_runner.msg import ButtonPress
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.nodes.run_events import RunEvents
from iter_runner.nodes.start import start_node
from iter_runner.srv import Answer
from iter_runner.study.participant import Response, ResponseTimes, SimulatedParticipant

CONFIRMATION = 3.0
"""Seconds of wall time after which a press that the runner has not recorded is sent again."""


class ParticipantNode:
    """Wires a :class:`SimulatedParticipant` to the graph."""

    def __init__(self, times: ResponseTimes, answer: str) -> None:
        self._participant = SimulatedParticipant(times)
        self._answer = answer
        self._changed = threading.Condition()
        self._clock = study_clock()
        self._publisher = rospy.Publisher(
            "/button/press", ButtonPress, queue_size=10, tcp_nodelay=True, subscriber_listener=_Listener(self._changed)
        )
        rospy.on_shutdown(self._wake)
        self._events = RunEvents(self._on_events, self._changed)

    def spin(self) -> None:
        """Responds until the node is shut down."""
        while not rospy.is_shutdown():
            response = self._next()
            if response is not None:
                self._respond(response)

    def _next(self) -> Optional[Response]:
        """Blocks until a response is due; None where something else woke it."""
        with self._changed:
            response = self._participant.pending
            if response is None:
                if self._participant.unconfirmed is None:
                    self._changed.wait()
                elif not self._changed.wait(CONFIRMATION):
                    rospy.logwarn("the runner did not record the press: it is sent again")
                    self._participant.respond_again()
            elif self._clock.now() < response.time:
                self._clock.wait_until(response.time, self._changed)
            elif response.condition != "prompt" or not self._answer:
                if self._publisher.get_num_connections() > 0:
                    return response
                self._changed.wait()
            else:
                return response
            return None

    def _respond(self, response: Response) -> None:
        if response.condition == "prompt" and self._answer:
            with self._changed:
                self._participant.responded(response, confirmed=True)
            try:
                reply = rospy.ServiceProxy("/runner/answer", Answer)(self._answer)
                if not reply.success:
                    rospy.logwarn("the runner did not take the answer: %s", reply.message)
            except rospy.ServiceException as error:
                rospy.logwarn("can't answer the prompt: %s", error)
            return
        press = ButtonPress(time=response.time, source="auto")
        now, ros_now = self._clock.now(), rospy.Time.now()
        press.header.stamp = rospy.Time.from_sec(max(0.0, ros_now.to_sec() - (now - response.time)))
        press.detail = json.dumps({"response_time": response.response_time, "wait": response.number})
        with self._changed:
            # The wait may have ended otherwise in the meantime.
            if self._participant.pending is response:
                self._participant.responded(response)
                self._publisher.publish(press)

    def _on_events(self, events: List[Event]) -> None:
        for event in events:
            self._participant.feed(event)
        self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class _Listener(rospy.SubscribeListener):
    """Wakes the participant when somebody begins to listen to its button."""

    def __init__(self, changed: threading.Condition) -> None:
        super().__init__()
        self._changed = changed

    def peer_subscribe(self, topic_name: str, topic_publish: object, peer_publish: object) -> None:
        """A subscriber's connection is up (called by rospy)."""
        with self._changed:
            self._changed.notify_all()


def main() -> int:
    """Runs the node; returns its exit code."""
    start_node("participant")
    try:
        times = ResponseTimes(
            seed=int(rospy.get_param("~seed", 0)),
            median=float(rospy.get_param("~median", 2.0)),
            sigma=float(rospy.get_param("~sigma", 0.4)),
        )
    except (TypeError, ValueError) as error:
        rospy.logfatal("participant: %s", error)
        return 1
    ParticipantNode(times, str(rospy.get_param("~answer", ""))).spin()
    return 0
