from __future__ import annotations

import math
from typing import List, Optional

import numpy as np
import pytest
from cells import HAND, TIP, TUCK, run_for, run_program

from iter_runner.kinematics.rotations import rpy_to_matrix
from iter_runner.sim.hand import Hand
from iter_runner.sim.workcell import Workcell
from iter_runner.sim.world import Body, World

CYCLE = 0.008
DOWN = np.diag([1.0, -1.0, -1.0, 1.0])  # a flange that looks down, its x along the world's


def flange_at(x: float, y: float, z: float, yaw: float = 0.0) -> np.ndarray:
    """The flange with its fingertips at a point, looking down."""
    pose = np.eye(4)
    pose[:3, :3] = rpy_to_matrix([0, 0, yaw]) @ DOWN[:3, :3]
    pose[:3, 3] = [x, y, z + TIP]
    return pose


def block(name: str = "block", x: float = 0.3, y: float = 0.2, z: float = 0.02, **options: object) -> Body:
    pose = np.eye(4)
    pose[:3, 3] = [x, y, z]
    given = {"size": (0.05, 0.03, 0.04), "graspable": True, **options}
    return Body(name, pose, **given)  # type: ignore[arg-type]


def run(hand: Hand, longest: float = 5.0) -> float:
    cycles = 0
    while hand.moving:
        hand.step()
        cycles += 1
        assert cycles * CYCLE < longest
    return cycles * CYCLE


# The fingers alone.


def test_fingers_take_their_time_and_arrive() -> None:
    hand = Hand(HAND, CYCLE)
    hand.command(0.8, 50.0, "h")
    assert run(hand) == pytest.approx(0.08 / HAND.speed, abs=0.01)
    (result,) = hand.results
    assert result.handle == "h"
    assert result.position == 0.8
    assert (result.stalled, result.reached_goal, result.failed) == (False, True, False)
    assert hand.opening == pytest.approx(0.005)


def test_commands_are_clipped_to_the_range() -> None:
    hand = Hand(HAND, CYCLE)
    hand.command(5.0, 50.0, "h")
    run(hand)
    assert hand.position == 0.8
    hand.command(-5.0, 50.0, "h")
    run(hand)
    assert hand.position == 0.0


def test_a_command_to_where_the_fingers_are_ends_at_once() -> None:
    hand = Hand(HAND, CYCLE)
    hand.command(0.0, 50.0, "h")
    assert run(hand) == CYCLE
    assert hand.results[0].reached_goal


def test_a_new_command_takes_the_place_of_the_old_and_cancel_stops() -> None:
    hand = Hand(HAND, CYCLE)
    assert hand.command(0.8, 50.0, "first") is None
    for _ in range(20):
        hand.step()
    assert hand.command(0.0, 50.0, "second") == "first"
    for _ in range(5):
        hand.step()
    assert not hand.cancel("first")
    at = hand.position
    assert hand.cancel("second")
    hand.step()
    assert hand.position == at
    assert hand.results == []


def test_positions_and_openings_agree() -> None:
    for position in (0.0, 0.3, 0.8):
        assert HAND.position_of(HAND.opening_of(position)) == pytest.approx(position)
    assert HAND.opening_of(0.8) == pytest.approx(0.085 - 0.8 / 10)


# Fingers that somebody else drives.


class Between:
    """Records when the hand takes what lies between its fingers, and when it lets go."""

    def __init__(self, width: Optional[float]) -> None:
        self.calls: List[str] = []
        self.hand = Hand(
            HAND, CYCLE, lambda: width, lambda: self.calls.append("closed"), lambda: self.calls.append("opened")
        )

    def follow(self, *openings: float) -> List[str]:
        for opening in openings:
            self.hand.follow(HAND.position_of(opening))
        calls, self.calls = self.calls, []
        return calls


def test_followed_fingers_take_a_thing_when_they_come_to_its_width() -> None:
    fingers = Between(0.04)
    assert fingers.follow(0.085, 0.06, 0.05) == []
    assert fingers.follow(0.0401) == ["closed"]
    assert fingers.follow(0.04, 0.04, 0.04) == []
    assert fingers.hand.opening == pytest.approx(0.04)
    assert fingers.follow(0.05, 0.085)[0] == "opened"


def test_followed_fingers_take_a_narrower_thing_when_they_stop() -> None:
    fingers = Between(0.01)  # a token size, as original plans have them
    assert fingers.follow(0.085, 0.06, 0.03) == []
    assert fingers.follow(0.03) == ["closed"]


def test_followed_fingers_that_do_not_move_take_nothing() -> None:
    assert Between(0.04).follow(0.085, 0.085, 0.08499, 0.085) == []


def test_followed_fingers_close_on_nothing_and_open_again() -> None:
    fingers = Between(None)
    assert fingers.follow(0.085, 0.05, 0.005) == []
    assert fingers.follow(0.005) == ["closed"]
    assert fingers.follow(0.05) == ["opened"]


# What lies between them.


@pytest.mark.parametrize(("yaw", "width"), [(0.0, 0.05), (math.pi / 2, 0.03), (math.pi, 0.05)])
def test_the_width_is_measured_across_the_fingers(yaw: float, width: float) -> None:
    world = World(TIP)
    world.replace([block()])
    assert world.width_between(flange_at(0.3, 0.2, 0.02, yaw)) == pytest.approx(width)


def test_only_a_graspable_body_near_the_fingertips_counts() -> None:
    world = World(TIP)
    world.replace([block("table", graspable=False, size=(2, 2, 0.1), z=-0.05), block(), block("far", x=0.5)])
    found = world.between_fingers(flange_at(0.3, 0.2, 0.02))
    assert found is not None
    assert found.name == "block"
    assert world.between_fingers(flange_at(0.4, 0.2, 0.02)) is None
    near = world.between_fingers(flange_at(0.3, 0.2 + 0.015 + 0.019, 0.02))  # inside the 2 cm around it
    assert near is not None


def test_the_nearest_of_two_neighbours_is_taken() -> None:
    world = World(TIP)
    world.replace([block("left", y=0.185), block("right", y=0.215)])
    found = world.between_fingers(flange_at(0.3, 0.21, 0.02))
    assert found is not None
    assert found.name == "right"


def test_a_held_body_goes_with_the_hand_and_stays_where_it_is_let_go() -> None:
    world = World(TIP)
    world.replace([block()])
    before = flange_at(0.3, 0.2, 0.02)
    assert world.grasp(before) == "block"
    after = flange_at(0.1, -0.3, 0.2, math.pi / 2)
    world.carry(after)
    assert world.bodies["block"].pose[:3, 3] == pytest.approx([0.1, -0.3, 0.2])
    assert world.bodies["block"].pose[:3, :3] == pytest.approx(rpy_to_matrix([0, 0, math.pi / 2]), abs=1e-12)
    assert world.release(after) == "block"
    world.carry(before)
    assert world.bodies["block"].pose[:3, 3] == pytest.approx([0.1, -0.3, 0.2])
    assert world.release(after) is None


def test_changes_are_counted_only_where_something_changed() -> None:
    world = World(TIP)
    world.replace([block()])
    flange = flange_at(0.3, 0.2, 0.02)
    world.grasp(flange)
    count = world.changes
    moved_flange = flange_at(0.3, 0.2, 0.1)
    world.carry(moved_flange)
    assert world.changes == count + 1
    world.carry(moved_flange)
    assert world.changes == count + 1


def test_a_new_scene_replaces_everything() -> None:
    world = World(TIP)
    world.replace([block()])
    world.grasp(flange_at(0.3, 0.2, 0.02))
    world.replace([block("other")])
    assert world.held is None
    assert [body.name for body in world.listing()] == ["other"]


def test_a_scene_that_has_the_held_body_in_the_hand_leaves_it_there() -> None:
    world = World(TIP)
    world.replace([block()])
    world.grasp(flange_at(0.3, 0.2, 0.02))
    lifted = flange_at(0.3, 0.2, 0.3)
    world.replace([block(z=0.3), block("other")], lifted)
    assert world.held == "block"
    world.replace([block(z=0.02), block("other")], lifted)
    assert world.held is None


# Arm, hand and world together.


def put_block_in_hand(cell: Workcell, **options: object) -> Body:
    tip = (cell.flange() @ np.array([0, 0, TIP, 1.0]))[:3]
    body = block(x=tip[0], y=tip[1], z=tip[2], **options)
    body.pose[:3, :3] = cell.flange()[:3, :3]
    cell.world.replace([body])
    return body


def test_the_fingers_stall_on_a_block_and_carry_it(cell: Workcell) -> None:
    body = put_block_in_hand(cell)
    cell.hand.command(HAND.position_of(0.02), 50.0, "grasp")
    run_for(cell, 1.0)
    (result,) = cell.hand.results
    assert (result.stalled, result.reached_goal) == (True, False)
    assert cell.hand.opening == pytest.approx(0.05)
    assert result.effort == 50.0
    assert cell.world.held == "block"
    before = body.pose.copy()
    run_program(cell, "movel(pose_trans(get_actual_tcp_pose(), p[0, 0, -0.1, 0, 0, 0]))")
    cell.hand.command(0.0, 50.0, "release")
    run_for(cell, 1.0)
    assert cell.world.held is None
    lifted = cell.world.bodies["block"].pose
    assert lifted[:3, 3] - before[:3, 3] == pytest.approx(-0.1 * before[:3, 2], abs=1e-6)
    at = lifted.copy()
    run_program(cell, f"movej({TUCK})")
    assert cell.world.bodies["block"].pose == pytest.approx(at)


def test_a_block_narrower_than_the_command_is_held_without_a_stall(cell: Workcell) -> None:
    put_block_in_hand(cell, size=(0.01, 0.01, 0.01))  # a token size, as original plans have them
    cell.hand.command(HAND.position_of(0.026), 50.0, "grasp")
    run_for(cell, 1.0)
    assert cell.hand.results[0].reached_goal
    assert cell.world.held == "block"


def test_closing_on_nothing_holds_nothing(cell: Workcell) -> None:
    cell.hand.command(0.8, 50.0, "grasp")
    run_for(cell, 1.5)
    assert cell.hand.results[0].reached_goal
    assert cell.world.held is None


def test_a_scene_that_says_what_changed_leaves_the_rest_where_it_is() -> None:
    world = World(tip_offset=0.1)
    at = np.eye(4)
    far = np.eye(4)
    far[0, 3] = 0.5
    world.replace([Body("block", at, (0.04, 0.04, 0.04), True), Body("other", far, (0.04, 0.04, 0.04), True)])
    flange = np.diag([1.0, -1.0, -1.0, 1.0])
    flange[2, 3] = 0.1
    assert world.grasp(flange) == "block"
    lifted = flange.copy()
    lifted[2, 3] = 0.3
    world.carry(lifted)
    said = [Body("block", at, (0.04, 0.04, 0.04), True), Body("other", at, (0.04, 0.04, 0.04), True)]
    world.update([*said, Body("crate", far, (0.1, 0.1, 0.1), False)], ["crate"])
    assert world.held == "block"
    assert world.bodies["block"].pose[2, 3] == pytest.approx(0.2)
    assert world.bodies["other"].pose[0, 3] == 0.5
    assert "crate" in world.bodies
    world.update(said[1:], ["crate", "block", "other"])
    assert world.held is None
    assert list(world.bodies) == ["other"]
    assert world.bodies["other"].pose[0, 3] == 0.0
