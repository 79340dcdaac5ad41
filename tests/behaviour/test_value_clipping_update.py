"""Value clipping in real updates, against the same updates in float64."""

import jax.numpy as jnp
import numpy as np
import pytest
from tabular import (
    Examples,
    as_float64,
    descend,
    experiment,
    first,
    telling,
    with_numbers,
)

from ppo_jax import critics, optimizers, terms
from ppo_jax.controllers import ClipGate, Known

SUPPORT = {"num_atoms": 5, "v_min": -4.0, "v_max": 4.0}
KINDS = {
    "scalar": critics.Scalar(clip=critics.MeanOnly()),
    "quantiles, each": critics.Quantile(3, kappa=0.7, clip=critics.PerQuantile()),
    "quantiles, mean": critics.Quantile(3, kappa=0.7, clip=critics.MeanOnly()),
    "quantiles, mean and variance": critics.Quantile(
        3, kappa=0.7, clip=critics.MeanAndVariance(factor=1.1)
    ),
    "atoms, mean": critics.Categorical(**SUPPORT, clip=critics.MeanOnly()),
    "atoms, mean and variance": critics.Categorical(
        **SUPPORT, clip=critics.MeanAndVariance(factor=1.05)
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore:Config.terms")  # Values alone.
COEF, RATE, WIDE, NARROW = 0.7, 2.0, 1e6, 0.02
GATE = ClipGate(warmup_updates=2.0, threshold=0.2)
GATES = ("active", "warmup_active", "ev_gate_active", "last_ev")
update = telling(
    *(f"train/vf_clip_{name}" for name in GATES),
    *(f"train/twin_critics/critic_{i}_loss" for i in (1, 2)),
    "train/value_clip_fraction",
    "train/cvar_predicted",
    "train/cvar_estimate",
    "train/advantages_std_raw",
    "train/explained_variance",
)
FORESEEN = terms.CVaRConstraint(
    0.4, limit=5.0, learning_rate=0.1, max_dual=9.0, estimate=terms.Predicted()
)


def clipping(critic, eps):
    """Twins of a kind that learn nothing but values, and report what they predict.

    Those of one number clip where a gate is open.
    """
    gate = None if critic.distributional else GATE
    value = terms.Value(coef=COEF, clip_eps=eps, gate=gate)
    silent = terms.PredictedCVaR(coef=0.0, alpha=0.4)
    sgd = optimizers.Sgd(learning_rate=RATE, max_grad_norm=None)
    objective = (value, silent, FORESEEN) if critic.distributional else (value, silent)
    return experiment(critic=critic, num_critics=2, terms=objective, optimizer=sgd)


def known(run, updates, value, is_known=True):
    """The run after so many updates, whose critics are known to explain a share."""
    explained = Known(jnp.float32(value), jnp.array(is_known))
    gated, *others = run.learner.memories
    gated = gated._replace(updates=jnp.int32(updates), explained_variance=explained)
    return run.replace(learner=run.learner.replace(memories=(gated, *others)))


class ByHand:
    """The clipped objective of one kind of critic, from its definition."""

    def __init__(self, critic, eps, examples, params):
        self.critic, self.eps, self.examples = critic, eps, examples
        self.old = self.law(examples.outputs(params))
        self.target = examples.reward[:, None]

    def law(self, outputs):
        """Outcomes and probabilities, `[..., N]`."""
        size = outputs.shape[-1]
        if not isinstance(self.critic, critics.Categorical):
            return outputs, np.full(outputs.shape, 1 / size)
        probs = np.exp(outputs) / np.exp(outputs).sum(axis=-1, keepdims=True)
        atoms = np.linspace(self.critic.v_min, self.critic.v_max, size)
        return np.broadcast_to(atoms, outputs.shape), probs

    def clipped(self, law):
        (z, p), (old, old_p) = law, self.old
        clip = self.critic.clip
        if isinstance(clip, critics.PerQuantile):
            return old + np.clip(z - old, -self.eps, self.eps), p
        mean, old_mean = (np.sum(q * x, -1) for x, q in ((z, p), (old, old_p)))
        kept = old_mean + np.clip(mean - old_mean, -self.eps, self.eps)
        deviation = z - mean[..., None]
        if isinstance(clip, critics.MeanAndVariance):
            wide = np.sqrt(np.sum(p * deviation**2, -1) + 1e-8)
            old_deviation = old - old_mean[..., None]
            old_wide = np.sqrt(np.sum(old_p * old_deviation**2, -1) + 1e-8)
            deviation *= np.minimum(1, clip.factor * old_wide / wide)[..., None]
        return kept[..., None] + deviation, p

    def loss(self, law):
        """Per example and critic."""
        z, p = law
        y, size = self.target, z.shape[-1]
        if isinstance(self.critic, critics.Scalar):
            return (y - z[..., 0]) ** 2 / 2
        if isinstance(self.critic, critics.Quantile):
            u, kappa = y[..., None] - z, self.critic.kappa
            huber = np.where(
                np.abs(u) <= kappa, u**2 / 2, kappa * (np.abs(u) - kappa / 2)
            )
            tau = (np.arange(size) + 0.5) / size
            return np.mean(np.abs(tau - (u < 0)) * huber, axis=-1)
        low, high = self.critic.v_min, self.critic.v_max
        atoms = np.linspace(low, high, size)

        def shares(x):
            apart = np.abs(np.clip(x, low, high)[..., None] - atoms)
            return np.maximum(0, 1 - apart * (size - 1) / (high - low))

        projected = np.maximum(np.sum(p[..., None] * shares(z), axis=-2), 1e-8)
        return -np.sum(shares(y) * np.log(projected), axis=-1)

    def losses(self, params):
        law = self.law(self.examples.outputs(params))
        return self.loss(law), self.loss(self.clipped(law))

    def of_each_critic(self, params):
        worse = np.maximum(*self.losses(params))
        return [self.examples.mean(worse[:, critic]) for critic in range(2)]

    def objective(self, params):
        return COEF * np.mean(self.of_each_critic(params))

    def clip_fraction(self, params):
        free, clipped = self.losses(params)
        bound = (clipped > free * (1 + 1e-5)).mean(axis=-1)
        return self.examples.mean(bound)

    def cvar(self, params):
        """Of the critic with the least mean, never clipped."""
        z, p = self.law(self.examples.outputs(params))
        least = np.argmin(np.sum(p * z, -1), axis=-1)[:, None, None]
        z, p = (np.take_along_axis(x, least, 1)[:, 0] for x in (z, p))
        order = np.argsort(z, axis=-1)
        z, p = (np.take_along_axis(x, order, -1) for x in (z, p))
        below = np.cumsum(p, axis=-1)
        share = np.minimum(below, 0.4) - np.minimum(below - p, 0.4)
        return self.examples.mean(np.sum(share * z, axis=-1) / 0.4)


@pytest.mark.parametrize("critic", KINDS.values(), ids=KINDS)
def test_clipped_updates_by_hand(critic):
    """PROP-12.1, PROP-12.4, PROP-12.5, PROP-12.6, PROP-12.9, PROP-12.10.

    R-D1, R-A19, R-E2, PROP-13.14, R-D19, X6.

    Three steps of twins, with weights.

    Each critic stays close to its own old prediction, targets are never clipped, the
    worse loss counts per critic and example, and a wide range is none at all. What
    predictions are used for besides is not clipped. A constraint on what is predicted
    follows its mean over all examples and steps of the update.
    """
    run = first(clipping(critic, WIDE))
    if not critic.distributional:
        run = known(run, updates=9, value=0.9)
    moved = {}
    for eps in (WIDE, NARROW):
        before = with_numbers(run, clipping(critic, eps))
        after, metrics, steps = update(before)
        examples = Examples(before, steps)
        params = as_float64(before.learner.params)
        hand = ByHand(critic, eps, examples, params)
        trail = descend(hand.objective, params, RATE, steps=3)
        moved[eps] = after.learner.params["critic"]["heads"]["head"]
        for name, leaf in trail[-1]["critic"]["heads"]["head"].items():
            np.testing.assert_allclose(moved[eps][name], leaf, atol=1e-4)
        fraction = np.mean([hand.clip_fraction(params) for params in trail[:3]])
        said = metrics["train/value_clip_fraction"]
        np.testing.assert_allclose(said, fraction, atol=1e-6)
        assert (fraction > 0.01) == (eps < WIDE)
        each = np.mean([hand.of_each_critic(params) for params in trail[:3]], axis=0)
        said = [metrics[f"train/twin_critics/critic_{i}_loss"] for i in (1, 2)]
        np.testing.assert_allclose(said, each, rtol=1e-4)
        assert abs(each[0] - each[1]) > 1e-3 * each[0]
        if not isinstance(critic, critics.Scalar):
            cvar = np.mean([hand.cvar(params) for params in trail[:3]])
            np.testing.assert_allclose(metrics["train/cvar_predicted"], cvar, atol=1e-4)
            np.testing.assert_allclose(metrics["train/cvar_estimate"], cvar, atol=1e-4)
            dual = 0.1 * (5.0 - cvar) / metrics["train/advantages_std_raw"]
            np.testing.assert_allclose(after.learner.memories[2], dual, rtol=1e-4)
    apart = np.abs(moved[WIDE]["kernel"] - moved[NARROW]["kernel"])
    assert (apart.max(axis=(1, 2)) > 1e-3).all(), "a critic was never clipped"


@pytest.mark.parametrize(
    ("updates", "value", "is_known", "warmup", "poor"),
    [
        (1, 0.9, True, True, False),
        (1, 0.1, True, True, True),
        (2, 0.9, True, False, False),
        (9, 0.9, False, False, True),
        (9, 0.2, True, False, False),
        (9, 0.19, True, False, True),
    ],
)
def test_gates_of_a_real_update(updates, value, is_known, warmup, poor):
    """PROP-12.11: after the warm-up, if the critic is known to explain enough."""
    clips = not warmup and not poor
    run = known(first(clipping(KINDS["scalar"], NARROW)), updates, value, is_known)
    after, metrics, _ = update(run)
    assert (metrics["train/value_clip_fraction"] > 0) == clips
    said = [metrics[f"train/vf_clip_{name}"] for name in GATES]
    last = value if is_known else np.nan
    np.testing.assert_allclose(said, [clips, warmup, poor, last])
    new = after.learner.memories[0]
    assert new.updates == updates + 1 and new.explained_variance.known
    explained = metrics["train/explained_variance"]
    assert new.explained_variance.value == explained
