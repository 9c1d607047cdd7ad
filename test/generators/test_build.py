"""The builder that generator scripts import."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from math import cos, pi, sin
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iter_runner.kinematics.rotations import quaternion_to_matrix
from iter_runner.plan.build import Hand, LayoutError, Place, PlanBuilder, Triple
from iter_runner.plan.load import load_plan
from iter_runner.primitives import REGISTRY

ROOT = Path(__file__).resolve().parents[2]
SIZE = (0.02, 0.1, 0.015)
number = st.floats(-2.0, 2.0)


def places(count: int = 2) -> PlanBuilder:
    plan = PlanBuilder("test")
    for index, place in enumerate(Place(-0.2, 0.25, 0.0, pi / 2).row(count, dx=0.05)):
        plan.block(f"block {index}", SIZE, place)
    return plan


@settings(deadline=None)
@given(number, number, number, number, number, number, number, number)
def test_places_compose_as_frames(
    x: float, y: float, yaw: float, a: float, b: float, c: float, d: float, t: float
) -> None:
    first = Place(x, y, 0.1, yaw)
    at_once = first.at(a + cos(t) * c - sin(t) * d, b + sin(t) * c + cos(t) * d, 0.3, t)
    step_by_step = first.at(a, b, 0.1, t).at(c, d, 0.2)
    assert np.allclose([at_once.x, at_once.y, at_once.z], [step_by_step.x, step_by_step.y, step_by_step.z], atol=1e-12)
    assert step_by_step.yaw == pytest.approx(yaw + t)


def test_grids_rows_and_stacks_follow_the_frame() -> None:
    turned = Place(1.0, 2.0, 0.0, pi / 2)
    assert [(round(p.x, 9), round(p.y, 9)) for p in turned.grid(2, 2, dx=0.1, dy=0.2)] == [
        (1.0, 2.0), (0.8, 2.0), (1.0, 2.1), (0.8, 2.1),
    ]  # fmt: skip
    assert [p.z for p in turned.stack(3, 0.5)] == [0.0, 0.5, 1.0]
    assert round(turned.row(2, dy=0.3)[1].x, 9) == 0.7


@pytest.mark.parametrize("yaw", [0.0, 0.3, pi / 2, -1.2, 3.0])
def test_the_hand_points_down_and_closes_along_its_yaw(yaw: float) -> None:
    plan = PlanBuilder("test")
    plan.move(0.1, 0.2, 0.3, yaw)
    quaternion = [plan.task[0]["orientation"][key] for key in "xyzw"]
    rotation = quaternion_to_matrix(np.array(quaternion))
    assert np.allclose(rotation[:, 2], [0.0, 0.0, -1.0], atol=1e-5)
    assert np.allclose(rotation[:, 0], [cos(yaw), sin(yaw), 0.0], atol=1e-5)


@pytest.mark.parametrize(("size", "turn"), [((0.02, 0.1, 0.015), 0.0), ((0.1, 0.02, 0.015), pi / 2)])
def test_fingers_close_across_the_short_side(size: Triple, turn: float) -> None:
    plan = PlanBuilder("test")
    block = plan.block("block", size, Place(0.2, 0.3, 0.0, 0.4))
    plan.pick(block)
    orientation = plan.task[0]["orientation"]
    assert 2 * np.arctan2(orientation["y"], orientation["x"]) == pytest.approx(0.4 + turn, abs=1e-5)
    assert [step["width"] for step in plan.task if step["name"] == "grasp"] == [0.018]


def test_fingertips_reach_further_as_the_fingers_close() -> None:
    hand = Hand()
    assert hand.tip_reach(0.085) == pytest.approx(0.1675)
    reaches = [hand.tip_reach(opening) for opening in np.linspace(0.085, 0.02, 20)]
    assert reaches == sorted(reaches)
    assert 0.010 < reaches[-1] - reaches[0] < 0.015


def test_a_block_travels_over_what_stands_in_between() -> None:
    plan = places(1)
    for place in Place(0.0, 0.25, 0.0).stack(6, SIZE[2]):
        plan.human_places(f"wall {place.z:.3f}", SIZE, place)
    plan.pick_and_place(plan_block(plan), Place(0.2, 0.25, 0.0))
    moves = [step["position"] for step in plan.task if step["name"] == "move"]
    lifted, above = moves[2], moves[3]
    underside = (lifted["z"] + above["z"]) / 2 - plan.hand.tip_reach(0.018)
    assert underside >= 6 * SIZE[2] + plan.clearance - 0.001
    low = places(1)
    low.pick_and_place(plan_block(low), Place(0.2, 0.25, 0.0))
    assert [step["position"] for step in low.task if step["name"] == "move"][2]["z"] < lifted["z"] - 0.05


def plan_block(plan: PlanBuilder, name: str = "block 0"):  # type: ignore[no-untyped-def]
    from iter_runner.plan.build import Block

    return Block(name, SIZE)


def test_what_can_not_be_done_names_the_block() -> None:
    plan = places()
    first, second = plan_block(plan), plan_block(plan, "block 1")
    with pytest.raises(LayoutError, match="two objects named 'block 0'"):
        plan.block("block 0", SIZE, Place(0.0, 0.0, 0.0))
    with pytest.raises(LayoutError, match="'wide' is 40 mm wide, expected less than the fingers' opening of 30 mm"):
        plan.block("wide", (0.04, 0.1, 0.015), Place(0.0, 0.0, 0.0))
    with pytest.raises(LayoutError, match="'block 0' can't be placed: the hand is empty"):
        plan.place(first, Place(0.2, 0.3, 0.0))
    plan.pick(first)
    with pytest.raises(LayoutError, match="the hand holds 'block 0', place it first"):
        plan.pick(second)
    with pytest.raises(LayoutError, match="'block 1' can't be placed: the hand holds 'block 0'"):
        plan.place(second, Place(0.2, 0.3, 0.0))
    with pytest.raises(LayoutError, match="'block 7' can't be picked"):
        plan.place(first, Place(0.2, 0.3, 0.0))
        plan.pick(plan_block(plan, "block 7"))


def test_numbers_are_written_to_six_decimals_without_minus_zero() -> None:
    plan = places()
    plan.pick_and_place(plan_block(plan), Place(0.1 + 0.2, 1 / 3, -1e-9))
    text = plan.to_json()
    assert text.endswith("}\n") and "-0.0," not in text
    assert max(len(digits) for digits in re.findall(r"\.(\d+)", text)) <= 6
    assert text == plan.to_json()


def test_every_step_of_the_builder_loads(tmp_path: Path) -> None:
    plan = places()
    plan.obstacle("table", (0.0, 0.3, -0.01), (1.0, 0.5, 0.02))
    plan.move(0.0, 0.3, 0.4, options={"velocity": 0.1, "motion_type": "movel"})
    plan.pick_and_place(plan_block(plan), Place(0.2, 0.3, 0.0))
    plan.log("Grüße")
    plan.wait(0.5)
    plan.wait_for_button("Press", timeout=3)
    plan.prompt("Ready?")
    plan.step("get_pose")
    path = tmp_path / "plan.json"
    plan.write(path)
    loaded = load_plan(path, REGISTRY)
    assert [planned.step.name for planned in loaded.steps] == [step["name"] for step in plan.task]
    assert [item.graspable for item in loaded.objects] == [True, True, False]
    assert not loaded.warnings
    assert json.loads(path.read_text(encoding="utf-8")) == plan.document()


def test_the_example_in_the_guide_runs(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "generators.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", guide, re.DOTALL)
    assert example is not None
    result = subprocess.run(
        [sys.executable, "-c", example.group(1)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    loaded = load_plan(tmp_path / "tower.json", REGISTRY)
    assert len([planned for planned in loaded.steps if planned.step.name == "wait"]) == 3
