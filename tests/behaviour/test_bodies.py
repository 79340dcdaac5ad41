"""Suites of rigid bodies, on a puck that is pushed over a floor.

What is expected are steps of the suites, and of MuJoCo, without anything of ours.
"""

import dataclasses
import functools
import importlib

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bodies import by_hand, played
from runs import assert_same, command, rows

from ppo_jax import Config, envs, networks
from ppo_jax.component import as_arrays, numbers, replace_at
from ppo_jax.envs import ResetPool
from ppo_jax.envs.brax import Brax
from ppo_jax.envs.physics import Physics
from ppo_jax.envs.playground import Playground
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ONES = Physics(gravity=1.0, friction=1.0, mass=1.0)


def world():
    """The module needs MuJoCo."""
    return importlib.import_module("puck")


@functools.cache
def puck(suite):
    if suite == "brax":
        world().register_in_brax()
        return Brax("puck", {"episode_length": 6}, backend="mjx")
    world().register_in_playground()
    return Playground("Puck")


@pytest.fixture(params=["playground", "brax"])
def env(request):
    """Suites add axes as they like."""
    pytest.importorskip({"playground": "mujoco_playground"}.get(request.param, "brax"))
    with jax.numpy_rank_promotion("allow"):
        yield puck(request.param)


@functools.cache
def pushes(count=48):
    """Keys and actions."""
    keys = jax.random.split(jax.random.key(3), count + 1)
    return keys, jax.random.uniform(jax.random.key(4), (count, 1), minval=-1.0)


@functools.cache
def pushed(env):
    return played(env, *pushes())


def test_an_episode_is_steps_of_the_suite(env):
    """Bit for bit, with what was truly seen last, and both ends."""
    expected = by_hand(env, env._load().env, *pushes())
    chex.assert_trees_all_equal(pushed(env), expected)
    _, _, _, terminated, truncated = expected
    assert (terminated & ~truncated).any() and (truncated & ~terminated).any()


def test_a_factor_of_one_changes_no_bit(env):
    chex.assert_trees_all_equal(
        pushed(dataclasses.replace(env, physics=ONES)), pushed(env)
    )


@jax.jit
def slid(env, key, actions):
    """Where transitions lead, from the start that a key draws."""

    def step(state, action):
        timestep, state = env.transition(key, state, action)
        return state, jnp.concatenate([timestep.obs["place"], timestep.obs["speed"]])

    obs, state = env.reset(key)
    return obs, jax.lax.scan(step, state, actions)[1]


FACTORS = [("gravity", 0.5), ("friction", 2.0), ("mass", 3.0)]


@pytest.mark.parametrize(("name", "factor"), FACTORS)
def test_a_factor_is_what_mujoco_obeys(env, name, factor):
    """A number: one program, against models of MuJoCo's that have other constants."""
    numbered = as_arrays(dataclasses.replace(env, physics=ONES))
    numbered = replace_at(numbered, f"physics.{name}", jnp.float32(factor))
    actions = jnp.full((12, 1), 0.7)
    obs, seen = slid(numbered, jax.random.key(0), actions)
    beginning = obs["place"], obs["speed"], actions
    expected = world().by_mujoco(*beginning, **{name: factor})
    chex.assert_trees_all_close(seen, np.float32(expected), rtol=0, atol=1e-5)
    assert np.abs(seen - world().by_mujoco(*beginning)).max() > 0.1


def test_what_is_paid_is_a_number(env):
    """A setting in a group of Playground's, an argument of Brax's."""
    name, group = "speed", {"pays": {"scales": {"speed": 1.0}}}
    if isinstance(env, Brax):
        name, group = "speed_weight", {"episode_length": 6, "speed_weight": 1.0}
    paid = dataclasses.replace(env, params=group)
    (path,) = numbers(paid)
    assert path.endswith(name)
    *_, once, _, _ = pushed(env)
    *_, thrice, _, _ = pushed(replace_at(paid, path, 3.0))
    np.testing.assert_allclose(thrice, 3 * np.asarray(once), rtol=1e-6)


def test_members_are_spread_over_factors_and_environments_too(env):
    """Members of one program differ in the number alone, and move differently."""
    physics = Physics(gravity=1.0, friction=1.0, spread=0.0)
    config = Config(
        ResetPool(dataclasses.replace(env, physics=physics), size=2),
        num_envs=2,
        num_steps=8,
        num_minibatches=1,
        network=networks.ActorCritic(networks.Mlp((4,))),
    )
    for path, values in (
        ("friction", [1.0, 2.0, 1.0, 1.0]),
        ("spread", [0.0, 0.0, 0.0, 0.5]),
    ):
        config = replace_at(config, f"env.env.physics.{path}", jnp.array(values))
    keys = jnp.broadcast_to(jax.random.key(0), 4)
    members = population.init(config, keys)
    members, _ = population.advance(members, Progress.at(np.zeros(1)), jnp.int32(1))
    seen = np.asarray(members.runs.actor.obs["speed"])
    chex.assert_trees_all_equal(seen[0], seen[2])
    for other in (1, 3):
        assert (seen[0] != seen[other]).any(axis=-1).all()


def test_what_check_finds(env):
    spread = dataclasses.replace(ONES, spread=0.2)
    envs.check(dataclasses.replace(env, physics=spread), steps=24)


EXPERIMENT = """
from ppo_jax import Config, networks, optimizers, schedules
from ppo_jax.envs import ResetPool

config = Config(
    ResetPool("{env}", size=1),
    num_envs=2,
    num_steps=8,
    num_minibatches=1,
    num_epochs=1,
    phase_updates=1,
    eval_phases=1,
    eval_episodes=2,
    network=networks.ActorCritic(networks.Mlp((4,))),
    optimizer=optimizers.Adam(schedule=schedules.Constant()),
)
"""
LIMIT = ("--env.env.params.episode-length", 12)


@pytest.mark.parametrize(
    ("suite", "env_id"),
    [
        ("mujoco_playground", "playground/CartpoleBalance"),
        ("brax", "brax/inverted_pendulum"),
        ("brax", "brax/fast"),
    ],
)
def test_half_the_budget_and_then_the_rest(tmp_path, suite, env_id):
    """Bit for bit, by the command, with a limit that is given to it."""
    pytest.importorskip(suite)
    path, whole, halves = (tmp_path / name for name in ("the.py", "whole", "halves"))
    path.write_text(EXPERIMENT.format(env=env_id))
    for run_dir, *options in (
        (whole, "--total-timesteps", 64),
        (halves, "--total-timesteps", 32),
        (halves, "--total-timesteps", 64, "--resume"),
    ):
        options += LIMIT
        done = command("train", path, "--run-dir", run_dir, *options, timeout=1200)
        assert done.returncode == 0, done.stderr
    with jax.numpy_rank_promotion("allow"):  # Suites broadcast.
        assert_same(whole, halves)
    assert any(row["rollout/ep_len_mean"] for row in rows(whole))  # Some have ended.
    assert not any(row["error/quarantined_steps"] for row in rows(whole))
