"""Games of Jumanji, against its own stepping and against numbers by hand."""

import functools

import adapters
import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import Config, envs, networks
from ppo_jax.component import numbers, replace_at
from ppo_jax.envs.env import strong
from ppo_jax.envs.jumanji import Jumanji

jumanji = pytest.importorskip("jumanji")

UP = 0


@pytest.fixture(autouse=True, scope="module")
def broadcasting():
    """Allowed, as outside of tests: games of Jumanji do it."""
    with jax.numpy_rank_promotion("allow"):
        yield


def snake(limit=100):
    return Jumanji("Snake-v1", {"num_rows": 4, "num_cols": 4, "time_limit": limit})


@functools.cache
def stepping(env_id, **params):
    env = jumanji.make(env_id, **params)
    return jax.jit(lambda state, action: strong(env.step(state, action)))


def by_itself(env_id, params, state, actions):
    """Timesteps of the suite, which no wrapper resets."""
    step = stepping(env_id, **params)
    for action in actions:
        state, timestep = step(state, np.int32(action))
        yield timestep


@pytest.fixture(scope="module")
def begun():
    """Starts of a snake, by the row that it is in."""
    keys = jax.random.split(jax.random.key(0), 32)
    starts = jax.device_get(jax.jit(jax.vmap(snake().reset))(keys))
    rows = starts[1].env.head_position.row
    return {
        row: jax.tree.map(lambda x, row=row: x[np.argmax(rows == row)], starts)
        for row in range(4)
    }


LIMIT = 3
SMALL = {"num_rows": 4, "num_cols": 4, "time_limit": LIMIT}


@pytest.mark.parametrize("row", [1, 2, 3])
def test_steps_are_those_of_the_suite_and_ends_are_told_apart(key, begun, row):
    """It goes up, and dies above: sooner than the limit, at it, or not."""
    _, state = begun[row]
    count = min(row + 1, LIMIT)
    given = adapters.played(snake(LIMIT), "transition", state, [UP] * LIMIT, key)
    given = jax.tree.map(lambda x: x[:count], jax.device_get(given))
    own = list(by_itself("Snake-v1", SMALL, state.env, [UP] * count))
    for t, expected in enumerate(own):
        chex.assert_trees_all_equal(
            given.final_obs["grid"][t], expected.observation.grid
        )
        assert given.reward[t] == expected.reward
        ends = given.terminated[t] | given.truncated[t]
        assert ends == expected.last() == (t + 1 == count)
    assert own[-1].discount == 0  # Whatever it was that ended the episode.
    assert given.terminated[-1] == (row < LIMIT) and given.truncated[-1] == (row == 3)
    env = snake(LIMIT)
    assert env.max_episode_steps == env.min_steps_to_truncation == LIMIT


def test_a_step_that_ends_shows_the_end_and_the_next_start(key, begun):
    _, state = begun[3]
    given = adapters.played(snake(LIMIT), "step", state, [UP] * LIMIT, key)
    given = jax.device_get(given)
    *_, last = by_itself("Snake-v1", SMALL, state.env, [UP] * LIMIT)
    chex.assert_trees_all_equal(given.final_obs["grid"][-1], last.observation.grid)
    chex.assert_trees_all_equal(given.obs["grid"][0], given.final_obs["grid"][0])
    assert not np.array_equal(given.obs["grid"][-1], given.final_obs["grid"][-1])


def test_a_rollout_owes_the_value_of_the_last_sight():
    """R-D8: of what the suite shows before a reset; kinds are one-hot vectors."""
    params = {"time_limit": 5}

    def kinds(count, x):
        return np.eye(count, dtype=np.float32)[np.asarray(x)]

    def final(before, actions):
        *_, last = by_itself("Cleaner-v0", params, before.env, actions)
        return {
            "grid": kinds(3, last.observation.grid),
            "agents_locations": kinds(11, last.observation.agents_locations),
            "action_mask": np.float32(last.observation.action_mask),
            "step_count": kinds(6, 5),
        }

    adapters.owed(Jumanji("Cleaner-v0", params), final)


def beside_a_wall(env):
    """A start in which something is forbidden."""
    for seed in range(99):
        _, state = env.reset(jax.random.key(seed))
        if not state.mask.all():
            return state
    raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["Snake-v1", "Tetris-v0"])
def test_what_a_mask_forbids_ends_the_episode(env_id):
    """A mask of combinations is one of actions that are combinations."""
    env = Jumanji(env_id, params={"num_rows": 6, "num_cols": 6})
    state = beside_a_wall(env)
    actions = jnp.arange(env.action_space.n)
    step = jax.vmap(env.transition, (None, None, 0))
    timesteps, _ = jax.jit(step)(jax.random.key(0), state, actions)
    allowed = env.action_mask(state)
    np.testing.assert_array_equal(allowed, ~timesteps.terminated)
    assert allowed.any() and not allowed.all()


@pytest.mark.slow
def test_where_nothing_is_allowed_everything_is():
    """A snake that has caught itself."""
    env = snake()

    @jax.jit
    def play(key):
        def once(loop, keys):
            obs, state = loop
            mask = env.action_mask(state)
            action = jax.random.categorical(keys[0], jnp.where(mask, 0.0, -jnp.inf))
            timestep, after = env.step(keys[1], state, action)
            return (timestep.obs, after), (obs["action_mask"], mask, timestep)

        keys = jax.random.split(key, (200, 2))
        return jax.lax.scan(once, env.reset(key), keys)[1]

    own, mask, timestep = jax.vmap(play)(jax.random.split(jax.random.key(0), 16))
    lost = ~np.asarray(own, bool).any(axis=-1)
    assert lost.any() and timestep.terminated[lost].all() and mask[lost].all()
    np.testing.assert_array_equal(mask[~lost], own[~lost])


@pytest.mark.parametrize(
    ("env_id", "space"),
    [
        ("Game2048-v1", envs.Discrete(4)),
        ("Tetris-v0", envs.Discrete(4 * 10)),
        ("RubiksCube-v0", envs.MultiDiscrete((6, 1, 3))),
        ("Connector-v3", envs.MultiDiscrete((5,) * 10)),
        ("SearchAndRescue-v0", envs.Box((-1.0,) * 4, (1.0,) * 4)),
    ],
)
def test_actions_are_those_of_the_suite(env_id, space):
    env = Jumanji(env_id)
    assert env.action_space == space and env.has_transition


@pytest.mark.slow
def test_a_float_of_a_constructor_is_a_number(key):
    """What a step of the cleaner costs: another one is the same program."""
    env = Jumanji("Cleaner-v0", params={"penalty_per_timestep": 0.25})
    assert numbers(env) == {"params.penalty_per_timestep": 0.25}
    _, state = env.reset(key)

    @jax.jit
    def paid(penalty):
        one = replace_at(env, "params.penalty_per_timestep", penalty)
        return one.transition(key, state, jnp.zeros(3, jnp.int32))[0].reward

    assert paid(0.25) - paid(2.0) == pytest.approx(1.75)


def test_observations_are_what_a_convolution_takes():
    network = networks.ActorCritic(networks.Cnn(channels=(4,)))
    config = Config("jumanji/Snake-v1", network=network)
    shapes = {name: x.shape for name, x in config.obs_spec().items()}
    assert shapes == {"grid": (12, 12, 5), "step_count": (), "action_mask": (4,)}


def test_what_is_nested_is_nested_dictionaries():
    """Of the empty spaces in a container, there are six numbers each."""
    config = Config("jumanji/BinPack-v2")
    ems = config.obs_spec()["ems"]
    assert {name: x.shape for name, x in ems.items()} == {
        side + end: (40,) for side in "xyz" for end in "12"
    }


@pytest.mark.parametrize(
    ("limit", "shown"), [(LIMIT, np.eye(3)[[2, 2]]), (101, [0.02, 0.03])]
)
def test_few_values_are_kinds_and_many_are_one_number(limit, shown, begun):
    """Of a counter: after two steps of those that the limit allows, and after three.

    The suite says that it counts to the limit − 1, and counts to the limit.
    """
    _, state = begun[2]
    given = adapters.played(
        snake(limit), "transition", state, [UP] * 3, jax.random.key(0)
    )
    counted = np.asarray(given.final_obs["step_count"])[1:3]
    chex.assert_trees_all_close(counted, np.float32(shown), rtol=0, atol=1e-6)


def test_a_counter_of_one_step_is_a_number(key):
    obs, _ = snake(1).reset(key)
    assert obs["step_count"] == 0


@pytest.mark.parametrize(
    ("env_id", "params", "said"),
    [
        ("Snak-v1", {}, "the closest is 'Snake-v1'"),
        ("Sokoban-v0", {}, "does not have to download"),
        ("MultiCVRP-v0", {}, "expected real ones, or so many of a kind"),
        ("Snake-v1", {"num_row": 9}, "closest is 'num_rows'"),
        ("Snake-v1", {"time_limit": 1.5}, "expected int"),
        ("Snake-v1", {"time_limit": 0}, "expected at least 1"),
        ("Snake-v1", {"viewer": 1}, "viewer"),
    ],
)
def test_what_is_no_environment_is_told(env_id, params, said, tmp_path, capsys):
    """R-E1: by the command, with nothing left behind."""
    assert said in adapters.refused(Jumanji, env_id, params, tmp_path, capsys)


LIMITED = [
    "Cleaner-v0",
    "Connector-v3",
    "LevelBasedForaging-v0",
    "MMST-v0",
    "Maze-v0",
    "PacMan-v1",
    "RobotWarehouse-v0",
    "SearchAndRescue-v0",
    "SlidingTilePuzzle-v0",
    "Tetris-v0",
]


@pytest.mark.slow
@pytest.mark.parametrize("env_id", LIMITED)
def test_a_time_limit_truncates(env_id, key):
    """Two steps are no end of any of these games, but for the limit."""
    env = Jumanji(env_id, params={"time_limit": 2})
    _, state = env.reset(key)
    space, mask = env.action_space, env.action_mask(state)
    if isinstance(space, envs.Box):
        action = np.zeros(len(space.low))
    elif mask is None:
        action = np.zeros(len(space.nvec), int)
    else:
        action = np.asarray(mask).reshape(len(space.nvec), -1).argmax(axis=-1)
    action = action.squeeze() if isinstance(space, envs.Discrete) else action
    given = adapters.played(env, "transition", state, np.stack([action] * 2), key)
    assert given.truncated.tolist() == [False, True] and not given.terminated.any()


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["Snake-v1", "Connector-v3"])
def test_an_environment_keeps_the_protocol(env_id):
    envs.check(f"jumanji/{env_id}")


@pytest.mark.slow
def test_a_population_goes_on_with_a_pool(tmp_path):
    adapters.goes_on(Jumanji("RubiksCube-v0", {"time_limit": 5}), tmp_path)


@pytest.mark.parametrize(
    "env_id", ["Snake-v1", "Game2048-v1", "Connector-v3", "SlidingTilePuzzle-v0"]
)
def test_a_picture_shows_the_state(env_id):
    """Whatever the environment's viewer is called, and given."""
    env = Jumanji(env_id)
    reset = jax.jit(env.reset)
    starts = [reset(jax.random.key(seed))[1] for seed in (0, 1)]
    one, other = (env.render(jax.device_get(state)) for state in starts)
    assert one.dtype == np.uint8 and one.ndim == 3 and one.shape[-1] == 3
    assert one.shape == other.shape and (one != other).any()
