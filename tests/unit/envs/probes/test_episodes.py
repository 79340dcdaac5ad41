"""Episodes whose values and memories are known beforehand."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.component import replace_at
from ppo_jax.envs import probes


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
        (lambda: probes.Accumulator(limit=0), "Accumulator.limit"),
        (lambda: probes.TimeLimitChain(negative=2.0), "TimeLimitChain.negative"),
    ],
)
def test_impossible_probes_are_refused(make, field):
    with pytest.raises(ValueError, match=field):
        make()
