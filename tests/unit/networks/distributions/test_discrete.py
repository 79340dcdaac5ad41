"""Discrete actions against textbook probabilities in float64."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from ppo_jax.networks.distributions import Categorical, MultiCategorical, mask_logits


def test_categorical_kl_by_hand():
    """PROP-7.1, R-E5: both directions for p = (.6, .3, .1), q = (.5, .35, .15)."""
    p = Categorical(jnp.log(jnp.array([0.6, 0.3, 0.1])))
    q = Categorical(jnp.log(jnp.array([0.5, 0.35, 0.15])) + 3.0)
    chex.assert_trees_all_close(p.kl(q), 0.0226012, rtol=0, atol=2e-7)
    chex.assert_trees_all_close(q.kl(p), 0.0236117, rtol=0, atol=2e-7)


def test_categorical_against_scipy():
    logits = np.random.default_rng(0).normal(size=(5, 4)) * 3
    raw = np.array([0, 1, 2, 3, 1])
    policy = Categorical(jnp.asarray(logits))
    p = special.softmax(logits, axis=-1)
    log_p = special.log_softmax(logits, axis=-1)[np.arange(5), raw]
    chex.assert_trees_all_close(policy.log_prob(jnp.asarray(raw)), log_p, rtol=1e-5)
    chex.assert_trees_all_close(policy.entropy(), stats.entropy(p, axis=-1), rtol=1e-5)


def test_categorical_samples_have_the_right_frequencies(key):
    p = np.array([0.1, 0.2, 0.7])
    policy = Categorical(jnp.broadcast_to(jnp.log(p), (20_000, 3)))
    counts = np.bincount(policy.sample(key), minlength=3)
    assert stats.chisquare(counts, p * counts.sum()).pvalue > 1e-3


def test_categorical_needs_whole_numbers():
    with pytest.raises(AssertionError):
        Categorical(jnp.zeros(3)).log_prob(jnp.array(1.0))


def test_masked_actions_do_not_exist(key):
    """PROP-21.6: probability 0, absent from samples, mode, entropy and KL."""
    logits, others = jnp.array([0.5, 9.0, -1.0, 0.2]), jnp.array([0.1, 0.0, 1.0, 2.0])
    mask = jnp.array([True, False, True, True])
    policy, other = (Categorical(mask_logits(x, mask)) for x in (logits, others))
    legal, legal_other = (Categorical(x[mask]) for x in (logits, others))

    assert jnp.exp(policy.log_prob(jnp.array(1))) == 0
    assert policy.mode() == 0
    assert 1 not in jax.vmap(policy.sample)(jax.random.split(key, 500))
    chex.assert_trees_all_close(policy.entropy(), legal.entropy(), rtol=1e-6)
    chex.assert_trees_all_close(policy.kl(other), legal.kl(legal_other), rtol=1e-5)
    chex.assert_trees_all_close(
        policy.log_prob(jnp.array(3)), legal.log_prob(jnp.array(2)), rtol=1e-6
    )


@pytest.mark.parametrize("raw", [-1, 3, 7])
def test_what_is_no_action_has_probability_0(raw, variant):
    log_prob = variant(lambda x, raw: Categorical(x).log_prob(raw))
    assert log_prob(np.zeros((1, 3)), np.array([raw])) == -np.inf
    several = MultiCategorical((jnp.zeros(3), jnp.zeros(9)))
    assert several.log_prob(jnp.array([raw, 0])) == -np.inf
    assert several.log_prob(jnp.array([0, 8])) == pytest.approx(-np.log(27))


def test_probabilities_of_0_have_no_part_in_entropy_and_kl():
    """By their logarithms, −∞; neither have they a gradient that is no number."""
    p, q = np.array([0.2, 0.8, 0.0]), np.array([0.5, 0.3, 0.2])

    def both(logits):
        policy, other = Categorical(logits), Categorical(jnp.log(q))
        return jnp.stack([policy.entropy(), policy.kl(other)])

    logits = jnp.log(jnp.asarray(p, jnp.float32))
    kl = special.rel_entr(p, q).sum()
    by_scipy = np.array([stats.entropy(p), kl])
    chex.assert_trees_all_close(both(logits), by_scipy, rtol=1e-6)
    slopes = jax.jacobian(both)(logits)
    by_hand = jax.jacobian(both)(logits.at[2].set(-200.0))  # e⁻²⁰⁰ is 0 in float32.
    chex.assert_trees_all_close(slopes, by_hand, rtol=1e-5, atol=1e-7)
    same = Categorical(logits)
    assert same.kl(same) == 0


@pytest.mark.parametrize("illegal", [0.0, 1e30, -jnp.inf, jnp.inf, jnp.nan])
def test_gradients_with_a_mask_are_finite_and_avoid_illegal_actions(illegal):
    """PROP-21.6: whatever the network says about an illegal action."""
    mask = jnp.array([True, False, True])

    def total(logits):
        policy = Categorical(mask_logits(logits, mask))
        other = Categorical(mask_logits(jnp.array([1.0, 2.0, 3.0]), mask))
        return policy.log_prob(jnp.array(2)) + policy.entropy() + policy.kl(other)

    value, gradient = jax.value_and_grad(total)(jnp.array([0.3, illegal, -0.2]))
    chex.assert_tree_all_finite(value)
    chex.assert_tree_all_finite(gradient)
    assert gradient[1] == 0
    assert (gradient[mask] != 0).all()


def test_masks_hold_in_half_precision():
    """PROP-21.6: float16 could not represent the masked logit."""
    logits = jnp.zeros(2, jnp.float16)
    policy = Categorical(mask_logits(logits, jnp.array([False, True])))
    assert policy.log_prob(jnp.array(1)) == 0
    assert policy.entropy() == 0


@pytest.mark.parametrize("mask", [jnp.ones((1, 3), bool), jnp.ones((2, 3))])
def test_masks_must_fit_and_be_boolean(mask):
    with pytest.raises(AssertionError):
        mask_logits(jnp.zeros((2, 3)), mask)


def test_multi_categorical_is_a_product():
    """PROP-6.3, R-D5."""
    first, second = np.array([0.2, 0.3, 0.5]), np.array([0.9, 0.1])
    joint = np.outer(first, second)
    policy = MultiCategorical((jnp.log(first), jnp.log(second)))
    other = MultiCategorical((jnp.zeros(3), jnp.zeros(2)))
    for i, j in np.ndindex(joint.shape):
        log_p = policy.log_prob(jnp.array([i, j]))
        chex.assert_trees_all_close(log_p, np.log(joint[i, j]), rtol=1e-5)
    entropy = stats.entropy(joint.ravel())
    chex.assert_trees_all_close(policy.entropy(), entropy, rtol=1e-5)
    chex.assert_trees_all_close(policy.kl(other), math.log(6) - entropy, rtol=1e-5)
    chex.assert_trees_all_equal(policy.mode(), np.array([2, 0]))


def test_components_of_multi_categorical_are_sampled_independently(key):
    logits = jnp.zeros((4_000, 2))
    raw = MultiCategorical((logits, logits)).sample(key)
    chex.assert_type(raw, jnp.int32)
    assert abs(np.corrcoef(raw[:, 0], raw[:, 1])[0, 1]) < 0.1


def test_a_sure_policy_has_a_margin_with_a_gradient():
    """Its probability is 1 to the last digit, where an attack would be stuck (A3)."""
    logits, action = jnp.array([140.0, 1.0, -3.0]), jnp.array(0)
    sure = jax.value_and_grad(lambda logits: Categorical(logits).margin(action))
    value, gradient = sure(logits)
    assert value == 139 and gradient.tolist() == [1, -1, 0]
    stuck = jax.grad(lambda logits: Categorical(logits).log_prob(action))(logits)
    assert not stuck.any()
    assert Categorical(logits).margin(jnp.array(1)) == -139


def test_margins_of_several_components_add_up():
    policy = MultiCategorical((jnp.array([2.0, 0.0]), jnp.array([0.0, 5.0, 1.0])))
    assert policy.margin(jnp.array([0, 1])) == 2 + 4


@pytest.mark.parametrize("legal", [(True,), (False, True)])
def test_the_only_choice_leads_over_nothing(legal):
    """It hides no digit of the margin beside it, and an attack leaves it alone."""
    legal = jnp.array(legal)

    def margin(logits):
        policy = MultiCategorical(
            (mask_logits(logits, legal), jnp.array([0.0, 5.0, 1.0]))
        )
        return policy.margin(jnp.stack([jnp.argmax(legal), 1]))

    value, gradient = jax.value_and_grad(margin)(jnp.arange(3.0)[: legal.size])
    assert value == 4 and not gradient.any()
