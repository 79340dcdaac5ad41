"""Wrappers around environments of every kind."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import envs
from ppo_jax.component import component, numbers
from ppo_jax.envs import probes
from ppo_jax.envs.env import Discrete, Env, outcome
from ppo_jax.envs.faults import Faulty
from ppo_jax.envs.wrappers import TimeLimitState


@component
class Levels(Env):
    """Each episode is one level above the one before, and says which, and the time."""

    @property
    def action_space(self):
        return Discrete(2)

    def reset(self, key):
        return self._begun(0)

    def restart(self, key, state):
        return self._begun(state[0] + 1)

    def transition(self, key, state, action):
        state = state + jnp.array([0.0, 1.0])
        return outcome(state, 1.0), state

    def _begun(self, level):
        state = jnp.array([level, 0.0], jnp.float32)
        return state, state


@component
class Sunken(envs.Wrapper):
    """Starts episodes in its own way: a level below."""

    def reset(self, key):
        obs, state = self.env.reset(key)
        return obs - 1, state - 1


def record(env, steps, key, num_envs=1, action=0):
    """Runs under a constant action, leaves `[T, B, ...]`, as NumPy arrays."""

    @jax.jit
    def run(env, key):
        key_reset, key_steps = jax.random.split(key)

        def step(state, keys):
            actions = jnp.full(num_envs, action)
            timestep, state = jax.vmap(env.step)(keys, state, actions)
            return state, (timestep, state)

        _, state = jax.vmap(env.reset)(jax.random.split(key_reset, num_envs))
        keys = jax.random.split(key_steps, (steps, num_envs))
        return jax.lax.scan(step, state, keys)[1]

    return jax.device_get(run(env, key))


def test_a_time_limit_truncates_and_starts_anew(key):
    """R-A23: the episode begins again right after the step that says it ended."""
    env = envs.TimeLimit(probes.Accumulator(limit=100), 3)
    timestep, state = record(env, 7, key)
    assert np.flatnonzero(timestep.truncated).tolist() == [2, 5]
    assert not timestep.terminated.any()
    assert timestep.final_obs.ravel().tolist() == [2, 3, 4, 2, 3, 4, 2]
    assert timestep.obs.ravel().tolist() == [2, 3, 1, 2, 3, 1, 2]
    assert state.steps.ravel().tolist() == [1, 2, 0, 1, 2, 0, 1]


def test_a_time_limit_counts_again_when_the_environment_ends_first(key):
    env = envs.TimeLimit(probes.Accumulator(limit=2), 3)
    timestep, state = record(env, 6, key)
    assert np.flatnonzero(timestep.truncated).tolist() == [1, 3, 5]
    assert state.steps.ravel().tolist() == [1, 0, 1, 0, 1, 0]


def test_an_end_at_the_time_limit_is_terminated_and_truncated(key):
    env = envs.TimeLimit(probes.RecallCue(delay=0), 2)  # Its episodes have 2 steps.
    timestep, state = record(env, 4, key)
    assert timestep.terminated.ravel().tolist() == [False, True, False, True]
    chex.assert_trees_all_equal(timestep.truncated, timestep.terminated)
    chex.assert_trees_all_equal(state.env.time, state.steps)


def test_episodes_of_any_length_meet_the_same_limit(key):
    env = envs.TimeLimit(probes.RecallCue(delay=4), 4)
    timestep, state = record(env, 64, key, num_envs=4)
    done = timestep.terminated | timestep.truncated
    assert (
        timestep.terminated.any() and (timestep.truncated & ~timestep.terminated).any()
    )
    # Both clocks restart together.
    chex.assert_trees_all_equal(state.env.time, state.steps)
    assert (state.steps[done] == 0).all() and state.steps.max() == 3
    cues = timestep.obs[done][:, :2].sum(axis=1)
    chex.assert_trees_all_equal(cues, 1)  # Seen first.


def test_the_shortest_of_nested_limits_holds(key):
    env = envs.TimeLimit(envs.TimeLimit(probes.Accumulator(limit=9), 2), 5)
    timestep, _ = record(env, 4, key)
    assert np.flatnonzero(timestep.truncated).tolist() == [1, 3]
    assert env.min_steps_to_truncation == env.max_episode_steps == 2


@pytest.mark.parametrize(
    ("env", "least", "most"),
    [
        (envs.TimeLimit(probes.RecallCue(delay=1), 2), 2, 2),
        (envs.TimeLimit(probes.RecallCue(delay=1), 9), 9, 3),
        (envs.TimeLimit(probes.Accumulator(limit=5), 9), 5, 5),
    ],
)
def test_a_time_limit_knows_what_it_promises(env, least, most):
    assert (env.min_steps_to_truncation, env.max_episode_steps) == (least, most)


def test_a_time_limit_around_gymnax(key):
    env = envs.TimeLimit("Pendulum-v1", 5)
    assert (env.min_steps_to_truncation, env.max_episode_steps) == (5, 5)
    envs.check(env, steps=64)


def test_a_limit_is_at_least_one():
    with pytest.raises(ValueError, match=r"TimeLimit\.limit: expected at least 1"):
        envs.TimeLimit(probes.RecallCue(), 0)


def test_masked_observations_keep_their_components(key):
    cue = probes.RecallCue(delay=0, num_cues=3)
    env = envs.MaskObservation(cue, (3, 0))
    timestep, state = record(env, 8, key, num_envs=2)
    whole, same = record(cue, 8, key, num_envs=2)
    chex.assert_trees_all_equal(state, same)
    chex.assert_trees_all_equal(timestep.obs, whole.obs[..., [3, 0]])
    chex.assert_trees_all_equal(timestep.final_obs, whole.final_obs[..., [3, 0]])
    chex.assert_trees_all_equal(timestep.reward, whole.reward)
    first, shown = jax.jit(lambda key: (env.reset(key)[0], cue.reset(key)[0]))(key)
    assert first.tolist() == np.asarray(shown)[[3, 0]].tolist()


def test_cartpole_without_velocities(key):
    env = envs.MaskObservation("CartPole-v1", (0, 2))
    obs, _ = jax.eval_shape(env.reset, key)
    chex.assert_shape(obs, (2,))
    assert env.max_episode_steps == 500


@pytest.mark.parametrize("keep", [(), (0, 0), (4,), (-1,)])
def test_masks_name_components_that_exist(keep):
    with pytest.raises(ValueError, match="distinct components from 0 to 2"):
        envs.MaskObservation(probes.RecallCue(), keep)


@pytest.mark.parametrize("env", [probes.NestedObservation(), probes.GridCue()])
def test_masks_need_flat_observations(env):
    with pytest.raises(ValueError, match="observations of one axis"):
        envs.MaskObservation(env, (0,))


@pytest.mark.parametrize(
    "env",
    [
        Levels(),
        envs.Wrapper(Levels()),
        envs.MaskObservation(Levels(), (0,)),
        envs.TimeLimit(Levels(), 9),
        envs.FrameStack(Levels(), 2),
        Faulty(Levels(), rate=0.0),
        envs.MaskObservation(envs.TimeLimit(Levels(), 9), (0, 1)),
    ],
    ids=repr,
)
def test_a_time_limit_lets_episodes_follow_each_other(env, key):
    """Whatever is between it and the environment whose levels they are."""
    timestep, state = record(envs.TimeLimit(env, 2), 6, key)
    assert timestep.obs[:, 0, 0].tolist() == [0, 1, 1, 2, 2, 3]
    assert timestep.final_obs[:, 0, 0].tolist() == [0, 0, 1, 1, 2, 2]
    if isinstance(env, envs.TimeLimit):
        assert state.env.steps.ravel().tolist() == [1, 0] * 3
    if isinstance(env, Faulty):
        assert state.env.clock.ravel().tolist() == [*range(1, 7)]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_frames_are_the_last_of_their_episode(key, size):
    """Never those of the episode before; at an end they are those that led to it."""
    cue = probes.RecallCue(delay=2)  # Some episodes have 4 steps.
    alone, _ = record(cue, 24, key, num_envs=3)
    stacked, _ = record(envs.FrameStack(cue, size), 24, key, num_envs=3)
    first = jax.vmap(cue.reset)(jax.random.split(jax.random.split(key)[0], 3))[0]
    done = alone.terminated | alone.truncated
    for i in range(3):
        frames = [np.asarray(first[i])] * size
        for t in range(24):
            frames = [*frames[1:], alone.final_obs[t, i]]
            assert stacked.final_obs[t, i].tolist() == np.concatenate(frames).tolist()
            if done[t, i]:
                frames = [alone.obs[t, i]] * size
            assert stacked.obs[t, i].tolist() == np.concatenate(frames).tolist()
    assert done.sum() >= 12 and not done.all()
    for name in ("reward", "terminated", "truncated"):
        chex.assert_trees_all_equal(getattr(stacked, name), getattr(alone, name))


@component
class Counting(Env):
    """Shows the time as a number, and as a grid of bytes."""

    @property
    def action_space(self):
        return Discrete(2)

    def reset(self, key):
        return self._seen(jnp.float32(0)), jnp.float32(0)

    def transition(self, key, state, action):
        return outcome(self._seen(state + 1), 1.0), state + 1

    def _seen(self, time):
        grid = jnp.broadcast_to(jnp.stack([time, time + 100]), (2, 3, 2))
        return {"time": time, "grid": grid.astype(jnp.uint8)}


def test_frames_follow_each_other_along_the_last_axis(key):
    """Features of a grid are those of its cell; bytes stay bytes."""
    timestep, _ = record(envs.FrameStack(Counting(), 3), 2, key)
    assert timestep.obs["time"][:, 0].tolist() == [[0, 0, 1], [0, 1, 2]]
    grids = timestep.obs["grid"][:, 0]
    assert grids.dtype == np.uint8 and grids.shape == (2, 2, 3, 6)
    assert (grids[1] == [0, 100, 1, 101, 2, 102]).all()


def test_stacked_environments_keep_the_protocol():
    envs.check(envs.FrameStack(envs.TimeLimit("Pendulum-v1", 5), 2), steps=32)
    env = envs.TimeLimit(envs.FrameStack(probes.MaskedBandit(), 2), 1)
    envs.check(env, steps=32)


def test_a_stack_has_a_frame():
    with pytest.raises(ValueError, match=r"FrameStack\.size: expected at least 1"):
        envs.FrameStack(probes.RecallCue(), 0)


def test_a_wrapper_that_starts_episodes_itself_starts_them_all(key):
    timestep, _ = record(envs.TimeLimit(Sunken(Levels()), 2), 4, key)
    assert timestep.obs[:, 0, 0].tolist() == [-1, -1, -1, -1]


def test_wrappers_pass_on_numbers_and_masks(key):
    inner = probes.MaskedBandit()
    env = envs.TimeLimit(inner, 1)
    _, state = env.reset(key)
    assert isinstance(state, TimeLimitState)
    chex.assert_trees_all_equal(env.action_mask(state), inner.action_mask(state.env))
    assert env.action_space == inner.action_space
    assert numbers(envs.TimeLimit(probes.TimeLimitChain(), 3)) == {
        "env.negative": 0.0,
        "env.reward": 1.0,
    }


def test_a_wrapper_that_does_nothing_changes_nothing(key):
    inner = probes.RecallCue()
    given, _ = record(envs.Wrapper(inner), 8, key)
    expected, _ = record(inner, 8, key)
    chex.assert_trees_all_equal(given, expected)


def test_wrapped_environments_keep_the_protocol():
    inner = envs.MaskObservation(probes.RecallCue(num_cues=3), (3, 0))
    envs.check(envs.TimeLimit(inner, 3), steps=64)
