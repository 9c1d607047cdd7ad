"""Builds the events of a run without a runner: a small script in, the journal's events out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Mapping, Optional

from iter_runner.events import Event, EventKind


class ScriptedRun:
    """A run's events, one method a thing that happens; the clock goes forward only by :meth:`work` and by waits."""

    def __init__(self, session: str = "session", start: float = 100.0) -> None:
        self.session = session
        self.now = start
        self.step = -1
        self.pointer = ""
        self.events: List[Event] = []

    def emit(self, kind: EventKind, fields: Optional[Mapping[str, Any]] = None, **data: Any) -> Event:
        event = Event(
            sequence=len(self.events),
            session=self.session,
            kind=kind,
            time=self.now,
            wall_time=1_700_000_000.0 + self.now,
            step=self.step,
            pointer=self.pointer,
            data={**data, **(fields or {})},
        )
        self.events.append(event)
        return event

    def start(self, **data: Any) -> ScriptedRun:
        fields = {
            "title": "test run",
            "plan_hash": "ab" * 32,
            "robot": "ur5",
            "planner": "static",
            "mode": "run",
            "steps": 0,
            "first_step": 0,
            "study": "",
            "participant_id": "",
            "condition": "",
            "tool_frame": "tool0",
        }
        self.emit(EventKind.RUN_STARTED, **{**fields, **data})
        return self

    def finish(self, outcome: str = "finished", **data: Any) -> ScriptedRun:
        self.step, self.pointer = -1, ""
        done = len({event.step for event in self.events if event.kind is EventKind.STEP_FINISHED})
        self.emit(EventKind.RUN_FINISHED, outcome=outcome, message="", steps_done=done, **data)
        return self

    def work(self, seconds: float) -> ScriptedRun:
        self.now += seconds
        return self

    def begin(self, name: str, pointer: Optional[str] = None, rad: Any = None) -> ScriptedRun:
        self.step += 1
        self.pointer = pointer or f"/task/{self.step}"
        self.emit(EventKind.STEP_STARTED, name=name, rad=rad)
        return self

    def end(self) -> ScriptedRun:
        started = next(e for e in reversed(self.events) if e.kind is EventKind.STEP_STARTED)
        self.emit(EventKind.STEP_FINISHED, name=started.data["name"], duration=self.now - started.time)
        return self

    def move(self, seconds: float, path_hash: str = "cd" * 32, **where: Any) -> ScriptedRun:
        self.begin("move", **where).work(seconds)
        self.emit(
            EventKind.MOVE_FINISHED,
            path_hash=path_hash,
            duration=seconds,
            position_error=1e-4,
            orientation_error=1e-3,
            commanded_path=f"paths/{self.step}.npz",
        )
        return self.end()

    def gripper(self, action: str, seconds: float = 0.5, stalled: bool = False, **where: Any) -> ScriptedRun:
        self.begin(action, **where).work(seconds)
        self.emit(
            EventKind.GRIPPER_FINISHED,
            action=action,
            position=0.4,
            stalled=stalled,
            reached_goal=not stalled,
            opening=0.04,
        )
        return self.end()

    def wait_button(
        self, seconds: float, late: float = 0.0, by: str = "press", rad: Any = None, **where: Any
    ) -> ScriptedRun:
        """A wait that a press ends after ``seconds``; the runner hears of the press ``late`` seconds afterwards."""
        self.begin("wait", rad=rad, **where)
        started = self.now
        self.emit(EventKind.WAIT_STARTED, condition="button", timeout=None, message="")
        ended = started + seconds
        self.now = ended + late
        if by == "press":
            self.press(ended, used=True, detail={"response_time": seconds})
        self.emit(
            EventKind.WAIT_ENDED, condition="button", by=by, started=started, ended=ended, duration=ended - started
        )
        return self.end()

    def wait_time(self, seconds: float, **where: Any) -> ScriptedRun:
        self.begin("wait", **where)
        started = self.now
        self.emit(EventKind.WAIT_STARTED, condition="time", timeout=None, message="")
        self.now += seconds
        self.emit(EventKind.WAIT_ENDED, condition="time", by="time", started=started, ended=self.now, duration=seconds)
        return self.end()

    def open_wait(self, seconds_until_last_event: float) -> ScriptedRun:
        self.begin("wait")
        self.emit(EventKind.WAIT_STARTED, condition="button", timeout=None, message="")
        self.now += seconds_until_last_event
        self.emit(EventKind.LOG, message="still here")
        return self

    def press(self, time: Optional[float] = None, used: bool = False, reason: str = "", **data: Any) -> ScriptedRun:
        stamp = self.now if time is None else time
        fields = {"source": "auto", "detail": {}, **data, "time": stamp, "used": used, "reason": reason}
        self.emit(EventKind.PRESS, fields=fields)
        return self

    def write(self, folder: Path) -> Path:
        """Writes the session's folder; returns it."""
        directory = folder / self.session
        directory.mkdir(parents=True)
        (directory / "journal.jsonl").write_text("".join(event.to_json() + "\n" for event in self.events))
        return directory
