"""The URDFs against the facts: frames, kinematics, limits, tuck poses, collision geometry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from urdf_model import Matrix, UrdfModel, rotation_about

from iter_runner.kinematics import clearance, load_chain
from iter_runner.robot.table import load_gripper, load_robot, robot_gripper, robot_names

UR = ("ur3", "ur3e", "ur5", "ur5e")
DH = {  # d1, a2, a3, d4, d5, d6 of the makers' descriptions
    "ur3": (0.1519, -0.24365, -0.21325, 0.11235, 0.08535, 0.0819),
    "ur3e": (0.15185, -0.24355, -0.2132, 0.13105, 0.08535, 0.0921),
    "ur5": (0.089159, -0.425, -0.39225, 0.10915, 0.09465, 0.0823),
    "ur5e": (0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996),
}
DOWN = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])  # tool0's z down, its x along the base's y


@pytest.fixture(scope="module", params=robot_names())
def model(request: pytest.FixtureRequest) -> UrdfModel:
    return UrdfModel(load_robot(request.param))


@pytest.fixture(scope="module", params=UR)
def ur(request: pytest.FixtureRequest) -> UrdfModel:
    return UrdfModel(load_robot(request.param))


def rotation_from_vector(vector: Matrix) -> Matrix:
    angle = float(np.linalg.norm(vector))
    return rotation_about(vector / angle, angle)


@pytest.mark.parametrize(
    ("degrees", "millimetres", "rotation_degrees"),
    [
        ((0, 0, 0, 0, 0, 0), (-817.2, -232.9, 62.8), (90, 0, 0)),
        ((90, 90, 90, 90, 90, 90), (133.3, 292.5, -162.9), (0, 0, 90)),
        ((10, 20, 30, 40, 50, 60), (-509.12, -290.14, -359.6), (55.76, -153.20, 58.44)),
    ],
)
def test_ur5e_agrees_with_the_controller_simulator(degrees, millimetres, rotation_degrees) -> None:
    pose = UrdfModel(load_robot("ur5e")).pose(np.radians(degrees), "tool0", base="base")
    assert pose[:3, 3] * 1000 == pytest.approx(millimetres, abs=0.06)
    expected = rotation_from_vector(np.radians(rotation_degrees))
    assert pose[:3, :3] == pytest.approx(expected, abs=2e-4)


def test_kinematics_are_the_dh_table(ur: UrdfModel) -> None:
    d1, a2, a3, d4, d5, d6 = DH[ur.robot.name]
    rows = zip((math.pi / 2, 0, 0, math.pi / 2, -math.pi / 2, 0), (0, a2, a3, 0, 0, 0), (d1, 0, 0, d4, d5, d6))
    q = np.array([0.3, -1.1, 1.4, -0.6, 0.9, -2.0])
    expected = np.eye(4)
    for angle, (alpha, a, d) in zip(q, rows):
        turn, twist = np.eye(4), np.eye(4)
        turn[:3, :3], turn[2, 3] = rotation_about((0, 0, 1), angle), d
        twist[:3, :3], twist[0, 3] = rotation_about((1, 0, 0), alpha), a
        expected = expected @ turn @ twist
    assert ur.pose(q, "tool0", base="base") == pytest.approx(expected, abs=1e-12)


def test_frames_of_the_base(ur: UrdfModel) -> None:
    frames = ur.frames([0.0] * 6)
    half_turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    assert frames["world"] == pytest.approx(frames["base_link"])
    assert np.linalg.inv(frames["base_link"]) @ frames["base"] == pytest.approx(half_turn, abs=1e-12)
    assert frames["base"] == pytest.approx(frames["base_link_inertia"], abs=1e-12)


def test_three_names_of_the_flange(ur: UrdfModel) -> None:
    q = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6]
    tool0, flange, ee_link = (ur.pose(q, link) for link in ("tool0", "flange", "ee_link"))
    x, y, z = tool0[:3, 0], tool0[:3, 1], tool0[:3, 2]
    assert flange[:3, :3] == pytest.approx(np.array([z, x, y]).T, abs=1e-12)
    assert ee_link[:3, :3] == pytest.approx(np.array([z, -x, -y]).T, abs=1e-12)
    for other in (flange, ee_link):
        assert other[:3, 3] == pytest.approx(tool0[:3, 3], abs=1e-12)


def test_limits_and_masses(ur: UrdfModel) -> None:
    small = ur.robot.name.startswith("ur3")
    speeds = [180] * 3 + [360] * 3 if small else [180] * 6
    torques = [56, 56, 28, 12, 12, 12] if small else [150, 150, 150, 28, 28, 28]
    masses = [2.0, 2.0, 3.42, 1.26, 0.8, 0.8, 0.35] if small else [4.0, 3.7, 8.393, 2.275, 1.219, 1.219, 0.1879]
    for name, speed, torque in zip(ur.robot.joints, speeds, torques):
        limit = ur.joints[name].find("limit")
        assert limit is not None
        bound = math.pi if name == "elbow_joint" else 2 * math.pi
        assert float(limit.get("upper", "")) == pytest.approx(bound)
        assert float(limit.get("lower", "")) == pytest.approx(-bound)
        assert float(limit.get("velocity", "")) == pytest.approx(math.radians(speed))
        assert float(limit.get("effort", "")) == torque
    links = ("base_link_inertia", "shoulder_link", "upper_arm_link", "forearm_link")
    links += ("wrist_1_link", "wrist_2_link", "wrist_3_link")
    found = {link.get("name"): link.find("inertial/mass") for link in ur.root.findall("link")}
    assert [float(found[link].get("value")) for link in links] == masses


def test_inertias_are_of_bodies_that_can_exist(model: UrdfModel) -> None:
    for inertia in model.root.findall("link/inertial/inertia"):
        a, b, c = sorted(float(inertia.get(key, "")) for key in ("ixx", "iyy", "izz"))
        assert a > 0
        assert a + b >= c


class TestGripper:
    def test_mass_and_tip(self, model: UrdfModel) -> None:
        row = robot_gripper(model.robot)
        masses = [
            float(link.find("inertial/mass").get("value", ""))
            for link in model.root.findall("link")
            if any(part in link.get("name", "") for part in ("robotiq_85", "_hand", "_finger"))
            and link.find("inertial/mass") is not None
        ]
        assert sum(masses) == pytest.approx(row.mass, abs=1e-9)
        tip = np.linalg.inv(model.pose(model.robot.tuck, model.robot.tool_frame)) @ model.pose(
            model.robot.tuck, "gripper_tip"
        )
        expected = np.eye(4)
        expected[2, 3] = row.tip_offset
        assert tip == pytest.approx(expected, abs=1e-12)

    def test_fingers_end_at_the_tip_offset(self, model: UrdfModel) -> None:
        """A Robotiq's where they are open, a Kinova hand's as far out as they get on their way."""
        row = robot_gripper(model.robot)
        tool = np.linalg.inv(model.frames(model.robot.tuck)[model.robot.tool_frame])
        ends = []
        for share in (0.0,) if row.name == "robotiq_85" else np.linspace(0.0, 1.0, 29):
            position = row.position_open + share * (row.position_closed - row.position_open)
            for capsule in model.capsules(model.robot.tuck, dict.fromkeys(row.joints, position)):
                if "finger_tip" in capsule.link:
                    ends += [(tool @ np.r_[end, 1])[2] + capsule.radius for end in capsule[1:3]]
        assert max(ends) == pytest.approx(row.tip_offset, abs=1e-9 if row.name == "robotiq_85" else 1e-4)

    @pytest.mark.parametrize("knuckle", [0.0, 0.2, 0.4, 0.6, 0.8])
    def test_mimic_joints_keep_the_pads_parallel_and_open_as_the_driver_says(self, knuckle: float) -> None:
        robot = load_robot("ur5")
        row = load_gripper("robotiq_85")
        frames = UrdfModel(robot).frames(robot.tuck, {row.joints[0]: knuckle})
        hand = np.linalg.inv(frames["robotiq_85_base_link"])
        left, right = (hand @ frames[f"robotiq_85_{side}_finger_tip_link"] for side in ("left", "right"))
        pad = np.array([0.0, -0.0078, 0.0, 1.0])  # the pad's face in the fingertip's frame
        assert left[:3, 0] == pytest.approx([1, 0, 0], abs=1e-9)
        assert right[:3, 0] == pytest.approx([1, 0, 0], abs=1e-9)
        opening = (left @ pad)[1] - (right @ pad)[1]
        assert opening == pytest.approx(row.opening_of(knuckle), abs=0.006)
        assert (left @ pad)[0] == pytest.approx((right @ pad)[0], abs=1e-9)


class TestTuck:
    def test_hand_is_low_in_front_and_clear_of_a_table(self, model: UrdfModel) -> None:
        ceiling = 0.75 if model.robot.name in ("ur5", "ur5e") else 0.6
        frames = model.frames(model.robot.tuck)
        for link in (model.robot.tool_frame, "gripper_tip"):
            x, y, z = frames[link][:3, 3]
            assert 0.08 < z < ceiling
            assert 0.2 <= y <= 0.5
            assert abs(x) < 0.05
        for capsule in model.capsules(model.robot.tuck):
            lowest = min(capsule.start[2], capsule.end[2]) - capsule.radius
            if "finger" in capsule.link or "wrist" in capsule.link:
                assert lowest > 0.08
                assert max(capsule.start[2], capsule.end[2]) + capsule.radius < ceiling
            assert lowest > 0.015

    def test_tool_points_down_and_elbow_up(self, model: UrdfModel) -> None:
        frames = model.frames(model.robot.tuck)
        assert frames[model.robot.tool_frame][2, 2] < -0.9999
        elbow = frames[model.robot.elbow_link or ""][2, 3]
        upper_arm = model.joints[model.robot.joints[1]].find("child").get("link", "")
        others = [frames[link][2, 3] for link in (upper_arm, model.robot.tool_frame)]
        assert elbow > max(others) + 0.05

    def test_far_from_singular_and_from_limits(self, model: UrdfModel) -> None:
        assert np.linalg.svd(model.jacobian(model.robot.tuck))[1].min() > 0.1  # m and rad: a lever of 10 cm a rad
        for name, position in zip(model.robot.joints, model.robot.tuck):
            lower, upper = model.limits(name)
            assert lower + 0.5 < position < upper - 0.5

    def test_no_self_collision(self, model: UrdfModel) -> None:
        pair, distance = min(model.self_distances(model.robot.tuck).items(), key=lambda item: item[1])
        assert distance > 0.02, pair

    def test_blocks_in_front_are_a_short_way(self, model: UrdfModel) -> None:
        """From the tuck, straight down and to the sides, no joint but the last makes more than a quarter turn."""
        far = 0.5 if model.robot.name.startswith("ur5") else 0.38 if model.robot.name.startswith("mico") else 0.3
        for x, y in ((0.0, 0.25), (-0.2, 0.25), (0.2, far), (0.0, far)):
            q = model.reach(model.robot.tuck, flange(x, y, 0.2))
            assert q is not None
            assert np.abs(q - model.robot.tuck)[:5].max() < math.pi / 2


def flange(x: float, y: float, z: float, yaw: float = 0.0) -> Matrix:
    pose = np.eye(4)
    pose[:3, :3] = rotation_about((0, 0, 1), yaw) @ DOWN
    pose[:3, 3] = x, y, z
    return pose


class TestCollisionGeometry:
    def test_the_core_measures_the_same_bodies(self, model: UrdfModel) -> None:
        chain = load_chain(model.robot)
        for q in np.random.default_rng(2).uniform(-2.5, 2.5, (10, len(chain))):
            q = np.clip(q, chain.lower, chain.upper)
            assert clearance(chain, q).distance == pytest.approx(min(model.self_distances(q).values()), abs=1e-6)
            assert chain.fk(q) == pytest.approx(model.pose(q, model.robot.tool_frame), abs=1e-12)

    @pytest.mark.parametrize("yaw", [0.0, math.pi / 2])
    def test_no_self_collision_over_the_workspace(self, ur: UrdfModel, yaw: float) -> None:
        small = ur.robot.name.startswith("ur3")
        reached = 0
        for x in (-0.3, -0.1, 0.1, 0.3):
            for y in (0.22, 0.3) if small else (0.28, 0.4, 0.55):
                q = np.array(ur.robot.tuck)
                for z in (0.3, 0.15) if small else (0.3, 0.1, -0.05):
                    found = ur.reach(q, flange(x, y, z, yaw))
                    if found is None:
                        continue
                    q = found
                    reached += 1
                    pair, distance = min(ur.self_distances(q).items(), key=lambda item: item[1])
                    assert distance > 0.005, (x, y, z, pair)
        assert reached >= (14 if small else 30)

    @pytest.mark.parametrize(
        ("what", "changes", "links"),
        [
            ("forearm folded into the shoulder", {"elbow_joint": 3.1}, ("shoulder_link", "wrist_1_link")),
            (
                "hand turned into the forearm",
                {"wrist_1_joint": math.pi / 2, "wrist_2_joint": math.pi, "elbow_joint": -1.0},
                ("forearm_link", "robotiq_85_base_link"),
            ),
        ],
    )
    def test_arm_through_itself_is_seen(self, ur: UrdfModel, what: str, changes: dict, links: tuple) -> None:
        q = [changes.get(name, position) for name, position in zip(ur.robot.joints, ur.robot.tuck)]
        distances = ur.self_distances(q)
        colliding = {link for pair, distance in distances.items() if distance < 0 for link in pair}
        assert colliding, what
        assert set(links) & colliding, (what, colliding)

    def test_ignored_pairs_never_come_closer(self, ur: UrdfModel) -> None:
        """What collision_ignore hides is a fixed gap, not a possible collision."""
        generator = np.random.default_rng(5)
        ignoring, checking = ur, UrdfModel(ur.robot.model_copy(update={"collision_ignore": []}))
        hidden = {tuple(pair) for pair in ur.robot.collision_ignore}
        for _ in range(40):
            q = generator.uniform(-math.pi, math.pi, 6)
            distances = checking.self_distances(q)
            assert hidden == set(distances) - set(ignoring.self_distances(q))
            for pair in hidden:
                assert distances[pair] > 0.0, pair

    def test_original_house_clears_its_table(self) -> None:
        """Lowest flange poses of the original UR5 house: fingertips a block's half above the table, not in it."""
        ur5 = UrdfModel(load_robot("ur5"))
        table = -0.1825
        for x, y, z in ((-0.325, 0.32016, 0.00624), (0.14826, 0.425, -0.00188)):
            q = ur5.reach(ur5.robot.tuck, flange(x, y, z))
            assert q is not None
            lowest = min(min(c.start[2], c.end[2]) - c.radius for c in ur5.capsules(q) if "base_link_i" not in c.link)
            assert table + 0.01 < lowest < table + 0.03
