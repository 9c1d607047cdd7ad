#!/usr/bin/env python3
"""Writes the example of docs/robots.md into a folder, for roslaunch's ``<param command>``; prints the row's path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "robot"))

from guide_files import write_example

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    print(write_example(folder), end="")
