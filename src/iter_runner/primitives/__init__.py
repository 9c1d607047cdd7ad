"""What each primitive of a plan does when its turn comes.

A new primitive is one class in a module of this package: its import registers it.
"""

from __future__ import annotations

import importlib
import pkgutil

from iter_runner.plan.registry import STANDARD as REGISTRY

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["REGISTRY"]
