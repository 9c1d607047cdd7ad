"""Drives one gripper: watches it, moves it, and is careful about when it may move.

One thread (:meth:`GripperDriver.run`) talks to the gripper; everything else may be called from any thread. Times are
CLOCK_MONOTONIC also in simulations: a cable knows no simulated time.

The fingers move as the gripper activates, so nothing activates it but a person's word: after the line was lost, or the
gripper's power, motions are refused until :meth:`GripperDriver.activate` is called.
"""

from __future__ import annotations

import enum
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Callable, List, Optional, Tuple

from iter_runner.gripper.client import GripperClient, LinkError
from iter_runner.gripper.registers import (
    COUNT_LIMIT,
    FIRST_MAJOR_FAULT,
    NO_COMMUNICATION,
    OVER_TEMPERATURE,
    Activation,
    Command,
    FingerScale,
    Obstruction,
    Status,
    describe_fault,
    speed_count,
    speed_of,
)

RETRY = 0.5
"""Seconds between attempts to reach a gripper that is not there."""
PATIENCE = 2.0
"""Seconds for which an operator's word waits for a gripper that is just being plugged in."""
RESET_TIME = 3.0
"""Seconds within which a gripper forgets its activation when told to."""
ACTIVATION_TIME = 15.0
"""Seconds within which an activation ends."""
GRACE = 0.5
"""Seconds that a fault from before the activation may still be shown after its start."""
MARGIN = 2.0
"""Seconds beyond its way at the speed asked for that a motion may take."""
SETTLE = 0.2
"""Seconds for which a state may still be of the command before, where the gripper's driver echoes no command."""


class Outcome(enum.Enum):
    """How a motion ended."""

    ARRIVED = "arrived"
    STALLED = "stalled"
    STOPPED = "stopped"
    REPLACED = "replaced"
    FAILED = "failed"


class Motion:
    """A command to the fingers, until it has ended.

    Attributes:
        target, force, speed: counts.
        outcome: None while it is under way.
        text: why it ended, for a person; empty where it went as asked.
        status: the gripper's state as it ended; None where it was not known.
    """

    def __init__(self, target: int, force: int, speed: int, on_end: Callable[[Motion], None]) -> None:
        self.target = target
        self.force = force
        self.speed = speed
        self.outcome: Optional[Outcome] = None
        self.text = ""
        self.status: Optional[Status] = None
        self.began = 0.0
        self.deadline = 0.0
        self._on_end = on_end

    def end(self, outcome: Outcome, status: Optional[Status], text: str = "") -> None:
        """Ends it and tells who wants to know; the first end counts."""
        if self.outcome is None:
            self.outcome, self.status, self.text = outcome, status, text
            self._on_end(self)


@dataclass(frozen=True)
class Health:
    """How the gripper is.

    Attributes:
        place: the port.
        connected: whether it answers.
        ready: whether it takes motions.
        refusal: why not, and what to do; empty where it does.
        status: its last state; None while not connected.
        errors: answers that were missing or wrong so far.
    """

    place: str
    connected: bool
    ready: bool
    refusal: str
    status: Optional[Status]
    errors: int


class _Phase(enum.Enum):
    """Of an activation."""

    NONE = 0
    RESETTING = 1
    ACTIVATING = 2


class GripperDriver:
    """See the module.

    Args:
        client: the line to the gripper.
        scale: counts of its position beside metres.
        rate: Hz, how often it is asked for its state, at most.
        speed: m/s of opening, where a motion names none.
        activate_on_start: activates the gripper if it answers the first time that it is asked, and needs it.
        how_to_activate: what the operator calls to agree, for messages.
        on_status: called with each state.
        on_change: called when :meth:`health` says something else than before about motions.
        say, warn: told what happens.
    """

    def __init__(
        self,
        client: GripperClient,
        scale: FingerScale,
        rate: float = 50.0,
        speed: float = 0.1,
        activate_on_start: bool = False,
        how_to_activate: str = "call activate",
        on_status: Callable[[Status], None] = lambda status: None,
        on_change: Callable[[], None] = lambda: None,
        say: Callable[[str], None] = print,
        warn: Callable[[str], None] = print,
    ) -> None:
        self._client = client
        self._scale = scale
        self._period = 1.0 / rate
        self._speed = speed_count(speed)
        self._activate_on_start = activate_on_start
        self._how_to_activate = f"keep hands clear of the fingers, which move as it activates, then {how_to_activate}"
        self._on_status = on_status
        self._on_change = on_change
        self._say = say
        self._warn = warn
        self._changed = threading.Condition()
        self._closed = False
        self._status: Optional[Status] = None
        self._refusal = f"{client.place} is not open yet"
        self._trusted = False
        """Whether the gripper may move: it was found active, or activated with the operator's word, and is so still."""
        self._next: Optional[Motion] = None
        self._motion: Optional[Motion] = None
        self._stop = False
        self._release: Optional[bool] = None
        self._waiting: List[Future[Tuple[bool, str]]] = []
        self._phase = _Phase.NONE
        self._phase_began = 0.0
        self._fault = 0
        self._was_lost = False
        """Whether the line was lost since the operator agreed last."""

    # ---- for everybody ----

    def health(self) -> Health:
        """How the gripper is."""
        with self._changed:
            return Health(
                place=self._client.place,
                connected=self._status is not None,
                ready=not self._refusal,
                refusal=self._refusal,
                status=self._status,
                errors=self._client.errors,
            )

    def move(self, target: int, force: int, on_end: Callable[[Motion], None], speed: Optional[float] = None) -> Motion:
        """Sends the fingers to a count, in place of whatever they do; returns at once.

        Args:
            target, force: counts, 0 to 255.
            on_end: called once, from another thread or before this returns.
            speed: m/s of opening; the driver's own where None.
        """
        motion = Motion(target, force, self._speed if speed is None else speed_count(speed), on_end)
        with self._changed:
            refusal, status = self._refusal, self._status
            replaced = None
            if not refusal:
                replaced, self._next = self._next, motion
                self._changed.notify_all()
        if refusal:
            motion.end(Outcome.FAILED, status, refusal)
        if replaced is not None:
            replaced.end(Outcome.REPLACED, status, "another command took its place")
        return motion

    def stop(self, motion: Optional[Motion] = None) -> None:
        """Stops the fingers; with a motion only if it is that which moves them. The motion ends when they are told."""
        with self._changed:
            waiting = self._next if motion is None or motion is self._next else None
            if waiting is not None:
                self._next = None
            if motion is None or motion is self._motion:
                self._stop = True
            status = self._status
            self._changed.notify_all()
        if waiting is not None:
            waiting.end(Outcome.STOPPED, status)

    def release(self, opening: bool) -> None:
        """The gripper's own automatic release: lets go slowly whatever it does, and then needs to be activated.

        Args:
            opening: opens the fingers; closes them otherwise.
        """
        with self._changed:
            self._release = opening
            self._changed.notify_all()

    def activate(self) -> Tuple[bool, str]:
        """The operator agrees that the fingers move: activates the gripper where it needs that, and waits for its end.

        Returns:
            Whether motions are obeyed now, and what happened, for a person.
        """
        done: Future[Tuple[bool, str]] = Future()
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._status is not None, PATIENCE)
            if self._closed or self._status is None:
                return False, self._refusal
            self._waiting.append(done)
            self._changed.notify_all()
        return done.result()

    def close(self) -> None:
        """Ends :meth:`run`; fingers that move stop first."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # ---- the one thread that talks to the gripper ----

    def run(self) -> None:
        """Serves until :meth:`close`."""
        try:
            self._run()
        finally:
            self._client.close()
            self._give_up("the gripper's node has ended")

    def _run(self) -> None:
        first = True
        reason = ""
        while not self._closed:
            try:
                self._client.connect()
                status = self._client.status()
            except LinkError as error:
                reason = self._not_connected(str(error), reason)
                first = False
                continue
            reason = ""
            was_first, first = first, False
            try:
                self._connected(status, was_first)
                self._serve()
            except LinkError as error:
                self._lost(str(error))
                reason = str(error)
            self._client.close()

    def _not_connected(self, reason: str, before: str) -> str:
        """Waits a while; returns what was said last about the port."""
        if reason != before:
            self._warn(f"{reason}; trying again every {RETRY:g} s")
        with self._changed:
            if not self._was_lost:  # what was said then says more
                self._refuse(reason)
            self._changed.wait_for(lambda: self._closed, RETRY)
        return reason

    def _connected(self, status: Status, first: bool) -> None:
        self._say(f"connected to the gripper on {self._client.place}")
        if self._was_lost and status.ready and status.going and status.obstruction is Obstruction.MOVING:
            self._client.send(Command(activate=True, position=status.position))  # who plugged it in has hands there
        with self._changed:
            self._status = status
            # One that was lost is not trusted, though it may have kept its activation.
            self._trusted = status.ready and not self._was_lost
            if first and self._activate_on_start and not self._trusted:
                self._waiting.append(Future())
            self._phase = _Phase.NONE
            self._fault = 0
        self._take_in(status)
        if self._refusal:
            self._warn(self._refusal)

    def _lost(self, reason: str) -> None:
        self._warn(f"{reason} Waiting for it")
        self._was_lost = True
        self._give_up(f"{reason} When it is back, {self._how_to_activate}")

    def _give_up(self, reason: str) -> None:
        with self._changed:
            motions, waiting = [self._motion, self._next], self._waiting
            self._motion = self._next = None
            self._waiting = []
            self._stop, self._release, self._trusted = False, None, False
            status, self._status = self._status, None
            self._refuse(reason)
        for motion in motions:
            if motion is not None:
                motion.end(Outcome.FAILED, status, reason)
        for done in waiting:
            done.set_result((False, reason))

    def _serve(self) -> None:
        due = time.monotonic()
        while not self._closed:
            self._obey()
            self._take_in(self._client.status())
            due = max(due + self._period, time.monotonic())
            with self._changed:
                self._changed.wait_for(self._has_work, max(0.0, due - time.monotonic()))
        if self._motion is not None:
            self._halt(self._motion)

    def _has_work(self) -> bool:
        begins = bool(self._waiting) and self._phase is _Phase.NONE
        return self._closed or self._next is not None or self._stop or self._release is not None or begins

    def _obey(self) -> None:
        """Does what others asked for since the last time."""
        with self._changed:
            stop, self._stop = self._stop, False
            following, self._next = self._next, None
            release, self._release = self._release, None
            begins = bool(self._waiting) and self._phase is _Phase.NONE
        motion = self._motion
        if release is not None and self._status is not None and self._status.activated:
            if following is not None:
                following.end(Outcome.FAILED, self._status, "the gripper lets go instead")
            self._client.send(Command(activate=True, release=True, release_opening=release))
            return
        if stop and self._phase is not _Phase.NONE:
            self._client.send(Command())
            self._activation_ends(False, "the activation was stopped")
        if stop and motion is not None and following is None:
            self._halt(motion)
        elif following is not None:
            self._begin(following, motion)
        if begins:
            self._begin_activation()
        if self._phase is not _Phase.NONE and self._status is not None:
            self._go_on_activating(self._status)

    def _begin(self, motion: Motion, replaced: Optional[Motion]) -> None:
        now = time.monotonic()
        motion.began = now
        way = COUNT_LIMIT / self._scale.counts_per_metre
        motion.deadline = now + way / speed_of(motion.speed) + MARGIN
        self._motion = motion  # first, so that it ends with the line if that is lost now
        try:
            self._client.send(
                Command(activate=True, go=True, position=motion.target, speed=motion.speed, force=motion.force)
            )
        finally:
            if replaced is not None:
                replaced.end(Outcome.REPLACED, self._status, "another command took its place")

    def _halt(self, motion: Motion) -> None:
        """Fingers stand still."""
        self._client.send(Command(activate=True, position=motion.target, speed=motion.speed, force=motion.force))
        self._motion = None
        motion.end(Outcome.STOPPED, self._status)

    def _take_in(self, status: Status) -> None:
        """What a state means for the motion, the activation, and whether motions are taken."""
        with self._changed:
            self._status = status
            if self._phase is _Phase.NONE and not status.ready:
                self._trusted = False
            self._refuse(self._why_not(status))
            refusal, motion, following = self._refusal, self._motion, self._next
            if refusal:
                self._motion = self._next = None
        if status.fault != self._fault:
            self._fault = status.fault
            if status.fault:
                self._warn(f"the gripper on {self._client.place}: {describe_fault(status.fault)}")
        if refusal:
            for ended in (motion, following):
                if ended is not None:
                    ended.end(Outcome.FAILED, status, refusal)
            if motion is not None and status.fault == OVER_TEMPERATURE:
                self._client.send(Command(activate=True, position=status.position))  # else it goes on when it is cool
        elif motion is not None:
            self._follow(motion, status)
        self._on_status(status)

    def _refuse(self, reason: str) -> None:
        """From now on motions are refused for that reason, or taken where it is empty."""
        changed, self._refusal = reason != self._refusal, reason
        self._changed.notify_all()
        if changed:
            self._on_change()

    def _why_not(self, status: Status) -> str:
        """Why motions are refused in this state; empty where they are not."""
        if self._phase is not _Phase.NONE:
            return "the gripper is being activated: keep hands clear, and try again when it is done"
        if status.fault == OVER_TEMPERATURE or status.fault >= FIRST_MAJOR_FAULT:
            how = f" ({self._how_to_activate})" if status.fault >= FIRST_MAJOR_FAULT else ""
            return f"{describe_fault(status.fault)}{how}"
        if not self._trusted:
            what = "was lost, and may not move yet" if status.ready else "is not active"
            return f"the gripper {what}: {self._how_to_activate}"
        return ""

    def _follow(self, motion: Motion, status: Status) -> None:
        now = time.monotonic()
        known = status.requested is not None
        # The echo of the request says that the rest of the state is of this motion.
        answered = status.requested == motion.target if known else now > motion.began + SETTLE
        if status.going and answered and status.obstruction is not Obstruction.MOVING:
            self._motion = None
            arrived = status.obstruction is Obstruction.ARRIVED
            motion.end(Outcome.ARRIVED if arrived else Outcome.STALLED, status)
        elif now > motion.deadline:
            self._client.send(Command(activate=True, position=motion.target, speed=motion.speed, force=motion.force))
            self._motion = None
            motion.end(
                Outcome.FAILED,
                status,
                f"the fingers neither arrived at count {motion.target} nor met anything ({status.position}): "
                "are they free, or does something else command the gripper?",
            )

    # ---- activation ----

    def _begin_activation(self) -> None:
        status = self._status
        if status is not None and status.fault == OVER_TEMPERATURE:
            self._activation_ends(False, describe_fault(status.fault))
            return
        if status is not None and status.ready:
            was_trusted, self._trusted, self._was_lost = self._trusted, True, False
            self._activation_ends(
                True, "the gripper is active" if was_trusted else "the gripper was active still: nothing moved"
            )
            return
        self._say(f"activating the gripper on {self._client.place}: its fingers move")
        self._trusted = False
        self._client.send(Command())
        self._phase, self._phase_began = _Phase.RESETTING, time.monotonic()

    def _go_on_activating(self, status: Status) -> None:
        elapsed = time.monotonic() - self._phase_began
        if self._phase is _Phase.RESETTING:
            if status.activation is Activation.RESET and not status.activated:
                self._client.send(Command(activate=True))
                self._phase, self._phase_began = _Phase.ACTIVATING, time.monotonic()
            elif elapsed > RESET_TIME:
                self._activation_ends(False, "the gripper does not let go of its old activation: cut its power")
            else:
                self._client.send(Command())  # some URCaps miss the first
        elif status.activation is Activation.DONE and status.ready:
            self._trusted, self._was_lost = True, False
            self._activation_ends(True, "the gripper is active")
        elif status.fault not in (0, NO_COMMUNICATION) and elapsed > GRACE:
            self._activation_ends(False, f"the activation failed: {describe_fault(status.fault)}")
        elif elapsed > ACTIVATION_TIME:
            self._activation_ends(
                False, f"the activation has not ended after {ACTIVATION_TIME:.0f} s: free the fingers, then try again"
            )

    def _activation_ends(self, good: bool, text: str) -> None:
        with self._changed:
            self._phase = _Phase.NONE
            waiting, self._waiting = self._waiting, []
            if self._status is not None:
                self._refuse(self._why_not(self._status))
        (self._say if good else self._warn)(text)
        for done in waiting:
            done.set_result((good, text))
