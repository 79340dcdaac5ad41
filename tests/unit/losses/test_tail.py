"""What the tail adds to an advantage, and the multiplier of a limit on it."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.losses import dual_ascent, empirical_cvar, tail_advantage


def test_tail_advantage_by_hand(variant):
    """PROP-13.12: 1{R ≤ VaR} (R − VaR) / α, and CVaR is VaR plus its mean."""
    outcome = jnp.array([-3.0, -1.0, 0.0, 4.0])
    tail = empirical_cvar(outcome, 0.5)
    got = variant(tail_advantage)(outcome, tail.var, 0.5)
    chex.assert_trees_all_equal(got, np.array([-4.0, 0.0, 0.0, 0.0]))
    chex.assert_trees_all_close(tail.var + got.mean(), tail.cvar, rtol=1e-7)


def test_no_gradient_flows_through_the_tail():
    """PROP-13.12: what the policy's gradient is weighted with is constant."""
    outcome = jnp.array([-3.0, -1.0, 0.0, 4.0])

    def total(outcome):
        tail = empirical_cvar(outcome, 0.5)
        return tail_advantage(outcome, tail.var, 0.5).sum()

    chex.assert_trees_all_equal(jax.grad(total)(outcome), 0.0)


def test_tail_advantage_lowers_the_risky_action():
    """The tail term turns the expected policy gradient of a two-armed bandit.

    Safe: 0.9. Risky: mean 1, 5 % of −10. The advantage alone prefers the risky arm;
    with the tail of α = 5 % the safe one.
    """
    reward = np.repeat([0.9, 1.5789, -10.0], [200, 190, 10])
    tail = empirical_cvar(jnp.asarray(reward), 0.05)
    chex.assert_trees_all_close(tail.var, 0.9, rtol=1e-6)
    chex.assert_trees_all_close(tail.cvar, (-10 + 0.9) / 2, rtol=1e-5)
    advantage = jnp.asarray(reward - reward.mean())
    risky = jnp.asarray(np.repeat([-0.5, 0.5], [200, 200]))  # d log π / d logit.

    def gradient(coefficient):
        extra = tail_advantage(jnp.asarray(reward), tail.var, 0.05)
        return float(jnp.mean((advantage + coefficient * extra) * risky))

    assert gradient(0.0) > 0
    assert gradient(1.0) < 0


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.5, np.nan])
def test_alpha_outside_its_range_is_an_error(alpha):
    """PROP-13.6."""
    with pytest.raises(ValueError, match="alpha"):
        tail_advantage(jnp.arange(4.0), 1.0, alpha)


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
    rewards = np.random.default_rng(0).normal(-0.5, 1, (6, 40))

    def duals(scale):
        dual, seen = jnp.zeros(()), []
        for row in rewards:
            cvar = empirical_cvar(jnp.asarray(scale * row), 0.1).cvar
            dual = dual_ascent(dual, (-1.0 * scale - cvar) / (2.0 * scale), 0.1)
            seen.append(float(dual))
        return seen

    assert max(duals(1.0)) > 0.1
    chex.assert_trees_all_close(duals(100.0), duals(1.0), rtol=1e-4)
