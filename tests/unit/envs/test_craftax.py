"""Worlds of Craftax, against its own stepping."""

import adapters
import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import Uniform, envs
from ppo_jax.component import numbers, replace_at
from ppo_jax.envs.craftax import Craftax

pytest.importorskip("craftax")

CLASSIC = "Craftax-Classic-Symbolic-v1"
ENV = Craftax(CLASSIC, params={"max_timesteps": 3, "spawn_cow_chance": 0.5})
LAVA = 14
NOTHING = 0


def test_floats_are_numbers_and_the_rest_is_structure():
    assert numbers(ENV) == {"params.spawn_cow_chance": 0.5}
    assert ENV.max_episode_steps == ENV.min_steps_to_truncation == 3
    assert ENV.has_transition and ENV.action_space == envs.Discrete(17)
    assert envs.make(f"craftax/{CLASSIC}").max_episode_steps == 10_000


@pytest.mark.parametrize(
    ("env_id", "params", "said"),
    [
        ("Craftax-Clasic-Symbolic-v1", {}, f"closest is '{CLASSIC}'"),
        (CLASSIC, {"max_timestep": 9}, "closest is 'max_timesteps'"),
        (CLASSIC, {"max_timesteps": 1.5}, "expected int"),
        (CLASSIC, {"max_timesteps": 0}, "expected at least 1"),
        (CLASSIC, {"fractal_noise_angles": 1}, "fractal_noise_angles"),
    ],
)
def test_what_is_no_environment_is_told(env_id, params, said, tmp_path, capsys):
    """R-E1: by the command, with nothing left behind."""
    assert said in adapters.refused(Craftax, env_id, params, tmp_path, capsys)


@pytest.fixture(scope="module")
def start():
    return jax.jit(ENV.reset)(jax.random.key(0))


@pytest.fixture(scope="module")
def own():
    """The suite's environment and parameters, without its own resets."""
    from craftax.craftax_env import make_craftax_env_from_name

    env = make_craftax_env_from_name(CLASSIC, auto_reset=False)
    return env, env.default_params.replace(max_timesteps=3, spawn_cow_chance=0.5)


def in_lava(state):
    """The same state, with lava where the player is."""
    row, column = state.player_position
    return state.replace(map=state.map.at[row, column].set(LAVA))


@pytest.mark.slow
@pytest.mark.parametrize("deadly", [None, 0, 2])
def test_steps_are_those_of_the_suite_and_ends_are_told_apart(start, own, deadly):
    """The player stands in lava in the first step, in the last one, or never."""
    (_, state), (env, params) = start, own
    transition = jax.jit(ENV.transition)
    for t, key in enumerate(jax.random.split(jax.random.key(1), 3)):
        state = in_lava(state) if t == deadly else state
        expected = env.step(key, state, NOTHING, params)
        given, after = transition(key, state, jnp.int32(NOTHING))
        chex.assert_trees_all_close(given.final_obs, expected[0], rtol=0, atol=1e-6)
        chex.assert_trees_all_equal(given.reward, expected[2])
        assert (given.terminated | given.truncated) == expected[3]
        assert given.terminated == (t == deadly)
        assert given.truncated == (t == 2 and deadly is None)
        if given.terminated:
            break
        state = after


@pytest.mark.slow
def test_a_step_that_ends_shows_the_end_and_the_next_start(start, own):
    (_, state), (env, params) = start, own
    state, key = in_lava(state), jax.random.key(2)
    given, after = jax.jit(ENV.step)(key, state, jnp.int32(NOTHING))
    key_step, key_reset = jax.random.split(key)
    seen, *_ = env.step(key_step, state, NOTHING, params)
    chex.assert_trees_all_close(given.final_obs, seen, rtol=0, atol=1e-6)
    obs, begun = env.reset(key_reset, params)
    chex.assert_trees_all_close(given.obs, obs, rtol=0, atol=1e-6)
    chex.assert_trees_all_equal(after.map, begun.map)


@pytest.mark.slow
def test_members_of_a_population_live_in_other_worlds(start):
    """Cows never come, or always, in one program."""
    _, state = start
    nobody = state.replace(cows=state.cows.replace(mask=jnp.zeros(3, bool)))

    def come(chance):
        env = replace_at(ENV, "params.spawn_cow_chance", chance)
        _, after = env.transition(jax.random.key(0), nobody, jnp.int32(NOTHING))
        return after.cows.mask.sum()

    count = jax.jit(jax.vmap(come))(jnp.array([0.0, 1.0]))
    np.testing.assert_array_equal(count, [0, 1])


@pytest.mark.slow
def test_an_environment_keeps_the_protocol():
    envs.check(Craftax(CLASSIC, params={"max_timesteps": 40}), steps=100)


@pytest.mark.slow
def test_a_population_goes_on_with_a_pool(tmp_path):
    space = {"env.env.params.spawn_cow_chance": Uniform(0.1, 0.9)}
    adapters.goes_on(ENV, tmp_path, **space)


def test_a_picture_has_the_world_and_what_one_has(start):
    """Nine by nine blocks of 16 pixels; stones come to the list of what one has."""
    _, state = start
    picture = ENV.render(jax.device_get(state))
    assert (picture.shape, picture.dtype) == ((144, 144, 3), np.uint8)
    rich = state.replace(inventory=state.inventory.replace(stone=jnp.int32(5)))
    changed = (ENV.render(jax.device_get(rich)) != picture).any((1, 2))
    assert changed.any() and not changed[:112].any()
