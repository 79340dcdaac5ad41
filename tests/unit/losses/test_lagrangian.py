"""The multiplier of a limit, by hand."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.losses import dual_ascent, empirical_cvar


@pytest.mark.parametrize(
    ("dual", "gap", "rate", "want"), [(0.9, 0.5, 10.0, 1.0), (0.1, 0.5, -10.0, 0.0)]
)
def test_dual_keeps_its_bounds(dual, gap, rate, want):
    """PROP-13.10: λ = .9 and .1, a step that would leave [0, 1]."""
    assert dual_ascent(dual, gap, rate) == want
    assert dual_ascent(dual, rate, gap) == want


def test_dual_by_hand(variant):
    """PROP-13.10: gap .3, rate .1 gives .03, .06, .09; a met constraint lowers it."""
    step = variant(lambda dual, gap: dual_ascent(dual, gap, 0.1))
    dual, seen = jnp.zeros(()), []
    for gap in (0.3, 0.3, 0.3, -0.6, -0.6):
        dual = step(dual, jnp.array(gap))
        seen.append(float(dual))
    chex.assert_trees_all_close(seen, [0.03, 0.06, 0.09, 0.03, 0.0], rtol=0, atol=1e-7)


@pytest.mark.parametrize("gap", [np.nan, np.inf, -np.inf])
def test_dual_ignores_a_non_finite_gap(gap):
    """PROP-13.10: the multiplier keeps its bits."""
    assert dual_ascent(0.3, gap, 0.1) == np.float32(0.3)


def test_dual_is_a_constant_for_autodiff():
    """PROP-13.12."""
    gradient = jax.grad(dual_ascent, argnums=(0, 1, 2))(0.3, 0.2, 0.1)
    assert [float(x) for x in gradient] == [0.0, 0.0, 0.0]


def test_dual_of_members():
    """PROP-13.10: their own rates and largest multipliers."""
    duals = jax.vmap(dual_ascent)(
        jnp.full(3, 0.5), jnp.ones(3), jnp.array([0.0, 0.1, 9.0]), jnp.full(3, 2.0)
    )
    chex.assert_trees_all_close(duals, np.array([0.5, 0.6, 2.0]), rtol=1e-6)


def test_units_do_not_matter():
    """PROP-13.13: the gap in units of σ, rewards, limit and σ scaled by 100."""
    rewards = np.float32(np.random.default_rng(0).normal(-0.5, 1, (6, 40)))

    @jax.jit
    def duals(scale):
        def step(dual, row):
            cvar = empirical_cvar(scale * row, 0.1).cvar
            dual = dual_ascent(dual, (-1.0 * scale - cvar) / (2.0 * scale), 0.1)
            return dual, dual

        return jax.lax.scan(step, jnp.zeros(()), rewards)[1]

    assert max(duals(1.0)) > 0.1
    chex.assert_trees_all_close(duals(100.0), duals(1.0), rtol=1e-4)


def test_every_multiplier_has_a_gap_of_its_own():
    with pytest.raises(ValueError, match=r"gap: expected the shape .3,., that of dual"):
        dual_ascent(jnp.zeros(3), 1.0, learning_rate=0.5)
