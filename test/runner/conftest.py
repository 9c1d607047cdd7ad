from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest
from runner_bench import PATIENCE, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.control.stop()
    if bench.thread is not None:
        bench.thread.join(PATIENCE)
