"""Where the package's data files are: in the source tree, or under share/ where it is installed."""

from __future__ import annotations

import os
from pathlib import Path


def package_folder() -> Path:
    """The folder that holds ``config/``, ``urdf/``, ``plans/`` and ``launch/``.

    Raises:
        FileNotFoundError: the package is neither in a source tree nor installed with its data files.
    """
    module = Path(__file__).resolve()
    candidates = [module.parents[2]]
    candidates += [parent / "share" / "iter_runner" for parent in module.parents]
    prefixes = [prefix for prefix in os.environ.get("CMAKE_PREFIX_PATH", "").split(os.pathsep) if prefix]
    candidates += [Path(prefix) / "share" / "iter_runner" for prefix in prefixes]
    for candidate in candidates:
        if (candidate / "package.xml").is_file() and (candidate / "config" / "robots").is_dir():
            return candidate
    raise FileNotFoundError(
        f"iter_runner: no config/ and urdf/ found for the module at {module.parent}; "
        "install the package with its share/ folder"
    )
