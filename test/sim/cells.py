"""What the simulator's tests share."""

from __future__ import annotations

from typing import List, Sequence

from iter_runner.sim.controller import Controller
from iter_runner.sim.hand import HandModel
from iter_runner.sim.workcell import Workcell

HAND = HandModel(position_open=0.0, position_closed=0.8, opening_open=0.085, opening_closed=0.005)
TIP = 0.1675  # m, flange to fingertips
TUCK = [-1.2536, -1.2086, -2.0718, -1.4319, 1.5708, -1.2536]


def run_program(cell: Workcell, text: str, longest: float = 60.0) -> float:
    """Runs a program to its end; the simulated s that it took."""
    begun = cell.controller.time
    cell.run_script(text)
    while cell.controller.program is not None:
        cell.step()
        assert cell.controller.time - begun < longest, "the program does not end"
    return cell.controller.time - begun


def run_for(cell: Workcell, seconds: float) -> None:
    for _ in range(round(seconds / cell.controller.cycle)):
        cell.step()


def kinds(controller: Controller) -> List[str]:
    return [happening.kind for happening in controller.happenings]


def logged(controller: Controller) -> str:
    return "\n".join(happening.value[1] for happening in controller.happenings if happening.kind == "log")


def moved(start: Sequence[float], *offsets: float) -> List[float]:
    """``start`` with the first joints offset."""
    return [value + offset for value, offset in zip(start, [*offsets, *[0.0] * (len(start) - len(offsets))])]
