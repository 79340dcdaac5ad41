"""Utility-gated descent against float64 formulas and hand-computed numbers."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ppo_jax.component import as_arrays
from ppo_jax.optimizers import UPGD, UPGDW, AdaptiveUPGD, Optax
from ppo_jax.schedules import Constant, Progress
from ppo_jax.transforms.noise import fixed, gradient_norm, hashed_normal, relative
from ppo_jax.transforms.upgd import (
    gate_by_utility,
    global_max,
    min_max,
    non_protecting,
    protecting,
    quantile_range,
    upgd_metrics,
)

NORMALIZERS = [min_max, global_max, functools.partial(quantile_range, q=0.1)]
KEY = jax.random.key(7)


def params_and_gradients(steps=200, seed=0):
    rng = np.random.default_rng(seed)
    params = {"bias": rng.normal(size=3), "kernel": rng.normal(size=(4, 3))}
    return params, {k: rng.normal(size=(steps, *v.shape)) for k, v in params.items()}


def as_float32(tree):
    return jax.tree.map(np.float32, tree)


def gates(utilities, normalize=min_max, **settings):
    """The gate that each utility gets in a first step, and the update of 1s."""
    tx = gate_by_utility(
        optax.identity(), beta=0.9, sigma=None, normalize=normalize, **settings
    )
    params = jax.tree.map(lambda u: -jnp.asarray(u, jnp.float32), utilities)
    ones = jax.tree.map(jnp.ones_like, params)
    return tx.update(ones, tx.init(params), params)[0]


jitted_gates = jax.jit(gates, static_argnames=("normalize", "temperature"))
jitted_metrics = jax.jit(upgd_metrics)


@functools.partial(jax.jit, static_argnums=0)
def first_step(tx, g, params):
    """The first update of a transformation, and the state after it."""
    return tx.update(g, tx.init(params), params, key=KEY)


def train(optimizer, params, sequence, rate):
    """Parameters after a whole sequence, as the learner applies updates."""
    changes = {"learning_rate": rate, "schedule": Constant()}
    optimizer = as_arrays(dataclasses.replace(optimizer, **changes))
    return trained(optimizer, as_float32(params), as_float32(sequence))


@jax.jit
def trained(optimizer, params, sequence):
    def step(carry, g):
        params, state = carry
        updates, state, _ = optimizer.update(g, state, params, KEY, Progress.at(0.0))
        return (optax.apply_updates(params, updates), state), None

    return jax.lax.scan(step, (params, optimizer.init(params)), sequence)[0][0]


class Oracle:
    """The family in float64, one flat vector of all weights, without noise."""

    def __init__(self, variant, normalize, protect, decay, multiplier, betas):
        self.variant, self.normalize, self.protect = variant, normalize, protect
        self.decay, self.multiplier = decay, multiplier
        self.b1, self.b2, self.beta = betas
        self.t, self.u, self.m, self.v = 0, 0.0, 0.0, 0.0

    def step(self, w, g, lr):
        self.t += 1
        beta = self.b2 if self.variant is UPGDW else self.beta
        self.u = beta * self.u + (1 - beta) * (-g * w)
        corrected = self.u / (1 - beta**self.t)
        if self.normalize is min_max:
            low, high = corrected.min(), corrected.max()
            scaled = 2 * ((corrected - low) / (high - low) - 0.5)
        else:
            scaled = corrected / corrected.max()
        gate = 1 - 1 / (1 + np.exp(-scaled))
        direction = g
        if self.variant is not UPGD:
            self.m = self.b1 * self.m + (1 - self.b1) * g
            self.v = self.b2 * self.v + (1 - self.b2) * g**2
            m_hat = self.m / (1 - self.b1**self.t)
            v_hat = self.v / (1 - self.b2**self.t)
            direction = m_hat / (np.sqrt(v_hat) + 1e-8)
        gated = direction * gate if self.protect else direction
        return w * (1 - lr * self.decay) - lr * self.multiplier * gated


@pytest.mark.parametrize("variant", [UPGD, AdaptiveUPGD, UPGDW])
@pytest.mark.parametrize("normalize", [min_max, global_max])
@pytest.mark.parametrize(
    ("combine", "multiplier"), [(protecting, 2.0), (non_protecting, 1.0)]
)
def test_golden_trajectory(variant, normalize, combine, multiplier):
    """U1, U3, modules 2.2: 200 steps of every variant against float64."""
    params, sequence = params_and_gradients()
    own = {} if variant is UPGDW else {"beta_utility": 0.95}
    optimizer = variant(
        max_grad_norm=None,
        weight_decay=0.1,
        sigma=None,
        step_multiplier=multiplier,
        normalize=normalize,
        combine=combine,
        **own,
    )
    result = train(optimizer, params, sequence, 0.01)
    flat = np.concatenate([params[k].reshape(-1) for k in sorted(params)])
    oracle = Oracle(
        variant, normalize, combine is protecting, 0.1, multiplier, (0.9, 0.999, 0.95)
    )
    for t in range(200):
        g = [sequence[k][t].reshape(-1) for k in sorted(params)]
        flat = oracle.step(flat, np.concatenate(g), 0.01)
    ours = np.concatenate([np.ravel(result[k]) for k in sorted(params)])
    chex.assert_trees_all_close(ours, flat, rtol=1e-5, atol=2e-6)


def test_without_noise_and_decay_the_step_is_a_share_of_the_direction():
    """Modules 2.8.1: sign of −d, between 0.2689 and 0.7311 of lr · |d|."""
    params, sequence = params_and_gradients(1)
    g = as_float32(jax.tree.map(lambda x: x[0], sequence))
    params = as_float32(params)
    tx = gate_by_utility(optax.identity(), sigma=0.0)
    updates, _ = jax.device_get(first_step(tx, g, params))
    share = np.concatenate(
        [
            np.ravel(u / d)
            for u, d in zip(*map(jax.tree.leaves, (updates, g)), strict=True)
        ]
    )
    chex.assert_trees_all_close(share.min(), 0.26894143, rtol=1e-5)
    chex.assert_trees_all_close(share.max(), 0.73105854, rtol=1e-5)


@pytest.mark.parametrize("normalize", NORMALIZERS)
def test_more_useful_weights_move_less(normalize, variant):
    """U4, modules 2.8.2: no inversion for negative, positive or mixed utilities."""
    gated = variant(functools.partial(gates, normalize=normalize))
    for shift in (-10.0, 0.0, 10.0, -1.0, 1.0):
        gate = np.asarray(gated({"w": shift + np.linspace(-1, 1, 41)})["w"])
        assert ((gate >= 0) & (gate <= 1)).all()
        assert (np.diff(gate) <= 1e-7).all() and gate[0] - gate[-1] > 0.03
    zeros = np.asarray(gated({"w": np.zeros(41)})["w"])
    chex.assert_trees_all_equal(zeros, 0.5)


@pytest.mark.parametrize("normalize", [min_max, NORMALIZERS[2]])
def test_shifts_and_scales_of_utilities_change_nothing(normalize):
    """U4, modules 2.8.3: at t = 1, where corrected and raw differ most."""
    utilities = np.random.default_rng(1).normal(size=50)
    expected = np.asarray(jitted_gates({"w": utilities}, normalize)["w"])
    for changed in (
        utilities + 3,
        utilities * 1e4,
        utilities * 1e-12,
        5 * utilities - 2,
    ):
        chex.assert_trees_all_close(
            jitted_gates({"w": changed}, normalize)["w"], expected, rtol=1e-4
        )
    assert expected.std() > 0.01 and len(np.unique(expected)) > 30


@pytest.mark.parametrize("value", [-3.0, 0.0, 0.3, 1e-20, 1e20])
def test_equal_utilities_give_one_half(value):
    """U4, U5, modules 2.8.4: also where they differ by rounding only."""
    equal = {"a": np.full((3, 2), value), "b": np.full(4, value)}
    equal["b"][0] *= 1 + 1e-7
    for leaf in jitted_gates(equal).values():
        chex.assert_trees_all_close(leaf, 0.5, rtol=1e-7)


@pytest.mark.parametrize("beta", [0.0, 0.9])
def test_zero_gradients_only_let_utilities_decay(beta):
    """R-A5, U2, modules 2.8.5."""
    params = np.float32([1.0, -2.0, 3.0])
    tx = gate_by_utility(optax.identity(), beta=beta, sigma=0.0)
    update, zeros = jax.jit(tx.update), np.zeros(3, np.float32)
    _, state = first_step(tx, np.float32([1.0, 1.0, -1.0]), params)
    for _ in range(10):
        before = np.asarray(state.utility)
        updates, state = update(zeros, state, params, key=KEY)
        assert not np.any(updates)
        chex.assert_trees_all_close(state.utility, beta * before, rtol=1e-6)
    updates, state = first_step(tx, zeros, params)
    assert not np.any(updates) and not np.any(state.utility)


def test_utility_after_one_step_is_exact():
    """U1, modules 2.8.6."""
    params, g = np.float32([1.5, -2.0, 0.25]), np.float32([0.5, 3.0, -4.0])
    tx = gate_by_utility(optax.identity(), beta=jnp.float32(0.75))
    _, state = first_step(tx, g, params)
    chex.assert_trees_all_equal(state.utility, 0.25 * -np.array([0.75, -6.0, -1.0]))
    assert state.count == 1


def test_utilities_of_short_numbers_are_not_rounded():
    """(1 + 2⁻⁷)² is no bfloat16; the update is one all the same."""
    short = jnp.full(2, 1 + 2.0**-7, jnp.bfloat16)
    tx = gate_by_utility(optax.identity(), beta=0.5, sigma=None)
    updates, state = tx.update(short, tx.init(short), short)
    chex.assert_trees_all_equal(state.utility, np.full(2, -0.5 * (1 + 2.0**-7) ** 2))
    chex.assert_type(updates, jnp.bfloat16)


@pytest.mark.parametrize("variant", [UPGD, AdaptiveUPGD, UPGDW])
def test_decay_is_decoupled(variant):
    """Modules 2.8.7: w ← w (1 − lr λ), whatever the scale of the gradients."""
    params = {"w": np.array([1.0, -2.0, 3.0])}
    optimizer = variant(max_grad_norm=None, weight_decay=0.1, sigma=0.0)
    result, zeros = params, {"w": np.zeros((1, 3))}
    for _ in range(3):
        result = train(optimizer, result, zeros, 0.5)
    chex.assert_trees_all_close(result["w"], params["w"] * 0.95**3, rtol=1e-6)
    plain = variant(max_grad_norm=None, weight_decay=0.0, sigma=0.0)
    for scale in (1.0, 1000.0):
        g = {"w": np.full((1, 3), scale)}
        with_decay = train(optimizer, params, g, 0.5)
        without = train(plain, params, g, 0.5)
        chex.assert_trees_all_close(
            with_decay["w"] - without["w"], -0.05 * params["w"], rtol=0, atol=1e-4
        )


def test_adaptive_upgd_is_upgdw_is_gated_adamw():
    """Modules 2.8.8: with equal constants, and with every gate at 1."""
    params, sequence = params_and_gradients()
    settings = {"max_grad_norm": None, "weight_decay": 0.1, "sigma": None}
    adaptive = AdaptiveUPGD(beta_utility=0.999, **settings)
    upgdw = UPGDW(**settings)
    first = train(adaptive, params, sequence, 0.01)
    second = train(upgdw, params, sequence, 0.01)
    chex.assert_trees_all_equal(first, second)

    def open_gates(utilities):
        return jax.tree.map(lambda u: jnp.full_like(u, -jnp.inf), utilities)

    opened = UPGDW(normalize=open_gates, **settings)
    make = functools.partial(optax.adamw, weight_decay=0.1)
    adamw = Optax(max_grad_norm=None, make=make)
    first = train(opened, params, sequence, 0.01)
    second = train(adamw, params, sequence, 0.01)
    chex.assert_trees_all_close(first, second, rtol=1e-5, atol=1e-6)


def test_the_learning_rate_scales_the_step():
    """Modules 2.8.9: twice the rate is twice the step, and 0 is none."""
    params, sequence = params_and_gradients(1)
    optimizer = AdaptiveUPGD(weight_decay=0.0)
    start = as_float32(params)["kernel"]
    none, once, twice = (
        np.asarray(train(optimizer, params, sequence, rate)["kernel"]) - start
        for rate in (0.0, 0.01, 0.02)
    )
    assert not none.any() and once.all()
    chex.assert_trees_all_close(twice, 2 * once, rtol=0, atol=1e-6)


def noise_of(tx, params, g, key=KEY, steps=1):
    """The noise of each step, which a gate of ½ halves."""
    state, update, draws = tx.init(params), jax.jit(tx.update), []
    for _ in range(steps):
        updates, state = update(g, state, params, key=key)
        draws.append(jax.tree.map(lambda u, d: 2 * np.asarray(u) - d, updates, g))
    return draws


@pytest.mark.parametrize("sampler", [jax.random.normal, hashed_normal])
def test_noise_is_normal_and_independent(sampler):
    """Modules 2.8.10: over keys, leaves and steps, even if a caller keeps its key."""
    params = as_float32({"a": np.zeros((100, 200)), "b": np.zeros(20_000)})
    g = params  # All utilities are 0.
    tx = gate_by_utility(optax.identity(), sigma=0.3, sampler=sampler)
    first, second = noise_of(tx, params, g, steps=2)
    again, _ = noise_of(tx, params, g, steps=2)
    other, _ = noise_of(tx, params, g, key=jax.random.key(8), steps=2)
    chex.assert_trees_all_equal(first, again)
    draws = [x[k].reshape(-1) for x in (first, second, other) for k in ("a", "b")]
    correlation = np.corrcoef(draws)
    assert np.abs(correlation - np.eye(6)).max() < 4 / np.sqrt(20_000)
    for x in draws:
        assert abs(x.mean()) < 4 * 0.3 / np.sqrt(20_000)
        chex.assert_trees_all_close(x.std(), 0.3, rtol=0.03)
        chex.assert_trees_all_close(
            (np.abs(x) < 0.3).mean(), 0.6827, rtol=0, atol=0.015
        )


def ratios(inner, noise_scale, factors):
    """Noise over direction and noise over raw gradient while a factor changes."""
    rng = np.random.default_rng(2)
    params = np.float32(rng.normal(size=400))
    tx = gate_by_utility(inner, sigma=0.01, noise_scale=noise_scale, min_noise_std=0.0)
    state, update, seen = tx.init(params), jax.jit(tx.update), []
    memory, direct = inner.init(params), jax.jit(inner.update)
    for factor in factors:
        g = np.float32(factor * rng.normal(size=400))
        _, state = update(g, state, params, key=KEY)
        std = float(state.noise.std)
        direction, memory = direct(g, memory)
        rms = np.sqrt(np.mean(np.square(direction)))
        seen.append((std / rms, std / np.linalg.norm(g)))
        metrics = jitted_metrics(state, 0.999)
        chex.assert_trees_all_close(
            metrics["upgd/noise_to_signal"], std / rms, rtol=1e-5
        )
    return np.array(seen).T


JUMP = [1.0] * 5 + [0.1] * 5 + [0.01] * 5


@pytest.mark.parametrize("inner", [optax.identity(), optax.scale_by_adam()])
def test_relative_noise_keeps_its_ratio(inner):
    """R-A6, N1, R-A24, X12, modules 2.8.11: for every factor, and while it jumps."""
    to_direction, _ = ratios(inner, relative, JUMP)
    chex.assert_trees_all_close(to_direction, 0.01, rtol=1e-4)


def test_noise_in_units_of_the_gradient_keeps_its_ratio_to_that():
    """N1, modules 2.8.11."""
    _, to_gradient = ratios(optax.identity(), gradient_norm, JUMP)
    chex.assert_trees_all_close(to_gradient, 0.01, rtol=1e-4)


def test_fixed_noise_drowns_scaled_gradients():
    """N2, modules 2.8.11: the documented hazard, in proportion to 1 / k."""
    _, to_gradient = ratios(optax.identity(), fixed, JUMP)
    before, tenth, hundredth = to_gradient.reshape(3, 5).mean(axis=1)
    chex.assert_trees_all_close(
        (tenth / before, hundredth / before), (10, 100), rtol=0.1
    )
    told = " ".join(gate_by_utility.__doc__.split())
    assert "noise over signal grows as 1 / k" in told


@pytest.mark.parametrize("noise_scale", [gradient_norm, relative])
def test_noise_has_a_floor(noise_scale):
    """N6, modules 2.8.12: for zero gradients too; σ = 0 is silence."""
    params, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    tx = gate_by_utility(
        optax.identity(), sigma=0.1, noise_scale=noise_scale, min_noise_std=1e-3
    )
    updates, state = first_step(tx, zeros, params)
    chex.assert_trees_all_close(state.noise.std, 1e-3, rtol=1e-6)
    assert np.all(updates)
    _, state = jax.jit(tx.update)(3 * params, state, params, key=KEY)
    unit = 6.0 if noise_scale is gradient_norm else 3.0
    chex.assert_trees_all_close(state.noise.std, 0.1 * unit, rtol=1e-6)
    silent = gate_by_utility(optax.identity(), sigma=0.0, noise_scale=noise_scale)
    updates, state = first_step(silent, zeros, params)
    assert not np.any(updates) and state.noise.std == 0


def test_the_mean_unit_of_noise_is_unbiased_from_the_first_step():
    """Modules 2.8.12: no initial value shows; a constant norm of 0.01 stays 0.01."""
    params, g = np.ones(1, np.float32), np.full(1, 0.01, np.float32)
    tx = gate_by_utility(
        optax.identity(), sigma=1.0, noise_scale=gradient_norm, noise_beta=0.999
    )
    state, update = tx.init(params), jax.jit(tx.update)
    for _ in range(20):
        _, state = update(g, state, params, key=KEY)
        chex.assert_trees_all_close(state.noise.std, 0.01, rtol=1e-4)
    _, state = update(params, state, params, key=KEY)
    assert state.noise.std < 0.1


def test_extreme_magnitudes_stay_finite():
    """Modules 2.8.14."""
    tx = gate_by_utility(optax.scale_by_adam())
    for w, g in ((1e6, 1e6), (-1e6, 1e6), (1e-6, 1e6)):
        params = as_float32({"w": np.array([w, -w, 0.0]), "s": w})
        updates = jax.tree.map(lambda x, g=g: np.full_like(x, g), params)
        updates, state = first_step(tx, updates, params)
        for leaf in jax.tree.leaves((updates, state, jitted_metrics(state, 0.999))):
            chex.assert_tree_all_finite(leaf)


def test_extrema_span_all_leaves():
    """U3, modules 2.8.16: a maximum in one leaf moves the gates of another."""
    base = jitted_gates({"a": np.array([0.0, 1.0]), "b": np.array([0.5])})
    moved = jitted_gates({"a": np.array([0.0, 9.0]), "b": np.array([0.5])})
    chex.assert_trees_all_close(base["b"], 0.5, rtol=1e-6)
    assert moved["b"] > 0.7
    lower = jitted_gates({"a": np.array([0.0, 1.0]), "b": np.array([-9.0])})
    assert lower["a"][0] < base["a"][0] - 0.2


@pytest.mark.parametrize("normalize", NORMALIZERS)
def test_a_leaf_without_numbers_changes_no_other(normalize):
    full, empty = jnp.array([1.0, -2.0, 3.0]), jnp.zeros((0, 2))
    tx = gate_by_utility(optax.identity(), sigma=None, normalize=normalize)
    expected, _ = first_step(tx, full, full)
    updates, state = first_step(tx, [full, empty], [full, empty])
    chex.assert_trees_all_equal(updates, [expected, empty])
    chex.assert_tree_all_finite(upgd_metrics(state, 0.999, normalize=normalize))


def test_global_max_by_hand():
    """Modules 2.1: Û over the greatest, and by magnitude where none is positive."""
    gate = jitted_gates({"w": np.array([-4.0, 0.0, 1.0, 2.0])}, global_max)["w"]
    chex.assert_trees_all_close(gate, 1 / (1 + np.exp([-2, 0, 0.5, 1])), rtol=1e-6)
    gate = jitted_gates({"w": np.array([-4.0, -1.0])}, global_max)["w"]
    chex.assert_trees_all_close(gate, 1 / (1 + np.exp([-1, -0.25])), rtol=1e-6)


def test_a_quantile_range_withstands_outliers():
    """Modules 2.3: min-max squeezes the rest around one gate."""
    utilities = np.append(np.random.default_rng(3).normal(size=1000), [1e3, -1e3])
    squeezed = np.asarray(jitted_gates({"w": utilities})["w"])[:-2]
    robust = np.asarray(jitted_gates({"w": utilities}, quantile_range)["w"])[:-2]
    assert squeezed.std() < 0.001 and robust.std() > 0.05


def test_temperature_moves_gates_apart():
    utilities = {"w": np.array([-1.0, 0.0, 1.0])}
    gate = jitted_gates(utilities, temperature=0.5)["w"]
    chex.assert_trees_all_close(gate, 1 / (1 + np.exp([-2, 0, 2])), rtol=1e-6)


def test_non_protecting_gates_noise_only():
    """Modules 2.1: g + ξ · (1 − φ)."""
    params, g = np.float32([1.0, -1.0]), np.ones(2, np.float32)
    settings = {"sigma": 0.5, "combine": non_protecting}
    tx = gate_by_utility(optax.identity(), **settings)
    gated, _ = jax.device_get(first_step(tx, g, params))
    both = gate_by_utility(optax.identity(), sigma=0.5)
    protected, _ = jax.device_get(first_step(both, g, params))
    gate = np.array([0.73105858, 0.26894142])  # Utilities −1 and 1.
    chex.assert_trees_all_close(gated - 1, protected - gate, rtol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_moves_no_utility(bad, variant):
    """A weight keeps its own, and the gates of all are as if it had had none."""
    params = {"w": jnp.array([1.0, -2.0, 0.5]), "b": jnp.array([3.0])}
    tx = gate_by_utility(optax.identity(), beta=0.9, sigma=None)

    def gated(second):
        state = tx.init(params)
        for gradient in (jnp.array([1.0, 2.0, 3.0]), second, jnp.ones(3)):
            given = {"w": gradient, "b": jnp.ones(1)}
            updates, state = tx.update(given, state, params)
        return updates, state.utility

    updates, utility = variant(gated)(jnp.array([1.0, bad, -1.0]))
    chex.assert_tree_all_finite(updates)
    first, last = np.array([-1.0, 4.0, -1.5]), np.array([-1.0, 2.0, -0.5])
    second = np.array([-1.0, 0.0, 0.5])
    by_hand = 0.1 * first
    by_hand = np.where([1, 0, 1], 0.9 * by_hand + 0.1 * second, by_hand)
    by_hand = 0.9 * by_hand + 0.1 * last
    chex.assert_trees_all_close(utility["w"], by_hand, rtol=1e-5)


def test_frozen_leaves():
    """Modules 2.3: no update, no noise, and no part in the extrema."""
    mask = {"a": False, "frozen": True}
    params = {"a": np.float32([1.0, 2.0]), "frozen": np.float32([100.0, -100.0])}
    g = jax.tree.map(np.ones_like, params)
    tx = gate_by_utility(optax.identity(), sigma=0.1)
    some = optax.transforms.selective_transform(tx, freeze_mask=mask)
    updates, _ = first_step(some, g, params)
    alone, _ = first_step(tx, {"a": g["a"]}, {"a": params["a"]})
    assert not np.any(updates["frozen"])
    chex.assert_trees_all_close(updates["a"], alone["a"], rtol=1e-6)


def test_metrics_by_hand():
    """Modules 2.7."""
    params = as_float32({"w": np.array([1.0, -1.0, 0.0]), "s": 0.5})
    g = jax.tree.map(np.ones_like, params)
    tx = gate_by_utility(optax.identity(), sigma=0.0)
    _, state = first_step(tx, g, params)
    gate = 1 / (1 + np.exp([-1, 1, 0, -0.5]))
    expected = {
        "upgd/utility_min": -1.0,
        "upgd/utility_max": 1.0,
        "upgd/utility_range": 2.0,
        "upgd/gate_mean": gate.mean(),
        "upgd/gate_std": gate.std(),
        "upgd/gate_saturated_frac": 0.5,
        "upgd/noise_std_mean": 0.0,
        "upgd/noise_to_signal": 0.0,
        "upgd/update_norm": np.sqrt((gate**2).sum()),
    }
    metrics = jitted_metrics(state, 0.999)
    chex.assert_trees_all_close(metrics, expected, rtol=1e-4)


def test_the_first_state_may_be_donated():
    """No array is in it twice, which XLA refuses."""
    params = jnp.array([1.0, -2.0])
    tx = gate_by_utility(optax.identity(), sigma=None)
    update = jax.jit(tx.update, donate_argnums=1)
    _, state = update(params, tx.init(params), params)
    assert state.count == 1


def test_what_an_update_needs():
    params = jnp.ones(2)
    tx = gate_by_utility(optax.identity())
    with pytest.raises(ValueError, match="expected a `key`"):
        tx.update(params, tx.init(params), params)
    with pytest.raises(ValueError, match="expected `params`"):
        tx.update(params, tx.init(params), key=KEY)
    keyless = gate_by_utility(optax.identity(), sigma=None)
    updates, _ = keyless.update(params, keyless.init(params), params)
    chex.assert_trees_all_close(updates, 0.5, rtol=1e-7)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("beta", 1.0),
        ("beta", 1 - 1e-9),
        ("beta", jnp.float32(-0.1)),
        ("sigma", -1e-3),
        ("sigma", np.inf),
        ("temperature", 0.0),
        ("temperature", np.float32(-1.0)),
        ("noise_beta", 1.0),
        ("noise_beta", 1 - 1e-9),
        ("min_noise_std", -1.0),
        ("min_noise_std", np.inf),
    ],
)
def test_numbers_out_of_range_are_errors(number, value):
    """A decay of 1 is one that float32 cannot tell from it, too."""
    with pytest.raises(ValueError, match=f"{number}: expected a (finite )?number"):
        gate_by_utility(optax.identity(), **{number: value})
