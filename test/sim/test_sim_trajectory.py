from __future__ import annotations

import math
from typing import Any, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iter_runner.sim import trajectory
from iter_runner.sim.trajectory import Following, Goal, Point, Rejected, Segment, Tolerance, accept

NAMES = ("a", "b")
HERE = (0.5, -0.5)


def take(points: Sequence[Point], names: Sequence[str] = NAMES, **options: Any) -> Following:
    return accept(Goal(names, points, **options), "handle", NAMES, HERE, (0.0, 0.0))


def refusal(points: Sequence[Point], names: Sequence[str] = NAMES, **options: Any) -> Rejected:
    with pytest.raises(Rejected) as caught:
        take(points, names, **options)
    return caught.value


GOOD = [Point(1.0, (1.0, 0.0)), Point(2.0, (1.5, 0.5))]


@pytest.mark.parametrize("names", [("a",), ("a", "c"), ("a", "b", "c"), ("a", "a"), ()])
def test_other_joints_are_refused(names: Sequence[str]) -> None:
    error = refusal(GOOD, names)
    assert error.code == trajectory.INVALID_JOINTS
    assert "a, b expected" in str(error)


@pytest.mark.parametrize(
    ("points", "found"),
    [
        ([], "no points"),
        ([GOOD[1], GOOD[0]], "not strictly increasing"),
        ([GOOD[0], GOOD[0]], "not strictly increasing"),
        ([Point(-1.0, HERE), *GOOD], "not strictly increasing"),
        ([Point(math.nan, HERE)], "not strictly increasing"),
        ([Point(1.0, (1.0,))], "1 position values, 2 expected"),
        ([Point(1.0, HERE, (0.0,))], "1 velocity values"),
        ([Point(1.0, HERE, (0.0, 0.0), (0.0,) * 3)], "3 acceleration values"),
        ([Point(1.0, (math.nan, 0.0))], "nan"),
        ([Point(1.0, HERE, (math.inf, 0.0))], "inf"),
        ([Point(0.0, HERE)], "before the current time"),
    ],
)
def test_a_faulty_trajectory_is_an_invalid_goal(points: Sequence[Point], found: str) -> None:
    error = refusal(points)
    assert error.code == trajectory.INVALID_GOAL
    assert found in str(error)


def test_a_start_too_far_away_is_refused_and_says_which_joint() -> None:
    error = refusal([Point(0.0, (0.5, 0.0)), *GOOD])
    assert error.code == trajectory.INVALID_GOAL
    assert "b is at -0.5000 rad, the first point has 0.0000 rad" in str(error)
    take([Point(0.0, (0.6, -0.5)), *GOOD])  # inside the tolerance
    take([Point(0.0, (0.5, 0.0)), *GOOD], path_tolerance={"b": Tolerance(position=-1.0)})  # no limit


def test_a_trajectory_of_the_past_is_old() -> None:
    assert refusal(GOOD, delay=-3.0).code == trajectory.OLD_HEADER_TIMESTAMP
    assert refusal(GOOD, delay=-2.0).code == trajectory.OLD_HEADER_TIMESTAMP
    assert take(GOOD, delay=-1.5).time == 1.5


def test_what_lies_in_the_future_begins_then() -> None:
    run = take(GOOD, delay=0.5)
    assert not run.advance(0.4)
    assert run.desired == list(HERE)
    run.advance(0.6)
    assert run.desired[0] == pytest.approx(0.75)


def test_joints_come_in_any_order() -> None:
    run = take([Point(1.0, (0.0, 1.0))], ("b", "a"))
    assert run.advance(1.0)
    assert run.desired == [1.0, 0.0]


def test_a_tolerance_of_another_joint_is_refused() -> None:
    assert refusal(GOOD, goal_tolerance={"z": Tolerance(0.1)}).code == trajectory.INVALID_JOINTS


def test_tolerances_default_and_override_as_in_the_message() -> None:
    run = take(GOOD, path_tolerance={"a": Tolerance(0.05), "b": Tolerance(-1.0)})
    assert run.path_tolerance == [0.05, 0.0]
    assert run.goal_tolerance == [trajectory.GOAL_TOLERANCE] * 2
    assert run.goal_velocity == [trajectory.STOPPED_VELOCITY] * 2
    assert run.grace == trajectory.GOAL_TIME


def test_positions_alone_make_straight_lines() -> None:
    run = take(GOOD)
    run.advance(0.5)
    assert run.desired == pytest.approx([0.75, -0.25])
    assert run.desired_velocity == pytest.approx([0.5, 0.5])
    run.advance(1.0)
    assert run.desired == pytest.approx([1.25, 0.25])
    assert run.advance(1.0)
    assert run.desired == [1.5, 0.5]
    assert run.desired_velocity == [0.0, 0.0]


numbers = st.floats(-3, 3)


@given(st.tuples(*[numbers] * 6), st.floats(0.01, 10))
def test_a_quintic_meets_both_ends(ends: Any, duration: float) -> None:
    p0, v0, a0, p1, v1, a1 = ends
    segment = Segment(Point(1.0, (p0,), (v0,), (a0,)), Point(1.0 + duration, (p1,), (v1,), (a1,)))
    for time, position, velocity in ((1.0, p0, v0), (1.0 + duration, p1, v1)):
        q, v = segment.sample(time)
        assert q[0] == pytest.approx(position, abs=1e-7)
        assert v[0] == pytest.approx(velocity, abs=1e-5 + 1e-5 / duration)
    # The acceleration at both ends by differences of the velocity.
    h = duration * 1e-6
    v_start = (segment.sample(1.0 + h)[1][0] - segment.sample(1.0)[1][0]) / h
    v_end = (segment.sample(1.0 + duration)[1][0] - segment.sample(1.0 + duration - h)[1][0]) / h
    scale = 1.0 + 100 * max(map(abs, ends)) * (1 + 1 / duration**2)
    assert v_start == pytest.approx(a0, abs=1e-3 * scale)
    assert v_end == pytest.approx(a1, abs=1e-3 * scale)


@given(st.tuples(*[numbers] * 4), st.floats(0.01, 10))
def test_a_cubic_meets_both_ends(ends: Any, duration: float) -> None:
    p0, v0, p1, v1 = ends
    segment = Segment(Point(0.0, (p0,), (v0,)), Point(duration, (p1,), (v1,)))
    for time, position, velocity in ((0.0, p0, v0), (duration, p1, v1)):
        q, v = segment.sample(time)
        assert q[0] == pytest.approx(position, abs=1e-9)
        assert v[0] == pytest.approx(velocity, abs=1e-6 + 1e-9 / duration)
