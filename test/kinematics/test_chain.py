from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from ur_arms import TABLE, dh_arm

from iter_runner.kinematics import ChainError, chain_from_dh, load_chain
from iter_runner.kinematics.rotations import inverse, matrix_to_rotation_vector, rotation_vector_to_matrix

joints = arrays(np.float64, 6, elements=st.floats(-np.pi, np.pi))

# A made-up arm: an axis off the axes, a prismatic joint, a tool on the side, a base that is not the root.
URDF = """<?xml version="1.0"?>
<robot name="made_up">
  <link name="floor"/><link name="stand"/><link name="arm"><collision><origin xyz="0 0 0.1"/>
    <geometry><cylinder radius="0.02" length="0.3"/></geometry></collision></link>
  <link name="slider"/><link name="hand"><collision><geometry><sphere radius="0.05"/></geometry></collision></link>
  <link name="finger"><collision><origin xyz="0 0 0.1"/><geometry><box size="0.02 0.04 0.2"/></geometry></collision>
  </link><link name="tool"/>
  <joint name="foot" type="fixed"><parent link="floor"/><child link="stand"/><origin xyz="0 0 1" rpy="0 0 0.3"/></joint>
  <joint name="turn" type="revolute"><parent link="stand"/><child link="arm"/><origin xyz="0.1 0 0" rpy="0.2 0 0"/>
    <axis xyz="0 1 1"/><limit lower="-2" upper="1.5" velocity="2" effort="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="arm"/><child link="slider"/><origin xyz="0 0 0.5"/>
    <axis xyz="1 0 0"/><limit lower="0" upper="0.4" velocity="0.1" effort="1"/></joint>
  <joint name="wrist" type="continuous"><parent link="slider"/><child link="hand"/><origin rpy="0 1 0"/>
    <axis xyz="0 0 1"/></joint>
  <joint name="grip" type="revolute"><parent link="hand"/><child link="finger"/><origin xyz="0 0.1 0"/>
    <axis xyz="1 0 0"/><limit lower="0" upper="1" velocity="1" effort="1"/></joint>
  <joint name="mount" type="fixed"><parent link="hand"/><child link="tool"/><origin xyz="0 0 0.2"/></joint>
</robot>"""


@pytest.mark.parametrize("name", TABLE)
def test_rows_agree_with_the_dh_table(name: str) -> None:
    chain, table = load_chain(name, base="base"), dh_arm(name)
    for q in np.random.default_rng(0).uniform(-np.pi, np.pi, (20, 6)):
        assert np.abs(chain.fk(q) - table.fk(q)).max() < 1e-12


@pytest.mark.parametrize(
    ("degrees", "position", "rotation"),
    [
        ([0, 0, 0, 0, 0, 0], [-817.2, -232.9, 62.8], [90, 0, 0]),
        ([90, 90, 90, 90, 90, 90], [133.3, 292.5, -162.9], [0, 0, 90]),
        ([10, 20, 30, 40, 50, 60], [-509.12, -290.14, -359.6], [55.76, -153.20, 58.44]),
    ],
)
def test_ur5e_agrees_with_the_controller(degrees: list[float], position: list[float], rotation: list[float]) -> None:
    pose = load_chain("ur5e", base="base").fk(np.radians(degrees))
    assert np.abs(pose[:3, 3] * 1000 - position).max() < 0.06
    assert np.abs(np.degrees(matrix_to_rotation_vector(pose[:3, :3])) - rotation).max() < 0.01


@given(joints)
def test_jacobian_is_the_derivative(q: np.ndarray) -> None:
    check_jacobian(dh_arm("ur5e"), q)


def check_jacobian(chain, q: np.ndarray) -> None:
    jacobian, step = chain.jacobian(q), 1e-6
    for j in range(len(q)):
        there, back = (chain.fk(q + sign * step * np.eye(len(q))[j]) for sign in (1, -1))
        linear = (there[:3, 3] - back[:3, 3]) / (2 * step)
        angular = matrix_to_rotation_vector(there[:3, :3] @ back[:3, :3].T) / (2 * step)
        assert np.abs(jacobian[:, j] - [*linear, *angular]).max() < 1e-8


def test_chain_of_any_joints_in_closed_form() -> None:
    chain = load_chain(URDF, tip="tool", base="stand")
    assert chain.joint_names == ["turn", "slide", "wrist"]
    assert np.allclose(chain.lower, [-2, 0, -2 * np.pi]) and np.allclose(chain.upper, [1.5, 0.4, 2 * np.pi])
    assert np.allclose(chain.velocity_limits, [2, 0.1, np.inf])

    def fixed(xyz, vector) -> np.ndarray:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = rotation_vector_to_matrix(vector), xyz
        return pose

    q = np.array([0.4, 0.2, -1.1])
    expected = (
        fixed([0.1, 0, 0], [0.2, 0, 0])
        @ fixed([0, 0, 0], 0.4 * np.array([0, 1, 1]) / np.sqrt(2))
        @ fixed([0.2, 0, 0.5], [0, 0, 0])
        @ fixed([0, 0, 0], [0, 1, 0])
        @ fixed([0, 0, 0], [0, 0, -1.1])
        @ fixed([0, 0, 0.2], [0, 0, 0])
    )
    assert np.abs(chain.fk(q) - expected).max() < 1e-14
    check_jacobian(chain, q)


def test_another_base_gives_the_transformed_result() -> None:
    q = np.array([0.4, 0.2, -1.1])
    chain = load_chain(URDF, tip="tool", base="stand")
    foot = load_chain(URDF, tip="tool", base="floor")
    stand = np.eye(4)
    stand[:3, :3], stand[:3, 3] = rotation_vector_to_matrix([0, 0, 0.3]), [0, 0, 1]
    assert np.abs(foot.fk(q) - stand @ chain.fk(q)).max() < 1e-14
    # From the other end: joints run backwards, in the reversed order.
    backwards = load_chain(URDF, tip="stand", base="tool")
    assert backwards.joint_names == ["wrist", "slide", "turn"]
    assert np.abs(backwards.fk(q[::-1]) - inverse(chain.fk(q))).max() < 1e-14
    check_jacobian(backwards, q[::-1])


def test_links_on_the_side_move_with_the_chain() -> None:
    bodies = {capsule.link: capsule for capsule in load_chain(URDF, tip="tool", base="floor").capsules}
    assert {link: body.frame for link, body in bodies.items()} == {"arm": 1, "hand": 3, "finger": 3}
    arm = bodies["arm"]
    assert np.allclose([arm.start, arm.end], [[0, 0, -0.03], [0, 0, 0.23]]) and arm.radius == 0.02
    finger = bodies["finger"]  # the capsule around its box
    assert np.allclose([finger.start, finger.end], [[0, 0.1, 0], [0, 0.1, 0.2]])
    assert finger.radius == pytest.approx(np.hypot(0.01, 0.02))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: load_chain(URDF, tip="tol", base="stand"), ["tol", "tip", "stand, arm, slider, hand"]),
        (lambda: load_chain(URDF, tip="tool", base="flor"), ["flor", "base", "floor"]),
        (lambda: load_chain(URDF), ["several", "finger, tool"]),
        (lambda: load_chain(URDF, tip="stand", base="floor"), ["no joint moves", "floor"]),
        (lambda: load_chain("<robot"), ["not XML"]),
        (lambda: load_chain("<html/>"), ["<robot>", "<html>"]),
        (lambda: load_chain(URDF.replace('xyz="0 1 1"', 'xyz="0 nan 1"'), tip="tool"), ["turn", "axis", "nan"]),
        (lambda: load_chain(URDF.replace('xyz="0 1 1"', 'xyz="0 0 0"'), tip="tool"), ["turn", "axis"]),
        (lambda: load_chain(URDF.replace('lower="-2"', 'lower="2"'), tip="tool"), ["turn", "2.0", "1.5"]),
        (lambda: chain_from_dh([0, 0], [1], [0, 0]), ["one length"]),
    ],
)
def test_errors_name_what_was_found(call, words: list[str]) -> None:
    with pytest.raises(ChainError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_wrong_shapes_are_errors() -> None:
    chain = dh_arm("ur5")
    for q in ([0, 0, 0], np.zeros((2, 5)), [[0] * 6], ["a"] * 6):
        with pytest.raises((ValueError, TypeError)):
            chain.fk(q)


def test_batch_is_the_same_as_one_by_one() -> None:
    chain = dh_arm("ur3")
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (7, 6))
    assert np.array_equal(chain.fk(q), np.array([chain.fk(row) for row in q]))
    assert np.array_equal(chain.fk(q[::2]), chain.fk(q)[::2])  # a view with strides
