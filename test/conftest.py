"""Settings of every test."""

from hypothesis import HealthCheck, settings

# No test fails because a machine is slow.
settings.register_profile("iter_runner", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("iter_runner")
