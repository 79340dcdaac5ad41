"""Variance gradient scaling against float64 formulas and hand-computed numbers."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.transforms.vgs import (
    elementwise,
    layer_mean,
    percentile,
    pooled,
    scale_by_variance,
    second_moment,
    vgs_metrics,
)

STATISTICS = [layer_mean, second_moment, elementwise]
NUMBERS = {"alpha": 0.1, "eps": 1e-8, "cap": 50.0, "floor": 0.1, "warmup_steps": 0}


def gradients(steps=200, scale=1.0, seed=0):
    """A fixed sequence with leaves of different signal and noise, `[steps, ...]`."""
    rng = np.random.default_rng(seed)
    return {
        "bias": scale * (1.0 + 0.3 * rng.normal(size=(steps,))),
        "kernel": scale * (0.2 + rng.normal(size=(steps, 3, 4))),
        "quiet": scale * (-0.5 + 0.05 * rng.normal(size=(steps, 5))),
    }


def run(sequence, **settings):
    """Scaled gradients of a whole sequence, the factors, and the last state."""
    sequence = jax.tree.map(np.float32, sequence)
    state, (updates, factors) = jax.device_get(scanned(sequence, **settings))
    return updates, factors, state


@functools.partial(jax.jit, static_argnames=("statistic", "aggregate"))
def scanned(sequence, **settings):
    transformation = scale_by_variance(**settings)

    def step(state, g):
        updates, state = transformation.update(g, state)
        return state, (updates, state.factor)

    state = transformation.init(jax.tree.map(lambda x: x[0], sequence))
    return jax.lax.scan(step, state, sequence)


metrics_of = jax.jit(vgs_metrics)


def ratios(sequence, statistic, beta=0.99, eps=1e-8):
    """R of each leaf after a whole sequence, from the EMAs of the definition."""
    values = []
    for name in sorted(sequence):
        g = np.asarray(sequence[name], np.float64).reshape(len(sequence[name]), -1)
        first = {
            layer_mean: lambda g: g.mean(axis=1),
            second_moment: lambda g: g.mean(axis=1),
            elementwise: lambda g: g,
        }[statistic](g)
        square = (g**2).mean(axis=1) if statistic is second_moment else first**2
        weights = beta ** np.arange(len(g) - 1, -1, -1) * (1 - beta)
        correction = 1 - beta ** len(g)
        mean = np.tensordot(weights, first, 1) / correction
        second = np.tensordot(weights, square, 1) / correction
        variance = np.maximum(second - mean**2, 0).mean()
        signal = (mean**2).mean() + eps * second.mean()
        values.append((variance / signal, signal))
    return np.array(values).T


def oracle_factors(sequence, statistic, aggregate, alpha, cap, floor, warmup):
    """Factors of all steps: each from the steps before it."""
    factors = []
    for t in range(len(sequence["bias"])):
        factor = 1.0
        if t >= max(warmup, 1):
            ratio, signal = ratios({k: v[:t] for k, v in sequence.items()}, statistic)
            weights = signal / signal.sum()
            total = {
                percentile: lambda r, w: np.percentile(r, 90),
                pooled: lambda r, w: (r * w).sum(),
            }[aggregate](ratio, weights)
            total = min(total, 1e6 if cap is None else cap)
            factor = np.clip(1 / (1 + alpha * total), floor, 1)
        factors.append(factor)
    return np.array(factors)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("aggregate", [percentile, pooled])
@pytest.mark.parametrize(("cap", "floor"), [(50.0, 0.1), (None, 1e-4)])
def test_golden_trajectory(statistic, aggregate, cap, floor):
    """V3, V9: 200 steps against the formulas in float64."""
    sequence = gradients()
    updates, factors, state = run(
        sequence,
        alpha=0.1,
        cap=cap,
        floor=floor,
        warmup_steps=10,
        statistic=statistic,
        aggregate=aggregate,
    )
    expected = oracle_factors(sequence, statistic, aggregate, 0.1, cap, floor, 10)
    assert np.ptp(expected[10:]) > 0.005
    chex.assert_trees_all_close(factors, expected, rtol=1e-5)
    for name, leaf in updates.items():
        scale = expected.reshape(-1, *(1,) * (leaf.ndim - 1))
        chex.assert_trees_all_close(leaf, sequence[name] * scale, rtol=1e-5, atol=1e-7)
    metrics = metrics_of(state, **NUMBERS)
    leaves, _ = ratios(sequence, statistic)
    for name, q in (("p10", 10), ("p50", 50), ("p90", 90)):
        chex.assert_trees_all_close(
            metrics[f"vgs/stochastic_var_{name}"], np.percentile(leaves, q), rtol=1e-4
        )
    chex.assert_trees_all_close(
        metrics["vgs/stochastic_var_mean"], leaves.mean(), rtol=1e-4
    )
    assert metrics["vgs/step_count"] == 200


def test_factor_by_hand():
    """V9: gradients 1 and 3 give M = 2.005025, V = 0.999975, R = 0.248743."""
    sequence = {"w": np.array([[1.0, 1], [3, 3], [5, 5]])}
    _, factors, state = run(sequence, warmup_steps=0)
    chex.assert_trees_all_close(factors, np.array([1.0, 1.0, 1 / 1.0248743]), rtol=1e-6)
    chex.assert_trees_all_close(state.mean["w"], 3.0134002, rtol=1e-6)


def test_the_factor_is_one_during_warmup_and_when_off():
    """R-A4, V8, modules 1.7.1: for as many steps, for alpha = 0, without parameters."""
    sequence = gradients(40)
    _, factors, _ = run(sequence, alpha=0.1, warmup_steps=20)
    assert (factors[:20] == 1).all() and (factors[20:] < 1).all()
    updates, factors, _ = run(sequence, alpha=0.0, warmup_steps=0)
    chex.assert_trees_all_equal(factors, 1)
    for name, leaf in updates.items():
        chex.assert_trees_all_equal(leaf, np.float32(sequence[name]))
    vgs = scale_by_variance(warmup_steps=0)
    _, state = vgs.update({}, vgs.init({}))
    assert vgs.update({}, state)[1].factor == 1
    state = state._replace(count=jnp.int32(3))
    metrics = metrics_of(state, **NUMBERS | {"warmup_steps": 4})
    assert metrics["vgs/warmup_active"] == 1
    assert metrics_of(state, **NUMBERS)["vgs/warmup_active"] == 0


@jax.jit
def second_step(variance, cap):
    """A second update by any variance, its state, and what is said of it."""

    def aggregate(ratios, signals):
        return variance

    vgs = scale_by_variance(cap=cap, warmup_steps=0, aggregate=aggregate)
    params = jnp.ones(2)
    _, state = vgs.update(params, vgs.init(params))
    updates, state = vgs.update(params, state)
    metrics = vgs_metrics(state, **NUMBERS | {"cap": cap}, aggregate=aggregate)
    return updates, state, metrics


@pytest.mark.parametrize("cap", [50.0, None])
def test_the_factor_is_bounded_and_falls_with_the_variance(cap):
    """R-A4, V9, V10, modules 1.7.2: for any aggregate, infinity included."""
    last = 1.0
    for variance in (0.0, 0.1, 1.0, 49.0, 50.0, 51.0, 1e5, 1e7, np.inf):
        updates, state, metrics = jax.device_get(second_step(variance, cap))
        capped = min(variance, 1e6 if cap is None else cap)
        expected = max(1 / (1 + 0.1 * capped), 0.1)
        chex.assert_trees_all_close(state.factor, expected, rtol=1e-6)
        assert 0.1 <= state.factor <= last
        assert (updates >= np.float32(0.1)).all()
        last = float(state.factor)
        assert metrics["vgs/capped"] == (variance >= (1e6 if cap is None else cap))


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e25, 3e38])
def test_factors_are_finite_for_finite_gradients(statistic, scale):
    """V10, modules 1.7.2: underflow and overflow of squares included."""
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=(100, 3, 4))
    updates, factors, state = run(
        {"w": scale * signs}, warmup_steps=0, statistic=statistic
    )
    assert ((factors >= 0.1) & (factors <= 1)).all()
    chex.assert_tree_all_finite(updates["w"])
    chex.assert_tree_all_finite(metrics_of(state, **NUMBERS))


def test_a_constant_gradient_has_no_variance_over_time():
    """V3, modules 1.7.3: whatever its pattern; the second moment sees the pattern."""
    pattern = np.random.default_rng(2).normal(size=(3, 4)) + 0.5
    sequence = {"w": np.broadcast_to(pattern, (500, 3, 4))}
    for statistic in (layer_mean, elementwise):
        _, factors, state = run(sequence, warmup_steps=0, statistic=statistic)
        chex.assert_trees_all_equal(factors, 1)
        assert (state.variance["w"] < 1e-13 * state.mean["w"] ** 2).all()  # An ulp.
    _, _, state = run(sequence, statistic=second_moment)
    chex.assert_trees_all_close(
        metrics_of(state, **NUMBERS)["vgs/normalized_variance"],
        pattern.var() / pattern.mean() ** 2,
        rtol=1e-5,
    )


def test_what_rounding_leaves_of_a_mean_is_no_noise():
    """Gradients of a softmax, p − 1{a}, whose exact sum is 0 whatever p and a are."""
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(300, 7, 5))
    chances = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    taken = np.eye(5)[rng.integers(5, size=(300, 7))]
    sequence = {"w": chances - taken}
    sums = sequence["w"].astype(np.float32).sum(axis=(1, 2))
    assert (sums != 0).any()
    _, factors, state = run(sequence, warmup_steps=0, statistic=layer_mean)
    chex.assert_trees_all_equal(factors, 1)
    assert state.mean["w"] == state.variance["w"] == 0


def test_uniform_noise_is_seen_by_all_statistics_alike():
    """V3, modules 1.7.4."""
    noise = 1 + np.random.default_rng(3).normal(size=(100, 1, 1))
    sequence = {"w": np.broadcast_to(noise, (100, 3, 4))}
    seen = []
    for statistic in STATISTICS:
        _, _, state = run(sequence, warmup_steps=0, statistic=statistic)
        seen.append(metrics_of(state, **NUMBERS)["vgs/normalized_variance"])
    assert seen[0] > 0.1
    chex.assert_trees_all_close(np.array(seen), np.array([seen[0]] * 3), rtol=1e-5)


def test_anticorrelated_noise_is_seen_elementwise_only():
    """V11, R-B3, modules 1.7.5: the limitation that the docstring states."""
    flips = np.random.default_rng(4).choice([-1.0, 1.0], size=(100, 1, 1))
    noise = np.tile(flips * np.array([1.0, -1.0, 1.0, -1.0]), (1, 3, 1))
    sequence = {"w": 0.5 + 0.25 * noise}
    seen = {}
    for statistic in (layer_mean, elementwise):
        _, _, state = run(sequence, warmup_steps=0, statistic=statistic)
        metrics = metrics_of(state, **NUMBERS)
        seen[statistic] = float(metrics["vgs/normalized_variance"])
    assert seen[layer_mean] < 1e-10
    assert seen[elementwise] > 0.1
    for phrase in ("Var_t", "mean of each", "O(1) memory per tensor"):
        assert phrase in scale_by_variance.__doc__
    assert "blind to anticorrelated noise" in scale_by_variance.__doc__
    assert "O(weights)" in scale_by_variance.__doc__


@pytest.mark.parametrize("statistic", STATISTICS)
def test_more_noise_is_more_variance(statistic):
    """Modules 1.7.6."""
    noise = np.random.default_rng(5).normal(size=(100, 3, 4))
    seen = []
    for size in (0.01, 0.1, 1.0):
        sequence = {"w": 1 + size * noise}
        _, _, state = run(sequence, warmup_steps=0, statistic=statistic)
        seen.append(metrics_of(state, **NUMBERS)["vgs/normalized_variance"])
        assert (np.asarray(state.variance["w"]) >= 0).all()
    assert seen[0] < seen[1] < seen[2]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_variance_does_not_depend_on_scale_or_sign(statistic):
    """Modules 1.7.8: over twelve orders of magnitude."""
    seen = []
    for scale in (1.0, -1.0, 1e-9, 1e3):
        sequence = gradients(40, scale=scale)
        _, _, state = run(sequence, warmup_steps=0, statistic=statistic)
        seen.append(metrics_of(state, **NUMBERS)["vgs/normalized_variance"])
    chex.assert_trees_all_close(np.array(seen), np.array([seen[0]] * 4), rtol=1e-4)


def test_one_factor_for_all_leaves():
    """Modules 1.7.9: the direction is preserved exactly."""
    sequence = gradients(40)
    updates, factors, _ = run(sequence, alpha=0.1, warmup_steps=0)
    assert factors[-1] < 1
    for name, leaf in updates.items():
        expected = np.float32(sequence[name][-1]) * factors[-1]
        chex.assert_trees_all_equal(leaf[-1], expected)


def test_the_factor_depends_on_gradients_before_it_only():
    """R-A1, V2, modules 1.7.10: by effect."""
    sequence = gradients(40)
    _, factors, _ = run(sequence, alpha=0.1, warmup_steps=0)
    changed = jax.tree.map(np.array, sequence)
    for leaf in changed.values():
        leaf[20:] *= -30 * (1 + np.arange(20).reshape(-1, *(1,) * (leaf.ndim - 1)))
    _, others, _ = run(changed, alpha=0.1, warmup_steps=0)
    chex.assert_trees_all_equal(factors[:21], others[:21])
    assert factors[21] != others[21]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_leaf_that_is_not_finite_is_left_out_and_comes_back(statistic, bad):
    """Modules 1.7.12: the others do not notice."""
    sequence = gradients(40)
    broken = jax.tree.map(np.array, sequence)
    broken["kernel"][10, 1, 2] = bad
    settings = {"warmup_steps": 0, "statistic": statistic}
    _, _, clean = run(sequence, **settings)
    _, factors, state = run(broken, **settings)
    chex.assert_tree_all_finite(factors)
    assert state.skipped == 1
    chex.assert_trees_all_equal(state.mean["bias"], clean.mean["bias"])
    chex.assert_trees_all_equal(state.variance["quiet"], clean.variance["quiet"])
    _, _, without = run({"kernel": np.delete(broken["kernel"], 10, axis=0)}, **settings)
    chex.assert_trees_all_close(state.mean["kernel"], without.mean["kernel"], rtol=1e-6)
    assert metrics_of(state, **NUMBERS)["vgs/skipped_leaves"] == 1


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_leaf_without_numbers_is_none_that_is_left_out(statistic):
    settings = {"statistic": statistic, "aggregate": pooled, "warmup_steps": 0}
    _, expected, _ = run(gradients(10), **settings)
    none = {"none": np.zeros((10, 0))}
    _, factors, state = run(gradients(10) | none, **settings)
    chex.assert_trees_all_equal(factors, expected)
    assert state.skipped == 0


def test_statistics_hold_no_parameters():
    """V7: the state is made of scalars per leaf, whatever the parameters are."""
    vgs = scale_by_variance()
    small, large = vgs.init(jnp.zeros(2)), vgs.init(jnp.ones((50, 50)))
    chex.assert_shape(jax.tree.leaves((small, large)), ())
    chex.assert_trees_all_equal(small, large)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("alpha", -0.1),
        ("alpha", np.inf),
        ("beta", 1.0),
        ("beta", 1 - 1e-9),
        ("beta", np.float32(2.0)),
        ("beta", jnp.array(2.0)),
        ("beta", 0.0),
        ("eps", 0.0),
        ("cap", 0.0),
        ("floor", 0.0),
        ("floor", 1.1),
        ("warmup_steps", -1),
    ],
)
def test_numbers_out_of_range_are_errors(number, value):
    """A decay of 1 is one that float32 cannot tell from it, too."""
    with pytest.raises(ValueError, match=f"{number}: expected a (finite )?number"):
        scale_by_variance(**{number: value})
