"""What the hand carries: filled from inside, within a bound, and seen by every distance of the chain."""

from __future__ import annotations

from typing import Tuple

import numpy as np
import pytest
from numpy.typing import NDArray

from iter_runner.kinematics import AttachedBody, Box, Chain, carrying, clearance, contact_on_way, load_chain
from iter_runner.kinematics.attached import SINK, filling, gap
from iter_runner.robot.table import load_robot

Array = NDArray[np.float64]
BOXES = [
    (0.04, 0.04, 0.06),
    (0.025, 0.025, 0.075),
    (0.1, 0.1, 0.1),
    (0.2, 0.1, 0.01),
    (0.15, 0.15, 0.004),
    (0.3, 0.2, 0.15),
    (0.01, 0.01, 0.01),
    (0.06, 0.03, 0.2),
    (0.4, 0.02, 0.02),
]
CYLINDERS = [(0.06, 0.06, 0.12), (0.03, 0.03, 0.2), (0.1, 0.1, 0.02), (0.01, 0.01, 0.1)]


def away(points: Array, size: Tuple[float, float, float], shape: str) -> Array:
    """Distance (N,) of points from the nearest capsule, m."""
    nearest = np.full(len(points), np.inf)
    for start, end, radius in filling(size, shape):
        way = end - start
        share = np.clip((points - start) @ way / max(float(way @ way), 1e-12), 0.0, 1.0)
        nearest = np.minimum(nearest, np.linalg.norm(points - start - share[:, None] * way, axis=1) - radius)
    return nearest


def smaller(size: Tuple[float, float, float]) -> Array:
    sides = np.array(size)
    return np.maximum(0.5 * sides - SINK, 0.25 * sides)


@pytest.mark.parametrize("size", BOXES)
def test_a_boxs_filling_is_inside_it_and_reaches_all_of_its_surface(size: Tuple[float, float, float]) -> None:
    half = smaller(size)
    for start, end, radius in filling(size):
        assert np.all(np.maximum(np.abs(start), np.abs(end)) + radius <= half + 1e-9)
    generator = np.random.default_rng(5)
    points = generator.uniform(-1.0, 1.0, (6000, 3))
    rows = np.arange(6000)
    points[rows, generator.integers(0, 3, 6000)] = 1.0
    points[rows[3000:], generator.integers(0, 3, 3000)] = -1.0  # some of them on an edge
    corners = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
    assert np.max(away(np.vstack([points, corners]) * half, size, "box")) <= gap(size) + 1e-9


@pytest.mark.parametrize("size", CYLINDERS)
def test_a_cylinders_filling_is_inside_it_and_reaches_all_of_its_surface(size: Tuple[float, float, float]) -> None:
    radius, _, half = smaller(size)
    for start, end, thickness in filling(size, "cylinder"):
        for point in (start, end):
            assert np.hypot(point[0], point[1]) + thickness <= radius + 1e-9
            assert abs(point[2]) + thickness <= half + 1e-9
    generator = np.random.default_rng(5)
    angle, height = generator.uniform(0, 2 * np.pi, 6000), generator.uniform(-half, half, 6000)
    distance = np.full(6000, radius)
    height[2000:] = half
    distance[4000:] *= np.sqrt(generator.uniform(0, 1, 2000))
    points = np.column_stack([distance * np.cos(angle), distance * np.sin(angle), height])
    assert np.max(away(points, size, "cylinder")) <= gap(size, "cylinder") + 1e-9


def test_a_block_up_to_15_cm_is_known_to_within_3_mm() -> None:
    assert gap((0.15, 0.1, 0.1)) == pytest.approx(0.003)
    assert SINK <= 0.003


@pytest.fixture(name="chain", scope="module")
def _chain() -> Chain:
    return load_chain("ur5")


def held(chain: Chain, size: Tuple[float, float, float] = (0.04, 0.04, 0.06), below: float = 0.17) -> Chain:
    pose = np.eye(4)
    pose[2, 3] = below
    return carrying(chain, [AttachedBody("block", pose, size)])


def table_below(chain: Chain, q: Array, gap_below: float, size: Tuple[float, float, float]) -> Box:
    """A table under the block that hangs down from the hand at q, ``gap_below`` m lower than its underside."""
    tip = chain.fk(q)
    bottom = tip[2, 3] - 0.17 - 0.5 * size[2]
    pose = np.eye(4)
    pose[:3, 3] = tip[0, 3], tip[1, 3], bottom - gap_below - 0.05
    return Box("table", pose, (0.3, 0.3, 0.1))


def hanging() -> Array:
    """Joints with the flange pointing straight down."""
    return np.array([0.0, -1.8, 2.0, -1.7707963, -1.5707963, 0.0])


def test_nothing_attached_is_the_chain_itself(chain: Chain) -> None:
    assert carrying(chain, []) is chain


def test_a_carried_block_is_seen_where_it_is(chain: Chain) -> None:
    q, size = hanging(), (0.04, 0.04, 0.06)
    assert chain.fk(q)[2, 2] == pytest.approx(-1.0, abs=1e-6)
    carrier = held(chain, size)
    for height in (0.02, 0.005):
        found = clearance(carrier, q, [table_below(chain, q, height, size)])
        assert (found.a, found.b) == ("block", "table")
        assert found.distance == pytest.approx(height + SINK, abs=1e-6)


def test_a_block_that_is_put_down_touches_nothing_even_a_little_too_low(chain: Chain) -> None:
    q, size = hanging(), (0.04, 0.04, 0.06)
    for depth in (0.0, 0.0003, 0.0029):
        assert clearance(held(chain, size), q, [table_below(chain, q, -depth, size)]).distance >= 0.0
    assert clearance(held(chain, size), q, [table_below(chain, q, -0.007, size)]).distance == pytest.approx(-0.004)


def test_a_corner_carried_against_a_post_is_seen(chain: Chain) -> None:
    q, size = hanging(), (0.1, 0.1, 0.05)
    carrier = held(chain, size)
    tip = chain.fk(q)
    pose = np.eye(4)
    # A post whose corner just reaches 6 mm into the block's corner.
    corner = tip @ np.array([0.05, 0.05, 0.17, 1.0])
    pose[:3, :3] = tip[:3, :3]
    pose[:3, 3] = corner[:3] + tip[:3, :3] @ np.array([0.004, 0.004, 0.0])
    found = clearance(carrier, q, [Box("post", pose, (0.02, 0.02, 0.2))])
    assert found.distance < 0.0
    assert (found.a, found.b) == ("block", "post")


def test_a_block_may_leave_what_it_stands_in_and_not_go_deeper(chain: Chain) -> None:
    q, size = hanging(), (0.04, 0.04, 0.06)
    carrier, table = held(chain, size), table_below(chain, q, -0.008, size)
    up = q + np.linspace(0, 1, 30)[:, None] * np.array([0.0, -0.2, 0.0, 0.2, 0.0, 0.0])
    down = q - np.linspace(0, 1, 30)[:, None] * np.array([0.0, -0.05, 0.0, 0.05, 0.0, 0.0])
    assert contact_on_way(carrier, up, [table]) is None
    contact = contact_on_way(carrier, down, [table])
    assert contact is not None
    assert (contact.a, contact.b) == ("block", "table")


def test_the_hand_touches_what_it_holds_and_the_arm_does_not(chain: Chain) -> None:
    links = {capsule.link for capsule in chain.capsules if capsule.frame == len(chain)}
    pose = np.eye(4)
    carrier = carrying(chain, [AttachedBody("bar", pose, (0.03, 0.03, 0.1), sorted(links))])
    assert clearance(carrier, hanging()).distance > 0.0  # in the middle of the hand
    # A bar as long as the forearm, held across: the folded arm meets it.
    long = np.eye(4)
    long[2, 3] = 0.1
    carrier = carrying(chain, [AttachedBody("bar", long, (0.9, 0.03, 0.03), sorted(links))])
    folded = np.array(load_robot("ur5").tuck)
    turns = [folded + np.array([0, 0, 0, a, b, c]) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (0, 0.8, 1.6)]
    hits = [clearance(carrier, q) for q in turns]
    assert any(found.distance < 0.0 and "bar" in (found.a, found.b) for found in hits)


@pytest.mark.parametrize("change", [{"size": (0.1, 0.0, 0.1)}, {"size": (0.1, 0.1)}, {"shape": "cone"}])
def test_a_body_that_can_not_be_is_refused_by_name(chain: Chain, change: dict) -> None:
    arguments = {"name": "thing", "pose": np.eye(4), "size": (0.1, 0.1, 0.1), **change}
    with pytest.raises(ValueError, match=r"thing|cone"):
        carrying(chain, [AttachedBody(**arguments)])
