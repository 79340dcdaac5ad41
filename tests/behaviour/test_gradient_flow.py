"""Which term of the objective reaches which parameters, in assembled updates.

All terms are there, with coefficients of 0; one of them at a time gets another number.
Nothing is compiled for that. Whatever a term does not reach stays the same to the bit.
"""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tabular

from ppo_jax import critics, networks, optimizers, terms
from ppo_jax.arrays import tree
from ppo_jax.component import replace_at
from ppo_jax.config import Config
from ppo_jax.controllers import EntropySchedule, KlPid
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress

MLP = networks.ActorCritic(torso=networks.Mlp(hidden=(8,)))
LSTM = dataclasses.replace(MLP, memory=networks.Lstm(size=8))
LINEAR = dataclasses.replace(LSTM, torso=networks.Mlp(hidden=()))
SCALAR = critics.Scalar(clip=critics.MeanOnly())
QUANTILE = critics.Quantile(4, clip=critics.PerQuantile())
ATOMS = critics.Categorical(5, -6.0, 6.0, clip=critics.MeanAndVariance())
PROGRAMS = [
    pytest.param((SCALAR, LSTM), id="scalar, lstm"),
    pytest.param((QUANTILE, MLP), id="quantiles"),
    pytest.param((ATOMS, LSTM), id="atoms, lstm"),
    pytest.param((SCALAR, MLP), id="scalar", marks=pytest.mark.slow),
    pytest.param((QUANTILE, LSTM), id="quantiles, lstm", marks=pytest.mark.slow),
    pytest.param((ATOMS, MLP), id="atoms", marks=pytest.mark.slow),
]
FORESEEN = terms.CVaRConstraint(0.3, limit=1e3, estimate=terms.Predicted())
AHEAD = (terms.Surrogate(), FORESEEN, terms.Value(coef=0.0))
OFF = (
    terms.Surrogate(),
    terms.Entropy(coef=0.0),
    terms.AdaptiveEntropy(EntropySchedule(initial=0.0, final=0.0)),
    terms.KlPenalty(KlPid(target=0.01, initial=0.0, minimum=0.0, maximum=0.0)),
    terms.AdvantageWeighted(coef=0.0),
    terms.CVaR(coef=0.0, alpha=0.3),
    terms.CVaRConstraint(max_dual=0.0, alpha=0.3, limit=1e3),
    terms.Value(coef=0.0, clip_eps=0.2),
    terms.PredictedCVaR(coef=0.0, alpha=0.3),
)
POLICY = {
    "entropy": {"terms.entropy.coef": 0.3},
    "adaptive entropy": {
        "terms.adaptive_entropy.schedule.initial": 0.3,
        "terms.adaptive_entropy.schedule.floor": 0.3,
    },
    "imitation": {"terms.advantage_weighted.coef": 0.5},
    "tail": {"terms.cvar.coef": 0.5},
}
SAID = {
    "train/kl_penalty_beta",
    "train/cvar_lambda",
    "train/cvar_gap",
    "train/cvar_tail_size",
    "train/value_clip_fraction",
}


@jax.jit
def updated(run):
    """Parameters after an update, and of its metrics those that tests look at."""
    run, metrics = learner.iteration(run, Progress.at(0.0))
    return run.learner.params, {k: v for k, v in metrics.items() if k in SAID}


def experiment(critic, network, objective=OFF, **changes):
    fields = dict(
        env=TimeLimitChain(limit=5, negative=0.5),
        num_envs=4,
        num_steps=8,
        num_epochs=2,
        num_minibatches=1,
        network=network,
        critic=critic,
        num_critics=2,
        terms=objective,
        optimizer=optimizers.Sgd(learning_rate=0.5, max_grad_norm=None),
        total_timesteps=32_000,
    )
    return Config(**fields | changes)


def first(*parts):
    return tabular.drawn(experiment(*parts), seed=2, scale=0.25)


def ahead(num_critics):
    """Before one step, in which a constraint on what is predicted may count."""
    parts = critics.Quantile(4), LINEAR, AHEAD
    config = experiment(*parts, num_critics=num_critics, num_epochs=1)
    return tabular.drawn(config, scale=0.25)


def after(run, numbers):
    """Parameters after an update with some other numbers, and its metrics."""
    config = run.learner.config
    for path, number in numbers.items():
        config = replace_at(config, path, jnp.float32(number))
    run = run.replace(learner=run.learner.replace(config=config))
    return jax.device_get(updated(run))


def remember(run, index, memory):
    """The run whose term at an index remembers something else."""
    memories = list(run.learner.memories)
    memories[index] = memory
    return run.replace(learner=run.learner.replace(memories=tuple(memories)))


def assert_all_differ(a, b):
    a, b = map(tree.by_path, jax.device_get((a, b)))
    assert a.keys() == b.keys()
    for path, x in a.items():
        assert (x != b[path]).any(), path


@pytest.fixture(scope="module", params=PROGRAMS)
def begun(request):
    """A run before its first update, and its parameters after one of the surrogate."""
    run = first(*request.param)
    return run, after(run, {})[0]


def test_the_surrogate_reaches_the_actor(begun):
    """R-D3: every leaf of it, and no leaf of the critic."""
    run, alone = begun
    assert_all_differ(alone["actor"], run.learner.params["actor"])
    chex.assert_trees_all_equal(alone["critic"], run.learner.params["critic"])


@pytest.mark.parametrize("numbers", POLICY.values(), ids=POLICY)
def test_terms_of_the_policy_reach_the_actor(begun, numbers):
    """PROP-13.12, R-D3: every leaf of it, and no leaf of the critic."""
    run, alone = begun
    params, _ = after(run, numbers)
    assert_all_differ(params["actor"], alone["actor"])
    chex.assert_trees_all_equal(params["critic"], alone["critic"])


def test_the_divergence_reaches_the_actor(begun):
    """Its penalty counts from the second step on: before, nothing has moved."""
    run, alone = begun
    memory = run.learner.memories[3]
    remembered = remember(run, 3, memory._replace(coefficient=jnp.ones(())))
    params, metrics = after(remembered, {"terms.kl_penalty.controller.maximum": 1.0})
    assert metrics["train/kl_penalty_beta"] == 1.0
    assert_all_differ(params["actor"], alone["actor"])
    chex.assert_trees_all_equal(params["critic"], alone["critic"])


def test_the_constraint_reaches_the_actor(begun):
    """PROP-13.12, R-D3, R-D19, R-E1.

    If the multiplier is positive, which is no parameter itself.
    """
    run, alone = begun
    most = {"terms.cvar_constraint.max_dual": 1.0}
    params, metrics = after(remember(run, 6, jnp.ones(())), most)
    assert metrics["train/cvar_lambda"] == 1.0 and metrics["train/cvar_gap"] > 0
    assert_all_differ(params["actor"], alone["actor"])
    chex.assert_trees_all_equal(params["critic"], alone["critic"])
    idle, _ = after(remember(run, 6, jnp.zeros(())), most)
    chex.assert_trees_all_equal(idle, alone)


@pytest.fixture(scope="module")
def foreseeing():
    """A run with two critics, and its parameters after one of the surrogate."""
    run = ahead(num_critics=2)
    return run, after(run, {})[0]


@pytest.mark.parametrize(
    ("through", "dual", "limit", "actor", "critic"),
    [
        (0.0, 1.0, 1e3, True, False),
        (1.0, 1.0, 1e3, True, True),
        (1.0, 1.0, -1e3, True, False),
        (1.0, 0.0, 1e3, False, False),
    ],
    ids=["the policy alone", "critics too", "met", "without a multiplier"],
)
def test_a_constraint_on_what_is_predicted(
    foreseeing, through, dual, limit, actor, critic
):
    """PROP-13.12, R-D3, R-E1: critics learn from a violation only, if asked."""
    run, alone = foreseeing
    numbers = {
        "terms.cvar_constraint.limit": limit,
        "terms.cvar_constraint.estimate.through": through,
    }
    params, metrics = after(remember(run, 1, jnp.float32(dual)), numbers)
    assert (metrics["train/cvar_gap"] > 0) == (limit > 0)
    for part, reached in (("actor", actor), ("critic", critic)):
        compare = assert_all_differ if reached else chex.assert_trees_all_equal
        compare(params[part], alone[part])


def test_the_value_loss_reaches_both_critics(begun):
    """PROP-11.3, R-D1, R-E12.

    Torso, memory and both heads, clipped or not; no actor.
    """
    run, alone = begun
    ends = []
    for eps in (1e6, 1e-3):
        params, metrics = after(
            run, {"terms.value.coef": 0.5, "terms.value.clip_eps": eps}
        )
        assert (metrics["train/value_clip_fraction"] > 0) == (eps < 1)
        chex.assert_trees_all_equal(params["actor"], alone["actor"])
        assert_all_differ(params["critic"], alone["critic"])
        for one in range(2):
            head, old = (
                jax.tree.map(lambda x, one=one: x[one], p["critic"]["heads"])
                for p in (params, alone)
            )
            assert_all_differ(head, old)
        ends.append(params)
    assert_all_differ(*[params["critic"] for params in ends])


def test_the_predicted_tail_reaches_the_least_critic(begun):
    """PROP-13.12, PROP-11.3, R-D3, R-E1.

    No actor; critics, down to their first layer.
    """
    run, alone = begun
    params, _ = after(run, {"terms.predicted_cvar.coef": 0.5})
    chex.assert_trees_all_equal(params["actor"], alone["actor"])
    assert_all_differ(params["critic"], alone["critic"])


def test_measurements_reach_nothing(begun):
    """PROP-14.3: what only measures is a constant to the objective."""
    run, alone = begun
    params, metrics = after(
        run, {"terms.cvar_constraint.alpha": 0.7, "terms.predicted_cvar.alpha": 0.9}
    )
    chex.assert_trees_all_equal(params, alone)
    assert metrics["train/cvar_tail_size"] == np.ceil(0.7 * 32)


def test_twins_that_agree_are_one(foreseeing):
    """PROP-11.5: the same update; what one head learns is shared by two."""
    alone, (both, _) = ahead(num_critics=1), foreseeing
    ends, starts = [], []
    heads = jax.tree.map(
        lambda x: np.concatenate([x, x]), alone.learner.params["critic"]["heads"]
    )
    critic = alone.learner.params["critic"] | {"heads": heads}
    params = {"actor": alone.learner.params["actor"], "critic": critic}
    both = both.replace(learner=both.learner.replace(params=params))
    for run in (alone, both):
        starts.append(run.learner.params)
        ends.append(after(run, {"terms.value.coef": 0.5})[0])
    one, two = ends
    close = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6)
    jax.tree.map(close, two["actor"], one["actor"])
    jax.tree.map(close, two["critic"]["trunk"], one["critic"]["trunk"])
    moved = [
        jax.tree.map(np.subtract, end["critic"]["heads"], start["critic"]["heads"])
        for end, start in zip(ends, starts, strict=True)
    ]
    assert all(np.abs(x).max() > 1e-4 for x in jax.tree.leaves(moved))
    for i in range(2):
        jax.tree.map(lambda x, y, i=i: close(2 * y[i], x[0]), *moved)
    assert_all_differ(one["critic"]["trunk"], starts[0]["critic"]["trunk"])
