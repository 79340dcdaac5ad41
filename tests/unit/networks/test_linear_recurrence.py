"""Linear recurrences against plain steps, in the way of a CPU and of a GPU."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.arrays import platforms
from ppo_jax.networks import linear_recurrence

BATCH, SIZE = 2, 3


@pytest.fixture(params=[True, False], ids=["cpu", "gpu"])
def on_cpu(request, monkeypatch):
    monkeypatch.setattr(platforms, "_is_cpu", lambda: request.param)


def drawn(steps, seed=0):
    """Shares, a few of them 0, what is added, and a carry; float64."""
    rng = np.random.default_rng(seed)
    kept = rng.uniform(size=(steps, BATCH, SIZE))
    kept = np.where(rng.uniform(size=(steps, BATCH, 1)) < 0.2, 0.0, kept)
    return kept, rng.normal(size=kept.shape), rng.normal(size=kept.shape[1:])


def plain(kept, added, carry):
    """The states after all steps."""
    states = []
    for share, more in zip(kept, added, strict=True):
        carry = share * carry + more
        states.append(carry)
    return np.stack(states)


@pytest.mark.parametrize("steps", [1, 2, 11])
@pytest.mark.usefixtures("on_cpu")
def test_values_and_gradients_are_those_of_plain_steps(steps):
    """Gradients by central differences in float64, of a sum in which all counts."""
    given, rng = drawn(steps), np.random.default_rng(1)
    at_end, along = rng.normal(size=(BATCH, SIZE)), rng.normal(size=given[0].shape)

    def ours(*given):
        last, states = linear_recurrence.over_time(*given)
        return (at_end * last).sum() + (along * states).sum(), states

    def theirs(*given):
        states = plain(*given)
        return (at_end * states[-1]).sum() + (along * states).sum()

    def slope(which, place):
        moved = [[x.copy() for x in given] for _ in range(2)]
        for each, way in zip(moved, (1e-6, -1e-6), strict=True):
            each[which][place] += way
        return (theirs(*moved[0]) - theirs(*moved[1])) / 2e-6

    short = [np.float32(x) for x in given]
    slopes = jax.jit(jax.value_and_grad(ours, (0, 1, 2), has_aux=True))
    (_, states), found = slopes(*short)
    chex.assert_trees_all_close(states, np.float32(plain(*given)), rtol=1e-5, atol=1e-5)
    for which, x in enumerate(given):
        expected = np.reshape([slope(which, i) for i in np.ndindex(x.shape)], x.shape)
        np.testing.assert_allclose(found[which], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("on_cpu")
def test_a_share_of_nothing_forgets_what_is_not_finite():
    """In values, and in gradients of what comes after."""
    kept, added, carry = (np.float32(x) for x in drawn(8))
    kept[:4], kept[4] = 0.5, 0.0
    added[1] = carry[:] = np.nan

    def after(added):
        _, states = linear_recurrence.over_time(kept, added, carry)
        return states[4:].sum(), states

    (_, states), slopes = jax.value_and_grad(after, has_aux=True)(added)
    assert np.isnan(states[:4]).all() and np.isfinite(states[4:]).all()
    np.testing.assert_allclose(states[4:], plain(kept[4:], added[4:], 0.0), rtol=1e-5)
    assert not slopes[:4].any() and np.all(slopes[4] >= 1.0)


@pytest.mark.usefixtures("on_cpu")
def test_a_share_of_nothing_forgets_shares_that_are_no_numbers():
    """A sight too large for a gate spoils no later episode, on any platform."""
    kept, added, carry = (np.float32(x) for x in drawn(8))
    kept[:4], kept[1], kept[4] = 0.5, np.nan, 0.0
    last, states = linear_recurrence.over_time(kept, added, carry)
    assert np.isnan(states[1:4]).all()
    np.testing.assert_allclose(states[4:], plain(kept[4:], added[4:], 0.0), rtol=1e-5)
    np.testing.assert_array_equal(last, states[-1])


@pytest.mark.usefixtures("on_cpu")
def test_members_have_states_of_their_own():
    """Under `vmap`, values and gradients are those of one after the other."""
    members = [[np.float32(x) for x in drawn(5, seed)] for seed in (1, 2)]

    def total(kept, added, carry):
        return (linear_recurrence.over_time(kept, added, carry)[1] ** 2).sum()

    slopes = jax.value_and_grad(total, (0, 1, 2))
    together = jax.jit(jax.vmap(slopes))(*map(jnp.stack, zip(*members, strict=True)))
    stacked = jax.tree.map(lambda *x: np.stack(x), *(slopes(*one) for one in members))
    chex.assert_trees_all_close(together, stacked, rtol=1e-5, atol=1e-5)
