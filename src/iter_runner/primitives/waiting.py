"""Time and people: wait, prompt, logger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Literal, Optional, Tuple

from pydantic import ConfigDict, Field, model_validator

from iter_runner.events import Event, EventKind
from iter_runner.plan.registry import primitive
from iter_runner.plan.step import LONG, Problem, Step, fault

if TYPE_CHECKING:
    from iter_runner.primitives.context import RunContext


class _OpenWait:
    """One wait from its first event to its last. A wait that a stop or a fault cuts short is ended by the engine."""

    def __init__(self, run: RunContext, condition: str, timeout: Optional[float], message: str) -> None:
        self._run = run
        self._condition = condition
        started = run.emit(EventKind.WAIT_STARTED, condition=condition, timeout=timeout, message=message)
        self.started = started.time

    def deadline(self, duration: Optional[float]) -> Optional[float]:
        """The study clock ``duration`` seconds after the start."""
        return None if duration is None else self.started + duration

    def end(self, by: str, ended: Optional[float] = None, **data: Any) -> Event:
        """Emits the end: now, or at ``ended`` on the study clock."""
        moment = self._run.clock.now() if ended is None else ended
        return self._run.emit(
            EventKind.WAIT_ENDED,
            condition=self._condition,
            by=by,
            started=self.started,
            ended=moment,
            duration=moment - self.started,
            **data,
        )


def ask(run: RunContext, message: str, timeout: Optional[float]) -> Optional[str]:
    """Asks the person and returns the answer, or None at the timeout; emits the wait's start and end."""
    wait = _OpenWait(run, "prompt", timeout, message)
    deadline = wait.deadline(timeout)
    answer = run.wait_for_answer(message, deadline)
    if answer is None:
        wait.end("timeout", deadline, answer=None)
        return None
    wait.end("answer", answer.time, answer=answer.text)
    return answer.text


@primitive("wait")
class Wait(Step):
    """Waits for a time, or for the participant's button."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"condition": {"const": "time"}}},
            "then": {"required": ["value"]},
            "else": {"properties": {"value": False}},
        }
    )

    condition: Literal["time", "button"] = Field(description="time or button")
    value: Optional[float] = Field(default=None, ge=0, le=LONG, description="seconds, for condition time")
    timeout: Optional[float] = Field(
        default=None, ge=0, le=LONG, description="seconds after which the plan goes on all the same"
    )
    message: str = Field(default="", description="for the screen: what the human is to do")

    @classmethod
    def adapt_original(cls, fields: Dict[str, Any]) -> Tuple[Dict[str, Any], List[Problem]]:
        """A button's wait never looked at ``value``."""
        if fields.get("condition") == "button" and "value" in fields:
            value = fields["value"]
            fields = {key: item for key, item in fields.items() if key != "value"}
            return fields, [Problem("/value", repr(value), "none with condition button; it is left out", warning=True)]
        return fields, []

    @model_validator(mode="after")
    def _value_for_time(self) -> Wait:
        if self.condition == "time" and self.value is None:
            raise fault('condition "time" without a value', '"value": seconds')
        if self.condition == "button" and self.value is not None:
            raise fault('condition "button" with a value', '"timeout" to go on without a press')
        return self

    def execute(self, run: RunContext) -> None:
        """Returns at the press, or when the time is over."""
        wait = _OpenWait(run, self.condition, self.timeout, self.message)
        if self.condition == "button":
            deadline = wait.deadline(self.timeout)
            pressed = run.wait_for_press(deadline)
            if pressed is None:
                wait.end("timeout", deadline)
            else:
                wait.end("press", pressed)
            return
        value = self.value or 0.0
        cut_short = self.timeout is not None and self.timeout < value
        run.control.sleep_until(wait.started + (self.timeout or 0.0 if cut_short else value))
        wait.end("timeout" if cut_short else "time")

    def describe(self) -> str:
        """For what."""
        if self.condition == "time":
            return f"waiting {self.value:g} s"
        return "waiting for the button" + (f": {self.message}" if self.message else "")


@primitive("prompt")
class Prompt(Step):
    """Asks the person a question; the answer is in the record. The button answers with an empty text."""

    msg: str = Field(description="the question")
    timeout: Optional[float] = Field(
        default=None, ge=0, le=LONG, description="seconds after which the plan goes on all the same"
    )

    @classmethod
    def adapt_original(cls, fields: Dict[str, Any]) -> Tuple[Dict[str, Any], List[Problem]]:
        """The original printed whatever the message was."""
        return _text_message(fields)

    def execute(self, run: RunContext) -> None:
        """Returns when it is answered."""
        ask(run, self.msg, self.timeout)

    def describe(self) -> str:
        """The question."""
        return f"asking: {self.msg}"


@primitive("logger")
class Logger(Step):
    """Writes a line into the record."""

    msg: str = Field(description="the line")

    @classmethod
    def adapt_original(cls, fields: Dict[str, Any]) -> Tuple[Dict[str, Any], List[Problem]]:
        """The original printed whatever the message was."""
        return _text_message(fields)

    def execute(self, run: RunContext) -> None:
        """Emits a log event."""
        run.emit(EventKind.LOG, message=self.msg)

    def describe(self) -> str:
        """The line."""
        return self.msg


def _text_message(fields: Dict[str, Any]) -> Tuple[Dict[str, Any], List[Problem]]:
    problems: List[Problem] = list(_not_text(fields))
    return ({**fields, "msg": str(fields["msg"])}, problems) if problems else (fields, problems)


def _not_text(fields: Dict[str, Any]) -> Iterator[Problem]:
    if "msg" in fields and not isinstance(fields["msg"], str):
        yield Problem("/msg", str(fields["msg"]), "text in quotes", warning=True)
