"""A run's summary drawn for a person: tables in the terminal, a timeline as a picture."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, List, Optional

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from iter_runner.study.report import CUT_SHORT, Summary, timeline

_OUTCOMES = {"finished": "green", "stopped": "yellow", "aborted": "red", CUT_SHORT: "red"}


def print_report(summary: Summary, console: Optional[Console] = None, verbose: bool = False) -> None:
    """Prints the report; without colours and lines where the console is no terminal.

    Args:
        verbose: every move and every press in place of their totals.
    """
    console = console or report_console()
    console.print(_headline(summary))
    console.print(_facts(summary))
    console.print()
    if summary["waits"]:
        console.print(_wait_table(summary, console))
    else:
        console.print("The robot never waited on the human.")
    if summary["moves"]:
        console.print()
        console.print(_move_table(summary, console, verbose))
    console.print()
    _print_timeline(summary, console)
    console.print(_totals(summary, console))
    for fault in summary["faults"]:
        console.print(
            Text(f"fault at {_relative(summary, fault['time'])} s, step {_ordinal(fault['step'])}: ", "red")
            + Text(f"{fault['code']}: {fault['message']}")
        )
    ignored = [press for press in summary["presses"] if not press["used"]]
    if verbose and ignored:
        for press in ignored:
            console.print(
                f"ignored press at {_relative(summary, press['time'])} s ({press['source']}): {press['reason']}"
            )
    if summary["session_directory"]:
        console.print(Text(f"record: {summary['session_directory']}"), soft_wrap=True)


def report_console(width: int = 120) -> Console:
    """Standard output; ``width`` columns wide where it is no terminal and COLUMNS does not say."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = width  # a file or a pipe has no width of its own; tables should not wrap in it
    return console


def _headline(summary: Summary) -> Text:
    outcome = summary["outcome"]
    text = Text(outcome.replace("_", " "), f"bold {_OUTCOMES.get(outcome, 'red')}")
    text.append(f": {summary['title'] or 'a plan without a title'}", "bold")
    text.append(f", step {summary['steps_done']} of {summary['steps']}")
    if outcome == CUT_SHORT:
        text.append("\nThe journal ends in the middle of the run; everything up to there is below.")
    elif summary["message"] and outcome != "finished":
        text.append(f"\n{summary['message']}")
    return text


def _facts(summary: Summary) -> Text:
    facts = [f"robot {summary['robot']}", f"planner {summary['planner']}", f"mode {summary['mode'] or 'run'}"]
    for label in ("study", "participant_id", "condition"):
        if summary[label]:
            facts.append(f"{label.replace('_id', '')} {summary[label]}")
    facts.append(f"plan {summary['plan_hash'][:12]}")
    facts.append(f"started {summary['started'].replace('T', ' ')[:19]} UTC, {summary['duration']:.1f} s")
    return Text(" · ".join(facts), "dim")


def _table(title: str, console: Console) -> Table:
    # Lines help the eye in a terminal and hinder every tool that reads a pipe.
    lines = box.SIMPLE_HEAD if console.is_terminal else None
    return Table(title=title, title_justify="left", title_style="bold", box=lines, pad_edge=False)


def _wait_table(summary: Summary, console: Console) -> Table:
    table = _table("Waits on the human", console)
    expects = any(wait["expected"] is not None for wait in summary["waits"])
    for name in ("#", "step", "from (s)", "to (s)", "waited (s)"):
        table.add_column(name, justify="right", no_wrap=True)
    if expects:
        table.add_column("expected (s)", justify="right", no_wrap=True)
    table.add_column("ended by", no_wrap=True)
    table.add_column("where in the plan", overflow="fold")
    for number, wait in enumerate(summary["waits"], start=1):
        row = [
            str(number),
            _ordinal(wait["step"]),
            _relative(summary, wait["started"]),
            _relative(summary, wait["ended"]),
        ]
        row.append(f"{wait['duration']:.3f}")
        if expects:
            row.append(_number(wait["expected"], 3))
        row.append("(open)" if wait["open"] else wait["by"])
        row.append(wait["pointer"] + (f"  {wait['message']}" if wait["message"] else ""))
        table.add_row(*(Text(cell) for cell in row))
    total = ["", "", "", "robot idle", f"{summary['robot_idle']:.3f}"]
    if expects:
        total.append(_number(math.fsum(wait["expected"] or 0.0 for wait in summary["waits"]), 3))
    table.add_row(*(Text(cell, "bold") for cell in total))
    return table


def _move_table(summary: Summary, console: Console, verbose: bool) -> Table:
    moves = summary["moves"]
    if verbose:
        table = _table("Moves", console)
        for name in ("step", "took (s)", "off by (mm)", "off by (°)"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("path", no_wrap=True)
        table.add_column("where in the plan", overflow="fold")
        for move in moves:
            row = [
                _ordinal(move["step"]),
                _number(move["duration"], 2),
                _number(_scaled(move["position_error"], 1e3), 3),
            ]
            row += [_number(_degrees(move["orientation_error"]), 3), move["path_hash"][:12], move["pointer"]]
            table.add_row(*(Text(cell) for cell in row))
        return table
    table = _table("Moves", console)
    for name in ("n", "took (s)", "off by at most (mm)", "off by at most (°)", "different paths"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row(
        str(len(moves)),
        _number(math.fsum(move["duration"] or 0.0 for move in moves), 1),
        _number(_scaled(_largest(moves, "position_error"), 1e3), 3),
        _number(_degrees(_largest(moves, "orientation_error")), 3),
        str(len({move["path_hash"] for move in moves})),
    )
    return table


def _print_timeline(summary: Summary, console: Console) -> None:
    unicode = console.encoding.lower().startswith("utf")
    width = max(20, min(console.width, 120) - 2)
    line = timeline(summary, width, unicode)
    if not line:
        return
    styles = {"█": "yellow", "#": "yellow", "─": "green", "-": "green"}
    console.print(Text.assemble(*((symbol, styles.get(symbol, "dim")) for symbol in line)), no_wrap=True)
    key = "─ robot works   █ robot waits on the human" if unicode else "- robot works   # robot waits on the human"
    if summary["suspended"] > 0:
        key += "   · suspended" if unicode else "   . suspended"
    console.print(Text(f"{key}   (0 … {summary['duration']:.1f} s)", "dim"))


def _totals(summary: Summary, console: Console) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    used = sum(1 for press in summary["presses"] if press["used"])
    ignored = len(summary["presses"]) - used
    rows: List[List[str]] = [
        ["robot idle (waits on the human)", f"{summary['robot_idle']:.3f} s"],
        ["neglect (robot works by itself)", f"{summary['neglect']:.3f} s"],
    ]
    if summary["suspended"] > 0:
        rows.append(["suspended (paused or faulted)", f"{summary['suspended']:.3f} s"])
    rows.append(["RAD, robot attention demand", _number(summary["rad"], 4)])
    rows.append(
        [
            "fan-out",
            "unbounded" if summary["fan_out"] is None and summary["neglect"] > 0 else _number(summary["fan_out"], 2),
        ]
    )
    if summary.get("simulated_responses") is not None:
        off = round((summary["robot_idle"] - summary["simulated_responses"]) * 1e3, 1) + 0.0
        rows.append(
            ["simulated responses", f"{summary['simulated_responses']:.3f} s (robot idle differs by {off:+.1f} ms)"]
        )
    if summary["fluency"] is not None:
        names = {
            "human_idle": "human idle",
            "concurrent_activity": "both at work",
            "functional_delay": "hand-over delay",
        }
        parts = [f"{name} {summary['fluency'][key]:.1%}" for key, name in names.items()]
        rows.append(["fluency, of the run's time", ", ".join(parts)])
    planned = summary["objects_planned"]
    rows.append(
        ["objects placed", f"{summary['objects_placed']}" + (f" of {planned} planned" if planned is not None else "")]
    )
    rows.append(["presses", f"{used} used, {ignored} ignored"])
    for name, value in rows:
        table.add_row(Text(name), Text(value, "bold" if console.is_terminal else ""))
    return table


def _ordinal(step: int) -> str:
    """A step as people count, from 1, like the live view of run_plan; programs get the index."""
    return str(step + 1) if step >= 0 else "-"


def _relative(summary: Summary, time: Optional[float]) -> str:
    return "-" if time is None else f"{time - summary['clock_started']:.3f}"


def _number(value: Optional[float], digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _scaled(value: Optional[float], factor: float) -> Optional[float]:
    return None if value is None else value * factor


def _degrees(value: Optional[float]) -> Optional[float]:
    return None if value is None else math.degrees(value)


def _largest(moves: List[Any], name: str) -> Optional[float]:
    return max((move[name] for move in moves if move[name] is not None), default=None)


def draw_timeline(summary: Summary, file: Path) -> None:
    """Draws the run's intervals, moves and presses over time into a picture (the format by the file's extension).

    Raises:
        OSError: the file can't be written.
        ValueError: the extension names no format that can be drawn.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours = {"neglect": "#4c9f70", "interaction": "#e0a030", "suspended": "#b0b0b0"}
    names = {"neglect": "robot works (neglect)", "interaction": "robot waits (interaction)", "suspended": "suspended"}
    origin = summary["clock_started"]
    figure = Figure(figsize=(11, 2.9), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shown = set()
    for interval in summary["intervals"]:
        kind = interval["kind"]
        label = names[kind] if kind not in shown else None
        shown.add(kind)
        length = interval["end"] - interval["start"]
        axes.broken_barh([(interval["start"] - origin, length)], (2, 0.8), facecolor=colours[kind], label=label)
        if kind == "interaction" and length > 0.03 * summary["duration"]:
            middle = interval["start"] - origin + length / 2
            axes.text(middle, 2.4, f"{length:.1f} s", ha="center", va="center", fontsize=8)
    moves = [
        (m["finished"] - origin - m["duration"], m["duration"]) for m in summary["moves"] if m["duration"] is not None
    ]
    axes.broken_barh(moves, (1, 0.8), facecolor="#3b6ea5", edgecolor="white", linewidth=0.5, label="move")
    used = [press["time"] - origin for press in summary["presses"] if press["used"]]
    ignored = [press["time"] - origin for press in summary["presses"] if not press["used"]]
    if used:
        axes.plot(used, [0.4] * len(used), "v", color="#202020", clip_on=False, label="press that ended a wait")
    if ignored:
        axes.plot(ignored, [0.4] * len(ignored), "x", color="#c04040", clip_on=False, label="press ignored")
    axes.set_yticks([2.4, 1.4, 0.4], ["intervals", "moves", "presses"])
    axes.set_ylim(0, 3)
    axes.set_xlim(0, max(summary["duration"], 1e-3))
    axes.set_xlabel("time since the start of the run (s)")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    rad = "-" if summary["rad"] is None else f"{summary['rad']:.3f}"
    axes.set_title(
        f"{summary['title'] or summary['session']}: robot idle {summary['robot_idle']:.1f} s, RAD {rad}",
        loc="left",
        fontsize=10,
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), ncol=6, fontsize=8, frameon=False)
    figure.savefig(file, dpi=150)
