"""Kinds of critic behind one interface: clipping, twins, risk, and what they learn."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from ppo_jax import losses
from ppo_jax.critics import (
    Categorical,
    LinearTail,
    MeanAndVariance,
    MeanOnly,
    PerQuantile,
    Quantile,
    Scalar,
    ValueDist,
    pessimistic,
    pessimistic_cvar,
)

CLIPPING = [
    Scalar(clip=MeanOnly()),
    Quantile(5, clip=PerQuantile()),
    Quantile(5, clip=MeanOnly()),
    Quantile(5, clip=MeanAndVariance()),
    Categorical(7, -4.0, 4.0, clip=MeanOnly()),
    Categorical(7, -4.0, 4.0, clip=MeanAndVariance()),
]
KINDS = [Scalar(), Quantile(5), Categorical(7, -4.0, 4.0)]


def name(critic):
    clip = "" if critic.clip is None else f"-{type(critic.clip).__name__}"
    return type(critic).__name__ + clip


def predictions(critic, seed, leading=(3, 4, 2)):
    rng = np.random.default_rng(seed)
    outputs = rng.normal(size=(*leading, critic.num_outputs)) * 2
    return ValueDist(jnp.asarray(outputs, jnp.float32), critic)


def targets(seed=9, leading=(3, 4)):
    return jnp.asarray(
        np.random.default_rng(seed).normal(size=leading) * 2, jnp.float32
    )


def clipped_loss(value, old, target, eps):
    """As PPO uses it, `[..., C]`."""
    return jnp.maximum(value.loss(target), value.clip(old, eps).loss(target))


clipping = pytest.mark.parametrize("critic", CLIPPING, ids=name)
kinds = pytest.mark.parametrize("critic", KINDS, ids=name)


@clipping
def test_shapes_lead_with_the_batch(critic, variant):
    """Every kind alike: clipped or not, with any leading axes."""

    def summary(outputs, old, target):
        value, old = ValueDist(outputs, critic), ValueDist(old, critic)
        moved = value.clip(old, 0.3)
        leads = {leaf.shape[:-1] for leaf in jax.tree.leaves(moved.outputs)}
        assert leads == {(3, 4, 2)}
        return [
            f(x)
            for x in (value, moved)
            for f in (
                lambda x: x.mean(),
                lambda x: x.cvar(0.2),
                lambda x: x.loss(target),
            )
        ]

    got = variant(summary)(
        predictions(critic, 0).outputs, predictions(critic, 1).outputs, targets()
    )
    for x in got:
        chex.assert_shape(x, (3, 4, 2))
        chex.assert_type(x, jnp.float32)
        chex.assert_tree_all_finite(x)


@clipping
def test_clips_says_whether_old_predictions_are_needed(critic):
    """Absent clipping is the identity."""
    value = predictions(critic, 0)
    assert value.clips
    off = dataclasses.replace(critic, clip=None)
    value = dataclasses.replace(value, critic=off)
    assert not value.clips
    assert value.clip(predictions(off, 1), 0.1) is value


@clipping
def test_an_unmoved_prediction_and_a_wide_range_change_no_loss(critic):
    """PROP-12.2, PROP-12.8."""
    value, old, target = predictions(critic, 0), predictions(critic, 1), targets()
    loss = value.loss(target)
    chex.assert_trees_all_close(
        clipped_loss(value, value, target, 0.1), loss, rtol=1e-4, atol=1e-5
    )
    if not isinstance(critic.clip, MeanAndVariance):
        chex.assert_trees_all_close(
            value.clip(old, 1e6).loss(target), loss, rtol=1e-4, atol=1e-5
        )


@clipping
def test_the_mean_stays_within_range(critic):
    """PROP-12.3, PROP-12.8: but for what the ends of a support hold back."""
    value, old = predictions(critic, 2), predictions(critic, 3)
    if isinstance(critic, Categorical):  # Laws that a move keeps within the support.
        places = jnp.linspace(-1.0, 1.0, 7)
        bumps = [-8.0 * (places - x) ** 2 for x in (-0.25, 0.35)]
        value, old = (ValueDist(x[None], critic) for x in bumps)
    assert jnp.abs(value.mean() - old.mean()).max() > 0.5
    moved = value.clip(old, 0.3).mean() - old.mean()
    assert (jnp.abs(moved) < 0.3 + 2e-2).all()
    assert jnp.abs(moved).max() > 0.27


@pytest.mark.parametrize(
    ("clip", "want"),
    [
        (PerQuantile(), [-0.5, 0.5, 1.5]),
        (MeanOnly(), [-1.5, 0.5, 2.5]),
        (MeanAndVariance(1.0), [-0.5, 0.5, 1.5]),
        (MeanAndVariance(1.5), [-1.0, 0.5, 2.0]),
        (MeanAndVariance(2.0), [-1.5, 0.5, 2.5]),
    ],
)
def test_clipped_quantiles_by_hand(clip, want):
    """PROP-12.1, R-D13: the ways of clipping, of which one frees the variance."""
    critic = Quantile(3, clip=clip)
    new = ValueDist(jnp.array([[0.0, 2.0, 4.0]]), critic)
    old = ValueDist(jnp.array([[-1.0, 0.0, 1.0]]), critic)
    chex.assert_trees_all_close(
        new.clip(old, 0.5).outputs, np.array([want]), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    ("clip", "want"), [(PerQuantile(), 0.7778), (MeanOnly(), 0.5903)]
)
def test_clipped_quantile_losses_by_hand(clip, want):
    """PROP-12.1, R-E2: the target 3 is far outside the range and is not moved."""
    critic = Quantile(3, clip=clip)
    new = ValueDist(jnp.array([[0.0, 2.0, 4.0]]), critic)
    old = ValueDist(jnp.array([[-1.0, 0.0, 1.0]]), critic)
    chex.assert_trees_all_close(new.loss(jnp.array(3.0)), np.array([0.25]), rtol=1e-6)
    got = clipped_loss(new, old, jnp.array(3.0), 0.5)
    chex.assert_trees_all_close(got, np.array([want]), rtol=0, atol=5e-5)


def scalars(values):
    """Predictions with a loss ½ v² against 0, `[..., C]`."""
    return ValueDist(jnp.asarray(values)[..., None], Scalar(clip=MeanOnly()))


def test_the_worse_loss_is_taken_per_example():
    """PROP-12.4: U = (1, 5), C = (4, 2); the mean of maxima, not its reverse."""
    new = scalars(np.sqrt([[2.0], [10.0]]))
    old = scalars(np.sqrt([[8.0], [4.0]]) + np.array([[0.5], [-0.5]]))
    zero = jnp.zeros(2)
    chex.assert_trees_all_close(new.loss(zero)[:, 0], np.array([1, 5]), rtol=1e-5)
    chex.assert_trees_all_close(
        new.clip(old, 0.5).loss(zero)[:, 0], np.array([4, 2]), rtol=1e-5
    )
    got = clipped_loss(new, old, zero, 0.5).mean()
    chex.assert_trees_all_close(got, 4.5, rtol=1e-5)


def test_the_worse_loss_is_taken_per_critic():
    """PROP-12.5: (U, C) = (10, 5) and (5, 10) give 10 and not 7.5."""
    new = scalars(np.sqrt([20.0, 10.0]))
    old = scalars(np.sqrt([10.0, 20.0]) + np.array([-0.5, 0.5]))
    zero = jnp.zeros(())
    chex.assert_trees_all_close(new.loss(zero), np.array([10, 5]), rtol=1e-5)
    chex.assert_trees_all_close(
        new.clip(old, 0.5).loss(zero), np.array([5, 10]), rtol=1e-5
    )
    chex.assert_trees_all_close(clipped_loss(new, old, zero, 0.5).mean(), 10, rtol=1e-5)


@clipping
def test_critics_are_clipped_against_their_own_past(critic):
    """PROP-12.6, PROP-11.2, X6: the other one's old and new ones do not matter."""
    value, old, target = predictions(critic, 4), predictions(critic, 5), targets()

    def first_loss(new, old):
        new, old = ValueDist(new, critic), ValueDist(old, critic)
        return clipped_loss(new, old, target, 0.2)[..., 0].sum()

    for gradient in jax.grad(first_loss, argnums=(0, 1))(value.outputs, old.outputs):
        assert jnp.abs(gradient[..., 0, :]).max() > 0
        chex.assert_trees_all_equal(gradient[..., 1, :], 0.0)
    other = old.outputs.at[..., 1, :].set(100.0)
    assert first_loss(value.outputs, other) == first_loss(value.outputs, old.outputs)


@pytest.mark.parametrize("critic", CLIPPING[:4], ids=name)
def test_clipping_in_raw_or_in_scaled_units_is_the_same(critic):
    """PROP-12.7: ε σ there is ε here."""
    value, old, std, mean = predictions(critic, 6), predictions(critic, 7), 40.0, -300.0
    raw = ValueDist(value.outputs * std + mean, critic)
    raw_old = ValueDist(old.outputs * std + mean, critic)
    chex.assert_trees_all_close(
        (raw.clip(raw_old, 0.3 * std).outputs - mean) / std,
        value.clip(old, 0.3).outputs,
        rtol=0,
        atol=1e-4,
    )


def test_clipped_atoms_by_hand():
    """PROP-12.8: a shift of +.25 in shares, whatever the number of rows."""
    probs = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    critic = Categorical(5, -1.0, 1.0, clip=MeanOnly())
    new = ValueDist(jnp.log(jnp.tile(jnp.asarray(probs), (3, 1, 1))), critic)
    old = ValueDist(jnp.tile(jnp.array([-50.0, -50, -50, 0, -50]), (3, 1, 1)), critic)
    moved = new.clip(old, 0.25)  # From 0 to the old mean ½ less ¼.
    law = critic.law(new.outputs)
    chex.assert_trees_all_close(law.probs[0, 0], probs, rtol=1e-5)
    want = np.array([0.05, 0.15, 0.3, 0.3, 0.2])
    got = losses.project(moved.outputs, critic.atoms)
    chex.assert_trees_all_close(got, np.tile(want, (3, 1, 1)), rtol=0, atol=1e-5)
    chex.assert_trees_all_close(got.sum(axis=-1), 1.0, rtol=0, atol=1e-6)
    chex.assert_trees_all_close(moved.mean(), 0.225, rtol=0, atol=1e-5)
    targets = jnp.array([-1.0, 0.5, 0.75])
    loss = -np.log([0.05, 0.3, np.sqrt(0.3 * 0.2)])
    chex.assert_trees_all_close(moved.loss(targets)[:, 0], loss, rtol=1e-4)
    chex.assert_trees_all_close(moved.cvar(0.2), -0.5, rtol=0, atol=1e-5)


def test_narrowed_atoms_by_hand():
    """PROP-12.8: deviations ×½ about the clipped mean where σ may only double."""
    critic = Categorical(5, -1.0, 1.0, clip=MeanAndVariance(1.0))
    wide = jnp.log(jnp.array([0.5, 1e-9, 1e-9, 1e-9, 0.5]))
    narrow = jnp.log(jnp.array([1e-9, 0.5, 1e-9, 0.5, 1e-9]))
    moved = ValueDist(wide[None], critic).clip(ValueDist(narrow[None], critic), 0.1)
    got = losses.project(moved.outputs, critic.atoms)
    chex.assert_trees_all_close(got, np.array([[0, 0.5, 0, 0.5, 0]]), rtol=0, atol=1e-4)


@pytest.mark.parametrize("critic", CLIPPING, ids=name)
def test_targets_outside_the_range_are_told_apart(critic):
    """R-D4, R-D16: in both losses; only a support has ends."""
    value, old = predictions(critic, 8), predictions(critic, 8)
    moved = value.clip(old, 0.01)
    near, far = jnp.full((3, 4), 2.5), jnp.full((3, 4), 3.9)
    for prediction in (value, moved):
        difference = prediction.loss(near) - prediction.loss(far)
        assert jnp.abs(difference).min() > 1e-3


def test_quantiles_at_the_bound_get_no_gradient():
    """PROP-12.9: where the clipped loss wins; the others keep theirs."""
    critic = Quantile(3, clip=PerQuantile())
    old = ValueDist(jnp.array([[-1.0, 0.0, 1.0]]), critic)

    def loss(outputs):
        return clipped_loss(ValueDist(outputs, critic), old, jnp.array(3.0), 0.5)[0]

    outputs = jnp.array([[-0.8, 2.0, 4.0]])
    assert loss(outputs) > ValueDist(outputs, critic).loss(jnp.array(3.0))[0]
    gradient = jax.grad(loss)(outputs)
    assert gradient[0, 0] != 0
    chex.assert_trees_all_equal(gradient[0, 1:], 0.0)


@kinds
def test_a_state_is_worth_what_the_worse_critic_says(critic):
    """PROP-11.1: of means; and what the only one says if there is one."""
    twins = predictions(critic, 10)
    worth = pessimistic(twins)
    chex.assert_shape(worth, (3, 4))
    assert (worth[..., None] <= twins.mean()).all()
    assert (worth[..., None] == twins.mean()).any(axis=-1).all()
    one = ValueDist(twins.outputs[..., :1, :], critic)
    chex.assert_trees_all_equal(pessimistic(one), one.mean()[..., 0])


@kinds
def test_critics_learn_apart(critic):
    """PROP-11.2: the other one's outputs do not change a critic's gradient."""
    twins, target = predictions(critic, 11), targets()

    def gradient(outputs):
        return jax.grad(
            lambda x: ValueDist(x, critic).loss(target).mean(axis=-1).sum()
        )(outputs)

    before = gradient(twins.outputs)
    after = gradient(
        twins.outputs.at[..., 1, :].add(3.0 * jnp.arange(critic.num_outputs) + 1)
    )
    chex.assert_trees_all_equal(before[..., 0, :], after[..., 0, :])
    assert (before[..., 1, :] != after[..., 1, :]).any()


def test_the_tail_is_that_of_the_worse_critic():
    twins = ValueDist(jnp.array([[0.0, 9.0], [3.0, 4.0]]), Quantile(2))
    assert pessimistic(twins) == 3.5
    assert pessimistic_cvar(twins, 0.5) == 3.0


@kinds
def test_alpha_is_checked_and_may_be_traced(critic):
    """A whole frontier of α in one program."""
    value = predictions(critic, 12)
    curve = jax.jit(jax.vmap(value.cvar))(jnp.array([0.05, 0.5, 1.0]))
    assert (jnp.diff(curve, axis=0) >= -1e-5).all()
    chex.assert_trees_all_close(curve[-1], value.mean(), rtol=0, atol=1e-5)
    if not isinstance(critic, Scalar):
        with pytest.raises(ValueError, match="alpha"):
            value.cvar(0.0)


def test_the_rule_of_a_tail_is_a_component():
    quantiles = jnp.arange(4.0)
    step, linear = (
        ValueDist(quantiles[None], Quantile(4, tail=tail))
        for tail in (Quantile().tail, LinearTail())
    )
    chex.assert_trees_all_close(step.cvar(0.5), np.array([0.5]), rtol=1e-6)
    tail = linear.cvar(0.375)  # Of −½ to 1.
    chex.assert_trees_all_close(tail, np.array([0.25]), rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Quantile(0), ValueError, "num_quantiles"),
        (lambda: Quantile(kappa=0.0), ValueError, "kappa"),
        (lambda: Categorical(1), ValueError, "num_atoms: expected at least 2, got 1"),
        (lambda: Categorical(v_min=2, v_max=2), ValueError, "more than v_min = 2.0"),
        (lambda: Categorical(v_max=float("inf")), ValueError, "v_max"),
        (lambda: Categorical(clip=PerQuantile()), TypeError, "Categorical.clip"),
        (lambda: Scalar(clip=PerQuantile()), TypeError, "Scalar.clip"),
        (lambda: MeanAndVariance(0.5), ValueError, "factor: expected a number ≥ 1"),
    ],
)
def test_impossible_critics_are_construction_errors(make, error, message):
    """Among them a way of clipping that a kind does not have."""
    with pytest.raises(error, match=message):
        make()


def test_numbers_of_a_critic_may_differ_over_a_population():
    """The support and the growth of the deviation, in one program."""
    members = [
        Categorical(7, -4.0, top, clip=MeanAndVariance(factor))
        for top, factor in ((4.0, 1.0), (6.0, 3.0))
    ]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *members)
    new, old = (predictions(members[0], seed).outputs for seed in (13, 14))

    def loss(critic):
        value = ValueDist(new, critic)
        return clipped_loss(value, ValueDist(old, critic), targets(), 0.1)

    both = jax.jit(jax.vmap(loss))(stacked)
    for got, critic in zip(both, members, strict=True):
        chex.assert_trees_all_close(got, loss(critic), rtol=1e-4, atol=1e-4)


LEVELS = (np.arange(21) + 0.5) / 21
LOC = np.array([-2.0, 0.0, 1.0, 3.0])
SPREAD = np.array([0.5, 1.0, 1.5, 2.0])


def learned(critic):
    """Outputs `[4, 1, N]` after regression on samples of N(LOC, SPREAD²)."""
    steps = 1500
    optimizer = optax.adam(optax.cosine_decay_schedule(0.1, steps))
    loc, spread = jnp.asarray(LOC, jnp.float32), jnp.asarray(SPREAD, jnp.float32)

    def loss(outputs, key):
        noise = jax.random.normal(key, (256, 4))
        rows = jnp.broadcast_to(outputs[None], (256, *outputs.shape))
        return ValueDist(rows, critic).loss(loc[None] + spread[None] * noise).mean()

    def step(state, key):
        outputs, opt_state = state
        updates, opt_state = optimizer.update(jax.grad(loss)(outputs, key), opt_state)
        return (optax.apply_updates(outputs, updates), opt_state), None

    @jax.jit
    def train(key):
        outputs = jnp.zeros((4, 1, critic.num_outputs))
        keys = jax.random.split(key, steps)
        return jax.lax.scan(step, (outputs, optimizer.init(outputs)), keys)[0][0]

    return ValueDist(train(jax.random.key(0)), critic)


def test_learned_quantiles_are_those_of_the_returns():
    """Of a different spread in every state; κ is small against all of them."""
    value = learned(Quantile(21, kappa=0.02))
    exact = LOC[:, None] + SPREAD[:, None] * stats.norm.ppf(LEVELS)
    error = np.abs(np.asarray(value.outputs)[:, 0] - exact) / SPREAD[:, None]
    assert error.max() < 0.15
    chex.assert_trees_all_close(value.mean()[:, 0], LOC, rtol=0, atol=0.15)


def test_learned_probabilities_are_those_of_the_returns():
    """The distribution function, and its inverse at the same 21 levels."""
    critic = Categorical(81, -10.0, 10.0)
    value = learned(critic)
    atoms = np.linspace(-10, 10, 81)
    probs = np.asarray(critic.law(value.outputs).probs, np.float64)[:, 0]
    edges = atoms + 0.125
    for loc, spread, law in zip(LOC, SPREAD, probs, strict=True):
        exact = stats.norm.cdf(edges, loc, spread)
        assert np.abs(np.cumsum(law) - exact).max() < 0.03
        quantiles = np.interp(LEVELS, np.cumsum(law), edges)
        error = np.abs(quantiles - loc - spread * stats.norm.ppf(LEVELS))
        assert error.max() < 0.15 * spread
