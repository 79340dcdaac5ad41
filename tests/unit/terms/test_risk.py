"""Terms that care for the worst outcomes, by hand in float64."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minibatches import context, forward, minibatch, targets
from tabular import as_float64

from ppo_jax import Config, critics, terms
from ppo_jax.critics import Quantile
from ppo_jax.envs import TimeLimit
from ppo_jax.envs.trading import RandomWalk, Trading
from ppo_jax.host.metrics.catalogue import summarize
from ppo_jax.normalization.return_scale import identity
from ppo_jax.terms import (
    Costs,
    CVaR,
    CVaRConstraint,
    Predicted,
    PredictedCVaR,
    Returns,
    Rewards,
)

OUTCOME = np.array([[-8.0, 1.0], [-4.0, 2.0], [0.0, 3.0], [4.0, -99.0]])
WEIGHT = np.ones((4, 2), np.float32)
WEIGHT[3, 1] = 0
ROLLOUT = targets(np.zeros((4, 2)), OUTCOME, WEIGHT, unit=2.0)
BEYOND = np.array([[-8.0, 0.0], [-0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
"""Of 7 outcomes the worst two: (R − VaR) / (α unit), VaR = −4 and α unit = ½."""


def test_the_tail_is_that_of_the_outcomes_with_weight():
    """PROP-13.12: what has no weight is beyond nothing."""
    beyond, said = CVaR(alpha=0.25, coef=0.75).prepare((), ROLLOUT)
    assert said["train/cvar_var"] == -4.0
    assert said["train/cvar_empirical"] == -6.0
    chex.assert_trees_all_close(beyond, BEYOND, rtol=1e-6)
    assert said["train/cvar_coef"] == 0.75


def test_of_no_outcome_nothing_is_known():
    """An update without one does not count among those of a phase."""
    term = CVaRConstraint(alpha=0.25, limit=1.0)
    nothing = ROLLOUT._replace(weight=0.0 * WEIGHT)
    _, said = term.prepare(term.init(), nothing)
    _, known = term.prepare(term.init(), ROLLOUT)
    for name in ("empirical", "var", "estimate"):
        assert np.isnan(said[f"train/cvar_{name}"])
    assert said["train/cvar_gap"] == 0 and said["train/cvar_tail_size"] == 0
    names = ("train/cvar_limit", "train/cvar_estimate", "train/cvar_empirical")
    both = {name: np.array([said[name], known[name]]) for name in names}
    phase = summarize(both)
    assert phase["train/cvar_empirical"] == phase["train/cvar_estimate"] == -6.0
    assert phase["train/cvar_violation"] == 7.0


def test_both_ends_are_pulled_in_before_the_tail_is_taken():
    """Whatever is below their quantile is as bad as that, and none is worse."""
    beyond, said = CVaR(alpha=2 / 7, winsor=0.2).prepare((), ROLLOUT)
    lowest = np.quantile(OUTCOME[WEIGHT > 0], 0.2)
    assert said["train/cvar_empirical"] == pytest.approx(lowest)
    chex.assert_trees_all_close(beyond, np.zeros((4, 2)), rtol=0, atol=1e-6)


def test_the_tail_is_a_surrogate_with_a_range_of_its_own():
    """coef · −min(r X, clip(r, 1 ± ε) X), where X is what is beyond."""
    out, beyond = forward(), jnp.asarray(BEYOND[:3], jnp.float32) - 0.5
    term = CVaR(coef=0.75, clip_eps=0.1)
    loss, said = term(out, minibatch(), context(prepared=beyond))
    ratio = np.exp(as_float64(out.log_ratio))
    want = -np.minimum(ratio * beyond, np.clip(ratio, 0.9, 1.1) * beyond)
    chex.assert_trees_all_close(said["train/cvar_loss"], want, rtol=1e-5)
    chex.assert_trees_all_close(loss, 0.75 * want, rtol=1e-5)


def test_a_multiplier_rises_while_the_limit_is_missed():
    """λ ← clip(λ + η (limit − CVaR) / unit, 0, λ_max), and it is told."""
    term = CVaRConstraint(alpha=0.25, limit=-2.0, learning_rate=0.1, max_dual=0.3)
    memory = term.init()
    (beyond, examples), said = term.prepare(memory, ROLLOUT)
    chex.assert_trees_all_close(beyond, BEYOND, rtol=1e-6)
    assert examples == () and said["train/cvar_limit"] == -2.0
    assert said["train/cvar_gap"] == 2.0  # From −6 to −2.
    for want in (0.2, 0.3, 0.3):
        memory = term.update(memory, said)
        assert memory == pytest.approx(want, rel=1e-5)
    assert term.prepare(memory, ROLLOUT)[1]["train/cvar_lambda"] == memory
    low = term.update(memory, {"train/cvar_gap": jnp.float32(-9.0)})
    assert low == 0.0


def test_a_lower_bound_of_a_multiplier_holds_at_once():
    """Of a member that learned under another one, or a run that goes on with it."""
    term, memory = CVaRConstraint(alpha=0.25, max_dual=0.25), jnp.float32(1.0)
    _, said = term.prepare(memory, ROLLOUT)
    assert (said["train/cvar_lambda"], said["train/cvar_lambda_share"]) == (0.25, 1)
    prepared = jnp.asarray(BEYOND[:3], jnp.float32), ()
    above, below = (
        term(forward(), minibatch(), context(jnp.float32(dual), prepared))[0]
        for dual in (1.0, 0.25)
    )
    assert below.any()
    chex.assert_trees_all_equal(above, below)


def test_a_constraint_weighs_the_tail_by_its_multiplier():
    """And what an estimate costs of its own; at first nothing."""
    out = forward(Quantile(4))
    beyond = jnp.asarray(BEYOND[:3], jnp.float32) - 0.5
    term = CVaRConstraint(alpha=0.5, limit=1.0, estimate=Predicted(through=0.5))
    scale, prepared = identity(), (beyond, jnp.full((3, 2), 2.0))
    tail, _ = CVaR(coef=1.0)(out, minibatch(), context(prepared=beyond))
    own, _ = term.estimate(out, context(prepared=prepared[1]), 0.5, 1.0)
    assert own.any()
    for dual in (0.0, 0.25):
        given = context(jnp.float32(dual), prepared, scale=scale)
        loss, said = term(out, minibatch(), given)
        chex.assert_trees_all_close(loss, dual * (tail + own), rtol=1e-5, atol=1e-7)
        assert {"train/cvar_loss", "train/cvar_estimate", "train/cvar_gap"} <= {*said}


def test_a_predicted_tail_is_a_bonus_of_the_worse_critic():
    """Learned by critics alone, told in units of rewards."""
    out = forward(Quantile(4))
    scale = identity().replace(mean=jnp.float32(1.0), std=jnp.float32(3.0))
    loss, said = PredictedCVaR(coef=0.5, alpha=0.25)(
        out, minibatch(), context(scale=scale)
    )
    lowest = np.float64(out.value.outputs).min(axis=-1)
    worse = np.argmin(np.float64(out.value.outputs).mean(axis=-1), axis=-1)
    lowest = np.take_along_axis(lowest, worse[..., None], axis=-1)[..., 0]
    chex.assert_trees_all_close(loss, -0.5 * lowest, rtol=1e-5)
    told = said["train/cvar_predicted"]
    chex.assert_trees_all_close(told, 3 * lowest + 1, rtol=1e-5, atol=1e-5)


def test_members_have_alphas_and_limits_of_their_own():
    members = [CVaRConstraint(a, limit=b) for a, b in ((0.25, -2.0), (0.5, 1.0))]
    stacked = jax.tree.map(lambda *x: np.stack(x), *members)

    def prepared(term):
        return term.prepare(jnp.zeros(()), ROLLOUT)

    together, alone = jax.jit(jax.vmap(prepared))(stacked), jax.jit(prepared)
    for i, term in enumerate(members):
        one = jax.tree.map(lambda x, i=i: x[i], jax.device_get(together))
        chex.assert_trees_all_close(one, alone(term), rtol=1e-6)


@pytest.mark.parametrize("kind", [CVaR, CVaRConstraint])
def test_rewards_are_doubted_where_a_step_does_not_show_its_action(kind):
    """As at closes alone, around which there may be a wrapper."""
    late, early = (
        TimeLimit(Trading(RandomWalk(99, overnight=night), window=9), 4)
        for night in (None, 0.25)
    )
    said = rf"{kind.__name__}\.quantity: Rewards\(\) are those of a step, in which"
    with pytest.warns(UserWarning, match=said):
        Config(late, terms=(terms.Surrogate(), kind(quantity=Rewards())))
    Config(early, terms=(terms.Surrogate(), kind(quantity=Rewards())))
    Config(late, terms=(terms.Surrogate(), kind()))


def test_a_limit_that_no_costs_can_keep_is_doubted():
    """Costs count as minus themselves, so only limits up to 0 say anything."""
    said = r"CVaRConstraint\.limit: Costs\(\) are minus the cost of a step, so 25\.0 is"
    with pytest.warns(UserWarning, match=said):
        Config("CartPole-v1", terms=(terms.Surrogate(), limited(25.0, Costs())))
    for kept in (limited(-0.1, Costs()), limited(25.0, Returns())):
        Config("CartPole-v1", terms=(terms.Surrogate(), kept))


def limited(limit, quantity):
    return CVaRConstraint(limit=limit, quantity=quantity)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: CVaR(alpha=0.0), r"CVaR\.alpha: expected a number in \(0, 1\]"),
        (lambda: CVaR(clip_eps=0.0), r"CVaR\.clip_eps: expected"),
        (lambda: CVaR(winsor=0.5), r"CVaR\.winsor: expected a number in \[0, ½\)"),
        *(
            (lambda kind=kind: kind(alpha=0.1, winsor=0.1), "below alpha = 0.1")
            for kind in (CVaR, CVaRConstraint)
        ),
        (lambda: CVaR(coef=-1.0), r"CVaR\.coef: expected"),
        (lambda: CVaRConstraint(max_dual=-1.0), r"CVaRConstraint\.max_dual: expected"),
        (lambda: CVaRConstraint(learning_rate=-1.0), "learning_rate: expected"),
        (lambda: PredictedCVaR(alpha=2.0), r"PredictedCVaR\.alpha: expected"),
        (
            lambda: CVaRConstraint(quantity=Rewards(), estimate=Predicted()),
            r"CVaRConstraint\.quantity: expected Returns\(\), which critics predict",
        ),
    ],
)
def test_impossible_numbers_are_errors(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_what_is_predicted_needs_a_critic_of_laws_and_is_asked_once():
    predicted = CVaRConstraint(estimate=Predicted())
    first = terms.Surrogate()
    with pytest.raises(ValueError, match=r"Config\.critic: expected a Quantile or"):
        Config("CartPole-v1", terms=(first, predicted))
    critic = critics.Quantile(4)
    Config("CartPole-v1", terms=(first, predicted), critic=critic)
    with pytest.raises(ValueError, match=r"Config\.terms: expected at most one CVaRC"):
        Config("CartPole-v1", terms=(first, predicted, predicted), critic=critic)
