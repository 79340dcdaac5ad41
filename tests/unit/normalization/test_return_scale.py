"""The return scale against hand-worked numbers, and heads that follow it."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import critics, returns
from ppo_jax.normalization.return_scale import (
    ReturnNormalization,
    ReturnScale,
    identity,
)

FREE = ReturnNormalization(rate=0.25, max_step=1e6, min_std=1e-3, min_returns=1)


def scale(mean, std):
    """A scale in force."""
    return dataclasses.replace(
        identity(), mean=jnp.float32(mean), std=jnp.float32(std), seen=jnp.ones(())
    )


def leaves(tree):
    return [float(x) for x in jax.tree.leaves(tree)]


def rollout(seed, mean=0.0, std=1.0, shape=(8, 16)):
    return jnp.asarray(
        np.random.default_rng(seed).normal(mean, std, shape), jnp.float32
    )


def test_the_identity_changes_nothing():
    """PROP-3.9: before the first update."""
    values = rollout(0, 5.0, 30.0)
    chex.assert_trees_all_equal(identity().encode(values), values)
    chex.assert_trees_all_equal(FREE.init().decode(values), values)


@pytest.mark.parametrize(("mean", "std"), [(0, 1), (-1600, 300), (7, 3e-3), (0, 1e5)])
def test_decoding_undoes_encoding(mean, std, variant):
    """PROP-3.9."""
    values = rollout(1, mean, std)
    there = variant(ReturnScale.encode)(scale(mean, std), values)
    assert jnp.abs(there).max() < 6
    back = variant(ReturnScale.decode)(scale(mean, std), there)
    chex.assert_trees_all_close(back, values, rtol=1e-5, atol=1e-5 * std)


def test_the_first_update_takes_over_the_returns(variant):
    """PROP-3.5: what is in force is then what was measured, and not the identity."""
    values = rollout(2, 40.0, 9.0)
    new = variant(FREE.update)(FREE.init(), values)
    exact = np.asarray(values, np.float64)
    chex.assert_trees_all_close(
        (new.mean, new.std), (exact.mean(), exact.std()), rtol=1e-5
    )
    chex.assert_trees_all_close(
        (new.moving_mean, new.moving_var),
        (new.mean, new.std**2),
        rtol=1e-5,
    )
    assert float(new.seen) == 128
    chex.assert_shape(jax.tree.leaves(new), ())
    chex.assert_type(jax.tree.leaves(new), jnp.float32)


def test_later_updates_average_first_and_second_moments():
    """PROP-3.5: with weight `rate` for the new rollout, in float64."""
    state, first, second = FREE.init(), None, None
    for seed, (mean, std) in enumerate([(5, 2), (9, 1), (-20, 30), (0, 0.1)]):
        values = rollout(seed, mean, std)
        state = FREE.update(state, values)
        exact = np.asarray(values, np.float64)
        new = np.array([exact.mean(), (exact**2).mean()])
        first = new if seed == 0 else 0.75 * first + 0.25 * new
        second = np.sqrt(first[1] - first[0] ** 2)
        chex.assert_trees_all_close(state.mean, first[0], rtol=1e-4)
        chex.assert_trees_all_close(state.std, second, rtol=1e-4)


@pytest.mark.parametrize(("proposed", "want"), [(5.0, 1.5), (0.1, 2 / 3), (1.2, 1.2)])
def test_the_step_of_the_deviation_is_limited(proposed, want):
    """PROP-3.8."""
    follow = ReturnNormalization(rate=1.0, max_step=0.5, min_returns=1)
    values = jnp.array([-proposed, proposed])
    new = follow.update(scale(0.0, 1.0), values)
    chex.assert_trees_all_close(new.std, want, rtol=1e-6)
    chex.assert_trees_all_close(new.moving_var, proposed**2, rtol=1e-6)


@pytest.mark.parametrize(
    ("old_mean", "old_std", "centre", "spread", "want"),
    [
        (0.0, 1.0, 100.0, 0.5, 0.5),  # Half of the old deviation.
        (10.0, 1.0, 100.0, 0.5, 15.0),  # Half of the old mean.
        (0.0, 1.0, -100.0, 8.0, -4.0),  # Half of the proposed deviation.
        (10.0, 1.0, 12.0, 0.5, 12.0),
    ],
)
def test_the_step_of_the_mean_is_limited(old_mean, old_std, centre, spread, want):
    """PROP-3.8."""
    follow = ReturnNormalization(rate=1.0, max_step=0.5, min_returns=1)
    values = jnp.array([centre - spread, centre + spread])
    new = follow.update(scale(old_mean, old_std), values)
    chex.assert_trees_all_close(new.mean, want, rtol=1e-6)


def test_constant_returns_stop_at_the_floor():
    """PROP-3.9: no NaN, and σ is never below it."""
    follow, state = ReturnNormalization(min_returns=1), identity()
    update = jax.jit(follow.update)
    for _ in range(40):
        state = update(state, jnp.full((4, 3), 1234.567))
        chex.assert_tree_all_finite(leaves(state))
        assert float(state.std) >= np.float32(3e-3)
    chex.assert_trees_all_close((state.mean, state.std), (1234.567, 3e-3), rtol=1e-6)
    assert float(state.moving_var) == 0.0


def test_nothing_moves_before_enough_returns_were_seen():
    follow = ReturnNormalization(min_returns=256)
    state = follow.update(identity(), rollout(3, 50.0, 9.0))
    assert (float(state.mean), float(state.std), float(state.seen)) == (0.0, 1.0, 128.0)
    assert float(state.moving_mean) > 40
    state = follow.update(state, rollout(4, 50.0, 9.0))
    assert float(state.std) == 1.5


@pytest.mark.parametrize("garbage", [np.nan, np.inf, 1e30])
def test_returns_without_weight_do_not_matter(garbage):
    values, weight = rollout(5, 3.0, 2.0), np.ones((8, 16), np.float32)
    weight[2:4] = 0
    masked = np.where(weight > 0, values, np.float32(garbage))
    update = jax.jit(FREE.update)
    got = update(identity(), masked, weight)
    want = update(identity(), np.delete(values, [2, 3], axis=0))
    chex.assert_trees_all_close(leaves(got), leaves(want), rtol=1e-5)
    assert leaves(update(got, masked, 0 * weight)) == leaves(got)


def test_weights_are_shares():
    got = FREE.update(identity(), jnp.array([1.0, 5.0]), jnp.array([3.0, 1.0]))
    chex.assert_trees_all_close((got.mean, got.std), (2.0, np.sqrt(3.0)), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_returns_that_are_not_finite_are_an_error_or_ignored(bad):
    """1e30 squared is not finite in float32."""
    state = FREE.update(identity(), rollout(6))
    values = rollout(7).at[0, 0].set(bad)
    assert leaves(jax.jit(FREE.update)(state, values)) == leaves(state)
    if not np.isfinite(bad):
        with pytest.raises(ValueError, match="returns: expected finite"):
            FREE.update(state, values)


def test_numbers_may_differ_over_a_population():
    members = jax.vmap(lambda rate: dataclasses.replace(FREE, rate=rate))(
        jnp.array([0.25, 1.0])
    )
    state = FREE.update(identity(), rollout(8, 1.0))
    values = rollout(9, 5.0, 2.0)
    together = jax.jit(jax.vmap(lambda member: member.update(state, values)))
    both = jax.device_get(together(members))
    for i, rate in enumerate((0.25, 1.0)):
        one = dataclasses.replace(FREE, rate=rate).update(state, values)
        chex.assert_trees_all_close(both.mean[i], one.mean, rtol=1e-5)


@pytest.mark.parametrize(
    "number",
    [
        {"rate": 0.0},
        {"rate": 1.1},
        {"max_step": 0.0},
        {"min_std": 0.0},
        {"min_returns": -1},
    ],
)
def test_impossible_numbers_are_construction_errors(number):
    with pytest.raises(ValueError, match=f"ReturnNormalization.{next(iter(number))}"):
        ReturnNormalization(**number)


def test_rescaling_by_hand(variant):
    """PROP-3.7."""
    old, new = scale(0.5, 0.7), scale(0.4, 0.2)
    kernel, bias = variant(critics.Scalar().rescale)(
        jnp.array([2.0]), jnp.array([0.25]), old, new
    )
    chex.assert_trees_all_close((kernel[0], bias[0]), (7.0, 1.375), rtol=1e-6)
    chex.assert_trees_all_close(old.decode(2.0 * 1.3 + 0.25), 2.495, rtol=1e-6)
    chex.assert_trees_all_close(
        new.decode(kernel * 1.3 + bias), np.array([2.495]), rtol=1e-6
    )


def test_a_small_bias_keeps_its_digits_beside_a_large_mean(variant):
    """In float64: (3e-3 · 0.123456 + 1000 − 1000.0005) / 2e-3."""
    old, new = scale(1000.0, 3e-3), scale(1000.0005, 2e-3)
    rescale = variant(critics.Scalar().rescale)
    _, bias = rescale(jnp.array([1.0]), jnp.array([0.123456]), old, new)
    moved = np.float64(np.float32(1000.0)) - np.float64(np.float32(1000.0005))
    exact = (np.float64(np.float32(3e-3)) * 0.123456 + moved) / np.float32(2e-3)
    chex.assert_trees_all_close(bias[0], exact, rtol=1e-5)
    _, bias = rescale(jnp.array([1.0]), jnp.array([0.123456]), old, old)
    chex.assert_trees_all_close(bias[0], 0.123456, rtol=1e-6)


@pytest.mark.parametrize("critic", [critics.Scalar(), critics.Quantile(5)])
def test_rescaled_heads_predict_what_they_predicted(critic):
    """PROP-3.7: values and explained variance, over a drift of the returns by 100."""
    rng = np.random.default_rng(0)
    features = np.float32(rng.normal(size=(64, 6)))
    kernel = np.float32(rng.normal(size=(2, 6, critic.num_outputs)))
    bias = np.float32(rng.normal(size=(2, critic.num_outputs)))
    follow = ReturnNormalization(rate=0.9, max_step=0.5, min_returns=1)

    @jax.jit
    def worth(state, kernel, bias):
        outputs = jnp.einsum("xf,cfn->xcn", features, kernel) + bias[None]
        value = critics.ValueDist(outputs, critic)
        return state.decode(critics.pessimistic(value))

    @jax.jit
    def followed(state, kernel, bias, values):
        new = follow.update(state, values)
        return new, *critic.rescale(kernel, bias, state, new)

    state = scale(0.0, 1.0)
    before = worth(state, kernel, bias)
    target = np.float32(before + rng.normal(size=64))
    for update in range(12):
        values = rollout(update, 30.0, 100.0)
        state, kernel, bias = followed(state, kernel, bias, values)
    assert float(state.std) > 50
    after = worth(state, kernel, bias)
    chex.assert_trees_all_close(after, before, rtol=1e-5, atol=1e-4)
    explained = jax.jit(returns.explained_variance)
    evs = [explained(target, x, np.ones(64)) for x in (before, after)]
    chex.assert_trees_all_close(evs[0], evs[1], rtol=0, atol=1e-5)
    assert critic.rescalable


def test_a_softmax_cannot_be_rescaled():
    critic = critics.Categorical()
    assert not critic.rescalable
    with pytest.raises(TypeError, match="cannot be rescaled"):
        critic.rescale(jnp.ones((1, 3, 51)), jnp.ones((1, 51)), identity(), identity())


def test_a_scale_is_a_pytree_of_scalars():
    assert isinstance(jax.tree.map(jnp.zeros_like, identity()), ReturnScale)
    chex.assert_shape(jax.tree.leaves(identity()), [()] * 5)


def test_every_return_has_a_weight():
    with pytest.raises(ValueError, match=r"weight: .* that of returns, got"):
        ReturnNormalization().update(identity(), jnp.ones((2, 3)), jnp.ones((3, 2)))
