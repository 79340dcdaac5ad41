"""How numbers of a population move."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.component import component
from ppo_jax.errors import Misfit
from ppo_jax.pbt.explore import (
    Explorer,
    Movers,
    Perturb,
    PerturbOrResample,
    Resample,
    explore,
    moving,
)
from ppo_jax.pbt.ranges import Choice, LogUniform, Range, Uniform
from ppo_jax.pbt.space import Space

SPACE = Space.of(
    {
        "optimizer.learning_rate": LogUniform(1e-5, 5e-4, factor=1.2),
        "surrogate.clip_eps": Uniform(0.05, 0.3, factor=1.1, resample=0.2),
        "value.coef": Uniform(-1.0, 1.0),
        "batch.scale": Choice((1.0, 2.0, 4.0, 8.0)),
    }
)
START = (1e-4, 0.1, 0.0, 2.0)
EXPLORERS = [Perturb(), Resample(), PerturbOrResample()]
each_explorer = pytest.mark.parametrize(
    "explorer", EXPLORERS, ids=lambda e: type(e).__name__
)


SIZE = 4_000
EVERYBODY = np.ones(SIZE, bool)
jitted = jax.jit(explore, static_argnums=(0, 1))


def moved(explorer, values, moves, keys):
    return jax.device_get(jitted(explorer, SPACE, values, moves, keys))


def population(size=SIZE):
    """The same numbers for all members, and their keys."""
    pairs = zip(SPACE.paths, START, strict=True)
    values = {path: np.full(size, x, np.float32) for path, x in pairs}
    return values, jax.random.split(jax.random.key(0), size)


@each_explorer
def test_only_copiers_explore(explorer):
    """The numbers of all others keep their bits."""
    values, keys = population()
    moves = np.arange(SIZE) % 3 == 0
    got = moved(explorer, values, moves, keys)
    for path in SPACE.paths:
        chex.assert_type(got[path], jnp.float32)
        chex.assert_trees_all_equal(got[path][~moves], values[path][~moves])
        assert np.mean(got[path][moves] != values[path][moves]) > 0.5


@each_explorer
def test_numbers_stay_in_their_ranges(explorer):
    """After 100 generations in which everybody explores."""
    values, keys = population(32)

    @jax.jit
    def generations(values):
        def generation(values, i):
            fresh = jax.vmap(lambda key: jax.random.fold_in(key, i))(keys)
            return explore(explorer, SPACE, values, jnp.ones(32, bool), fresh), values

        return jax.lax.scan(generation, values, jnp.arange(100))[1]

    history = generations(values)
    for path, range_ in SPACE.ranges:
        seen = np.asarray(history[path])
        if isinstance(range_, Choice):
            assert set(seen.reshape(-1)) == set(range_.values)
        else:
            low, high = np.float32([range_.low, range_.high])
            assert (seen >= low).all()
            assert (seen <= high).all()
            assert seen.min() < low + 0.2 * (high - low)
            assert seen.max() > high - 0.2 * (high - low)


def test_perturb_goes_up_as_often_as_down():
    """Exactly v · f or v / f, half of the members each."""
    values, keys = population()
    got = moved(Perturb(), values, EVERYBODY, keys)
    wanted = [(1e-4, 1.2), (0.1, 1.1)]
    for path, (value, factor) in zip(SPACE.paths, wanted, strict=False):
        numbers, counts = np.unique(got[path], return_counts=True)
        chex.assert_trees_all_close(
            numbers, np.array([value / factor, value * factor]), rtol=1e-6
        )
        chex.assert_trees_all_close(counts / SIZE, 0.5, rtol=0, atol=0.03)
    numbers = np.unique(got["batch.scale"])
    chex.assert_trees_all_equal(numbers, np.array([1.0, 4.0]))


def test_every_member_and_number_has_a_key_of_its_own():
    """What one does says nothing about another."""
    values, keys = population()
    got = moved(Perturb(), values, EVERYBODY, keys)
    ups = np.stack([got[path] > values[path] for path in SPACE.paths])
    correlation = np.corrcoef(ups) - np.eye(4)
    assert np.abs(correlation).max() < 0.06
    for row in ups:
        assert abs(np.corrcoef(row[:-1], row[1:])[0, 1]) < 0.06


def test_numbers_are_drawn_anew_with_the_probability_of_their_range():
    """.25 and .2: what is no neighbour was drawn."""
    values, keys = population()
    got = moved(PerturbOrResample(), values, EVERYBODY, keys)
    for path, share in (("optimizer.learning_rate", 0.25), ("surrogate.clip_eps", 0.2)):
        range_ = dict(SPACE.ranges)[path]
        ratio = np.asarray(got[path] / values[path], np.float64)
        near = np.isclose(ratio, range_.factor, 1e-5) | np.isclose(
            ratio, 1 / range_.factor, 1e-5
        )
        chex.assert_trees_all_close(1 - near.mean(), share, rtol=0, atol=0.03)


@each_explorer
def test_the_order_of_members_means_nothing(explorer):
    """Permuting members and keys permutes the result."""
    values, keys = population()
    moves = np.arange(SIZE) % 2 == 0
    apart = np.linspace(1.0, 1.15, SIZE, dtype=np.float32)
    values = {path: x * apart for path, x in values.items()}
    got = moved(explorer, values, moves, keys)
    order = np.random.default_rng(5).permutation(SIZE)
    shuffled = {path: x[order] for path, x in values.items()}
    again = moved(explorer, shuffled, moves[order], keys[order])
    for path in SPACE.paths:
        chex.assert_trees_all_equal(again[path], got[path][order])


def test_nothing_to_search_is_nothing_to_move():
    keys = jax.random.split(jax.random.key(0), 3)
    assert explore(Perturb(), Space(), {}, jnp.ones(3, bool), keys) == {}


def test_a_rule_has_to_say_what_it_does(key):
    with pytest.raises(NotImplementedError):
        Explorer()(Range(), jnp.zeros(()), key)


@component
class Far(Explorer):
    """Says what it is told to say."""

    words: object = None

    def __call__(self, range_, value, key):
        return self.words


@component
class Some(Movers):
    """Says what it is told to say."""

    words: object = None

    def __call__(self, copied, proceed):
        return self.words


@pytest.mark.parametrize("words", [None, jnp.ones(2), "1"])
def test_an_explorer_says_a_number(words):
    """A number of Python is one."""
    values, keys = population(2)
    with pytest.raises(Misfit, match=r"^Far: expected the shape \(\), the next number"):
        explore(Far(words), SPACE, values, np.ones(2, bool), keys)
    number = jax.eval_shape(
        lambda: explore(Far(2.0), SPACE, values, np.ones(2, bool), keys)
    )
    assert {x.shape for x in number.values()} == {(2,)}


@pytest.mark.parametrize("words", [None, np.array(True), np.ones(3)])
def test_movers_say_who_moves(words):
    said = r"^Some: expected the shape \(3,\), bool per member, got "
    with pytest.raises(Misfit, match=said):
        moving(Some(words), np.ones(3, bool), np.array(True))
