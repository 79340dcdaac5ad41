"""What is not finite, and what is left of a step or an environment that was."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brief import experiment
from tabular import drawn

from ppo_jax.envs.probes import Target
from ppo_jax.networks.distributions import Categorical, DiagGaussian
from ppo_jax.ppo import quarantine
from ppo_jax.state import Trajectory

NAN, INF = float("nan"), float("inf")
LIKE = np.zeros(3, bool)
FIRST = np.array([True, False, False])
VALUES = {
    "x": np.float32([[1.0, 2.0], [NAN, 0.0], [-INF, 3.0]]),
    "y": np.float32([0.0, 1.0, 2.0]),
    "n": np.int32([1, 2, 3]),
}


def test_a_float_tells_its_environment(variant):
    """±inf may be a sentinel of a state, and is none of what there is to see."""
    assert variant(quarantine.finite)(VALUES, LIKE).tolist() == [True, False, False]
    assert variant(quarantine.has_nan)(VALUES, LIKE).tolist() == [False, True, False]


@pytest.mark.parametrize("values", [(), {"n": np.arange(3)}, np.arange(3) > 1])
def test_what_has_no_floats_is_finite(values):
    assert quarantine.finite(values, LIKE).tolist() == [True] * 3
    assert quarantine.has_nan(values, LIKE).tolist() == [False] * 3


def test_zeros_are_seen_in_place_of_what_is_not_finite(variant):
    seen = variant(quarantine.zero_unless)(FIRST, VALUES)
    assert seen["x"].tolist() == [[1, 2], [0, 0], [0, 0]]
    assert not seen["y"].any() and seen["n"].tolist() == [1, 0, 0]


ROW = np.float32([0.5, NAN, INF])
SOUND = np.array([0.5, 0.0, 0.0])
WIDE = np.stack([ROW, ROW], axis=-1)
POLICIES = {
    "discrete": (Categorical(WIDE), np.array([1, 0, 1])),
    "real": (DiagGaussian(WIDE, WIDE), WIDE),
    "without a width": (DiagGaussian(WIDE, np.float32(WIDE == 0.5)), WIDE),
}


def step_of(name):
    """A step of three environments: one is sound, one NaN and one infinite."""
    policy, action = POLICIES[name]
    ill = dict.fromkeys(Trajectory._fields, ROW)
    unread = {"raw_obs": (), "action_mask": ()}
    flags = dict.fromkeys(("reset", "terminated", "last"), ~FIRST)
    return Trajectory(**ill | unread | flags | {"action": action, "old_policy": policy})


@pytest.mark.parametrize("name", POLICIES)
def test_a_step_that_is_not_valid_has_nothing_to_say(name, variant):
    """But for flags, and for what is reported of an episode."""
    step = step_of(name)
    kept = jax.device_get(variant(quarantine.quarantined)(step, FIRST))
    zeroed = ("obs", "log_prob", "value", "old_value", "next_value", "reward", "weight")
    for field in zeroed:
        chex.assert_trees_all_equal(getattr(kept, field), SOUND)
    assert (kept.action[0] == step.action[0]).all() and not kept.action[1:].any()
    chex.assert_trees_all_equal(kept.valid, FIRST)
    for field in ("reset", "terminated", "last", "episode_return", "cost", "group"):
        chex.assert_trees_all_equal(getattr(kept, field), getattr(step, field))


def test_what_the_critics_said_is_kept_if_it_is_finite():
    """The step before is bootstrapped with it."""
    step = step_of("real")._replace(value=np.float32([1.0, 2.0, NAN]))
    kept = quarantine.quarantined(step, FIRST)
    assert kept.value.tolist() == [1.0, 2.0, 0.0]


@jax.grad
def derivative(factor, step):
    """Of a weighted loss, by a factor of the policy's parameters."""
    policy = step.old_policy
    moved = jax.tree.map(lambda x: factor * x, policy)
    each = policy.kl(moved) - moved.log_prob(step.action)
    return jnp.sum(step.weight * each)


expected = jax.jit(derivative)


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_without_weight_has_a_derivative(name, variant):
    """As if the sound step were alone: no weight times no number is no number."""
    step = step_of(name)
    kept = quarantine.quarantined(step, FIRST)
    alone = jax.tree.map(lambda x: x[:1], step)
    slope = variant(lambda factor: derivative(factor, kept))(jnp.float32(1.5))
    chex.assert_trees_all_close(slope, expected(1.5, alone), rtol=1e-6)


@pytest.fixture(scope="module")
def mended():
    """Environments whose state or observation is no number, before and after."""
    run = drawn(experiment(Target(), num_envs=5))
    env_state, obs = (np.array(x) for x in (run.actor.env_state, run.actor.obs))
    env_state[1], env_state[2], obs[3] = NAN, INF, -INF
    actor = run.actor.replace(
        env_state=env_state,
        obs=obs,
        reset=np.array([False, False, False, False, True]),
        episode_return=np.arange(1, 6, dtype=np.float32),
        episode_length=np.arange(1, 6, dtype=np.int32),
    )
    keys = jax.random.split(jax.random.key(7), 5)
    after = jax.jit(quarantine.reset_broken)(Target(), actor, keys)
    return actor, jax.device_get(after)


def test_a_broken_environment_begins_anew(mended):
    """With luck of its own; an infinite state is none of ours."""
    before, after = mended
    assert after.reset.tolist() == [False, True, False, True, True]
    assert after.episode_return.tolist() == [1, 0, 3, 0, 5]
    assert after.episode_length.tolist() == [1, 0, 3, 0, 5]
    begun = after.env_state[[1, 3]]
    chex.assert_trees_all_equal(after.obs[[1, 3]], begun)
    assert (np.abs(begun) < 1).all() and begun[0] != begun[1]
    assert not np.isin(begun, before.env_state).any()


def test_nobody_else_notices_that_one_begins_anew(mended):
    """R-A20: bit for bit, and no array is of another type."""
    before, after = mended
    sound = np.array([0, 2, 4])
    chex.assert_trees_all_equal(
        *(jax.tree.map(lambda x: x[sound], actor) for actor in mended)
    )
    chex.assert_trees_all_equal_shapes_and_dtypes(before, after)
