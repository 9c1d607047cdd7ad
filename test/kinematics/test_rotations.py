from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iter_runner.kinematics import rotations

angles = st.floats(-np.pi, np.pi)
# Angles at and around the conversions' singular cases.
near = st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi, -np.pi])
small = st.sampled_from([0.0, 1e-16, 1e-13, 1e-9, 1e-6, 1e-3, -1e-13, -1e-8])
angle = st.one_of(angles, st.builds(lambda a, b: a + b, near, small))
axis = st.sampled_from([(1, 0, 0), (0, 1, 0), (0, 0, -1), (1, 1, 1), (1, -2, 0.5), (0, 1, -1)])


def turned(about: tuple[float, float, float], by: float) -> np.ndarray:
    """Rodrigues' formula, written out."""
    a = np.array(about, dtype=float) / np.linalg.norm(about)
    k = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
    return np.eye(3) + np.sin(by) * k + (1 - np.cos(by)) * k @ k


@given(axis, angle)
def test_every_form_gives_the_matrix_back(about: tuple[float, float, float], by: float) -> None:
    matrix = turned(about, by)
    for back in (
        rotations.quaternion_to_matrix(rotations.matrix_to_quaternion(matrix)),
        rotations.rotation_vector_to_matrix(rotations.matrix_to_rotation_vector(matrix)),
        rotations.rpy_to_matrix(rotations.matrix_to_rpy(matrix)),
        rotations.zyz_to_matrix(rotations.matrix_to_zyz(matrix)),
    ):
        assert np.abs(back - matrix).max() < 1e-12


@given(angle, angle, angle)
def test_rpy_and_zyz_give_the_matrix_back_at_their_singular_angles(a: float, b: float, c: float) -> None:
    for to_matrix, from_matrix in (
        (rotations.rpy_to_matrix, rotations.matrix_to_rpy),
        (rotations.zyz_to_matrix, rotations.matrix_to_zyz),
    ):
        matrix = to_matrix([a, b, c])
        assert np.abs(to_matrix(from_matrix(matrix)) - matrix).max() < 1e-12


@given(axis, angle)
def test_rotation_vector_is_axis_times_angle(about: tuple[float, float, float], by: float) -> None:
    a = np.array(about, dtype=float) / np.linalg.norm(about)
    assert np.abs(rotations.rotation_vector_to_matrix(a * by) - turned(about, by)).max() < 1e-12
    vector = rotations.matrix_to_rotation_vector(turned(about, by))
    assert np.linalg.norm(vector) <= np.pi + 1e-12


@given(axis, st.floats(0, np.pi - 1e-9))
def test_angle_between_is_exact_for_small_angles_too(about: tuple[float, float, float], by: float) -> None:
    first = turned((1, 2, 3), 0.7)
    assert abs(rotations.angle_between(first, first @ turned(about, by)) - by) < 1e-12


def test_known_values() -> None:
    half = np.sqrt(0.5)
    assert np.allclose(rotations.matrix_to_quaternion(rotations.rpy_to_matrix([0, 0, np.pi / 2])), [0, 0, half, half])
    assert np.allclose(rotations.rpy_to_matrix([np.pi / 2, 0, 0]) @ [0, 1, 0], [0, 0, 1])
    assert np.allclose(rotations.matrix_to_rpy(rotations.rpy_to_matrix([0.3, np.pi / 2, 0.1]))[0], 0)
    assert np.allclose(rotations.quaternion_to_matrix([0, 0, 2, 2]), rotations.rpy_to_matrix([0, 0, np.pi / 2]))


def test_bad_input_is_an_error() -> None:
    for call in (
        lambda: rotations.quaternion_to_matrix([0, 0, 0, 0]),
        lambda: rotations.quaternion_to_matrix([np.nan, 0, 0, 1]),
        lambda: rotations.quaternion_to_matrix([0, 0, 1]),
        lambda: rotations.rpy_to_matrix([0, 0]),
    ):
        with pytest.raises(ValueError):
            call()


@given(axis, angle)
def test_inverse_undoes_a_pose(about: tuple[float, float, float], by: float) -> None:
    pose = np.eye(4)
    pose[:3, :3] = turned(about, by)
    pose[:3, 3] = [0.1, -2, 3]
    assert np.abs(rotations.inverse(pose) @ pose - np.eye(4)).max() < 1e-14
