"""The figure: each planner's tool paths over each other, and how far its runs are apart, move by move."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from iter_runner.repeatability.comparison import PHASES, Comparison
from iter_runner.repeatability.rehearsal import Rehearsal
from iter_runner.robot.arm import Vector

SMALLEST = 1e-4
"""rad below which the spread's axis is linear, so that zero has a place on it."""


def draw(
    title: str, rehearsals: Mapping[str, Sequence[Rehearsal]], comparisons: Sequence[Comparison], path: Path
) -> None:
    """Draws one column a planner: above the tool's paths of all runs, below the joints' spread over the plan's moves.

    Args:
        title: over the figure.
        rehearsals: by planner.
        comparisons: one a planner, in the order of the columns.
        path: of the picture; the format follows from its ending.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = len(comparisons)
    figure = pyplot.figure(figsize=(max(3.3 * columns, 6.0), 6.6), dpi=110)
    grid = figure.add_gridspec(2, columns, height_ratios=(1.5, 1.0), hspace=0.12, wspace=0.12)
    limits = _limits(rehearsals)
    spread_axes: Any = None
    for column, comparison in enumerate(comparisons):
        runs = rehearsals[comparison.planner]
        axes: Any = figure.add_subplot(grid[0, column], projection="3d")
        _draw_tool_paths(axes, runs, limits)
        axes.set_title(_heading(comparison), fontsize=10)
        spread_axes = figure.add_subplot(grid[1, column], sharey=spread_axes)
        _draw_spread(spread_axes, comparison)
        if column == 0:
            spread_axes.set_ylabel("joints between the outermost runs (rad)", fontsize=8)
        else:
            spread_axes.tick_params(labelleft=False)
    figure.suptitle(title, fontsize=13, y=0.98)
    figure.savefig(path, bbox_inches="tight")
    pyplot.close(figure)


def _heading(comparison: Comparison) -> str:
    if comparison.finished > 1 and comparison.identical == comparison.runs:
        verdict = f"{comparison.runs} of {comparison.runs} runs equal to the bit"
    elif comparison.identical > 1:
        verdict = f"{comparison.identical} of {comparison.runs} runs equal to the bit"
    else:
        verdict = f"no two of {comparison.runs} runs equal"
    failed = comparison.runs - comparison.finished
    return f"{comparison.planner}\n{verdict}" + (f", {failed} failed" if failed else "")


def _limits(rehearsals: Mapping[str, Sequence[Rehearsal]]) -> Vector:
    """(3, 2) m: the cube that holds every tool path, the same for all planners so that they compare."""
    points = [motion.tool_path for runs in rehearsals.values() for run in runs for motion in run.motions]
    lower, upper = (
        np.min([way.min(axis=0) for way in points], axis=0),
        np.max([way.max(axis=0) for way in points], axis=0),
    )
    middle, half = (lower + upper) / 2.0, max(0.05, 0.52 * float(np.max(upper - lower)))
    return np.column_stack([middle - half, middle + half])


def _draw_tool_paths(axes: Any, runs: Sequence[Rehearsal], limits: Vector) -> None:
    from matplotlib import colormaps

    colors = colormaps["viridis"](np.linspace(0.0, 0.9, max(2, len(runs))))
    for color, run in zip(colors, runs):
        points = [motion.tool_path for motion in run.motions]
        if points:
            way = np.concatenate(points)
            axes.plot(way[:, 0], way[:, 1], way[:, 2], color=color, linewidth=0.6, alpha=0.7)
    axes.set_xlabel("x (m)", fontsize=7, labelpad=-4)
    axes.set_ylabel("y (m)", fontsize=7, labelpad=-4)
    axes.set_zlabel("z (m)", fontsize=7, labelpad=-4)
    axes.tick_params(labelsize=6, pad=-2)
    axes.set(xlim=limits[0], ylim=limits[1], zlim=limits[2])
    axes.set_box_aspect((1.0, 1.0, 1.0), zoom=1.05)


def _draw_spread(axes: Any, comparison: Comparison) -> None:
    moves = [move for move in comparison.moves if move.runs > 1]
    if moves:
        place = np.concatenate([number + np.linspace(0.0, 1.0, PHASES) for number in range(len(moves))])
        spread = np.concatenate([np.max(move.joint_range, axis=1) for move in moves])
        axes.fill_between(place, 0.0, spread, color="#c0504d", alpha=0.35, linewidth=0.0)
        axes.plot(place, spread, color="#c0504d", linewidth=0.8)
        if not np.any(spread > 0.0):
            axes.annotate(
                "0 everywhere", (0.5, 0.5), xycoords="axes fraction", ha="center", fontsize=9, color="#555555"
            )
    axes.set_yscale("symlog", linthresh=SMALLEST)
    axes.set_ylim(0.0, 10.0)
    axes.set_xlabel("move of the plan", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3, linewidth=0.5)
