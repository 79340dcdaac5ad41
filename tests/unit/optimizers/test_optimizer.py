"""Optimisers as components: their chains, their numbers and their metrics."""

import dataclasses
import re
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tabular
from stepping import KEY, PARAMS, steps

from ppo_jax import terms
from ppo_jax.arrays.packing import pack, pack_like, unpack
from ppo_jax.component import as_arrays, component
from ppo_jax.config import Config
from ppo_jax.errors import Misfit
from ppo_jax.host.metrics.catalogue import summarize
from ppo_jax.host.run_dir.description import describe
from ppo_jax.optimizers import (
    UPGD,
    UPGDW,
    VGS,
    Adam,
    AdamW,
    AdaptiveUPGD,
    Optax,
    Optimizer,
    Sgd,
)
from ppo_jax.ppo import learner, population
from ppo_jax.ppo.batch import assemble
from ppo_jax.ppo.update import update
from ppo_jax.schedules import Constant, Progress, Schedule
from ppo_jax.state import Population

KINDS = [Adam, AdamW, Sgd, UPGD, UPGDW, AdaptiveUPGD]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_may_be_traced(kind):
    """One compilation for members with their own numbers, VGS included.

    Neither a number nor a callback leaves the device.
    """
    optimizer = kind(vgs=VGS(warmup_steps=1))
    members = jax.tree.map(lambda x: jnp.stack([x, 0.9 * x]), as_arrays(optimizer))
    program = jax.jit(jax.vmap(partial(steps, count=2))).lower(members).compile()
    with jax.transfer_guard("disallow"):
        together, _ = jax.block_until_ready(program(members))
    text = program.as_text()
    assert not [word for word in ("callback", "infeed", "outfeed") if word in text]
    for i in range(2):
        member = jax.tree.map(lambda x, i=i: x[i], members)
        alone, _ = steps(member, count=2)
        one = jax.tree.map(lambda x, i=i: x[i], together)
        chex.assert_trees_all_close(one, alone, rtol=1e-4, atol=1e-6)


def test_weights_decay_whatever_the_gradients_were():
    """V2, R-A1: behind the clip and the direction."""
    clipped, _ = steps(Sgd(), 3)
    decayed, _ = steps(UPGD(sigma=None, weight_decay=50.0), 3)
    plain, _ = steps(UPGD(sigma=None, weight_decay=0.0), 3)
    assert optax.tree.norm(plain) < optax.tree.norm(clipped)
    chex.assert_trees_all_close(
        decayed["w"] - plain["w"], 50 * PARAMS["w"], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
def test_another_learning_rate_keeps_the_moments(kind):
    """The chain does not know the rate: its state is the same, steps are as long."""
    slow, fast = kind(learning_rate=1e-4), kind(learning_rate=1e-2)
    _, state = steps(slow)
    _, after = steps(fast, state=state)
    _, unchanged = steps(slow, state=state)
    chex.assert_trees_all_equal(after, unchanged)
    (short, *same), (long, *unchanged) = (
        x.update(PARAMS, state, PARAMS, KEY, Progress.at(0.0)) for x in (slow, fast)
    )
    chex.assert_trees_all_equal(same, unchanged)
    hundredfold = jax.tree.map(lambda u: 100 * u, short)
    chex.assert_trees_all_close(long, hundredfold, rtol=1e-6)
    assert np.abs(long["w"]).max() > 1e-4


@jax.jit
def learn(learner, batch, progress):
    """The learner after an update, and how many of its steps were taken, and failed."""
    after, result = update(learner, batch, KEY, progress)
    return after, result.taken, result.failed


@jax.jit
def experience(run):
    """A rollout, as an update learns from it."""
    _, key, _, *rollout = learner.lived(run, Progress.at(0.0))
    return assemble(run.learner, key, *rollout)[0]


@pytest.fixture(scope="module")
def lived():
    """Who is to learn, and from what."""
    run = tabular.drawn(tabular.experiment(terms=(terms.Surrogate(), terms.Value())))
    return run.learner, experience(run)


RATES = {"learning_rate": 0.1, "max_grad_norm": 0.5}


@pytest.mark.parametrize("kind", [Sgd, Adam, AdamW])
def test_parameters_may_be_one_array(kind):
    """Steps are the same, and so are their moments and the length of the gradients."""
    optimizer, step = kind(**RATES), jax.jit(kind.update)
    apart = PARAMS, optimizer.init(PARAMS)
    whole = pack(PARAMS), pack_like(apart[1], PARAMS)
    for t in range(3):
        g, ends = {"w": np.cos(PARAMS["w"] + t), "b": np.float32(t)}, []
        for (params, state), given in ((apart, g), (whole, pack(g))):
            told = step(optimizer, given, state, params, KEY, Progress.at(0.3 * t))
            ends.append((optax.apply_updates(params, told[0]), told[1], told[2]))
        (*apart, norm), (*whole, same) = ends
        chex.assert_trees_all_close(unpack(whole), apart, rtol=1e-5)
        chex.assert_trees_all_close(same, norm, rtol=1e-5)
    assert kind().elementwise
    assert not kind(vgs=VGS()).elementwise


def test_an_update_of_one_array_is_the_same(lived):
    """What is derived of an optimiser is given each of the parameters."""

    @component
    class Derived(AdamW):
        pass

    begun, batch = lived
    ends = []
    for optimizer in (AdamW(**RATES), Derived(**RATES)):
        config = dataclasses.replace(begun.config, optimizer=as_arrays(optimizer))
        after = begun.replace(config=config, opt_state=optimizer.init(begun.params))
        for done in (0.0, 0.3, 0.6):
            after, *_ = learn(after, batch, Progress.at(done))
        ends.append(after)
    assert not Derived().elementwise
    whole, apart = ((end.params, end.opt_state) for end in ends)
    chex.assert_trees_all_close(whole, apart, rtol=1e-4, atol=1e-6)


@component
class InvSqrt(Schedule):
    """Infinite before the first update."""

    def __call__(self, progress):
        return jnp.asarray(progress, jnp.float32) ** -0.5


@pytest.mark.parametrize("kind", [Sgd, Adam, AdaptiveUPGD])
def test_a_learning_rate_that_is_not_finite_is_no_step(kind, lived):
    """R-A20: parameters and moments stay, and the steps are counted as failed."""
    begun, batch = lived
    optimizer = as_arrays(kind(schedule=InvSqrt()))
    config = dataclasses.replace(begun.config, optimizer=optimizer)
    before = begun.replace(config=config, opt_state=optimizer.init(begun.params))
    after, taken, failed = learn(before, batch, Progress.at(0.0))
    chex.assert_trees_all_equal(
        (after.params, after.opt_state), (before.params, before.opt_state)
    )
    assert taken == 0 and failed > 0
    after, taken, failed = learn(before, batch, Progress.at(0.25))
    assert failed == 0 and taken > 0
    chex.assert_tree_all_finite(after.params)


UPDATES = 12


def stepping():
    """Two equal members with tables; a phase takes one step in each of its updates."""
    config = tabular.experiment(
        num_epochs=1,
        terms=(terms.Surrogate(), terms.Value()),
        optimizer=AdaptiveUPGD(1e-2, schedule=Constant(), vgs=VGS(warmup_steps=2)),
    )
    runs = jax.tree.map(lambda x: jnp.stack([x, x]), tabular.drawn(config))
    return Population(runs, fitness=jnp.full(2, jnp.nan), waited=jnp.int32(0))


def test_a_population_changes_a_learning_rate_between_two_steps():
    """In force at the very next step, with all moments, and nothing is compiled."""
    progress, one_update = Progress.at(np.zeros(UPDATES)), jnp.int32(1)
    members, _ = population.advance(stepping(), progress, jnp.int32(3))
    compiled = population.advance._cache_size()
    before = jax.tree.map(np.array, members.runs.learner.params)
    members = population.with_numbers(
        members, {"optimizer.learning_rate": np.float32([1e-2, 4e-2])}
    )
    members, _ = population.advance(members, progress, one_update)
    assert population.advance._cache_size() == compiled
    after = jax.device_get(members.runs.learner)
    for one, other in jax.tree.leaves(after.opt_state):
        chex.assert_trees_all_equal(one, other)
    moved = jax.tree.map(np.subtract, after.params, before)
    for slow, fast in jax.tree.leaves(moved):
        assert np.abs(slow).max() > 1e-4
        chex.assert_trees_all_close(fast, 4 * slow, rtol=1e-3, atol=1e-6)


def test_adamw_is_that_of_optax():
    ours, _ = steps(AdamW(max_grad_norm=None, weight_decay=0.1, eps=1e-8))
    tx = optax.adamw(1.0, weight_decay=0.1)
    state = tx.init(PARAMS)
    for t in range(5):
        g = jax.tree.map(lambda w, t=t: 9 * jnp.cos(w + t), PARAMS)
        theirs, state = tx.update(g, state, PARAMS)
    chex.assert_trees_all_close(ours, jax.tree.map(jnp.negative, theirs), rtol=1e-5)


@pytest.mark.parametrize("make", [optax.lion, partial(optax.adamw, weight_decay=0.1)])
def test_an_optimizer_of_optax_steps_as_optax_says(make):
    """With the rate that it was given here, half of which the schedule leaves."""
    ours = Optax(learning_rate=0.2, max_grad_norm=None, make=make)
    theirs, before = make(0.1), PARAMS
    for_ours, for_theirs = ours.init(PARAMS), theirs.init(PARAMS)
    after = PARAMS
    for t in range(4):
        g = jax.tree.map(lambda w, t=t: 9 * jnp.cos(w + t), PARAMS)
        updates, for_theirs = theirs.update(g, for_theirs, after)
        after = optax.apply_updates(after, updates)
        updates, for_ours, _ = ours.update(g, for_ours, before, KEY, Progress.at(0.5))
        before = optax.apply_updates(before, updates)
    chex.assert_trees_all_close(before, after, rtol=1e-5)


@pytest.mark.parametrize("given", [optax.adam(1e-3), optax.adam, partial(optax.adam)])
def test_of_what_is_optaxs_it_is_told_how_it_is_given(given):
    with pytest.raises(TypeError, match=r"Config\.optimizer: .* give Optax\("):
        Config("CartPole-v1", optimizer=given)


def test_metrics_of_a_real_run():
    """Every `vgs/*` and `upgd/*` metric comes out of training, finite."""
    progress = Progress.at(np.linspace(0, 1, UPDATES))
    _, metrics = population.advance(stepping(), progress, jnp.int32(UPDATES))
    written = summarize({name: np.asarray(x)[:, 0] for name, x in metrics.items()})
    said = {k: v for k, v in written.items() if k.startswith(("vgs/", "upgd/"))}
    assert len(said) == 10 + 9
    chex.assert_tree_all_finite(said)
    assert written["vgs/step_count"] == UPDATES
    assert written["train/vgs_scaling_factor_applied"] <= 1
    assert written["upgd/update_norm"] > 0
    chex.assert_trees_all_close(written["upgd/noise_to_signal"], 0.001, rtol=1e-3)


def test_functions_of_an_optimizer_are_described_by_name():
    """The description is compared between processes, and with those of runs before."""
    config = dataclasses.replace(Config("CartPole-v1"), optimizer=UPGD(vgs=VGS()))
    described = describe(config)
    for field, name in (
        ("normalize", "upgd.min_max"),
        ("combine", "upgd.protecting"),
        ("vgs.statistic", "vgs.layer_mean"),
    ):
        value = described[f"optimizer.{field}"]["value"]
        assert value == f"ppo_jax.transforms.{name}"
    lion = Optax(make=partial(optax.lion, b1=0.95))
    described = describe(dataclasses.replace(config, optimizer=lion))
    value = described["optimizer.make"]["value"]
    assert "lion" in value and "'b1': 0.95" in value and " at 0x" not in value


@pytest.mark.parametrize(
    ("kind", "number", "value"),
    [
        (VGS, "alpha", -1.0),
        (VGS, "quantile", 1.1),
        (Sgd, "learning_rate", -1e-3),
        (Adam, "learning_rate", np.inf),
        (Adam, "max_grad_norm", 0.0),
        (AdamW, "weight_decay", -1.0),
        (UPGDW, "learning_rate", -1e-3),
        (UPGDW, "weight_decay", -1.0),
        (UPGD, "sigma", -1.0),
        (UPGD, "noise_beta", 1.0),
        (UPGD, "min_noise_std", -1.0),
        (UPGDW, "temperature", 0.0),
        (UPGD, "step_multiplier", 0.0),
        (AdaptiveUPGD, "beta_utility", 1.0),
        (Adam, "b1", 1.0),
        (Adam, "b1", -0.1),
        (Adam, "b2", 1.0),
        (AdamW, "b2", 1 - 1e-9),
        (AdaptiveUPGD, "eps", 0.0),
    ],
)
def test_numbers_out_of_range_are_errors(kind, number, value):
    """A decay of 1 is one that float32 cannot tell from it, too."""
    said = rf"^{kind.__name__}\.{number}: expected a (finite )?number"
    with pytest.raises(ValueError, match=said):
        kind(**{number: value})


def test_gated_optimisers_have_step_sizes_of_their_own():
    """V2: 10⁻⁵, and 10⁻⁴ of UPGDW."""
    rates = {kind: kind().learning_rate for kind in KINDS}
    assert rates == dict.fromkeys([Adam, AdamW, Sgd], 2.5e-4) | {
        UPGD: 1e-5,
        AdaptiveUPGD: 1e-5,
        UPGDW: 1e-4,
    }


@component
class Own(Optimizer):
    """An optimiser whose direction is whatever it is given."""

    given: object = None

    def direction(self):
        return self.given


def doing(update):
    """A direction without a state."""
    return Own(given=optax.GradientTransformation(lambda params: (), update))


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [
        (Own(), "Own.direction: expected a gradient transformation of optax, such as"),
        (Own(given=optax.adam), "optax, such as optax.lion(1.0), got a function"),
        (Optax(make=lambda rate: rate), "Optax.make: expected a gradient transformat"),
        (doing(lambda *_: None), "Own.direction: expected an update to (updates, stat"),
        (doing(lambda grads, *_: grads), "(updates, state), got a dict"),
        (doing(lambda grads, state, _: (0.0, state)), "Own.direction: updates: expect"),
        (
            doing(lambda grads, state, _: (grads | {"w": grads["b"]}, state)),
            "Own.direction: updates: w: expected float32[8] as before, got float32[]",
        ),
        (doing(lambda grads, *_: (grads, grads["b"])), "state: expected () as before"),
    ],
)
def test_a_direction_turns_gradients_into_updates(optimizer, said):
    with pytest.raises(Misfit, match=re.escape(said)):
        optimizer.update(PARAMS, optimizer.init(PARAMS), PARAMS, KEY, Progress.at(0.0))
