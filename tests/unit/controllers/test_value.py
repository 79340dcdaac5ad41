"""What depends on the explained variance, as tables."""

import chex
import jax
import jax.numpy as jnp
import pytest

from ppo_jax.component import as_arrays
from ppo_jax.controllers import ClipGate, Known, PoorValueScale
from ppo_jax.terms import Value

UNKNOWN = Known.init()


def known(value):
    return UNKNOWN.update(jnp.array(value, jnp.float32))


def test_the_last_finite_measurement_is_kept():
    """PROP-14.4."""
    last = known(0.25)
    for nothing in (jnp.nan, jnp.inf):
        after = last.update(jnp.array(nothing))
        assert after.known
        assert after.value == 0.25
    assert not UNKNOWN.update(jnp.array(jnp.nan)).known
    assert last.update(jnp.array(-1.0)).value == -1.0


@pytest.mark.parametrize(
    ("updates", "threshold", "ev", "clips"),
    [
        (9, None, None, False),
        (10, None, None, True),
        (10, None, -1.0, True),
        (10, 0.2, None, False),
        (10, 0.2, 0.19, False),
        (10, 0.2, 0.2, True),
        (10, 0.2, 0.9, True),
        (9, 0.2, 0.9, False),
        (10, -0.5, -0.4, True),
        (10, 0.0, None, False),
    ],
)
def test_gates_of_value_clipping(updates, threshold, ev, clips):
    """PROP-12.11: warm-up, explained variance unknown, below and above."""
    gate = ClipGate(warmup_updates=10, threshold=threshold)
    last = UNKNOWN if ev is None else known(ev)
    assert bool(jax.jit(gate)(jnp.array(updates), last)) == clips


@pytest.mark.parametrize(
    ("ev", "scale", "floor", "want"),
    [
        (None, 0.5, 0.0, 1.8),
        (0.1, 0.5, 0.0, 1.8),
        (0.0999, 0.5, 0.0, 0.9),
        (-3.0, 0.5, 1.2, 1.2),
        (-3.0, 0.5, 9.0, 1.8),
        (-3.0, 2.0, 0.0, 1.8),
        (-3.0, 0.0, 0.0, 0.0),
    ],
)
def test_coefficient_of_a_poor_critic(ev, scale, floor, want):
    """Threshold and floor are two numbers; the scale never enlarges."""
    poor = PoorValueScale(threshold=0.1, scale=scale, floor=floor)
    last = UNKNOWN if ev is None else known(ev)
    chex.assert_trees_all_close(jax.jit(poor)(1.8, last), want, rtol=1e-6)


def test_members_have_their_own_thresholds():
    """PROP-12.11: one program for a population."""
    thresholds = jnp.array([-0.5, 0.0, 0.5])
    gates = jax.vmap(lambda x: as_arrays(ClipGate(threshold=x)))(thresholds)
    scales = jax.vmap(lambda x: as_arrays(PoorValueScale(x, 0.5)))(thresholds)
    last = jax.tree.map(lambda x: jnp.stack([x] * 3), known(0.0))
    clips = jax.jit(jax.vmap(lambda gate, ev: gate(0, ev)))(gates, last)
    coefs = jax.jit(jax.vmap(lambda scale, ev: scale(1.0, ev)))(scales, last)
    assert clips.tolist() == [True, True, False]
    assert coefs.tolist() == [1.0, 1.0, 0.5]


@pytest.mark.parametrize(
    "make",
    [
        lambda: ClipGate(warmup_updates=-1),
        lambda: ClipGate(threshold=1.5),
        lambda: PoorValueScale(threshold=1.5),
        lambda: PoorValueScale(scale=-0.1),
        lambda: PoorValueScale(floor=-0.1),
        lambda: Value(gate=ClipGate(warmup_updates=10)),
    ],
)
def test_impossible_numbers_are_errors(make):
    with pytest.raises(ValueError, match=r"\w+\.\w+: expected"):
        make()
