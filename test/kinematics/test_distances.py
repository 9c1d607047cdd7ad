from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import iter_core
from iter_runner.kinematics import Box, Capsule, Cylinder, Obstacles, Sphere, clearance, load_chain, path_clearance
from iter_runner.kinematics.obstacles import _spread, collision_bodies
from iter_runner.kinematics.rotations import pose, rotation_vector_to_matrix

vectors = arrays(np.float64, 3, elements=st.floats(-1, 1).map(lambda x: round(x, 4)))
radii = st.floats(0, 0.2)
UP = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
TABLE = Box("table", pose((0.5, 0, -0.02)), (0.8, 1.2, 0.04))


def points(start: np.ndarray, end: np.ndarray, count: int = 401) -> np.ndarray:
    return start + np.linspace(0, 1, count)[:, None] * (end - start)


@settings(deadline=None)
@given(vectors, vectors, radii, vectors, vectors, radii)
def test_capsules_are_as_far_apart_as_their_nearest_points(a, b, radius, c, d, other_radius) -> None:
    distance, first, second, normal = iter_core.capsule_to_capsule(a, b, radius, c, d, other_radius)
    gaps = np.linalg.norm(points(a, b)[:, None] - points(c, d)[None], axis=2)
    grid = (np.linalg.norm(b - a) + np.linalg.norm(d - c)) / 800
    assert gaps.min() - grid - 1e-9 <= distance + radius + other_radius <= gaps.min() + 1e-9
    assert abs(np.linalg.norm(normal) - 1) < 1e-9
    assert np.allclose(first - second, distance * normal, atol=1e-9)


@settings(deadline=None)
@given(vectors, vectors, radii, vectors, vectors, vectors.map(lambda v: np.abs(v) + 0.01))
def test_capsule_and_box(a, b, radius, place, turn, size) -> None:
    at = pose(place)
    at[:3, :3] = rotation_vector_to_matrix(turn)
    distance, first, second, normal = iter_core.capsule_to_box(a, b, radius, at, size)
    local = (points(a, b) - at[:3, 3]) @ at[:3, :3]
    outside = np.linalg.norm(np.maximum(np.abs(local) - size / 2, 0), axis=1)
    grid = np.linalg.norm(b - a) / 800
    assert np.allclose(first - second, distance * normal, atol=1e-9)
    if distance + radius > 1e-9:
        assert outside.min() - grid - 1e-9 <= distance + radius <= outside.min() + 1e-9
    else:
        # Moved by the depth along the normal the segment is out, and no move along a face's normal is shorter.
        moved = local + at[:3, :3].T @ normal * (-(distance + radius) + 1e-9)
        assert np.max(np.abs(moved) - size / 2, axis=1).min() > -1e-8
        ends = local[[0, -1]]
        for sign in (1, -1):
            assert -(distance + radius) <= (size / 2 - (sign * ends).min(axis=0)).min() + 1e-9


@pytest.mark.parametrize("name", ["ur5", "ur3e"])
def test_gradients_are_the_derivatives(name: str) -> None:
    chain = load_chain(name)
    obstacles = Obstacles(
        [TABLE, Sphere("ball", (0.3, 0.3, 0.4), 0.1), Capsule("post", (-0.4, 0, 0), (-0.4, 0, 1), 0.03)]
    )
    seen = set()
    for q in np.random.default_rng(5).uniform(-np.pi, np.pi, (150, 6)):
        here = clearance(chain, q, obstacles)
        seen.add(here.b)
        step = 1e-7
        numeric = [
            (clearance(chain, q + e, obstacles).distance - clearance(chain, q - e, obstacles).distance) / (2 * step)
            for e in step * np.eye(6)
        ]
        assert np.abs(here.gradient - numeric).max() < 1e-5, here
    assert {"table", "ball", "post"} <= seen


def test_clearance_names_both_and_sees_a_table_move() -> None:
    chain = load_chain("ur5")
    assert clearance(chain, UP).distance > 0
    obstacles = Obstacles([TABLE])
    before = clearance(chain, UP, obstacles)
    fingertips = min(
        (chain.frames(UP)[body.frame] @ [*end, 1])[2] - body.radius
        for body in chain.capsules
        for end in (body.start, body.end)
        if body.frame == 6
    )
    obstacles.move("table", pose((0.5, 0, fingertips - 0.03)))
    after = clearance(chain, UP, obstacles)
    assert after.b == "table" and after.with_obstacle and "robotiq" in after.a
    assert after.distance == pytest.approx(0.01, abs=1e-9) and after.distance < before.distance
    obstacles.remove("table")
    assert not clearance(chain, UP, obstacles).with_obstacle and len(obstacles) == 0
    obstacles.add(Sphere("ball", chain.fk(UP)[:3, 3], 0.05))
    assert clearance(chain, UP, obstacles).distance < 0
    obstacles.add(Box("ball", pose((0, 0, 5)), (1, 1, 1)))  # the same name, another shape
    assert clearance(chain, UP, obstacles).b != "ball" and len(obstacles) == 1
    with pytest.raises(KeyError):
        obstacles.remove("table")
    with pytest.raises(ValueError, match="finite"):
        obstacles.add(Sphere("ball", (0, np.nan, 0), 0.1))
    with pytest.raises(ValueError, match="radius"):
        obstacles.add(Sphere("ball", (0, 0, 0), -0.1))


def test_path_clearance_finds_the_worst_row() -> None:
    chain = load_chain("ur5")
    path = UP + np.linspace(0, 1, 50)[:, None] * np.array([0, 0.9, 0.2, 0, 0, 0])
    row, worst = path_clearance(chain, path, [TABLE])
    assert worst.distance == pytest.approx(min(clearance(chain, q, [TABLE]).distance for q in path))
    assert clearance(chain, path[row], [TABLE]).distance == worst.distance < clearance(chain, UP, [TABLE]).distance


@pytest.mark.parametrize("name", ["ur5", "ur3e", "mico-2", "mico-3"])
def test_pairs_are_judged_over_all_of_the_joints_ranges(name: str) -> None:
    """A Mico's joints 2 and 3 go from 50 and 35 to 310 and 325 degrees; who turns further is looked at for a turn."""
    chain = load_chain(name)
    turns = chain.upper - chain.lower > 2.0 * np.pi
    lower, upper = np.where(turns, -np.pi, chain.lower), np.where(turns, np.pi, chain.upper)
    share = (_spread(chain) - lower) / (upper - lower)
    assert np.all((share >= 0.0) & (share <= 1.0))
    assert np.all(np.abs(np.sort(share, axis=0) - np.linspace(0.0, 1.0, len(share))[:, None]) < 0.05)


def test_a_joint_whose_turns_lie_elsewhere_is_looked_at_for_a_turn_of_its_own() -> None:
    chain = load_chain("ur5")
    chain.lower, chain.upper = chain.lower.copy(), chain.upper.copy()
    chain.lower[:3], chain.upper[:3] = (-np.inf, 1.0, -9.0), (np.inf, 9.0, 0.0)
    spread = _spread(chain)
    for joint, start in enumerate((-np.pi, 1.0, -2.0 * np.pi)):
        assert start <= spread[:, joint].min() < start + 0.3
        assert start + 2.0 * np.pi - 0.3 < spread[:, joint].max() <= start + 2.0 * np.pi


@pytest.mark.parametrize("name", ["ur3", "ur3e", "ur5", "ur5e"])
def test_pairs_leave_out_neighbours_and_keep_hand_against_arm(name: str) -> None:
    chain = load_chain(name)
    bodies = collision_bodies(chain)
    pairs = {(chain.capsules[i].link, chain.capsules[j].link) for i, j in bodies.pairs}
    frames = {(chain.capsules[i].frame, chain.capsules[j].frame) for i, j in bodies.pairs}
    assert all(abs(a - b) >= 2 for a, b in frames)
    assert ("upper_arm_link", "robotiq_85_base_link") in pairs
    assert ("base_link_inertia", "wrist_3_link") in pairs
    chain.collision_ignore = [("robotiq_85_base_link", "upper_arm_link")]
    chain.collision_bodies = None
    fewer = {(chain.capsules[i].link, chain.capsules[j].link) for i, j in collision_bodies(chain).pairs}
    assert pairs - fewer == {("upper_arm_link", "robotiq_85_base_link")}


def test_a_cylinder_is_kept_clear_of_on_all_sides_and_moves_as_one() -> None:
    chain = load_chain("ur5")
    q = np.array([0.0, -1.8, 2.0, -1.7707963, -1.5707963, 0.0])
    centre = chain.fk(q)[:3, 3]
    radius, length = 0.05, 0.2
    for angle in np.linspace(0.0, np.pi, 9):
        pose = np.eye(4)
        pose[:3, 3] = centre + np.array([0.12 * np.cos(angle), 0.12 * np.sin(angle), -0.05])
        cylinder = Obstacles([Cylinder("can", pose, radius, length)])
        inner = Capsule("can", pose[:3, 3] + [0, 0, 0.05], pose[:3, 3] - [0, 0, 0.05], radius)
        found, least = clearance(chain, q, cylinder), clearance(chain, q, [inner])
        assert found.b == "can"
        assert found.distance <= least.distance + 1e-9
    cylinder.move("can", np.eye(4) + np.array([[0, 0, 0, 5.0]] + 3 * [[0, 0, 0, 0]]))
    assert clearance(chain, q, cylinder).distance <= clearance(chain, q).distance + 1e-9
    assert not clearance(chain, q, cylinder).with_obstacle
    cylinder.add(Box("can", np.eye(4), (0.1, 0.1, 0.1)))
    cylinder.add(Cylinder("can", pose, radius, length))
    cylinder.remove("can")
    assert len(cylinder) == 0
    assert clearance(chain, q, cylinder).distance == clearance(chain, q).distance
    with pytest.raises(ValueError, match="can"):
        cylinder.add(Cylinder("can", pose, -0.1, 0.2))
