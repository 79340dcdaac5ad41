"""The term that critics learn from, by hand in float64."""

import chex
import jax.numpy as jnp
import numpy as np
import pytest
from minibatches import context, forward, minibatch, normal, targets
from tabular import as_float64

from ppo_jax import Config, critics, terms
from ppo_jax.controllers import ClipGate, Known, PoorValueScale
from ppo_jax.critics import MeanOnly, Scalar

OUT = forward(Scalar(clip=MeanOnly()))
TARGET, OLD = normal(5), normal(6, 2, 1)
BATCH = minibatch(target=TARGET, old_value=OLD)
V, Y, V_OLD = (as_float64(x) for x in (OUT.value.outputs[..., 0], TARGET, OLD[..., 0]))
PLAIN = 0.5 * (Y[..., None] - V) ** 2


def said_by(term, memory=None):
    memory = term.init() if memory is None else memory
    return term(OUT, BATCH, context(memory=memory))


def explaining(term, value, updates=5):
    return term.init()._replace(
        updates=jnp.int32(updates),
        explained_variance=Known(jnp.float32(value), jnp.array(True)),
    )


def test_critics_regress_to_targets():
    loss, said = said_by(terms.Value(coef=0.25))
    chex.assert_trees_all_close(loss, 0.25 * PLAIN.mean(axis=-1), rtol=1e-5)
    chex.assert_trees_all_close(
        said["train/value_loss"], PLAIN.mean(axis=-1), rtol=1e-5
    )
    for i in (0, 1):
        each = said[f"train/twin_critics/critic_{i + 1}_loss"]
        chex.assert_trees_all_close(each, PLAIN[..., i], rtol=1e-5)
    chex.assert_trees_all_equal(
        said["train/vf_coef"], np.full((3, 2), np.float32(0.25))
    )
    assert "train/value_clip_fraction" not in said


def test_of_one_critic_the_mean_says_it_all():
    out = forward(twins=1)
    _, said = terms.Value()(out, BATCH, context(memory=terms.Value().init()))
    assert said.keys() == {"train/value_loss", "train/vf_coef"}


def test_a_prediction_that_left_its_range_does_not_pay():
    """PROP-12.4, PROP-12.5, R-E2: per example and critic, before their mean.

    max(½ (y − v)², ½ (y − clip(v, v_old ± ε))²).
    """
    loss, said = said_by(terms.Value(coef=1.0, clip_eps=0.25))
    clipped = 0.5 * (Y[..., None] - np.clip(V, V_OLD - 0.25, V_OLD + 0.25)) ** 2
    assert (clipped > PLAIN).any() and (clipped < PLAIN).any()
    want = np.maximum(PLAIN, clipped)
    chex.assert_trees_all_close(loss, want.mean(axis=-1), rtol=1e-5)
    felt = (clipped > PLAIN * 1.001).mean(axis=-1)
    chex.assert_trees_all_close(said["train/value_clip_fraction"], felt, rtol=1e-6)


def test_a_gate_opens_and_shuts_the_range():
    """During the warm-up nothing is clipped, though there is a range."""
    term = terms.Value(coef=1.0, clip_eps=0.25, gate=ClipGate(warmup_updates=3.0))
    warming, said = said_by(term, explaining(term, 0.9, updates=0))
    chex.assert_trees_all_close(warming, PLAIN.mean(axis=-1), rtol=1e-5)
    chex.assert_trees_all_equal(said["train/value_clip_fraction"], jnp.zeros((3, 2)))
    later, _ = said_by(term, explaining(term, 0.9, updates=9))
    always, _ = said_by(terms.Value(coef=1.0, clip_eps=0.25))
    chex.assert_trees_all_equal(later, always)
    _, told = term.prepare(term.init(), targets(np.zeros((2, 2))))
    assert told and terms.Value().prepare((), targets(np.zeros((2, 2)))) == ((), {})


@pytest.mark.parametrize(("explained", "coef"), [(0.05, 0.25), (0.5, 1.0)])
def test_a_poor_critic_has_a_smaller_coefficient(explained, coef):
    term = terms.Value(coef=1.0, poor=PoorValueScale(threshold=0.1, scale=0.25))
    loss, said = said_by(term, explaining(term, explained))
    chex.assert_trees_all_close(loss, coef * PLAIN.mean(axis=-1), rtol=1e-5)
    chex.assert_trees_all_close(said["train/vf_coef"], np.full((3, 2), coef), rtol=1e-6)


def test_it_remembers_updates_and_the_last_finite_measurement():
    term = terms.Value()
    memory = term.init()
    for explained in (0.25, 0.5, jnp.nan):
        memory = term.update(memory, {"train/explained_variance": explained})
    assert memory.updates == 3
    chex.assert_trees_all_equal(
        memory.explained_variance, Known(jnp.float32(0.5), jnp.array(True))
    )
    full = memory._replace(updates=jnp.int32(2**31 - 1))
    after = term.update(full, {"train/explained_variance": 0.5})
    assert after.updates == 2**31 - 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: terms.Value(coef=-1.0), r"Value\.coef: expected a finite number ≥ 0"),
        (lambda: terms.Value(clip_eps=0.0), r"Value\.clip_eps: expected a number > 0"),
        (lambda: terms.Value(gate=ClipGate()), r"Value\.gate: expected None without a"),
    ],
)
def test_impossible_numbers_are_errors(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_range_needs_a_critic_that_can_be_clipped():
    clipping = terms.Value(clip_eps=0.2)
    assert clipping.clips and not terms.Value().clips
    fields = {"terms": (terms.Surrogate(), clipping)}
    with pytest.raises(ValueError, match=r"Config\.critic\.clip: expected a way"):
        Config("CartPole-v1", **fields)
    Config("CartPole-v1", **fields, critic=critics.Scalar(clip=MeanOnly()))
