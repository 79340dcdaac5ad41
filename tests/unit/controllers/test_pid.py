"""The coefficient of a penalty against worked numbers and a plain loop."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from controls import pid_oracle

from ppo_jax.component import as_arrays
from ppo_jax.controllers import KlPid


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


def test_other_bounds_hold_at_once():
    """PROP-7.5: for a state of a controller that had others."""
    state = KlPid(0.1, initial=0.5).init()
    for bounds, want in (({"maximum": 0.25}, 0.25), ({"minimum": 0.75}, 0.75)):
        pid = KlPid(0.1, initial=want, **bounds)
        assert pid.coefficient(state) == want
        assert pid.metrics(state)["train/kl_penalty_beta"] == want


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


def test_a_divergence_of_any_size_leaves_a_coefficient():
    """Proportional and derivative part of the second update are ∞ and −∞."""
    pid = as_arrays(KlPid(0.02, kp=10.0, kd=10.0))
    states = controlled(pid, jnp.array([3e38, 2e38, 0.02, 0.02]))
    assert states.coefficient[:2].tolist() == [1.0, 1.0]
    assert states.coefficient[2] == np.float32(1e-4)  # For it fell by 3e38.
    assert np.isfinite(states.coefficient).all()
    assert np.isfinite(states.integral).all() and states.error[-1] == 0.0


def test_members_have_their_own_gains():
    """PROP-7.5: one program for a population, an integral gain of 0 among them."""
    kls = jnp.array([0.16, 0.16, 0.02, 0.0])
    gains = [0.0, 0.05, 0.5]
    members = jax.vmap(lambda ki: as_arrays(KlPid(0.08, ki=ki)))(jnp.array(gains))
    got = controlled(members, kls, batched=True).coefficient
    want = [controlled(as_arrays(KlPid(0.08, ki=ki)), kls).coefficient for ki in gains]
    chex.assert_trees_all_close(got, np.array(want), rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: KlPid(target=-0.1),
        lambda: KlPid(target=np.inf),
        lambda: KlPid(0.1, kp=-1.0),
        *(lambda k=k: KlPid(0.1, **{k: np.inf}) for k in ("kp", "ki", "kd")),
        lambda: KlPid(0.1, minimum=0.5, maximum=0.4),
        lambda: KlPid(0.1, leak=1.1),
    ],
)
def test_impossible_numbers_are_errors(make):
    with pytest.raises(ValueError, match=r"KlPid\.\w+: expected"):
        make()
