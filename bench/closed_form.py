"""Closed-form inverse kinematics of the UR5e against EAIK (eaik on PyPI), which decomposes the same way."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, Iterator, Tuple

import numpy as np
from numpy.typing import NDArray

from bench.timing import median, microseconds, record
from iter_runner.kinematics import Chain, ClosedFormIK, chain_from_dh

Array = NDArray[np.float64]

ALPHA = np.array([np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2, 0])
A = np.array([0, -0.425, -0.3922, 0, 0, 0])
D = np.array([0.1625, 0, 0, 0.1333, 0.0997, 0.0996])


def _chain() -> Chain:
    return chain_from_dh(ALPHA, A, D)


def _poses(count: int) -> Tuple[Array, Array]:
    q = np.random.default_rng(20).uniform(-np.pi, np.pi, (count, 6))
    return q, _chain().fk(q)


def _peer() -> Any:
    from eaik.IK_DH import DhRobot

    return DhRobot(ALPHA, A, D)


def batch() -> Iterator[Dict[str, Any]]:
    """All eight solutions of 20,000 poses, 500 a call, against the peer's one call a pose; per pose."""
    _, poses = _poses(20_000)
    solver, peer = ClosedFormIK(_chain()), _peer()
    ours, theirs = [], []
    for _ in range(5):
        ours += [t / 500 for t in microseconds([partial(solver.solve_batch, part) for part in np.split(poses, 40)])]
        theirs.append(median(microseconds([partial(peer.IK, pose) for pose in poses[:4000]])))
    yield record("closed_form_batch", median(ours), median(theirs), "us", poses=len(poses))


def single() -> Iterator[Dict[str, Any]]:
    """All eight solutions of one pose a call, both."""
    _, poses = _poses(4000)
    solver, peer = ClosedFormIK(_chain()), _peer()
    ours, theirs = [], []
    for _ in range(5):
        ours.append(median(microseconds([partial(solver.solve, pose) for pose in poses])))
        theirs.append(median(microseconds([partial(peer.IK, pose) for pose in poses])))
    yield record("closed_form_single", median(ours), median(theirs), "us", calls=len(poses))


def _apart(a: Array, b: Array) -> Array:
    """The largest joint difference (...,) of joint vectors (..., 6), by the shorter way round."""
    return np.abs((a - b + np.pi) % (2 * np.pi) - np.pi).max(axis=-1)


def error() -> Iterator[Dict[str, Any]]:
    """Over 10,000 random joint vectors: the nearest solution's joint error, and the poses of all exact solutions."""
    chain = _chain()
    joints, poses = _poses(10_000)
    solutions, exact = ClosedFormIK(chain).solve_batch(poses)
    nearest = np.where(exact, _apart(solutions, joints[:, None]), np.inf).min(axis=1)
    reached = chain.fk(solutions.reshape(-1, 6)).reshape(-1, 8, 4, 4)
    position = np.linalg.norm(reached[..., :3, 3] - poses[:, None, :3, 3], axis=-1)[exact]
    rotation = np.abs(reached[..., :3, :3] - poses[:, None, :3, :3]).max(axis=(-1, -2))[exact]

    peer = _peer()
    peer_nearest, missing, peer_exact = [], 0, 0
    for index, pose in enumerate(poses):
        answer = peer.IK(pose)
        rows = np.array([row for row, inexact in zip(answer.Q, answer.is_LS) if not inexact]).reshape(-1, 6)
        peer_nearest.append(float(_apart(rows, joints[index]).min()) if len(rows) else np.inf)
        for row in rows:
            peer_exact += 1
            missing += not bool(np.any(_apart(solutions[index][exact[index]], row) < 1e-6))
    yield record(
        "closed_form_error",
        median(nearest),
        median(peer_nearest),
        "rad",
        worst=float(nearest.max()),
        peer_worst=float(np.max(peer_nearest)),
        position_median=median(position),
        position_worst=float(position.max()),
        rotation_median=median(rotation),
        rotation_worst=float(rotation.max()),
        poses_without_solution=int(np.sum(~exact.any(axis=1))),
        peer_solutions=peer_exact,
        peer_solutions_missing=missing,
    )
