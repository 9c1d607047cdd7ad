"""Pictures of a plan that is being built: what stands on the table as its task begins, and as it ends."""

from __future__ import annotations

from math import cos, sin
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from iter_runner.plan.build import Place, PlanBuilder, Triple

Corners = NDArray[np.float64]

LIGHT = np.array([-0.35, -0.5, 0.8]) / np.linalg.norm([-0.35, -0.5, 0.8])
HUMAN_COLOR = (0.86, 0.84, 0.80)
FACES = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))


def corners(place: Place, size: Triple) -> Corners:
    """(8, 3) corners of a block of ``size`` that stands at ``place``, m."""
    signs = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0.0, 1.0)])
    c, s = cos(place.yaw), sin(place.yaw)
    turned: Corners = signs * np.array(size) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    return turned + np.array([place.x, place.y, place.z])


def draw_layout(plan: PlanBuilder, path: Path) -> None:
    """Draws the table from above as the task begins and ends, and the first house in perspective and along its ridge.

    Blocks that the human laid are pale. The format follows from the file's ending.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    sizes, colors = dict(plan.sizes), _colors(plan)
    start = dict(plan.first_places)
    end = dict(plan.places)
    figure = pyplot.figure(figsize=(12.0, 8.4), dpi=110)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.0, 1.15), hspace=0.28, wspace=0.08)
    for column, (places, title) in enumerate(((start, "as the task begins"), (end, "as it ends"))):
        _draw_top(figure.add_subplot(grid[0, column]), plan, places, sizes, colors, f"From above, {title}")
    built = [name for name, place in end.items() if start.get(name) != place]
    house = _first_house(built, end)
    perspective: Any = figure.add_subplot(grid[1, 0], projection="3d")
    _draw_solid(perspective, house, end, sizes, colors)
    _draw_side(figure.add_subplot(grid[1, 1]), house, end, sizes, colors)
    figure.suptitle(plan.title, fontsize=14, y=0.97)
    figure.savefig(path, bbox_inches="tight")
    pyplot.close(figure)


def _colors(plan: PlanBuilder) -> Dict[str, Tuple[float, ...]]:
    listed = {item["name"]: tuple(item["color"][key] for key in "rgb") for item in plan.environment}
    return {name: listed.get(name, HUMAN_COLOR) for name in plan.sizes}


def _first_house(built: Sequence[str], places: Mapping[str, Place]) -> List[str]:
    """Of the blocks that were laid, those by the first one: a house is no wider than two blocks are long."""
    if not built:
        return []
    first = places[built[0]]
    near = [name for name in built if abs(places[name].x - first.x) < 0.07 and abs(places[name].y - first.y) < 0.07]
    return sorted(near, key=lambda name: places[name].z)


def _draw_top(
    axes: Any,
    plan: PlanBuilder,
    places: Mapping[str, Place],
    sizes: Mapping[str, Triple],
    colors: Mapping[str, Tuple[float, ...]],
    title: str,
) -> None:
    from matplotlib.patches import Circle, Polygon

    for item in plan.environment:
        if not item["graspable"]:
            center, size = item["position"], item["size"]
            x, y = center["x"] - size["x"] / 2, center["y"] - size["y"] / 2
            axes.add_patch(
                Polygon(
                    [(x, y), (x + size["x"], y), (x + size["x"], y + size["y"]), (x, y + size["y"])],
                    color="#f0ece4",
                    ec="#b8b0a2",
                )
            )
    axes.add_patch(Circle((0.0, 0.0), 0.075, color="#9aa3ab"))
    axes.annotate("base_link", (0.0, 0.0), ha="center", va="center", fontsize=7)
    for name, place in sorted(places.items(), key=lambda entry: entry[1].z):
        outline = corners(place, sizes[name])[[0, 2, 6, 4], :2]
        axes.add_patch(Polygon(outline, facecolor=colors[name], edgecolor="#333333", linewidth=0.6))
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("x (m)", fontsize=8)
    axes.set_ylabel("y (m)", fontsize=8)
    axes.tick_params(labelsize=7)


def _draw_solid(
    axes: Any, names: Sequence[str], places: Mapping[str, Place], sizes: Mapping[str, Triple], colors: Mapping[str, Any]
) -> None:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

    points: List[Corners] = []
    for order, name in enumerate(names):
        box = corners(places[name], sizes[name])
        points.append(box)
        shades = []
        for face in FACES:
            normal = np.cross(box[face[1]] - box[face[0]], box[face[3]] - box[face[0]])
            normal *= np.sign(normal @ (box[list(face)].mean(axis=0) - box.mean(axis=0))) / np.linalg.norm(normal)
            shades.append(np.clip(np.array(colors[name]) * (0.62 + 0.42 * max(0.0, normal @ LIGHT)), 0.0, 1.0))
        faces = [box[list(face)] for face in FACES]
        solid = Poly3DCollection(faces, facecolors=shades, edgecolors="#2b2b2b", linewidths=0.6, zorder=order)
        solid.set_sort_zpos(order)
        axes.add_collection3d(solid)
    if points:
        every = np.vstack(points)
        middle, reach = (every.min(axis=0) + every.max(axis=0)) / 2, (every.max(axis=0) - every.min(axis=0)).max() / 2
        axes.set(xlim=(middle[0] - reach, middle[0] + reach), ylim=(middle[1] - reach, middle[1] + reach))
        axes.set_zlim(middle[2] - reach, middle[2] + reach)
    axes.computed_zorder = False
    axes.set_box_aspect((1.0, 1.0, 1.0), zoom=1.15)
    axes.view_init(elev=22.0, azim=-118.0)
    axes.set_axis_off()
    axes.set_title("The first house", fontsize=10)


def _draw_side(
    axes: Any, names: Sequence[str], places: Mapping[str, Place], sizes: Mapping[str, Triple], colors: Mapping[str, Any]
) -> None:
    from matplotlib.patches import Rectangle

    # Seen along +y: what is nearer is drawn later.
    for name in sorted(names, key=lambda entry: -places[entry].y):
        box = corners(places[name], sizes[name])
        low, high = box.min(axis=0), box.max(axis=0)
        axes.add_patch(
            Rectangle(
                (low[0], low[2]), high[0] - low[0], high[2] - low[2],
                facecolor=colors[name], edgecolor="#333333", linewidth=0.8,
            )
        )  # fmt: skip
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.set_title("The same along its ridge, +y", fontsize=10)
    axes.set_xlabel("x (m)", fontsize=8)
    axes.set_ylabel("z (m)", fontsize=8)
    axes.tick_params(labelsize=7)
