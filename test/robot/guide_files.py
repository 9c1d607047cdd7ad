"""The example of docs/robots.md, written out as a reader of the page would."""

from __future__ import annotations

import re
from pathlib import Path

from iter_runner.package import package_folder

# Of each fenced block the file that its text belongs to, by a line that only that file has.
FILES = {
    "lab7.yaml": "name: lab7",
    "lab7.urdf.xacro": '<robot name="lab7"',
    "jaws.yaml": "name: jaws",
    "jaws.urdf.xacro": '<robot name="jaws"',
}


def write_example(folder: Path) -> Path:
    """Writes the four files into ``folder``; the path of the robot's row."""
    page = (package_folder() / "docs" / "robots.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:yaml|xml)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    for name, sign in FILES.items():
        (text,) = [block for block in blocks if block.startswith(sign)]
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "lab7.yaml"
