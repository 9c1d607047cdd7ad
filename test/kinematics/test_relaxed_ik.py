from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from ur_arms import mico_like

from iter_runner.kinematics import (
    DEFAULT_WEIGHTS,
    Box,
    Chain,
    ClosedFormIK,
    Obstacles,
    RelaxedIK,
    clearance,
    load_chain,
)
from iter_runner.kinematics.rotations import (
    angle_between,
    matrix_to_rotation_vector,
    pose,
    rotation_vector_to_matrix,
    rpy_to_matrix,
)

UP = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
PERIOD = 0.008


@pytest.fixture(scope="module")
def ur5() -> Chain:
    return load_chain("ur5")


def line(start: np.ndarray, end: np.ndarray, settle: int, step: float = 0.004, turn: float = 0.02) -> np.ndarray:
    """Goals at equal steps from start to end, at most ``step`` m and ``turn`` rad, then ``settle`` times the end."""
    vector = matrix_to_rotation_vector(start[:3, :3].T @ end[:3, :3])
    distance = np.linalg.norm(end[:3, 3] - start[:3, 3])
    count = int(np.ceil(max(distance / step, np.linalg.norm(vector) / turn, 1)))
    goals = []
    for share in np.arange(1, count + 1) / count:
        goal = np.eye(4)
        goal[:3, 3] = start[:3, 3] + share * (end[:3, 3] - start[:3, 3])
        goal[:3, :3] = start[:3, :3] @ rotation_vector_to_matrix(share * vector)
        goals.append(goal)
    return np.array(goals + [end] * settle)


def errors(chain: Chain, path: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    reached = chain.fk(path)
    position = np.linalg.norm(reached[:, :3, 3] - goals[:, :3, 3], axis=1)
    return position, np.array([angle_between(a[:3, :3], b[:3, :3]) for a, b in zip(reached, goals)])


def assert_within(chain: Chain, q: np.ndarray, path: np.ndarray, period: float = PERIOD) -> None:
    steps = np.abs(np.diff(np.vstack([q, path]), axis=0))
    assert np.all(np.isfinite(path))
    assert chain.within_limits(path)
    assert np.all(steps <= chain.velocity_limits * period * (1 + 1e-12))


def workspace_poses(count: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    poses = []
    for _ in range(count):
        goal = np.eye(4)
        goal[:3, 3] = rng.uniform([0.35, -0.3, 0.2], [0.65, 0.3, 0.5])
        goal[:3, :3] = rpy_to_matrix([np.pi + rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3), rng.uniform(-1.2, 1.2)])
        poses.append(goal)
    return poses


def test_tours_of_the_workspace_are_tracked_and_smooth(ur5: Chain) -> None:
    solver = RelaxedIK(ur5, period=PERIOD)
    q = UP
    tracked = 0
    goals = workspace_poses(40, 1)
    for goal in goals:
        solver.reset(q)
        targets = line(ur5.fk(q), goal, settle=60)
        path = solver.solve_path(targets)
        assert_within(ur5, q, path)
        position, orientation = errors(ur5, path, targets)
        if position.max() < 1e-3 and orientation.max() < 5e-3:
            tracked += 1
            # No branch jumps: consecutive steps differ by little where the goal moves evenly.
            assert np.abs(np.diff(path[: len(targets) - 60], n=2, axis=0)).max() < 2.5e-3
            assert position[-1] < 3e-4 and orientation[-1] < np.radians(0.1)
        q = path[-1]
    assert tracked >= 0.75 * len(goals)  # some lines lead through the base's column or ask for speeds beyond the limits


@pytest.mark.parametrize("seed", range(3))
def test_every_reachable_goal_is_reached_in_the_end(ur5: Chain, seed: int) -> None:
    """Also where the straight line leads through the arm's own base, or a joint is at its limit."""
    solver = RelaxedIK(ur5, period=PERIOD)
    rng = np.random.default_rng(seed)
    inverse = ClosedFormIK(ur5)
    q = UP
    for _ in range(8):
        while True:
            goal = np.eye(4)
            goal[:3, 3] = rng.uniform([-0.6, -0.6, 0.1], [0.6, 0.6, 0.6])
            goal[:3, :3] = rpy_to_matrix([np.pi + rng.uniform(-0.5, 0.5), 0, rng.uniform(-np.pi, np.pi)])
            rows = inverse.within_limits(goal)
            if any(clearance(ur5, row).distance > 0.02 for row in rows):
                break
        solver.reset(q)
        targets = line(ur5.fk(q), goal, settle=1500)
        path = solver.solve_path(targets)
        assert_within(ur5, q, path)
        position, orientation = errors(ur5, path[-1:], targets[-1:])
        assert position[0] < 1e-3 and orientation[0] < 5e-3
        q = path[-1]


@pytest.mark.parametrize(
    ("q", "turn"),
    [
        ([0, -1.2, 0.0, -0.5, -1.5, 0], [0, 0, 0]),  # elbow straight
        ([0.3, -1.2, 1e-6, -0.5, -1.5, 0], [0, 0, 0]),
        ([0, -1.5, 1.5, -1.5, 0.0, 0], [0, 0, 0]),  # wrist aligned
        ([0, -1.5, 1.5, -1.5, 0.0, 0], [0, 0, 0.6]),
        ([0, -1.5, 1.5, -1.5, 0.0, 0], [0.6, 0, 0]),
        ([0, -1.5, 1.5, -1.5, 0.0, 0], [0, 0.6, 0]),
        ([0, -np.pi / 2, 0, -np.pi / 2, 0, 0], [0, 0, 0]),  # straight up
        ([0, 0, 0, 0, 0, 0], [0, 0, 0]),
    ],
)
def test_starts_at_singular_poses(ur5: Chain, q: list[float], turn: list[float]) -> None:
    solver = RelaxedIK(ur5, period=PERIOD, weights={"self_collision": 0})
    start = ur5.fk(q)
    goal = start.copy()
    # Inwards, so that it is in reach, and turned about the tool's axes.
    goal[[0, 2], 3] *= 0.85
    goal[:3, :3] = start[:3, :3] @ rotation_vector_to_matrix(turn)
    targets = line(start, goal, settle=600)
    solver.reset(q)
    path = solver.solve_path(targets)
    assert_within(ur5, np.array(q), path)
    position, orientation = errors(ur5, path[-1:], targets[-1:])
    assert position[0] < 5e-4 and orientation[0] < np.radians(0.1)


def test_unreachable_goals_stay_finite_bounded_and_near(ur5: Chain) -> None:
    solver = RelaxedIK(ur5, period=PERIOD)
    start = ur5.fk(UP)
    for direction in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, -0.5, 0.7]):
        goal = start.copy()
        goal[:3, 3] += 1.5 * np.array(direction) / np.linalg.norm(direction)
        targets = line(start, goal, settle=300)
        solver.reset(UP)
        path = solver.solve_path(targets)
        assert_within(ur5, UP, path)
        # No farther off than the nearest pose of that orientation.
        rows, _ = ClosedFormIK(ur5).solve(goal)
        nearest = np.linalg.norm(ur5.fk(rows)[:, :3, 3] - goal[:3, 3], axis=1).min()
        assert errors(ur5, path[-1:], targets[-1:])[0][0] < nearest + 0.01
        assert np.abs(path[-1] - path[-50]).max() < 0.05  # and has come to rest


def test_the_same_bits_again_and_in_another_process(ur5: Chain) -> None:
    program = """
import hashlib
import numpy as np
from iter_runner.kinematics import Box, RelaxedIK, load_chain
from iter_runner.kinematics.rotations import pose
chain = load_chain("ur5")
solver = RelaxedIK(chain, period=0.008, obstacles=[Box("wall", pose((0.45, 0.25, 0.3)), (0.3, 0.05, 0.6))])
q = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
goals = np.repeat(chain.fk(q)[None], 700, axis=0)
goals[:, 1, 3] += 0.3 * np.sin(np.linspace(0, 5, 700))
goals[:, 0, 3] -= 0.9 * np.linspace(0, 1, 700)
for again in range(2):
    solver.reset(q)
    path = solver.solve_path(goals)
    solver.reset(q)
    assert np.array_equal(path, [solver.solve(goal) for goal in goals])
    print(hashlib.sha256(path.tobytes()).hexdigest())
"""
    hashes = set()
    for seed in ("0", "1"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**environment(), "PYTHONHASHSEED": seed},
        )
        hashes.update(run.stdout.split())
    assert len(hashes) == 1


def environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": ":".join(sys.path)}


def test_elbow_up_is_preferred_and_soft(ur5: Chain) -> None:
    goal = ur5.fk(UP)
    straight = np.array([0.0, -0.3, 0.0, -1.0, -1.57, 0.0])
    heights = []
    for weight in (DEFAULT_WEIGHTS["elbow_up"], 0.2):
        solver = RelaxedIK(ur5, weights={"elbow_up": weight, "self_collision": 0}, period=PERIOD)
        solver.reset(straight)
        path = solver.solve_path(line(ur5.fk(straight), goal, settle=300))
        heights.append(ur5.frames(path[-1])[3, 2, 3])
        assert errors(ur5, path[-1:], goal[None])[0][0] < 1e-3
    assert min(heights) > 0.4  # up, though the arm started in line
    # An elbow that is down stays down while that serves the goal: the term bends the path, it does not break it.
    down = ClosedFormIK(ur5).solve(goal)
    rows = down[0][down[1] & ~ClosedFormIK(ur5).elbow_up(down[0])]
    solver = RelaxedIK(ur5, weights={"self_collision": 0}, period=PERIOD)
    solver.reset(rows[0])
    assert errors(ur5, solver.solve(goal)[None], goal[None])[0][0] < 1e-4


def test_obstacles_are_kept_clear_of_and_may_change_between_solves(ur5: Chain) -> None:
    wall = Box("wall", pose((0.5, 0.0, 0.35)), (0.5, 0.04, 0.7))
    obstacles = Obstacles([wall])
    solver = RelaxedIK(ur5, obstacles=obstacles, period=PERIOD)
    pan = np.array([0.8, 0, 0, 0, 0, 0])
    q, goal = UP - pan, ur5.fk(UP + pan)
    targets = line(ur5.fk(q), goal, settle=200)
    assert clearance(ur5, q, obstacles).distance > 0.02
    solver.reset(q)
    path = solver.solve_path(targets)
    assert min(clearance(ur5, row, obstacles).distance for row in path) > -1e-3
    assert solver.report.position_error > 0.1  # the wall is in the way
    solver.obstacles.move("wall", pose((0.5, 5.0, 0.35)))
    for _ in range(600):
        solver.solve(goal)
    assert solver.report.position_error < 3e-4


def test_self_collision_is_kept_clear_of(ur5: Chain) -> None:
    solver = RelaxedIK(ur5, period=PERIOD)
    start = ur5.fk(UP)
    goal = start.copy()
    goal[:3, 3] = [0.0, 0.1, 0.1]  # in the arm's own base
    solver.reset(UP)
    path = solver.solve_path(line(start, goal, settle=200))
    assert min(clearance(ur5, row).distance for row in path) > -1e-3


def test_joint_limits_hold_from_a_start_beyond_them(ur5: Chain) -> None:
    solver = RelaxedIK(ur5)
    solver.reset([7.0, -1.5, 4.0, -1.5, -9.0, 0])
    assert ur5.within_limits(solver.solve(ur5.fk(UP)))


def test_any_arm_with_any_number_of_joints() -> None:
    chain = mico_like()
    solver = RelaxedIK(chain, period=0.01)
    q = np.array([0.5, 2.6, 1.4, 0.3, 0.8, 0.2])
    end = chain.fk(q + np.array([0.3, -0.2, 0.2, 0.1, 0.2, -0.3]))
    targets = line(chain.fk(q), end, settle=200, step=0.002, turn=0.004)
    solver.reset(q)
    path = solver.solve_path(targets)
    assert_within(chain, q, path, 0.01)
    position, orientation = errors(chain, path[-1:], targets[-1:])
    assert position[0] < 3e-4 and orientation[0] < np.radians(0.1)


def test_objectives_are_a_list_that_weights_edit(ur5: Chain) -> None:
    solver = RelaxedIK(ur5, weights={"jerk": 0, "elbow_up": 0.5})
    weights = {objective.name: objective.weight for objective in solver.objectives}
    assert weights == {**DEFAULT_WEIGHTS, "jerk": 0, "elbow_up": 0.5}
    ur5_heavy = load_chain("ur5")
    ur5_heavy.objectives = {"velocity": 3.0, "elbow_up": 0.2}
    weights = {o.name: o.weight for o in RelaxedIK(ur5_heavy, weights={"elbow_up": 0.1}).objectives}
    assert (weights["velocity"], weights["elbow_up"]) == (3.0, 0.1)
    for bad, word in (({"elbowup": 1}, "elbow_up"), ({"jerk": -1}, "-1"), ({"jerk": np.nan}, "nan")):
        with pytest.raises(ValueError, match=word):
            RelaxedIK(ur5, weights=bad)


def test_bad_input_is_an_error_and_changes_nothing(ur5: Chain) -> None:
    solver = RelaxedIK(ur5)
    solver.reset(UP)
    goal = ur5.fk(UP)
    for bad in (np.full((4, 4), np.nan), np.eye(3), "pose"):
        with pytest.raises((ValueError, TypeError)):
            solver.solve(bad)
    with pytest.raises(ValueError, match="finite"):
        solver.reset([np.inf, 0, 0, 0, 0, 0])
    assert np.abs(solver.solve(goal) - UP).max() < 1e-3
