from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
from runner_bench import Bench, FakeStep

from iter_runner.events import EventKind
from iter_runner.plan.step import Rad
from iter_runner.planners.base import Unreachable, path_hash
from iter_runner.primitives.context import ToolPose
from iter_runner.run_control import Fault, RunControl
from iter_runner.runner.engine import Engine
from iter_runner.runner.journal import JournalError
from iter_runner.runner.presses import Press
from iter_runner.runner.state import State
from iter_runner.scene import SceneObject
from iter_runner.study import sessions

Action = Callable[[Engine], None]


def nothing(run: Engine) -> None:
    pass


def move_to(x: float, y: float = 0.0, z: float = 0.0) -> Action:
    return lambda run: run.move(ToolPose((x, y, z), (0.0, 0.0, 0.0, 1.0)), {})


def button(timeout: float | None = None) -> Action:
    def wait(run: Engine) -> None:
        began = run.emit(EventKind.WAIT_STARTED, condition="button", timeout=timeout).time
        ended = run.wait_for_press(None if timeout is None else began + timeout)
        by = "timeout" if ended is None else "press"
        ended = began + (timeout or 0.0) if ended is None else ended
        run.emit(
            EventKind.WAIT_ENDED, condition="button", by=by, started=began, ended=ended, duration=ended - began
        )  # fmt: skip

    return wait


def answered(into: list[Any], timeout: float | None = None) -> Action:
    def ask(run: Engine) -> None:
        began = run.emit(EventKind.WAIT_STARTED, condition="prompt", timeout=timeout, message="Ready?").time
        into.append(run.wait_for_answer("Ready?", None if timeout is None else began + timeout))
        run.emit(EventKind.WAIT_ENDED, condition="prompt", by="answer", started=began, ended=began, duration=0.0)

    return ask


class FailsOnce:
    def __init__(self, error: BaseException, then: Action = nothing) -> None:
        self.error, self.then, self.calls = error, then, 0

    def __call__(self, run: Engine) -> None:
        self.calls += 1
        if self.calls == 1:
            raise self.error
        self.then(run)


# The plain way through -----------------------------------------------------------------------------------------------


def test_a_plan_runs_to_its_end(bench: Bench) -> None:
    bench.start(nothing, nothing)
    outcome = bench.ended()
    assert (outcome.outcome, outcome.steps_done) == ("finished", 2)
    assert bench.kinds() == [
        "run_started", "step_started", "step_finished", "step_started", "step_finished", "run_finished",
    ]  # fmt: skip
    started = bench.events(EventKind.STEP_STARTED)
    assert [(event.step, event.pointer) for event in started] == [(0, "/task/0"), (1, "/task/1")]
    assert bench.arm.readied == 1


def test_an_empty_plan_finishes(bench: Bench) -> None:
    bench.start()
    assert bench.ended().outcome == "finished"
    assert bench.kinds() == ["run_started", "run_finished"]


def test_a_run_may_begin_at_a_later_step(bench: Bench) -> None:
    bench.start(nothing, nothing, nothing, first_step=2)
    assert bench.ended().steps_done == 1
    assert [event.step for event in bench.events(EventKind.STEP_STARTED)] == [2]


def test_numbers_have_no_gap_and_publication_follows_the_journal(bench: Bench) -> None:
    bench.start(nothing, button(timeout=0.0), nothing)
    bench.ended()
    assert [event.sequence for event in bench.published] == list(range(len(bench.published)))
    assert sessions.read_journal(bench.session.journal) == bench.published


def test_the_end_of_a_step_shares_a_write_with_the_next_beginning(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[list[str]] = []
    append = bench.journal.append

    def counted(events: Any) -> None:
        writes.append([event.kind.value for event in events])
        append(events)

    monkeypatch.setattr(bench.journal, "append", counted)
    bench.start(*[lambda run: run.emit(EventKind.LOG, message="x")] * 3)
    bench.ended()
    assert writes == [
        ["run_started"],
        ["step_started"],
        ["log", "step_finished", "step_started"],
        ["log", "step_finished", "step_started"],
        ["log", "step_finished"],
        ["run_finished"],
    ]


def test_the_expected_time_that_remains_is_shown(bench: Bench) -> None:
    steps = [FakeStep(rad=Rad(neglect_time=3.0)), FakeStep(), FakeStep(rad=Rad(expected_interaction_time=2.0))]
    bench.start(*steps)  # type: ignore[arg-type]
    bench.ended()
    assert [state.remaining for state in bench.states if state.step >= 0][:1] == [5.0]
    assert {state.step: state.remaining for state in bench.states if state.step >= 0} == {0: 5.0, 1: 2.0, 2: 2.0}


# Moves ---------------------------------------------------------------------------------------------------------------


def test_a_move_keeps_its_path_and_its_error(bench: Bench) -> None:
    bench.planner.lag = np.array([0.0, 0.001, 0.0])
    bench.start(move_to(0.3))
    bench.ended()
    (event,) = bench.events(EventKind.MOVE_FINISHED)
    positions, _ = sessions.load_path(bench.session.directory / event.data["commanded_path"])
    np.testing.assert_array_equal(positions, [[0, 0, 0], [0.3, 0, 0]])
    assert event.data["path_hash"] == path_hash(positions)
    assert event.data["position_error"] == pytest.approx(0.001)
    assert event.data["orientation_error"] == pytest.approx(0.0)
    assert event.data["planning_time"] == bench.planner.planning_time


def test_a_move_starts_where_the_last_one_commanded_the_arm(bench: Bench) -> None:
    bench.planner.lag = np.full(3, 0.002)
    bench.start(move_to(0.3), move_to(0.5))
    bench.ended()
    np.testing.assert_array_equal(bench.planner.starts[1], [0.3, 0.0, 0.0])
    assert bench.events(EventKind.MOVE_FINISHED)[1].data["start"] == "commanded"


def test_an_arm_that_something_else_moved_starts_where_it_is_measured(bench: Bench) -> None:
    def shove(run: Engine) -> None:
        bench.arm.positions = np.array([0.1, 0.2, 0.3])

    bench.start(move_to(0.3), shove, move_to(0.5))
    bench.ended()
    np.testing.assert_array_equal(bench.planner.starts[1], [0.1, 0.2, 0.3])
    assert bench.events(EventKind.MOVE_FINISHED)[1].data["start"] == "measured"


def test_the_first_move_starts_at_the_candidate_that_the_arm_stands_at(bench: Bench) -> None:
    bench.arm.positions = np.array([0.1001, 0.0, 0.0])
    candidates = [np.array([0.9, 0.0, 0.0]), np.array([0.1, 0.0, 0.0])]
    bench.start(move_to(0.3), start_candidates=candidates)
    bench.ended()
    np.testing.assert_array_equal(bench.planner.starts[0], candidates[1])


def test_a_moving_arm_comes_to_rest_before_a_wait_begins(bench: Bench) -> None:
    bench.arm.velocities = np.array([0.5, 0.0, 0.0])
    engine = bench.start(button())
    bench.until_state(State.RUNNING, step=0)
    bench.clock.turn(2.0)
    assert not bench.events(EventKind.WAIT_STARTED)
    bench.arm.velocities = np.zeros(3)
    bench.clock.turn(0.1)
    bench.until_state(State.WAITING_FOR_HUMAN)
    assert bench.events(EventKind.WAIT_STARTED)[0].time >= 1002.0
    engine.press(Press(bench.clock.now()))
    assert bench.ended().outcome == "finished"


# Waits and presses ---------------------------------------------------------------------------------------------------


def test_a_press_ends_the_wait_at_its_own_time(bench: Bench) -> None:
    engine = bench.start(button())
    bench.until_state(State.WAITING_FOR_HUMAN)
    assert bench.states[-1].waiting_for == "button"
    bench.clock.turn(2.5)
    assert engine.press(Press(1002.0, "serial", {"line": "x"})).used
    bench.ended()
    (wait,) = bench.events(EventKind.WAIT_ENDED)
    assert (wait.data["started"], wait.data["ended"], wait.data["duration"]) == (1000.0, 1002.0, 2.0)
    (press,) = bench.events(EventKind.PRESS)
    assert press.data == {"source": "serial", "time": 1002.0, "used": True, "reason": "", "detail": {"line": "x"}}
    assert press.sequence < wait.sequence


def test_presses_outside_a_wait_are_recorded_and_ignored(bench: Bench) -> None:
    engine = bench.start(button(), button())
    bench.until_state(State.WAITING_FOR_HUMAN, step=0)
    engine.press(Press(900.0))  # an old stamp
    bench.clock.turn(1.0)
    engine.press(Press(1001.0))
    bench.until_state(State.WAITING_FOR_HUMAN, step=1)
    engine.press(Press(1001.010))  # bounces into the next wait
    bench.clock.turn(1.0)
    engine.press(Press(1002.0))
    bench.ended()
    presses = bench.events(EventKind.PRESS)
    assert [press.data["used"] for press in presses] == [False, True, False, True]
    assert "before the wait began" in presses[0].data["reason"]
    assert "bounce" in presses[2].data["reason"]
    assert all(wait.data["duration"] >= 0 for wait in bench.events(EventKind.WAIT_ENDED))


def test_whoever_presses_on_hearing_of_the_wait_finds_it_open(bench: Bench) -> None:
    verdicts = []
    engine = bench.engine(button())

    def press_at_once(event: Any) -> None:
        if event.kind is EventKind.WAIT_STARTED:
            verdicts.append(engine.press(Press(event.time)))

    engine._log._publish = press_at_once
    assert engine.execute().outcome == "finished"
    assert verdicts[0].used


def test_a_wait_may_run_out(bench: Bench) -> None:
    engine = bench.start(button(timeout=5.0), nothing)
    bench.until_state(State.WAITING_FOR_HUMAN)
    bench.clock.turn(5.0)
    bench.ended()
    assert bench.events(EventKind.WAIT_ENDED)[0].data["by"] == "timeout"
    assert not engine.press(Press(1004.0)).used


def test_a_prompt_takes_one_answer(bench: Bench) -> None:
    answers: list[Any] = []
    engine = bench.start(answered(answers))
    assert engine.answer("too early") in [(False, "no prompt is open"), (True, "answered")]
    bench.until_state(State.WAITING_FOR_HUMAN)
    assert bench.states[-1].waiting_for == "answer to: Ready?"
    engine.answer("yes")
    bench.ended()
    assert answers in ([("yes", 1000.0)], [("too early", 1000.0)])
    assert engine.answer("again") == (False, "no prompt is open")


def test_a_press_answers_a_prompt_with_nothing(bench: Bench) -> None:
    answers: list[Any] = []
    engine = bench.start(answered(answers), answered(answers, timeout=1.0))
    bench.until_state(State.WAITING_FOR_HUMAN, step=0)
    bench.clock.turn(0.5)
    assert engine.press(Press(1000.2)).used  # its own time counts, not when it arrived
    bench.until_state(State.WAITING_FOR_HUMAN, step=1)
    bench.clock.turn(1.0)
    bench.ended()
    assert answers == [("", 1000.2), None]


# Pause, resume, step, stop -------------------------------------------------------------------------------------------


def test_a_pause_holds_the_run_between_steps_and_in_a_wait(bench: Bench) -> None:
    engine = bench.start(button(), nothing)
    bench.until_state(State.WAITING_FOR_HUMAN)
    assert engine.pause()[0]
    assert bench.states[-1].state is State.PAUSED
    bench.clock.turn(1.0)
    assert engine.press(Press(1001.0)).used  # the human has acted; the robot stays where it is
    bench.until(lambda: bool(bench.events(EventKind.STEP_FINISHED)))
    assert [event.step for event in bench.events(EventKind.STEP_STARTED)] == [0]
    assert engine.resume()[0]
    assert bench.ended().outcome == "finished"
    kinds = bench.kinds()
    assert kinds.index("paused") < kinds.index("press") < kinds.index("resumed")
    assert bench.events(EventKind.RESUMED)[0].data["after"] == "pause"


def test_step_does_one_step_and_pauses_again(bench: Bench) -> None:
    engine = bench.start(button(), nothing, nothing, nothing)
    bench.until_state(State.WAITING_FOR_HUMAN)
    engine.pause()
    engine.press(Press(1000.0))
    for done in (2, 3):
        bench.until(lambda done=done: len(bench.events(EventKind.STEP_FINISHED)) == done - 1)  # type: ignore[misc]
        bench.until_state(State.PAUSED)
        assert engine.step()[0]
        bench.until(lambda done=done: len(bench.events(EventKind.STEP_FINISHED)) == done)  # type: ignore[misc]
        bench.until_state(State.PAUSED)
    engine.resume()
    assert bench.ended().steps_done == 4


def test_stop_in_a_wait_ends_the_run_and_closes_the_wait(bench: Bench) -> None:
    engine = bench.start(button(), nothing)
    bench.until_state(State.WAITING_FOR_HUMAN)
    bench.clock.turn(3.0)
    assert engine.stop()[0]
    assert bench.arm.halts >= 1
    outcome = bench.ended()
    assert (outcome.outcome, outcome.steps_done) == ("stopped", 0)
    (wait,) = bench.events(EventKind.WAIT_ENDED)
    assert (wait.data["by"], wait.data["duration"]) == ("stop", 3.0)
    assert bench.events(EventKind.RUN_FINISHED)[0].data["outcome"] == "stopped"
    for refused in (engine.stop, engine.pause, engine.resume, engine.step):
        assert refused() == (False, "no plan is running")


def test_stop_in_a_move_halts_the_arm_before_it_returns(bench: Bench) -> None:
    moving = []

    def wait_in_move(control: RunControl) -> None:
        moving.append(True)
        control.wait_for(lambda: False)

    bench.planner.during = wait_in_move
    engine = bench.start(move_to(0.3), nothing)
    bench.until(lambda: bool(moving) or bool(bench.changed.wait(0.01)))
    engine.stop()
    assert bench.arm.halts >= 1
    assert bench.ended().outcome == "stopped"
    assert not bench.events(EventKind.MOVE_FINISHED)


def test_stop_in_a_pause_ends_the_run(bench: Bench) -> None:
    engine = bench.start(button(), nothing)
    bench.until_state(State.WAITING_FOR_HUMAN)
    engine.pause()
    engine.stop()
    assert bench.ended().outcome == "stopped"


# Faults --------------------------------------------------------------------------------------------------------------


def test_a_fault_stands_still_and_the_step_is_repeated_on_resume(bench: Bench) -> None:
    step = FailsOnce(Fault("gripper", "the gripper did not answer"), move_to(0.2))
    engine = bench.start(nothing, step, nothing)
    bench.until_state(State.FAULTED)
    assert bench.states[-1].fault == "the gripper did not answer"
    assert engine.pause()[0] is False
    assert bench.arm.halts == 1
    assert engine.resume()[0]
    assert bench.ended().outcome == "finished"
    assert bench.states[-1].fault == ""
    assert bench.arm.readied == 2
    assert bench.events(EventKind.FAULT)[0].data == {"code": "gripper", "message": "the gripper did not answer"}
    assert [(e.step, e.data["attempt"]) for e in bench.events(EventKind.STEP_STARTED)] == [
        (0, 1), (1, 1), (1, 2), (2, 1),
    ]  # fmt: skip


def test_an_arm_that_is_not_ready_leaves_the_run_faulted_with_the_reason(bench: Bench) -> None:
    bench.arm.not_ready = Fault("not_ready", "the emergency stop is pressed")
    engine = bench.start(nothing)
    bench.until_state(State.FAULTED)
    engine.resume()
    bench.until(lambda: len(bench.events(EventKind.FAULT)) == 2)
    bench.arm.not_ready = None
    bench.until_state(State.FAULTED)
    engine.resume()
    assert bench.ended().outcome == "finished"
    assert {event.data["message"] for event in bench.events(EventKind.FAULT)} == {"the emergency stop is pressed"}


def test_stop_in_a_fault_aborts_the_run(bench: Bench) -> None:
    engine = bench.start(FailsOnce(Fault("driver_lost", "no driver")))
    bench.until_state(State.FAULTED)
    engine.stop()
    outcome = bench.ended()
    assert outcome.outcome == "aborted"
    assert "no driver" in outcome.message


def test_a_fault_of_the_driver_interrupts_a_move(bench: Bench) -> None:
    calls = []

    def protective_stop(control: RunControl) -> None:
        calls.append(True)
        if len(calls) == 1:
            control.report_fault(Fault("protective_stop", "protective stop"))

    bench.planner.during = protective_stop
    engine = bench.start(move_to(0.3))
    bench.until_state(State.FAULTED)
    engine.resume()
    assert bench.ended().outcome == "finished"
    np.testing.assert_array_equal(bench.planner.starts[1], [0.15, 0, 0])  # from where it was stopped


def test_a_fault_in_a_wait_closes_it_and_the_wait_begins_anew(bench: Bench) -> None:
    engine = bench.start(button())
    bench.until_state(State.WAITING_FOR_HUMAN)
    bench.control.report_fault(Fault("protective_stop", "protective stop"))
    bench.until_state(State.FAULTED)
    assert engine.press(Press(1000.0)).reason == "no open wait"
    engine.resume()
    bench.until_state(State.WAITING_FOR_HUMAN)
    bench.clock.turn(1.0)
    engine.press(Press(1001.0))
    assert bench.ended().outcome == "finished"
    assert [event.data["by"] for event in bench.events(EventKind.WAIT_ENDED)] == ["interrupted", "press"]


def test_an_unreachable_goal_is_a_fault_with_the_pointer(bench: Bench) -> None:
    def refuse(control: RunControl) -> None:
        raise Unreachable("elbow at its limit")

    bench.planner.during = refuse
    engine = bench.start(move_to(9.0))
    bench.until_state(State.FAULTED)
    assert "step 1 of 1 (/task/0 fake): elbow at its limit" in bench.states[-1].fault
    engine.stop()
    assert bench.ended().outcome == "aborted"


def test_an_error_of_ours_is_a_fault_not_a_dead_run(bench: Bench) -> None:
    engine = bench.start(FailsOnce(ZeroDivisionError("division by zero")))
    bench.until_state(State.FAULTED)
    assert "ZeroDivisionError" in bench.states[-1].fault
    engine.resume()
    assert bench.ended().outcome == "finished"


def test_a_full_disk_is_a_fault_and_nothing_is_lost_after_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    append = bench.journal.append

    def full(events: Any) -> None:
        raise JournalError("can't write the journal: No space left on device")

    def fill_disk(run: Engine) -> None:
        monkeypatch.setattr(bench.journal, "append", full)

    engine = bench.start(fill_disk, nothing)
    bench.until_state(State.FAULTED)
    assert "No space left" in bench.states[-1].fault
    monkeypatch.setattr(bench.journal, "append", append)
    engine.resume()
    assert bench.ended().outcome == "finished"
    events = sessions.read_journal(bench.session.journal)
    assert [event.sequence for event in events] == list(range(len(events)))


def test_a_disk_that_fills_in_the_last_step_is_not_passed_over(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(events: Any) -> None:
        raise JournalError("full")

    engine = bench.start(lambda run: monkeypatch.setattr(bench.journal, "append", full))
    bench.until_state(State.FAULTED)
    engine.stop()
    outcome = bench.ended()
    assert outcome.outcome == "aborted"
    assert "THE RECORD IS NOT COMPLETE" in outcome.message


def test_a_record_that_cannot_begin_starts_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    engine = bench.engine(lambda run: done.append(1))
    bench.journal.close()
    with pytest.raises(JournalError):
        engine.execute()
    assert not done


# Hand, topics, scene -------------------------------------------------------------------------------------------------


def test_the_stream_lets_go_while_the_hand_works_and_not_again_after_a_fault(bench: Bench) -> None:
    def grasp(run: Engine) -> None:
        with run.hand_at_work():
            bench.planner.stream.append("hand")

    def drop(run: Engine) -> None:
        with run.hand_at_work():
            raise Fault("gripper", "stuck")

    engine = bench.start(grasp, drop)
    bench.until_state(State.FAULTED)
    assert bench.planner.stream == ["pause", "hand", "resume", "pause"]
    engine.stop()
    bench.ended()
    assert bench.planner.stream[-1] == "close"


def test_topics_and_scene_reach_the_workcell(bench: Bench) -> None:
    def act(run: Engine) -> None:
        run.publish("/light", "std_msgs/Bool", {"data": True})
        run.attach("block")
        run.detach("block")

    bench.start(act)
    bench.ended()
    assert bench.workcell.calls == [
        ("publish", "/light", "std_msgs/Bool", {"data": True}), ("attach", "block"), ("detach", "block"),
    ]  # fmt: skip


def wall(name: str) -> SceneObject:
    return SceneObject(name, np.eye(4), "box", (0.1, 0.1, 0.1))


def test_the_planner_is_told_the_scene_before_the_move_that_is_the_first_in_it(bench: Bench) -> None:
    bench.scene.add(wall("a"))
    bench.scene.add(SceneObject("block", np.eye(4), "box", (0.1, 0.1, 0.1), graspable=True))

    def add(run: Engine) -> None:
        bench.scene.add(wall("b"))

    bench.start(
        move_to(0.3), move_to(0.4), add, move_to(0.5), lambda run: run.attach("block"), move_to(0.6),
        lambda run: run.detach("block"), lambda run: run.detach("block"), move_to(0.7), move_to(0.8),
    )  # fmt: skip
    assert bench.ended().outcome == "finished"
    assert bench.planner.scenes == [(["a"], []), (["a", "b"], []), (["a", "b"], ["block"]), (["a", "b"], [])]


def test_what_the_hand_takes_is_where_it_was_commanded_and_not_where_it_is_measured(bench: Bench) -> None:
    bench.planner.lag = np.array([0.0, 0.001, 0.0])
    bench.scene.add(SceneObject("block", np.eye(4), "box", (0.1, 0.1, 0.1), graspable=True))
    bench.start(move_to(0.3), lambda run: run.attach("block"), move_to(0.7), lambda run: run.detach("block"))
    bench.ended()
    np.testing.assert_array_equal(bench.scene.get("block").pose[:3, 3], [0.7 - 0.3, 0.0, 0.0])


def test_what_the_hand_takes_after_something_else_moved_it_is_where_it_is_measured(bench: Bench) -> None:
    bench.scene.add(SceneObject("block", np.eye(4), "box", (0.1, 0.1, 0.1), graspable=True))

    def shove(run: Engine) -> None:
        bench.arm.positions = np.array([0.1, 0.2, 0.3])

    bench.start(move_to(0.3), shove, lambda run: run.attach("block"))
    bench.ended()
    np.testing.assert_allclose(bench.scene.get("block").pose[:3, 3], [-0.1, -0.2, -0.3])


def test_a_change_of_the_scene_is_in_the_record_of_the_run_it_happened_in(bench: Bench) -> None:
    engine = bench.start(button())
    bench.until_state(State.WAITING_FOR_HUMAN)
    engine.scene_changed({"change": "added", "object_name": "crate", "in_contact": None})
    (event,) = bench.events(EventKind.SCENE_CHANGED)
    assert event.step == 0
    assert event.data["object_name"] == "crate"
    engine.stop()
    bench.ended()
    engine.scene_changed({"change": "removed", "object_name": "crate"})
    assert len(bench.events(EventKind.SCENE_CHANGED)) == 1
    assert bench.kinds()[-1] == "run_finished"
