"""Updates whose gradients are scaled and clipped, against the same in float64."""

import chex
import jax
import numpy as np
import pytest
from tabular import Examples, as_float64, descend, experiment, first, telling

from ppo_jax import terms
from ppo_jax.optimizers import VGS, Sgd

ALPHA, BETA, EPS, CAP = 0.05, 0.9, 1e-8, 10.0
# The median over leaves: the mean gradient of a table of logits is 0 but for rounding.
QUANTILE = 0.5
SCALING = VGS(ALPHA, BETA, EPS, CAP, floor=0.01, quantile=QUANTILE, warmup_steps=0)
TOLD = "train/grad_norm_post_clip", "train/vgs_scaling_factor_applied", "vgs/step_count"
update = telling(*TOLD)


def one_step(parts, bound):
    """An experiment with one step of length one along the gradient per update."""
    return experiment(
        terms=(terms.Surrogate(), terms.Value()),
        num_epochs=1,
        num_microbatches=parts,
        optimizer=Sgd(learning_rate=1.0, max_grad_norm=bound, vgs=SCALING),
    )


def raw_gradient(run, steps):
    """The gradient of the whole batch at its first step, where no ratio is clipped."""
    data, params = Examples(run, steps), as_float64(run.learner.params)
    advantage = data.reward - data.outputs(params)[:, 0, 0]
    advantage -= data.mean(advantage)
    total = data.weight.sum()
    free = 1 - (data.weight**2).sum() / total**2
    advantage /= np.sqrt(data.mean(advantage**2) / free)

    def chosen(params):
        return np.take_along_axis(data.log_probs(params), data.action[:, None], 1)[:, 0]

    old = chosen(params)

    def objective(params):
        gain = np.exp(chosen(params) - old) * advantage
        error = data.outputs(params)[:, 0, 0] - data.reward
        return data.mean(0.5 * error**2 / 2 - gain)

    begin, end = descend(objective, params, step_size=1.0, steps=1)
    return jax.tree.map(np.subtract, begin, end)


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
    run, gradients = first(one_step(parts, bound)), []
    for t in range(1, 7):
        before = run
        run, metrics, steps = update(before)
        factor = factor_by_hand(gradients)
        gradients.append(raw_gradient(before, steps))
        scaled = factor * norm(gradients[-1])
        assert (scaled > bound) == (bound < 1)
        share = factor * min(1, bound / scaled)
        params = (x.learner.params for x in (before, run))
        descent = jax.tree.map(np.subtract, *map(as_float64, params))
        expected = jax.tree.map(lambda g, share=share: share * g, gradients[-1])
        chex.assert_trees_all_close(descent, expected, rtol=1e-3, atol=1e-5)
        told = metrics["train/grad_norm_post_clip"]
        np.testing.assert_allclose(told, norm(descent), rtol=1e-5)
        np.testing.assert_allclose(told, min(scaled, bound), rtol=1e-3)
        used = metrics["train/vgs_scaling_factor_applied"]
        np.testing.assert_allclose(used, factor, rtol=1e-3)
        assert metrics["vgs/step_count"] == t
    assert factor < 0.9
