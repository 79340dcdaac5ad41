import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.losses.clipping import at_least, at_most, within

CASES = {
    "at_most": (lambda x: at_most(x, 0.5), lambda x: min(x, 0.5)),
    "at_least": (lambda x: at_least(x, -0.5), lambda x: max(x, -0.5)),
    "within": (lambda x: within(x, -0.5, 0.5), lambda x: min(max(x, -0.5), 0.5)),
}
NUMBERS = np.array([-np.inf, -2.0, -0.5, -0.1, 0.0, 0.3, 0.5, 7.0, np.inf], np.float32)


@pytest.mark.parametrize(("limited", "expected"), CASES.values(), ids=CASES)
def test_numbers_and_gradients(limited, expected, variant):
    """A gradient is 1 where the number is its own, at a limit too, and 0 elsewhere."""
    wanted = np.array([expected(x) for x in NUMBERS.tolist()], np.float32)
    chex.assert_trees_all_equal(variant(limited)(NUMBERS), wanted)
    slope = variant(jax.vmap(jax.grad(limited)))(NUMBERS)
    chex.assert_trees_all_equal(slope, (wanted == NUMBERS).astype(np.float32))


@pytest.mark.parametrize("limited", [at_most, at_least])
def test_gradients_of_a_limit(limited):
    """All of it, where the limit is what counts."""
    limit = np.float32(0.3)
    slopes = jax.vmap(jax.grad(limited, argnums=1), (0, None))(NUMBERS, limit)
    passed = limit < NUMBERS if limited is at_most else limit > NUMBERS
    chex.assert_trees_all_equal(slopes, passed.astype(np.float32))


@pytest.mark.parametrize("limited", [case[0] for case in CASES.values()], ids=CASES)
def test_nan_stays_nan(limited):
    assert jnp.isnan(limited(jnp.array([jnp.nan]))).all()


@pytest.mark.parametrize("limited", [case[0] for case in CASES.values()], ids=CASES)
def test_gradients_divide_nothing(limited):
    assert " div " not in str(jax.make_jaxpr(jax.grad(limited))(1.0))
    assert " div " in str(jax.make_jaxpr(jax.grad(jnp.log))(1.0))
