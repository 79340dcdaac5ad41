"""Sizes, directions, balls and samples, against flat float64 vectors."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from ppo_jax.attacks.norms import L2, LInf, Norm

NORMS = {"LInf": (LInf(), np.inf), "L2": (L2(), 2)}
each_norm = pytest.mark.parametrize(("norm", "order"), NORMS.values(), ids=NORMS)


def perturbation(scale=1.0):
    """Samples `[4, 2]` of two leaves, and the same as flat vectors."""
    rng = np.random.default_rng(0)
    leaves = [rng.normal(size=(4, 2, 3)), rng.normal(size=(4, 2))]
    delta = [jnp.asarray(scale * x, jnp.float32) for x in leaves]
    return delta, flat(delta)


def flat(delta):
    return np.concatenate(
        [np.asarray(x, np.float64).reshape(4, 2, -1) for x in delta], axis=-1
    )


@each_norm
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_size_is_that_of_the_flat_vector(variant, norm, order, scale):
    """Squares neither overflow nor vanish."""
    delta, vectors = perturbation(scale)
    got = variant(lambda delta: norm.size(delta, 2))(delta)
    want = np.linalg.norm(vectors, ord=order, axis=-1)
    chex.assert_trees_all_close(got, want, rtol=1e-5)


@each_norm
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e37])
def test_the_steepest_direction_has_size_one(variant, norm, order, scale):
    """No other one of that size gains more on the linear function."""
    delta, vectors = perturbation(scale)
    got = flat(variant(lambda delta: norm.steepest(delta, 2))(delta))
    chex.assert_trees_all_close(np.linalg.norm(got, ord=order, axis=-1), 1.0, rtol=1e-5)
    dual = np.linalg.norm(vectors, ord=1 if order == np.inf else 2, axis=-1)
    chex.assert_trees_all_close((got * vectors).sum(axis=-1), dual, rtol=1e-5)
    for leaf in norm.steepest([jnp.zeros((4, 2, 3))], 2):
        chex.assert_trees_all_equal(leaf, 0.0)


@each_norm
def test_projection_moves_only_what_is_outside(variant, norm, order):
    """To the nearest point; twice is once; into a ball of no size too."""
    delta, vectors = perturbation()
    size = np.linalg.norm(vectors, ord=order, axis=-1, keepdims=True)
    eps = float(np.median(size))
    project = variant(lambda delta, eps: norm.project(delta, eps, 2))
    got = flat(project(delta, eps))
    want = np.clip(vectors, -eps, eps)
    if order == 2:
        want = vectors * np.minimum(1.0, eps / size)
    chex.assert_trees_all_close(got, want, rtol=1e-6)
    inside = (size <= eps)[..., 0]
    assert 0 < inside.sum() < inside.size
    chex.assert_trees_all_equal(got[inside], vectors[inside])
    assert (np.linalg.norm(got, ord=order, axis=-1) <= eps * (1 + 1e-6)).all()
    again = project(project(delta, eps), eps)
    chex.assert_trees_all_close(flat(again), got, rtol=1e-6)
    chex.assert_trees_all_equal(flat(project(delta, 0.0)), 0.0)
    zeros = jax.tree.map(jnp.zeros_like, delta)
    chex.assert_trees_all_equal(flat(project(zeros, 0.0)), 0.0)


def test_samples_of_a_box_are_uniform(key):
    like = [jnp.zeros((2_000, 2)), jnp.zeros((2_000, 1))]
    drawn = np.concatenate(LInf().sample(key, like, 1), axis=1)
    for column in drawn.T:
        assert stats.kstest(column, stats.uniform(-1, 2).cdf).pvalue > 0.01
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.1


def test_samples_of_a_sphere_have_a_uniform_radius(key):
    """And every direction is as likely."""
    like = [jnp.zeros((4_000, 1)), jnp.zeros((4_000, 1))]
    drawn = np.concatenate(L2().sample(key, like, 1), axis=1)
    radius = np.linalg.norm(drawn, axis=1)
    assert stats.kstest(radius, stats.uniform(0, 1).cdf).pvalue > 0.01
    angle = np.arctan2(*drawn.T)
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 0.01


def test_a_norm_has_to_say_what_it_does(key):
    delta = [jnp.zeros((2, 2))]
    for call in (
        lambda: Norm().size(delta, 1),
        lambda: Norm().steepest(delta, 1),
        lambda: Norm().project(delta, 0.1, 1),
        lambda: Norm().sample(key, delta, 1),
    ):
        with pytest.raises(NotImplementedError):
            call()
