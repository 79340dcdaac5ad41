"""Terms that move the policy, by hand in float64."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minibatches import context, forward, minibatch, normal, targets
from tabular import as_float64

from ppo_jax import terms
from ppo_jax.controllers import K1, K3, ClosedForm, EntropySchedule, KlPid
from ppo_jax.networks.distributions import Categorical
from ppo_jax.schedules import Linear

OUT = forward()
BATCH = minibatch(
    advantage=normal(5),
    log_prob=normal(6, scale=0.5),
    old_policy=Categorical(normal(7, 3)),
)
RATIO, ADVANTAGE = np.exp(as_float64(OUT.log_ratio)), as_float64(BATCH.advantage)


def probabilities(policy):
    exps = np.exp(as_float64(policy.logits))
    return exps / exps.sum(axis=-1, keepdims=True)


P, OLD = probabilities(OUT.policy), probabilities(BATCH.old_policy)
ENTROPY = -(P * np.log(P)).sum(axis=-1)
CLOSED = (OLD * np.log(OLD / P)).sum(axis=-1)


def said_by(term, **given):
    return term(OUT, BATCH, context(**given))


@pytest.mark.parametrize(("progress", "eps"), [(0.0, 0.3), (0.5, 0.15)])
def test_the_surrogate_is_clipped_by_what_is_left_of_the_range(variant, progress, eps):
    """−min(r A, clip(r, 1 ± ε) A), and what it says of it."""
    term = terms.Surrogate(clip_eps=0.3, clip_schedule=Linear())

    def run(log_ratio, advantage):
        out, batch = OUT._replace(log_ratio=log_ratio), minibatch(advantage=advantage)
        return term(out, batch, context(progress=progress))

    loss, said = variant(run)(OUT.log_ratio, BATCH.advantage)
    clipped = np.clip(RATIO, 1 - eps, 1 + eps)
    want = -np.minimum(RATIO * ADVANTAGE, clipped * ADVANTAGE)
    chex.assert_trees_all_close(loss, want, rtol=1e-5, atol=1e-6)
    chex.assert_trees_all_equal(said["train/policy_loss"], loss)
    outside = np.abs(RATIO - 1) > eps
    assert outside.any() and not outside.all()
    chex.assert_trees_all_equal(said["train/clip_fraction"], np.float32(outside))
    chex.assert_trees_all_close(
        said["train/clip_range"], np.full((3, 2), eps), rtol=1e-6
    )


def test_a_dual_clip_bounds_what_bad_actions_cost():
    """−r A ≤ −c A for A < 0 (Ye et al., 2020), and nothing for the others."""
    far = OUT._replace(log_ratio=jnp.full((3, 2), np.log(5.0)))
    loss, _ = terms.Surrogate(dual_clip=3.0)(far, BATCH, context())
    want = np.where(ADVANTAGE < 0, -3 * ADVANTAGE, -1.2 * ADVANTAGE)
    chex.assert_trees_all_close(loss, want, rtol=1e-5)


def test_entropy_is_a_bonus():
    loss, said = said_by(terms.Entropy(coef=0.25))
    chex.assert_trees_all_close(loss, -0.25 * ENTROPY, rtol=1e-5)
    chex.assert_trees_all_close(said["train/policy_entropy"], ENTROPY, rtol=1e-5)
    loss, _ = said_by(terms.Entropy(coef=0.0))
    chex.assert_trees_all_equal(jnp.abs(loss), jnp.zeros((3, 2)))


def test_an_adaptive_bonus_has_the_coefficient_of_its_memory():
    term = terms.AdaptiveEntropy(EntropySchedule(initial=0.5, final=0.5))
    memory = term.init()
    loss, _ = said_by(term, memory=memory)
    chex.assert_trees_all_close(loss, -0.5 * ENTROPY, rtol=1e-5)
    prepared, said = term.prepare(memory, targets(np.zeros((2, 2))))
    assert prepared == () and said["train/ent_coef"] == 0.5
    metrics = {"train/policy_entropy": 1.0, "train/explained_variance": 0.5}
    metrics = jax.tree.map(jnp.float32, metrics)
    chex.assert_trees_all_equal(
        term.update(memory, metrics), term.schedule.update(memory, *metrics.values())
    )


LOG_RATIO = as_float64(OUT.log_ratio)
WAYS = [
    (K1(), -LOG_RATIO),
    (K3(), RATIO - 1 - LOG_RATIO),
    (ClosedForm(), CLOSED),
]


@pytest.mark.parametrize(("divergence", "kl"), WAYS)
def test_a_divergence_costs_its_coefficient(divergence, kl):
    """However it is told; only that in closed form needs the policy that acted."""
    fixed = terms.Kl(coef=0.5, divergence=divergence)
    moved = terms.KlPenalty(KlPid(target=0.02, initial=0.25), divergence)
    for term, coef in ((fixed, 0.5), (moved, 0.25)):
        loss, _ = said_by(term, memory=term.init())
        chex.assert_trees_all_close(loss, coef * kl, rtol=1e-4, atol=1e-6)
        assert term.reads_old_policy == (divergence == ClosedForm())


@pytest.mark.parametrize("divergence", [K1(), K3(), ClosedForm()])
def test_a_penalty_follows_the_divergence_that_it_is_told(divergence):
    term = terms.KlPenalty(KlPid(target=0.1), divergence)
    metrics = {"train/approx_kl_k1": 0.1, "train/approx_kl": 0.2, "train/kl": 0.3}
    after = term.update(term.init(), metrics)
    want = term.controller.update(term.init(), metrics[divergence.metric])
    chex.assert_trees_all_equal(after, want)
    _, said = term.prepare(after, targets(np.zeros((2, 2))))
    assert said["train/kl_penalty_beta"] == after.coefficient


def test_own_actions_are_imitated_the_more_the_better_they_were():
    """−exp(min(A / β, ln w_max)) ln π(a), times what the schedule leaves."""
    term = terms.AdvantageWeighted(2.0, 0.5, max_weight=3.0, schedule=Linear())
    loss, said = said_by(term, progress=0.75)
    weight = np.minimum(np.exp(ADVANTAGE / 0.5), 3.0)
    assert (weight == 3.0).any() and (weight < 1.0).any()
    log_prob = as_float64(BATCH.log_prob) + LOG_RATIO
    want = -2.0 * 0.25 * weight * log_prob
    chex.assert_trees_all_close(said["train/bc_weight"], weight, rtol=1e-5)
    chex.assert_trees_all_close(loss, want, rtol=1e-4, atol=1e-6)
    chex.assert_trees_all_equal(said["train/policy_bc_loss"], loss)


def test_the_share_of_imitation_by_hand():
    """R-E7: 2 of 2 + 3, and 0 of 0."""
    term = terms.AdvantageWeighted(coef=1.0, temperature=1e9)
    out = terms.Forward(None, None, jnp.zeros(2))
    batch = minibatch(advantage=jnp.array([-3.0, 0.0]), log_prob=jnp.array([-2.0, 0.0]))
    _, said = term(out, batch, context())
    share = said["train/policy_bc_vs_ppo_ratio"]
    chex.assert_trees_all_close(share, np.array([0.4, 0.0]), rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: terms.Surrogate(clip_eps=0.0), "Surrogate.clip_eps: expected"),
        (lambda: terms.Surrogate(dual_clip=1.0), "Surrogate.dual_clip: expected"),
        (lambda: terms.Kl(coef=-1.0), "Kl.coef: expected a finite number ≥ 0, got -1"),
        (lambda: terms.Kl(coef=float("inf")), "Kl.coef: .*, got inf"),
        (lambda: terms.Entropy(float("nan")), "Entropy.coef: expected a finite number"),
        (lambda: terms.AdvantageWeighted(coef=-1.0), "AdvantageWeighted.coef"),
        (lambda: terms.AdvantageWeighted(temperature=0.0), "temperature: expected"),
        (lambda: terms.AdvantageWeighted(max_weight=0.0), "max_weight: expected"),
    ],
)
def test_impossible_numbers_are_errors(make, said):
    with pytest.raises(ValueError, match=said):
        make()
