"""Kinds of critic behind one interface: shapes, twins, risk, and what is refused."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from criticism import name, predictions, targets

from ppo_jax.component import component
from ppo_jax.critics import (
    Categorical,
    Critic,
    MeanAndVariance,
    PerQuantile,
    Quantile,
    Scalar,
    ValueDist,
    pessimistic,
    pessimistic_cvar,
)
from ppo_jax.losses import Law

KINDS = [Scalar(), Quantile(5), Categorical(7, -4.0, 4.0)]
kinds = pytest.mark.parametrize("critic", KINDS, ids=name)


@kinds
def test_a_state_is_worth_what_the_worse_critic_says(critic):
    """PROP-11.1: of means; and what the only one says if there is one."""
    twins = predictions(critic, 10)
    worth = pessimistic(twins)
    chex.assert_shape(worth, (3, 4))
    assert (worth[..., None] <= twins.mean()).all()
    assert (worth[..., None] == twins.mean()).any(axis=-1).all()
    one = ValueDist(twins.outputs[..., :1, :], critic)
    chex.assert_trees_all_equal(pessimistic(one), one.mean()[..., 0])


@kinds
def test_critics_learn_apart(critic):
    """PROP-11.2: the other one's outputs do not change a critic's gradient."""
    outputs, target = np.array(predictions(critic, 11).outputs), targets()

    @jax.jit
    @jax.grad
    def gradient(outputs):
        return ValueDist(outputs, critic).loss(target).mean(axis=-1).sum()

    before = jax.device_get(gradient(outputs))
    outputs[..., 1, :] += 3.0 * np.arange(critic.num_outputs) + 1
    after = jax.device_get(gradient(outputs))
    chex.assert_trees_all_equal(before[..., 0, :], after[..., 0, :])
    assert (before[..., 1, :] != after[..., 1, :]).any()


def test_the_tail_is_that_of_the_worse_critic():
    twins = ValueDist(jnp.array([[0.0, 9.0], [3.0, 4.0]]), Quantile(2))
    assert pessimistic(twins) == 3.5
    assert pessimistic_cvar(twins, 0.5) == 3.0


def test_the_tail_of_a_kind_of_ones_own_is_that_of_its_worst_outcomes():
    """In whatever order its law has them."""

    @component
    class Coin(Critic):
        num_outputs = 2

        def law(self, outputs):
            return Law(outputs, jnp.full_like(outputs, 0.5))

    value = ValueDist(jnp.array([[3.0, -1.0], [-2.0, 4.0]]), Coin())
    assert value.cvar(0.5).tolist() == [-1.0, -2.0]
    assert value.cvar(0.75).tolist() == [pytest.approx(1 / 3), 0.0]


@kinds
def test_alpha_is_checked_and_may_be_traced(critic):
    """A whole frontier of α in one program."""
    value = predictions(critic, 12)
    curve = jax.jit(jax.vmap(value.cvar))(jnp.array([0.05, 0.5, 1.0]))
    assert (jnp.diff(curve, axis=0) >= -1e-5).all()
    chex.assert_trees_all_close(curve[-1], value.mean(), rtol=0, atol=1e-5)
    if not isinstance(critic, Scalar):
        with pytest.raises(ValueError, match="alpha"):
            value.cvar(0.0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Quantile(0), ValueError, "num_quantiles"),
        (lambda: Quantile(kappa=0.0), ValueError, "kappa"),
        (lambda: Categorical(1), ValueError, "num_atoms: expected at least 2, got 1"),
        (lambda: Categorical(v_min=2, v_max=2), ValueError, "more than v_min = 2.0"),
        (lambda: Categorical(v_max=float("inf")), ValueError, "v_max"),
        (lambda: Categorical(clip=PerQuantile()), TypeError, "Categorical.clip"),
        (lambda: Scalar(clip=PerQuantile()), TypeError, "Scalar.clip"),
        (lambda: MeanAndVariance(0.5), ValueError, "factor: expected a number ≥ 1"),
    ],
)
def test_impossible_critics_are_construction_errors(make, error, message):
    """Among them a way of clipping that a kind does not have."""
    with pytest.raises(error, match=message):
        make()
