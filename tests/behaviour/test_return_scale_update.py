"""A moving return scale in real updates of a recurrent network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tabular import drawn

from ppo_jax import critics, networks, optimizers, terms
from ppo_jax.component import replace_at
from ppo_jax.config import Config
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.normalization.return_scale import ReturnNormalization, identity
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress

CRITIC = critics.Quantile(5)
SAID = (
    "return_scale_std",
    "return_scale_mean",
    "advantages_mean_raw",
    "advantages_std_raw",
    "explained_variance",
    "value_pred_mean",
)


@pytest.fixture(scope="module")
def begun():
    """A run before its first update."""
    config = Config(
        env=TimeLimitChain(limit=5, negative=0.5),
        num_envs=4,
        num_steps=8,
        num_epochs=4,
        num_minibatches=1,
        gamma=0.5,
        network=networks.ActorCritic(
            torso=networks.Mlp(hidden=()), memory=networks.Lstm(size=8)
        ),
        critic=CRITIC,
        num_critics=2,
        terms=(terms.Surrogate(), terms.Value()),
        optimizer=optimizers.Adam(learning_rate=1e-2),
        return_scale=ReturnNormalization(min_returns=1),
        total_timesteps=32_000,
    )
    return drawn(config, scale=0.25)


def with_number(run, path, number):
    config = replace_at(run.learner.config, path, jnp.float32(number))
    return run.replace(learner=run.learner.replace(config=config))


@jax.jit
def update(run):
    """The run after an update, and of its metrics those that tests look at."""
    run, metrics = learner.iteration(run, Progress.at(0.0))
    return run, {name: metrics[f"train/{name}"] for name in SAID}


@jax.jit
def predictions(learner):
    """Of both critics, of episodes with either sign, in units of rewards."""
    network = learner.config.build()
    obs = jnp.broadcast_to(jnp.array([[1.0], [-1.0]]), (5, 2, 1))
    reset = jnp.zeros((5, 2), bool)
    out = network.apply(learner.params, network.initial_carry(2), obs, reset)
    return learner.return_scale.decode(out.value.outputs)


def rescaled(old, new, params):
    """Parameters whose critics say under another scale what they said."""
    return networks.map_value_heads(
        params, lambda kernel, bias: CRITIC.rescale(kernel, bias, old, new)
    )


def test_a_new_scale_changes_no_prediction(begun):
    """PROP-3.5, PROP-3.7, R-B1: the scale of the next rollout is another one."""
    run = with_number(begun, "env.reward", 30.0)
    run = with_number(run, "optimizer.learning_rate", 0.0)
    before = predictions(run.learner)
    for _ in range(3):
        old = run.learner.return_scale
        run, metrics = update(run)
        new = run.learner.return_scale
        assert metrics["return_scale_std"] == old.std != new.std
        assert metrics["return_scale_mean"] == old.mean != new.mean
        np.testing.assert_allclose(predictions(run.learner), before, atol=1e-4)


def test_advantages_do_not_depend_on_the_scale(begun):
    """PROP-3.6, R-C3: an equal agent in other units becomes an equal policy."""
    scale = identity().replace(mean=jnp.float32(3.0), std=jnp.float32(7.0))
    params = rescaled(identity(), scale, begun.learner.params)
    other = begun.learner.replace(params=params, return_scale=scale)
    other = begun.replace(learner=other)
    before = predictions(begun.learner)
    np.testing.assert_allclose(predictions(other.learner), before, atol=1e-5)
    (one, said), (other, also) = update(begun), update(other)
    for name in ("advantages_mean_raw", "advantages_std_raw", "explained_variance"):
        np.testing.assert_allclose(said[name], also[name], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        said["value_pred_mean"], also["value_pred_mean"], atol=1e-5
    )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4),
        one.learner.params["actor"],
        other.learner.params["actor"],
    )


def drift(run, popart):
    """Worst relative error of values, `[updates]`, while rewards grow by 100."""
    errors = []
    for reward in np.geomspace(1.0, 100.0, 60):
        old = run.learner.return_scale
        run, _ = update(with_number(run, "env.reward", reward))
        if not popart:
            params = rescaled(run.learner.return_scale, old, run.learner.params)
            run = run.replace(learner=run.learner.replace(params=params))
        value = predictions(run.learner)[-1].mean(axis=-1)
        truth = reward / (1 - 0.5) * np.array([[1.0], [-1.0]])
        errors.append(np.abs(value / truth - 1).max())
    return np.array(errors)


def test_values_follow_returns_that_grow_a_hundredfold(begun):
    """R-B1: errors stay bounded; heads that are not rescaled say far too much."""
    run = begun
    for _ in range(60):
        run, _ = update(run)
    kept, lost = drift(run, popart=True), drift(run, popart=False)
    assert kept.max() < 0.2
    assert lost.max() > 2 * kept.max()
