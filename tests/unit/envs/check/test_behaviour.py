"""What play shows of an environment, one defect at a time."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from walks import Place, Walk, changed, fact, findings, having, stepped

from ppo_jax import envs
from ppo_jax.component import component
from ppo_jax.envs import probes


def at_end(out, there, elsewhere):
    timestep, _ = out
    done = timestep.terminated | timestep.truncated
    return jax.tree.map(lambda a, b: jnp.where(done, a, b), there, elsewhere)


def keeps_time(env, key, before, out):
    """Resets the place and forgets the clock."""
    timestep, state = out
    return timestep, at_end(out, state._replace(time=before.time + 1), state)


def keeps_all(env, key, before, out):
    """Shows a new episode, and goes on with the old one."""
    return out[0], env.transition(key, before, jnp.array(0))[1]


def old_observation(env, key, before, out):
    timestep, state = out
    return timestep._replace(obs=timestep.final_obs), state


def late_final_observation(env, key, before, out):
    timestep, state = out
    return timestep._replace(final_obs=timestep.obs), state


def other_final_observation(env, key, before, out):
    timestep, state = out
    return timestep._replace(final_obs=timestep.final_obs + 1), state


def same_key_for_all(env, key, before, out):
    timestep, state = out
    obs, state = at_end(out, env.reset(jax.random.key(0)), (timestep.obs, state))
    return timestep._replace(obs=obs), state


@pytest.mark.parametrize(
    ("env", "finding"),
    [
        (stepped(keeps_time), r"state\.time: got 4 after an end, expected 0 to 0"),
        (stepped(keeps_all), r"state\.time: got 4 after an end"),
        (stepped(late_final_observation), "final_obs: got the next episode's first"),
        (stepped(other_final_observation), r"final_obs: got .* no episode ended there"),
        (stepped(same_key_for_all), "new episodes that begin alike"),
    ],
)
def test_a_wrong_reset_is_found(env, finding):
    """R-A23: an end, and nothing else, separates episodes."""
    with pytest.raises(ValueError, match=finding):
        envs.check(env, steps=32)


def test_an_observation_from_before_the_reset_is_found_if_it_lies_far_out():
    far = dataclasses.replace(stepped(old_observation), stride=5.0)
    assert "obs: got" in findings(far)


@pytest.mark.parametrize(
    ("env", "finding"),
    [
        (having(min_steps_to_truncation=fact(5)), "got a truncation after 4 steps"),
        (having(max_episode_steps=fact(3)), "max_episode_steps: got an episode of 4"),
        (changed(reward=lambda t: t.reward / 0), "reward: got inf at step 0 of"),
        (changed(weight=lambda t: t.weight * jnp.nan), "weight: got nan at step 0"),
        (changed(weight=lambda t: -t.weight), "weight: got -1, expected at least 0"),
        (changed(obs=lambda t: t.obs / 0), r"final_obs: got inf"),
        (
            having(action_mask=lambda self, state: jnp.arange(3) < 3 - state.time),
            "no allowed action before step 3",
        ),
    ],
)
def test_a_promise_that_play_breaks_is_found(env, finding):
    assert finding in findings(env)


def test_a_first_observation_that_is_not_finite_is_found():
    def reset(self, key):
        obs, state = Walk.reset(self, key)
        return obs * jnp.nan, state

    assert "reset: obs: got nan" in findings(having(reset=reset))


def test_results_that_differ_from_run_to_run_are_found():
    rng = np.random.default_rng(0)

    def reward(t):
        return jax.pure_callback(
            lambda _: np.float32(rng.normal()),
            t.reward,
            t.obs,
            vmap_method="sequential",
        )

    assert "other results from the same keys" in findings(changed(reward=reward))


def test_it_plays_to_the_limit_that_the_environment_states():
    """R-A23: a clock that no reset restarts shows after 300 steps, not before."""

    @component
    class Long(Walk):
        @property
        def min_steps_to_truncation(self):
            return 300

        @property
        def max_episode_steps(self):
            return 300

        def step(self, key, state, action):
            before = state.time
            timestep, state = self.transition(key, state, action)
            over = before >= 299
            obs, new = self.reset(key)
            obs = jnp.where(over, obs, timestep.obs)
            at = jnp.where(over, new.at, state.at)
            timestep = timestep._replace(obs=obs, truncated=over)
            return timestep, Place(at, before + 1)

    with pytest.raises(ValueError, match=r"state\.time: got 300 after an end"):
        envs.check(Long())


@component
class Echo(envs.Env):
    """Shows the action, which may be any number that a float32 holds."""

    @property
    def action_space(self):
        most = float(np.finfo(np.float32).max)
        return envs.Box((-most,), (most,))

    @property
    def max_episode_steps(self):
        return 4

    def reset(self, key):
        return jnp.zeros(1), jnp.int32(0)

    def transition(self, key, state, action):
        return envs.outcome(action, 0.0, truncated=state == 3), state + 1


def test_the_widest_bounds_are_kept():
    envs.check(Echo())


def test_too_short_a_play_is_said_to_be_so():
    with pytest.warns(UserWarning, match="no episode ended within 3 steps"):
        envs.check(Walk(), steps=3)


def test_typed_keys_and_empty_states_are_states_too():
    @component
    class Keyed(probes.OneStep):
        def draw(self, key):
            return key

        def pay(self, key, state, action):
            return jax.random.uniform(state)

    envs.check(Keyed(), steps=16)
    envs.check(probes.IdenticalRewards(), steps=16)


def test_keys_that_a_program_of_training_does_not_choose_between_are_found():
    """One that it drew, and one of the environment's own making."""

    @component
    class Chosen(probes.IdenticalRewards):
        def draw(self, key):
            return key

        def step(self, key, state, action):
            timestep, _ = super().step(key, state, action)
            return timestep, jnp.where(timestep.terminated, state, jax.random.key(5))

    assert "step: got ValueError: dtype=key<" in findings(Chosen())
