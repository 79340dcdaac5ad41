"""Sums of weighted losses over a minibatch, by hand in float64."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minibatches import context, normal
from tabular import as_float64, experiment

from ppo_jax import terms
from ppo_jax.component import component
from ppo_jax.metrics import LARGEST, MEAN, Metric
from ppo_jax.ppo.objective import forward, objective, peaks
from ppo_jax.state import Batch

WEIGHT = np.float32([[1.0, 0.0], [0.5, 2.0], [0.0, 1.0]])
CARD = np.random.default_rng(0).integers(0, 4, (3, 2))
ACTION = np.random.default_rng(1).integers(0, 3, (3, 2))
NETWORK = experiment(num_critics=2).build()
RANDOM = np.random.default_rng(2)
PARAMS = jax.tree.map(
    lambda x: np.float32(RANDOM.normal(size=x.shape)),
    jax.eval_shape(lambda: NETWORK.init(jax.random.key(0))),
)


@component
class Mine(terms.Term):
    """A loss of what it is given, and metrics of two kinds."""

    says = (
        Metric("mine/peak", "1", "Largest.", LARGEST),
        Metric("mine/mean", "1", "Mean.", MEAN),
    )

    def __call__(self, out, batch, context):
        x = context.prepared * out.value.mean()[..., 0]
        return x, {"mine/peak": context.prepared, "mine/mean": 2 * context.prepared}


def minibatch(*prepared, **fields):
    fields = {
        "obs": np.float32(np.eye(4)[CARD]),
        "reset": np.zeros((3, 2), bool),
        "action": ACTION,
        "log_prob": normal(3, scale=0.3) - 1.0,
        "action_mask": (),
        "advantage": normal(4),
        "target": normal(5),
        "weight": WEIGHT,
        "old_value": (),
        "old_policy": (),
    } | fields
    return Batch(**fields, prepared=prepared, carry=())


@component
class Summands:
    """What an objective reads of an experiment."""

    terms: tuple[terms.Term, ...]


@functools.partial(jax.jit, static_argnames="observe")
def summed(parts, batch, params=PARAMS, **known):
    contexts = tuple(context(**known) for _ in parts)
    return objective(params, NETWORK, Summands(parts), contexts, batch)


def log_ratio(params=PARAMS):
    logits = as_float64(params)["actor"]["head"]["kernel"][CARD]
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    taken = np.take_along_axis(log_p, ACTION[..., None], axis=-1)[..., 0]
    return taken - as_float64(minibatch().log_prob)


def test_a_minibatch_is_replayed(variant):
    batch = minibatch()

    def run(log_prob):
        return forward(NETWORK, PARAMS, batch._replace(log_prob=log_prob)).log_ratio

    got = variant(run)(batch.log_prob)
    chex.assert_trees_all_close(got, log_ratio(), rtol=1e-4, atol=1e-5)


def test_losses_are_weighted_and_added_up():
    """Σ over terms and examples of weight · loss, not yet divided by anything."""
    parts = (terms.Surrogate(0.2), terms.Entropy(0.1))
    total, sums = summed(parts, minibatch((), ()))
    ratio, advantage = np.exp(log_ratio()), as_float64(minibatch().advantage)
    gain = np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.2) * advantage)
    logits = as_float64(PARAMS)["actor"]["head"]["kernel"][CARD]
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    entropy = -(p * np.log(p)).sum(axis=-1)
    weight = as_float64(WEIGHT)
    want = (weight * (-gain - 0.1 * entropy)).sum()
    chex.assert_trees_all_close(total, want, rtol=1e-5)
    chex.assert_trees_all_close(
        sums["train/policy_entropy"], (weight * entropy).sum(), rtol=1e-5
    )


def test_metrics_are_sums_or_the_largest_and_have_no_gradient():
    prepared = np.float32([[3.0, 99.0], [-7.0, 5.0], [99.0, 1.0]])
    _, sums = summed((Mine(),), minibatch(prepared))
    assert sums["mine/peak"] == 5.0
    assert sums["mine/mean"] == 2 * (3 - 3.5 + 10 + 1)

    def metric(params):
        return summed((Mine(),), minibatch(prepared), params)[1]["train/ratio_mean"]

    slopes = jax.jit(jax.grad(metric))(PARAMS)
    chex.assert_trees_all_equal(slopes, jax.tree.map(np.zeros_like, PARAMS))


def test_which_metrics_are_the_largest_of_their_kind():
    named = dict.fromkeys(("mine/peak", "mine/mean", "train/log_ratio_max_abs"), 0.0)
    assert peaks((Mine(),), named) == ["mine/peak", "train/log_ratio_max_abs"]
    assert peaks(Summands(()), named) == ["train/log_ratio_max_abs"]


def with_one(numbers, place, number):
    numbers = np.array(numbers)
    numbers[place] = number
    return numbers


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_has_no_weight_may_be_anything(bad):
    """In the loss and in metrics; with weight it is counted."""
    counts = ("error/log_ratio_nan_count", "error/log_ratio_inf_count")
    log_prob, parts = minibatch().log_prob, (terms.Surrogate(),)
    want, wanted = summed(parts, minibatch(()))
    hidden = minibatch((), log_prob=with_one(log_prob, (0, 1), bad))
    chex.assert_trees_all_close(summed(parts, hidden), (want, wanted), rtol=1e-6)
    assert not any(wanted[name] for name in counts)
    seen = minibatch((), log_prob=with_one(log_prob, (1, 1), bad))
    _, sums = summed(parts, seen)
    assert [int(sums[name]) for name in counts] == [np.isnan(bad), np.isinf(bad)]


def test_parts_of_a_minibatch_add_up():
    """Of sums; what divides them comes later."""
    batch = minibatch((), ())
    parts = (terms.Surrogate(), terms.Entropy())
    whole = summed(parts, batch)[0]
    halves = [
        jax.tree.map(lambda x, i=i: np.asarray(x)[:, i : i + 1], batch) for i in (0, 1)
    ]
    total = sum(summed(parts, half)[0] for half in halves)
    chex.assert_trees_all_close(total, whole, rtol=1e-5)


def test_a_term_may_ask_the_policy_of_other_observations():
    """At the beginning of an episode, as the network sees them."""

    @component
    class Asking(terms.Term):
        def __call__(self, out, batch, context):
            policy = context.policy(batch.obs[:, ::-1])
            return policy.entropy(), {}

    total, _ = summed(
        (Asking(),), minibatch(()), observe=lambda obs: jnp.roll(obs, 1, axis=-1)
    )
    logits = as_float64(PARAMS)["actor"]["head"]["kernel"][(CARD[:, ::-1] + 1) % 4]
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    entropy = -(p * np.log(p)).sum(axis=-1)
    want = (as_float64(WEIGHT) * entropy).sum()
    chex.assert_trees_all_close(total, want, rtol=1e-5)
