"""The whole simulated cell in one object that is stepped: controller, hand, world and the faults to come. No ROS."""

from __future__ import annotations

from typing import Generic, List, Sequence, Tuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from iter_runner.sim.arm_controller import ArmController
from iter_runner.sim.controller import ArmModel, Controller
from iter_runner.sim.faults import KINDS, Fault, due
from iter_runner.sim.hand import Hand, HandModel
from iter_runner.sim.urscript import CompileError, compile_script, servo_target
from iter_runner.sim.world import World

Matrix = NDArray[np.float64]

STOP_DELAY = 0.1
"""s from the beginning of a motion to the stop that a fault gives it: in the midst of it."""


ControllerT = TypeVar("ControllerT", bound=ArmController)


class Cell(Generic[ControllerT]):
    """See the module.

    Args:
        controller: the arm's.
        hand_model: the gripper's range.
        tip_offset: m, from the flange to the fingertips.
        faults: what is to go wrong.
    """

    def __init__(
        self, controller: ControllerT, hand_model: HandModel, tip_offset: float, faults: Sequence[Fault] = ()
    ) -> None:
        self.controller = controller
        controller.before_motion = self._motion_begins
        controller.stops_short = self._trajectory_begins
        self.world = World(tip_offset)
        self.hand = Hand(
            hand_model,
            controller.cycle,
            width_between=lambda: self.world.width_between(self.flange()),
            closed_on=lambda: self.world.grasp(self.flange()),
            opened=lambda: self.world.release(self.flange()),
        )
        self.dead = False
        """The driver is to exit, without a goodbye."""
        self._faults: List[Fault] = []
        self._timed: List[Fault] = []
        self._stop_at = -1
        self._stop_name = ""
        self._short: List[Tuple[float, float]] = []
        self._stale_from = -1.0
        self._stale_until = -1.0
        for fault in faults:
            first = fault.at is None and KINDS[fault.name].counted
            self.inject(fault._replace(at=1) if first else fault)

    @property
    def stale(self) -> bool:
        """Joint states are not to be published."""
        return self._stale_from <= self.controller.time < self._stale_until

    def flange(self) -> Matrix:
        """(4, 4) pose of the row's tool frame in its base frame, m."""
        controller = self.controller
        if controller.model.flange is None:
            return np.eye(4)
        return controller.model.flange(controller.q)

    def step(self) -> None:
        """One cycle of the controller."""
        controller = self.controller
        controller.step()
        if self.hand.moving:
            self.hand.step()
        if self._timed:
            ripe, self._timed = due(self._timed, controller.time)
            for fault in ripe:
                self._happen(fault)
        if 0 <= self._stop_at <= controller.cycles:
            self._stop()

    def inject(self, fault: Fault) -> None:
        """Makes something go wrong: at its moment, or now where it names none.

        Of a gripper, and of trajectories, now is the next command.
        """
        if fault.name == "gripper_stuck":
            self.hand.stuck_at = self.hand.commands + 1 if fault.at is None else int(fault.at)
        elif fault.name == "short_trajectory":
            first = self.controller.trajectories + 1 if fault.at is None else fault.at
            self._short.append((first, first + fault.duration))
        elif not KINDS[fault.name].counted:
            self._timed.append(fault)
        elif fault.at is None:
            self._stop_at, self._stop_name = self.controller.cycles, fault.name
        else:
            self._faults.append(fault)

    def _motion_begins(self, count: int) -> None:
        for fault in self._faults:
            if fault.at == count:
                self._stop_at = self.controller.cycles + round(STOP_DELAY / self.controller.cycle)
                self._stop_name = fault.name

    def _trajectory_begins(self, count: int) -> bool:
        return any(first <= count < after for first, after in self._short)

    def _stop(self) -> None:
        self._stop_at = -1
        if self._stop_name == "emergency_stop":
            self.controller.emergency_stop()
        else:
            self.controller.protective_stop("injected fault")

    def _happen(self, fault: Fault) -> None:
        now = self.controller.time
        if fault.name == "stale_joint_states":
            self._stale_from, self._stale_until = now, now + fault.duration
        elif fault.name == "driver_dies":
            self.dead = True


class Workcell(Cell[Controller]):
    """A cell with a UR.

    Args:
        model: the arm.
        hand_model, tip_offset, faults: see :class:`Cell`.
        start: (n,) rad at power-on.
        unlock_delay: s before a protective stop can be unlocked; real controllers want 5.
    """

    def __init__(
        self,
        model: ArmModel,
        hand_model: HandModel,
        tip_offset: float,
        start: Sequence[float],
        faults: Sequence[Fault] = (),
        unlock_delay: float = 0.0,
    ) -> None:
        super().__init__(Controller(model, start, unlock_delay), hand_model, tip_offset, faults)

    def run_script(self, text: str, patience: float = 0.0) -> float:
        """Runs a program as the script socket would.

        Args:
            text: URScript.
            patience: s for which a plain ``servoj`` holds on to its target after its own time, so that one that comes
                a little late finds the arm on its way and not braking.

        Returns:
            For a plain ``servoj`` the s that it lasts, else 0.

        Raises:
            CompileError: the controller refuses it; what ran goes on.
        """
        controller = self.controller
        target = servo_target(text)
        if target is not None:
            program = controller.servoj(target.joints, target.time + patience, target.lookahead, target.gain)
            return max(target.time, controller.cycle) if controller.start_program(program) else 0.0
        script = compile_script(text)
        if script.secondary:
            controller.start_secondary(script.run(controller))
        else:
            controller.start_program(script.run(controller))
        return 0.0


__all__ = ["Cell", "CompileError", "Workcell"]
