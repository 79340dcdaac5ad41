"""What environments of rigid bodies have in common, on a stone that is thrown up."""

import dataclasses
import functools
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bodies import FALL, Stone, Summing, by_hand, played
from tabular import first

from ppo_jax import envs, networks
from ppo_jax.component import numbers, replace_at
from ppo_jax.envs.physics import Physics
from ppo_jax.ppo import rollout

REPEATED = Stone("stone", {"episode_length": 5, "action_repeat": 2})


@functools.cache
def throws(count=40):
    """Keys and actions that make some stones fall early."""
    keys = jax.random.split(jax.random.key(3), count + 1)
    actions = jax.random.uniform(jax.random.key(4), (count, 1), minval=-9, maxval=20)
    return keys, actions


def fell(env, key=None):
    """The speeds that two steps end with, from one start."""
    keys = jnp.stack([jax.random.key(0) if key is None else key] * 3)
    _, after, *_ = played(env, keys, np.zeros((2, 1), np.float32))
    return np.asarray(after["speed"])[:, 0]


@pytest.mark.parametrize("env", [Stone("stone", {"episode_length": 6}), REPEATED])
def test_an_episode_is_steps_of_the_simulation(env):
    """`final_obs`, both ends and rewards, of repeated actions up to an end."""
    expected = by_hand(env, FALL, *throws())
    chex.assert_trees_all_close(played(env, *throws()), expected, rtol=1e-6, atol=1e-6)
    _, _, _, terminated, truncated = expected
    assert (terminated & ~truncated).any() and (truncated & ~terminated).any()


def test_an_environment_of_bodies_keeps_its_promises():
    envs.check(REPEATED)
    envs.check(Stone("stone", physics=Physics(gravity=0.5, spread=0.2)))
    envs.check(envs.ResetPool(Stone("stone"), 2), carried=("state.taken",))


def test_a_state_is_one_that_checkpoints_can_hold():
    """They refuse arrays without elements, as of contacts where nothing can touch."""
    _, state = envs.ResetPool(Stone("stone"), 2).reset(jax.random.key(0))
    assert all(leaf.size for leaf in jax.tree.leaves(state))
    assert FALL.reset(jax.random.key(0)).info["touching"].size == 0


def test_a_limit_counts_steps_of_the_simulation():
    assert REPEATED.max_episode_steps == REPEATED.min_steps_to_truncation == 3
    assert Stone("stone").max_episode_steps == 4 and REPEATED.has_transition


def test_what_a_limit_cut_off_is_worth_what_was_truly_seen_last():
    """The value that is learned from is the one of the simulation's own observation."""
    fields = {"env": Stone("stone"), "num_envs": 1, "num_steps": 9, "obs_clip": None}
    network = networks.ActorCritic(networks.Mlp((4,)))
    run = jax.jit(first)(Summing(**fields, num_minibatches=1, network=network))
    lived = jax.jit(rollout.unroll)(run.learner, run.actor, run.key)
    steps, start = jax.device_get((lived[1], FALL.reset(jax.random.key(0))))
    before = jax.tree.map(lambda x: x[:, 0], steps.obs)
    cut = (steps.last & ~steps.terminated)[:, 0]
    assert cut.any() and not cut.all()
    step = jax.jit(FALL.step)
    for t in np.flatnonzero(cut):
        state = start.replace(obs=jax.tree.map(lambda x, t=t: x[t], before))
        seen = step(state, np.clip(steps.action[t, 0], -1, 1)).obs
        expected = sum(float(x.sum()) for x in seen.values())
        np.testing.assert_allclose(steps.next_value[t, 0], expected, rtol=1e-5)


def test_factors_are_numbers():
    env = Stone("stone", {"start_height": 2}, Physics(gravity=0.5, spread=0.1))
    assert numbers(env) == {
        "params.start_height": 2.0,
        "physics.gravity": 0.5,
        "physics.spread": 0.1,
    }
    falling = fell(Stone("stone", physics=Physics(gravity=0.5)))
    np.testing.assert_allclose(np.diff(falling), -0.5, rtol=1e-5)
    same = fell(Stone("stone", physics=Physics(gravity=1.0)))
    chex.assert_trees_all_equal(same, fell(Stone("stone")))


def test_every_episode_has_factors_of_its_own():
    """Uniform about the number; the number itself may change at any time."""
    env = Stone("stone", physics=Physics(gravity=2.0, spread=0.5))

    def pull(key):
        _, state = env.reset(key)
        states = [state]
        for _ in range(2):
            _, state = env.transition(key, states[-1], jnp.zeros(1))
            states.append(state)
        speeds = [state.suite.obs["speed"][0] for state in states]
        return -10 * jnp.diff(jnp.stack(speeds))

    pulls = jax.jit(jax.vmap(pull))(jax.random.split(jax.random.key(0), 500))
    pulls = np.asarray(pulls)
    np.testing.assert_allclose(pulls[:, 0], pulls[:, 1], rtol=1e-3)
    assert 10 <= pulls.min() < 10.2 and 29.8 < pulls.max() <= 30
    np.testing.assert_allclose(pulls.mean(), 20, atol=1)
    none = replace_at(env, "physics.spread", 0.0)
    chex.assert_trees_all_equal(
        fell(none), fell(dataclasses.replace(env, physics=Physics(2.0)))
    )


WRONG = [
    ({"params": {"painted": 1.0}}, ValueError, "Stone.params.painted: cannot be set"),
    ({"physics": Physics(mass=2.0)}, ValueError, "Stone.physics.mass: cannot be set"),
    ({"params": {"star_height": 1.0}}, TypeError, "the closest is 'start_height'"),
]


@pytest.mark.parametrize(("given", "error", "said"), WRONG)
def test_a_number_that_nothing_depends_on_is_an_error(given, error, said):
    with pytest.raises(error, match=re.escape(said)):
        Stone("stone", **given)


def test_impossible_factors_are_errors():
    with pytest.raises(ValueError, match=r"Physics\.spread: expected one of gravity, "):
        Physics(spread=0.1)
    with pytest.raises(
        ValueError, match=r"Physics\.mass: expected a number > 0, or No"
    ):
        Physics(mass=0.0)
    with pytest.raises(ValueError, match=r"Physics\.spread: expected a number in \[0"):
        Physics(mass=1.0, spread=1.0)
