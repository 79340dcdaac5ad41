"""Parameters of gymnax's environments: numbers of the experiment, or structure."""

import dataclasses
import functools
import itertools
import pickle
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import PBT, Config, LogUniform, Uniform, envs, networks
from ppo_jax.component import component, numbers, replace_at
from ppo_jax.host.run_dir import experiment
from ppo_jax.ppo import population, rollout

MOON = envs.Gymnax("CartPole-v1", params={"gravity": 1.62})
GRAVITY = "env.params.gravity"


def cartpole(state, action, gravity):
    """A step of Barto, Sutton and Anderson's cart, by Euler, in float64."""
    _, x_dot, theta, theta_dot = state
    force, sine, cosine = (10.0 if action else -10.0), np.sin(theta), np.cos(theta)
    temp = (force + 0.05 * theta_dot**2 * sine) / 1.1
    turning = (gravity * sine - cosine * temp) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    moving = temp - 0.05 * turning * cosine / 1.1
    change = np.array([x_dot, moving, theta_dot, turning])
    return np.asarray(state) + 0.02 * change


@functools.partial(jax.jit, static_argnums=1)
def fall(env, steps, key):
    """Observations under a constant action, `[T + 1, 4]`."""

    def step(state, key):
        timestep, state = env.step(key, state, jnp.int32(1))
        return state, timestep.final_obs

    obs, state = env.reset(key)
    _, seen = jax.lax.scan(step, state, jax.random.split(key, steps))
    return jnp.concatenate([obs[None], seen])


@pytest.mark.parametrize("gravity", [1.62, 24.79])
def test_a_parameter_is_what_the_environment_obeys(key, gravity):
    """A number: another one is the same program."""
    seen = np.asarray(fall(replace_at(MOON, "params.gravity", gravity), 5, key))
    for before, after in itertools.pairwise(seen):
        chex.assert_trees_all_close(
            after, cartpole(before, 1, gravity), rtol=0, atol=1e-6
        )
    others = cartpole(seen[4], 1, 9.8)
    assert np.abs(seen[5] - others).max() > 1e-4


def test_floats_are_numbers_and_the_rest_is_structure():
    env = envs.Gymnax("CartPole-v1", {"gravity": 5, "max_steps_in_episode": 9.0})
    assert numbers(env) == {"params.gravity": 5.0}
    assert (env.max_episode_steps, env.min_steps_to_truncation) == (9, 9)
    structure = jax.tree.structure
    assert structure(env) == structure(replace_at(env, "params.gravity", 1.0))
    for params in ({"gravity": 5.0}, {"gravity": 5.0, "max_steps_in_episode": 8}):
        assert structure(env) != structure(envs.Gymnax("CartPole-v1", params))
    assert numbers(envs.make("CartPole-v1")) == {}


def test_what_counts_the_steps_of_an_episode_is_structure_wherever_it_is_a_float():
    env = envs.Gymnax("BernoulliBandit-misc", {"max_steps_in_episode": 7})
    assert env.max_episode_steps == 7 and numbers(env) == {}


def test_an_episode_is_as_long_as_it_is_told(key):
    env = envs.Gymnax("Pendulum-v1", params={"max_steps_in_episode": 3})

    def step(state, key):
        timestep, state = env.step(key, state, jnp.zeros(1))
        return state, timestep.truncated

    _, state = env.reset(key)
    _, truncated = jax.lax.scan(step, state, jax.random.split(key, 7))
    assert np.flatnonzero(truncated).tolist() == [2, 5]


def test_environments_with_parameters_are_values():
    assert envs.Gymnax("CartPole-v1", params={"gravity": 1.62}) == MOON
    assert hash(pickle.loads(pickle.dumps(MOON))) == hash(MOON)
    assert eval(repr(MOON), {"Gymnax": envs.Gymnax}) == MOON
    assert dataclasses.replace(MOON, params={}) == envs.make("CartPole-v1")
    plain = dataclasses.replace(envs.make("CartPole-v1"), id="Pendulum-v1")
    assert plain == envs.make("Pendulum-v1")


@pytest.mark.parametrize(
    ("env_id", "params", "error", "said"),
    [
        ("CartPole-v1", {"gravty": 9}, TypeError, "closest is 'gravity'"),
        ("CartPole-v1", {"gravity": "low"}, TypeError, "expected float | None, got"),
        ("CartPole-v1", {"max_steps_in_episode": 1.5}, TypeError, "expected int"),
        ("Asterix-MinAtar", {"ramping": 1}, TypeError, "expected bool"),
        ("PointRobot-misc", {"max_force": 0.2}, ValueError, "leave the actions Box"),
    ],
)
def test_impossible_parameters_are_errors(env_id, params, error, said):
    with pytest.raises(error, match=re.escape(said)):
        envs.Gymnax(env_id, params=params)


def test_a_parameter_is_given_on_the_command_line(tmp_path):
    """Also one that the experiment does not set."""
    path = tmp_path / "experiment.py"
    path.write_text("from ppo_jax import Config\nconfig = Config('CartPole-v1')\n")
    options = ("--env.params.gravity", "5", "--env.params.max-steps-in-episode", "9e0")
    config = experiment.load(path, [*options])
    assert numbers(config)[GRAVITY] == 5.0 and config.env.max_episode_steps == 9


SEARCH = Config(
    MOON,
    num_envs=2,
    num_steps=8,
    network=networks.ActorCritic(networks.Mlp((4,))),
    pbt=PBT(
        {"optimizer.learning_rate": LogUniform(1e-4, 1e-2), GRAVITY: Uniform(1.0, 20.0)}
    ),
)


def test_a_population_is_spread_over_parameters():
    """Members of one program differ in the number alone, and play differently."""
    assert numbers(SEARCH)[GRAVITY] == 1.62
    gravities = jnp.array([1.62, 20.0, 1.62])
    keys = jnp.broadcast_to(jax.random.key(0), 3)
    runs = population.init(replace_at(SEARCH, GRAVITY, gravities), keys).runs
    play = jax.jit(jax.vmap(rollout.unroll))
    actor, *_ = play(runs.learner, runs.actor, runs.key)
    seen = np.asarray(actor.obs)
    chex.assert_trees_all_equal(seen[0], seen[2])
    assert (seen[0] != seen[1]).any(axis=-1).all()


def test_an_end_of_a_search_that_changes_the_actions_is_an_error():
    env = envs.Gymnax("Pendulum-v1", params={"max_torque": 2.0})
    space = {"env.params.max_torque": Uniform(1.0, 4.0)}
    with pytest.raises(ValueError, match=r"PBT.space: .*leave the actions Box"):
        dataclasses.replace(SEARCH, env=env, pbt=PBT(space))


@pytest.mark.parametrize(
    ("env_id", "action"), [("CartPole-v1", 1), ("Pendulum-v1", [0.5])]
)
def test_a_step_of_gymnax_is_a_transition_and_a_reset(key, env_id, action):
    """The same to the bit, over ends of episodes."""
    env = envs.Gymnax(env_id, params={"max_steps_in_episode": 5})

    @jax.jit
    def run(key):
        def one_step(state, key):
            step = env.step(key, state, jnp.array(action))
            return step[1], (step, envs.Env.step(env, key, state, jnp.array(action)))

        _, state = env.reset(key)
        return jax.lax.scan(one_step, state, jax.random.split(key, 16))[1]

    given, expected = run(key)
    chex.assert_trees_all_equal(given, expected)
    assert given[0].truncated.sum() == 3


@pytest.mark.parametrize("env_id", ["DeepSea-bsuite", "CartPole-v1"])
def test_a_step_that_does_more_than_reset_is_no_transition(env_id):
    assert envs.Gymnax(env_id).has_transition == (env_id == "CartPole-v1")


@component
class Generous(envs.Gymnax):
    """Pays ten times as much, and begins at the right."""

    def reset(self, key):
        obs, state = super().reset(key)
        return obs.at[0].set(2.0), dataclasses.replace(state, x=jnp.float32(2.0))

    def transition(self, key, state, action):
        timestep, state = super().transition(key, state, action)
        return timestep._replace(reward=10 * timestep.reward), state


@component
class Whole(envs.Gymnax):
    """The same by a step of its own, which is no transition."""

    def step(self, key, state, action):
        timestep, state = super().step(key, state, action)
        return timestep._replace(reward=10 * timestep.reward), state


def test_a_step_consists_of_what_a_subclass_says(key):
    """So that it is trained in, as it is evaluated in; a step is one if it says so."""
    env = Generous("CartPole-v1")
    assert env.has_transition and not Whole("CartPole-v1").has_transition
    _, state = env.reset(key)
    begun = []
    for _ in range(12):
        timestep, state = env.step(key, state, jnp.int32(1))
        assert timestep.reward == 10
        if timestep.terminated:
            begun.append(float(timestep.obs[0]))
    assert begun and set(begun) == {2.0}
