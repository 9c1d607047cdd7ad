"""How long a new process takes to its first solution."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import Any, Dict, Iterator

from bench.timing import median, record

PROGRAM = """
from iter_runner.kinematics import RelaxedIK, load_chain
chain = load_chain("ur5")
solver = RelaxedIK(chain)
q = [0.0, -1.57, 1.57, -1.57, -1.57, 0.0]
solver.reset(q)
solver.solve(chain.fk(q))
"""


def import_to_first_solve() -> Iterator[Dict[str, Any]]:
    """Seconds from starting Python to the first solution, the robot's row and URDF included; ``cpu``: of them."""
    durations, computing = [], []
    for _ in range(7):
        before, started = _children(), time.perf_counter()
        subprocess.run([sys.executable, "-c", PROGRAM], check=True)
        durations.append(time.perf_counter() - started)
        computing.append(_children() - before)
    yield record("import_to_first_solve", median(durations), None, "s", cpu=median(computing))


def _children() -> float:
    """CPU time of the child processes so far, s."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
