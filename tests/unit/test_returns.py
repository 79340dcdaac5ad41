"""Advantages and explained variance against float64 oracles and worked numbers."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.returns import (
    LIMIT,
    explained_variance,
    explained_variance_by_group,
    gae,
    standardize,
    to_go,
)

GAMMA, LAMBDA = 0.99, 0.95
advantages = jax.jit(gae)
standardized = jax.jit(standardize, static_argnames="axis")
explained = jax.jit(explained_variance)
FLAT = [(5.0, 7), (0.1, 3), (1234.567, 100_003), (1e6, 1024), (-3e-7, 11), (3e38, 9)]


def masks(terminated, truncated, gamma=GAMMA, lambda_=LAMBDA):
    """The two masks of `gae`."""
    done = np.logical_or(terminated, truncated)
    return (
        np.asarray(gamma * (1 - np.asarray(terminated, float)), np.float32),
        np.asarray(gamma * lambda_ * (1 - done), np.float32),
    )


def rollout(seed, shape=(9, 4)):
    """Random arguments of `gae`, with both kinds of episode ends."""
    rng = np.random.default_rng(seed)
    terminated = rng.random(shape) < 0.2
    truncated = (rng.random(shape) < 0.2) & ~terminated
    r_t, v_tm1, v_t = rng.normal(size=(3, *shape)).astype(np.float32)
    v_t[:-1] = np.where(terminated | truncated, v_t, np.roll(v_tm1, -1, axis=0))[:-1]
    return r_t, *masks(terminated, truncated), v_tm1, v_t


def gae_oracle(r_t, discount_t, lambda_t, v_tm1, v_t):
    """A_t = Σ_k (Π_{t ≤ j < k} λ_j) δ_k, as a double loop in float64."""
    r_t, discount_t, lambda_t, v_tm1, v_t = (
        np.asarray(x, np.float64) for x in (r_t, discount_t, lambda_t, v_tm1, v_t)
    )
    delta = r_t + discount_t * v_t - v_tm1
    adv = np.zeros_like(delta)
    for t in range(len(delta)):
        trace = np.ones_like(delta[0])
        for k in range(t, len(delta)):
            adv[t] += trace * delta[k]
            trace = trace * lambda_t[k]
    return adv


def arrays(args):
    return tuple(jnp.asarray(np.float32(x)) for x in args)


def test_gae_bootstraps_a_truncation_without_leaking_the_next_episode(variant):
    """PROP-2.1, R-D14: the worked example, truncated and terminated."""
    done, never = [False, True, False], [False] * 3
    r_t, v_tm1, v_t = np.ones(3), np.full(3, 0.5), [0.5, 2.0, 0.5]
    truncated = arrays((r_t, *masks(never, done), v_tm1, v_t))
    terminated = arrays((r_t, *masks(done, never), v_tm1, v_t))
    run = variant(gae)
    adv, clipped = run(*truncated)
    chex.assert_trees_all_close(adv, np.array([3.32744, 2.48, 0.995]), rtol=1e-6)
    assert not np.any(clipped)
    adv, _ = run(*terminated)
    chex.assert_trees_all_close(adv, np.array([1.46525, 0.5, 0.995]), rtol=1e-6)


def test_gae_of_one_truncated_step():
    """PROP-2.2, R-D14: the target is the advantage plus the value."""
    args = arrays(([1.0], *masks([False], [True]), [0.5], [2.0]))
    adv, _ = advantages(*args)
    chex.assert_trees_all_close(adv, np.array([2.48]), rtol=1e-6)
    chex.assert_trees_all_close(np.add(adv, args[3]), np.array([2.98]), rtol=1e-6)


def test_gae_at_both_ends_of_lambda():
    """PROP-2.3, R-D14: λ = 0 gives δ, λ = 1 gives the return less the value."""
    r_t, discount_t, _, v_tm1, v_t = rollout(0)
    adv, _ = advantages(r_t, discount_t, np.zeros_like(r_t), v_tm1, v_t)
    chex.assert_trees_all_close(adv, r_t + discount_t * v_t - v_tm1, rtol=0, atol=1e-6)

    gamma = np.full_like(r_t, GAMMA)
    v_t = np.concatenate([v_tm1[1:], v_t[-1:]])
    adv, _ = advantages(r_t, gamma, gamma, v_tm1, v_t)
    powers = GAMMA ** np.arange(10)
    adv = np.asarray(adv)
    for t in range(9):
        tail = np.concatenate([r_t[t:], v_t[-1:]])
        expected = np.tensordot(powers[: len(tail)], tail, axes=1) - v_tm1[t]
        chex.assert_trees_all_close(adv[t], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("other", [7.0, np.nan])
@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_gae_before_the_end_of_an_episode_ignores_what_follows(end, other):
    """PROP-2.4, R-D14: not even NaN crosses the end of an episode."""
    r_t, _, _, v_tm1, v_t = rollout(1)
    done, never = np.zeros((2, *r_t.shape), bool)
    done[4] = True
    ends = (done, never) if end == "terminated" else (never, done)
    args = (r_t, *masks(*ends), v_tm1, v_t)
    changed = [np.concatenate([x[:5], np.full_like(x[5:], other)]) for x in args]
    adv, expected = (np.asarray(advantages(*of)[0]) for of in (args, changed))
    chex.assert_trees_all_equal(adv[:5], expected[:5])


def test_gae_without_bootstrap_ignores_the_next_value():
    """R-D14: after a termination, the value of the final observation is irrelevant."""
    r_t, discount_t, lambda_t, v_tm1, v_t = rollout(2)
    garbage = np.where(discount_t == 0, np.float32(np.nan), v_t)
    expected = advantages(r_t, discount_t, lambda_t, v_tm1, v_t)[0]
    adv = advantages(r_t, discount_t, lambda_t, v_tm1, garbage)[0]
    chex.assert_trees_all_close(adv, expected, rtol=0, atol=1e-6)


def test_gae_is_linear_in_rewards_and_values():
    """PROP-2.5, R-D14."""
    a, b = rollout(3), rollout(4)
    masks_a = a[1:3]

    def of(r_t, v_tm1, v_t):
        return np.asarray(advantages(r_t, *masks_a, v_tm1, v_t)[0])

    first, second = (a[0], *a[3:]), (b[0], *b[3:])
    mixed = [2.0 * x - 0.5 * y for x, y in zip(first, second, strict=True)]
    chex.assert_trees_all_close(
        of(*mixed), 2.0 * of(*first) - 0.5 * of(*second), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("shape", [(9, 4), (6,), (5, 2, 3), (1, 3)])
def test_gae_equals_a_double_loop(variant, shape):
    """PROP-2.6, R-D14: random masks, any trailing axes."""
    args = arrays(rollout(5, shape))
    adv, clipped = variant(gae)(*args)
    chex.assert_trees_all_close(adv, gae_oracle(*args), rtol=0, atol=1e-5)
    chex.assert_shape([adv, clipped], shape)
    chex.assert_type(adv, jnp.float32)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["r_t", "discount_t", "lambda_t", "v_tm1", "v_t"])
def test_gae_names_a_non_finite_argument(name, bad):
    """PROP-2.7, R-A20, X7: an error when eager; inside jit it reaches the result."""
    names = ["r_t", "discount_t", "lambda_t", "v_tm1", "v_t"]
    args = dict(zip(names, rollout(6), strict=True))
    args["discount_t"] = np.full_like(args["r_t"], GAMMA)
    args["lambda_t"] = np.full_like(args["r_t"], GAMMA * LAMBDA)
    args[name][3, 1] = bad
    args = jax.tree.map(jnp.asarray, args)
    with pytest.raises(ValueError, match=f"^{name}: expected finite"):
        gae(**args)
    adv, clipped = jax.device_get(advantages(**args))
    assert not np.isfinite(adv[3, 1])
    chex.assert_tree_all_finite(adv[:, 0])
    assert not clipped.any()


def test_gae_reports_what_it_clips():
    """Both δ and the running sum stay within ±LIMIT, and the mask says where."""
    r_t, lambda_t, zeros = np.float32([[0.9e6, 0.9e6, 1, -3e6], [1, 0, 0, 0], [0] * 4])
    adv, clipped = advantages(r_t, zeros, lambda_t, zeros, zeros)
    chex.assert_trees_all_equal(adv, np.array([LIMIT, np.float32(0.9e6), 1.0, -LIMIT]))
    assert clipped.tolist() == [True, False, False, True]


ONES = jnp.ones((3, 2))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda: gae(*[ONES] * 4, jnp.ones((3, 1))),
            "v_t: .* that of r_t, got float32",
        ),
        (lambda: gae(ONES, 0.99, *[ONES] * 3), "discount_t: .* of r_t, got a float"),  # pyright: ignore
        (lambda: gae([1.0], *[ONES] * 4), "r_t: expected an array, got a list of 1"),  # pyright: ignore
        (lambda: to_go(ONES, 0.9), "discount_t: .* that of x_t, got a float"),  # pyright: ignore
        (lambda: standardize(ONES, ONES[0]), "weight: .* that of adv, got float32"),
        (
            lambda: explained_variance(ONES, ONES[0], ONES),
            "prediction: .* that of target, got",
        ),
        (
            lambda: explained_variance_by_group(*[ONES] * 3, jnp.zeros(3, int), 1),
            "group: .* that of target, got int32",
        ),
    ],
)
def test_an_argument_of_another_shape_is_named(wrong, said):
    with pytest.raises(ValueError, match=said):
        wrong()


def test_gae_takes_low_precision_and_answers_in_float32():
    args = [jnp.asarray(x, jnp.bfloat16) for x in rollout(7)]
    adv, _ = advantages(*args)
    chex.assert_type(adv, jnp.float32)
    chex.assert_trees_all_close(adv, gae_oracle(*args), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("value", "size"), FLAT)
def test_standardize_of_constants_is_exactly_zero(value, size):
    """PROP-4.1, R-D2: whatever their magnitude and number."""
    adv, zero = standardized(*np.float32([[value] * size, [1] * size]))
    assert zero
    assert not np.asarray(adv).any()


def test_standardize_does_not_cancel():
    """PROP-4.3: a large mean costs no accuracy, and neither does one large sample."""
    noise = np.random.default_rng(3).normal(size=5001)
    for samples in (1e6 + noise, np.append(noise, 1e6), -1e6 - noise):
        samples = samples.astype(np.float32)
        adv, _ = standardized(samples, np.ones(samples.size))
        samples = samples.astype(np.float64)
        expected = (samples - samples.mean()) / samples.std(ddof=1)
        chex.assert_trees_all_close(adv, expected, rtol=0, atol=1e-5)


def test_standardize_of_worked_numbers(variant):
    """PROP-4.2."""
    args = arrays(([0.1, 0.5, -0.3, 0.7, -0.1], np.ones(5)))
    adv, zero = variant(standardize)(*args)
    expected = [-0.192897, 0.771588, -1.157383, 1.253831, -0.67514]
    chex.assert_trees_all_close(adv, np.array(expected), rtol=0, atol=1e-6)
    assert not zero


def test_standardize_keeps_order_and_ignores_shift_and_scale():
    """PROP-4.3."""
    adv = np.float32(np.random.default_rng(0).normal(size=64))
    ones = np.ones(64)
    expected, _ = standardized(adv, ones)
    chex.assert_trees_all_equal(np.argsort(expected), np.argsort(adv))
    moved, _ = standardized(7 * adv + 3, ones)
    chex.assert_trees_all_close(moved, expected, rtol=0, atol=1e-5)


def test_standardize_jointly_keeps_the_differences_between_groups():
    """PROP-4.4, R-E3: normalised alone, all microbatches would look alike."""
    groups = [[100, 120, 110], [10, 12, 11], [1, 1.2, 1.1], [-5, -6, -5.5]]
    adv, _ = standardized(np.float32(groups), np.ones((4, 3)))
    population = np.asarray(adv) * np.sqrt(12 / 11)  # The numbers divide by n.
    expected = [1.712, -0.3843, -0.5940, -0.7337]
    chex.assert_trees_all_close(
        population.mean(axis=1), np.array(expected), rtol=0, atol=2e-4
    )


def test_standardize_per_environment_or_over_all():
    """PROP-4.5, R-D9: over everything by default, per column with `axis=0`."""
    adv, weight = np.float32([[1, 10], [2, 20], [3, 30]]), np.ones((3, 2))
    columns, zero = standardized(adv, weight, axis=0)
    chex.assert_trees_all_close(
        columns, np.array([[-1, -1], [0, 0], [1, 1]]), rtol=0, atol=1e-6
    )
    assert zero.tolist() == [False, False]
    total, zero = standardized(adv, weight)
    expected = [[-0.8525, -0.0852], [-0.7672, 0.7672], [-0.6820, 1.6197]]
    chex.assert_trees_all_close(total, np.array(expected), rtol=0, atol=1e-4)
    chex.assert_shape(zero, ())
    adv[:, 0] = 4
    _, zero = standardized(adv, weight, axis=0)
    assert zero.tolist() == [True, False]
    with pytest.raises(ValueError, match="axis: expected None or 0, got 1"):
        standardized(adv, weight, axis=1)


@pytest.mark.parametrize("garbage", [1e6, np.nan])
@pytest.mark.parametrize("axis", [None, 0])
def test_standardize_ignores_what_has_no_weight(variant, axis, garbage):
    """PROP-4.6: masked entries are 0 and influence nothing, not even as NaN."""
    rng = np.random.default_rng(1)
    adv = rng.normal(size=(6, 3)).astype(np.float32)
    weight = np.ones((6, 3), np.float32)
    weight[[0, 3]] = 0
    adv[weight == 0] = garbage
    run = variant(functools.partial(standardize, axis=axis))
    out, zero = jax.device_get(run(jnp.asarray(adv), jnp.asarray(weight)))
    valid = adv[[1, 2, 4, 5]].astype(np.float64)
    expected = (valid - valid.mean(axis)) / valid.std(axis, ddof=1)
    chex.assert_trees_all_close(out[[1, 2, 4, 5]], expected, rtol=0, atol=1e-5)
    chex.assert_trees_all_equal(out[[0, 3]], 0)
    assert not zero.any()


def test_standardize_keeps_tiny_signals_and_drops_rounding_noise():
    """PROP-4.7, R-D2: the rule for zero variance is relative."""
    adv, zero = standardized(np.float32([1e-7, 2e-7, 3e-7]), np.ones(3))
    chex.assert_trees_all_close(adv, np.array([-0.9091, 0, 0.9091]), rtol=0, atol=1e-4)
    assert not zero
    noise = np.float32([1, 1 + 1e-7, 1 - 1e-7, 1 + 5e-8])
    adv, zero = standardized(noise, np.ones(4))
    assert zero
    assert not adv.any()


@pytest.mark.parametrize("valid", [0, 1])
def test_standardize_of_fewer_than_two_samples_is_zero(valid):
    adv, zero = standardized(np.arange(4.0), np.float32(np.arange(4) < valid))
    assert not adv.any()
    assert zero


def test_standardize_with_weights_has_weighted_mean_zero():
    """Weights count as shares: their scale is irrelevant."""
    rng = np.random.default_rng(2)
    adv, weight = np.float32(rng.random((2, 40)))
    out, _ = standardized(adv, weight)
    mean = np.average(adv, weights=weight)
    freedom = weight.sum() - (weight**2).sum() / weight.sum()
    std = np.sqrt((weight * (adv - mean) ** 2).sum() / freedom)
    chex.assert_trees_all_close(out, (adv - mean) / std, rtol=0, atol=1e-5)
    for scale in (8, 1e-30, 1e30):
        scaled, _ = standardized(adv, np.float32(scale) * weight)
        chex.assert_trees_all_close(scaled, out, rtol=0, atol=1e-6)


def test_standardize_shows_non_finite_advantages():
    """An error when eager; inside jit nothing finite comes out."""
    adv = jnp.array([1.0, jnp.nan, 3.0])
    with pytest.raises(ValueError, match=r"^adv: expected finite"):
        standardize(adv, jnp.ones(3))
    assert not np.isfinite(standardized(adv, jnp.ones(3))[0]).any()


@pytest.mark.parametrize(
    ("prediction", "weight", "expected"),
    [
        ([1, 2, 3, 5], [1, 1, 1, 1], 0.85),
        ([11, 12, 13, 14], [1, 1, 1, 1], 1.0),
        ([2.5, 2.5, 2.5, 2.5], [1, 1, 1, 1], 0.0),
        ([-1, -2, -3, -4], [1, 1, 1, 1], -3.0),
        ([1, 2, 3, 5], [1, 1, 1, 0.5], 0.884615),
    ],
)
def test_explained_variance_of_worked_numbers(variant, prediction, weight, expected):
    """PROP-14.1."""
    args = arrays(([1, 2, 3, 4], prediction, weight))
    result = variant(explained_variance)(*args)
    chex.assert_trees_all_close(result, expected, rtol=0, atol=1e-6)


def test_explained_variance_ignores_what_has_no_weight(variant):
    """PROP-14.2: garbage is masked; too few samples give NaN."""
    samples = arrays(([[1, 2, np.nan], [3, 4, 1e30]], [[1, 2, 5], [3, 5, np.inf]]))
    enough, none, one = arrays(([[1, 1, 0]] * 2, [[0, 0, 0]] * 2, [[0] * 3, [1, 0, 0]]))
    run = variant(explained_variance)
    chex.assert_trees_all_close(run(*samples, enough), 0.85, rtol=0, atol=1e-6)
    assert np.isnan(run(*samples, none)) and np.isnan(run(*samples, one))


def test_explained_variance_has_no_gradient():
    """PROP-14.3: adding it to a loss changes no gradient."""
    target = np.float32([1.0, 2.0, 3.0])

    def loss(prediction, with_ev):
        ev = explained_variance(target, prediction, jnp.ones(3))
        return jnp.sum((target - prediction) ** 2) + with_ev * ev

    prediction = np.float32([0.5, 2.5, 2.0])
    slopes = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(prediction, np.arange(2.0))
    without, with_it = np.asarray(slopes)
    chex.assert_trees_all_equal(without, with_it)


@pytest.mark.parametrize(("value", "size"), FLAT)
def test_explained_variance_of_constants_is_unavailable(value, size):
    """PROP-14.4: exactly, not up to rounding, and whatever the weights."""
    target = np.full(size, value, np.float32)
    prediction = target + np.float32(np.arange(size) % 3)
    weight = np.random.default_rng(4).random(size)
    assert np.isnan(explained(target, prediction, np.ones(size)))
    assert np.isnan(explained(target, prediction, weight))


def test_explained_variance_is_unavailable_for_non_finite_samples():
    y, ones = np.array([1.0, 2.0, 3.0]), np.ones(3)
    for bad in (np.nan, np.inf):
        broken = np.append(bad, y[1:])
        assert np.isnan(explained(y, broken, ones))
        assert np.isnan(explained(broken, y, ones))


def test_explained_variance_by_group_of_worked_numbers(variant):
    """PROP-14.5: 1 for a group of weight 1e-6, .992 for one of weight 1."""
    target = np.tile(np.arange(4.0), 2)
    prediction = np.append(target[:4] - 5, [0.1, 0.9, 2.1, 2.9])
    args = arrays((target, prediction, np.repeat([1e-6, 1.0], 4)))
    by_group = functools.partial(explained_variance_by_group, num_groups=3)
    each, mass = variant(by_group)(*args, jnp.asarray(np.repeat([0, 1], 4)))
    chex.assert_trees_all_close(each, np.array([1, 0.992, np.nan]), rtol=1e-6)
    chex.assert_trees_all_close(mass, np.array([4e-6, 4, 0]), rtol=1e-6)


def test_explained_variance_by_group_is_that_of_each_group():
    """PROP-14.2, PROP-14.4: garbage without weight, large offsets, constants."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 5, (16, 8))
    offset = np.array([0.0, 1e4, -1e3, 1234.567, 3.0])[group]
    spread = np.where(group < 3, 1.0, 0.0)
    target = offset + spread * rng.normal(size=group.shape)
    prediction = target + 0.5 * rng.normal(size=group.shape)
    weight = rng.choice([0.0, 0.5, 2.0], group.shape)
    weight[(group == 2)] = 0.0
    weight[tuple(np.argwhere(group == 2)[0])] = 1.0
    target, prediction = (
        np.where(weight > 0, x, np.nan).astype(np.float32) for x in (target, prediction)
    )
    each, mass = jax.jit(explained_variance_by_group, static_argnames="num_groups")(
        target, prediction, np.float32(weight), group, num_groups=5
    )
    each = np.asarray(each)
    for g in (0, 1):
        inside = (group == g) & (weight > 0)
        y, p, w = (x[inside].astype(np.float64) for x in (target, prediction, weight))

        def square(x, w=w):
            return (w * (x - np.average(x, weights=w)) ** 2).sum()

        chex.assert_trees_all_close(each[g], 1 - square(y - p) / square(y), rtol=1e-3)
    assert np.isnan(each[2:]).all()
    chex.assert_trees_all_close(
        mass, np.array([weight[group == g].sum() for g in range(5)]), rtol=1e-6
    )
