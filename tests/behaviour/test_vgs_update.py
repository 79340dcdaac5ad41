"""Updates whose gradients are scaled and clipped, against the same in float64."""

import chex
import jax
import numpy as np
import pytest
from tabular import as_float64, experiment, first, update

from ppo_jax.optimizers import VGS, Sgd

ALPHA, BETA, EPS, CAP = 0.05, 0.9, 1e-8, 10.0
# The median over leaves: the mean gradient of a table of logits is 0 but for rounding.
QUANTILE = 0.5
SCALING = VGS(ALPHA, BETA, EPS, CAP, floor=0.01, quantile=QUANTILE, warmup_steps=0)


def one_step(parts=1, bound=None, vgs=None):
    """An experiment with one step of length one along the gradient per update."""
    sgd = Sgd(learning_rate=1.0, max_grad_norm=bound, vgs=vgs)
    return experiment(num_epochs=1, num_microbatches=parts, optimizer=sgd)


def stepped(run):
    """The run after an update, its metrics, and how it descended in float64."""
    after, metrics, _ = update(run)
    before, params = as_float64((run.learner.params, after.learner.params))
    return after, metrics, jax.tree.map(np.subtract, before, params)


def raw_gradient(run):
    """The gradient of the whole batch: a plain step from where a run is."""
    plain = first(one_step())
    learner = plain.learner.replace(params=run.learner.params)
    return stepped(run.replace(learner=learner))[2]


def norm(gradient):
    return np.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient)))


def factor_by_hand(gradients):
    """From the leaf means of all gradients before a step; 0 of those that are 0."""
    if not gradients:
        return 1.0
    shares = BETA ** np.arange(len(gradients) - 1, -1, -1.0)
    shares /= shares.sum()
    means = [[leaf.mean() for leaf in jax.tree.leaves(g)] for g in gradients]
    mean, square = shares @ np.array(means), shares @ np.square(means)
    least = np.finfo(np.float64).tiny
    ratios = (square - mean**2) / np.maximum(mean**2 + EPS * square, least)
    return 1 / (1 + ALPHA * min(np.quantile(ratios, QUANTILE), CAP))


@pytest.mark.parametrize("bound", [0.15, 1e6])
@pytest.mark.parametrize("parts", [1, 4])
def test_gradients_are_accumulated_then_scaled_then_clipped(parts, bound):
    """V1, V2, R-A1, R-A4, PROP-16.2, modules 1.7.13: what is done, and what is told.

    Parts of a minibatch have different weights. Their sum is scaled once, by what the
    raw sums before it were like; a bound that is exceeded is reached exactly.
    """
    run = first(one_step(parts, bound, SCALING))
    gradients = []
    for t in range(1, 7):
        factor = factor_by_hand(gradients)
        gradients.append(raw_gradient(run))
        scaled = factor * norm(gradients[-1])
        assert (scaled > bound) == (bound < 1)
        share = factor * min(1, bound / scaled)
        run, metrics, descent = stepped(run)
        expected = jax.tree.map(lambda g, share=share: share * g, gradients[-1])
        chex.assert_trees_all_close(descent, expected, rtol=1e-3, atol=1e-5)
        told = metrics["train/grad_norm_post_clip"]
        np.testing.assert_allclose(told, norm(descent), rtol=1e-5)
        np.testing.assert_allclose(told, min(scaled, bound), rtol=1e-3)
        used = metrics["train/vgs_scaling_factor_applied"]
        np.testing.assert_allclose(used, factor, rtol=1e-3)
        assert metrics["vgs/step_count"] == t
    assert factor < 0.9
