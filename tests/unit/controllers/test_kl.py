"""Early stop, epoch budget and penalty against worked numbers and plain loops."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from controls import pid_oracle

from ppo_jax.component import as_arrays
from ppo_jax.controllers import Ema, EpochBudget, KlPid, KlStop, MovingAverage

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
    """PROP-7.8: 200 random epochs."""
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


def test_a_moving_average_outlives_its_count():
    """R-A8: the mean of 2, 3 and 7."""
    average = MovingAverage(window=3)
    state = average.init()._replace(last=jnp.array([1.0, 2.0, 3.0]))
    state = average.update(state._replace(count=jnp.int32(2**31 - 1)), 7.0)
    assert average.value(state) == 4.0 and state.count == 2**31 - 1


def test_moving_average_by_hand():
    average, state, got = MovingAverage(window=3), MovingAverage(window=3).init(), []
    assert average.value(state) == 0
    for x in (3.0, 5.0, 1.0, 0.0, 5.0):
        state = average.update(state, x)
        got.append(float(average.value(state)))
    chex.assert_trees_all_close(got, [3.0, 4.0, 3.0, 2.0, 2.0], rtol=1e-6)


def test_ema_begins_at_the_first_number():
    average, state, got = Ema(rate=0.25), Ema(rate=0.25).init(), []
    for x in (4.0, 8.0, 1.0):
        state = average.update(state, x)
        got.append(float(average.value(state)))
    chex.assert_trees_all_close(got, [4.0, 5.0, 4.0], rtol=1e-6)


def test_epochs_shrink_after_stops_and_recover():
    """Half the epochs after a stop, twice as many after a calm update."""
    budget, share, got = EpochBudget(decay=0.5, calm=1.5), EpochBudget().init(), []
    history = [(True, 0.9), (True, 0.9), (True, 0.9), (False, 0.019), (False, 0.0134)]
    history += [(False, 0.0133), (False, 0.0), (False, 0.0), (False, jnp.nan)]
    for stopped, kl in history:
        share = budget.update(share, stopped, kl, target=0.02, num_epochs=4)
        got.append(int(budget.epochs(share, num_epochs=4)))
    assert got == [2, 1, 1, 1, 1, 2, 4, 4, 4]


@functools.partial(jax.jit, static_argnames="batched")
def controlled(pid, kls, batched=False):
    def one(pid):
        def step(state, kl):
            state = pid.update(state, kl)
            return state, state

        return jax.lax.scan(step, pid.init(), kls)[1]

    return jax.vmap(one)(pid) if batched else one(pid)


def test_pid_by_hand():
    """PROP-7.5."""
    states = controlled(as_arrays(KlPid(0.08)), jnp.array([0.16, 0.16, 0.02, 0.0]))
    chex.assert_trees_all_close(
        states.coefficient, np.array([0.062, 0.110, 0.071, 0.030]), rtol=0, atol=1e-6
    )
    chex.assert_trees_all_close(
        states.integral, np.array([0.08, 0.16, 0.10, 0.02]), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("ki", [0.0, 2.0])
def test_pid_equals_a_plain_loop(ki):
    """PROP-7.5: with bounds that are hit on both sides, and an integral that winds."""
    pid = KlPid(0.05, initial=0.2, minimum=0.1, maximum=0.4, ki=ki, leak=0.5)
    rng = np.random.default_rng(0)
    calm = np.full(20, 0.0037)
    kls = np.concatenate([rng.gamma(1, 0.2, 40), calm, rng.gamma(1, 0.05, 20)])
    want = pid_oracle(pid, kls)
    states = controlled(as_arrays(pid), jnp.asarray(kls, jnp.float32))
    got = np.stack([states.coefficient, states.integral], axis=1)
    assert (got[:, 0].min(), got[:, 0].max()) == (np.float32(0.1), np.float32(0.4))
    inward = (got[1:, 0] == np.float32(0.4)) & (kls[1:] < 0.05)
    assert inward.any() == (ki > 0)
    chex.assert_trees_all_close(got, want, rtol=0, atol=2e-5)


def test_an_error_that_pushes_back_inside_integrates_as_always():
    """PROP-7.5, by hand: still at the upper bound, but on the way back."""
    pid = KlPid(0.25, initial=1.0, maximum=1.0, kp=0.0, ki=1.0, kd=0.0, leak=0.5)
    states = controlled(as_arrays(pid), jnp.array([1.0, 0.125, 0.125, 0.0]))
    # +.75 leaks to .375; −.125 twice and −.25 add up as they are.
    chex.assert_trees_all_equal(states.integral, np.array([0.375, 0.25, 0.125, -0.125]))
    chex.assert_trees_all_equal(states.coefficient, np.array([1.0, 1.0, 1.0, 0.875]))


def test_pid_forgets_what_it_wound_up():
    """PROP-7.5: it leaves its bound soon, however long the excess had lasted.

    An excess of .92 winds the integral up to .92 with a leak of ½, and to its bound of
    about 2 without; −.08 at a time takes it back to where −.04 of kp outweighs it.
    """

    def stuck(excess, leak):
        kls = jnp.where(jnp.arange(160) < excess, 1.0, 0.0)
        wound = controlled(as_arrays(KlPid(0.08, ki=0.5, leak=leak)), kls).coefficient
        assert wound[excess - 1] == 1.0
        return int(np.argmax(wound[excess:] < 1.0))

    assert stuck(100, leak=0.5) == stuck(20, leak=0.5) == 10
    assert stuck(100, leak=1.0) == 23


def test_pid_ignores_a_non_finite_divergence():
    """Also the first coefficient keeps to the bounds."""
    states = controlled(
        as_arrays(KlPid(0.08)), jnp.array([0.16, jnp.nan, jnp.inf, -jnp.inf])
    )
    for series in states:
        assert (series == series[0]).all()
    pid = KlPid(0.08, initial=0.0, minimum=0.5, ki=0.0)
    assert pid.init().coefficient == pid.update(pid.init(), 0.0).coefficient == 0.5


def test_members_have_their_own_gains():
    """PROP-7.5: one program for a population, an integral gain of 0 among them."""
    kls = jnp.array([0.16, 0.16, 0.02, 0.0])
    gains = [0.0, 0.05, 0.5]
    members = jax.vmap(lambda ki: as_arrays(KlPid(0.08, ki=ki)))(jnp.array(gains))
    got = controlled(members, kls, batched=True).coefficient
    want = [controlled(as_arrays(KlPid(0.08, ki=ki)), kls).coefficient for ki in gains]
    chex.assert_trees_all_close(got, np.array(want), rtol=1e-6)
    stops = jax.vmap(lambda x: as_arrays(KlStop(x)))(jnp.array([0.05, 0.2]))
    states, _ = jax.vmap(observe, (0, None))(stops, kls)
    assert states.stopped.tolist() == [True, False]


@pytest.mark.parametrize(
    "make",
    [
        lambda: KlStop(target=0.0),
        lambda: KlStop(target=0.1, absolute=0.0),
        lambda: KlStop(target=0.1, consecutive=0),
        lambda: KlStop(target=0.1, share=0.0),
        lambda: KlStop(target=0.1, share=1.5),
        lambda: MovingAverage(window=0),
        lambda: Ema(rate=0.0),
        lambda: EpochBudget(decay=0.0),
        lambda: EpochBudget(calm=0.5),
        lambda: KlPid(target=-0.1),
        lambda: KlPid(0.1, kp=-1.0),
        lambda: KlPid(0.1, minimum=0.5, maximum=0.4),
        lambda: KlPid(0.1, leak=1.1),
    ],
)
def test_impossible_numbers_are_errors(make):
    with pytest.raises(ValueError, match=r"\w+\.\w+: expected"):
        make()
