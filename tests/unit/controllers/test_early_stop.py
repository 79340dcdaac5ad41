"""Early stop and epoch budget against worked numbers and plain loops."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.component import as_arrays
from ppo_jax.controllers import Ema, EpochBudget, KlStop, MovingAverage

RAW = MovingAverage(window=1)


def begin(stop):
    """The state before an update of four epochs."""
    return stop.begin(stop.init(), num_epochs=4)


@jax.jit
def observe(stop, kls):
    """All states of one epoch, before `end_epoch`."""

    def step(state, kl):
        state = stop.observe(state, {"train/approx_kl": kl})
        return state, state

    return jax.lax.scan(step, begin(stop), kls)


def stops(stop, kls):
    """After how many steps it stops; None: not in this epoch."""
    _, states = observe(as_arrays(stop), jnp.asarray(kls, jnp.float32))
    stopped = np.asarray(states.stopped)
    return int(np.argmax(stopped)) + 1 if stopped.any() else None


def oracle(stop, kls):
    """The same in plain Python; the smoothing is the mean of the last W."""
    run, seen = 0, []
    for step, kl in enumerate(kls, 1):
        seen.append(kl)
        smooth = np.mean(seen[-stop.smoothing.window :])
        run = run + 1 if kl > stop.target or smooth > stop.target else 0
        if kl >= stop.absolute * stop.target or run >= stop.consecutive:
            return step
    return None


def test_absolute_stop_includes_its_threshold():
    """PROP-7.8: 2.5 · target stops, the next smaller float does not."""
    stop = KlStop(target=0.5, absolute=2.5, share=None, smoothing=RAW)
    below = np.nextafter(np.float32(1.25), np.float32(0))
    assert stops(stop, [0.1, below, 0.1]) is None
    assert stops(stop, [0.1, 1.25, 0.1]) == 2
    without = KlStop(target=0.5, absolute=None, share=None)
    assert stops(without, [9.0, 9.0]) is None


def test_a_step_at_the_target_does_not_exceed_it():
    """PROP-7.8: exceeding is strict."""
    stop = KlStop(target=0.5, consecutive=2, share=None, smoothing=RAW)
    above = np.nextafter(np.float32(0.5), np.float32(1))
    assert stops(stop, [0.5] * 5) is None
    assert stops(stop, [above, 0.5, above, 0.5]) is None
    assert stops(stop, [0.5, above, above]) == 3


@pytest.mark.parametrize(("share", "stopped"), [(0.15, True), (0.1501, False)])
def test_share_at_the_end_of_an_epoch(share, stopped):
    """PROP-7.8: 3 of 20 steps reach a share of .15."""
    stop = KlStop(target=0.5, absolute=None, share=share, smoothing=RAW)
    state, _ = observe(as_arrays(stop), jnp.where(jnp.arange(20) < 3, 1.0, 0.1))
    assert not state.stopped
    after = stop.end_epoch(state)
    assert bool(after.stopped) == stopped
    fresh = begin(stop)._replace(reason=after.reason)
    chex.assert_trees_all_equal(after, fresh)


@pytest.mark.parametrize(
    ("kls", "reason"),
    [
        ([0.1, 0.1, 0.1, 0.1], None),
        ([0.1, 2.0, 0.1, 0.1], "absolute"),
        ([0.1, 0.6, 0.6, 0.6], "consecutive"),
        ([0.1, 0.6, 1.3, 0.1], "absolute"),  # Of two at once.
        ([0.1, 0.6, 0.1, 0.6], "share"),
    ],
)
def test_a_stop_says_why(kls, reason):
    """PROP-7.8: one rule, and none without a stop."""
    stop = KlStop(target=0.5, consecutive=2, share=0.5, smoothing=RAW)
    state, _ = observe(as_arrays(stop), jnp.array(kls))
    said = stop.metrics(stop.init(), stop.end_epoch(state), {"train/approx_kl": 0.6})
    given = {"absolute", "consecutive", "share"}
    assert {name: said[f"train/kl_stop_reason/{name}"] for name in given} == {
        name: float(name == reason) for name in given
    }
    assert said["train/kl_early_stop"] == (reason is not None)


def test_an_epoch_without_steps_does_not_stop():
    stop = KlStop(target=0.5)
    assert not stop.end_epoch(begin(stop)).stopped


def test_stops_equal_a_plain_loop():
    """R-D12, PROP-7.8: 200 random epochs."""
    stop = KlStop(
        target=0.3, absolute=3.0, consecutive=3, smoothing=MovingAverage(window=4)
    )
    kls = np.random.default_rng(0).gamma(1.0, 0.2, (200, 12)).astype(np.float32)
    _, states = jax.jit(jax.vmap(observe, (None, 0)))(as_arrays(stop), jnp.asarray(kls))
    stopped = np.asarray(states.stopped)
    got = [int(np.argmax(row)) + 1 if row.any() else None for row in stopped]
    want = [oracle(stop, row.astype(np.float64)) for row in kls]
    assert got == want
    assert len(set(want)) > 5


def test_a_stop_is_final_and_freezes_what_was_measured():
    stop = KlStop(target=0.5)
    _, states = observe(as_arrays(stop), jnp.array([2.0, 0.1, jnp.nan]))
    assert states.stopped.tolist() == [True, True, True]
    assert states.steps.tolist() == [1, 1, 1]
    assert stop.end_epoch(stop.end_epoch(jax.tree.map(lambda x: x[2], states))).stopped


def test_a_non_finite_divergence_is_not_observed():
    stop = KlStop(target=0.5, smoothing=Ema(rate=0.5))
    _, states = observe(as_arrays(stop), jnp.array([0.1, jnp.nan, jnp.inf]))
    first, *others = (jax.tree.map(lambda x, i=i: x[i], states) for i in range(3))
    for state in others:
        chex.assert_trees_all_equal(state, first)


def test_stopping_equals_running_only_the_first_steps():
    """PROP-7.7: masked gradient steps in a scan against a loop that breaks."""
    stop = KlStop(target=0.02, consecutive=2, share=None, smoothing=RAW)
    data = jnp.asarray(np.random.default_rng(1).normal(1, 0.1, (12, 4)), jnp.float32)

    def gradient_step(params, rows):
        return params - 0.1 * jax.grad(lambda p: jnp.mean((p - rows) ** 2))(params)

    @jax.jit
    def masked(params):
        def step(carry, rows):
            params, state = carry
            moved = jnp.where(state.stopped, params, gradient_step(params, rows))
            said = {"train/approx_kl": moved**2}
            return (moved, stop.observe(state, said)), state.stopped

        start = (params, begin(stop))
        (params, _), skipped = jax.lax.scan(step, start, data)
        return params, skipped

    got, skipped = masked(jnp.zeros(()))
    params, above = jnp.zeros(()), 0
    for rows in data:
        params = jax.jit(gradient_step)(params, rows)
        above = above + 1 if params**2 > 0.02 else 0
        if params**2 >= 0.05 or above == 2:
            break
    assert 0 < int(skipped.sum()) < 11
    chex.assert_trees_all_close(got, params, rtol=1e-6)


def test_epochs_shrink_after_stops_and_recover():
    """Half the epochs after a stop, twice as many after a calm update."""
    budget, share, got = EpochBudget(decay=0.5, calm=1.5), EpochBudget().init(), []
    history = [(True, 0.9), (True, 0.9), (True, 0.9), (False, 0.019), (False, 0.0134)]
    history += [(False, 0.0133), (False, 0.0), (False, 0.0), (False, jnp.nan)]
    for stopped, kl in history:
        share = budget.update(share, stopped, kl, target=0.02, num_epochs=4)
        got.append(int(budget.epochs(share, num_epochs=4)))
    assert got == [2, 1, 1, 1, 1, 2, 4, 4, 4]


def test_members_have_their_own_targets():
    stops = jax.vmap(lambda x: as_arrays(KlStop(x)))(jnp.array([0.05, 0.2]))
    kls = jnp.array([0.16, 0.16, 0.02, 0.0])
    states, _ = jax.vmap(observe, (0, None))(stops, kls)
    assert states.stopped.tolist() == [True, False]


def test_what_an_update_begins_with_depends_on_the_member():
    """So that `jax.vmap` maps the loops that carry it once."""

    def begun(memory):
        state = KlStop(0.02, smoothing=Ema(0.5)).begin(memory, num_epochs=4)
        assert all(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(state))
        return state

    jax.vmap(begun)(jnp.ones(2))


@pytest.mark.parametrize(
    "make",
    [
        lambda: KlStop(target=0.0),
        lambda: KlStop(target=0.1, absolute=0.0),
        lambda: KlStop(target=0.1, consecutive=0),
        lambda: KlStop(target=0.1, share=0.0),
        lambda: KlStop(target=0.1, share=1.5),
        lambda: EpochBudget(decay=0.0),
        lambda: EpochBudget(calm=0.5),
    ],
)
def test_impossible_numbers_are_errors(make):
    with pytest.raises(ValueError, match=r"\w+\.\w+: expected"):
        make()
