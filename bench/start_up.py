"""How long a new process takes to its first solution."""

from __future__ import annotations

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
    """Seconds from starting Python, the robot's row and URDF included, to the first solution."""
    durations = []
    for _ in range(7):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", PROGRAM], check=True)
        durations.append(time.perf_counter() - started)
    yield record("import_to_first_solve", median(durations), None, "s")
