"""Every probe has the answer that its docstring states."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import envs
from ppo_jax.component import replace_at
from ppo_jax.envs import probes

HEALTHY = [kind for kind in vars(probes).values() if isinstance(kind, type)]
HEALTHY = [probe() for probe in HEALTHY if not probe.__subclasses__()]
NUM_EPISODES = 2048


@pytest.mark.parametrize("env", HEALTHY, ids=lambda env: type(env).__name__)
def test_a_probe_keeps_the_protocol(env):
    envs.check(env, steps=64)


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


def episodes(env, steps, key, memory=None, recall=None):
    """A run of one environment; `recall(memory)` acts after `memory(h, obs)`."""

    @jax.jit
    def run(env, key):
        key_reset, key_steps = jax.random.split(key)

        def step(carry, key):
            h, obs, state = carry
            h = memory(h, obs) if memory else h
            action = recall(h) if recall else jnp.array(0)
            timestep, state = env.step(key, state, action)
            return (h, timestep.obs, state), (obs, timestep)

        first = (jnp.zeros((), jnp.int32), *env.reset(key_reset))
        return jax.lax.scan(step, first, jax.random.split(key_steps, steps))[1]

    return jax.device_get(run(env, key))


def test_the_accumulator_counts(key):
    """PROP-1.2: values 1, 3, 6, bootstrap 10; a chunk that starts late says 3, 6."""
    seen, run = episodes(probes.Accumulator(limit=3), 6, key)
    assert seen.ravel().tolist() == [1, 2, 3, 1, 2, 3]
    assert run.reward.tolist() == [1, 2, 3, 1, 2, 3]
    assert np.flatnonzero(run.truncated).tolist() == [2, 5]
    values = np.cumsum(seen[:3])
    assert [*values, values[-1] + run.final_obs[2, 0]] == [1, 3, 6, 10]
    assert (1 + np.cumsum(seen[1:3])).tolist() == [3, 6]


def test_a_chain_without_end_is_worth_a_geometric_sum(key):
    seen, run = episodes(probes.TimeLimitChain(limit=4, negative=0.5), 64, key)
    assert np.flatnonzero(run.truncated).tolist() == [*range(3, 64, 4)]
    assert not run.terminated.any()
    assert {*run.reward.tolist()} == {-1.0, 1.0}
    value = run.reward / (1 - 0.9)  # A fixed point of r + γ · V(final_obs).
    chex.assert_trees_all_close(
        run.reward + 0.9 * run.final_obs[:, 0] * 10, value, rtol=1e-7
    )
    chex.assert_trees_all_equal(run.reward, seen[:, 0])
    starts = seen[::4, 0]
    assert (starts != starts[0]).any()


def test_the_scale_of_a_chain_is_a_number_for_each_member(key):
    members = jax.tree.map(lambda x: jnp.full(3, x), probes.TimeLimitChain())
    members = replace_at(members, "reward", jnp.array([1.0, 10.0, 100.0]))

    def first_reward(env):
        return env.step(key, env.reset(key)[1], jnp.array(0))[0].reward

    assert jax.vmap(first_reward)(members).tolist() == [1.0, 10.0, 100.0]


def test_costs_that_are_finite_have_median_and_mean_two(key):
    """R-D11: an environment may report costs that are not finite."""
    _, run = episodes(probes.Costs(), 8, key)
    finite = run.cost[np.isfinite(run.cost)]
    assert len(finite) == 4 and np.median(finite) == finite.mean() == 2
    chex.assert_trees_all_equal(run.reward, 1)


CUE = probes.RecallCue(delay=3, num_cues=2)


def test_a_memory_recalls_the_cue(key):
    def memory(h, obs):
        return jnp.where(obs[:2].any(), jnp.argmax(obs[:2]), h).astype(jnp.int32)

    _, run = episodes(CUE, 256, key, memory, lambda h: h)
    chex.assert_trees_all_equal(run.reward, run.terminated)
    assert not run.truncated.any()


def test_nothing_else_recalls_the_cue(key):
    _, run = episodes(CUE, 1024, key)
    assert run.reward[run.terminated].mean() == pytest.approx(0.5, abs=0.12)
    chex.assert_trees_all_equal(run.reward[~run.terminated], 0)


def test_cue_blanks_and_query_follow_each_other(key):
    """R-A23: a cue is seen after a done flag, and only then."""
    seen, run = episodes(CUE, 256, key)
    is_cue, is_query = seen[:, :2].any(axis=1), seen[:, 2] == 1
    chex.assert_trees_all_equal(is_cue[1:], run.terminated[:-1])
    chex.assert_trees_all_equal(is_query, run.terminated)
    lengths = np.diff(np.flatnonzero(is_cue))
    assert {*lengths.tolist()} == {2, 3, 4, 5}  # Up to `max_episode_steps`.
    assert CUE.max_episode_steps == 5


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: probes.RecallCue(num_cues=1), "RecallCue.num_cues"),
        (lambda: probes.RecallCue(delay=-1), "RecallCue.delay"),
        (lambda: probes.MaskedBandit(1), "MaskedBandit.num_actions"),
        (lambda: probes.RiskyBandit(chance=1.0), "RiskyBandit.chance"),
        (lambda: probes.Accumulator(limit=0), "Accumulator.limit"),
        (lambda: probes.TimeLimitChain(negative=2.0), "TimeLimitChain.negative"),
    ],
)
def test_impossible_probes_are_refused(make, field):
    with pytest.raises(ValueError, match=field):
        make()
