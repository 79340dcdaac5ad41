"""Faults strike where and when they are told to, and nobody else."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import envs
from ppo_jax.component import replace_at
from ppo_jax.envs import probes
from ppo_jax.envs.env import NEVER

STEPS, NUM_ENVS = 12, 3


@jax.jit
def record(env, start, key):
    """Runs of `NUM_ENVS` environments whose faults begin at `start` `[B]`."""
    key_reset, key_steps = jax.random.split(key)

    def step(state, keys):
        actions = jnp.zeros(NUM_ENVS, jnp.int32)
        timestep, state = jax.vmap(env.step)(keys, state, actions)
        return state, timestep

    _, state = jax.vmap(env.reset)(jax.random.split(key_reset, NUM_ENVS))
    state = state._replace(start=start)
    return jax.lax.scan(step, state, jax.random.split(key_steps, (STEPS, NUM_ENVS)))[1]


CHAIN = probes.TimeLimitChain(limit=4, negative=0.5)
ONLY_1 = jnp.array([NEVER, 5, NEVER])


@pytest.mark.parametrize(
    ("field", "where", "length"),
    [
        ("reward", ["reward"], 1),
        ("obs", ["obs", "final_obs"], 1),
        ("obs", ["obs", "final_obs"], 3),
        ("reward", ["reward"], NEVER),
    ],
)
def test_one_environment_of_many_breaks(key, field, where, length):
    """The others' results are the same, bit for bit."""
    env = envs.Faulty(CHAIN, rate=0.0, steps=length, **{field: np.nan})
    broken = jax.device_get(record(env, ONLY_1, key))
    healthy = jax.device_get(record(env, jnp.full(3, NEVER), key))
    expected = jax.tree.map(np.copy, healthy)
    for name in where:
        getattr(expected, name)[5 : 5 + length, 1] = np.nan
    chex.assert_trees_all_equal(broken, expected)


def test_a_broken_state_stays_broken_until_the_episode_ends(key):
    """The chain's sign, a float of its state, multiplies all rewards that follow."""
    env = envs.Faulty(CHAIN, rate=0.0, state=np.nan)
    run = jax.device_get(record(env, ONLY_1, key))
    assert np.flatnonzero(np.isnan(run.reward[:, 1])).tolist() == [6, 7]
    assert np.isnan(run.final_obs[6:8, 1]).all()
    chex.assert_tree_all_finite(run.obs[7, 1])  # A new episode heals it.
    chex.assert_tree_all_finite(np.delete(run.reward, 1, axis=1))


def test_any_number_can_be_added(key):
    env = envs.Faulty(CHAIN, reward=np.inf, obs=100.0, rate=0.0)
    run = jax.device_get(record(env, ONLY_1, key))
    assert np.isposinf(run.reward[5, 1]) and run.final_obs[5, 1] > 90


def test_the_rate_is_a_number_of_each_member(key):
    members = jax.tree.map(lambda x: jnp.full(3, x), envs.Faulty(CHAIN, after=2))
    members = replace_at(members, "rate", jnp.array([0.0, 0.5, 1.0]))
    keys = jax.random.split(key, 64)
    states = jax.vmap(lambda env: jax.vmap(env.reset)(keys)[1])(members)
    struck = (states.start == 2).mean(axis=1)
    assert struck[0] == 0 and 0.3 < struck[1] < 0.7 and struck[2] == 1


def test_the_clock_outlives_episodes_and_check_can_be_told_so():
    env = envs.Faulty(CHAIN, rate=0.0)
    with pytest.raises(ValueError, match=r"state\.clock: got .* after an end"):
        envs.check(env, steps=32)
    envs.check(env, steps=32, carried=("state.clock",))


@pytest.mark.parametrize("wrong", [{"rate": 1.5}, {"after": -1}, {"steps": 0}])
def test_impossible_faults_are_refused(wrong):
    with pytest.raises(ValueError, match=f"Faulty.{next(iter(wrong))}"):
        envs.Faulty(CHAIN, **wrong)


def test_masks_pass_through(key):
    env = envs.Faulty(probes.MaskedBandit())
    _, state = env.reset(key)
    assert env.action_mask(state)[0]
