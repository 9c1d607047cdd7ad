"""States as messages and back."""

from __future__ import annotations

from iter_runner.msg import RunnerState
from iter_runner.runner.state import RunState, State


def state_to_message(state: RunState) -> RunnerState:
    """The message on /runner/state that says what a run is doing."""
    return RunnerState(
        state=int(state.state),
        session=state.session,
        title=state.title,
        step=state.step,
        steps=state.steps,
        step_name=state.step_name,
        doing=state.doing,
        waiting_for=state.waiting_for,
        fault=state.fault,
        started=state.started,
        remaining=state.remaining,
    )


def state_from_message(message: RunnerState) -> RunState:
    """The state that a message on /runner/state carries."""
    return RunState(
        state=State(message.state),
        session=message.session,
        title=message.title,
        step=message.step,
        steps=message.steps,
        step_name=message.step_name,
        doing=message.doing,
        waiting_for=message.waiting_for,
        fault=message.fault,
        started=message.started,
        remaining=message.remaining,
    )
