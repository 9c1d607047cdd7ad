"""Chains, forward and inverse kinematics, distances and rotations."""

from iter_runner.kinematics.chain import Chain, LinkCapsule, chain_from_dh, load_chain
from iter_runner.kinematics.closed_form import ClosedFormIK, GeometryError
from iter_runner.kinematics.obstacles import (
    Box,
    Capsule,
    Clearance,
    Obstacle,
    Obstacles,
    Sphere,
    clearance,
    path_clearance,
)
from iter_runner.kinematics.relaxed_ik import DEFAULT_WEIGHTS, RelaxedIK
from iter_runner.kinematics.urdf import ChainError

__all__ = [
    "DEFAULT_WEIGHTS",
    "Box",
    "Capsule",
    "Chain",
    "ChainError",
    "Clearance",
    "ClosedFormIK",
    "GeometryError",
    "LinkCapsule",
    "Obstacle",
    "Obstacles",
    "RelaxedIK",
    "Sphere",
    "chain_from_dh",
    "clearance",
    "load_chain",
    "path_clearance",
]
