"""Chains, forward and inverse kinematics, distances and rotations."""
