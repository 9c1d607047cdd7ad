"""Ways of straight pieces in joint space, with their corners rounded so that the arm need not stop at them."""

from __future__ import annotations

from typing import Callable, List

import numpy as np

from iter_runner.robot.arm import Vector

LARGEST = 0.8
"""rad (norm over the joints) before and behind a corner at which its rounding begins and ends, at most."""
SMALLEST = 0.04
"""rad: a corner that can't be rounded from here on is stopped at."""
SHARE = 0.45
"""Of a straight piece's length, what the rounding of one of its corners may take."""
STEP = 0.03
"""rad (norm) between two positions of a rounded way, at most."""
SHORT = 1e-6
"""rad (norm): pieces below this are none."""

# Of a Bézier curve of degree 5, whose ends are straight (no curvature): where between its end and the corner its
# control points lie.
_CONTROL = (1.0, 0.6, 0.25)
_BINOMIAL = (1.0, 5.0, 10.0, 10.0, 5.0, 1.0)


def distinct(corners: Vector) -> Vector:
    """The corners (N, n) without those that are where the one before is; the last one is kept."""
    kept = [corners[0]]
    for corner in corners[1:]:
        if float(np.linalg.norm(corner - kept[-1])) > SHORT:
            kept.append(corner)
    if len(kept) > 1:
        kept[-1] = corners[-1]
    return np.array(kept)


def rounded(corners: Vector, clear: Callable[[Vector], bool]) -> List[Vector]:
    """The way along ``corners`` in parts between whose ends it need not stop.

    Args:
        corners: (N, n) rad, N at least 2, distinct.
        clear: whether the arm can go along positions (M, n) rad.

    Returns:
        parts, each (M, n) rad at equal steps of its length; each begins where the one before ends.
    """
    lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    parts: List[Vector] = []
    pieces: List[Vector] = [corners[:1]]
    for k in range(1, len(corners) - 1):
        size = min(LARGEST, SHARE * float(lengths[k - 1]), SHARE * float(lengths[k]))
        curve = _curve(corners[k - 1], corners[k], corners[k + 1], size)
        while size >= SMALLEST and not clear(curve):
            size *= 0.5
            curve = _curve(corners[k - 1], corners[k], corners[k + 1], size)
        if size >= SMALLEST:
            pieces.append(curve)
        else:
            parts.append(_even(np.vstack([*pieces, corners[k : k + 1]])))
            pieces = [corners[k : k + 1]]
    parts.append(_even(np.vstack([*pieces, corners[-1:]])))
    return parts


def _curve(before: Vector, corner: Vector, behind: Vector, size: float) -> Vector:
    """The rounding (M, n) of a corner, from ``size`` before it to ``size`` behind it."""
    enter = (before - corner) / float(np.linalg.norm(before - corner))
    leave = (behind - corner) / float(np.linalg.norm(behind - corner))
    points = [corner + size * share * enter for share in _CONTROL]
    points += [corner + size * share * leave for share in reversed(_CONTROL)]
    count = max(16, int(np.ceil(2.0 * size / (0.2 * STEP))))
    t = np.linspace(0.0, 1.0, count + 1)[:, None]
    curve = np.zeros((count + 1, len(corner)))
    for k, (factor, point) in enumerate(zip(_BINOMIAL, points)):
        curve += factor * t**k * (1.0 - t) ** (5 - k) * point
    return curve


def _even(way: Vector) -> Vector:
    """Positions at equal steps of the length of a way (M, n), both its ends exactly."""
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(way, axis=0), axis=1))])
    count = max(4, int(np.ceil(lengths[-1] / STEP)))
    places = np.linspace(0.0, lengths[-1], count + 1)
    positions = np.column_stack([np.interp(places, lengths, column) for column in way.T])
    positions[0], positions[-1] = way[0], way[-1]
    return positions
