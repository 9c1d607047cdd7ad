"""Benchmarks: ``./run bench [NAME ...]``, one JSON object a line.

Each object holds ``bench``, ``ours``, ``peer``, ``ratio`` and ``unit`` (null where there is no peer), and what else was
measured beside them. One process, one thread, medians, the peer in the same run. docs/performance.md explains them.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Callable, Dict, Iterator, List

from bench import closed_form, numeric_ik, relaxed_ik, start_up, stream_jitter

Bench = Callable[[], Iterator[Dict[str, Any]]]

BENCHES: Dict[str, Bench] = {
    "closed_form_batch": closed_form.batch,
    "closed_form_single": closed_form.single,
    "closed_form_error": closed_form.error,
    "numeric_ik_search": numeric_ik.search,
    "relaxed_ik_track": relaxed_ik.track,
    "relaxed_ik_cold": relaxed_ik.cold,
    "import_to_first_solve": start_up.import_to_first_solve,
    "stream_jitter": stream_jitter.stream_jitter,
}


def main(arguments: List[str]) -> int:
    """Runs the benches named, all by default. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="./run bench", description="Benchmarks, one JSON object a line.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES))
    names = parser.parse_args(arguments).names or list(BENCHES)
    for name in names:
        if name not in BENCHES:
            parser.error(f"no bench '{name}'; benches are {', '.join(BENCHES)}")
    for name in names:
        for record in BENCHES[name]():
            print(json.dumps(record), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
