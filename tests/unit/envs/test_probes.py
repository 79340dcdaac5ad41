"""Every probe is an environment as training takes it."""

import pytest

from ppo_jax import envs
from ppo_jax.envs import probes

PROBES = [kind for kind in vars(probes).values() if isinstance(kind, type)]
PROBES = [probe() for probe in PROBES if not probe.__subclasses__()]


@pytest.mark.parametrize("env", PROBES, ids=lambda env: type(env).__name__)
def test_a_probe_keeps_the_protocol(env):
    envs.check(env, steps=64)
