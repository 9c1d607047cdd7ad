#!/usr/bin/env python3
"""Timing, participant and button on the graph, around a runner that this test plays."""

import json
import shutil
import subprocess
import sys
import time
import unittest

import rospy
from iter_runner.msg import ButtonPress, RadInterval, RadTimeline, RunnerState
from iter_runner.msg import Event as EventMessage
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Bool, Float64, Header

import rostest
from iter_runner.events import Event, EventKind
from iter_runner.study.participant import ResponseTimes
from iter_runner.study.sessions import create_session, sessions_folder

TICK = 0.008
PATIENCE = 60.0


def wait_for(condition, what, patience=PATIENCE):
    """Blocks until ``condition()`` holds; fails after ``patience`` wall seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"still waiting for {what} after {patience} s")
        time.sleep(0.002)


class Recorder:
    """Everything that comes on a topic."""

    def __init__(self, topic, message_type):
        self.messages = []
        self.subscriber = rospy.Subscriber(topic, message_type, self.messages.append, queue_size=None)

    @property
    def last(self):
        return self.messages[-1]


class PlayedRunner:
    """A runner without an arm: the test says what happens, its clock goes on meanwhile."""

    def __init__(self):
        self.now = 10.0
        self.clock = rospy.Publisher("/clock", Clock, queue_size=100)
        self.events = rospy.Publisher("/runner/events", EventMessage, queue_size=1000)
        self.state = rospy.Publisher("/runner/state", RunnerState, queue_size=1, latch=True)
        self.presses = Recorder("/button/press", ButtonPress)
        self.session = None
        self.sequence = 0
        self.step = -1

    def tick(self):
        self.now += TICK
        self.clock.publish(Clock(clock=rospy.Time.from_sec(self.now)))
        time.sleep(TICK / 20)

    def work(self, seconds):
        until = self.now + seconds
        while self.now < until:
            self.tick()

    def begin_run(self, plan, mode, steps):
        self.session = create_session(json.dumps(plan))
        self.sequence, self.step = 0, -1
        self.presses.messages.clear()
        self.state.publish(RunnerState(state=RunnerState.RUNNING, session=self.session.name))
        self.emit(
            EventKind.RUN_STARTED, title="played", plan_hash="00", robot="ur5", planner="static", mode=mode, steps=steps
        )

    def emit(self, kind, lose=False, at=None, **data):
        event = Event(
            self.sequence,
            self.session.name,
            kind,
            self.now if at is None else at,
            time.time(),
            self.step,
            f"/task/{self.step}" if self.step >= 0 else "",
            data,
        )
        self.sequence += 1
        with self.session.journal.open("a") as journal:
            journal.write(event.to_json() + "\n")
        if not lose:
            self.events.publish(
                EventMessage(
                    sequence=event.sequence,
                    session=event.session,
                    kind=kind.value,
                    time=event.time,
                    wall_time=event.wall_time,
                    step=event.step,
                    pointer=event.pointer,
                    data=json.dumps(data),
                )
            )
        return event

    def begin_step(self, name):
        self.step += 1
        self.emit(EventKind.STEP_STARTED, name=name, rad=None)

    def end_step(self, lose=False):
        self.emit(EventKind.STEP_FINISHED, lose=lose, name="")

    def work_step(self, seconds, lose=False):
        self.begin_step("move")
        self.work(seconds)
        self.end_step(lose)

    def wait_step(self, condition="button", lose_start=False):
        """A wait that the participant ends; returns its start and the press."""
        self.begin_step("wait")
        started = self.emit(EventKind.WAIT_STARTED, condition=condition, lose=lose_start).time
        if lose_start:
            self.emit(EventKind.LOG, message="something that is not lost")
        known = len(self.presses.messages)
        deadline = time.monotonic() + PATIENCE
        while len(self.presses.messages) == known:
            if time.monotonic() > deadline:
                raise AssertionError("the participant does not press")
            self.tick()
        press = self.presses.last
        self.emit(EventKind.PRESS, source=press.source, time=press.time, used=True, detail=json.loads(press.detail))
        self.emit(EventKind.WAIT_ENDED, condition=condition, by="press", started=started, ended=press.time)
        self.end_step()
        return started, press

    def finish(self, outcome="finished"):
        self.step = -1
        self.emit(EventKind.RUN_FINISHED, outcome=outcome, message="", steps_done=0)
        self.state.publish(RunnerState(state=RunnerState.IDLE, session=self.session.name))


PLAN = {
    "version": "1.0.0",
    "title": "played",
    "task": [
        {"name": "wait", "condition": "time", "value": 1},
        {"name": "logger", "msg": "a"},
        {"name": "wait", "condition": "button"},
        {"name": "wait", "condition": "time", "value": 1},
        {"name": "prompt", "msg": "Ready?"},
        {"name": "logger", "msg": "b"},
    ],
}


class TimingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rospy.init_node("timing_test")
        cls.runner = PlayedRunner()
        cls.timeline = Recorder("/rad/timeline", RadTimeline)
        cls.measured = Recorder("/rad/measured_timeline", RadTimeline)
        cls.neglect = Recorder("/rad/neglect_time", Float64)
        cls.interaction = Recorder("/rad/interaction_time", Float64)
        cls.signal = Recorder("/rad/signal", Float64)
        # The events' listeners: timing and participant; the clock's: the three nodes and this one.
        wait_for(lambda: cls.runner.events.get_num_connections() >= 2, "timing and participant")
        wait_for(lambda: cls.runner.clock.get_num_connections() >= 4, "the nodes to see the clock")
        wait_for(lambda: cls.runner.presses.subscriber.get_num_connections() >= 2, "participant and button")
        wait_for(lambda: cls.measured.subscriber.get_num_connections() >= 1, "the timing node's topics")
        cls.runner.work(0.1)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(sessions_folder(), ignore_errors=True)

    def play(self, plan, mode, lose=False):
        runner = self.runner
        runner.begin_run(plan, mode, 6)
        began = runner.now
        runner.work_step(1.0, lose)
        runner.work_step(0.5)
        first = runner.wait_step(lose_start=lose)
        runner.work_step(2.0)
        second = runner.wait_step("prompt")
        runner.work_step(0.25)
        runner.finish()
        session = runner.session.name
        length = runner.now - began
        wait_for(
            lambda: (
                self.measured.messages
                and self.measured.last.session == session
                and self.measured.last.intervals
                and abs(self.measured.last.intervals[-1].end - length) < 1e-9
            ),
            "the timeline of the whole run",
        )
        return first, second

    def durations(self, timeline):
        return [(interval.kind, interval.end - interval.start) for interval in timeline.intervals]

    def assert_responses(self, waits):
        times = ResponseTimes(5, median=1.5)
        for number, (started, press) in enumerate(waits):
            self.assertEqual(press.time, started + times.response(number))
            self.assertEqual(press.source, "auto")
            self.assertEqual(json.loads(press.detail)["response_time"], times.response(number))
            self.assertAlmostEqual(press.header.stamp.to_sec(), press.time, delta=1e-6)

    def test_1_capture_then_replay(self):
        waits = self.play(PLAN, "capture")
        self.assert_responses(waits)
        first, second = (press.time - started for started, press in waits)
        self.assertEqual([i.step for i in self.measured.last.intervals], [0, 2, 3, 4, 5])
        kinds = [interval.kind for interval in self.measured.last.intervals]
        self.assertEqual(kinds, [RadInterval.NEGLECT, RadInterval.INTERACTION] * 2 + [RadInterval.NEGLECT])
        durations = [duration for _, duration in self.durations(self.measured.last)]
        self.assertAlmostEqual(durations[1], first, delta=1e-9)
        self.assertAlmostEqual(durations[3], second, delta=1e-9)
        self.assertFalse(self.timeline.last.expected)

        captured = self.runner.session.directory / "plan_captured.json"
        wait_for(captured.exists, "the captured plan")
        plan = json.loads(captured.read_text())
        rads = [entry["rad"] for entry in plan["task"]]
        self.assertAlmostEqual(rads[0]["neglect_time"], 1.0, delta=2 * TICK)
        self.assertAlmostEqual(rads[2]["expected_interaction_time"], first, delta=1e-6)
        self.assertAlmostEqual(rads[4]["expected_interaction_time"], second, delta=1e-6)
        measured = self.durations(self.measured.last)

        self.neglect.messages.clear()
        self.interaction.messages.clear()
        runner = self.runner
        runner.begin_run(plan, "replay", 6)
        wait_for(lambda: self.timeline.last.session == runner.session.name, "the expected timeline")
        expected = self.durations(self.timeline.last)
        self.assertTrue(self.timeline.last.expected)
        self.assertEqual([kind for kind, _ in expected], [kind for kind, _ in measured])
        for (_, planned), (_, was) in zip(expected, measured):
            self.assertAlmostEqual(planned, was, delta=1e-5)
        # Half of the first interval by, half of it left; it counts down without a jump.
        runner.begin_step("wait")
        runner.work(0.75)
        wait_for(lambda: self.neglect.messages and self.neglect.last.data < measured[0][1] - 0.6, "the countdown")
        left = [message.data for message in self.neglect.messages]
        self.assertEqual(left, sorted(left, reverse=True))
        self.assertAlmostEqual(left[-1], measured[0][1] - 0.75, delta=0.15)
        self.assertEqual({message.data for message in self.interaction.messages}, {0.0})
        self.assertTrue(0.0 < self.signal.last.data < 1.0)
        runner.finish("stopped")
        self.assertTrue(self.timeline.last.expected)

    def test_2_lost_messages_and_a_second_run_change_nothing(self):
        self.assert_responses(self.play(PLAN, "run", lose=True))
        self.assertEqual([i.step for i in self.measured.last.intervals], [0, 2, 3, 4, 5])
        self.assert_responses(self.play(PLAN, "run"))
        self.assertFalse(self.timeline.last.expected)

    def test_3_a_wait_that_ends_otherwise_gets_no_press(self):
        runner = self.runner
        runner.begin_run(PLAN, "run", 6)
        runner.begin_step("wait")
        started = runner.emit(EventKind.WAIT_STARTED, condition="button").time
        runner.work(0.1)
        runner.emit(EventKind.WAIT_ENDED, condition="button", by="timeout", started=started, ended=runner.now)
        runner.end_step()
        runner.work_step(8.0)
        self.assertEqual(runner.presses.messages, [])
        runner.begin_step("wait")
        runner.emit(EventKind.WAIT_STARTED, condition="button")
        runner.work(0.1)
        runner.finish("stopped")
        runner.work(8.0)
        self.assertEqual(runner.presses.messages, [])

    def test_4_a_node_that_starts_in_the_middle_of_a_wait_knows_all_of_it(self):
        runner = self.runner
        runner.begin_run(PLAN, "run", 6)
        runner.work_step(1.0)
        late = subprocess.Popen(
            [
                "rosrun",
                "iter_runner",
                "timing",
                "__name:=late",
                "/rad/measured_timeline:=/late",
                "/rad/timeline:=/late2",
            ]
        )
        try:
            timeline = Recorder("/late", RadTimeline)
            wait_for(lambda: timeline.messages, "the late node's timeline")
            self.assertEqual(timeline.last.session, runner.session.name)
            self.assertAlmostEqual(timeline.last.intervals[0].end, 1.0, delta=2 * TICK)
            self.assertEqual(timeline.last.intervals[0].step, 0)
        finally:
            late.terminate()
            late.wait(30)
        runner.finish("stopped")

    def test_5_a_topic_is_a_button(self):
        runner = self.runner
        runner.presses.messages.clear()
        switch = rospy.Publisher("/foot_switch", Bool, queue_size=10)
        wait_for(lambda: switch.get_num_connections() >= 1, "the button")
        for down in (False, True, True, False, True):
            switch.publish(down)
        wait_for(lambda: len(runner.presses.messages) == 2, "two presses")
        self.assertEqual({press.source for press in runner.presses.messages}, {"topic"})
        self.assertAlmostEqual(runner.presses.last.time, runner.now, delta=0.1)
        switch.unregister()

    def test_6_a_stamp_in_a_header_is_the_time_of_the_press(self):
        runner = self.runner
        runner.presses.messages.clear()
        source = subprocess.Popen(
            ["rosrun", "iter_runner", "button", "__name:=second", "_source:=topic", "_topic:=/stamped"]
        )
        try:
            stamped = rospy.Publisher("/stamped", Header, queue_size=10)
            wait_for(lambda: stamped.get_num_connections() >= 1, "the second button")
            wait_for(lambda: runner.clock.get_num_connections() >= 5, "it to see the clock")
            wait_for(lambda: runner.presses.subscriber.get_num_connections() >= 3, "its presses")
            runner.work(0.2)
            stamped.publish(Header(stamp=rospy.Time.from_sec(runner.now - 0.125)))
            wait_for(lambda: runner.presses.messages, "the press")
            self.assertAlmostEqual(runner.presses.last.time, runner.now - 0.125, delta=1e-6)
        finally:
            source.terminate()
            source.wait(30)

    def test_7_wrong_parameters_end_with_a_clear_error(self):
        wrong = [
            ("button", "_source:=serial", "~port"),
            ("button", "_source:=web", "not built yet"),
            ("button", "_source:=nonesuch", "keyboard, serial, topic"),
            ("button", "_source:=keyboard", "terminal of its own"),
            ("participant", "_median:=-1", "median"),
            ("timing", "_rate:=0", "~rate"),
        ]
        running = [
            subprocess.Popen(
                ["rosrun", "iter_runner", name, f"__name:=wrong_{number}", argument],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            for number, (name, argument, _) in enumerate(wrong)
        ]
        for process, (_, _, expected) in zip(running, wrong):
            output = process.communicate(timeout=120)[0].decode()
            self.assertEqual(process.returncode, 1, output)
            self.assertIn(expected, output)
            self.assertNotIn("Traceback", output)


if __name__ == "__main__":
    rostest.rosrun("iter_runner", "timing_test", TimingTest, sys.argv)
