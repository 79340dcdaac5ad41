"""Who is held against whom: agents, and what needs no learning in their market."""

import numpy as np
import pytest
from traders import planned, tiny

from ppo_jax.backtests import results
from ppo_jax.backtests.walking import Tracks


@pytest.fixture(scope="module")
def joined():
    """Agents that held nothing, in markets that differ in each of their numbers."""
    grid = ["env.leverage=0.5,1.0", "env.borrow=0.03,0.5", "env.cost=5.0,20.0"]
    plan = planned(tiny(terms=tiny().terms[:2]), grid=grid)
    (group,) = plan.groups
    count, bars = len(group), plan.folds[0].test.bars
    places = np.array([plan.place_of(member) for member in group])
    none, ends = np.zeros((count, bars)), np.zeros(count)
    held, predicted = (np.zeros((count, bars, size)) for size in (2, 5))
    series = none, none, none, held, predicted
    tracks = Tracks(places, *series, ends, ends, ends, ends > 0)
    return results.join(plan, [tracks])


def test_baselines_are_in_the_market_of_the_agents(joined):
    """No more is held than leverage allows, and whoever borrows pays for it."""
    assert len(joined.agents) == 8 and len(joined.baselines) == 8 * 4
    found = {}
    for setting, agents in zip(joined.plan.settings, joined.agents, strict=True):
        hold, cash, *_ = joined.beside(agents)
        assert (hold.name, cash.name) == ("buy & hold", "cash")
        assert agents.account.conditions == hold.conditions
        found[tuple(setting.values())] = hold
        exposure = hold.exposure[0, 0]
        assert exposure == pytest.approx(setting["env.leverage"], rel=0.02)
    for leverage, borrow, cost in found:
        growth = np.log1p(found[leverage, borrow, cost].returns).sum()
        paid = cost == 20 or (borrow == 0.5 and leverage == 1)
        least = np.log1p(found[leverage, 0.03, 5.0].returns).sum()
        assert (growth < least) == paid


def test_a_market_says_how_it_is_another(joined):
    said = {each.account.conditions for each in joined.agents}
    assert {"5 bp, leverage 0.5", "20 bp, borrow 0.5", "5 bp"} <= said
    assert len(said) == 8
