"""Inverse kinematics of an arm without a closed form: how long a search takes, and whether it finds what there is."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, Iterator

import numpy as np

from bench.timing import median, microseconds, record
from iter_runner.kinematics import NumericIK, load_chain
from iter_runner.robot.table import load_robot


def search() -> Iterator[Dict[str, Any]]:
    """All solutions of 1,000 random poses of a Mico, one a call; then one pose that is out of reach."""
    chain, near = load_chain("mico-2"), np.array(load_robot("mico-2").tuck)
    whole = chain.upper - chain.lower >= 2 * np.pi
    lower, upper = np.where(whole, -np.pi, chain.lower), np.where(whole, np.pi, chain.upper)
    joints = np.random.default_rng(21).uniform(lower, upper, (1000, len(chain)))
    solver, poses = NumericIK(chain), chain.fk(joints)
    found = [solver.search(pose, near) for pose in poses]
    missed = sum(solutions[0].position_error > 1e-9 for solutions in found)
    own = sum(
        min(np.abs((solution.positions - q + np.pi) % (2 * np.pi) - np.pi).max() for solution in solutions) < 1e-3
        for q, solutions in zip(joints, found)
    )
    durations = microseconds([partial(solver.search, pose, near) for pose in poses])
    yield record(
        "numeric_ik_search",
        median(durations),
        None,
        "us",
        poses=len(poses),
        poses_without_solution=int(missed),
        own_branch_found=int(own),
        solutions=sum(len(solutions) for solutions in found),
    )
    far = poses[0].copy()
    far[:3, 3] = 2.0, 0.0, 0.3
    yield record("numeric_ik_out_of_reach", median(microseconds([partial(solver.search, far, near)] * 10)), None, "us")
