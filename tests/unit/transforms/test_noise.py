"""Noise that is cheap is still noise."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from ppo_jax.transforms.noise import hashed_normal

SIZE = 20_000


def draws(*keys):
    """A row of numbers for each key, `[keys, SIZE]`, float64."""
    sample = jax.jit(jax.vmap(lambda key: hashed_normal(key, (SIZE,))))
    return np.asarray(sample(jnp.stack(keys)), np.float64)


def neighbours():
    """Keys as updates use them: of one step and the next, of one leaf and the next."""
    base = jax.random.key(3)
    steps = [jax.random.fold_in(base, step) for step in range(4)]
    return [jax.random.fold_in(step, leaf) for step in steps for leaf in range(4)]


def test_hashed_numbers_are_nearly_normal():
    """Modules 2.8.10: by Kolmogorov and Smirnov, and by the first four moments."""
    for x in draws(*neighbours()):
        assert stats.kstest(x, "norm").statistic < 0.005 + 1.95 / np.sqrt(SIZE)
        assert abs(x.mean()) < 4 / np.sqrt(SIZE)
        chex.assert_trees_all_close(x.std(), 1, rtol=0.03)
        assert abs(stats.skew(x)) < 4 * np.sqrt(6 / SIZE)
        chex.assert_trees_all_close(
            stats.kurtosis(x, fisher=False), 2.85, rtol=0, atol=0.14
        )


def test_hashed_numbers_are_independent():
    """Modules 2.8.10: over leaves, steps and elements, near and far."""
    x = draws(*neighbours())
    bound = 4.5 / np.sqrt(SIZE)
    assert np.abs(np.corrcoef(x) - np.eye(len(x))).max() < bound
    assert np.abs(np.corrcoef(np.abs(x)) - np.eye(len(x))).max() < bound
    for lag in [1, 2, 3, 16, 64, 100, 1024, 4096]:
        for row in (x[0], np.abs(x[0])):
            assert abs(np.corrcoef(row[lag:], row[:-lag])[0, 1]) < bound
    assert len(np.unique(np.sort(x, axis=1), axis=0)) == len(x)  # No permutations.


@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (7, 1, 2)])
def test_hashed_numbers_of_any_shape(shape):
    """The same for a member of a population as for one alone."""
    keys = jax.random.split(jax.random.key(0), 3)
    alone = [hashed_normal(key, shape) for key in keys]
    together = jax.vmap(lambda key: hashed_normal(key, shape))(keys)
    chex.assert_shape(together, (3, *shape))
    chex.assert_type(together, jnp.float32)
    chex.assert_trees_all_equal(together, jnp.stack(alone))
