"""An experiment as a whole: what follows from it, and what is refused."""

import dataclasses
import warnings

import chex
import jax
import jax.numpy as jnp
import pytest

from ppo_jax import adversaries, critics, networks, terms
from ppo_jax.component import numbers
from ppo_jax.config import Config
from ppo_jax.controllers import ClosedForm, KlStop
from ppo_jax.critics import MeanOnly
from ppo_jax.envs.probes import IdenticalRewards, NestedObservation
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.pbt import PBT
from ppo_jax.pbt.ranges import LogUniform

SIZES = {
    "env": IdenticalRewards(),
    "num_envs": 4,
    "num_steps": 8,
    "num_epochs": 1,
    "num_minibatches": 1,
    "total_timesteps": 32_000,
}
LSTM = networks.ActorCritic(memory=networks.Lstm(size=8))
RATE = {"optimizer.learning_rate": LogUniform(1e-4, 1e-2)}


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, {"chunk": 1, "steps_per_update": 32, "num_updates": 1000}),
        ({"network": LSTM}, {"chunk": 8}),
        ({"network": LSTM, "chunk_length": 2}, {"chunk": 2}),
        ({"num_envs": 3, "num_steps": 7}, {"steps_per_update": 21}),
        ({"total_timesteps": 63}, {"num_updates": 1}),
        ({}, {"num_members": 1, "reads_old_policy": False}),
        ({"pbt": PBT(RATE, size=5)}, {"num_members": 5}),
        (
            {"early_stop": KlStop(0.1, divergence=ClosedForm())},
            {"reads_old_policy": True},
        ),
        ({"terms": (terms.Surrogate(), terms.Kl())}, {"reads_old_policy": True}),
    ],
)
def test_what_follows_from_an_experiment(changes, known):
    config = Config(**SIZES | changes)
    assert {name: getattr(config, name) for name in known} == known


def test_an_id_is_an_environment():
    assert Config("CartPole-v1").env.action_space.n == 2


def test_numbers_are_floats_and_what_the_host_reads_is_none():
    found = numbers(Config(**SIZES, obs_clip=5.0))
    assert found["gamma"] == 0.99 and found["obs_clip"] == 5.0
    assert not {"num_envs", "seed", "total_timesteps", "stall_seconds"} & found.keys()


def test_the_network_is_that_of_the_environment():
    """Shapes and types of observations, without an environment being run."""
    config = Config(
        **SIZES | {"env": NestedObservation()},
        critic=critics.Quantile(3),
        num_critics=2,
    )
    spec = config.obs_spec()
    chex.assert_trees_all_equal_structs(
        spec, {"bits": {"left": 0, "right": 0}, "which": 0}
    )
    network = config.build()
    params = jax.eval_shape(network.init, jax.random.key(0))
    obs = jax.tree.map(lambda x: jnp.zeros((2, 4, *x.shape), x.dtype), spec)
    out = jax.eval_shape(network.apply, params, (), obs, jnp.zeros((2, 4), bool))
    chex.assert_shape(out.value.outputs, (2, 4, 2, 3))


@pytest.mark.parametrize(
    ("env", "reads", "said"),
    [
        (
            NestedObservation(),
            {"actor_obs": ("bit",)},
            "ActorCritic.actor_obs: no observation is called 'bit'; the closest is "
            "'bits'",
        ),
        (
            NestedObservation(),
            {"critic_obs": ("which", "truth")},
            "ActorCritic.critic_obs: no observation is called 'truth'; there are: ",
        ),
        (
            IdenticalRewards(),
            {"actor_obs": ("which",)},
            "ActorCritic.actor_obs: no observation is called 'which'; only those in a "
            "dictionary have names",
        ),
        (
            NestedObservation(),
            {"critic_obs": ("which",), "shared": True},
            "ActorCritic.critic_obs: expected () where critics share the actor's feat",
        ),
    ],
)
def test_what_is_not_to_be_seen_cannot_be_read(env, reads, said):
    with pytest.raises(ValueError) as refused:
        Config(**SIZES | {"env": env}, network=networks.ActorCritic(**reads))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"num_minibatches": 5}, "num_minibatches"),
        ({"num_minibatches": 8, "num_microbatches": 3}, "num_minibatches"),
        ({"network": LSTM, "chunk_length": 3}, "chunk_length"),
        ({"network": LSTM, "num_minibatches": 8}, "num_minibatches"),
        ({"chunk_length": 0}, "chunk_length"),
        ({"num_epochs": 0}, "num_epochs"),
        ({"total_timesteps": 31}, "total_timesteps"),
    ],
)
def test_shapes_that_do_not_divide_are_errors(changes, named):
    """PROP-15.6: at the config, before anything compiles."""
    with pytest.raises(ValueError, match=named):
        Config(**SIZES | changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gamma": 0.0}, r"Config\.gamma: expected a number in \(0, 1\], got 0.0"),
        ({"gae_lambda": 1.5}, r"gae_lambda: expected a number in \[0, 1\], got 1.5"),
        ({"obs_clip": 0.0}, "obs_clip: expected a number > 0, or None"),
        ({"seed": -1}, "seed: expected 0 to 2³² − 1, got -1"),
        ({"seed": 2**32}, "seed: expected"),
        ({"phase_updates": -1}, "phase_updates: expected at least 0"),
        ({"eval_episodes": 0}, "eval_episodes: expected at least 1"),
        ({"holdout_envs": 4}, "holdout_envs: expected .* less than num_envs = 4"),
        ({"devices_per_member": 3}, "devices_per_member: expected a divisor of num_en"),
        ({"terms": ()}, "terms: expected a term to learn from"),
        ({"terms": (terms.Surrogate(), terms.RobustKL())}, "adversary: expected an"),
        ({"critic": critics.Scalar(clip=MeanOnly())}, "terms: expected a Value term"),
        (
            {"terms": (terms.Surrogate(), terms.Value(clip_eps=0.2))},
            r"Config\.critic\.clip: expected a way of clipping",
        ),
        (
            {"critic": critics.Categorical(), "return_scale": ReturnNormalization()},
            "return_scale: expected None with a Categorical critic",
        ),
        (
            {"network": networks.ActorCritic(torso=networks.Cnn())},
            r"Cnn: expected observations with grids",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(changes, said):
    with pytest.raises(ValueError, match=said):
        Config(**SIZES | changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"terms": (terms.Value(), terms.Entropy())},
            "Config.terms: none says what the policy should do, only Value, Entropy",
        ),
        (
            {"terms": (terms.CVaRConstraint(limit=20.0), terms.Value())},
            "Config.terms: none says what the policy should do, only CVaRConstraint, "
            "Value",
        ),
        (
            {"terms": (terms.Surrogate(), terms.Entropy(), terms.Entropy())},
            "Config.terms: 2 of Entropy add up; metrics are the last's",
        ),
        (
            {"adversary": adversaries.Mixed()},
            "Config.adversary: observations are not normalised (obs_clip is None), so "
            "that its eps is in their own units",
        ),
        (
            {"devices_per_member": 4, "num_minibatches": 16},
            "Config.devices_per_member: 4 devices cannot share 2 chunks of a "
            "minibatch, so each learns from all of them",
        ),
        (
            {"pbt": PBT({"terms.entropy.coef": LogUniform(1e-4, 1e-1)})},
            "Config.pbt.space: without optimizer.learning_rate all members keep the "
            "same one, 0.00025",
        ),
        (
            {"pbt": PBT(RATE, interval=1001)},
            "PBT.interval: 1001 updates, but the run has 1000: there is no generation",
        ),
    ],
)
def test_what_is_odd_is_advised_against_once(changes, said):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Config(**SIZES | changes)
    assert [str(warning.message) for warning in caught] == [said]


def test_a_usual_experiment_is_not_odd():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = Config(**SIZES, pbt=PBT(RATE))
        dataclasses.replace(config, adversary=adversaries.Mixed(), obs_clip=10.0)
