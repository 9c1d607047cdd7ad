"""Timing of calls, and the record that a bench prints."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np


def microseconds(calls: Sequence[Callable[[], Any]]) -> List[float]:
    """How long each call took, µs."""
    clock = time.perf_counter_ns
    durations = []
    for call in calls:
        started = clock()
        call()
        durations.append((clock() - started) * 1e-3)
    return durations


def median(values: Sequence[float]) -> float:
    """The median."""
    return float(np.median(values))


def record(bench: str, ours: float, peer: Optional[float], unit: str, **more: Any) -> Dict[str, Any]:
    """The object that a bench prints."""
    ratio = None if peer is None else ours / peer
    return {"bench": bench, "ours": ours, "peer": peer, "ratio": ratio, "unit": unit, **more}
