"""Chains, forward and inverse kinematics, distances and rotations."""

from iter_runner.kinematics.attached import AttachedBody, carrying
from iter_runner.kinematics.chain import Chain, LinkCapsule, chain_from_dh, load_chain
from iter_runner.kinematics.closed_form import ClosedFormIK, GeometryError
from iter_runner.kinematics.numeric import NumericIK
from iter_runner.kinematics.obstacles import (
    Box,
    Capsule,
    Clearance,
    Contact,
    Cylinder,
    Obstacle,
    Obstacles,
    Sphere,
    clearance,
    contact_on_way,
    path_clearance,
)
from iter_runner.kinematics.relaxed_ik import DEFAULT_WEIGHTS, RelaxedIK
from iter_runner.kinematics.urdf import ChainError

__all__ = [
    "DEFAULT_WEIGHTS",
    "AttachedBody",
    "Box",
    "Capsule",
    "Chain",
    "ChainError",
    "Clearance",
    "ClosedFormIK",
    "Contact",
    "Cylinder",
    "GeometryError",
    "LinkCapsule",
    "NumericIK",
    "Obstacle",
    "Obstacles",
    "RelaxedIK",
    "Sphere",
    "carrying",
    "chain_from_dh",
    "clearance",
    "contact_on_way",
    "load_chain",
    "path_clearance",
]
