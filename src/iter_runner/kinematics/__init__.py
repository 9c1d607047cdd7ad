"""Chains, forward and inverse kinematics, distances and rotations."""

from iter_runner.kinematics.chain import Chain, LinkCapsule, chain_from_dh, load_chain
from iter_runner.kinematics.closed_form import ClosedFormIK, GeometryError
from iter_runner.kinematics.relaxed_ik import DEFAULT_WEIGHTS, RelaxedIK
from iter_runner.kinematics.urdf import ChainError

__all__ = [
    "DEFAULT_WEIGHTS",
    "Chain",
    "ChainError",
    "ClosedFormIK",
    "GeometryError",
    "LinkCapsule",
    "RelaxedIK",
    "chain_from_dh",
    "load_chain",
]
