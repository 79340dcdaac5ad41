"""Who copies whom, against plain rankings; and when a round takes place."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.component import as_arrays, component
from ppo_jax.errors import Misfit
from ppo_jax.pbt.select import (
    BinaryTournament,
    Readiness,
    Selection,
    Selector,
    Truncation,
    only_if,
    require_members,
    selected,
)

SELECTORS = [Truncation(ratio=0.25), BinaryTournament()]
each_selector = pytest.mark.parametrize(
    "selector", SELECTORS, ids=lambda s: type(s).__name__
)


@jax.jit
def select(selector, fitness, ready, keys):
    return selector(fitness, ready, keys)


def draw(selector, fitness, ready=None, seed=0):
    """A selection as NumPy arrays."""
    fitness = jnp.asarray(fitness, jnp.float32)
    ready = jnp.ones(fitness.shape, bool) if ready is None else jnp.asarray(ready)
    keys = jax.random.split(jax.random.key(seed), fitness.size)
    return [np.asarray(x) for x in select(as_arrays(selector), fitness, ready, keys)]


@pytest.mark.parametrize("size", [4, 8, 10])
@pytest.mark.parametrize("ratio", [0.2, 0.25, 0.3, 0.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_truncation_copies_the_best_over_the_worst(size, ratio, sign):
    """Exactly ⌊P · ratio⌋ at either end, or one, whether more or less is better."""
    count = max(int(size * ratio + 1e-9), 1)
    for seed in range(5):
        score = np.random.default_rng(seed).permutation(size)
        parent, copied = draw(Truncation(ratio=ratio), sign * score, seed=seed)
        order = np.argsort(-sign * score)
        best, worst = order[:count], order[size - count :]
        chex.assert_trees_all_equal(np.flatnonzero(copied), np.sort(worst))
        assert np.isin(parent[copied], best).all()
        chex.assert_trees_all_equal(parent[~copied], np.flatnonzero(~copied))
        assert (parent[copied] != np.flatnonzero(copied)).all()


@pytest.mark.parametrize(("few", "copies"), [([3], 0), ([3, 6], 1), ([0, 3, 6], 1)])
def test_of_two_that_are_ready_one_copies(few, copies):
    """However little the ratio is of them; a member alone has nobody to copy."""
    ready = np.isin(np.arange(8), few)
    parent, copied = draw(Truncation(ratio=0.25), np.arange(8), ready)
    chex.assert_trees_all_equal(np.flatnonzero(copied), np.array(few[:copies]))
    assert (parent[copied] == few[-1]).all()


def test_truncation_draws_every_parent_as_often():
    fitness = jnp.arange(12.0)
    keys = jax.random.split(jax.random.key(3), (800, 12))
    rule = jax.vmap(Truncation(ratio=0.25), (None, None, 0))
    parent, copied = jax.jit(rule)(fitness, jnp.ones(12, bool), keys)
    assert (np.asarray(copied) == (np.arange(12) < 3)).all()
    drawn = np.asarray(parent[:, :3])
    counts = np.bincount(drawn.reshape(-1), minlength=12)
    assert counts[:9].sum() == 0
    chex.assert_trees_all_close(counts[9:], 800, rtol=0.12)
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 0.12


def test_a_tournament_is_lost_to_a_better_opponent_only():
    """The one that triggers the copy is the one that is copied."""
    fitness = jnp.array([3.0, 1.0, 2.0, 2.0])
    keys = jax.random.split(jax.random.key(3), (3000, 4))
    rule = jax.vmap(BinaryTournament(), (None, None, 0))
    parent, copied = map(np.asarray, jax.jit(rule)(fitness, jnp.ones(4, bool), keys))
    score = np.asarray(fitness)
    assert (score[parent] > score)[copied].all()
    chex.assert_trees_all_equal(parent[~copied], np.nonzero(~copied)[1])
    # Each of three opponents as often: nobody beats 0, all beat 1, only 0 beats 2, 3.
    chex.assert_trees_all_close(
        copied.mean(axis=0), np.array([0, 1, 1 / 3, 1 / 3]), rtol=0, atol=0.04
    )
    counts = np.bincount(parent[:, 1], minlength=4)
    chex.assert_trees_all_close(
        counts, np.array([1000, 0, 1000, 1000]), rtol=0, atol=110
    )


@each_selector
def test_a_broken_member_is_healed_and_never_a_parent(selector):
    """Whatever its fitness is, NaN or an infinity of either sign."""
    for broken in (np.nan, np.inf, -np.inf):
        for seed in range(10):
            fitness = [5.0, broken, 3.0, broken, 1.0, broken, 2.0, 4.0]
            ready = [True, True, True, False, True, True, True, True]
            parent, copied = draw(selector, fitness, ready, seed)
            assert copied[[1, 3, 5]].all()
            assert not np.isin(parent[copied], [1, 3, 5]).any()
            if isinstance(selector, Truncation):
                assert copied.sum() == 3
                assert np.isin(parent[copied], [0, 7]).all()


def test_many_broken_members_share_the_few_parents():
    """More copies than there are healthy members; the healthy ones stay."""
    for seed in range(10):
        fitness = [np.nan, 1.0, np.nan, np.nan, 2.0, np.nan, np.nan, np.nan]
        parent, copied = draw(Truncation(ratio=0.5), fitness, seed=seed)
        chex.assert_trees_all_equal(np.flatnonzero(~copied), np.array([1, 4]))
        assert np.isin(parent, [1, 4]).all()


def test_the_share_of_the_worst_is_exact():
    """150 · .42 = 63, just below it in float32."""
    assert np.float32(0.42) * np.float32(150) < 63
    _, copied = draw(Truncation(ratio=0.42), np.arange(150))
    assert copied.sum() == 63


def test_broken_members_count_among_the_worst():
    """⌊8 · .25⌋ = 2: the broken one and the worst of the others."""
    fitness = [5.0, 8.0, 3.0, 7.0, np.nan, 6.0, 2.0, 4.0]
    parent, copied = draw(Truncation(ratio=0.25), fitness)
    chex.assert_trees_all_equal(np.flatnonzero(copied), np.array([4, 6]))
    assert np.isin(parent[copied], [1, 3]).all()


@each_selector
def test_nobody_to_copy_is_nobody_copies(selector):
    """All broken; a single member; one healthy member heals the rest."""
    for fitness in ([np.nan] * 4, [1.0]):
        parent, copied = draw(selector, fitness)
        chex.assert_trees_all_equal(parent, np.arange(len(fitness)))
        assert not copied.any()
    parent, copied = draw(selector, [np.nan, 2.0, np.nan])
    chex.assert_trees_all_equal(parent, np.array([1, 1, 1]))
    chex.assert_trees_all_equal(copied, np.array([True, False, True]))


@each_selector
def test_who_is_not_ready_is_left_alone(selector):
    """Neither the best nor the worst takes part."""
    fitness = np.array([9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -9.0])
    ready = np.array([False, True, True, True, True, True, True, False])
    for seed in range(10):
        parent, copied = draw(selector, fitness, ready, seed)
        assert not copied[[0, 7]].any()
        assert not np.isin(parent[copied], [0, 7]).any()
        if isinstance(selector, Truncation):
            chex.assert_trees_all_equal(np.flatnonzero(copied), np.array([1]))
            assert parent[1] == 6
    parent, copied = draw(selector, fitness, np.zeros(8, bool))
    assert not copied.any()


@each_selector
def test_equals_do_not_copy(selector):
    """Nor does any of them count for more: lots decide who heals, and who is worst."""
    parent, copied = draw(selector, np.full(8, 500.0))
    assert not copied.any() and parent.tolist() == [*range(8)]
    healed = [draw(selector, [5, np.nan, 5, 5], seed=seed) for seed in range(20)]
    assert all(copied.tolist() == [False, True, False, False] for _, copied in healed)
    assert {int(parent[1]) for parent, _ in healed} == {0, 2, 3}
    lost = [draw(selector, [0, 0, 9, 0], seed=seed)[1] for seed in range(20)]
    assert {i for copied in lost for i in np.flatnonzero(copied)} == {0, 1, 3}


@each_selector
@pytest.mark.parametrize("levels", [3, 1000])
def test_the_order_of_members_means_nothing(selector, levels):
    """Permuting members and keys permutes the selection; same keys, same selection."""
    rng = np.random.default_rng(0)
    fitness = rng.integers(levels, size=8).astype(np.float32)
    fitness[3] = np.nan
    ready = np.arange(8) != 5
    keys = jax.random.split(jax.random.key(1), 8)
    parent, copied = select(selector, jnp.asarray(fitness), jnp.asarray(ready), keys)
    again = select(selector, jnp.asarray(fitness), jnp.asarray(ready), keys)
    chex.assert_trees_all_equal(again.parent, parent)
    for _ in range(5):
        order = rng.permutation(8)
        moved = select(
            selector,
            jnp.asarray(fitness[order]),
            jnp.asarray(ready[order]),
            keys[order],
        )
        chex.assert_trees_all_equal(order[moved.parent], parent[order])
        chex.assert_trees_all_equal(moved.copied, copied[order])


def test_a_round_that_does_not_proceed_changes_nothing():
    """P4: parents are the members themselves."""
    selection = SELECTORS[0](
        jnp.arange(8.0), jnp.ones(8, bool), jax.random.split(jax.random.key(0), 8)
    )
    assert selection.copied.any()
    held = only_if(jnp.array(False), selection)
    chex.assert_trees_all_equal(held.parent, np.arange(8))
    assert not held.copied.any()
    kept = only_if(jnp.array(True), selection)
    chex.assert_trees_all_equal(kept, selection)
    chex.assert_type(kept.parent, jnp.int32)


def rounds(readiness, history):
    """Proceed, fallback and waited after every round."""
    check, waited, seen = jax.jit(readiness), jnp.zeros((), jnp.int32), []
    for count in history:
        result = check(jnp.arange(8) < count, waited)
        waited = result.waited
        seen.append((bool(result.proceed), bool(result.fallback), int(waited)))
    return seen


def test_enough_ready_members():
    """P4: ⌊8 · .75⌋ = 6."""
    wanted = [(False, False, 1), (False, False, 2), (True, False, 0), (True, False, 0)]
    assert rounds(Readiness(share=0.75), [0, 5, 6, 8]) == wanted


def test_a_share_of_nobody_is_one_member():
    assert rounds(Readiness(share=0.1), [0, 1]) == [(False, False, 1), (True, False, 0)]


def test_the_fallback_comes_with_the_tenth_failed_round():
    """P4, R-A12: with two ready members, and it counts rounds; then anew."""
    seen = rounds(Readiness(), [2] * 20)
    assert [i for i, round_ in enumerate(seen) if round_[0]] == [9, 19]
    assert seen[8:10] == [(False, False, 9), (True, True, 0)]


def test_one_ready_member_is_never_enough():
    """P4, R-A12: it waits until there are two."""
    seen = rounds(Readiness(), [1] * 12 + [2])
    assert not any(round_[0] for round_ in seen[:12])
    assert seen[11] == (False, False, 12)
    assert seen[12] == (True, True, 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Truncation(ratio=0.0),
        lambda: Truncation(ratio=0.51),
        lambda: Readiness(share=0.0),
        lambda: Readiness(min_ready=1),
        lambda: Readiness(max_wait=0),
        lambda: Readiness(max_wait=float("inf")),
    ],
)
def test_impossible_numbers_are_errors(make):
    with pytest.raises(ValueError, match=r"\w+\.\w+: expected"):
        make()


def test_a_rule_has_to_say_what_it_does():
    with pytest.raises(NotImplementedError):
        Selector()(jnp.zeros(2), jnp.ones(2, bool), jax.random.split(jax.random.key(0)))


@component
class Saying(Selector):
    """Says what it is told to say."""

    words: object = None

    def __call__(self, fitness, ready, keys):
        return self.words


OWN, NOBODY = np.arange(3), np.zeros(3, bool)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (None, r"expected pbt\.Selection\(parent, copied\), got None"),
        ((OWN, NOBODY), r"expected pbt\.Selection\(parent, copied\), got a tuple of 2"),
        (Selection(OWN[:1], NOBODY), r"parent: .*\(3,\), int32 per member, got int64"),
        (Selection(OWN / 2, NOBODY), r"parent: .*, got float64\[3\]"),
        (
            Selection(OWN, np.array(True)),
            r"copied: .*\(3,\), bool per member, got bool",
        ),
        (Selection(OWN, OWN), r"copied: .*, got int64\[3\]"),
    ],
)
def test_there_is_a_parent_and_a_flag_for_each(words, said):
    with pytest.raises(Misfit, match=f"^Saying: {said}"):
        selected(Saying(words), jnp.zeros(3), jnp.ones(3, bool), None)


@pytest.mark.parametrize("parent", [[0, 2], [-1, 0], [[0, 1], [1, 2]]])
def test_a_parent_is_a_member(parent):
    """Of its own population, if there are several."""
    with pytest.raises(Misfit, match=r"^Saying: expected parents from 0 to 1, got \["):
        require_members(Saying(), np.array(parent))
    require_members(Saying(), np.array([[0, 1], [1, 0]]))
