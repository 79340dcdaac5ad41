"""Episodes of one step pay what their docstrings promise."""

import chex
import jax
import numpy as np
import pytest

from ppo_jax.envs import Box, MultiDiscrete, probes

NUM_EPISODES = 2048


@jax.jit
def episodes(env, keys, actions):
    """First observations, masks and outcomes of episodes of one step."""

    def episode(key, action):
        key_reset, key_step = jax.random.split(key)
        obs, state = env.reset(key_reset)
        timestep, _ = env.transition(key_step, state, action)
        return obs, env.action_mask(state), timestep

    return jax.vmap(episode)(keys, actions)


def outcomes(env, policy, key):
    """First steps of many episodes, the actions from the first observations.

    One program for all policies of an environment: the first run shows observations.
    """
    keys = jax.random.split(key, NUM_EPISODES)
    space = env.action_space
    if isinstance(space, Box):
        idle = np.zeros((NUM_EPISODES, len(space.low)), np.float32)
    else:
        several = (len(space.nvec),) * isinstance(space, MultiDiscrete)
        idle = np.zeros((NUM_EPISODES, *several), np.int32)
    obs, mask, _ = jax.device_get(episodes(env, keys, idle))
    chosen = np.broadcast_to(policy(obs, mask), idle.shape).astype(idle.dtype)
    return jax.device_get(episodes(env, keys, chosen)[2])


def always(action):
    return lambda obs, mask: action


def at_random(*nvec):
    size = (NUM_EPISODES, *(len(nvec),) * (len(nvec) > 1))
    return lambda obs, mask: np.random.default_rng(0).integers(nvec[0], size=size)


def last_allowed(obs, mask):
    return (mask * np.arange(mask.shape[1])).max(axis=1)


def any_allowed(obs, mask):
    luck = np.random.default_rng(0).uniform(size=mask.shape)
    return np.where(mask, luck, -1).argmax(axis=1)


def digits(obs, mask):
    return obs.reshape(-1, 2, 3).argmax(axis=2)


def first_digit(obs, mask):
    return digits(obs, mask) * [1, 0]


def pointed_bit(obs, mask):
    left, right = (obs["bits"][side][:, 0] for side in ("left", "right"))
    return np.where(obs["which"][:, 0] == 0, left, right)


def left_bit(obs, mask):
    return obs["bits"]["left"][:, 0]


def quadrant(obs, mask):
    down, right = (half.sum(axis=(1, 2, 3)) for half in (obs[:, 3:], obs[:, :, 3:]))
    return 2 * down + right


@pytest.mark.parametrize(
    ("env", "policy", "reward"),
    [
        (probes.IdenticalRewards(), at_random(2), 1.0),
        (probes.RiskyBandit(), always(0), 0.9),
        (probes.RiskyBandit(), always(1), 1.0),
        (probes.NoisyReturns(), always(0), 0.0),
        (probes.MaskedBandit(), last_allowed, 0.5),
        (probes.MaskedBandit(), any_allowed, 0.25),
        (probes.TwoDigits(), digits, 1.0),
        (probes.TwoDigits(), first_digit, 2 / 3),
        (probes.TwoDigits(), at_random(3, 3), 1 / 3),
        (probes.NestedObservation(), pointed_bit, 1.0),
        (probes.NestedObservation(), left_bit, 0.75),
        (probes.NestedObservation(), at_random(2), 0.5),
        (probes.Target(size=2), lambda obs, mask: obs, 0.0),
        (probes.Target(size=2), always([0.0, 0.0]), -2 / 3),
        (probes.GridCue(), quadrant, 1.0),
        (probes.GridCue(), at_random(4), 0.25),
    ],
)
def test_mean_rewards_are_those_promised(key, env, policy, reward):
    run = outcomes(env, policy, key)
    error = run.reward.std() / np.sqrt(NUM_EPISODES)
    assert run.reward.mean() == pytest.approx(reward, abs=4 * error + 1e-6)
    assert run.terminated.all() and not run.truncated.any()


def test_the_risky_arm_has_the_tail_of_its_docstring(key):
    """PROP-13.15 needs arms whose order CVaR turns round."""
    reward = np.sort(outcomes(probes.RiskyBandit(), always(1), key).reward)
    assert reward[0] == -10 and reward[-1] == pytest.approx(1.5789, abs=1e-4)
    assert (reward == -10).mean() == pytest.approx(0.05, abs=0.02)


def test_noisy_returns_have_normal_quantiles(key):
    run = outcomes(probes.NoisyReturns(), always(0), key)
    for spread in (0.5, 2.0):
        returns = run.reward[run.obs[:, 0] == spread] / spread
        assert len(returns) > NUM_EPISODES / 3
        levels = np.quantile(returns, [0.1, 0.5, 0.9])
        chex.assert_trees_all_close(
            levels, np.array([-1.2816, 0, 1.2816]), rtol=0, atol=0.15
        )


def test_a_reward_above_one_proves_that_a_mask_was_ignored(key):
    assert outcomes(probes.MaskedBandit(), at_random(5), key).reward.max() == 10
    assert outcomes(probes.MaskedBandit(), any_allowed, key).reward.max() <= 1


@pytest.mark.parametrize(("arm", "seen", "weighed"), [(0, 50, 0), (1, -49.5, 1)])
def test_hidden_steps_say_the_opposite(key, arm, seen, weighed):
    run = outcomes(probes.HiddenSteps(), always(arm), key)
    assert run.reward.mean() == pytest.approx(seen, abs=6)
    assert np.average(run.reward, weights=run.weight) == weighed


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: probes.MaskedBandit(1), "MaskedBandit.num_actions"),
        (lambda: probes.RiskyBandit(chance=1.0), "RiskyBandit.chance"),
    ],
)
def test_impossible_probes_are_refused(make, field):
    with pytest.raises(ValueError, match=field):
        make()
