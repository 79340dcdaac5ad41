"""Episodes of one step pay what their docstrings promise."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.envs import probes

NUM_EPISODES = 2048


def outcomes(env, policy, key):
    """First steps of many episodes, the action from the first observation and a key."""

    @jax.jit
    def run(keys):
        def episode(key):
            key_reset, key_act, key_step = jax.random.split(key, 3)
            obs, state = env.reset(key_reset)
            action = policy(key_act, obs, env.action_mask(state))
            return env.transition(key_step, state, action)[0]

        return jax.vmap(episode)(keys)

    return jax.device_get(run(jax.random.split(key, NUM_EPISODES)))


def always(action):
    return lambda key, obs, mask: jnp.asarray(action)


def at_random(*nvec):
    shape = () if len(nvec) == 1 else (len(nvec),)
    return lambda key, obs, mask: jax.random.randint(key, shape, 0, jnp.array(nvec[0]))


def last_allowed(key, obs, mask):
    return jnp.max(jnp.where(mask, jnp.arange(mask.size), 0))


def any_allowed(key, obs, mask):
    return jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf))


def digits(key, obs, mask):
    return jnp.argmax(obs.reshape(2, 3), axis=1)


def first_digit(key, obs, mask):
    return digits(key, obs, mask).at[1].set(0)


def pointed_bit(key, obs, mask):
    left, right = obs["bits"]["left"][0], obs["bits"]["right"][0]
    return jnp.where(obs["which"][0] == 0, left, right).astype(jnp.int32)


def left_bit(key, obs, mask):
    return obs["bits"]["left"][0].astype(jnp.int32)


def quadrant(key, obs, mask):
    lit = jnp.stack([obs[3:].sum(), obs[:, 3:].sum()]).astype(jnp.int32)
    return 2 * lit[0] + lit[1]


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
        (probes.Target(size=2), lambda key, obs, mask: obs, 0.0),
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
