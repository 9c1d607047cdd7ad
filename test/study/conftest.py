"""Makes the builders of runs, which the tests of timing have too, importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "timing"))
