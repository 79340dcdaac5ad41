"""The categorical critic's losses against hand-worked numbers and loops in float64."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.losses import (
    Law,
    cross_entropy_loss,
    evenly_spaced_atoms,
    project,
    shifted_cross_entropy,
    two_hot,
)

ATOMS = evenly_spaced_atoms(5, -1.0, 1.0)
PROBS = jnp.array([0.1, 0.2, 0.4, 0.2, 0.1])


def split(outcomes, probs, atoms):
    """One law's projection, mass by mass, in plain Python."""
    atoms = np.asarray(atoms, np.float64)
    mass = np.zeros(len(atoms))
    for outcome, prob in zip(outcomes, probs, strict=True):
        place = np.clip(outcome, atoms[0], atoms[-1])
        right = min(max(np.searchsorted(atoms, place), 1), len(atoms) - 1)
        share = (place - atoms[right - 1]) / (atoms[right] - atoms[right - 1])
        mass[right] += share * prob
        mass[right - 1] += (1 - share) * prob
    return mass


def random_laws(seed, num_atoms, leading=(3, 4)):
    """Laws beside the atoms, and some beyond them, in float64."""
    rng = np.random.default_rng(seed)
    outcomes = np.sort(rng.normal(size=(*leading, num_atoms)) * 1.5, axis=-1)
    probs = rng.dirichlet(np.ones(num_atoms), size=leading)
    return outcomes, probs


def as_law(outcomes, probs):
    return Law(*(jnp.asarray(np.float32(x)) for x in (outcomes, probs)))


def test_atoms(variant):
    atoms = variant(functools.partial(evenly_spaced_atoms, 51))(-10.0, 10.0)
    chex.assert_trees_all_close(atoms, np.linspace(-10, 10, 51), rtol=1e-7, atol=3e-6)
    chex.assert_type(atoms, jnp.float32)
    with pytest.raises(ValueError, match="num_atoms: expected at least 2"):
        evenly_spaced_atoms(1, -1.0, 1.0)


@pytest.mark.parametrize(
    ("target", "want"),
    [
        (0.1, [0, 0, 0.8, 0.2, 0]),
        (0.99, [0, 0, 0, 0.02, 0.98]),
        (0.5, [0, 0, 0, 1, 0]),
        (-3.0, [1, 0, 0, 0, 0]),
        (7.0, [0, 0, 0, 0, 1]),
    ],
)
def test_two_hot_by_hand(target, want, variant):
    """PROP-10.1."""
    got = variant(two_hot)(jnp.asarray(np.float32(target)), ATOMS)
    chex.assert_trees_all_close(got, np.array(want), rtol=0, atol=2e-6)


@pytest.mark.parametrize("num_atoms", [2, 21, 51, 401])
def test_two_hot_keeps_the_mean_of_targets_within_the_support(num_atoms):
    """PROP-10.2: and the nearer end's of others; every row sums to 1."""
    atoms = evenly_spaced_atoms(num_atoms, -10.0, 20.0)
    target = np.random.default_rng(0).uniform(-15, 25, size=(5, 60))
    got = np.asarray(jax.jit(two_hot)(target, atoms), np.float64)
    chex.assert_shape(got, (5, 60, num_atoms))
    assert got.min() >= 0
    assert ((got > 1e-4).sum(axis=-1) <= 2).all()
    chex.assert_trees_all_close(got.sum(axis=-1), 1.0, rtol=0, atol=1e-6)
    mean = got @ np.linspace(-10, 20, num_atoms)
    chex.assert_trees_all_close(mean, np.clip(target, -10, 20), rtol=0, atol=3e-5)


@pytest.mark.parametrize(
    ("shift", "want", "mean"),
    [
        (0.25, [0.05, 0.15, 0.3, 0.3, 0.2], 0.225),
        (0.5, [0, 0.1, 0.2, 0.4, 0.3], 0.45),
        (-0.3, [0.22, 0.32, 0.28, 0.14, 0.04], -0.27),
        (0.0, [0.1, 0.2, 0.4, 0.2, 0.1], 0.0),
    ],
)
def test_projection_by_hand(shift, want, mean, variant):
    """PROP-10.3: moved beyond the top, mass stays there."""
    got = variant(project)(Law(ATOMS + shift, PROBS), ATOMS)
    chex.assert_trees_all_close(got, np.array(want), rtol=0, atol=1e-6)
    chex.assert_trees_all_close(np.dot(got, ATOMS), mean, rtol=0, atol=1e-6)


@pytest.mark.parametrize("num_atoms", [2, 5, 51])
def test_projection_splits_every_mass(num_atoms):
    """PROP-10.2: against a loop; any number of outcomes, any leading axes."""
    atoms = evenly_spaced_atoms(num_atoms, -2.0, 1.0)
    outcomes, probs = random_laws(num_atoms, 7)
    got = np.asarray(jax.jit(project)(as_law(outcomes, probs), atoms))
    want = [
        [split(outcomes[i, j], probs[i, j], atoms) for j in range(4)] for i in range(3)
    ]
    chex.assert_shape(got, (3, 4, num_atoms))
    chex.assert_trees_all_close(got, np.array(want), rtol=0, atol=3e-6)
    chex.assert_trees_all_close(got.sum(axis=-1), 1.0, rtol=0, atol=1e-6)


def test_projection_is_exact_at_several_hits_at_once():
    got = project(as_law([-1.0, 0.5, 0.5, 1.0, 1.0], PROBS), ATOMS)
    chex.assert_trees_all_close(got, np.array([0.1, 0, 0, 0.6, 0.3]), rtol=0, atol=1e-6)


def test_gradient_of_cross_entropy_by_formula():
    """PROP-10.4: softmax − m."""
    rng = np.random.default_rng(1)
    logits, target = rng.normal(size=(6, 5)) * 2, rng.uniform(-1.5, 1.5, size=6)
    total = jax.grad(lambda x: cross_entropy_loss(x, target, ATOMS).sum())
    got = jax.jit(total)(logits)
    softmax = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    m = np.stack([split([y], [1.0], ATOMS) for y in target])
    chex.assert_trees_all_close(got, softmax - m, rtol=0, atol=1e-5)


@pytest.mark.parametrize("extreme", [[1e4, -1e4, 0, 0, 0], [-1e4] * 4 + [1e4]])
def test_cross_entropy_of_extreme_logits_is_finite(extreme):
    """PROP-10.4."""
    slopes = jax.jit(jax.value_and_grad(cross_entropy_loss))
    value, slope = slopes(np.float32(extreme), -0.4, ATOMS)
    chex.assert_tree_all_finite(value)
    chex.assert_tree_all_finite(slope)
    assert value > 1e3


@pytest.mark.parametrize("num_atoms", [2, 21, 51])
def test_a_uniform_prediction_costs_ln_n(num_atoms, variant):
    """PROP-10.5: whatever the target; divided by ln N it is 1."""
    atoms = evenly_spaced_atoms(num_atoms, -1.0, 1.0)
    target = jnp.asarray(np.linspace(-2, 2, 7, dtype=np.float32))
    logits = jnp.asarray(np.full((7, num_atoms), 3, np.float32))
    got = np.asarray(variant(cross_entropy_loss)(logits, target, atoms))
    chex.assert_trees_all_close(got / np.log(num_atoms), 1.0, rtol=1e-6)


def test_gradient_flows_through_the_projection():
    """PROP-10.6: to probabilities and to the shift, as finite differences say."""
    direction = np.array([0.3, -0.1, 0.5, 0.2, -0.7])

    def score(shift, probs):
        return project(Law(ATOMS + shift, probs), ATOMS) @ jnp.asarray(direction)

    by_shift, by_probs = jax.jit(jax.grad(score, argnums=(0, 1)))(0.2, PROBS)

    def oracle(shift, probs):
        return split(np.linspace(-1, 1, 5) + shift, probs, ATOMS) @ direction

    probs, step = np.array([0.1, 0.2, 0.4, 0.2, 0.1]), 1e-6
    slope = (oracle(0.2 + step, probs) - oracle(0.2 - step, probs)) / (2 * step)
    slopes = [
        (oracle(0.2, probs + step * unit) - oracle(0.2, probs - step * unit))
        / (2 * step)
        for unit in np.eye(5)
    ]
    assert abs(slope) > 0.1
    chex.assert_trees_all_close(by_shift, slope, rtol=1e-4)
    chex.assert_trees_all_close(by_probs, np.array(slopes), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("num_atoms", [2, 5, 51])
def test_the_lazy_loss_is_that_of_the_projection(num_atoms, variant):
    """PROP-10.2, PROP-10.6: targets inside, outside and on atoms."""
    atoms = evenly_spaced_atoms(num_atoms, -2.0, 1.0)
    outcomes, probs = random_laws(2, 9)
    target = np.random.default_rng(3).uniform(-3, 2, size=(3, 4))
    target[0] = [-2.0, 1.0, float(atoms[1]), -9.0]

    def loss(outcomes, probs, target):
        return shifted_cross_entropy(Law(outcomes, probs), target, atoms)

    law = as_law(outcomes, probs)
    target = np.float32(target)
    got = np.asarray(variant(loss)(law.outcomes, law.probs, jnp.asarray(target)))
    for index in np.ndindex(3, 4):
        law_mass = np.maximum(split(outcomes[index], probs[index], atoms), 1e-8)
        want = -split([target[index]], [1.0], atoms) @ np.log(law_mass)
        chex.assert_trees_all_close(got[index], want, rtol=1e-4, atol=1e-4)


def test_the_lazy_loss_has_the_gradient_of_the_projection():
    """PROP-10.6."""
    law = as_law(*random_laws(4, 9))
    target = np.float32(np.linspace(-0.9, 0.95, 12).reshape(3, 4))

    def dense(law):
        log_mass = jnp.log(jnp.maximum(project(law, ATOMS), 1e-8))
        return -jnp.sum(two_hot(target, ATOMS) * log_mass)

    def lazy(law):
        return shifted_cross_entropy(law, target, ATOMS).sum()

    slopes = [jax.jit(jax.grad(loss))(law) for loss in (lazy, dense)]
    for got, want in zip(*slopes, strict=True):
        assert np.abs(want).sum() > 1
        chex.assert_trees_all_close(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("loss", ["cross_entropy", "shifted"])
def test_targets_get_no_gradient_and_their_shape_is_checked(loss):
    def value(target):
        if loss == "shifted":
            return shifted_cross_entropy(Law(ATOMS + 0.1, PROBS), target, ATOMS)
        return cross_entropy_loss(jnp.log(PROBS), target, ATOMS)

    assert jax.jit(jax.grad(value))(0.3) == 0
    with pytest.raises(ValueError, match=r"target: expected the shape .., one per row"):
        value(jnp.zeros(1))


@pytest.mark.parametrize("target", [np.nan, np.inf, -np.inf])
def test_a_target_that_is_not_finite_is_seen(target):
    """It would otherwise count as an end of the support."""
    target = np.float32([target, 0.3])
    logits = np.zeros((2, 5), np.float32)
    law = as_law(np.tile(ATOMS, (2, 1)), np.full((2, 5), 0.2))
    for loss in (
        jax.jit(cross_entropy_loss)(logits, target, ATOMS),
        jax.jit(shifted_cross_entropy)(law, target, ATOMS),
    ):
        assert np.isnan(loss).tolist() == [True, False]


def test_low_precision_logits_give_a_float32_loss():
    logits = jnp.zeros((2, 51), jnp.bfloat16)
    atoms = evenly_spaced_atoms(51, -10.0, 10.0)
    got = cross_entropy_loss(logits, jnp.zeros(2), atoms)
    chex.assert_type(got, jnp.float32)
    chex.assert_trees_all_close(got, np.log(51), rtol=1e-6)


def test_atoms_without_probability_cost_nothing_beside_the_target():
    """−ln ½ at an end of two atoms that are left; −∞ is no number times 0."""
    atoms, logits = np.linspace(-1.0, 1.0, 3), np.float32([-np.inf, 0.0, 0.0])
    loss = jax.jit(jax.value_and_grad(cross_entropy_loss))
    cost, slope = loss(logits, 1.0, atoms)
    chex.assert_trees_all_close(cost, np.log(2), rtol=1e-6)
    chex.assert_trees_all_close(slope, np.array([0.0, 0.5, -0.5]), rtol=1e-6)
    assert loss(logits, -1.0, atoms)[0] == np.inf
