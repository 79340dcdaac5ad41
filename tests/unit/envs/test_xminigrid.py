"""Grids of XLand-MiniGrid, against its own stepping and against numbers by hand."""

import adapters
import chex
import jax
import numpy as np
import pytest

from ppo_jax import Config, envs, networks
from ppo_jax.component import numbers
from ppo_jax.envs.env import strong
from ppo_jax.envs.xminigrid import LAYERS, XMiniGrid

xminigrid = pytest.importorskip("xminigrid")

AHEAD, RIGHT, STILL = 0, 1, 4
TO_THE_GOAL = (AHEAD, AHEAD, RIGHT, AHEAD, AHEAD)
"""Of a room of 3×3 cells, from one corner to the other."""


LIMIT = 6


def grid(kind):
    return XMiniGrid(f"MiniGrid-{kind}-5x5", params={"max_steps": LIMIT})


@pytest.fixture(scope="module")
def empty():
    return grid("Empty")


def shown(timestep):
    """What a timestep of the suite shows, by hand."""
    tiles, colours = np.asarray(timestep.observation).transpose(2, 0, 1)
    kinds = (np.eye(13)[tiles], np.eye(12)[colours])
    direction = np.eye(4)[int(timestep.state.agent.direction)]
    return {"grid": np.concatenate(kinds, axis=-1), "direction": direction}


@jax.jit
def stepped(timestep, action):
    env, params = xminigrid.make("MiniGrid-Empty-5x5")
    return strong(env.step(params.replace(max_steps=LIMIT), timestep, action))


def by_itself(timestep, actions):
    """Timesteps of the suite, which no wrapper resets."""
    for action in actions:
        timestep = stepped(timestep, np.int32(action))
        yield timestep


@pytest.fixture(scope="module")
def start(empty):
    return jax.jit(empty.reset)(jax.random.key(3))


@pytest.mark.parametrize("waits", [0, 1, 2])
def test_steps_are_those_of_the_suite_and_ends_are_told_apart(key, empty, start, waits):
    """The goal is reached in five steps: sooner than the limit, at it, or not."""
    _, state = start
    actions = (*[STILL] * waits, *TO_THE_GOAL, STILL)[:LIMIT]
    given = adapters.played(empty, "step", state, actions, key)
    own = list(by_itself(state, actions[: 5 + waits]))
    given = jax.tree.map(lambda x: x[: len(own)], jax.device_get(given))
    for t, expected in enumerate(own):
        seen = jax.tree.map(lambda x, t=t: x[t], given.final_obs)
        chex.assert_trees_all_equal(seen, shown(expected))
    rewards = [expected.reward for expected in own]
    chex.assert_trees_all_equal(given.reward, np.float32(rewards))
    steps = np.arange(1, len(own) + 1)
    np.testing.assert_array_equal(given.terminated, steps == 5 + waits)
    np.testing.assert_array_equal(given.truncated, (steps == LIMIT) & (waits > 1))
    paid = 1 - 0.9 * len(own) / LIMIT if waits < 2 else 0
    assert rewards[-1] == pytest.approx(paid)
    assert empty.max_episode_steps == empty.min_steps_to_truncation == LIMIT


def test_a_step_that_ends_shows_the_end_and_the_next_start(key, empty, start):
    obs, state = start
    given = adapters.played(empty, "step", state, (*TO_THE_GOAL, STILL), key)
    *_, last = by_itself(state, TO_THE_GOAL)
    end = jax.tree.map(lambda x: x[4], jax.device_get(given))
    chex.assert_trees_all_equal(end.final_obs, shown(last))
    chex.assert_trees_all_equal(end.obs, obs)  # Every episode begins alike.
    assert not np.array_equal(end.obs["grid"], end.final_obs["grid"])


def test_a_rollout_owes_the_value_of_the_last_sight():
    """R-D8: of what the suite shows before a reset."""

    def final(before, actions):
        *_, last = by_itself(before, actions)
        return shown(last)

    adapters.owed(grid("EmptyRandom"), final)


def test_observations_are_what_a_convolution_takes(empty):
    core = xminigrid.core.constants
    assert (core.NUM_TILES, core.NUM_COLORS) == LAYERS
    torso = networks.Cnn(channels=(4,))
    config = Config(empty, network=networks.ActorCritic(torso))
    obs = {name: x.shape for name, x in config.obs_spec().items()}
    assert obs == {"grid": (7, 7, 25), "direction": (4,)}
    assert config.env.action_space == envs.Discrete(6)
    assert config.env.has_transition and numbers(config.env) == {}


@pytest.mark.parametrize(
    ("env_id", "params", "said"),
    [
        ("MiniGrid-DoorKy-8x8", {}, "closest is 'MiniGrid-DoorKey-8x8'"),
        ("XLand-MiniGrid-R1-9x9", {}, "would have to be downloaded"),
        ("MiniGrid-Empty-5x5", {"hight": 9}, "closest is 'height'"),
        ("MiniGrid-Empty-5x5", {"max_steps": 1.5}, "expected int"),
        ("MiniGrid-Empty-5x5", {"max_steps": 0}, "expected at least 1"),
        ("MiniGrid-Empty-5x5", {"render_mode": "x"}, "no field is called 'rend"),
    ],
)
def test_what_is_no_environment_is_told(env_id, params, said, tmp_path, capsys):
    """R-E1: by the command, with nothing left behind."""
    assert said in adapters.refused(XMiniGrid, env_id, params, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["MiniGrid-DoorKey-5x5", "MiniGrid-MemoryS8"])
def test_an_environment_keeps_the_protocol(env_id):
    envs.check(f"xminigrid/{env_id}")


@pytest.mark.slow
def test_a_population_goes_on_with_a_pool(empty, tmp_path):
    adapters.goes_on(empty, tmp_path)


def test_a_picture_shows_the_agent_where_it_is(empty, start):
    """Tiles of 32 pixels; one that turns is all that changes."""
    _, before = start
    (after,) = by_itself(before, [RIGHT])
    pictures = [empty.render(jax.device_get(state)) for state in (before, after)]
    assert pictures[0].dtype == np.uint8 and pictures[0].shape == (160, 160, 3)
    tiles = (pictures[0] != pictures[1]).reshape(5, 32, 5, 32, 3).any((1, 3, 4))
    row, column = np.array(before.state.agent.position)
    assert tiles[row, column]
