"""Running moments against one pass over all samples in float64."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.normalization.observations import (
    BLOCK,
    EPS,
    drift,
    init,
    normalize,
    update,
)

SPEC = {"image": jax.ShapeDtypeStruct((2, 2), jnp.uint8), "speed": jnp.zeros(3)}
updated, normalized = jax.jit(update), jax.jit(normalize)


def batch(seed, leading=(5, 4), scale=1.0, shift=0.0):
    """Observations with an integer leaf, `[T, B, ...]`."""
    rng = np.random.default_rng(seed)
    speed = shift + scale * rng.normal(size=(*leading, 3))
    return {
        "image": jnp.asarray(rng.integers(0, 256, (*leading, 2, 2)), jnp.uint8),
        "speed": jnp.asarray(speed, jnp.float32),
    }


def assert_moments_of(result, batches, weights=None):
    """Checks moments against one pass over all rows."""
    for name, leaf in result.mean.items():
        rows = np.concatenate(
            [np.asarray(x[name], np.float64).reshape(-1, *leaf.shape) for x in batches]
        )
        mean = np.average(rows, axis=0, weights=weights)
        var = np.average((rows - mean) ** 2, axis=0, weights=weights)
        chex.assert_trees_all_close(leaf, mean, rtol=1e-5, atol=1e-6)
        chex.assert_trees_all_close(result.var[name], var, rtol=1e-5, atol=1e-6)
        chex.assert_type([leaf, result.var[name]], jnp.float32)


def counted(result):
    """The exact count."""
    return int(result.blocks) * BLOCK + float(result.rest)


def test_merging_equals_one_pass(variant):
    """PROP-3.1: over the union, however the samples were split."""
    batches = [batch(0), batch(1, scale=20.0, shift=-7.0), batch(2, shift=3.0)]
    result, counts = init(SPEC), []
    for obs in batches:
        result = variant(update)(result, obs)
        counts.append(float(result.count))
        assert all((var >= 0).all() for var in result.var.values())
    assert_moments_of(result, batches)
    assert counts == [20.0, 40.0, 60.0]


def test_any_leading_axes_are_samples():
    """PROP-3.1."""
    observations = batch(3, leading=(6,))
    result = updated(init(SPEC), observations)
    assert_moments_of(result, [observations])
    observations = jax.device_get(observations)
    reshaped = jax.tree.map(lambda x: x.reshape(3, 1, 2, *x.shape[1:]), observations)
    chex.assert_trees_all_equal(updated(init(SPEC), reshaped), result)


@pytest.mark.parametrize("garbage", [1e30, np.nan, np.inf])
def test_rows_without_weight_do_not_matter(garbage):
    """PROP-3.1, with the mask of a rollout's quarantined rows."""
    start = updated(init(SPEC), batch(4))
    observations = jax.device_get(batch(5))
    weight = np.ones((5, 4), np.float32)
    weight[1:3, 2] = 0
    valid = jax.tree.map(lambda x: x[weight > 0], observations)
    speed = np.where(weight[..., None] > 0, observations["speed"], np.float32(garbage))
    masked = {"image": observations["image"], "speed": speed}
    result = updated(start, masked, weight)
    assert_moments_of(result, [batch(4), valid])
    assert counted(result) == 20 + 18


def test_weights_are_shares():
    """PROP-3.1: a weight of 3 counts like three samples."""
    weight = np.random.default_rng(6).random((5, 4)).astype(np.float32)
    result = updated(init(SPEC), batch(7), weight)
    assert_moments_of(result, [batch(7)], weight.reshape(-1))
    chex.assert_trees_all_close(counted(result), weight.sum(), rtol=1e-6)


def test_a_batch_without_weight_changes_nothing(variant):
    """PROP-3.1: the moments stay as they are, bit for bit."""
    for start in (init(SPEC), updated(init(SPEC), batch(8))):
        garbage = jax.tree.map(lambda x: x + (x.dtype == jnp.uint8), batch(9))
        garbage["speed"] = garbage["speed"].at[0].set(jnp.nan)
        result = variant(update)(start, garbage, jnp.zeros((5, 4)))
        chex.assert_trees_all_equal(result, start)


def test_non_finite_observations_with_weight():
    """An error when eager; inside jit, no moments are made of them."""
    observations = batch(10)
    observations["speed"] = observations["speed"].at[0, 0, 0].set(jnp.inf)
    with pytest.raises(ValueError, match="batch: expected finite"):
        update(init(SPEC), observations)
    result = updated(init(SPEC), observations)
    assert (result.mean["speed"] != 0).tolist() == [False, True, True]
    assert (result.var["speed"] != 1).tolist() == [False, True, True]


@pytest.mark.parametrize("amount", [1e20, 1e22, 1e30])
def test_a_component_whose_square_overflows_keeps_its_moments(amount):
    """In the first batch and in later ones; the other components go on."""
    start = updated(init(SPEC), batch(11))
    for before, others in ((init(SPEC), []), (start, [batch(11)])):
        strange = jax.device_get(batch(12))
        strange["speed"] = strange["speed"].copy()
        strange["speed"][2, 1, 0] = amount
        result = updated(before, strange)
        assert result.mean["speed"][0] == before.mean["speed"][0]
        assert result.var["speed"][0] == before.var["speed"][0]
        usual = updated(before, batch(12))
        chex.assert_trees_all_equal(result.mean["image"], usual.mean["image"])
        chex.assert_trees_all_equal(result.var["speed"][1:], usual.var["speed"][1:])
        assert_moments_of(usual, [*others, batch(12)])


def test_constants_are_exact():
    """PROP-3.1: variance 0 and normalised 0, whatever the magnitude and number."""
    result = init(jnp.zeros(()))
    constant = np.full((501, 3), 1234.567, np.float32)
    for _ in range(5):
        result = updated(result, constant)
    assert float(result.mean) == float(constant[0, 0])
    assert float(result.var) == 0.0
    assert not np.asarray(normalized(result, constant)).any()


def test_a_small_deviation_far_from_zero():
    """PROP-3.1: no cancellation of squares."""
    rows = 1e4 + np.random.default_rng(11).normal(size=(4, 250))
    result = init(jnp.zeros(()))
    for row in np.float32(rows):
        result = updated(result, row)
    chex.assert_trees_all_close(result.mean, rows.mean(), rtol=1e-6)
    chex.assert_trees_all_close(result.var, rows.var(), rtol=1e-2)


def test_the_count_never_saturates():
    """PROP-3.1: every sample counts after 10¹⁰ of them, and the share is right."""
    many = dataclasses.replace(
        init(jnp.zeros(())),
        blocks=jnp.array(10**10 // BLOCK),
        rest=jnp.array(10.0**10 % BLOCK),
    )
    assert counted(many) == 10**10
    for samples in range(1, 4):
        many = updated(many, np.ones(1, np.float32))
        assert counted(many) == 10**10 + samples
    full = dataclasses.replace(init(jnp.zeros(())), rest=jnp.array(BLOCK - 1.0))
    full = updated(full, np.full(3, float(BLOCK)))
    assert (int(full.blocks), float(full.rest)) == (1, 2.0)
    chex.assert_trees_all_close(full.mean, 3 * BLOCK / (BLOCK + 2), rtol=1e-6)


def test_moments_follow_whatever_weighs_more_than_can_be_counted():
    """Weights of 3·10¹², such as amounts of money: the count stops, and goes on."""
    result, weight = init(jnp.zeros(())), jnp.full(1000, 3e12, jnp.float32)
    for mean in (0.0, 0.0, 0.0, 0.0, 100.0):
        result = updated(result, jnp.full(1000, mean, jnp.float32), weight)
    chex.assert_trees_all_close(result.mean, 100 * 3 / (2**53 / 1e15 + 3), rtol=1e-3)


def test_normalize_only_reads(variant):
    """PROP-3.3: frozen moments give frozen results, float32 and clipped."""
    frozen = updated(init(SPEC), batch(12, scale=5.0))
    before = jax.tree.map(np.array, frozen)
    x = batch(13, leading=(7,), scale=100.0)
    result = variant(normalize)(frozen, x, jnp.float32(2.0))
    for name, leaf in result.items():
        std = np.sqrt(np.asarray(frozen.var[name], np.float64) + EPS)
        mean = np.asarray(frozen.mean[name], np.float64)
        expected = (np.asarray(x[name], np.float64) - mean) / std
        chex.assert_trees_all_close(leaf, np.clip(expected, -2, 2), rtol=0, atol=1e-5)
        chex.assert_type(leaf, jnp.float32)
    assert np.abs(result["speed"]).max() == 2.0
    chex.assert_trees_all_equal(before, frozen)


def test_normalize_of_an_observation_alone():
    frozen = updated(init(SPEC), batch(14))
    many = jax.device_get(batch(15, leading=(2,)))
    one = normalized(frozen, jax.tree.map(lambda x: x[1], many))
    for name, leaf in jax.device_get(normalized(frozen, many)).items():
        chex.assert_trees_all_close(one[name], leaf[1], rtol=1e-6)


def test_moments_of_nothing_only_clip():
    x = jnp.array([-0.5, 3.0, 99.0])
    chex.assert_trees_all_close(
        normalize(init(x), x), np.array([-0.5, 3.0, 10.0]), rtol=1e-6
    )


def test_update_does_not_retrace():
    """The result has the types of its argument, weak types included."""
    chex.clear_trace_counter()
    run = jax.jit(chex.assert_max_traces(update, n=1))

    state = init(SPEC)
    for seed in range(3):
        state = run(state, batch(seed))


def test_update_rejects_a_batch_of_another_shape():
    with pytest.raises(AssertionError):
        update(init(SPEC), batch(16), jnp.ones((4, 5)))
    wrong = {**batch(17), "speed": jnp.zeros((5, 4, 2))}
    with pytest.raises(AssertionError):
        update(init(SPEC), wrong)


def test_drift_is_in_units_of_the_old_deviation(variant):
    """R-C1."""
    old = dataclasses.replace(
        init({"a": jnp.zeros(2), "b": jnp.zeros(())}),
        mean={"a": jnp.array([0.0, 1.0]), "b": jnp.array(5.0)},
        var={"a": jnp.array([4.0, 1.0]), "b": jnp.array(9.0)},
    )
    new = dataclasses.replace(
        old,
        mean={"a": jnp.array([1.0, 1.0]), "b": jnp.array(2.0)},
        var={"a": jnp.array([1.0, 1.0]), "b": jnp.array(9.0)},
    )
    moved = variant(drift)(old, new)
    assert set(moved) == {
        "debug/vecnormalize_mean_drift",
        "debug/vecnormalize_std_drift",
    }
    mean, std = moved.values()
    chex.assert_trees_all_close(mean, (0.5 + 0.0 + 1.0) / 3, rtol=1e-6)
    chex.assert_trees_all_close(std, (0.5 + 0.0 + 0.0) / 3, rtol=1e-6)
    assert not any(np.asarray(value).any() for value in drift(old, old).values())


@pytest.mark.parametrize("shape", [(5, 1), (5, 4), (), (3, 2)])
def test_observations_have_the_axes_of_their_moments(shape):
    with pytest.raises(AssertionError):
        normalize(init(jnp.zeros(3)), jnp.zeros(shape))
