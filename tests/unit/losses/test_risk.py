"""CVaR against hand-worked weights, integration and the normal distribution."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from ppo_jax.losses import (
    MIN_TAIL,
    EmpiricalTail,
    Law,
    cvar,
    cvar_weights,
    empirical_cvar,
    law_cvar,
    linear_cvar_weights,
    tail_advantage,
)

jitted_cvar = jax.jit(cvar, static_argnums=2)
jitted_law_cvar = jax.jit(law_cvar)
jitted_tail = jax.jit(empirical_cvar)
jitted_weights = jax.jit(cvar_weights, static_argnums=0)
jitted_linear_weights = jax.jit(linear_cvar_weights, static_argnums=0)


@functools.cache
def step_rule(n):
    """One function for all levels, so that it is compiled once."""
    return functools.partial(cvar_weights, n)


@functools.cache
def linear_rule(n):
    return functools.partial(linear_cvar_weights, n)


ALPHAS = [0.01, 0.05, 0.1, 0.25, 0.3, 0.5, 0.625, 0.875, 0.9, 1.0]


def integrated(quantiles, alpha):
    """∫₀^α Q(u) du / α, from the piecewise-linear Lorenz curve in float64."""
    ordered = np.sort(quantiles)
    share = np.arange(ordered.size + 1) / ordered.size
    curve = np.concatenate([[0.0], np.cumsum(ordered) / ordered.size])
    return np.interp(alpha, share, curve) / alpha


@pytest.mark.parametrize(
    ("n", "alpha", "want"),
    [
        (4, 0.5, [0.5, 0.5]),
        (4, 0.3, [0.8333333, 0.1666667]),
        (4, 0.625, [0.4, 0.4, 0.2]),
        (4, 0.1, [1.0]),
        (4, 1.0, [0.25, 0.25, 0.25, 0.25]),
        (4, 1, [0.25, 0.25, 0.25, 0.25]),
        (21, 0.05, [0.952381, 0.047619]),
        (32, 0.05, [0.625, 0.375]),
        (1, 0.05, [1.0]),
    ],
)
def test_weights_by_hand(n, alpha, want, variant):
    """PROP-13.1: the step rule."""
    weights = variant(step_rule(n))(alpha)
    chex.assert_shape(weights, (n,))
    chex.assert_type(weights, jnp.float32)
    padded = np.pad(want, (0, n - len(want)))
    chex.assert_trees_all_close(weights, padded, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n", [1, 4, 21, 51])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_weights_are_a_distribution(n, alpha):
    """PROP-13.2, PROP-13.7, R-D10: no negative weight; they cover exactly α."""
    weights = np.asarray(jitted_weights(n, alpha))
    assert (weights >= 0).all()
    chex.assert_trees_all_close(weights.sum(), 1.0, rtol=1e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_cvar_matches_integration(alpha, variant):
    """PROP-13.1, PROP-13.2: the exact tail mean of the step law."""
    q = np.random.default_rng(0).normal(size=(2, 3, 21)) * 5
    want = [[integrated(row, alpha) for row in rows] for rows in q]
    got = variant(cvar)(jnp.asarray(q), alpha)
    chex.assert_shape(got, (2, 3))
    chex.assert_trees_all_close(got, np.array(want), rtol=1e-4, atol=1e-5)


def test_cvar_rises_continuously_with_alpha():
    """PROP-13.2, R-D10: q = (−10, 0, 0, 10), where the original jumped at .875."""
    q = np.array([-10.0, 0.0, 0.0, 10.0])
    alphas = np.linspace(0.005, 1.0, 400)
    values = np.asarray(jax.jit(jax.vmap(cvar, (None, 0)))(q, alphas))
    assert (np.diff(values) >= -1e-6).all()
    assert np.diff(values).max() < 0.15
    assert values.min() == -10.0
    chex.assert_trees_all_close(values[-1], 0.0, rtol=0, atol=1e-6)
    chex.assert_trees_all_close(
        jitted_cvar(q, 0.875), -2.5 / 0.875 + 1.25 / 0.875, rtol=1e-5
    )


@pytest.mark.parametrize("alpha", ALPHAS)
def test_cvar_lies_between_the_lowest_quantile_and_the_mean(alpha):
    """PROP-13.2, R-D10: and is the mean at α = 1."""
    q = np.random.default_rng(1).normal(size=(20, 8))
    got = np.asarray(jitted_cvar(q, alpha))
    assert (got >= q.min(axis=-1) - 1e-5).all()
    assert (got <= q.mean(axis=-1) + 1e-5).all()
    if alpha == 1.0:
        chex.assert_trees_all_close(got, q.mean(axis=-1), rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
def test_cvar_is_coherent_under_translation_and_scaling(alpha):
    """PROP-13.3."""
    q = np.random.default_rng(2).normal(size=12)
    base = np.asarray(jitted_cvar(q, alpha))
    chex.assert_trees_all_close(jitted_cvar(q + 3.5, alpha), base + 3.5, rtol=1e-5)
    chex.assert_trees_all_close(jitted_cvar(4.0 * q, alpha), 4.0 * base, rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
def test_cvar_does_not_depend_on_the_order(alpha):
    """PROP-13.4: crossing quantiles are sorted first."""
    rng = np.random.default_rng(3)
    q = np.sort(rng.normal(size=12))
    for _ in range(3):
        got = jitted_cvar(rng.permutation(q), alpha)
        chex.assert_trees_all_close(got, integrated(q, alpha), rtol=1e-5)


@pytest.mark.parametrize("alpha", [1e-6, 0.05, 0.2499, 0.25])
def test_a_tail_thinner_than_one_quantile_is_the_lowest(alpha):
    """PROP-13.5, R-D10: q = (0, 10, 20, 30), where the original said −4."""
    assert jitted_cvar(np.array([10.0, 0.0, 30.0, 20.0]), alpha) == 0.0


@pytest.mark.parametrize(
    "alpha", [0, 0.0, -0.1, 1.0001, 2, np.nan, np.inf, np.float32(0), jnp.array(1.5)]
)
def test_alpha_outside_its_range_is_an_error(alpha):
    """PROP-13.6."""
    with pytest.raises(ValueError, match="alpha"):
        cvar_weights(4, alpha)
    with pytest.raises(ValueError, match="alpha"):
        cvar(jnp.arange(4.0), alpha)


def test_weights_need_a_quantile_and_a_scalar():
    with pytest.raises(ValueError, match="num_quantiles"):
        cvar_weights(0, 0.5)
    with pytest.raises(ValueError, match=r"alpha: expected a number, got float32"):
        cvar_weights(4, jnp.array([0.1, 0.5]))


@jax.jit
def both_rules(quantiles):
    """CVaR of 5 % by the step rule and by the linear one."""
    rules = cvar_weights, linear_cvar_weights
    return [cvar(quantiles, 0.05, rule) for rule in rules]


def of_normal(n):
    """Both of the law N(0, 1), whose own is −2.0627, from `n` quantiles."""
    quantiles = stats.norm.ppf((np.arange(n) + 0.5) / n)
    return jax.device_get(both_rules(quantiles))


def test_error_shrinks_with_more_quantiles():
    """PROP-13.7, R-C6: N(0, 1), α = .05; the error is one of discretisation only."""
    table = {11: -1.6906, 21: -1.9562, 32: -1.9746, 51: -2.0130, 101: -2.0424}
    errors = []
    for n, want in table.items():
        got, _ = of_normal(n)
        chex.assert_trees_all_close(got, want, rtol=0, atol=6e-5)
        errors.append(abs(got + 2.0627))
    assert errors == sorted(errors, reverse=True)


def test_alpha_may_be_traced_and_mapped():
    """A population tunes α in one program; the gradient reaches the tail only."""
    q = np.array([3.0, -1.0, 1.0, 5.0])
    got = jax.jit(jax.vmap(cvar, (None, 0)))(q, np.array([0.25, 0.5, 1.0]))
    chex.assert_trees_all_close(got, np.array([-1.0, 0.0, 2.0]), rtol=0, atol=1e-6)
    gradient, slope = jax.jit(jax.grad(cvar, (0, 1)))(q, 0.375)
    chex.assert_trees_all_close(
        gradient, np.array([0.0, 2 / 3, 1 / 3, 0.0]), rtol=0, atol=1e-6
    )
    chex.assert_tree_all_finite(slope)


def test_low_precision_quantiles_are_summed_in_float32():
    q = jnp.arange(64, dtype=jnp.bfloat16)
    got = cvar(q, 1.0)
    chex.assert_type(got, jnp.float32)
    chex.assert_trees_all_close(got, 31.5, rtol=1e-6)


@pytest.mark.parametrize(
    ("n", "alpha", "want"),
    [
        (21, 0.05, [0.975, 0.025]),
        (32, 0.05, [0.703125, 0.29375, 0.003125]),
        (4, 1.0, [0.28125, 0.21875, 0.21875, 0.28125]),
        (4, 0.25, [1.0]),
        (4, 0.1, [1.0]),
        (2, 1.0, [0.5, 0.5]),
        (1, 0.7, [1.0]),
    ],
)
def test_linear_weights_by_hand(n, alpha, want, variant):
    """PROP-13.1, PROP-13.2: the linear rule, and its step below α = 1/N."""
    weights = variant(linear_rule(n))(alpha)
    chex.assert_shape(weights, (n,))
    chex.assert_type(weights, jnp.float32)
    chex.assert_trees_all_close(
        weights, np.pad(want, (0, n - len(want))), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("n", [2, 4, 21])
def test_linear_cvar_integrates_the_lines_through_the_quantiles(n):
    """PROP-13.1, R-D10: against quadrature; never a negative weight."""
    q = np.sort(np.random.default_rng(n).normal(size=n) * 5)
    places = (np.arange(n) + 0.5) / n
    slopes = np.diff(q) / np.diff(places)
    for alpha in np.linspace(1.0001 / n, 1.0, 9):
        u = (np.arange(200_000) + 0.5) / 200_000 * alpha
        line = np.interp(u, places, q)
        line = np.where(u < places[0], q[0] + slopes[0] * (u - places[0]), line)
        line = np.where(u > places[-1], q[-1] + slopes[-1] * (u - places[-1]), line)
        got = jitted_cvar(q, float(alpha), linear_cvar_weights)
        chex.assert_trees_all_close(got, line.mean(), rtol=1e-4, atol=1e-5)
        assert np.min(jitted_linear_weights(n, float(alpha))) >= -1e-7


def test_linear_cvar_is_continuous_traceable_and_closer_to_the_truth():
    """PROP-13.2, PROP-13.7, R-C6: N(0, 1), α = .05, whose CVaR is −2.0627.

    Of 11 quantiles the lowest covers more than α: there the rules agree.
    """
    q = np.array([-10.0, 0.0, 0.0, 10.0])
    curve = jax.jit(jax.vmap(lambda alpha: cvar(q, alpha, linear_cvar_weights)))
    values = np.asarray(curve(np.linspace(0.005, 1.0, 400)))
    assert (np.diff(values) >= -1e-5).all()
    assert np.diff(values).max() < 0.2
    table = {11: -1.6906, 21: -1.9679, 32: -2.0112, 51: -2.0347, 101: -2.0505}
    for n, want in table.items():
        step, linear = of_normal(n)
        chex.assert_trees_all_close(linear, want, rtol=0, atol=6e-5)
        assert abs(linear + 2.0627) <= abs(step + 2.0627) + 1e-6


def test_linear_weights_check_alpha():
    """PROP-13.6."""
    for alpha in (0.0, -0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="alpha"):
            linear_cvar_weights(4, alpha)


ATOMS = np.linspace(-1.0, 1.0, 5, dtype=np.float32)
MASSES = np.array([0.1, 0.2, 0.4, 0.2, 0.1], np.float32)


@pytest.mark.parametrize(
    ("alpha", "want"),
    [(0.05, -1), (0.1, -1), (0.2, -0.75), (0.3, -2 / 3), (0.5, -0.4), (1, 0)],
)
def test_cvar_of_atoms_by_hand(alpha, want, variant):
    """PROP-13.8."""
    got = variant(law_cvar)(Law(ATOMS, MASSES), alpha)
    chex.assert_trees_all_close(got, want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_cvar_of_atoms_matches_integration(alpha):
    """PROP-13.8: any leading axes; equal masses give the quantiles' CVaR."""
    rng = np.random.default_rng(4)
    outcomes = np.sort(rng.normal(size=(2, 3, 51)) * 5, axis=-1)
    probs = rng.dirichlet(np.full(51, 0.3), size=(2, 3))
    got = np.asarray(jitted_law_cvar(Law(outcomes, probs), alpha))
    for index in np.ndindex(2, 3):
        share = np.concatenate([[0.0], np.cumsum(probs[index])])
        curve = np.concatenate([[0.0], np.cumsum(probs[index] * outcomes[index])])
        want = np.interp(alpha, share, curve) / alpha
        chex.assert_trees_all_close(got[index], want, rtol=1e-3, atol=1e-4)
    equal = Law(outcomes, np.full((2, 3, 51), 1 / 51))
    want = jitted_cvar(outcomes, alpha)
    chex.assert_trees_all_close(
        jitted_law_cvar(equal, alpha), want, rtol=1e-4, atol=1e-4
    )


@jax.jit
@jax.value_and_grad
def of_atoms(probs, atoms, alpha):
    return law_cvar(Law(atoms, probs), alpha)


@pytest.mark.parametrize("alpha", [0.05, 0.25, 1.0])
def test_cvar_of_atoms_is_robust(alpha):
    """PROP-13.8: finite gradients, rounded sums, and constants are exact."""

    for probs in (MASSES, np.eye(5)[2], np.full(5, 0.2)):
        _, slopes = of_atoms(probs, ATOMS, alpha)
        chex.assert_tree_all_finite(slopes)
    plain, _ = of_atoms(MASSES, ATOMS, alpha)
    for scale in (1 - 3e-7, 1 + 3e-7):
        value, _ = of_atoms(MASSES * np.float32(scale), ATOMS, alpha)
        chex.assert_trees_all_close(value, plain, rtol=0, atol=3e-6)
    value, _ = of_atoms(MASSES * np.float32(1 - 3e-7), np.full(5, 1e6), alpha)
    chex.assert_trees_all_close(value, 1e6, rtol=2e-7)
    with pytest.raises(ValueError, match="alpha"):
        law_cvar(Law(ATOMS, MASSES), 1.5)


def test_empirical_cvar_by_hand():
    """PROP-13.9: it scales, one sample is its own tail, and none gives zeros."""
    rewards = np.array([-0.02, 0.01, -0.02, 0.01])
    tail = jitted_tail(rewards, 0.5)
    chex.assert_trees_all_close(
        tail, EmpiricalTail(-0.02, -0.02, 2, -0.02, 0.01), rtol=1e-6
    )
    scaled = jitted_tail(100 * rewards, 0.5)
    chex.assert_trees_all_close(scaled, EmpiricalTail(-2, -2, 2, -2, 1), rtol=1e-6)
    alone = jitted_tail(np.array([3.0]), 0.01)
    chex.assert_trees_all_equal(alone, EmpiricalTail(3, 3, 1, 3, 3))
    none = jitted_tail(np.append(rewards[1:], np.nan), 0.5, np.zeros(4, bool))
    chex.assert_trees_all_equal(none, EmpiricalTail(0, 0, 0, 0, 0))


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.15, 0.3, 0.7, 1.0])
def test_empirical_cvar_is_the_mean_of_the_lowest_samples(alpha, variant):
    """PROP-13.9: of the valid ones; the others may be anything."""
    rng = np.random.default_rng(5)
    samples, valid = rng.normal(size=(20, 15)), rng.random((20, 15)) < 0.6
    garbage = np.where(valid, samples, rng.choice([np.nan, np.inf, -1e9], (20, 15)))
    ordered = np.sort(samples[valid])
    size = int(np.ceil(round(alpha * ordered.size, 9)))
    got = variant(empirical_cvar)(np.float32(garbage), alpha, valid)
    tail = ordered[:size]
    want = EmpiricalTail(tail.mean(), tail[-1], size, ordered[0], ordered[-1])
    chex.assert_trees_all_close(got, want, rtol=1e-4)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.3, 1 / 3])
def test_the_size_of_a_tail_survives_float32(alpha):
    """PROP-13.9: ⌈α n⌉ of exact numbers: .1 of 30 are 3, and 9 are told from 10."""

    def size(alpha, count):
        return jitted_tail(np.zeros(2000), alpha, np.arange(2000) < count).size

    for n in [1, 2, 9, 10, 20, 30, 90, 180, 181, 200, 300, 900, 901, 1000, 1999]:
        assert size(alpha, n) == max(1, np.ceil(round(alpha * n, 9)))
    assert size(0.05, 180) == 9 < MIN_TAIL
    assert size(0.05, 181) == 10 >= MIN_TAIL


@pytest.mark.parametrize("winsor", [0.001, 0.05, 0.2])
def test_winsorising_pulls_in_both_ends(winsor):
    """PROP-13.9: to interpolated quantiles, which moves the estimate up."""
    samples = np.random.default_rng(6).standard_t(2, size=301)
    valid = np.arange(301) % 4 != 0
    low, high = np.quantile(samples[valid], [winsor, 1 - winsor])
    pulled = np.sort(np.clip(samples[valid], low, high))
    for alpha, size in ((0.1, 23), (1.0, 225)):
        got = jitted_tail(samples, alpha, valid, winsor)
        want = EmpiricalTail(pulled[:size].mean(), pulled[size - 1], size, low, high)
        chex.assert_trees_all_close(got, want, rtol=1e-4)
    plain = jitted_tail(samples, 0.1, valid)
    pulled_tail = jitted_tail(samples, 0.1, valid, winsor)
    assert pulled_tail.cvar > plain.cvar


@pytest.mark.slow
def test_the_tail_of_more_samples_than_float32_counts():
    """The last rank of 2²⁴ + 4 is rounded to their number."""
    samples = np.random.default_rng(7).normal(size=2**24 + 4).astype(np.float32)
    got = jitted_tail(samples, 1e-4)
    ordered = np.sort(samples)
    tail = ordered[: int(got.size)]
    want = EmpiricalTail(tail.mean(), tail[-1], 1678, ordered[0], ordered[-1])
    chex.assert_trees_all_close(got, want, rtol=1e-4)


def test_empirical_cvar_checks_its_arguments():
    """PROP-13.6."""
    with pytest.raises(ValueError, match="alpha"):
        empirical_cvar(jnp.zeros(3), 0.0)
    with pytest.raises(ValueError, match="samples: expected finite"):
        empirical_cvar(jnp.array([1.0, jnp.nan]), 0.5)
    with pytest.raises(ValueError, match=r"valid: .* that of samples, got bool"):
        empirical_cvar(jnp.zeros(3), 0.5, jnp.ones((3, 1), bool))


def test_tail_advantage_by_hand(variant):
    """PROP-13.12: 1{R ≤ VaR} (R − VaR) / α, and CVaR is VaR plus its mean."""
    outcome = np.array([-3.0, -1.0, 0.0, 4.0])
    tail = jitted_tail(outcome, 0.5)
    got = variant(tail_advantage)(outcome, tail.var, 0.5)
    chex.assert_trees_all_equal(got, np.array([-4.0, 0.0, 0.0, 0.0]))
    chex.assert_trees_all_close(tail.var + np.mean(got), tail.cvar, rtol=1e-7)


def test_no_gradient_flows_through_the_tail():
    """PROP-13.12: what the policy's gradient is weighted with is constant."""
    outcome = np.array([-3.0, -1.0, 0.0, 4.0])

    def total(outcome):
        tail = empirical_cvar(outcome, 0.5)
        return tail_advantage(outcome, tail.var, 0.5).sum()

    chex.assert_trees_all_equal(jax.jit(jax.grad(total))(outcome), 0.0)


def test_tail_advantage_lowers_the_risky_action():
    """The tail term turns the expected policy gradient of a two-armed bandit.

    Safe: 0.9. Risky: mean 1, 5 % of −10. The advantage alone prefers the risky arm;
    with the tail of α = 5 % the safe one.
    """
    reward = np.repeat([0.9, 1.5789, -10.0], [200, 190, 10])
    tail = jitted_tail(reward, 0.05)
    chex.assert_trees_all_close(tail.var, 0.9, rtol=1e-6)
    chex.assert_trees_all_close(tail.cvar, (-10 + 0.9) / 2, rtol=1e-5)
    advantage = reward - reward.mean()
    risky = np.repeat([-0.5, 0.5], [200, 200])  # d log π / d logit.

    extra = np.asarray(tail_advantage(reward, tail.var, 0.05))

    def gradient(coefficient):
        return np.mean((advantage + coefficient * extra) * risky)

    assert gradient(0.0) > 0
    assert gradient(1.0) < 0


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.5, np.nan])
def test_tail_advantage_checks_alpha(alpha):
    """PROP-13.6."""
    with pytest.raises(ValueError, match="alpha"):
        tail_advantage(jnp.arange(4.0), 1.0, alpha)


@pytest.mark.parametrize("weights", [cvar_weights, linear_cvar_weights])
def test_outcomes_beyond_the_tail_may_be_infinite(weights):
    """Two of eight are the tail; the line through the third is not reached either."""
    outcomes = np.float32([np.inf, 1.0, np.inf, 2.0, 5.0, np.inf, 7.0, np.inf])
    finite = np.where(np.isfinite(outcomes), outcomes, np.float32(99.0))
    want = jitted_cvar(finite, 0.25, weights)
    chex.assert_trees_all_equal(jitted_cvar(outcomes, 0.25, weights), want)
    law = Law(np.sort(outcomes), np.full(8, 0.125))
    assert jitted_law_cvar(law, 0.25) == 1.5
    assert jitted_cvar(-outcomes, 0.25, weights) == -np.inf


@pytest.mark.parametrize("winsor", [-0.1, 0.5, 5, np.float32(0.5)])
def test_no_more_than_half_is_pulled_in(winsor):
    with pytest.raises(ValueError, match=r"winsor: expected a number in \[0, ½\)"):
        empirical_cvar(jnp.arange(4.0), 0.5, winsor=winsor)


def test_a_value_at_risk_is_one_number():
    with pytest.raises(
        ValueError, match=r"value_at_risk: expected a number, got float32"
    ):
        tail_advantage(jnp.zeros(3), jnp.zeros(3), 0.5)
