"""Agents that are careful, and one that is not, where risk does not pay in the end."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import critics, networks, optimizers, terms
from ppo_jax.component import as_arrays, replace_at
from ppo_jax.config import Config
from ppo_jax.envs.probes import RiskyBandit
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

# Two constraints in one objective.
pytestmark = pytest.mark.filterwarnings("ignore:Config.terms")
UPDATES = 120
COPIES = 8
MEMBERS = {
    "heedless": {},
    "constrained": {"terms.cvar_constraint.max_dual": 1.0},
    "averse": {"terms.cvar.coef": 0.3},
}


SHARE = 0.1
"""How often the better arm is terrible: the share of outcomes that risk is of."""
CONSTRAINT = terms.CVaRConstraint(SHARE, limit=0.0, learning_rate=0.005, max_dual=0.0)


def experiment(*objective, **changes):
    fields = {
        "env": RiskyBandit(chance=SHARE),
        "num_envs": 32,
        "num_steps": 8,
        "num_epochs": 2,
        "num_minibatches": 2,
        "network": networks.ActorCritic(torso=networks.Mlp(hidden=(8,))),
        "terms": (terms.Surrogate(), terms.Value(), *objective),
        "optimizer": optimizers.Adam(learning_rate=1e-2),
        "total_timesteps": 256 * UPDATES,
    }
    return Config(**fields | changes)


@pytest.fixture(scope="module")
def trained():
    """Eight of each kind in one program, and the means of their metrics `[updates]`."""
    config = as_arrays(experiment(terms.CVaR(SHARE, coef=0.0), CONSTRAINT))
    members = []
    for numbers in MEMBERS.values():
        one = config
        for path, number in numbers.items():
            one = replace_at(one, path, jnp.float32(number))
        members += [one] * COPIES
    config = jax.tree.map(lambda *x: jnp.stack(x), *members)
    runs = population.init(config, jax.random.split(jax.random.key(0), len(members)))
    progress = Progress.at(np.zeros(UPDATES))
    runs, metrics = population.advance(runs, progress, jnp.int32(UPDATES))
    each = risky(runs)
    kinds = {
        name: slice(i, i + COPIES)
        for name, i in zip(MEMBERS, range(0, len(members), COPIES), strict=True)
    }
    return {
        name: {key: np.asarray(x)[:, kind].mean(axis=1) for key, x in metrics.items()}
        | {"risky": np.median(each[kind])}
        for name, kind in kinds.items()
    }


@jax.jit
def risky(members):
    """The probability of the risky arm in the end, `[P]`."""

    def one(learner):
        out = learner.config.build().apply(
            learner.params, (), jnp.ones((1, 1, 1)), jnp.zeros((1, 1), bool)
        )
        return jnp.exp(out.policy.log_prob(jnp.ones((1, 1), jnp.int32)))[0, 0]

    return jax.vmap(one)(members.runs.learner)


def test_without_a_constraint_the_mean_counts(trained):
    """PROP-13.15: the arm that is better on average, and sometimes terrible."""
    assert trained["heedless"]["risky"] > 0.9
    assert (trained["heedless"]["train/cvar_lambda"] == 0).all()
    assert trained["heedless"]["train/cvar_empirical"][-20:].mean() < -8


def test_the_constraint_makes_the_policy_safe(trained):
    """PROP-13.15, PROP-13.10, R-D3: its multiplier rises and settles.

    A gradient that only reached critics would leave the policy with the risky arm.
    """
    metrics = trained["constrained"]
    assert metrics["risky"] < 0.2
    dual, cvar = metrics["train/cvar_lambda"], metrics["train/cvar_empirical"]
    assert dual[0] == 0 and dual.argmax() < 20
    assert 0 < dual[40:].mean() < 0.7 * dual.max()
    assert abs(dual[40:80].mean() - dual[80:].mean()) < 0.3 * dual.max()
    assert cvar[:3].mean() < -3
    assert -1.5 < cvar[40:].mean() < 0.5


@pytest.fixture(scope="module")
def foreseeing():
    """Members that avoid what critics foresee, beside what is met; their metrics."""
    met = terms.CVaRConstraint(SHARE, limit=-1e3)
    foresee = dataclasses.replace(CONSTRAINT, max_dual=1.0, estimate=terms.Predicted())
    config = experiment(
        met,
        foresee,
        critic=critics.Quantile(10),
        network=networks.ActorCritic(torso=networks.Mlp(hidden=())),
        optimizer=optimizers.Adam(learning_rate=3e-2),
    )
    members = population.init(config, jax.random.split(jax.random.key(0), 2 * COPIES))
    return population.advance(
        members, Progress.at(np.zeros(UPDATES)), jnp.int32(UPDATES)
    )


def test_a_constraint_on_what_is_predicted_makes_the_policy_safe(foreseeing):
    """PROP-13.14, PROP-13.15, R-E1: critics foresee the tail, the policy avoids it.

    Its multiplier swings, and agents with it: what counts is the time that they spend.
    The bounds hold with room for each of six seeds.
    """
    members, metrics = foreseeing
    dual, estimate, empirical = (
        metrics[f"train/cvar_{x}"].mean(axis=1)
        for x in ("lambda", "estimate", "empirical")
    )
    assert empirical.min() < -6 and empirical[UPDATES // 2 :].mean() > -2.5
    assert np.median(risky(members)) < 0.4
    assert estimate.min() < -1 and dual[-1] < 0.75 * dual.max()
    assert estimate[-20:].mean() > -1


def test_each_constraint_follows_its_own_gap(foreseeing):
    """PROP-13.10: two in one objective, whose metrics have the same names."""
    members, metrics = foreseeing
    *_, still, moving = members.runs.learner.memories
    assert (metrics["train/cvar_lambda"].max(axis=0) > 0).all()
    assert (moving > 0).any() and (still == 0).all()


def test_a_penalty_makes_the_policy_safe(trained):
    """PROP-13.15: a weight of the tail, without a multiplier."""
    assert trained["averse"]["risky"] < 0.2
    assert (trained["averse"]["train/cvar_lambda"] == 0).all()
