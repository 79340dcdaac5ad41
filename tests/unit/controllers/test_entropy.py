"""The entropy coefficient against worked numbers and a plain state machine."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.component import as_arrays
from ppo_jax.controllers import EntropySchedule, Plateau, slope

WORKED = EntropySchedule(
    initial=0.01,
    final=0.0,
    decay_updates=20,
    floor=5e-4,
    plateau=Plateau(window=10, tolerance=0.002, min_updates=10),
)
FULL = EntropySchedule(
    initial=0.02,
    final=0.004,
    decay_updates=12,
    floor=0.001,
    plateau=Plateau(window=4, tolerance=0.01, min_updates=6),
    boost=1.5,
    boost_patience=2,
    boost_cap=3,
)


@functools.partial(jax.jit, static_argnames="batched")
def run(schedule, entropies, explained, batched=False):
    """The coefficient before every update, and the last state."""

    def one(schedule):
        def step(state, inputs):
            return schedule.update(state, *inputs), schedule.coefficient(state)

        return jax.lax.scan(step, schedule.init(), (entropies, explained))

    return jax.vmap(one)(schedule) if batched else one(schedule)


def coefficients(schedule, entropies, explained=None):
    explained = np.ones(len(entropies)) if explained is None else explained
    arrays = (jnp.asarray(x, jnp.float32) for x in (entropies, explained))
    return np.asarray(run(as_arrays(schedule), *arrays)[1])


def oracle(schedule, entropies, explained):
    """The rules in plain Python and float64."""
    seen, started, bad, result = [], None if schedule.plateau else 0, 0, []
    for entropy, ev in zip(entropies, explained, strict=True):
        u = len(seen)
        if started is None:
            value = schedule.initial
        else:
            share = min(1.0, (u - started) / schedule.decay_updates)
            value = schedule.initial + share * (schedule.final - schedule.initial)
        excess = max(bad - schedule.boost_patience, 0)
        boosted = max(value, schedule.floor) * schedule.boost**excess
        boosted = min(boosted, schedule.boost_cap * schedule.initial)
        result.append(max(schedule.floor, value, boosted))
        seen.append(entropy)
        bad = bad + 1 if ev < 0 else 0
        plateau = schedule.plateau
        if started is None and len(seen) >= max(plateau.window, plateau.min_updates):
            line = np.polyfit(range(plateau.window), seen[-plateau.window :], 1)
            if abs(line[0]) <= plateau.tolerance:
                started = len(seen)
    return np.array(result)


def test_coefficient_by_hand():
    """PROP-6.1: .01 → 0 in 20 updates from the 10th on, floor 5e-4."""
    got = coefficients(WORKED, np.full(40, 1.2))
    chex.assert_trees_all_close(
        got[[0, 10, 15, 20, 29, 30]],
        np.array([0.01, 0.01, 0.0075, 0.005, 0.0005, 0.0005]),
        rtol=1e-5,
    )


@pytest.mark.parametrize("seed", range(4))
def test_coefficient_equals_a_plain_state_machine(seed):
    """PROP-14.4, PROP-6.2, R-B4, R-C5: any history of entropies and of variances."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(0, 0.02, 60) * (np.arange(60) < 20)
    entropies = (2 + np.cumsum(steps)).astype(np.float32).astype(np.float64)
    explained = rng.normal(0.1, 0.5, 60)
    explained[30:40] = -1.0
    got = coefficients(FULL, entropies, explained)
    want = oracle(FULL, entropies, explained)
    assert (want < FULL.initial).any()
    assert (want > 2 * FULL.initial * FULL.final).any()
    chex.assert_trees_all_close(got, want, rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_coefficient_stays_within_floor_and_cap(seed):
    """PROP-6.2, PROP-6.5, R-B4: also when the boost outgrows float32."""
    rng = np.random.default_rng(seed)
    explained = np.where(np.arange(300) > 20, -1.0, rng.normal(size=300))
    entropies = rng.normal(size=300)
    got = coefficients(FULL, entropies, explained)
    assert (got >= np.float32(FULL.floor)).all()
    assert (got <= np.float32(0.06) * (1 + 1e-6)).all()
    chex.assert_trees_all_close(got[-1], 0.06, rtol=1e-6)
    for floor in (0.0, 1e-4):
        off = EntropySchedule(initial=0.0, final=0.0, boost=2.0, floor=floor)
        chex.assert_trees_all_close(
            coefficients(off, entropies, explained), floor, rtol=1e-7
        )


def test_the_decay_waits_for_the_plateau_and_is_only_shifted_by_it():
    """PROP-6.2, R-C5: before the latch nothing decays; afterwards nothing stacks."""
    falling = np.linspace(3, 1, 30)
    got = coefficients(WORKED, np.concatenate([falling, np.full(40, 1.0)]))
    chex.assert_trees_all_close(got[:31], 0.01, rtol=1e-6)
    without = EntropySchedule(initial=0.01, final=0.0, decay_updates=20, floor=5e-4)
    started = int(np.argmax(got < 0.0099999)) - 1
    plain = coefficients(without, np.full(70 - started, 1.0))
    chex.assert_trees_all_close(got[started:], plain, rtol=1e-6)


def test_a_coefficient_that_rises_is_not_capped_as_a_boost():
    """PROP-6.5: from .001 to .02 in four updates, twenty times its beginning."""
    schedule = EntropySchedule(initial=0.001, final=0.02, decay_updates=4)
    got = coefficients(schedule, np.ones(6))
    want = [0.001, 0.00575, 0.0105, 0.01525, 0.02, 0.02]
    chex.assert_trees_all_close(got, np.array(want), rtol=1e-6)
    boosted = dataclasses.replace(schedule, boost=2.0, boost_patience=0.0)
    got = coefficients(boosted, np.ones(6), [-1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
    # A boost reaches 5 · .001 at most, and takes nothing from the schedule.
    chex.assert_trees_all_close(got, np.array([0.001, *want[1:]]), rtol=1e-6)
    slow = dataclasses.replace(boosted, decay_updates=40.0)
    got = coefficients(slow, np.ones(4), -np.ones(4))
    chex.assert_trees_all_close(
        got, np.array([0.001, 0.00295, 0.005, 0.005]), rtol=1e-6
    )


def test_the_latch_is_one_way():
    """R-C5: an entropy that moves again does not restart anything."""
    entropies = np.concatenate([np.full(12, 1.0), np.linspace(1, 5, 20)])
    got = coefficients(WORKED, entropies)
    chex.assert_trees_all_close(got, coefficients(WORKED, np.full(32, 1.0)), rtol=1e-6)


@pytest.mark.parametrize(("window", "min_updates", "first"), [(4, 0, 4), (4, 9, 9)])
def test_a_plateau_needs_a_full_window_and_some_updates(window, min_updates, first):
    plateau = Plateau(window=window, tolerance=0.0, min_updates=min_updates)
    schedule = EntropySchedule(0.01, 0.0, decay_updates=1, plateau=plateau)
    got = coefficients(schedule, np.zeros(12))
    chex.assert_trees_all_equal(got > 0, np.arange(12) <= first)


def test_a_decay_of_no_length_is_a_step():
    chex.assert_trees_all_equal(coefficients(EntropySchedule(0.5, 0.25), [1.0]), 0.25)


def test_the_boost_waits_and_ends_with_the_first_good_update():
    """PROP-6.5: factor 1.5 for each bad update beyond two."""
    schedule = EntropySchedule(0.1, 0.1, boost=1.5, boost_patience=2, boost_cap=3)
    explained = [-1.0, -1.0, -1.0, -1.0, np.nan, -1.0, -1.0, 0.0, -1.0]
    got = coefficients(schedule, np.ones(9), explained)
    want = [0.1, 0.1, 0.1, 0.15, 0.225, 0.225, 0.3, 0.3, 0.1]
    chex.assert_trees_all_close(got, np.array(want), rtol=1e-5)


def test_a_non_finite_entropy_leaves_the_state_as_it_was():
    """Decision of the house: controllers freeze when an update was a no-op."""
    state = FULL.init()
    for entropy in (1.0, 2.0):
        state = FULL.update(state, jnp.array(entropy), jnp.array(-1.0))
    for entropy in (jnp.nan, jnp.inf):
        after = FULL.update(state, jnp.array(entropy), jnp.array(-1.0))
        chex.assert_trees_all_equal(after, state)


def test_slope_by_hand():
    """PROP-6.4: 0 of a constant, 1 of 0, 1, 2, …"""
    assert slope(jnp.full(24, 1.7)) == 0
    chex.assert_trees_all_close(slope(jnp.arange(24.0)), 1.0, rtol=1e-6)


def test_slope_equals_least_squares(variant):
    """PROP-6.4: against numpy's fit, far from zero as well."""
    y = np.random.default_rng(0).normal(10, 1, 24).astype(np.float32)
    want = np.polyfit(range(24), y.astype(np.float64), 1)[0]
    chex.assert_trees_all_close(variant(slope)(jnp.asarray(y)), want, rtol=1e-4)


def test_members_have_their_own_numbers():
    """One program: each member equals a run of its own."""
    initial = jnp.array([0.01, 0.02, 0.04])
    entropies, explained = jnp.full(30, 1.0), jnp.where(jnp.arange(30) < 20, 1.0, -1.0)
    members = jax.vmap(
        lambda x: as_arrays(EntropySchedule(x, x / 4, x * 400, boost=1.1))
    )(initial)
    state, got = run(members, entropies, explained, batched=True)
    assert state.updates.tolist() == [30, 30, 30]
    for i, x in enumerate(initial.tolist()):
        alone = coefficients(
            EntropySchedule(x, x / 4, x * 400, boost=1.1), entropies, explained
        )
        chex.assert_trees_all_close(got[i], alone, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Plateau(window=1),
        lambda: Plateau(tolerance=-1.0),
        lambda: Plateau(min_updates=-1.0),
        lambda: EntropySchedule(initial=-0.1),
        lambda: EntropySchedule(initial=jnp.inf),
        lambda: EntropySchedule(final=jnp.inf),
        lambda: EntropySchedule(floor=jnp.inf),
        lambda: EntropySchedule(decay_updates=-1.0),
        lambda: EntropySchedule(floor=-1e-3),
        lambda: EntropySchedule(boost=0.9),
        lambda: EntropySchedule(boost_cap=0.5),
    ],
)
def test_impossible_numbers_are_errors(make):
    with pytest.raises(ValueError, match=r"(Plateau|EntropySchedule)\.\w+: expected"):
        make()
