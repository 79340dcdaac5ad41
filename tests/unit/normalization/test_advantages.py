"""Over which advantages a mean and a deviation are taken, in float64."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.component import component
from ppo_jax.errors import Misfit
from ppo_jax.normalization.advantages import (
    OverAll,
    PerEnv,
    PerGroup,
    Standardization,
    standardized,
)

RANDOM = np.random.default_rng(0)
ADVANTAGE = RANDOM.normal(size=(6, 3)) * [1.0, 10.0, 100.0] + 5.0
WEIGHT = RANDOM.choice([0.5, 1.0, 2.0], (6, 3))
GROUP = np.array([[0, 1, -1], [1, 0, -1], [1, 1, 7], [0, 0, -1], [0, 1, 0], [1, 0, -1]])
KINDS = [OverAll(), PerEnv(), PerGroup(num_groups=2)]
"""Steps of no group of 0 and 1 count for their environment, the last one."""


def members(kind):
    """What each advantage is compared with, as a number per set."""
    if kind == OverAll():
        return np.zeros((6, 3), int)
    own = np.broadcast_to(2 + np.arange(3), (6, 3))
    return (
        own if kind == PerEnv() else np.where((GROUP == 0) | (GROUP == 1), GROUP, own)
    )


def oracle(kind, advantage=ADVANTAGE, weight=WEIGHT):
    """Mean 0 and an unbiased deviation of 1 by weight, within each set."""
    scaled, sets = np.zeros((6, 3)), members(kind)
    for index in np.unique(sets):
        x, w = (np.where(sets == index, each, 0.0) for each in (advantage, weight))
        mean = (w * x).sum() / w.sum()
        freedom = w.sum() - (w**2).sum() / w.sum()
        deviation = np.sqrt((w * (x - mean) ** 2).sum() / freedom)
        scaled = np.where(sets == index, (advantage - mean) / deviation, scaled)
    return scaled


def arrays(advantage=ADVANTAGE, weight=WEIGHT):
    return jnp.float32(advantage), jnp.float32(weight), jnp.int32(GROUP)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_each_set_has_mean_zero_and_deviation_one(kind, variant):
    scaled, flat = variant(kind)(*arrays())
    chex.assert_shape([scaled, flat], (6, 3))
    chex.assert_type(scaled, jnp.float32)
    chex.assert_trees_all_close(scaled, oracle(kind), rtol=1e-4, atol=1e-5)
    assert not flat.any()


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_what_does_not_vary_in_its_set_is_zero_and_said_so(kind):
    """All of one set alike: the others are scaled as ever."""
    sets = members(kind)
    alike = np.where(sets == sets[0, 0], 3.0, ADVANTAGE)
    scaled, flat = jax.device_get(jax.jit(kind)(*arrays(alike)))
    chex.assert_trees_all_equal(flat, sets == sets[0, 0])
    assert not scaled[sets == sets[0, 0]].any()
    others = sets != sets[0, 0]
    if others.any():
        want = oracle(kind)[others]
        chex.assert_trees_all_close(scaled[others], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_what_has_no_weight_is_in_no_set(kind):
    weight = WEIGHT.copy()
    weight[2] = 0.0
    wild = ADVANTAGE.copy()
    wild[2] = np.nan
    got, _ = jax.device_get(jax.jit(kind)(*arrays(wild, weight)))
    want = oracle(kind, ADVANTAGE, weight)
    chex.assert_trees_all_equal(got[2], np.zeros(3, np.float32))
    rows = np.array([0, 1, 3, 4, 5])
    chex.assert_trees_all_close(got[rows], want[rows], rtol=1e-4, atol=1e-5)


def test_groups_that_nobody_reports_are_no_matter():
    few, many = (jax.jit(PerGroup(num_groups=n))(*arrays()) for n in (2, 5))
    chex.assert_trees_all_close(few, many, rtol=1e-6)


def test_environments_are_not_gone_through_one_by_one():
    """No array is larger than all advantages for each group."""
    wide = [jnp.tile(x, 100) for x in arrays()]
    made = jax.make_jaxpr(PerGroup(num_groups=2))(*wide)
    sizes = [x.aval.size for eqn in made.eqns for x in eqn.outvars]
    assert max(sizes) == 2 * wide[0].size


def test_no_gradient_is_asked_of_what_is_compared_apart():
    """An advantage of one environment moves no other one's."""
    advantage, *others = arrays()
    slopes = jax.jit(jax.jacobian(lambda x: PerEnv()(x, *others)[0]))(advantage)
    chex.assert_trees_all_equal(np.asarray(slopes)[:, 0, :, 1:], 0.0)


def test_groups_are_at_least_one():
    with pytest.raises(ValueError, match=r"PerGroup\.num_groups: expected at least 1"):
        PerGroup(num_groups=0)
    with pytest.raises(NotImplementedError, match=r"Standardization\.__call__: missi"):
        Standardization()(*arrays())


@component
class Saying(Standardization):
    """Says what it is told to say."""

    words: object = None

    def __call__(self, advantage, weight, group):
        return self.words


FLAT = np.zeros((6, 3), bool)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (None, "Saying: expected (advantages, flags), got None"),
        (ADVANTAGE, r"Saying: expected \(advantages, flags\), got float64"),
        (
            (ADVANTAGE.mean(), FLAT),
            r"Saying: advantages: .*\(6, 3\), a number per step",
        ),
        ((FLAT, FLAT), r"Saying: advantages: .*, got bool\[6, 3\]"),
        ((ADVANTAGE, False), r"Saying: flags: .*\(6, 3\), whether each is flat, bool"),
        ((ADVANTAGE, ADVANTAGE), r"Saying: flags: .*, got float64\[6, 3\]"),
    ],
)
def test_there_is_an_advantage_and_a_flag_for_each(words, said):
    with pytest.raises(Misfit, match=said.replace("(advantages, flags)", ".*")):
        standardized(Saying(words), *arrays())
    standardized(Saying((ADVANTAGE, FLAT)), *arrays())
