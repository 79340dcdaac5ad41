"""Snapshots of learners, and how training goes on from them."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brief import signs
from tabular import changed

from ppo_jax import controllers, networks, optimizers, snapshot, terms
from ppo_jax.component import program, replace_at
from ppo_jax.config import Config
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.ppo import learner, population
from ppo_jax.schedules import Progress
from ppo_jax.state import Population
from ppo_jax.transforms.upgd import GateByUtilityState
from ppo_jax.transforms.vgs import ScaleByVarianceState

# Everything that a learner may remember.
CONFIG = Config(
    env=TimeLimitChain(limit=5, negative=0.5),
    num_envs=4,
    num_steps=8,
    num_epochs=2,
    num_minibatches=2,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=())),
    obs_clip=10.0,
    return_scale=ReturnNormalization(min_returns=1),
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.AdaptiveEntropy(controllers.EntropySchedule(decay_updates=3.0)),
        terms.KlPenalty(),
        terms.CVaRConstraint(alpha=0.5, limit=100.0),
    ),
    early_stop=controllers.KlStop(1e-9, budget=controllers.EpochBudget()),
    optimizer=optimizers.AdaptiveUPGD(
        1e-2, sampler=signs, vgs=optimizers.VGS(warmup_steps=1)
    ),
)


def begun(seed):
    """A run before its first update."""
    return jax.jit(learner.init)(program(CONFIG), jax.random.key(seed))


@jax.jit
def together(run, other):
    """A population of two members."""
    runs = jax.tree.map(lambda *x: jnp.stack(x), run, other)
    return Population(runs, fitness=jnp.zeros(2), waited=jnp.int32(0))


@jax.jit
def one(members):
    return jax.tree.map(lambda x: x[0], members.runs)


def advance(members, updates):
    return population.advance(members, Progress.at(np.zeros(2)), jnp.int32(updates))[0]


def lived(run, updates=2):
    """A run after some updates, beside its twin."""
    return one(advance(together(run, run), updates))


@pytest.fixture(scope="module")
def run():
    return lived(begun(seed=0))


def state_of(opt_state, kind):
    nodes = jax.tree.leaves(opt_state, is_leaf=lambda node: isinstance(node, kind))
    (found,) = [node for node in nodes if isinstance(node, kind)]
    return found


def test_with_the_optimiser_nothing_has_happened(run):
    """V5, R-A9: every leaf is the same, and so is all that follows, to the bit."""
    kept = snapshot.take(run.learner, opt_state=True)
    expected = lived(run)
    assert changed(expected.learner.params, run.learner.params)
    for _ in range(2):  # A snapshot is not used up.
        restored = snapshot.restore(kept)
        chex.assert_trees_all_equal(restored, run.learner)
        again = lived(dataclasses.replace(run, learner=restored))
        chex.assert_trees_all_equal(again.learner, expected.learner)
    chex.assert_trees_all_equal(snapshot.take(restored, opt_state=True), kept)


def test_without_the_optimiser_statistics_and_controllers_are_kept(run):
    """V5, R-A2, R-A9: moments, utilities and steps are those of the beginning."""
    kept = snapshot.take(run.learner)
    chex.assert_trees_all_equal(
        jax.tree.leaves(kept.opt_state),
        jax.tree.leaves(state_of(run.learner.opt_state, ScaleByVarianceState)),
    )
    restored = snapshot.restore(kept)
    for name in ("params", "config", "obs_moments", "return_scale", "memories"):
        chex.assert_trees_all_equal(getattr(restored, name), getattr(run.learner, name))
    assert restored.stop_memory == run.learner.stop_memory < 1
    old, new = run.learner.opt_state, restored.opt_state
    statistics = state_of(new, ScaleByVarianceState)
    chex.assert_trees_all_equal(statistics, state_of(old, ScaleByVarianceState))
    assert statistics.count > 0
    fresh = CONFIG.optimizer.init(run.learner.params)
    gate = state_of(new, GateByUtilityState)
    chex.assert_trees_all_equal(gate, state_of(fresh, GateByUtilityState))
    assert changed(gate, state_of(old, GateByUtilityState))
    after = lived(dataclasses.replace(run, learner=restored), updates=1)
    assert changed(after.learner.params, lived(run, updates=1).learner.params)


def test_memories_that_are_kept_have_moved(run):
    """R-A9: what the test above finds unchanged is not what it was at first."""
    first = begun(seed=0).learner
    for name in ("params", "obs_moments", "return_scale", "memories"):
        assert changed(getattr(first, name), getattr(run.learner, name))
    for old, new in zip(first.memories, run.learner.memories, strict=True):
        assert not jax.tree.leaves(old) or changed(old, new)


def test_a_snapshot_outlives_a_population_that_was_donated():
    """R-A2: members are restored one by one, their statistics with them."""
    members = advance(together(begun(seed=1), begun(seed=2)), 2)
    kept = snapshot.take(members.runs.learner)
    copies = jax.tree.map(np.array, members.runs.learner)
    advance(members, 2)
    restored = jax.jit(jax.vmap(snapshot.restore))(kept)
    chex.assert_trees_all_equal(restored.params, copies.params)
    for kind, same in ((ScaleByVarianceState, True), (GateByUtilityState, False)):
        pair = (state_of(x.opt_state, kind) for x in (restored, copies))
        assert changed(*pair) != same


def test_variance_scaling_acts_on_what_was_restored(run):
    """PROP-18.4, R-A3: with its statistics the next update is another one."""
    kept = snapshot.take(run.learner)
    assert state_of(kept.opt_state, ScaleByVarianceState).factor < 1
    ends = []
    for alpha in (0.1, 0.0):
        restored = snapshot.restore(kept)
        config = replace_at(restored.config, "optimizer.vgs.alpha", jnp.float32(alpha))
        restored = dataclasses.replace(restored, config=config)
        after = lived(dataclasses.replace(run, learner=restored), updates=1)
        assert changed(after.learner.params, restored.params)
        ends.append(after.learner.params)
    assert changed(*ends)
