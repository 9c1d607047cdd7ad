"""The Mico's models against the facts: names, origins, limits, masses, fingers; a workspace clear of the arm itself."""

from __future__ import annotations

import math
from typing import List, Sequence, Tuple

import numpy as np
import pytest
from urdf_model import Matrix, UrdfModel, rotation_about

from iter_runner.kinematics import NumericIK, clearance, load_chain
from iter_runner.kinematics.urdf import read_urdf
from iter_runner.robot.table import load_robot, robot_driver, robot_gripper, robot_urdf

PREFIXES = {"mico-2": "m1n6s200", "mico-3": "m1n6s300", "mico-robotiq85": "m1n6s200"}
PI = math.pi
Origin = Tuple[Sequence[float], Sequence[float]]  # xyz, rpy

JOINTS: List[Origin] = [
    ((0, 0, 0.15675), (0, PI, 0)),
    ((0, 0.0016, -0.11875), (-PI / 2, 0, PI)),
    ((0, -0.290, 0), (0, PI, 0)),
    ((0, 0.1231, -0.0086), (-PI / 2, 0, PI)),
    ((0, -0.03703, -0.06414), (PI / 3, 0, PI)),
    ((0, -0.03703, -0.06414), (PI / 3, 0, PI)),
]
END_EFFECTOR: Origin = ((0, 0, -0.1600), (PI, 0, PI / 2))
FINGERS = {
    "mico-2": [
        ((-0.0025, 0.03095, -0.11482), (-PI / 2, 0.64926, PI / 2)),
        ((-0.0025, -0.03095, -0.11482), (-PI / 2, 0.64926, -PI / 2)),
    ],
    "mico-3": [
        ((0.00279, 0.03126, -0.11467), (-1.70479, 0.64761, 1.67317)),
        ((0.02226, -0.02707, -0.11482), (-PI / 2, 0.64926, -1.38614)),
        ((-0.02226, -0.02707, -0.11482), (-PI / 2, 0.64926, -1.75545)),
    ],
}


def origin(place: Origin, turned: float = 0.0) -> Matrix:
    """A joint's origin and then a turn about its z."""
    xyz, (roll, pitch, yaw) = place
    pose = np.eye(4)
    pose[:3, :3] = (
        rotation_about((0, 0, 1), yaw)
        @ rotation_about((0, 1, 0), pitch)
        @ rotation_about((1, 0, 0), roll)
        @ rotation_about((0, 0, 1), turned)
    )
    pose[:3, 3] = xyz
    return pose


@pytest.fixture(scope="module", params=list(PREFIXES))
def mico(request: pytest.FixtureRequest) -> UrdfModel:
    return UrdfModel(load_robot(request.param))


def prefix(mico: UrdfModel) -> str:
    return PREFIXES[mico.robot.name]


def test_names_and_what_fits(mico: UrdfModel) -> None:
    robot, own = mico.robot, prefix(mico)
    assert robot.joints == [f"{own}_joint_{number}" for number in range(1, 7)]
    assert robot.tool_frame == f"{own}_end_effector"
    assert mico.parent(f"{own}_link_base") == "root"
    driver = robot_driver(robot)
    assert driver.interface == "kinova"
    assert driver.topic("joint_states") == f"/{own}_driver/out/joint_state"
    assert driver.topic("joint_velocity") == f"/{own}_driver/in/joint_velocity"
    assert driver.action("follow_joint_trajectory") == f"/{own}/follow_joint_trajectory"
    assert [driver.service(name) for name in ("home_arm", "start", "stop")] == [
        f"/{own}_driver/in/{name}" for name in ("home_arm", "start", "stop")
    ]
    assert robot.transports == ["joint_velocity"]
    assert robot.stream_rate == 100
    assert "ur" not in robot.planners
    assert {"relaxed_ik", "static", "ompl", "moveit", "replay"} <= set(robot.planners)


@pytest.mark.parametrize("q", [[0.0, PI, PI, 0.0, 0.0, 0.0], [0.4, 2.1, 1.3, -2.0, 0.7, 5.5]])
def test_kinematics_are_the_origins_one_after_the_other(mico: UrdfModel, q: List[float]) -> None:
    expected = np.eye(4)
    for place, angle in zip(JOINTS, q):
        expected = expected @ origin(place, angle)
    expected = expected @ origin(END_EFFECTOR)
    own = prefix(mico)
    assert mico.pose(q, f"{own}_end_effector", base=f"{own}_link_base") == pytest.approx(expected, abs=1e-12)
    assert load_chain(mico.robot).fk(q) == pytest.approx(expected, abs=1e-12)


def test_upright_with_joints_two_and_three_at_half_a_turn(mico: UrdfModel) -> None:
    pose = mico.pose([0, PI, PI, 0, 0, 0], mico.robot.tool_frame)
    # What two bends of 60 degrees leave of the wrist's height, the axes' offsets beside it.
    assert pose[2, 3] == pytest.approx(0.15675 + 0.11875 + 0.290 + 0.1231 + 2 * 0.06414 + 0.16, abs=0.001)
    assert pose[2, 2] == pytest.approx(1.0)


def test_frames_that_plans_name(mico: UrdfModel) -> None:
    q = mico.robot.tuck
    tool = mico.pose(q, mico.robot.tool_frame)
    tool0, flange, ee_link = (mico.pose(q, link) for link in ("tool0", "flange", "ee_link"))
    assert tool0 == pytest.approx(tool, abs=1e-12)
    x, y, z = tool[:3, 0], tool[:3, 1], tool[:3, 2]
    assert flange[:3, :3] == pytest.approx(np.array([z, x, y]).T, abs=1e-12)
    assert ee_link[:3, :3] == pytest.approx(np.array([z, -x, -y]).T, abs=1e-12)
    assert mico.pose(q, "base_link", base=f"{prefix(mico)}_link_base") == pytest.approx(np.eye(4))


def test_limits(mico: UrdfModel) -> None:
    speeds, torques = [36, 36, 36, 48, 48, 48], [40, 80, 40, 20, 20, 20]
    ranges = {2: (50, 310), 3: (35, 325)}
    for number, (name, speed, torque) in enumerate(zip(mico.robot.joints, speeds, torques), 1):
        limit = mico.joints[name].find("limit")
        assert limit is not None
        assert mico.joints[name].get("type") == ("revolute" if number in ranges else "continuous")
        assert np.degrees(mico.limits(name)) == pytest.approx(ranges.get(number, (-360, 360)))
        assert float(limit.get("velocity", "")) == pytest.approx(math.radians(speed))
        assert float(limit.get("effort", "")) == torque
    chain = load_chain(mico.robot)
    assert np.degrees(chain.lower) == pytest.approx([-360, 50, 35, -360, -360, -360])
    assert np.degrees(chain.upper) == pytest.approx([360, 310, 325, 360, 360, 360])


def test_masses(mico: UrdfModel) -> None:
    own = prefix(mico)
    found = {link.get("name", ""): link.find("inertial/mass") for link in mico.root.findall("link")}
    links = ("link_base", "link_1", "link_2", "link_3", "link_4", "link_5")
    assert [float(found[f"{own}_{link}"].get("value")) for link in links] == [0.468, 0.748, 0.860, 0.606, 0.463, 0.463]  # type: ignore[union-attr]
    total = sum(float(mass.get("value", "")) for mass in found.values() if mass is not None)
    assert total == pytest.approx(3.608 + robot_gripper(mico.robot).mass)


@pytest.mark.parametrize("name", ["mico-2", "mico-3"])
class TestKinovaHand:
    def test_fingers_are_where_the_maker_has_them(self, name: str) -> None:
        mico = UrdfModel(load_robot(name))
        own, row = prefix(mico), robot_gripper(mico.robot)
        assert row.action == f"/{own}_gripper/gripper_command"
        assert row.joints == [f"{own}_joint_finger_{number}" for number in range(1, len(FINGERS[name]) + 1)]
        assert row.drivers == ["kinova"]
        q = mico.robot.tuck
        for number, place in enumerate(FINGERS[name], 1):
            finger = f"{own}_link_finger_{number}"
            assert mico.pose(q, finger, base=f"{own}_link_6") == pytest.approx(origin(place), abs=1e-12)
            tip = mico.pose(q, f"{own}_link_finger_tip_{number}", base=finger)
            assert tip == pytest.approx(origin(((0.044, -0.003, 0), (0, 0, 0))), abs=1e-12)
            assert mico.limits(f"{own}_joint_finger_{number}") == (0, 1.51)
            assert mico.limits(f"{own}_joint_finger_tip_{number}") == (0, 2)

    def test_openings_are_between_the_fingertips(self, name: str) -> None:
        """As far as the fingers come together; beyond, they press."""
        mico = UrdfModel(load_robot(name))
        own, row = prefix(mico), robot_gripper(mico.robot)
        for position in np.linspace(0.0, 1.31, 41):
            frames = mico.frames(mico.robot.tuck, dict.fromkeys(row.joints, position))
            tool = np.linalg.inv(frames[mico.robot.tool_frame])
            ends = [
                (tool @ frames[f"{own}_link_finger_tip_{number}"] @ [0.044, 0, 0, 1])[0]
                for number in range(1, len(row.joints) + 1)
            ]
            assert row.opening_of(position) == pytest.approx(ends[0] - np.mean(ends[1:]), abs=0.002)
        assert row.opening_of(1.4) == 0.0

    def test_position_and_opening_belong_together(self, name: str) -> None:
        row = robot_gripper(load_robot(name))
        for opening in np.linspace(0.0, row.opening_open, 30):
            assert row.opening_of(row.position_of(opening)) == pytest.approx(opening, abs=1e-12)
        assert row.position_of(1.0) == 0.0
        assert row.position_of(-1.0) == 1.4

    def test_mimicked_tips_stay_straight_in_the_reader_too(self, name: str) -> None:
        robot = load_robot(name)
        urdf, row = read_urdf(robot_urdf(robot)), robot_gripper(robot)
        positions = {**dict(zip(robot.joints, robot.tuck)), **dict.fromkeys(row.joints, 0.7)}
        model = UrdfModel(robot)
        expected = model.frames(robot.tuck, dict.fromkeys(row.joints, 0.7))
        for link, pose in urdf.poses(positions).items():
            assert pose == pytest.approx(expected[link], abs=1e-12), link


def test_the_robotiq_sits_on_the_adapter() -> None:
    robot = load_robot("mico-robotiq85")
    model = UrdfModel(robot)
    hand = model.pose(robot.tuck, "gripper_tip", base="m1n6s200_link_6")
    assert hand[:3, 3] == pytest.approx([0, 0, -0.02 - 0.1675])
    assert robot_gripper(robot).tip_offset == pytest.approx(0.02 + 0.1675 - 0.16)
    assert robot_gripper(robot).action == "/gripper_command"


def test_no_self_collision_over_the_workspace(mico: UrdfModel) -> None:
    """Every place of a table in front can be had, hand down, clear of the arm itself by more than half a centimetre."""
    chain = load_chain(mico.robot)
    solver, near = NumericIK(chain), np.array(mico.robot.tuck)
    for x in (-0.3, -0.1, 0.1, 0.3):
        for y in (0.22, 0.3):
            for z in (0.3, 0.15, 0.02):
                for yaw in (0.0, PI / 2):
                    target = np.eye(4)
                    target[:3, :3] = rotation_about((0, 0, 1), yaw) @ np.diag([1.0, -1.0, -1.0])
                    target[:3, 3] = x, y, z
                    solutions = solver.search(target, near)
                    best = max(clearance(chain, solution.positions).distance for solution in solutions)
                    assert solutions[0].position_error < 1e-9
                    assert best > 0.005, (x, y, z, yaw)


@pytest.mark.parametrize(
    ("what", "changes", "links"),
    [
        ("hand turned into the upper arm", {3: 0.65, 5: PI}, ("link_2", "hand", "robotiq_85_base_link", "link_5")),
        ("arm folded down to its foot", {2: 5.0, 3: 0.95}, ("link_base", "hand", "robotiq_85_base_link", "link_5")),
    ],
)
def test_arm_through_itself_is_seen(mico: UrdfModel, what: str, changes: dict, links: tuple) -> None:
    chain = load_chain(mico.robot)
    found = set()
    for turn in np.linspace(-PI, PI, 25):  # of the forearm, which decides where the hand goes
        q = np.array([changes.get(number, mico.robot.tuck[number - 1]) for number in range(1, 7)])
        q[3] = turn
        nearest = clearance(chain, q)
        if nearest.distance < 0:
            found |= {nearest.a.replace(f"{prefix(mico)}_", ""), nearest.b.replace(f"{prefix(mico)}_", "")}
    assert set(links) & found, (what, found)
