"""Emulated grippers for the tests of this room."""

import pytest

from iter_runner.gripper.emulated import EmulatedGripper
from iter_runner.gripper.emulated_serial import EmulatedPort
from iter_runner.gripper.emulated_urcap import EmulatedUrcap


class ManualClock:
    """Time that passes when told to."""

    def __init__(self):
        self.time = 100.0

    def __call__(self):
        return self.time

    def pass_(self, seconds):
        self.time += seconds


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def gripper():
    """An emulated gripper in real time that is quick to activate."""
    return EmulatedGripper(activation_speed=2.0)


@pytest.fixture
def port(gripper, tmp_path):
    """Its cable in a port of this machine."""
    port = EmulatedPort(gripper, tmp_path / "by-id" / "usb-gripper")
    port.plug_in()
    yield port
    port.unplug()


@pytest.fixture
def urcap(gripper):
    """A controller with the gripper at its wrist."""
    server = EmulatedUrcap(gripper)
    server.plug_in()
    yield server
    server.unplug()
