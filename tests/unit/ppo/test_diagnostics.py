"""Metrics of real updates against numbers from elsewhere."""

import functools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brief import experiment
from tabular import drawn

from ppo_jax import networks, optimizers
from ppo_jax.component import component, replace_at
from ppo_jax.critics import Quantile, Scalar
from ppo_jax.envs.env import Box
from ppo_jax.envs.probes import IdenticalRewards, TimeLimitChain
from ppo_jax.host.metrics.catalogue import summarize
from ppo_jax.ppo import diagnostics, learner, rollout
from ppo_jax.schedules import Progress
from ppo_jax.state import Trajectory

NAN = math.nan
iteration = jax.jit(learner.iteration)


def norm(*trees):
    leaves = [np.asarray(x, np.float64) for x in jax.tree.leaves(trees)]
    return np.sqrt(sum(np.sum(x**2) for x in leaves))


def agent(memory, shared=False):
    """What acts and what judges may share all but their heads."""
    torso = networks.Mlp(hidden=(8,))
    return networks.ActorCritic(
        torso=torso, memory=memory, critic_hidden=(4,), shared=shared
    )


@component
class Reals(TimeLimitChain):
    """Takes any real number for an action."""

    action_space = Box((-2.0,), (2.0,))


@functools.cache
def begun(network, critic):
    """A run before a step of length one along the gradient."""
    config = experiment(
        Reals(limit=5, negative=0.5),
        num_epochs=1,
        num_minibatches=1,
        network=network,
        critic=critic,
        num_critics=2,
        optimizer=optimizers.Sgd(learning_rate=1.0),
    )
    return drawn(config)


def one_update(bound, network, critic):
    """How parameters moved in that step."""
    run = begun(network, critic)
    path, bound = "optimizer.max_grad_norm", jnp.float32(bound)
    config = replace_at(run.learner.config, path, bound)
    run = run.replace(learner=run.learner.replace(config=config))
    after, said = iteration(run, Progress.at(0.0))
    params = jax.device_get((after.learner.params, run.learner.params))
    moved = jax.tree.map(np.subtract, *params)
    return moved, {name: float(x) for name, x in said.items()}, after.actor.carry


GRU = networks.Gru(size=4, layers=2)


@pytest.mark.parametrize(
    ("memory", "shared", "critic"),
    [(None, False, Quantile(4)), (GRU, False, Scalar()), (GRU, True, Scalar())],
)
def test_norms_of_gradients_are_those_of_the_step(memory, shared, critic):
    """PROP-16.1, PROP-16.2, PROP-16.4, R-B6, R-C7, R-D7, PROP-11.6, X1, X2, X10.

    Groups, critics, carries.
    """
    network = agent(memory, shared)
    moved, said, carry = one_update(1e6, network, critic)
    actor, critics = moved["actor"], moved["critic"]
    each = [jax.tree.map(lambda x, i=i: x[i], critics["heads"]) for i in (0, 1)]
    without = [{k: v for k, v in own.items() if k != "torso"} for own in each]
    trunk = critics.get("trunk", {})
    torsos = (trunk.get("torso", ()), [own.get("torso", ()) for own in each])
    expected = {
        "grad_norm/actor_mlp": norm(actor["trunk"]["torso"]),
        "grad_norm/policy_head": norm(actor["head"]),
        "grad_norm/log_std": norm(actor["log_std"]),
        "grad_norm/head1": norm(without[0]),
        "grad_norm/head2": norm(without[1]),
    }
    if not shared:
        expected["grad_norm/critic_mlp"] = norm(torsos)
    if memory is not None:
        expected["grad_norm/actor_lstm"] = norm(actor["trunk"]["memory"])
    if "memory" in trunk:
        expected["grad_norm/critic_lstm"] = norm(trunk["memory"])
    groups = {k.removeprefix("train/") for k in said if "/grad_norm/" in k}
    assert groups == expected.keys()
    expected |= {
        "critic1_grad_norm": norm(each[0]),
        "critic2_grad_norm": norm(each[1]),
        "grad_norm_pre_clip": norm(moved),
        "grad_norm_post_clip": norm(moved),
    }
    for name, value in expected.items():
        chex.assert_trees_all_close(said[f"train/{name}"], value, rtol=1e-3)
    total = np.sqrt(sum(said[f"train/{name}"] ** 2 for name in groups))
    chex.assert_trees_all_close(total, said["train/grad_norm_pre_clip"], rtol=1e-5)
    assert said["train/critic1_grad_norm"] != said["train/critic2_grad_norm"]
    assert_carries(said, carry)
    bounded, said, _ = one_update(0.125, network, critic)
    chex.assert_trees_all_close(norm(bounded), 0.125, rtol=1e-3)
    chex.assert_trees_all_close(said["train/grad_norm_post_clip"], 0.125, rtol=1e-6)


def test_every_parameter_learns():
    """PROP-17.4: twin critics, both memories, all layers and log_std."""
    moved, _, _ = one_update(1e6, agent(GRU), Scalar())
    for path, step in jax.tree_util.tree_flatten_with_path(moved)[0]:
        assert np.any(step), jax.tree_util.keystr(path)


def test_parameters_of_no_group_are_the_others():
    """PROP-16.1: nothing is left out."""
    _, said = jax.jit(diagnostics.gradient_norms)({"mine": np.float32([3.0, 4.0])})
    assert said == {"train/grad_norm/other": 5.0, "train/grad_norm_pre_clip": 5.0}


def assert_carries(said, carry):
    found = {name for name in said if name.startswith("lstm/")}
    assert len(found) == 6 * sum(layers != () for layers in dict(carry).values())
    for owner, layers in dict(carry).items():
        for i, x in enumerate(layers):
            name, x = f"lstm/{owner}_layer{i}", np.asarray(x, np.float64)
            lengths = np.sqrt((x**2).sum(axis=-1))
            chex.assert_trees_all_close(said[f"{name}_norm"], lengths.mean(), rtol=1e-5)
            chex.assert_trees_all_close(
                said[f"{name}_mean"], x.mean(), rtol=0, atol=1e-6
            )
            chex.assert_trees_all_close(said[f"{name}_std"], x.std(), rtol=1e-5)
            assert said[f"{name}_std"] > 0


def test_returns_that_differ_little_have_their_deviation():
    """R-E11: of 100 episodes near 10⁵, in two rollouts with means of their own.

    Of sums of 5·10⁶ float32 knows one half, so of each mean a hundredth.
    """
    returns = np.float32(1e5 + np.random.default_rng(0).normal(size=(2, 10, 5)))
    returns[1] += 3
    ended = np.ones((10, 5), bool)
    blank = dict.fromkeys(Trajectory._fields, np.zeros((10, 5), np.float32))
    steps = Trajectory(**blank)._replace(last=ended, valid=ended)
    metrics = jax.jit(diagnostics.rollout_metrics)
    each = [metrics(steps._replace(episode_return=x)) for x in returns]
    said = summarize({name: np.stack([x[name] for x in each]) for name in each[0]})
    want = returns.astype(np.float64).std()
    chex.assert_trees_all_close(said["rollout/ep_rew_std"], want, atol=0.01)


def test_costs_of_steps_without_weight_are_in_no_statistic():
    """R-D11: nor are those that are not finite; 1 and 3 have mean and median 2."""
    blank = dict.fromkeys(Trajectory._fields, np.zeros((5, 1), np.float32))
    cost, weight = np.float32([[1, np.inf, 99, 3, np.nan], [1, 1, 0, 0.5, 0]])
    flags = np.zeros((5, 1), bool)
    steps = Trajectory(**blank)._replace(
        cost=cost[:, None], weight=weight[:, None], last=flags, valid=~flags
    )
    metrics = jax.jit(diagnostics.rollout_metrics)(steps)
    said = summarize({name: np.asarray(x)[None] for name, x in metrics.items()})
    assert said["rollout/cost_mean"] == said["rollout/cost_median"] == 2
    assert said["rollout/cost_invalid"] == 1


def test_both_halves_of_an_lstm_are_its_carry():
    """R-B6, X10: cell and output together."""
    cell, hidden = np.array([[3.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 4.0], [0, 1]])
    said = diagnostics.carry_metrics({"actor": ((jnp.array(cell), jnp.array(hidden)),)})
    assert said["lstm/actor_layer0_norm"] == 3.0
    assert said["lstm/actor_layer0_mean"] == 1.0
    assert diagnostics.carry_metrics(()) == {}


def test_the_largest_log_ratio_of_an_update(monkeypatch):
    """R-E6, R-E11: of all minibatches and parts of them; the mean of the others."""
    unroll = rollout.unroll

    def shifted(*args):
        actor, steps, carries = unroll(*args)
        log_prob = steps.log_prob.at[2, 3].add(7.0)
        return actor, steps._replace(log_prob=log_prob), carries

    monkeypatch.setattr(rollout, "unroll", shifted)
    config = experiment(
        IdenticalRewards(), num_microbatches=2, optimizer=optimizers.Sgd(0.0)
    )
    _, said = iteration(drawn(config), Progress.at(0.0))
    chex.assert_trees_all_close(said["train/log_ratio_max_abs"], 7.0, rtol=1e-5)
    rest = (1 - math.exp(-7)) ** 2 / 64
    chex.assert_trees_all_close(said["train/ratio_var"], rest, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_a_deviation_is_the_same_whatever_weights_are_counted_in(scale):
    """By hand: the mean is 2, Σ w (x − 2)² = 6, and Σ w − Σ w² / Σ w = 2.5."""
    x, weight = jnp.array([1.0, 2.0, 4.0, 9.0]), jnp.array([2.0, 1.0, 1.0, 0.0])
    deviation = diagnostics.deviation(x, weight * scale)
    chex.assert_trees_all_close(deviation, (6 / 2.5) ** 0.5, rtol=1e-6)


def test_statistics_of_scaled_advantages():
    """R-E11: weighted; what has no weight may be anything."""
    advantage = jnp.array([[1.0, -4.0], [3.0, NAN]])
    weight = jnp.array([[1.0, 0.5], [0.5, 0.0]])
    flat = jnp.array([[False, True], [False, True]])
    scaled_metrics = jax.jit(diagnostics.scaled_metrics)
    said = scaled_metrics(advantage, flat, weight)
    mean = (1 - 2 + 1.5) / 2
    spread = ((1 - mean) ** 2 + 0.5 * (4 + mean) ** 2 + 0.5 * (3 - mean) ** 2) / 2
    chex.assert_trees_all_close(said["train/advantages_norm_mean"], mean, rtol=1e-7)
    chex.assert_trees_all_close(
        said["train/advantages_norm_std"], spread**0.5, rtol=1e-7
    )
    assert said["train/advantages_norm_max_abs"] == 4
    assert said["train/advantages_zero_std"] == 0.25
    nothing = scaled_metrics(advantage, flat, jnp.zeros((2, 2)))
    assert all(np.isnan(value) for value in nothing.values())
