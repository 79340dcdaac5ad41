"""Laws, and clipping their mean and spread, against hand-worked numbers."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.losses import Law, clip_mean, clip_mean_and_std

OLD, NEW = jnp.array([-1.0, 0.0, 1.0]), jnp.array([0.0, 2.0, 4.0])


def equal_masses(outcomes):
    return Law(outcomes, jnp.full_like(outcomes, 1 / outcomes.shape[-1]))


def random_pair(seed, shape=(50, 8)):
    """A new and an old law with unequal masses."""
    rng = np.random.default_rng(seed)
    laws = []
    for _ in range(2):
        outcomes = jnp.asarray(rng.normal(size=shape) * 3, jnp.float32)
        probs = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
        laws.append(Law(outcomes, jnp.asarray(probs, jnp.float32)))
    return laws


def moments(outcomes, probs):
    """Mean and deviation in float64."""
    outcomes, probs = np.asarray(outcomes, np.float64), np.asarray(probs, np.float64)
    mean = (probs * outcomes).sum(axis=-1)
    return mean, np.sqrt((probs * (outcomes - mean[..., None]) ** 2).sum(axis=-1))


def test_mean_and_deviation():
    law, _ = random_pair(0)
    mean, std = moments(*law)
    chex.assert_trees_all_close(law.mean(), mean, rtol=1e-4, atol=1e-5)
    chex.assert_trees_all_close(law.std(), std, rtol=1e-4)


def test_clip_mean_by_hand():
    """PROP-12.1, R-E12."""
    got = clip_mean(equal_masses(NEW), equal_masses(OLD), 0.5)
    chex.assert_trees_all_close(got, np.array([-1.5, 0.5, 2.5]), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("factor", "want"),
    [(1.0, [-0.5, 0.5, 1.5]), (1.5, [-1, 0.5, 2]), (2.0, [-1.5, 0.5, 2.5])],
)
def test_clip_mean_and_std_by_hand(factor, want):
    """PROP-12.1."""
    got = clip_mean_and_std(equal_masses(NEW), equal_masses(OLD), 0.5, factor)
    chex.assert_trees_all_close(got, np.array(want), rtol=0, atol=1e-6)


def test_an_unmoved_law_and_a_wide_range_change_no_bit(variant):
    """PROP-12.2."""
    new, old = random_pair(1)
    chex.assert_trees_all_equal(variant(clip_mean)(new, new, 0.1), new.outcomes)
    chex.assert_trees_all_close(
        variant(clip_mean_and_std)(new, new, 0.1, 1.0), new.outcomes, rtol=0, atol=1e-5
    )
    chex.assert_trees_all_equal(
        variant(clip_mean_and_std)(new, old, jnp.inf, jnp.inf), new.outcomes
    )


def test_the_mean_and_the_deviation_stay_in_range():
    """PROP-12.3, R-E12: and a shift alone keeps every difference."""
    new, old = random_pair(2)
    shifted, narrowed = (
        clip_mean(new, old, 0.25),
        clip_mean_and_std(new, old, 0.25, 1.2),
    )
    old_mean, old_std = moments(*old)
    for outcomes in (shifted, narrowed):
        mean, _ = moments(outcomes, new.probs)
        assert np.abs(mean - old_mean).max() <= 0.25 + 1e-5
    chex.assert_trees_all_close(
        np.diff(shifted, axis=-1), np.diff(new.outcomes, axis=-1), rtol=0, atol=1e-5
    )
    _, std = moments(narrowed, new.probs)
    assert (std <= 1.2 * old_std + 1e-4).all()
    assert (std < 1.2 * old_std - 0.01).any()  # Never widened.


def test_clip_mean_leaves_the_spread_free():
    """R-D13: what `clip_mean_and_std` is for."""
    wide = clip_mean(equal_masses(100.0 * NEW), equal_masses(OLD), 0.5)
    chex.assert_trees_all_close(np.ptp(wide), 400.0, rtol=1e-6)


def test_a_law_of_one_outcome_has_a_finite_gradient():
    """Its deviation is 0, where a square root has no slope."""

    @jax.jit
    @jax.grad
    def gradient(outcomes):
        new, old = equal_masses(outcomes), equal_masses(OLD)
        return clip_mean_and_std(new, old, 0.5).sum()

    chex.assert_tree_all_finite(gradient(np.full(3, np.float32(2.0))))


def test_leading_axes_must_agree():
    new, old = random_pair(3)
    with pytest.raises(ValueError, match=r"old: .* the leading axes of `new`, got"):
        clip_mean(new, jax.tree.map(lambda x: x[:1], old), 0.5)
