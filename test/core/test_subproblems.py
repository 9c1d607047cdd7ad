from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import iter_core
from iter_runner.kinematics.rotations import rotation_vector_to_matrix

Vector = np.ndarray
vectors = arrays(np.float64, 3, elements=st.floats(-1, 1).map(lambda x: round(x, 6)))
axes = vectors.filter(lambda v: np.linalg.norm(v) > 0.1).map(lambda v: v / np.linalg.norm(v))
angles = st.floats(-np.pi, np.pi)
SWEEP = np.linspace(-np.pi, np.pi, 721)


def at(point: Vector, axis: Vector, angle: float) -> Vector:
    return rotation_vector_to_matrix(axis * angle) @ point


def circle(point: Vector, axis: Vector) -> Vector:
    centre = axis * (axis @ point)
    return centre + np.cos(SWEEP)[:, None] * (point - centre) + np.sin(SWEEP)[:, None] * np.cross(axis, point)


@given(vectors, axes, vectors)
def test_circle_to_point_is_the_nearest(point: Vector, axis: Vector, target: Vector) -> None:
    angle, _, residual = iter_core.circle_to_point(point, axis, target)
    distance = np.linalg.norm(at(point, axis, angle) - target)
    assert abs(distance - residual) < 1e-12
    assert distance <= np.linalg.norm(circle(point, axis) - target, axis=1).min() + 1e-12


@given(vectors, axes, angles)
def test_circle_to_point_finds_the_angle(point: Vector, axis: Vector, angle: float) -> None:
    found, _, residual = iter_core.circle_to_point(point, axis, at(point, axis, angle))
    assert residual < 1e-12
    assert np.linalg.norm(at(point, axis, found) - at(point, axis, angle)) < 1e-12


@given(vectors, axes, vectors, st.floats(0, 3))
def test_circle_to_sphere(point: Vector, axis: Vector, centre: Vector, radius: float) -> None:
    *found, residual = iter_core.circle_to_sphere(point, axis, centre, radius)
    best = np.abs(np.linalg.norm(circle(point, axis) - centre, axis=1) - radius).min()
    for angle in found:
        off = abs(np.linalg.norm(at(point, axis, angle) - centre) - radius)
        if residual == 0:
            assert off * radius < 1e-7  # squared lengths are what is solved for: a short radius costs digits
        assert off <= best + 1e-6
    assert residual <= best + 1e-6


@given(vectors, axes, axes, st.floats(-2, 2))
def test_circle_to_plane(point: Vector, axis: Vector, normal: Vector, offset: float) -> None:
    *found, residual = iter_core.circle_to_plane(point, axis, normal, offset)
    best = np.abs(circle(point, axis) @ normal - offset).min()
    for angle in found:
        off = abs(normal @ at(point, axis, angle) - offset)
        assert off <= best + 1e-12 or off < 1e-7
        assert abs(off - residual) < 1e-7


@given(vectors, axes, axes, angles)
def test_circle_to_plane_has_the_angle_among_its_two(point: Vector, axis: Vector, normal: Vector, angle: float) -> None:
    assume(np.linalg.norm(np.cross(axis, point)) > 1e-3 and np.linalg.norm(np.cross(axis, normal)) > 1e-3)
    target = at(point, axis, angle)
    *found, residual = iter_core.circle_to_plane(point, axis, normal, float(normal @ target))
    assert residual < 1e-12
    # At the edge of the circle's shadow the two answers meet, and the angle is known to the root of the rounding.
    assert min(np.linalg.norm(at(point, axis, a) - target) for a in found) < 1e-5


@given(vectors, axes, axes)
def test_answers_are_continuous_where_circle_and_plane_part(point: Vector, axis: Vector, normal: Vector) -> None:
    radius = np.linalg.norm(np.cross(axis, point)) * np.linalg.norm(np.cross(axis, normal))
    assume(radius > 1e-2)
    edge = float((axis @ point) * (axis @ normal) + radius)
    touching = iter_core.circle_to_plane(point, axis, normal, edge)
    for offset in (edge - 1e-10, edge + 1e-10):
        answer = iter_core.circle_to_plane(point, axis, normal, offset)
        for a, b in zip(answer[:2], touching[:2]):
            assert np.linalg.norm(at(point, axis, a) - at(point, axis, b)) < 1e-3
