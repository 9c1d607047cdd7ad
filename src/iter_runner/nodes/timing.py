"""Measures a run as it goes: its intervals, its robot attention demand, and, where the plan expects times, a countdown.

What it does depends on the run's mode (a field of the run_plan goal): *run* measures; *capture* measures and, when the
run is over, writes ``plan_captured.json`` into the session's folder, the plan with the measured times in its ``rad``
fields; *replay* counts down to the times that the plan's ``rad`` fields expect.

Parameters:
    ~rate (float, 10.0): Hz of the study clock, of the topics that change all the time; at most 50 a wall second.

Publishes:
    /rad/signal (std_msgs/Float64): robot attention demand, 0...1; of the run so far, in replay of the whole run as it
        looks now (measured so far, expected from here on). Nothing as long as it is not defined.
    /rad/neglect_time, /rad/interaction_time (std_msgs/Float64): replay: expected seconds left of the present interval.
    /rad/timeline (iter_runner/RadTimeline, latched): the intervals measured so far, in replay the expected ones.
    /rad/measured_timeline (iter_runner/RadTimeline, latched): the intervals measured so far, in every mode.

Subscribes: /runner/events, /runner/state.
"""

from __future__ import annotations

import json
import math
import re
import threading
from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence

import rospy
from std_msgs.msg import Float64

from iter_runner.events import Event, EventKind
from iter_runner.msg import RadInterval, RadTimeline
from iter_runner.nodes.ros_clock import study_clock
from iter_runner.nodes.run_events import RunEvents
from iter_runner.nodes.start import start_node
from iter_runner.plan.load import load_plan
from iter_runner.plan.model import PlanError
from iter_runner.primitives import REGISTRY
from iter_runner.study.sessions import SessionError, find_session, write_durably
from iter_runner.timing.capture import captured_plan
from iter_runner.timing.expectation import ExpectedStep, countdown, expected_intervals, expected_step, projected_rad
from iter_runner.timing.intervals import Interval, IntervalKind, intervals, run_span
from iter_runner.timing.metrics import robot_attention_demand, total

CAPTURED = "plan_captured.json"

SHORTEST_PERIOD = 0.02
"""Wall seconds between two publications of what changes all the time: nobody sees more in a fast simulation."""

_CUTS = (
    EventKind.RUN_STARTED,
    EventKind.RUN_FINISHED,
    EventKind.WAIT_STARTED,
    EventKind.WAIT_ENDED,
    EventKind.PAUSED,
    EventKind.RESUMED,
    EventKind.FAULT,
)
# Steps cut nothing, but they say to which step an interval belongs.
_RELEVANT = (*_CUTS, EventKind.STEP_STARTED)

_KINDS = {IntervalKind.NEGLECT: RadInterval.NEGLECT, IntervalKind.INTERACTION: RadInterval.INTERACTION}


class TimingNode:
    """Wires intervals, expectation and capture to the graph."""

    def __init__(self, rate: float) -> None:
        self._period = 1.0 / rate
        self._clock = study_clock()
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._session = ""
        self._mode = ""
        self._relevant: List[Event] = []
        self._running = False
        self._after_cut = False
        self._shown = ""
        self._expected: Sequence[Interval] = []
        self._signal = rospy.Publisher("/rad/signal", Float64, queue_size=10)
        self._neglect_time = rospy.Publisher("/rad/neglect_time", Float64, queue_size=10)
        self._interaction_time = rospy.Publisher("/rad/interaction_time", Float64, queue_size=10)
        self._timeline = rospy.Publisher("/rad/timeline", RadTimeline, queue_size=10, latch=True)
        self._measured_timeline = rospy.Publisher("/rad/measured_timeline", RadTimeline, queue_size=10, latch=True)
        rospy.on_shutdown(self._wake)
        self._events = RunEvents(self._on_events, self._changed)

    def spin(self) -> None:
        """Publishes what changes all the time until the node is shut down."""
        tick = -math.inf
        while not rospy.is_shutdown():
            with self._changed:
                if not self._running:
                    self._changed.wait()
                    continue
                now = self._clock.now()
                # Ticks lie on multiples of the period, whatever a publication took; a clock set back begins anew.
                if tick - self._period <= now < tick:
                    self._clock.wait_until(tick, self._changed)
                    continue
                tick = (math.floor(now / self._period) + 1) * self._period
                relevant, expected = list(self._relevant), self._expected
                replays = self._mode == "replay"
            self._publish_present(intervals(relevant, now), expected if replays else None)
            self._over.wait(SHORTEST_PERIOD)

    def _publish_present(self, measured: Sequence[Interval], expected: Optional[Sequence[Interval]]) -> None:
        if not measured:
            return  # the clock has not gone on since the run began
        if expected is None:
            rad = robot_attention_demand(
                total(measured, IntervalKind.INTERACTION), total(measured, IntervalKind.NEGLECT)
            )
        else:
            rad = projected_rad(expected, measured)
            left = countdown(expected, measured)
            self._neglect_time.publish(left.neglect)
            self._interaction_time.publish(left.interaction)
        if math.isfinite(rad):
            self._signal.publish(rad)

    def _on_events(self, events: List[Event]) -> None:
        """Called with what is new, the lock held."""
        for event in events:
            if event.session != self._session:
                self._session, self._mode, self._relevant, self._expected = event.session, "run", [], []
            if event.kind is EventKind.RUN_STARTED:
                self._begin(event)
            if event.kind in _RELEVANT:
                self._relevant.append(event)
        self._running = not self._events.record.finished
        # The first step after a cut is the one that the new interval belongs to.
        kinds = [event.kind for event in events if event.kind in _RELEVANT]
        if any(kind in _CUTS for kind in kinds) or (kinds and self._after_cut):
            self._publish_timelines(events[-1].time)
        if kinds:
            self._after_cut = kinds[-1] in _CUTS
        if events[-1].kind is EventKind.RUN_FINISHED:
            self._end()
        self._changed.notify_all()

    def _begin(self, event: Event) -> None:
        self._mode = str(event.data.get("mode") or "run")
        if self._mode == "replay":
            self._expected = expected_intervals(_expected_steps(_read_plan(self._session)))
            if not self._expected:
                rospy.logwarn(
                    "replay: the plan of session %s has no times in its rad fields, so there is nothing to count down; "
                    "run it once in capture mode and replay the %s of that session",
                    self._session,
                    CAPTURED,
                )

    def _publish_timelines(self, now: float) -> None:
        measured = intervals(self._relevant, now)
        start = run_span(self._relevant)[0]
        since_start = [replace(i, start=i.start - start, end=i.end - start) for i in measured]
        message = self._timeline_message(since_start, expected=False)
        self._measured_timeline.publish(message)
        if self._mode != "replay":
            self._timeline.publish(message)
        elif self._shown != self._session:
            self._timeline.publish(self._timeline_message(self._expected, expected=True))
        self._shown = self._session

    def _timeline_message(self, found: Sequence[Interval], expected: bool) -> RadTimeline:
        message = RadTimeline(session=self._session, expected=expected)
        message.header.stamp = rospy.Time.now()
        message.intervals = [
            RadInterval(kind=_KINDS[i.kind], start=i.start, end=i.end, step=i.step) for i in found if i.kind in _KINDS
        ]
        return message

    def _end(self) -> None:
        measured = intervals(self._relevant)
        self._publish_present(measured, self._expected if self._mode == "replay" else None)
        if self._mode == "capture":
            _write_captured(self._session, self._events.record.events)

    def _wake(self) -> None:
        self._over.set()
        with self._changed:
            self._changed.notify_all()


def _read_plan(session: str) -> Optional[Dict[str, Any]]:
    """The plan as it was run; None, with a warning, where it can't be read."""
    try:
        plan = json.loads(find_session(session).plan.read_text(encoding="utf-8"))
    except (SessionError, OSError, ValueError) as error:
        rospy.logwarn("the plan of session %s can't be read: %s", session, error)
        return None
    return plan if isinstance(plan, dict) else None


def _expected_steps(plan: Optional[Dict[str, Any]]) -> List[ExpectedStep]:
    if plan is None:
        return []
    try:
        loaded = load_plan(json.dumps(plan), REGISTRY)
    except PlanError as error:
        # Files that stand beside the original plan are not beside the session's copy. For the times an entry that does
        # not load is as good as any other simple one.
        stand_in = {**plan, "task": list(plan["task"])} if isinstance(plan.get("task"), list) else {"task": []}
        for fault in error.faults:
            match = re.match(r"/task/(\d+)", fault.pointer)
            if match:
                entry = int(match.group(1))
                rad = plan["task"][entry].get("rad") if isinstance(plan["task"][entry], dict) else None
                stand_in["task"][entry] = {"name": "logger", "msg": "", **({"rad": rad} if rad else {})}
        try:
            loaded = load_plan(json.dumps(stand_in), REGISTRY)
        except PlanError as second_error:
            rospy.logwarn("the plan's times can't be read: %s", second_error)
            return []
    return [
        expected_step(planned.index, planned.pointer, planned.step.rad.model_dump() if planned.step.rad else None)
        for planned in loaded.steps
    ]


def _write_captured(session: str, events: Sequence[Event]) -> None:
    plan = _read_plan(session)
    if plan is None:
        return
    try:
        file = find_session(session).directory / CAPTURED
        write_durably(file, (json.dumps(captured_plan(plan, events), indent=1, ensure_ascii=False) + "\n").encode())
    except (SessionError, OSError) as error:
        rospy.logerr("the captured times can't be written: %s", error)
        return
    rospy.loginfo("captured times are in %s", file)


def main() -> int:
    """Runs the node; returns its exit code."""
    start_node("timing")
    rate = rospy.get_param("~rate", 10.0)
    if not isinstance(rate, (int, float)) or not (math.isfinite(rate) and rate > 0):
        rospy.logfatal("timing: ~rate is %r, expected a number of Hz above 0", rate)
        return 1
    TimingNode(float(rate)).spin()
    return 0
