"""Which states of an optimiser describe the task."""

from typing import NamedTuple

import jax.numpy as jnp
import optax

from ppo_jax import optimizers
from ppo_jax.transforms.statistics import is_statistics, versions


class Seen(NamedTuple):
    count: int
    VERSION = 3


class Moved(NamedTuple):
    count: int


def test_what_has_a_version_is_statistics():
    assert is_statistics(Seen(0))
    assert not any(map(is_statistics, (Moved(0), 3, None, {"VERSION": 1}, ())))


def test_versions_are_found_at_any_depth():
    assert versions({"a": (Seen(1), Moved(2)), "b": [Seen(3)]}) == {"Seen": 3}
    assert versions((Moved(1), jnp.ones(2))) == {}


def test_statistics_of_a_chain_are_those_of_its_scalings():
    params = {"w": jnp.ones(3)}
    plain = optimizers.Adam().transformation().init(params)
    both = {"vgs": optimizers.VGS(), "kl_adaptive": optimizers.KlAdaptive()}
    scaled = optimizers.Adam(**both).transformation().init(params)
    assert versions(plain) == {} == versions(optax.adam(1.0).init(params))
    assert versions(scaled) == {"ScaleByVarianceState": 1, "ScaleByKlState": 1}
