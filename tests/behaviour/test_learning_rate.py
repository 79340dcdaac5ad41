"""A learning rate that follows the divergence, step by step, in float64 by hand."""

import chex
import numpy as np
import pytest
from tabular import Examples, as_float64, descend, experiment, first, telling

import ppo_jax
from ppo_jax import terms
from ppo_jax.config import Config
from ppo_jax.controllers import ClosedForm
from ppo_jax.optimizers import Adam, KlAdaptive, Sgd
from ppo_jax.schedules import Constant

pytestmark = pytest.mark.filterwarnings("ignore:Config.terms. none says what")
RATE, EPOCHS = 0.5, 4
update = telling("train/learning_rate", "train/kl")


def adaptive(target):
    rule = KlAdaptive(target, band=1.2, step=1.6, cap=2.0, divergence=ClosedForm())
    optimizer = Sgd(RATE, None, Constant(), kl_adaptive=rule)
    return first(
        experiment(terms=(terms.Entropy(1.0),), optimizer=optimizer, num_epochs=EPOCHS)
    )


def by_hand(run, steps, target, rate):
    """The rates of an update's steps, divergences before them, and the last policy."""
    data, params = Examples(run, steps), as_float64(run.learner.params)
    old, rates, divergences = data.log_probs(params), [], []

    def flat(params):
        log_probs = data.log_probs(params)
        return data.mean((np.exp(log_probs) * log_probs).sum(axis=-1))

    for _ in range(EPOCHS):
        apart = np.exp(old) * (old - data.log_probs(params))
        divergences.append(data.mean(apart.sum(axis=-1)))
        if divergences[-1] > 1.2 * target:
            rate = max(rate / 1.6, 0.01 * RATE)
        elif divergences[-1] < target / 1.2:
            rate = min(rate * 1.6, 2.0 * RATE)
        rates.append(rate)
        params = descend(flat, params, rate, steps=1)[-1]
    return rates, divergences, params["actor"]


@pytest.mark.parametrize(
    ("target", "first_rates"),
    [(1e-4, (1.6, 1, 1 / 1.6, 1 / 1.6**2)), (0.3, (1.6, 2, 2, 2))],
)
def test_each_step_is_as_long_as_the_divergence_before_it_says(target, first_rates):
    """The rate grows before the first step; then it falls, or grows up to its cap.

    The next update goes on with the rate of the last one.
    """
    run, rate, all_rates = adaptive(target), RATE, []
    for _ in range(3):
        before = run
        run, metrics, steps = update(before)
        rates, divergences, actor = by_hand(before, steps, target, rate)
        rate, all_rates = rates[-1], [*all_rates, *rates]
        told = metrics["train/learning_rate"], metrics["train/kl"]
        np.testing.assert_allclose(told[0], rate, rtol=1e-6)
        np.testing.assert_allclose(told[1], np.mean(divergences), rtol=2e-3)
        chex.assert_trees_all_close(
            run.learner.params["actor"], actor, rtol=0, atol=2e-5
        )
    np.testing.assert_allclose(all_rates[:EPOCHS], RATE * np.array(first_rates))


@pytest.mark.slow
@pytest.mark.parametrize("rule", [None, KlAdaptive(cap=1000.0)], ids=["", "adaptive"])
def test_a_rate_that_is_far_too_small_is_found_to_be(rule):
    """CartPole is solved from a hundredth of a good rate, as it is from a good one."""
    ends = ppo_jax.fit_all(
        Config(
            env="CartPole-v1",
            num_envs=16,
            total_timesteps=150_000,
            seed=seed,
            optimizer=Adam(rate, schedule=Constant(), kl_adaptive=rule),
        )
        for rate in (1e-5, 1e-3)
        for seed in (0, 1)
    )
    *slow, fast, faster = (end.evaluate(episodes=32)["mean"] for end in ends)
    assert min(fast, faster) >= 475
    assert (min(slow) >= 475) if rule else (max(slow) < 200)
