"""The wire contract: message definitions of compat/ are those of the real packages, to the md5 sum."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# As in Noetic: what `rosmsg md5` and `rossrv md5` print there.
MESSAGES = {
    "relaxed_ik_ros1/EEPoseGoals": "53bcbdf6cd22e9cc87da1de741a651ce",  # of its main branch; never released
    "control_msgs/FollowJointTrajectoryAction": "bc4f9b743838566551c0390c65f1a248",
    "control_msgs/FollowJointTrajectoryActionGoal": "cff5c1d533bf2f82dd0138d57f4304bb",
    "control_msgs/FollowJointTrajectoryGoal": "69636787b6ecbde4d61d711979bc7ecb",
    "control_msgs/FollowJointTrajectoryResult": "493383b18409bfb604b4e26c676401d2",
    "control_msgs/FollowJointTrajectoryFeedback": "10817c60c2486ef6b33e97dcd87f4474",
    "control_msgs/JointTrajectoryControllerState": "10817c60c2486ef6b33e97dcd87f4474",
    "control_msgs/JointTolerance": "f544fe9c16cf04547e135dd6063ff5be",
    "control_msgs/GripperCommand": "680acaff79486f017132a7f198d40f08",
    "control_msgs/GripperCommandAction": "950b2a6ebe831f5d4f4ceaba3d8be01e",
    "control_msgs/GripperCommandGoal": "86fd82f4ddc48a4cb6856cfa69217e43",
    "control_msgs/GripperCommandResult": "e4cbff56d3562bcf113da5a5adeef91f",
    "control_msgs/GripperCommandFeedback": "e4cbff56d3562bcf113da5a5adeef91f",
    "kinova_msgs/FingerPosition": "f56891e5dcd1900989f764a9b845c8e5",
    "kinova_msgs/JointVelocity": "bf16c4e5154848a0767d1aaab0a4796b",
    "robotiq_85_msgs/GripperCmd": "017fc0d464f4a4d072ae2519e0fc1789",
    "robotiq_85_msgs/GripperStat": "b008656b72baf8ed957040c01e114fed",
    "ur_dashboard_msgs/RobotMode": "73b72d58742c4889c47118411b03a3b4",
    "ur_dashboard_msgs/SafetyMode": "5da08725a63d4237bad689481131a84b",
}
SERVICES = {
    "kinova_msgs/HomeArm": "46e470f2c1a7177398c57a43eafe8d67",
    "kinova_msgs/Start": "e762e31d813526eaaa6a12e8354174fc",
    "kinova_msgs/Stop": "585dc4164508d473dff8f8b67a05d2ad",
    "ur_msgs/SetSpeedSliderFraction": "172aeb6c49379a44cf68480fa5bfad3c",
    "ur_msgs/SetPayload": "3e3a97c1edb6d0acdd0d0c9e9e4a538a",
    "ur_msgs/SetIO": "f539fc0b1a42859fb186a5aaba22d4b0",
    "ur_dashboard_msgs/GetRobotMode": "ef94c03da2e53bb8c576236bb003fe8a",
    "ur_dashboard_msgs/GetSafetyMode": "42900ff79a0c74f885536dc5add71b7e",
    "ur_dashboard_msgs/IsProgramRunning": "290f0cb02c3a44353957f0a92f954209",
    "ur_dashboard_msgs/Load": "abbee7d5c683c0b3af261ba331da1fbb",
}
COVERED = ("control_msgs", "kinova_msgs", "relaxed_ik_ros1", "robotiq_85_msgs", "ur_dashboard_msgs", "ur_msgs")


def _md5(name: str, kind: str) -> str:
    package, message = name.split("/")
    return str(getattr(import_module(f"{package}.{kind}"), message)._md5sum)


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_message_is_wire_compatible(name: str) -> None:
    assert _md5(name, "msg") == MESSAGES[name]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_service_is_wire_compatible(name: str) -> None:
    assert _md5(name, "srv") == SERVICES[name]


def test_every_definition_has_its_sum() -> None:
    for package in COVERED:
        for kind, suffix, known in (("msg", "", MESSAGES), ("action", "Action", MESSAGES), ("srv", "", SERVICES)):
            for path in (ROOT / "compat" / package / kind).glob(f"*.{kind}"):
                assert f"{package}/{path.stem}{suffix}" in known, f"{path}: which md5 sum does the real one have?"
