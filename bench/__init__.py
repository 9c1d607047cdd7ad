"""Benchmarks of the core against its peers."""

import os

# The peers' libraries use one thread, as ours does. Set before numpy is imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
