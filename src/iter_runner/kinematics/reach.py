"""How many branches reach each place of a horizontal slice: where in the workcell should the table go?"""

from __future__ import annotations

from typing import List, Optional, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iter_runner.kinematics.chain import Chain
from iter_runner.kinematics.closed_form import ClosedFormIK, GeometryError
from iter_runner.kinematics.numeric import NumericIK
from iter_runner.kinematics.obstacles import Obstacles, collision_bodies

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

BRANCHES = 8
SEARCH_STARTS = 64
"""Of the numeric search, a cell."""


def reach_counts(
    chain: Chain,
    rotation: ArrayLike,
    height: float,
    xs: ArrayLike,
    ys: ArrayLike,
    obstacles: Optional[Obstacles] = None,
) -> Counts:
    """How many branches reach each cell with the tip turned by ``rotation``, (len(ys), len(xs)), 0 to 8.

    A branch counts if it is exact, has a turn inside the joint limits and is clear of the arm itself and of
    ``obstacles``. Of an arm without a closed form those count that a short search finds, eight at most: some 3 ms a
    cell.

    Args:
        chain: of the arm; its tip is what reaches.
        rotation: (3, 3) of the tip in the base.
        height: of the slice above the base's origin, m.
        xs, ys: cell centres in the base, m.
    """
    x, y = np.meshgrid(np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64))
    targets = np.tile(np.eye(4), (x.size, 1, 1))
    targets[:, :3, :3] = np.asarray(rotation, dtype=np.float64)
    targets[:, :3, 3] = np.stack([x.ravel(), y.ravel(), np.full(x.size, height)], axis=1)
    try:
        rows, good = ClosedFormIK(chain).solve_batch(targets)
    except GeometryError:
        rows, good = _searched(chain, targets)
    turn = 2 * np.pi
    first = rows + turn * np.ceil((chain.lower - rows) / turn)  # the lowest turn that is not below the limit
    good = good & np.all(first <= chain.upper, axis=2)
    good[good] = collision_bodies(chain).distances(first[good], obstacles) >= 0
    return np.asarray(good.sum(axis=1).reshape(x.shape), dtype=np.int64)


def _searched(chain: Chain, targets: Array) -> Tuple[Array, NDArray[np.bool_]]:
    """As ClosedFormIK.solve_batch(), for targets (N, 4, 4): up to eight solutions of each, (N, 8, n), and (N, 8)."""
    solver = NumericIK(chain)
    near = np.clip(np.zeros(len(chain)), chain.lower, chain.upper)
    rows, good = np.zeros((len(targets), BRANCHES, len(chain))), np.zeros((len(targets), BRANCHES), dtype=np.bool_)
    for index, target in enumerate(targets):
        for branch, solution in enumerate(solver.search(target, near, SEARCH_STARTS, SEARCH_STARTS)[:BRANCHES]):
            rows[index, branch] = solution.positions
            good[index, branch] = max(solution.position_error, solution.orientation_error) < 1e-9
    return rows, good


def draw_reach_map(
    path: str,
    counts: Counts,
    xs: Array,
    ys: Array,
    title: str,
    poses: Optional[Array] = None,
    rectangles: Optional[List[Tuple[str, Array]]] = None,
) -> None:
    """Draws counts as an image file, the robot's base at the origin.

    Args:
        path: of the file; its ending is the format.
        counts: from reach_counts().
        xs, ys: as there.
        title: above the picture.
        poses: (N, 3) positions of a plan, m, the third being the height above the slice.
        rectangles: names and outlines (4, 2) of a plan's objects, m.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import colormaps, colors, pyplot

    figure, axes = pyplot.subplots(figsize=(7.6, 6.6), dpi=120)
    palette = colors.ListedColormap(["#f4f4f2", *colormaps["viridis_r"](np.linspace(0.05, 0.9, 8))])
    image = axes.pcolormesh(xs, ys, counts, cmap=palette, vmin=-0.5, vmax=8.5, shading="nearest")
    bar = figure.colorbar(image, ax=axes, ticks=range(9))
    bar.set_label("branches within limits and clear of the arm itself")
    for name, outline in rectangles or []:
        axes.fill(outline[:, 0], outline[:, 1], facecolor="none", edgecolor="#c0392b", linewidth=1.2)
        axes.annotate(name, outline.mean(axis=0), ha="center", va="center", fontsize=7, color="#c0392b")
    if poses is not None and len(poses):
        axes.scatter(
            poses[:, 0], poses[:, 1], s=22, c="white", edgecolors="black", linewidths=0.9, label="plan's poses"
        )
        axes.legend(loc="upper left", fontsize=8)
    axes.plot(0, 0, marker="+", markersize=14, color="black")
    axes.set(xlabel="x of the base, m", ylabel="y of the base, m", aspect="equal")
    axes.set_title(title, fontsize=9)
    axes.set_xlim(xs[0], xs[-1])
    axes.set_ylim(ys[0], ys[-1])
    figure.savefig(path, bbox_inches="tight")
    pyplot.close(figure)
