"""How much Hypothesis may try: `ci` fits the suite, `long` is for a soak.

CORVO_PROFILE=long python -m pytest tests/model
"""

import os

from hypothesis import HealthCheck, settings

CHECKS_OFF = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "ci",
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=CHECKS_OFF,
    print_blob=True,
)
settings.register_profile(
    "long",
    max_examples=5_000,
    stateful_step_count=120,
    deadline=None,
    suppress_health_check=CHECKS_OFF,
    print_blob=True,
)
PROFILE = os.environ.get("CORVO_PROFILE", "ci")
IS_LONG = PROFILE == "long"
SETTINGS = settings.get_profile(PROFILE)
