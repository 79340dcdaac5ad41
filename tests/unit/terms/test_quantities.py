"""Outcomes of steps, whose worst are a tail, by hand in float64."""

import chex
import numpy as np
import pytest
from minibatches import targets

from ppo_jax.terms import Costs, CVaR, Quantity, Returns, Rewards

OUTCOME = np.array([[-8.0, 1.0], [-4.0, 2.0], [0.0, 3.0], [4.0, -99.0]])
WEIGHT = np.ones((4, 2), np.float32)
WEIGHT[3, 1] = 0


def test_outcomes_are_returns_or_rewards():
    rollout = targets(-OUTCOME, OUTCOME, WEIGHT)
    for quantity, worst in ((Returns(), -8.0), (Rewards(), -4.0)):
        _, said = CVaR(alpha=1 / 7, quantity=quantity).prepare((), rollout)
        assert said["train/cvar_empirical"] == pytest.approx(worst, rel=1e-5)
    assert Returns.predicted and not Rewards.predicted
    with pytest.raises(NotImplementedError, match=r"Quantity\.__call__: missing"):
        Quantity()(rollout)


def test_outcomes_are_what_environments_say_it_costs():
    """The dearest are the worst of those that are finite; the others are left out."""
    cost = np.array([[1.0, 3.0], [np.nan, np.inf], [0.5, 0.0], [0.0, 9.0]])
    rollout = targets(OUTCOME, weight=WEIGHT, cost=cost)
    beyond, said = CVaR(alpha=0.4, quantity=Costs()).prepare((), rollout)
    assert said["train/cvar_empirical"] == -2.0 and said["train/cvar_var"] == -1.0
    assert said["train/cvar_tail_size"] == 2
    chex.assert_trees_all_equal(beyond[1], np.zeros(2, np.float32))


def test_an_action_is_blamed_for_costs_until_its_episode_ends():
    """Σ γᵏ of what they exceed the mean by, γ = ½.

    The mean cost is 15/8. Steps without a cost of their own pass on what follows.
    """
    cost = np.array([[0.0, 1.0], [2.0, np.nan], [0.0, 3.0], [4.0, 5.0], [0.0, 8.0]])
    goes_on = np.array([[1, 1], [1, 1], [0, 1], [1, 0], [1, 1]])
    weight = np.ones_like(cost)
    weight[4, 1] = 0  # Nothing is learned from it, and nobody is blamed for it.
    rollout = targets(0 * cost, 0 * cost, weight, 2.0, cost, 0.5 * goes_on)
    beyond, _ = CVaR(alpha=1.0, quantity=Costs()).prepare((), rollout)
    want = np.array(
        [
            [2.28125, 0.203125],
            [0.8125, -1.34375],
            [1.875, -2.6875],
            [-1.1875, -3.125],
            [1.875, 0.0],
        ]
    )
    chex.assert_trees_all_close(beyond, want / 2.0, rtol=1e-6)


def test_costs_are_in_units_of_their_own_where_advantages_do_not_vary():
    """PROP-13.12: other quantities do not vary there either, and have no weight."""
    rollout = targets(OUTCOME, OUTCOME, WEIGHT, unit=np.inf, cost=-OUTCOME)
    assert Costs().unit(rollout) == 1
    assert np.isinf(Returns().unit(rollout)) and np.isinf(Rewards().unit(rollout))
    assert Costs().unit(rollout._replace(unit=2.0)) == 2
