"""RelaxedIK on the UR5 against relaxed-ik-core (PyPI, Rust), each with its own settings."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np
from numpy.typing import NDArray

from bench.timing import median, record
from iter_runner.kinematics import Box, Chain, RelaxedIK, load_chain
from iter_runner.kinematics.rotations import angle_between, matrix_to_quaternion, pose
from iter_runner.robot.table import load_robot, robot_urdf

Array = NDArray[np.float64]

START = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
GOALS = 3000
STEP = 0.005


def closed_path(chain: Chain) -> Array:
    """3,000 goals (N, 4, 4) at 5 mm of arc from one another on a smooth closed curve, run round several times."""
    start = chain.fk(START)
    s = np.linspace(0, 2 * np.pi, 20_001)
    curve = np.stack([0.10 * (np.cos(s) - 1), 0.22 * np.sin(s), 0.08 * np.sin(2 * s)], axis=1)
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
    along = (np.arange(GOALS) * STEP) % length[-1]
    goals = np.repeat(start[None], GOALS, axis=0)
    for axis in range(3):
        goals[:, axis, 3] += np.interp(along, length, curve[:, axis])
    return goals


def _follow(chain: Chain, solve: Any, goals: List[Any], targets: Array) -> Tuple[List[float], Array, Array]:
    clock = time.perf_counter_ns
    durations, joints = [], []
    for goal in goals:
        started = clock()
        q = solve(goal)
        durations.append((clock() - started) * 1e-3)
        joints.append(q)
    reached = chain.fk(np.array(joints, dtype=np.float64))
    position = np.linalg.norm(reached[:, :3, 3] - targets[:, :3, 3], axis=1)
    orientation = np.array([angle_between(a[:3, :3], b[:3, :3]) for a, b in zip(reached, targets)])
    return durations, position, orientation


@contextlib.contextmanager
def _peer() -> Iterator[Any]:
    """The peer, from a settings file of its own; it looks for ``configs/urdfs`` where it runs."""
    import relaxed_ik_lib

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "configs" / "urdfs").mkdir(parents=True)
        (Path(folder) / "configs" / "urdfs" / "ur5.urdf").write_text(robot_urdf(load_robot("ur5")))
        settings = Path(folder) / "configs" / "settings.yaml"
        settings.write_text(
            "urdf: ur5.urdf\nlink_radius: 0.05\nbase_links: [base_link]\nee_links: [tool0]\n"
            f"starting_config: {START.tolist()}\n"
        )
        os.chdir(folder)
        # It reports what it reads on the standard output, which is ours.
        kept = os.dup(1)
        os.dup2(2, 1)
        try:
            peer = relaxed_ik_lib.RelaxedIK(str(settings))
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            os.chdir(before)
        yield peer


def track() -> Iterator[Dict[str, Any]]:
    """Time and error a goal along the path; ours with self-collision and one obstacle box."""
    chain = load_chain("ur5")
    targets = closed_path(chain)
    solver = RelaxedIK(chain, obstacles=[Box("table", pose((0.5, 0.0, -0.05)), (0.8, 1.2, 0.04))])
    ours: Tuple[List[float], List[Array], List[Array]] = ([], [], [])
    theirs: Tuple[List[float], List[Array], List[Array]] = ([], [], [])
    # The peer's quaternions have w first.
    pairs = [(target[:3, 3].copy(), np.roll(matrix_to_quaternion(target[:3, :3]), 1)) for target in targets]
    with _peer() as peer:
        for _ in range(3):
            solver.reset(START)
            for run, solve, goals in (
                (ours, solver.solve, list(targets)),
                (theirs, lambda goal: peer.solve(*goal)[0], pairs),
            ):
                durations, position, orientation = _follow(chain, solve, goals, targets)
                run[0].extend(durations)
                run[1].append(position)
                run[2].append(orientation)
    yield record("relaxed_ik_track", median(ours[0]), median(theirs[0]), "us", goals=GOALS)
    yield record("relaxed_ik_track_p99", *(float(np.quantile(run[0], 0.99)) for run in (ours, theirs)), unit="us")
    yield record("relaxed_ik_track_error", *(median(np.concatenate(run[1])) for run in (ours, theirs)), unit="m")
    yield record("relaxed_ik_track_angle", *(median(np.concatenate(run[2])) for run in (ours, theirs)), unit="rad")


def cold() -> Iterator[Dict[str, Any]]:
    """From a start up to 1 rad away in every joint: time to a solution within 1 mm and 0.1 degrees, of one solve."""
    chain = load_chain("ur5")
    solver = RelaxedIK(chain, max_iterations=200)
    rng = np.random.default_rng(7)
    durations, reached = [], 0
    for _ in range(1000):
        q = START + rng.uniform(-0.5, 0.5, 6)
        away = rng.normal(size=6)
        goal = chain.fk(q + away / np.linalg.norm(away))
        solver.reset(q)
        started = time.perf_counter_ns()
        solver.solve(goal)
        taken = (time.perf_counter_ns() - started) * 1e-3
        if solver.report.position_error < 1e-3 and solver.report.orientation_error < np.radians(0.1):
            reached += 1
            durations.append(taken)
    p99 = float(np.quantile(durations, 0.99))
    yield record("relaxed_ik_cold", median(durations), None, "us", p99=p99, reached=reached, starts=1000)
