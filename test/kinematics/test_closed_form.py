from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ur_arms import TABLE, dh_arm, mico_like

from iter_runner.kinematics import ClosedFormIK, GeometryError, chain_from_dh, load_chain

# Joints in general and at the singular places: arm stretched or folded, wrist aligned, wrist over the shoulder's axis.
special = st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi, 1e-9, -1e-7, 1e-4, np.pi - 1e-8])
joint = st.one_of(st.floats(-np.pi, np.pi), special)
joints = st.tuples(*[joint] * 6).map(np.array)
names = st.sampled_from(sorted(TABLE))
ARMS = {name: dh_arm(name) for name in TABLE}
SOLVERS = {name: ClosedFormIK(chain) for name, chain in ARMS.items()}


def pose_error(chain, rows: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.abs(chain.fk(rows) - target).max(axis=(1, 2))


def apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs((a - b + np.pi) % (2 * np.pi) - np.pi)


@settings(max_examples=400, deadline=None)
@given(names, joints)
def test_exact_solutions_reach_the_target_and_there_is_one(name: str, q: np.ndarray) -> None:
    chain = ARMS[name]
    target = chain.fk(q)
    rows, exact = SOLVERS[name].solve(target)
    assert rows.shape == (8, 6) and exact.shape == (8,) and exact.dtype == bool
    assert np.all(np.isfinite(rows)) and np.all(np.abs(rows) <= np.pi)
    assert exact.any()
    assert pose_error(chain, rows[exact], target).max() < 1e-9


@settings(max_examples=200, deadline=None)
@given(names, st.tuples(*[st.floats(-3.1, 3.1)] * 6).map(np.array))
def test_the_joints_are_among_the_solutions(name: str, q: np.ndarray) -> None:
    chain = ARMS[name]
    singular = np.linalg.svd(chain.jacobian(q), compute_uv=False)[-1]
    if singular < 1e-3:
        return
    rows, exact = SOLVERS[name].solve(chain.fk(q))
    assert apart(rows[exact], q).max(axis=1).min() < 1e-11 / singular


@settings(max_examples=200, deadline=None)
@given(names, st.tuples(*[st.floats(-2, 2)] * 3).map(np.array), st.tuples(*[st.floats(-3, 3)] * 3).map(np.array))
def test_what_is_out_of_reach_gets_eight_finite_rows_of_the_right_orientation(name, position, vector) -> None:
    from iter_runner.kinematics.rotations import rotation_vector_to_matrix

    target = np.eye(4)
    target[:3, :3], target[:3, 3] = rotation_vector_to_matrix(vector), position
    rows, exact = SOLVERS[name].solve(target)
    reached = ARMS[name].fk(rows)
    assert np.all(np.isfinite(rows))
    assert np.abs(reached[:, :3, :3] - target[:3, :3]).max() < 1e-9
    off = np.linalg.norm(reached[:, :3, 3] - target[:3, 3], axis=1)
    assert np.all(exact == (off < 1.5e-10)) or np.abs(off - 1e-10).min() < 1e-11


def test_numbers_near_the_smallest_there_are_give_finite_rows() -> None:
    for tiny in (0.0, 1e-320, 1e-200, 1e-157, 1e-150, 1e-100):
        target = np.eye(4)
        target[2, 0], target[0, 2], target[1, 3] = tiny, -tiny, tiny
        for solver in SOLVERS.values():
            assert np.all(np.isfinite(solver.solve(target)[0]))


@pytest.mark.parametrize("name", TABLE)
def test_answers_are_continuous_across_the_boundary(name: str) -> None:
    """Along lines that leave the workspace by the outer and by the inner boundary, no row jumps."""
    chain, solver = ARMS[name], SOLVERS[name]
    outwards = chain.fk([0.3, -0.4, 0.6, -0.5, 1.2, 0.4])
    inwards = chain.fk([0.3, -1.2, 1.9, -0.5, 1.2, 0.4])
    for start, direction in (
        (outwards, outwards[:3, 3] / np.linalg.norm(outwards[:3, 3])),
        (inwards, np.array([-inwards[0, 3], -inwards[1, 3], 0]) / np.linalg.norm(inwards[:2, 3])),
    ):
        # Up to just short of the shoulder's axis, where the wrist's direction from it has no limit.
        path = np.repeat(start[None], 20001, axis=0)
        path[:, :3, 3] += np.linspace(0, 0.6, len(path))[:, None] * direction
        rows, exact = solver.solve_batch(path)
        crossed = np.any(exact[:-1] != exact[1:], axis=1)
        assert crossed.any()
        for index in np.flatnonzero(crossed):
            # At the boundary the change goes with the root of the distance from it, 30 um here; a jump would be 1 rad.
            assert apart(rows[index], rows[index + 1]).max() < 0.2


def test_the_branch_order_is_fixed() -> None:
    """Shoulder, wrist, elbow: rows of one shoulder share joint 1, the wrist's flips share it with opposite joint 5."""
    chain, solver = ARMS["ur5e"], SOLVERS["ur5e"]
    for q in np.random.default_rng(3).uniform(-np.pi, np.pi, (200, 6)):
        rows, _ = solver.solve(chain.fk(q))
        assert np.all(rows[:4, 0] == rows[0, 0]) and np.all(rows[4:, 0] == rows[4, 0])
        for first in (0, 4):
            assert np.all(rows[first : first + 2, 4] >= 0) == (rows[first, 4] >= 0)
            assert np.allclose(rows[first, 4], -rows[first + 2, 4], atol=1e-12)
        assert apart(rows[0::2, 2], -rows[1::2, 2]).max() < 1e-12 and np.all(rows[0::2, 2] >= 0)


def test_batch_has_the_bits_of_one_by_one() -> None:
    chain, solver = ARMS["ur3e"], SOLVERS["ur3e"]
    for count in (0, 1, 7, 8, 21):
        targets = chain.fk(np.random.default_rng(count).uniform(-np.pi, np.pi, (count, 6)))
        targets[::3, :3, 3] *= 2.5
        rows, exact = solver.solve_batch(targets)
        assert rows.shape == (count, 8, 6) and exact.shape == (count, 8)
        for index, target in enumerate(targets):
            one, one_exact = solver.solve(target)
            assert np.array_equal(rows[index], one) and np.array_equal(exact[index], one_exact)


def test_base_and_tip_are_honoured() -> None:
    for base, tip in (("base_link", "tool0"), ("base", "flange"), ("world", "gripper_tip"), ("base", "ee_link")):
        chain = load_chain("ur5e", tip=tip, base=base)
        q = np.array([0.4, -1.3, 1.1, -0.7, -1.2, 0.9])
        rows, exact = ClosedFormIK(chain).solve(chain.fk(q))
        assert apart(rows[exact], q).max(axis=1).min() < 1e-10
        assert pose_error(chain, rows[exact], chain.fk(q)).max() < 1e-9


def test_nearest_limits_and_turns() -> None:
    chain = load_chain("ur5")
    solver = ClosedFormIK(chain)
    q = np.array([0.4, -1.3, 1.1, -0.7, -1.2, 0.9])
    target = chain.fk(q)
    turned = q + 2 * np.pi * np.array([0, 1, 0, 1, 0, -1])
    assert np.allclose(solver.nearest(target, turned), turned, atol=1e-10)
    rows = solver.within_limits(target)
    assert len(np.unique(rows.round(6), axis=0)) == len(rows) >= 8 * 2**4
    assert np.all(rows >= chain.lower) and np.all(rows <= chain.upper)
    assert pose_error(chain, rows, target).max() < 1e-9
    target[:3, 3] *= 10
    assert solver.nearest(target, q) is None and len(solver.within_limits(target)) == 0


def test_elbow_up_picks_the_higher_elbow_of_each_pair() -> None:
    chain = load_chain("ur5")
    solver = ClosedFormIK(chain)
    rows, _ = solver.solve(chain.fk([0.4, -1.3, 1.1, -0.7, -1.2, 0.9]))
    up = solver.elbow_up(rows)
    assert up.reshape(4, 2).sum(axis=1).tolist() == [1, 1, 1, 1]
    heights = np.array([chain.frames(row)[3, 2, 3] for row in rows])
    assert np.all(heights[up] > heights[~up])


@pytest.mark.parametrize(
    ("chain", "reason"),
    [
        (mico_like(), "not parallel"),
        (chain_from_dh([0] * 3, [1] * 3, [0] * 3), "3 joints"),
        (chain_from_dh([np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2, 0], [0, 1, 1, 0, 0.05, 0], [0] * 6), "do not meet"),
        (chain_from_dh([np.pi / 2, 0, 0, np.pi / 2, 0, 0], [0, 1, 1, 0, 0, 0], [0] * 6), "5 and 6 are parallel"),
    ],
)
def test_says_why_a_geometry_does_not_fit(chain, reason: str) -> None:
    with pytest.raises(GeometryError, match=reason):
        ClosedFormIK(chain)
