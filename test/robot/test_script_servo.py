from __future__ import annotations

import re
from typing import List

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iter_runner.robot.script_servo import ScriptServo
from iter_runner.robot.urscript import STOP, script_number


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e3, max_value=1e3))
def test_numbers_read_back_exactly_and_have_no_exponent(value: float) -> None:
    text = script_number(value)
    assert float(text) == value
    assert re.fullmatch(r"-?\d+\.\d+", text)


@pytest.fixture
def sent() -> List[str]:
    return []


def test_a_target_is_one_servoj(sent: List[str]) -> None:
    servo = ScriptServo(sent.append, 0.1, 300)
    servo.start()
    servo.send(np.array([0.0, -1.5, 0.25, 1e-7, 0.0, 3.0]), 0.008)
    assert sent == ["servoj([0.0, -1.5, 0.25, 0.0000001, 0.0, 3.0], 0, 0, 0.008, 0.1, 300.0)"]


def test_the_stream_is_stopped_once_and_only_where_it_ran(sent: List[str]) -> None:
    servo = ScriptServo(sent.append, 0.1, 300)
    servo.start()
    servo.stop()
    assert sent == []
    servo.send(np.zeros(6), 0.008)
    servo.pause()
    servo.resume()
    servo.stop()
    assert sent[1:] == [STOP]
