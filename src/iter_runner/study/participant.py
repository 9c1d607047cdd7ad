"""A simulated participant: answers the robot's waits after times drawn as people's are, the same ones for a seed.

Response times of people are positive and skewed to the right; a log-normal distribution describes them well (R. D.
Luce, "Response Times", 1986; E.-J. Wagenmakers and S. Brown, "On the linear relation between the mean and the standard
deviation of a response time distribution", Psychological Review 114(3), 2007).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import NormalDist
from typing import Optional

from iter_runner.events import Event, EventKind
from iter_runner.timing.intervals import is_human


class ResponseTimes:
    """Log-normal response times, each a function of the seed and of the wait's number alone.

    Args:
        seed: equal seeds, equal responses.
        median: s; half of the responses are shorter. A person who stands by the button: 0.5 to 1; who finishes
            something first: 2 to 10.
        sigma: standard deviation of the response's logarithm; 0.2 to 0.3 for a practised reaction, 0.4 to 0.6 for
            someone with work of their own; 0 makes every response the median.

    Raises:
        ValueError: the median is not a positive number, or sigma is negative.
    """

    def __init__(self, seed: int, median: float = 2.0, sigma: float = 0.4) -> None:
        if not (math.isfinite(median) and median > 0):
            raise ValueError(f"the median response time is {median} s; it has to be more than 0")
        if not (math.isfinite(sigma) and sigma >= 0):
            raise ValueError(f"sigma is {sigma}; it has to be 0 or more")
        self.seed = seed
        self.median = median
        self.sigma = sigma

    def response(self, number: int) -> float:
        """The response time (s) to the ``number``-th wait of a run, from 0; longer than 0."""
        # random() of a given seed is the same in every Python, its lognormvariate() need not be.
        uniform = random.Random(f"{self.seed}/{number}").random()
        uniform = min(max(uniform, 1e-12), 1.0 - 1e-12)
        return self.median * math.exp(self.sigma * NormalDist().inv_cdf(uniform))


@dataclass(frozen=True)
class Response:
    """What the participant is going to do.

    Attributes:
        number: of the wait in its run, from 0.
        condition: button or prompt.
        time: study clock, s: the start of the wait plus ``response_time``.
    """

    session: str
    number: int
    condition: str
    time: float
    response_time: float


class SimulatedParticipant:
    """Decides from a run's events when to respond to what. Holds no clock: its owner acts when the time comes.

    ``pending`` is the response to the open wait; None where nothing is waited for, or it has been given.
    """

    def __init__(self, times: ResponseTimes) -> None:
        self._times = times
        self._session = ""
        self._waits = 0
        self.pending: Optional[Response] = None
        self.unconfirmed: Optional[Response] = None

    def feed(self, event: Event) -> None:
        """Takes in the next event of the run (none left out: waits are counted)."""
        if event.session != self._session:
            self._session = event.session
            self._waits = 0
            self._give_up()
        if event.kind is EventKind.WAIT_STARTED and is_human(event):
            response = self._times.response(self._waits)
            self.pending = Response(
                session=event.session,
                number=self._waits,
                condition=str(event.data["condition"]),
                time=event.time + response,
                response_time=response,
            )
            self.unconfirmed = None
            self._waits += 1
        elif event.kind is EventKind.PRESS:
            if self.unconfirmed is not None and event.data.get("time") == self.unconfirmed.time:
                self.unconfirmed = None
        elif event.kind in (
            EventKind.WAIT_ENDED,
            EventKind.STEP_STARTED,
            EventKind.RUN_STARTED,
            EventKind.RUN_FINISHED,
        ):
            self._give_up()

    def responded(self, response: Response, confirmed: bool = False) -> None:
        """``response`` has been given; unless ``confirmed``, the run's events have yet to show that it arrived."""
        if self.pending is response:
            self.pending = None
            self.unconfirmed = None if confirmed else response

    def respond_again(self) -> None:
        """The response did not arrive: it is to be given once more."""
        self.pending, self.unconfirmed = self.unconfirmed, None

    def _give_up(self) -> None:
        self.pending = None
        self.unconfirmed = None
