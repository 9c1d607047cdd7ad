"""The generated house plans as things: blocks that rest on something, fingers with room, ways that are clear."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from math import atan2, cos, hypot, sin
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import pytest

from iter_runner.kinematics.attached import SINK
from iter_runner.plan.build import Hand, PlanBuilder
from iter_runner.plan.check import Workcell, inspect_plan
from iter_runner.plan.house import HouseTask, house
from iter_runner.plan.layout import SITES
from iter_runner.plan.load import load_plan
from iter_runner.planners.routes import Router
from iter_runner.primitives import REGISTRY
from iter_runner.robot.table import load_robot

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("pooled", "sequential", "reciprocal", "inspection")
VARIANTS = [
    "pooled",
    "pooled --houses 4 --allocation 2:2 --table-height 0",
    "sequential",
    "sequential --houses 4 --allocation 6:8 --robot ur5",
    "reciprocal",
    "reciprocal --houses 2 --allocation 2:1",
    "inspection",
    "inspection --houses 2 --every 4 --robot ur5e",
]
MICO_VARIANTS = [
    "sequential --robot mico-2",
    "pooled --robot mico-3 --houses 4 --allocation 2:2",
    "reciprocal --robot mico-robotiq85 --table-height 0",
    "inspection --robot mico-2 --houses 2 --every 4",
]
FINGER_LENGTH = 0.04
TOUCH = 1e-4  # m, what rounding and resting on one another leave


@dataclass(frozen=True)
class Box:
    """Centre (m), yaw (rad) and edges (m)."""

    name: str
    x: float
    y: float
    z: float
    yaw: float
    size: Tuple[float, float, float]

    @property
    def low(self) -> float:
        return self.z - self.size[2] / 2

    @property
    def high(self) -> float:
        return self.z + self.size[2] / 2

    def outline(self) -> np.ndarray:
        c, s = cos(self.yaw), sin(self.yaw)
        signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * np.array(self.size[:2]) / 2
        return signs @ np.array([[c, s], [-s, c]]) + np.array([self.x, self.y])


def outlines_overlap(a: Box, b: Box) -> float:
    """How deep two boxes' footprints are in one another, m; below 0: apart (separating axes)."""
    if hypot(a.x - b.x, a.y - b.y) > (hypot(*a.size[:2]) + hypot(*b.size[:2])) / 2:
        return -1.0
    first, second = a.outline(), b.outline()
    depth = np.inf
    for yaw in (a.yaw, b.yaw):
        for axis in (np.array([cos(yaw), sin(yaw)]), np.array([-sin(yaw), cos(yaw)])):
            p, q = first @ axis, second @ axis
            depth = min(depth, p.max() - q.min(), q.max() - p.min())
    return float(depth)


def overlap(a: Box, b: Box) -> float:
    """How deep two boxes are in one another, m; below 0: apart."""
    vertical = min(a.high - b.low, b.high - a.low)
    return -1.0 if vertical < TOUCH else min(vertical, outlines_overlap(a, b))


class Replay:
    """Goes through a plan's JSON with boxes for the blocks and the fingers, and looks at every way and every grip."""

    def __init__(self, document: Dict[str, Any], human: Sequence[Tuple[int, Box]], hand: Hand) -> None:
        self.hand = hand
        self.human = list(human)
        self.obstacles: List[Box] = []
        self.standing: Dict[str, Box] = {}
        self.placed: List[Box] = []
        for item in document["environment"]:
            q = item["orientation"]
            box = Box(item["name"], *(item["position"][k] for k in "xyz"), 2 * atan2(q["z"], q["w"]),
                      tuple(item["size"][k] for k in "xyz"))  # fmt: skip
            if item["graspable"]:
                self.standing[box.name] = box
            else:
                self.obstacles.append(box)
        self.flange: Optional[Tuple[float, float, float, float]] = None
        self.opening = self.hand.widest
        self.held: Optional[Box] = None
        self.held_in_hand: Tuple[float, float] = (0.0, 0.0)  # height under the flange, yaw
        self.connected = ""
        self.smallest_gap = np.inf
        for box in self.standing.values():
            assert self.supported(box), f"{box.name} hangs in the air as the task begins"
        self.check_no_overlaps()
        for index, step in enumerate(document["task"]):
            self.human_lays(index)
            getattr(self, step["name"], lambda **_: None)(**{k: v for k, v in step.items() if k != "name"})
        self.human_lays(len(document["task"]))
        assert self.held is None

    def human_lays(self, index: int) -> None:
        for at, box in [entry for entry in self.human if entry[0] <= index]:
            self.human.remove((at, box))
            assert self.supported(box), f"the human can't lay {box.name}: nothing is under it"
            self.standing[box.name] = box
        self.check_no_overlaps()

    def check_no_overlaps(self) -> None:
        boxes = [*self.standing.values(), *self.obstacles]
        for i, a in enumerate(boxes):
            for b in boxes[i + 1 :]:
                assert overlap(a, b) < TOUCH, f"{a.name} stands {1000 * overlap(a, b):.1f} mm in {b.name}"

    def under(self, box: Box) -> List[Box]:
        """What it falls on if it is let go: at most a millimetre below it."""
        return [
            other
            for other in [*self.standing.values(), *self.obstacles]
            if other.name != box.name and -TOUCH < box.low - other.high < 0.001 and outlines_overlap(box, other) > 0.001
        ]

    def supported(self, box: Box) -> bool:
        """Whether its middle is over what is under it."""
        below = self.under(box)
        if not below:
            return False
        points = np.vstack([_common(box, other) for other in below])
        # Statically sound if the centre is inside the smallest upright rectangle, along the block, around the contacts.
        c, s = cos(box.yaw), sin(box.yaw)
        local = (points - np.array([box.x, box.y])) @ np.array([[c, -s], [s, c]])
        return bool(np.all(local.min(axis=0) < -0.001) and np.all(local.max(axis=0) > 0.001))

    def fingers(self, flange: Tuple[float, float, float, float]) -> List[Box]:
        x, y, z, yaw = flange
        tip = z - self.hand.tip_reach(self.opening)
        out = self.opening / 2 + self.hand.thickness / 2
        size = (self.hand.thickness, self.hand.breadth, FINGER_LENGTH)
        return [
            Box("finger", x + sign * out * cos(yaw), y + sign * out * sin(yaw), tip + FINGER_LENGTH / 2, yaw, size)
            for sign in (-1, 1)
        ]

    def carried(self, flange: Tuple[float, float, float, float]) -> List[Box]:
        boxes = self.fingers(flange)
        if self.held is not None:
            depth, turn = self.held_in_hand
            boxes.append(replace(self.held, x=flange[0], y=flange[1], z=flange[2] - depth, yaw=flange[3] + turn))
        return boxes

    def check_clear(self, flange: Tuple[float, float, float, float], doing: str) -> None:
        for box in self.carried(flange):
            for other in [*self.standing.values(), *self.obstacles]:
                depth = overlap(box, other)
                assert depth < TOUCH, f"{doing}: {box.name} is {1000 * depth:.1f} mm in {other.name}"
                self.smallest_gap = min(self.smallest_gap, -depth)

    # The primitives, as far as they move things.

    def move(self, position: Dict[str, float], orientation: Dict[str, float], options: Any = None) -> None:
        q = orientation
        assert abs(q["z"]) < 1e-6 and abs(q["w"]) < 1e-6, "the hand does not point down"
        target = (position["x"], position["y"], position["z"], 2 * atan2(q["y"], q["x"]))
        if self.flange is not None:
            way = np.subtract(target, self.flange)
            assert abs(way[3]) < np.pi - 0.1, "which way the hand turns is left to chance"
            for phase in np.linspace(0.0, 1.0, 2 + int(np.linalg.norm(way[:3]) / 0.004)):
                self.check_clear(tuple(self.flange + phase * way), f"moving to {target[:3]}")
        self.flange = target

    def connect_object(self, object_name: str) -> None:
        self.connected = object_name

    def grasp(self, width: float) -> None:
        assert self.flange is not None and self.held is None
        box = self.standing.pop(self.connected)
        assert hypot(box.x - self.flange[0], box.y - self.flange[1]) < 1e-6
        across = min(box.size[0], box.size[1])
        turn = box.yaw - self.flange[3] + (0.0 if box.size[0] <= box.size[1] else np.pi / 2)
        assert abs(sin(turn)) < 1e-6, f"the fingers do not close across {box.name}'s short side"
        assert 0.0 < across - width < 0.01, "the fingers do not press"
        self.opening = across
        self.check_clear(self.flange, f"grasping {box.name}")
        tip = self.flange[2] - self.hand.tip_reach(width)
        assert box.low < tip < box.z, f"the fingertips are not beside the lower half of {box.name}"
        self.held, self.held_in_hand = box, (self.flange[2] - box.z, box.yaw - self.flange[3])

    def release(self, width: float) -> None:
        if self.held is not None and self.flange is not None:
            box = self.carried(self.flange)[-1]
            self.held = None
            assert self.supported(box), f"{box.name} is let go with nothing under its middle"
            box = replace(box, z=max(other.high for other in self.under(box)) + box.size[2] / 2)
            self.standing[box.name] = box
            self.placed.append(box)
            self.opening = width
            self.check_clear(self.flange, f"letting go of {box.name}")
        self.opening = width

    def disconnect_object(self, object_name: str) -> None:
        assert object_name == self.connected


def _common(a: Box, b: Box) -> np.ndarray:
    """Corners (n, 2) of the rectangle that two boxes' footprints share; yaws are multiples of a quarter turn."""
    p, q = a.outline(), b.outline()
    low, high = np.maximum(p.min(axis=0), q.min(axis=0)), np.minimum(p.max(axis=0), q.max(axis=0))
    return np.array([[x, y] for x in (low[0], high[0]) for y in (low[1], high[1])])


def generate(command: str, monkeypatch: pytest.MonkeyPatch) -> PlanBuilder:
    """The builder at the end of a generator's run with these arguments."""
    name, *arguments = command.split()
    loader = SourceFileLoader(f"generate_{name}", str(ROOT / "scripts" / f"generate_{name}"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        loader.exec_module(module)
    done: List[PlanBuilder] = []
    monkeypatch.setattr(HouseTask, "finish", lambda task: done.append(task.plan))
    module.generate(module.parser.parse_args(arguments))
    return done[0]


def script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / f"generate_{name}"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60)


@pytest.mark.parametrize("command", [*VARIANTS, *MICO_VARIANTS])
def test_blocks_rest_fingers_fit_and_ways_are_clear(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = generate(command, monkeypatch)
    human = []
    for at, name in builder.laid_by_human:
        place, size = builder.places[name], builder.sizes[name]
        human.append((at, Box(name, place.x, place.y, place.z + size[2] / 2, place.yaw, size)))
    replay = Replay(json.loads(builder.to_json()), human, builder.hand)
    robot = [item for item in builder.environment if item["graspable"]]
    assert len(replay.placed) == len(robot), "a block is still in the queue"
    for box in replay.placed:
        place = builder.places[box.name]
        assert (box.x, box.y) == pytest.approx((place.x, place.y), abs=1e-6)
        assert box.low == pytest.approx(place.z, abs=1e-5)


@pytest.mark.parametrize(
    ("command", "storeys", "houses"),
    [("pooled", 2, 1), ("sequential", 2, 2), ("reciprocal", 2, 1), ("inspection", 3, 1)],
)
def test_every_house_is_whole(command: str, storeys: int, houses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = generate(command, monkeypatch)
    found = sorted((round(p.x, 4), round(p.y, 4), round(p.z, 4)) for p in builder.places.values())
    expected = sorted(
        (round(x + part.dx, 4), round(y + part.dy, 4), round(-0.03 + part.course * 0.01524, 4))
        for x, y in SITES[:houses]
        for part in house(storeys)
    )
    assert found == expected


@pytest.mark.parametrize(("name", "waits"), [("pooled", 2), ("sequential", 3), ("reciprocal", 8), ("inspection", 4)])
def test_waits_say_what_the_human_does(name: str, waits: int) -> None:
    document = json.loads((ROOT / "plans" / f"{name}.json").read_text(encoding="utf-8"))
    messages = [step["message"] for step in document["task"] if step["name"] == "wait"]
    assert len(messages) == waits
    assert all(len(message) > 20 for message in messages)


@pytest.mark.parametrize("name", NAMES)
def test_the_arm_rests_aside_at_every_wait(name: str) -> None:
    document = json.loads((ROOT / "plans" / f"{name}.json").read_text(encoding="utf-8"))
    position: Dict[str, float] = {}
    for step in document["task"]:
        position = step.get("position", position)
        if step["name"] == "wait":
            assert position["x"] < 0.0 and position["z"] > 0.25


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_plan_is_what_its_generator_writes(name: str) -> None:
    result = script(name, "--output", "-")
    assert result.returncode == 0, result.stderr
    assert result.stdout == (ROOT / "plans" / f"{name}.json").read_bytes().decode("utf-8")


def test_the_full_house_is_long() -> None:
    assert len((ROOT / "plans" / "pooled.json").read_text(encoding="utf-8").splitlines()) > 1500


@pytest.mark.parametrize("robot", ["ur5", "ur3e"])
@pytest.mark.parametrize("command", VARIANTS)
def test_poses_are_within_reach(command: str, robot: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    generate(command, monkeypatch).write(path)
    result = inspect_plan(load_plan(path, REGISTRY), robot)
    assert [str(fault) for fault in [*result.faults, *result.warnings]] == []


@pytest.mark.parametrize("robot", ["ur5", "ur3e"])
def test_every_planner_does_the_sequential_house(robot: str) -> None:
    planners = ["static", "relaxed_ik", "ur"]
    result = inspect_plan(load_plan(ROOT / "plans" / "sequential.json", REGISTRY), robot, planners)
    assert [str(fault) for fault in [*result.faults, *result.warnings]] == []
    for name in planners:
        assert min(path.arm_clearance for path in result.paths[name]) > 0.004
        # A block that is lifted off the table or put down on it touches it, and counts as that much smaller.
        assert min(path.clearance for path in result.paths[name]) == pytest.approx(SINK, abs=1e-6)


@pytest.mark.parametrize("robot", ["mico-2", "mico-3", "mico-robotiq85"])
@pytest.mark.parametrize("name", NAMES)
def test_a_mico_does_its_houses_in_straight_lines(
    name: str, robot: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    generate(f"{name} --robot {robot}", monkeypatch).write(path)
    plan = load_plan(path, REGISTRY)
    assert plan.tool_frame == "tool0"
    result = inspect_plan(plan, robot)
    assert [str(fault) for fault in [*result.faults, *result.warnings]] == []
    row = load_robot(robot)
    workcell = Workcell(plan, row, "tool0")
    router, joints = Router(row, workcell.chain, workcell.obstacles), workcell.tuck
    for planned in plan.steps:
        for _, position, orientation in planned.step.poses():
            (route,) = router.routes(joints, workcell.flange(position, orientation))
            assert route.line is not None, f"{planned.pointer}: {route.reason}"
            joints = route.joints[-1]


@pytest.mark.parametrize("robot", ["mico-2", "mico-3", "mico-robotiq85"])
def test_every_planner_of_a_mico_does_the_sequential_house(
    robot: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    generate(f"sequential --robot {robot}", monkeypatch).write(path)
    result = inspect_plan(load_plan(path, REGISTRY), robot, ["static", "relaxed_ik"])
    assert [str(fault) for fault in [*result.faults, *result.warnings]] == []
    for paths in result.paths.values():
        assert min(path.arm_clearance for path in paths) > 0.002
        assert min(path.clearance for path in paths) > SINK - 1e-4


def test_a_plan_of_one_mico_loads_on_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    generate("sequential --robot mico-2", monkeypatch).write(path)
    assert inspect_plan(load_plan(path, REGISTRY), "mico-3").faults == []


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("sequential", ["--houses", "5", "--allocation", "6:8"], "house 5 has no room"),
        ("sequential", ["--allocation", "7:8"], "a house has 14"),
        ("sequential", ["--allocation", "seven"], "expected robot:human"),
        ("pooled", ["--houses", "3", "--allocation", "3:1"], "--houses says 3"),
        ("pooled", ["--houses", "0"], "whole number from 1"),
        ("reciprocal", ["--allocation", "0:1"], "without a turn"),
        ("inspection", ["--houses", "4"], "the queue holds 32"),
        ("inspection", ["--every", "0"], "whole number from 1"),
        ("inspection", ["--robot", "ur9"], "no robot 'ur9'; there are"),
        ("inspection", ["--robot", "no/such.yaml"], "no file"),
        ("inspection", ["--robot", "mico-2", "--table-height", "-1"], "within the arm's reach"),
        ("inspection", ["--velocity", "nan"], "above 0"),
    ],
)
def test_what_does_not_fit_is_a_usage_error(name: str, arguments: List[str], message: str) -> None:
    result = script(name, *arguments, "--output", "-")
    assert result.returncode == 2
    assert result.stdout == ""
    assert message in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(("name", "arguments"), [("sequential", ["--houses", "1"]), ("pooled", ["--velocity", "0.3"])])
def test_another_plan_does_not_replace_the_shipped_one(name: str, arguments: List[str]) -> None:
    shipped = ROOT / "plans" / f"{name}.json"
    before = shipped.read_bytes()
    result = script(name, *arguments)
    assert result.returncode == 2
    assert f"{arguments[0]} makes another plan" in result.stderr and "--output" in result.stderr
    assert shipped.read_bytes() == before


def test_a_file_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    target = tmp_path / "no such folder" / "plan.json"
    result = script("pooled", "--output", str(target))
    assert result.returncode == 1
    assert str(target) in result.stderr and "Traceback" not in result.stderr


def test_speeds_reach_the_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = generate("reciprocal --velocity 0.2 --approach-velocity 0.05", monkeypatch)
    speeds = {step["options"]["velocity"] for step in builder.task if step["name"] == "move"}
    assert speeds == {0.2, 0.05}


def test_a_figure_is_drawn(tmp_path: Path) -> None:
    figure = tmp_path / "layout.png"
    result = script("sequential", "--output", "-", "--figure", str(figure))
    assert result.returncode == 0, result.stderr
    assert figure.read_bytes()[:4] == b"\x89PNG"
