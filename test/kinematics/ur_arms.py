"""Arms for the tests: the UR table of the facts file as DH chains, and a chain that fits no closed form."""

from __future__ import annotations

import numpy as np

from iter_runner.kinematics import Chain, chain_from_dh

ALPHA = [np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2, 0]
# d1, a2, a3, d4, d5, d6
TABLE = {
    "ur3": (0.1519, -0.24365, -0.21325, 0.11235, 0.08535, 0.0819),
    "ur3e": (0.15185, -0.24355, -0.2132, 0.13105, 0.08535, 0.0921),
    "ur5": (0.089159, -0.425, -0.39225, 0.10915, 0.09465, 0.0823),
    "ur5e": (0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996),
}


def dh_arm(name: str) -> Chain:
    d1, a2, a3, d4, d5, d6 = TABLE[name]
    return chain_from_dh(ALPHA, [0, a2, a3, 0, 0, 0], [d1, 0, 0, d4, d5, d6], velocity=[np.pi] * 6)


def mico_like() -> Chain:
    """A six-joint arm whose wrist axes do not meet."""
    return chain_from_dh(
        [np.pi / 2, np.pi, np.pi / 2, np.pi / 3, np.pi / 3, np.pi],
        [0, 0.29, 0, 0, 0, 0],
        [0.2755, 0, -0.007, -0.1661, -0.0856, -0.2028],
        velocity=[0.6] * 6,
    )
