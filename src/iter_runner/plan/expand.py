"""Composite steps become the simple ones that they stand for."""

from __future__ import annotations

from typing import Iterable, List, Optional, Tuple

from iter_runner.plan.model import PlannedStep
from iter_runner.plan.step import Rad, Step


def expand(steps: Iterable[Tuple[str, Step]]) -> List[PlannedStep]:
    """The flat list that the runner works through.

    The ``rad`` of a composite step is of the whole: it goes to its first simple step, and theirs count only if the
    composite carries none.

    Args:
        steps: the steps as written, each with its JSON pointer.
    """
    flat: List[PlannedStep] = []
    for pointer, step in steps:
        for simple_pointer, simple in _simple_steps(pointer, step):
            flat.append(PlannedStep(len(flat), simple_pointer, simple))
    return flat


def _simple_steps(pointer: str, step: Step) -> List[Tuple[str, Step]]:
    parts = step.expand()
    if parts is None:
        return [(pointer, step)]
    simple: List[Tuple[str, Step]] = []
    for suffix, part in parts:
        simple.extend(_simple_steps(pointer + suffix, part))
    if step.rad is not None:
        rad: Optional[Rad] = step.rad
        for index, (part_pointer, part) in enumerate(simple):
            simple[index] = (part_pointer, part.model_copy(update={"rad": rad}))
            rad = None
    return simple
