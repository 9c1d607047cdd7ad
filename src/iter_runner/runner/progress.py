"""A run as a terminal shows it: live where it is one, line by line where it is not."""

from __future__ import annotations

import math
from typing import Optional, Protocol, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from iter_runner.runner.state import RunState, State

_STYLES = {
    State.IDLE: ("idle", "dim"),
    State.WAITING_FOR_ARM: ("waiting for the arm", "yellow"),
    State.RUNNING: ("running", "green"),
    State.WAITING_FOR_HUMAN: ("WAITING FOR", "bold yellow"),
    State.PAUSED: ("PAUSED", "bold cyan"),
    State.FAULTED: ("FAULTED", "bold red"),
}


class View(Protocol):
    """What the tool shows a run with."""

    def show(self, state: RunState, passed: Sequence[RunState], now: float) -> None:
        """Shows ``state`` at ``now`` (study clock, s), after all that ``passed`` since last time, in order."""

    def note(self, text: str) -> None:
        """A line that stays."""

    def close(self) -> None:
        """Leaves the terminal as it should be."""


def duration_text(seconds: float) -> str:
    """``m:ss``, or ``h:mm:ss`` from an hour on; a dash for what is not known."""
    if not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def status_text(state: RunState) -> str:
    """One line on what the run is doing or whom it waits for."""
    word = _STYLES[state.state][0]
    if state.state is State.WAITING_FOR_HUMAN:
        return f"{word} {state.waiting_for}"
    if state.state is State.FAULTED:
        return f"{word}: {state.fault}"
    if state.state is State.PAUSED and state.waiting_for:
        return f"{word} (waiting for {state.waiting_for})"
    return word


class LiveView:
    """A few lines that are drawn again and again.

    Args:
        console: of the terminal.
        title: of what is run, until the runner tells its own.
    """

    def __init__(self, console: Console, title: str) -> None:
        self._title = title
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._live.start()
        self._shown_at: Optional[float] = None

    def show(self, state: RunState, passed: Sequence[RunState], now: float) -> None:
        """See :class:`View`."""
        if passed or self._shown_at is None:
            self._shown_at = now
        self._live.update(render(state, now, now - self._shown_at, self._title), refresh=True)

    def note(self, text: str) -> None:
        """See :class:`View`."""
        self._live.console.print(text, highlight=False, markup=False)

    def close(self) -> None:
        """See :class:`View`."""
        self._live.stop()


def render(state: RunState, now: float, since: float, title: str = "") -> Group:
    """The live view's lines.

    Args:
        state: of the run.
        now: study clock, s.
        since: seconds since ``state`` became so.
        title: where the state has none yet.
    """
    _, style = _STYLES[state.state]
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right")
    table.add_column(ratio=1)
    number = state.step + 1  # of the present step, for people
    table.add_row("plan", Text(state.title or title, style="bold"))
    table.add_row("", Text(status_text(state), style=style))
    if state.steps:
        table.add_row("step", f"{number} of {state.steps}")
        table.add_row("", ProgressBar(total=max(1, state.steps), completed=number, width=40))
    if state.doing:
        table.add_row("now", Text(state.doing))
    if state.started > 0:
        times = f"{duration_text(now - state.started)} elapsed"
        if math.isfinite(state.remaining):
            times += f", {duration_text(state.remaining - since)} expected to remain"
        table.add_row("time", times)
    return Group(table)


class PlainView:
    """A line for every change, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: Optional[RunState] = None

    def show(self, state: RunState, passed: Sequence[RunState], now: float) -> None:
        """See :class:`View`."""
        for one in passed:
            before, self._last = self._last, one
            same_step = before is not None and before.step == one.step
            if same_step and before is not None:
                held = (State.PAUSED, State.FAULTED)
                news = (one.state, one.fault, one.waiting_for) != (before.state, before.fault, before.waiting_for)
                if not news or (one.state is State.RUNNING and before.state not in held):
                    continue
            line = f"step {one.step + 1} of {one.steps}: {one.doing}" if one.step >= 0 else status_text(one)
            if same_step or (one.state is not State.RUNNING and one.step >= 0):
                line += f" [{status_text(one)}]"
            # Processes hear of the simulated clock one tick apart: a run may have begun ahead of ours.
            self.note((f"{max(0.0, now - one.started):9.3f} s  " if one.started > 0 else "") + line)

    def note(self, text: str) -> None:
        """See :class:`View`."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
        self._console.file.flush()

    def close(self) -> None:
        """See :class:`View`."""


def make_view(console: Console, title: str) -> View:
    """The view that fits where the output goes."""
    return LiveView(console, title) if console.is_terminal else PlainView(console)
