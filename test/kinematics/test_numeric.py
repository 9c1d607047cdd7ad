"""Numeric inverse kinematics: every pose that a chain reaches, the turns next to where it is, the same bits always."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from iter_runner.kinematics import Chain, ClosedFormIK, GeometryError, NumericIK, chain_from_dh, load_chain
from iter_runner.robot.table import load_robot

Array = NDArray[np.float64]

# A made-up arm with a joint to spare: shoulder, elbow and wrist of three, one and three axes.
SEVEN = chain_from_dh(
    alpha=[-np.pi / 2, np.pi / 2, np.pi / 2, -np.pi / 2, -np.pi / 2, np.pi / 2, 0],
    a=[0, 0, 0.045, -0.045, 0, 0.088, 0],
    d=[0.333, 0, 0.316, 0, 0.384, 0, 0.107],
    lower=[-2.9, -1.8, -2.9, -3.0, -2.9, -0.1, -2.9],
    upper=[2.9, 1.8, 2.9, -0.1, 2.9, 3.7, 2.9],
)


def random_joints(chain: Chain, count: int, seed: int) -> Array:
    """Joint positions (count, n) inside the limits, one turn of joints that have more."""
    whole = chain.upper - chain.lower >= 2 * np.pi
    lower, upper = np.where(whole, -np.pi, chain.lower), np.where(whole, np.pi, chain.upper)
    return np.random.default_rng(seed).uniform(lower, upper, (count, len(chain)))


def apart(a: Array, b: Array) -> Array:
    """The largest joint difference (...,), by the shorter way round."""
    return np.asarray(np.abs((a - b + np.pi) % (2 * np.pi) - np.pi).max(axis=-1))


@pytest.fixture(scope="module", params=["mico-2", "seven joints", "ur5e"])
def chain(request: pytest.FixtureRequest) -> Chain:
    return SEVEN if request.param == "seven joints" else load_chain(request.param)


def test_every_pose_that_the_chain_reaches_is_found(chain: Chain) -> None:
    solver = NumericIK(chain)
    near = random_joints(chain, 1, 1)[0]
    for q in random_joints(chain, 300, 2):
        target = chain.fk(q)
        solutions = solver.search(target, near)
        assert solutions, q
        for solution in solutions:
            assert max(solution.position_error, solution.orientation_error) < 1e-9, q
            assert chain.fk(solution.positions) == pytest.approx(target, abs=2e-9)
            assert chain.within_limits(solution.positions)


def test_the_branch_that_a_pose_was_made_with_is_among_them() -> None:
    chain = load_chain("mico-2")
    solver, near = NumericIK(chain), np.array(load_robot("mico-2").tuck)
    joints = random_joints(chain, 300, 3)
    missing = sum(
        min(apart(solution.positions, q) for solution in solver.search(chain.fk(q), near)) > 1e-5 for q in joints
    )
    assert missing <= 3


def test_all_branches_of_the_closed_form_are_found() -> None:
    chain = load_chain("ur5e")
    solver, closed = NumericIK(chain), ClosedFormIK(chain)
    found = there = 0
    for q in random_joints(chain, 60, 4):
        solutions = np.array([solution.positions for solution in solver.search(chain.fk(q), q)])
        for row in closed.within_limits(chain.fk(q)):
            there += 1
            found += bool(np.any(apart(solutions, row) < 1e-5))
    assert found >= 0.99 * there


def test_a_mico_has_no_closed_form() -> None:
    for name in ("mico-2", "mico-3", "mico-robotiq85"):
        with pytest.raises(GeometryError, match=r"no closed form for base_link -> m1n6s.00_end_effector"):
            ClosedFormIK(load_chain(name))


def test_the_way_next_to_where_the_arm_is_comes_first(chain: Chain) -> None:
    solver = NumericIK(chain)
    near_by = 0
    for q in random_joints(chain, 50, 5):
        near = np.clip(q + 1e-3, chain.lower, chain.upper)
        near_by += bool(np.abs(solver.search(chain.fk(q), near)[0].positions - near).max() < 0.2)
    assert near_by >= 48  # beside a singularity or a limit the next solution is farther away than the pose was moved


@pytest.mark.parametrize("turns", [-1, 0, 1])
def test_continuous_joints_take_the_nearest_turn(turns: int) -> None:
    """Never a full turn extra, and never beyond the two that the maker allows."""
    chain = load_chain("mico-2")
    solver = NumericIK(chain)
    whole = chain.upper - chain.lower >= 2 * np.pi
    assert whole.tolist() == [True, False, False, True, True, True]
    for q in random_joints(chain, 50, 6):
        near = np.clip(np.where(whole, q + 2 * np.pi * turns, q), chain.lower, chain.upper)
        for solution in solver.search(chain.fk(q), near):
            way = np.abs(solution.positions - near)
            assert chain.within_limits(solution.positions)
            for other in (solution.positions + 2 * np.pi, solution.positions - 2 * np.pi):
                shorter = (np.abs(other - near) < way - 1e-9) & (other >= chain.lower) & (other <= chain.upper)
                assert not shorter.any()


def test_out_of_reach_is_one_miss_that_says_how_far(chain: Chain) -> None:
    target = np.eye(4)
    target[:3, 3] = 5.0, 0.0, 0.3
    (miss,) = NumericIK(chain).search(target, random_joints(chain, 1, 7)[0], 8, 64)
    assert 3.0 < miss.position_error < 5.0
    assert chain.within_limits(miss.positions)
    reached = chain.fk(miss.positions)[:3, 3]
    assert np.linalg.norm(reached - target[:3, 3]) == pytest.approx(miss.position_error)


def test_solutions_of_a_chain_with_a_joint_to_spare_are_well_apart() -> None:
    solver = NumericIK(SEVEN)
    for q in random_joints(SEVEN, 20, 8):
        solutions = np.array([solution.positions for solution in solver.search(SEVEN.fk(q), q)])
        assert len(solutions) > 5
        distances = np.abs(solutions[:, None] - solutions[None]).max(axis=-1) + np.eye(len(solutions))
        assert distances.min() > 0.2


def test_the_same_bits_whatever_was_asked_before(chain: Chain) -> None:
    joints = random_joints(chain, 20, 9)
    fresh = [NumericIK(chain).search(chain.fk(q), joints[0]) for q in joints]
    used = NumericIK(chain)
    used.search(chain.fk(joints[3]), joints[5], 3, 7)
    for q, expected in reversed(list(zip(joints, fresh))):
        again = used.search(chain.fk(q), joints[0])
        assert len(again) == len(expected)
        for one, other in zip(again, expected):
            assert one.positions.tobytes() == other.positions.tobytes()


def test_a_line_is_followed_without_a_jump(chain: Chain) -> None:
    solver = NumericIK(chain)
    followed = 0
    for q in random_joints(chain, 20, 10):
        targets = np.repeat(chain.fk(q)[None], 40, axis=0)
        targets[:, 0, 3] += np.linspace(0.0, 0.05, 40)
        way = solver.follow(targets, q)
        assert way.shape[1] == len(chain)
        assert chain.fk(way) == pytest.approx(targets[: len(way)], abs=2e-9)
        followed += len(way) == 40 and float(np.abs(np.diff(way, axis=0)).max()) < 0.3
    assert followed >= 12  # the others end at a limit or at the edge of the arm's reach


def test_following_ends_where_the_arm_does_not_reach() -> None:
    chain = load_chain("mico-2")
    targets = np.repeat(chain.fk(load_robot("mico-2").tuck)[None], 100, axis=0)
    targets[:, 1, 3] += np.linspace(0.0, 1.0, 100)
    way = NumericIK(chain).follow(targets, load_robot("mico-2").tuck)
    assert 10 < len(way) < 60
    assert chain.within_limits(way)


def test_values_that_are_not_finite_are_refused() -> None:
    solver = NumericIK(SEVEN)
    with pytest.raises(ValueError, match="near holds a value that is not finite"):
        solver.search(np.eye(4), [0, 0, 0, -1, 0, 1, np.nan])
    with pytest.raises(ValueError, match="target"):
        solver.search(np.full((4, 4), np.inf), [0, 0, 0, -1, 0, 1, 0])
    with pytest.raises(ValueError, match="guess"):
        solver.refine([0, 0], np.eye(4))
