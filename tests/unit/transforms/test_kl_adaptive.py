"""Step sizes that follow the divergence, against the rule of others in plain Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.transforms.kl_adaptive import ScaleByKlState, scale_by_kl

DESIRED, FIRST = 2**-7, 1e-3


def rl_games(rate, kl):
    """Rates as `AdaptiveScheduler` of rl_games has them, within RSL-RL's bounds."""
    if kl > 2.0 * DESIRED:
        rate = max(rate / 1.5, 1e-5)
    if kl < 0.5 * DESIRED:
        rate = min(rate * 1.5, 1e-2)
    return rate


@jax.jit
def factors(kls):
    """The factors of a sequence of divergences, each from the update that it scaled."""
    tx = scale_by_kl(DESIRED)

    def step(state, kl):
        scaled, state = tx.update({"w": jnp.float32(-2.0)}, state, kl=kl)
        return state, scaled["w"] / -2

    return jax.lax.scan(step, tx.init({"w": 0.0}), kls)[1]


RUNS = {
    "drawn": np.random.default_rng(0).lognormal(np.log(DESIRED), 1.2, 200),
    "near": np.full(20, 1e-6),
    "far": np.full(30, 5.0),
    "edges": [2**-6, 0.0157, 2**-8, 0.0039, 0.0, -0.3, 2**-7],
}


@pytest.mark.parametrize("kls", RUNS.values(), ids=RUNS)
def test_rates_are_those_of_rl_games(kls):
    """As soon as a divergence is known, up to both bounds; at an edge nothing moves."""
    kls = np.float32(kls)
    rates, expected = FIRST * np.asarray(factors(kls), np.float64), []
    for kl in kls:
        expected.append(rl_games(expected[-1] if expected else FIRST, float(kl)))
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    assert len(set(np.round(expected, 9))) > 2


def test_an_unknown_divergence_moves_nothing():
    kls = jnp.array([0.001, jnp.nan, jnp.inf, -jnp.inf, 0.001])
    np.testing.assert_allclose(factors(kls), [1.5, 1.5, 1.5, 1.5, 2.25])


@pytest.mark.parametrize(
    ("before", "kl", "after"),
    [(0.01, 1e-6, 0.5), (0.01, DESIRED, 0.5), (9.0, 5.0, 2.0), (9.0, DESIRED, 2.0)],
)
def test_a_factor_is_within_bounds_that_have_become_others(before, kl, after):
    """A population has moved them, or a member has copied one with others."""
    tx = scale_by_kl(DESIRED, floor=0.5, cap=2.0)
    state = ScaleByKlState(jnp.float32(before))
    assert tx.update(jnp.float32(1.0), state, kl=jnp.float32(kl))[0] == after


def test_an_update_has_to_be_told_the_divergence():
    tx = scale_by_kl(DESIRED)
    with pytest.raises(ValueError, match=r"^update: expected `kl`, the divergence"):
        tx.update(jnp.ones(2), tx.init(jnp.ones(2)))


@pytest.mark.parametrize(
    ("number", "value", "expected"),
    [
        ("target", 0.0, "a finite number > 0"),
        ("band", 0.9, "a finite number ≥ 1"),
        ("step", float("inf"), "a finite number ≥ 1"),
        ("floor", 1.1, r"a number in \(0, 1\]"),
        ("cap", 0.5, "a finite number ≥ 1"),
    ],
)
def test_numbers_have_bounds(number, value, expected):
    with pytest.raises(
        ValueError, match=f"^{number}: expected {expected}, got {value}"
    ):
        scale_by_kl(**{"target": 0.01} | {number: value})
