import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.arrays.keys import fused, plain
from ppo_jax.component import component, program
from ppo_jax.config import Config
from ppo_jax.envs.env import Discrete, Env, outcome
from ppo_jax.networks import ActorCritic, Mlp
from ppo_jax.ppo import learner
from ppo_jax.ppo.episodes import run_episodes
from ppo_jax.schedules import Progress
from ppo_jax.terms import Surrogate

LINEAR = ActorCritic(torso=Mlp(hidden=()))

DRAWS = {
    "split": lambda key: jax.random.key_data(jax.random.split(key, (3, 5))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 2**31 + 7)),
    "bits8": lambda key: jax.random.bits(key, (4, 3), jnp.uint8),
    "bits16": lambda key: jax.random.bits(key, 5, jnp.uint16),
    "bits32": lambda key: jax.random.bits(key, (2, 3, 4)),
    "scalar": lambda key: jax.random.uniform(key),
    "none": lambda key: jax.random.normal(key, (0, 3)),
    "normal": lambda key: jax.random.normal(key, 7),
    "randint": lambda key: jax.random.randint(key, 9, -4, 1000),
    "permutation": lambda key: jax.random.permutation(key, 50),
    "categorical": lambda key: jax.random.categorical(key, jnp.zeros((4, 3))),
    "gamma": lambda key: jax.random.gamma(key, 2.0, (3,)),
}


@functools.partial(jax.jit, static_argnums=0)
def drawn(draw, key, keys):
    """What is drawn of one key, and of each of several."""
    return draw(key), jax.vmap(draw)(keys)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_numbers_are_those_of_jax(draw, seed):
    """Whatever is drawn, of one key and of several."""
    key = jax.random.key(seed)
    keys = jax.random.split(key, 4)
    chex.assert_trees_all_equal(
        drawn(draw, fused(key), fused(keys)), drawn(draw, key, keys)
    )


def test_a_known_answer():
    """Threefry-2x32 with 20 rounds of zeros, as in the vectors of Random123."""
    key = jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32))
    got = jax.random.key_data(jax.random.fold_in(fused(key), 0))
    expected = np.array([0x6B200159, 0x99BA4EFE], np.uint32)
    chex.assert_trees_all_equal(np.asarray(got), expected)


def test_only_keys_of_the_default_kind_change():
    """And all of them, wherever they are; back again they are what they were."""
    tree = {
        "keys": jax.random.split(jax.random.key(1), 3),
        "other": jax.random.key(1, impl="rbg"),
        "raw": jax.random.PRNGKey(1),
        "number": 2.0,
        "array": jnp.arange(3),
    }
    inside = fused(tree)
    assert inside["keys"].dtype != tree["keys"].dtype
    for name in ("other", "raw", "number", "array"):
        assert inside[name] is tree[name]
    again = plain(inside)
    assert again["keys"].dtype == tree["keys"].dtype
    chex.assert_trees_all_equal(
        jax.random.key_data(again["keys"]), jax.random.key_data(tree["keys"])
    )


def test_no_loop_is_left():
    """What takes the time on a CPU: five rounds of kernels for a few numbers."""

    def draw(key):
        return jax.random.uniform(key, (4,))

    def loops(key):
        return jax.jit(draw).lower(key).compile().as_text().count(" while(")

    key = jax.random.key(0)
    assert loops(fused(key)) == 0 < loops(key)


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: jax.random.bits(key, 8),
        lambda key: jax.random.key_data(jax.random.split(key, 4)),
        lambda key: jax.random.key_data(jax.random.fold_in(key, 3)),
    ],
    ids=["bits", "split", "fold_in"],
)
def test_what_several_kernels_read_is_drawn_once(draw):
    """20 rounds shift to the left 20 times, whoever reads what comes of them."""

    def readers(key):
        drawn = draw(key)
        return drawn.sum(), jnp.flip(drawn), jnp.cumsum(drawn, axis=0), drawn.max()

    text = jax.jit(readers).lower(fused(jax.random.key(0))).compile().as_text()
    assert text.count(" shift-left(") == 20


@component
class Sealed(Env):
    """Begins every episode with a key that it was not given, and keeps drawing."""

    @property
    def action_space(self):
        return Discrete(2)

    @property
    def max_episode_steps(self):
        return 3

    def reset(self, key):
        return jnp.zeros(1), (jax.random.key(5), jnp.int32(0))

    def transition(self, key, state, action):
        own, time = state
        own, drawn = jax.random.split(own)
        paid = jax.random.uniform(drawn)
        over = time + 1 == 3
        return outcome(jnp.zeros(1), paid, terminated=over), (own, time + 1)


def test_an_environment_may_keep_keys_of_its_own():
    """It trains, is evaluated, and its keys are JAX's own afterwards."""
    config = Config(
        Sealed(), num_envs=2, num_steps=8, network=LINEAR, terms=(Surrogate(),)
    )
    run = jax.jit(learner.init)(program(config), jax.random.key(0))

    @jax.jit
    def trained(run):
        after, metrics = learner.iteration(run, Progress.at(0.0))
        return after, metrics["episodes/count"]

    after, count = trained(run)
    assert count == 4
    again, _ = trained(after)
    chex.assert_trees_all_equal_dtypes(again.actor.env_state, after.actor.env_state)
    assert after.actor.env_state[0].dtype == jax.random.key(0).dtype
    key, paid = jax.random.key(5), []
    for _ in range(3):
        key, drawn = jax.random.split(key)
        paid.append(jax.random.uniform(drawn))
    evaluate = jax.jit(run_episodes, static_argnums=2)
    returns, ended = evaluate(after.learner, jax.random.key(1), 4)
    assert ended.all()
    chex.assert_trees_all_close(returns, jnp.full(4, sum(paid)), rtol=1e-6)


def test_generators_of_other_settings_are_left_alone():
    with jax.threefry_partitionable(False):
        key = jax.random.key(3)
        assert fused(key).dtype == key.dtype
