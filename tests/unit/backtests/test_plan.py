"""What is trained: folds as numbers, one program, and what cannot be."""

import pytest
from traders import PAIRS, planned, tiny

from ppo_jax import component, pbt, terms
from ppo_jax.errors import UserError
from ppo_jax.pbt.ranges import Uniform

BOTH = (
    terms.Surrogate(),
    terms.Value(),
    terms.CVaRConstraint(),
    terms.CVaR(coef=0.5),
)


def test_folds_seeds_and_numbers_are_members_of_one_program():
    plan = planned(tiny(), grid=["env.cost=1,20", "gamma=0.5,0.9"], seeds=3)
    (group,) = plan.groups
    assert len(group) == 3 * 2 * 8 and plan.trials == 3 * 8
    places = {plan.place_of(member) for member in group}
    assert places == {(s, f, k) for s in range(8) for f in range(2) for k in range(3)}
    for member in group:
        setting, fold, _ = plan.place_of(member)
        env, span = member.config.env, plan.folds[fold].train
        assert (env.first, env.last) == (span.first, span.last + 1)
        for path, value in plan.settings[setting].items():
            assert component.numbers(member.config)[path] == value


def test_each_setting_has_one_without_terms_about_risk():
    plan = planned(tiny(terms=BOTH), grid=["terms.cvar.coef=0,0.5"])
    found = [tuple(setting.items()) for setting in plan.settings]
    off = ("terms.cvar_constraint.max_dual", 0.0)
    assert found == [
        (("terms.cvar.coef", 0),),
        (("terms.cvar.coef", 0), off),
        (("terms.cvar.coef", 0.5),),
    ]


def test_the_values_of_settings_are_those_of_their_experiments():
    """Of the grid and of the twins without risk, not of the folds."""
    plan = planned(tiny(terms=BOTH[:2] + BOTH[3:]), grid=["env.cost=1,2"])
    found = [{path: x["value"] for path, x in each.items()} for each in plan.values]
    off = {"terms.cvar.coef": "0.0"}
    assert found == [
        {"env.cost": cost} | twin for cost in ("1.0", "2.0") for twin in ({}, off)
    ]


def test_without_such_terms_there_is_nothing_to_turn_off():
    plan = planned(tiny(terms=(terms.Surrogate(), terms.Value())))
    assert plan.settings == [{}]


def test_the_last_test_ends_with_the_last_price():
    plan = planned(tiny())
    assert plan.folds[-1].test.last == 299  # Its return is known at bar 299 of 300.


def searching(path, **rules):
    """A population that searches for a number beside those that it should."""
    space = dict(PAIRS.space.ranges) | {path: Uniform(0.1, 0.9)}
    return {"pbt": pbt.PBT(space, size=4, **rules)}


@pytest.mark.parametrize(
    ("config", "asked", "said"),
    [
        ({"env": "CartPole-v1"}, {}, "Config.env: expected a Trading"),
        ({}, {"folds": 90}, "--folds: expected at most 78, as 294 bars"),
        ({}, {"purge": 31}, "--purge: expected 0 to 30"),
        ({"seed": 2**32 - 1}, {"seeds": 2}, "--seeds: 2 seeds from 4294967295 on"),
        (
            {},
            {"train": 10, "validation": 10},
            "--train: expected at least 16, .*, got 10",
        ),
        ({}, {"grid": ["env.first=1"]}, "env.first: folds set it"),
        ({}, {"grid": ["env.cots=1"]}, "'env.cots'"),
        ({"max_seconds": 60.0}, {}, "Config.max_seconds: expected None, .*, got 60"),
        ({"stop_at": {"eval/mean_reward": 1.0}}, {}, "Config.stop_at: expected None"),
        ({}, {"grid": ["max_seconds=None,9.0"]}, "Config.max_seconds: .*, got 9"),
        ({}, {"grid": ["env.prices=RandomWalk(400, 2)"]}, "env.prices: expected"),
        (searching("env.cost"), {}, "Config.pbt.space: env.cost: the market, --grid"),
        (searching("terms.cvar.coef"), {}, "terms.cvar.coef: .* the twin without risk"),
        (searching("gamma"), {"grid": ["gamma=0.8"]}, "Config.pbt.space: gamma"),
        (
            searching("gamma", fitness=pbt.Minimize()),
            {},
            "Config.pbt.fitness: expected none, .*, got Minimize",
        ),
    ],
)
def test_what_cannot_be_is_told(config, asked, said):
    changed = tiny(**config)
    with pytest.raises(UserError, match=said):
        planned(changed, **asked)
