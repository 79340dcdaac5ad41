"""Generations of real populations: what copies, what stays, and what is in force."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brief import signs
from tabular import changed

from ppo_jax import controllers, networks, optimizers, terms
from ppo_jax.arrays import tree
from ppo_jax.component import component, numbers
from ppo_jax.config import Config
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.errors import Misfit
from ppo_jax.host.run_dir.checkpoint import Checkpointer
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.pbt import (
    PBT,
    Copy,
    Everyone,
    Maximize,
    Readiness,
    Reinitialize,
    Truncation,
)
from ppo_jax.pbt.explore import Explorer, Movers
from ppo_jax.pbt.ranges import LogUniform, NearOne, Uniform
from ppo_jax.pbt.select import Selection, Selector
from ppo_jax.ppo import acting, learner, population
from ppo_jax.schedules import Progress
from ppo_jax.state import Population

RATE = "optimizer.learning_rate"
ENTROPY = "terms.adaptive_entropy.schedule.initial"
SPACE = {
    RATE: LogUniform(1e-5, 1e-2),
    "terms.surrogate.clip_eps": Uniform(0.05, 0.3),
    ENTROPY: LogUniform(1e-4, 1e-1),
}
PARENT, COPIED = np.array([0, 3, 2, 3, 0]), np.array([0, 1, 0, 0, 1], bool)


@component
class Fixed(Selector):
    """Members 1 and 4 copy 3 and 0."""

    def __call__(self, fitness, ready, keys):
        return Selection(jnp.asarray(PARENT, jnp.int32), jnp.asarray(COPIED))


@component
class Zero(Explorer):
    """Every number becomes 0."""

    def __call__(self, range_, value, key):
        return jnp.zeros(())


LINEAR = networks.ActorCritic(torso=networks.Mlp(hidden=()))


def small(**changes):
    settings = {
        "env": TimeLimitChain(limit=5, negative=0.5),
        "num_envs": 4,
        "num_steps": 8,
        "num_epochs": 2,
        "num_minibatches": 2,
        "network": LINEAR,
        "total_timesteps": 3200,
    }
    return Config(**settings | changes)


EVERYTHING = small(
    network=dataclasses.replace(LINEAR, memory=networks.Gru(size=4)),
    obs_clip=10.0,
    return_scale=ReturnNormalization(min_returns=8),
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.AdaptiveEntropy(
            controllers.EntropySchedule(plateau=controllers.Plateau(window=4))
        ),
        terms.CVaRConstraint(alpha=0.2, limit=5.0),
    ),
    optimizer=optimizers.AdaptiveUPGD(
        learning_rate=1e-2, sampler=signs, vgs=optimizers.VGS(warmup_steps=0)
    ),
    pbt=PBT(SPACE, size=5, selector=Fixed()),
)


def initial(config, seed=0):
    """Members with numbers of their own."""
    size, space = config.pbt.size, config.pbt.space
    keys = jax.random.split(jax.random.key(seed), (2, size))
    numbers = sampled(space, keys[0])
    return population.init(space.write(config, numbers), keys[1])


@functools.partial(jax.jit, static_argnums=0)
def sampled(space, keys):
    return jax.vmap(space.sample)(keys)


@jax.jit
def copied(members):
    return jax.tree.map(jnp.copy, members)


def at_most_three(updates):
    """What a phase is to be given: progress, and a number of updates."""
    return Progress.at(np.linspace(0.0, 0.5, 3)), jnp.int32(updates)


def advance(members, updates=3):
    """Some updates; the members before them stay as they are."""
    return population.advance(copied(members), *at_most_three(updates))


def evolve(pbt, members, seed=1, keys=None):
    """A generation; the members before it stay as they are."""
    keys = jax.random.split(jax.random.key(seed), pbt.size) if keys is None else keys
    members, generation = population.evolve(pbt, copied(members), keys)
    return members, jax.device_get(generation)


def rated(members, fitness):
    return members.replace(fitness=jnp.asarray(fitness, jnp.float32))


@functools.cache
def trained():
    """Members with everything, after three updates."""
    members, _ = advance(initial(EVERYTHING))
    return rated(members, [4.0, 1.0, 3.0, 5.0, 2.0])


def following(strategy):
    return evolve(dataclasses.replace(EVERYTHING.pbt, optimizer=strategy), trained())


def assert_different(a, b):
    assert changed(a, b)


def one(values, index):
    return jax.tree.map(lambda x: x[index], jax.device_get(values))


def states(opt_state, name):
    """The states of one kind in a chain, by the name of the kind."""

    def is_one(node):
        return type(node).__name__ == name

    leaves = jax.tree.leaves(opt_state, is_leaf=is_one)
    return [leaf for leaf in leaves if is_one(leaf)]


strategies = pytest.mark.parametrize("strategy", [Copy(), Reinitialize()], ids=repr)


@strategies
def test_a_copy_has_learned_what_its_parent_has(strategy):
    """P2, P6, R-A10, R-B2, V12, PROP-3.2: bit for bit, under both strategies."""
    before, (after, generation) = trained().runs.learner, following(strategy)
    chex.assert_trees_all_equal(generation.parent, PARENT)
    chex.assert_trees_all_equal(generation.copied, COPIED)
    for member, parent in ((1, 3), (4, 0)):
        old, new = one(before, parent), one(after.runs.learner, member)
        for part in ("params", "obs_moments", "return_scale", "memories"):
            assert_different(getattr(old, part), getattr(one(before, member), part))
            chex.assert_trees_all_equal(getattr(old, part), getattr(new, part))
        (vgs,) = states(new.opt_state, "ScaleByVarianceState")
        assert vgs.count == 12
        chex.assert_trees_all_equal(
            states(old.opt_state, "ScaleByVarianceState"), [vgs]
        )


def test_the_optimiser_of_a_copy_goes_on_or_begins_anew():
    """P1, R-A9, U6: moments, utilities and steps."""
    before = one(trained().runs.learner.opt_state, 3)
    going_on = one(following(Copy())[0].runs.learner.opt_state, 1)
    chex.assert_trees_all_equal(before, going_on)
    anew = one(following(Reinitialize())[0].runs.learner.opt_state, 1)
    for name in ("GateByUtilityState", "ScaleByAdamState"):
        (state,) = states(anew, name)
        assert states(before, name)[0].count == 12
        assert all((leaf == 0).all() for leaf in jax.tree.leaves(state))


@strategies
def test_who_does_not_copy_is_left_alone(strategy):
    """R-A9: weights, optimiser, normalisers, numbers and carries."""
    before, (after, _) = trained().runs, following(strategy)
    for member in np.flatnonzero(~COPIED):
        chex.assert_trees_all_equal(one(before, member), one(after.runs, member))


def test_a_copy_keeps_its_key_counters_and_environments():
    """P3, R-A11: the carries of actor and critic are empty in every environment."""
    runs = trained().runs, following(Copy())[0].runs
    before, after = jax.device_get(runs)
    for part in ("env_state", "obs", "reset", "episode_return", "episode_length"):
        chex.assert_trees_all_equal(
            getattr(before.actor, part), getattr(after.actor, part)
        )
    chex.assert_trees_all_equal(before.key, after.key)
    kept = dataclasses.replace(after.counters, episodes=before.counters.episodes)
    chex.assert_trees_all_equal(before.counters, kept)
    assert (before.counters.episodes > 0).all()
    chex.assert_trees_all_equal(after.counters.episodes == 0, COPIED)
    assert set(after.actor.carry) == {"actor", "critic"}
    for old, new in zip(
        jax.tree.leaves(before.actor.carry),
        jax.tree.leaves(after.actor.carry),
        strict=True,
    ):
        chex.assert_shape(old, (5, 4, ...))
        assert (old[COPIED] != 0).any(axis=(1, 2)).all()
        chex.assert_trees_all_equal(new[COPIED], 0)
        chex.assert_trees_all_equal(old[~COPIED], new[~COPIED])


@jax.jit
def predictions(run, obs, reset):
    """What a member says of raw observations: policy, and values in rewards."""
    network = run.learner.config.build()
    policy, value, _ = acting.evaluate(
        network,
        run.learner.params,
        run.actor.carry,
        acting.observe(run.learner, obs),
        reset,
    )
    return policy, run.learner.return_scale.decode(value.outputs)


def test_a_copy_says_what_its_parent_said():
    """P3, P6, R-A11, PROP-18.3, R-A24, X12.

    Of the same observation at the start of an episode.
    """
    before, after = trained().runs, following(Reinitialize())[0].runs
    obs = jnp.array([[0.3], [-1.0], [1.0], [5.0]])
    fresh = predictions(one(before, 3), obs, jnp.ones(4, bool))
    copied = predictions(one(after, 1), obs, jnp.zeros(4, bool))
    chex.assert_trees_all_equal(fresh, copied)
    assert_different(fresh, predictions(one(before, 1), obs, jnp.ones(4, bool)))


@strategies
def test_every_recorded_number_is_in_force_at_the_next_update(strategy):
    """P7, P8, P10, P12, R-C4, PROP-17.1: copies have numbers of their own."""
    after, generation = following(strategy)
    before, held = (
        jax.device_get(EVERYTHING.pbt.space.read(members.runs.learner.config))
        for members in (trained(), after)
    )
    for path, recorded in generation.numbers.items():
        chex.assert_trees_all_equal(recorded, held[path])
        chex.assert_trees_all_equal(recorded[~COPIED], before[path][~COPIED])
        assert (recorded[COPIED] != before[path][PARENT][COPIED]).any()
    later, metrics = advance(after, updates=1)
    for name, path in (("learning_rate", RATE), ("ent_coef", ENTROPY)):
        told = metrics[f"train/{name}"][0]
        chex.assert_trees_all_equal(told, generation.numbers[path])
    # A mean over examples, which rounds.
    chex.assert_trees_all_close(
        metrics["train/clip_range"][0],
        generation.numbers["terms.surrogate.clip_eps"],
        rtol=1e-6,
    )
    # What is told is what is done: with its old coefficient a copy goes elsewhere.
    other = population.with_numbers(after, {ENTROPY: before[ENTROPY]})
    other, _ = advance(other, updates=1)
    for member in range(5):
        pair = [one(x.runs.learner.params, member) for x in (later, other)]
        (assert_different if COPIED[member] else chex.assert_trees_all_equal)(*pair)


def merged(moments, obs):
    """Count, mean and variance of what was seen and new observations, in float64."""
    count, mean, var = (
        float(np.squeeze(x)) for x in (moments.count, moments.mean, moments.var)
    )
    obs = np.asarray(obs, np.float64).ravel()
    total = count + obs.size
    centre = (count * mean + obs.sum()) / total
    square = (count * (var + mean**2) + (obs**2).sum()) / total
    return total, centre, square - centre**2


lived = jax.jit(learner.lived)


@strategies
def test_normalisers_go_on_after_a_copy(strategy):
    """P11: the parent's statistics and the member's next rollout; drift is told."""
    after, _ = following(strategy)
    later, metrics = advance(after, updates=1)
    for member, parent in enumerate(PARENT):
        _, _, _, steps, _ = lived(one(after.runs, member), Progress.at(0.0))
        known = one(trained().runs.learner.obs_moments, parent)
        moments = one(later.runs.learner.obs_moments, member)
        found = (moments.count, moments.mean[0], moments.var[0])
        chex.assert_trees_all_close(found, merged(known, steps.raw_obs), rtol=1e-5)
    for name in ("mean", "std"):
        drift = metrics[f"debug/vecnormalize_{name}_drift"][0]
        chex.assert_shape(drift, (5,))
        assert (drift > 0).all()


def test_an_evolved_population_is_restored_as_it_was(tmp_path):
    """P2, P5: normalisers, optimisers and statistics of gradients are saved."""
    after, _ = following(Copy())
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(3, after, fitness=5.0, meta={})
    checkpoints.close()
    checkpoints = Checkpointer(tmp_path)
    _, restored, _ = checkpoints.restore(trained())
    checkpoints.close()
    chex.assert_trees_all_equal(after, restored)


def test_nothing_is_compiled_anew():
    """Numbers of members and of the rules are data."""
    members = trained()
    following(Copy())
    compiled = population.advance._cache_size(), population.evolve._cache_size()
    for seed, share in ((5, 0.5), (6, 0.6)):
        pbt = dataclasses.replace(
            EVERYTHING.pbt, optimizer=Copy(), readiness=Readiness(share=share)
        )
        members, _ = evolve(pbt, members, seed)
        members, _ = advance(members)
    again = population.advance._cache_size(), population.evolve._cache_size()
    assert again == compiled


MEMBERS = 6
PLAIN = small(
    obs_clip=10.0,
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy()),
    pbt=PBT({RATE: LogUniform(1e-3, 1e-1)}, size=MEMBERS),
)


@functools.cache
def plain_members():
    members, _ = advance(initial(PLAIN))
    return rated(members, [4.0, 1.0, 3.0, 5.0, 2.0, 6.0])


def with_episodes(members, episodes):
    return counting(members, episodes=jnp.asarray(episodes, jnp.int32))


def with_streaks(members, streaks):
    return counting(members, failure_streak=jnp.asarray(streaks, jnp.int32))


def counting(members, **changes):
    counters = dataclasses.replace(members.runs.counters, **changes)
    runs = dataclasses.replace(members.runs, counters=counters)
    return dataclasses.replace(members, runs=runs)


@pytest.mark.parametrize("strategy", [Copy(), Reinitialize()], ids=repr)
def test_a_learning_rate_of_zero_freezes_exactly_that_member(strategy):
    """P7, P8, P12, R-C4, PROP-17.1: at the very next update, under both strategies."""
    pbt = dataclasses.replace(PLAIN.pbt, explorer=Zero(), optimizer=strategy)
    members, generation = evolve(pbt, plain_members())
    copied = np.asarray(generation.copied)
    chex.assert_trees_all_equal(np.flatnonzero(copied), np.array([1]))
    later, metrics = advance(members, updates=1)
    chex.assert_trees_all_equal(metrics["train/learning_rate"][0, copied], 0)
    for member in range(MEMBERS):
        old, new = (one(m.runs.learner.params, member) for m in (members, later))
        (chex.assert_trees_all_equal if copied[member] else assert_different)(old, new)


MOVED = {
    RATE: 2e-3,
    "optimizer.max_grad_norm": 0.01,
    "optimizer.b1": 0.5,
    "optimizer.b2": 0.9,
    "optimizer.eps": 0.1,
    "gamma": 0.5,
    "gae_lambda": 0.5,
    "obs_clip": 0.1,
    "terms.surrogate.clip_eps": 1e-5,
    "terms.value.coef": 0.1,
    "terms.entropy.coef": 0.5,
}


@pytest.mark.parametrize("begin", range(0, len(MOVED), MEMBERS - 1))
def test_every_number_moves_the_next_update(begin):
    """P12: members that differ in one number differ after one update."""
    paths = list(MOVED)[begin : begin + MEMBERS - 1]
    members = population.init(PLAIN, jnp.repeat(jax.random.key(0)[None], MEMBERS))
    known = numbers(PLAIN)
    values = {
        path: np.where(np.arange(MEMBERS) == member, MOVED[path], known[path])
        for member, path in enumerate(paths, start=1)
    }
    after, _ = advance(population.with_numbers(members, values), updates=2)
    params = after.runs.learner.params
    for member in range(1, 1 + len(paths)):
        assert_different(one(params, 0), one(params, member))


def test_too_few_ready_members_change_nothing():
    """P4: neither weights nor numbers; the tenth round goes ahead with two of them."""
    members = with_episodes(plain_members(), [0, 9, 0, 9, 0, 0])
    assert int(members.waited) == 0
    pbt = dataclasses.replace(PLAIN.pbt, selector=Truncation(ratio=0.5))
    for round_ in range(1, 10):
        after, generation = evolve(pbt, members)
        chex.assert_trees_all_equal(members.runs, after.runs)
        assert int(after.waited) == round_ and not generation.fallback
        assert not generation.copied.any() and not generation.explored.any()
        chex.assert_trees_all_equal(generation.ready, np.array([0, 1, 0, 1, 0, 0]))
        members = after
    after, generation = evolve(pbt, members)
    assert generation.fallback and int(after.waited) == 0
    chex.assert_trees_all_equal(generation.copied, np.array([0, 1, 0, 0, 0, 0]))
    assert generation.parent[1] == 3


def test_a_member_is_ready_once_it_has_ended_episodes():
    """P4: since it last copied; a copy has to end some of its own first."""
    after, generation = evolve(PLAIN.pbt, plain_members())
    assert generation.ready.all()
    _, generation = evolve(PLAIN.pbt, after)
    chex.assert_trees_all_equal(generation.ready, np.array([1, 0, 1, 1, 1, 1]))
    later, _ = advance(after)
    _, generation = evolve(PLAIN.pbt, later)
    assert generation.ready.all()


def test_a_member_stays_ready_however_many_episodes_it_has_ended():
    """P4, R-A8."""
    members = with_episodes(plain_members(), [2**31 - 1] * MEMBERS)
    later, metrics = advance(members)
    assert (metrics["episodes/count"].sum(axis=0) > 0).all()
    _, generation = evolve(PLAIN.pbt, later)
    assert generation.ready.all()


@jax.jit
def broken(members, member):
    """One member's weights are not finite."""
    learner = members.runs.learner
    params = jax.tree.map(lambda x: x.at[member].set(jnp.nan), learner.params)
    learner = dataclasses.replace(learner, params=params)
    runs = dataclasses.replace(members.runs, learner=learner)
    return dataclasses.replace(members, runs=runs)


@pytest.mark.parametrize("fitness", [np.nan, -np.inf, np.inf, 9.0])
def test_a_broken_member_is_healed(fitness):
    """Its weights say that it is broken, whatever its fitness says.

    What that was measured of is gone with it, so the fittest is another one.
    """
    members = broken(rated(plain_members(), [4.0, 1.0, 3.0, 5.0, 2.0, fitness]), 5)
    before = one(members.runs, slice(0, 5))
    members, metrics = advance(members, updates=1)
    assert metrics["error/skipped_steps"][0].tolist() == [0, 0, 0, 0, 0, 4]
    assert_different(before.learner.params, one(members.runs.learner.params, slice(5)))
    after, generation = evolve(PLAIN.pbt, members)
    assert generation.copied[5] and generation.parent[5] == 3
    assert not np.isfinite(generation.fitness[5])
    assert not (generation.parent[:5] == 5).any()
    assert np.isnan(after.fitness[5]) and np.nanargmax(after.fitness) == 3
    assert jax.jit(tree.all_finite)(after.runs.learner)
    _, metrics = advance(after, updates=1)
    chex.assert_trees_all_equal(metrics["error/skipped_steps"][0], 0)


def test_broken_members_are_healed_while_the_others_wait():
    """Half of them are ready, of whom there are to be four fifths."""
    members = plain_members()
    for member in (1, 4, 5):
        members = broken(members, member)
    after, generation = evolve(PLAIN.pbt, members)
    chex.assert_trees_all_equal(generation.copied, np.array([0, 1, 0, 0, 1, 1]))
    assert np.isin(generation.parent[[1, 4, 5]], [0, 2, 3]).all()
    chex.assert_trees_all_equal(generation.explored, generation.copied)
    assert int(after.waited) == 1
    assert jax.jit(tree.all_finite)(after.runs.learner)
    kept = np.array([0, 2, 3])
    chex.assert_trees_all_equal(one(members.runs, kept), one(after.runs, kept))


def test_the_fallback_copies_by_the_default_rules():
    """P4: two of six are ready, of whom a quarter is none."""
    members = with_episodes(plain_members(), [0, 9, 0, 9, 0, 0])
    members = dataclasses.replace(members, waited=jnp.int32(9))
    _, generation = evolve(PLAIN.pbt, members)
    assert generation.fallback
    chex.assert_trees_all_equal(generation.copied, np.array([0, 1, 0, 0, 0, 0]))
    assert generation.parent[1] == 3


def test_a_member_waits_for_a_fitness_that_comes_later():
    """Of episodes none of which has ended; but not if it learned nothing finite."""
    members = rated(plain_members(), [4.0, np.nan, 3.0, 5.0, np.nan, 6.0])
    members = with_streaks(members, [0, 0, 0, 0, 9, 0])
    later = Maximize("rollout/ep_rew_mean")
    pbt = dataclasses.replace(PLAIN.pbt, fitness=later)
    after, generation = evolve(pbt, members)
    chex.assert_trees_all_equal(generation.ready, np.array([1, 0, 1, 1, 0, 1]))
    chex.assert_trees_all_equal(generation.copied, np.array([0, 0, 0, 0, 1, 0]))
    chex.assert_trees_all_equal(np.isnan(generation.fitness), ~generation.ready)
    chex.assert_trees_all_equal(one(members.runs, 1), one(after.runs, 1))
    _, generation = evolve(PLAIN.pbt, members)
    chex.assert_trees_all_equal(generation.copied, np.array([0, 1, 0, 0, 1, 0]))


@pytest.mark.parametrize("metric", ["eval/mean_reward", "rollout/ep_rew_mean"])
def test_a_member_that_learns_nothing_finite_is_no_parent(metric):
    """A policy that says NaN has an evaluation too, here the best; it is healed."""
    members = with_streaks(plain_members(), [0, 0, 0, 0, 0, 1])
    pbt = dataclasses.replace(PLAIN.pbt, fitness=Maximize(metric))
    _, generation = evolve(pbt, members)
    chex.assert_trees_all_equal(generation.ready, np.array([1, 1, 1, 1, 1, 0]))
    chex.assert_trees_all_equal(generation.copied, np.array([0, 0, 0, 0, 0, 1]))
    assert generation.parent[5] == 3 and np.isnan(generation.fitness[5])


def test_a_broken_member_changes_no_bit_of_the_others():
    """Weights, statistics, environments, keys and counters, after three updates."""
    whole, _ = advance(plain_members())
    harmed, _ = advance(broken(plain_members(), 5))
    assert_different(one(whole.runs, 5), one(harmed.runs, 5))
    for member in range(5):
        chex.assert_trees_all_equal(one(whole.runs, member), one(harmed.runs, member))


def test_nobody_to_copy_is_nobody_copies():
    """Not one fitness is finite, as before the first evaluation."""
    members = rated(plain_members(), [np.nan] * MEMBERS)
    after, generation = evolve(PLAIN.pbt, members)
    chex.assert_trees_all_equal(members.runs, after.runs)
    chex.assert_trees_all_equal(generation.parent, np.arange(MEMBERS))


@jax.jit
def permuted(members, order):
    return Population(
        tree.take(members.runs, order), members.fitness[order], members.waited
    )


def test_the_order_of_members_means_nothing():
    """Permuting members and keys permutes what becomes of them; same keys, same."""
    keys = jax.random.split(jax.random.key(7), MEMBERS)
    after, generation = evolve(PLAIN.pbt, plain_members(), keys=keys)
    again, _ = evolve(PLAIN.pbt, plain_members(), keys=keys)
    chex.assert_trees_all_equal(after, again)
    order = np.array([3, 1, 5, 0, 4, 2])
    moved, shuffled = evolve(
        PLAIN.pbt, permuted(plain_members(), order), keys=keys[order]
    )
    chex.assert_trees_all_equal(permuted(after, order), moved)
    chex.assert_trees_all_equal(order[shuffled.parent], generation.parent[order])
    later, _ = advance(permuted(plain_members(), order))
    straight, _ = advance(plain_members())
    for a, b in zip(
        jax.tree.leaves(permuted(straight, order).runs.learner.params),
        jax.tree.leaves(later.runs.learner.params),
        strict=True,
    ):
        chex.assert_trees_all_close(a, b, rtol=0, atol=1e-6)


def test_members_with_their_own_numbers_equal_separate_runs():
    """PROP-21.7: for ten updates."""
    members = initial(PLAIN)
    member = jax.jit(population.member)
    alone = [member(members, 0), member(members, 3)]
    for _ in range(3):
        members, _ = advance(members)
    members, _ = advance(members, updates=1)
    for run, i in zip(alone, (0, 3), strict=True):
        for updates in (3, 3, 3, 1):
            run, _ = advance(run, updates)
        for a, b in zip(
            jax.tree.leaves(run.runs.learner.params),
            jax.tree.leaves(one(members.runs.learner.params, slice(i, i + 1))),
            strict=True,
        ):
            chex.assert_trees_all_close(a, b, rtol=0, atol=1e-5)


def in_groups(fewest_steps, members):
    """Three updates, of minibatches of 16 steps, before they are compiled."""
    learn = functools.partial(population.phase, fewest_steps=fewest_steps)
    return jax.jit(learn).trace(members, *at_most_three(3))


def loops(traced):
    """How often loops over groups of six members go round."""
    text = str(traced.jaxpr)
    return [n for n in (6, 3) if f"length={n}\n" in text]


@pytest.mark.parametrize(("fewest_steps", "groups"), [(1, 6), (17, 3)])
def test_members_learn_the_same_one_group_after_the_other(fewest_steps, groups):
    """Six members, in a loop over their groups."""
    members = initial(PLAIN)
    traced = in_groups(fewest_steps, members)
    assert loops(traced) == [groups]
    apart, _ = traced.lower().compile()(members, *at_most_three(3))
    together, _ = advance(members)
    for a, b in zip(
        jax.tree.leaves(apart.runs.learner.params),
        jax.tree.leaves(together.runs.learner.params),
        strict=True,
    ):
        chex.assert_trees_all_close(a, b, rtol=0, atol=1e-5)


def test_members_who_are_too_few_learn_together():
    """All six have 96 steps: it is the program without groups."""
    few, together = (in_groups(steps, initial(PLAIN)) for steps in (97, 0))
    assert not loops(few)
    assert str(few.jaxpr) == str(together.jaxpr)


NEAR_ONE = {"gamma": Uniform(0.9, 0.999), "gae_lambda": NearOne(0.8, 0.999)}
RECIPE = {
    RATE: LogUniform(1e-5, 5e-4),
    "terms.surrogate.clip_eps": Uniform(0.05, 0.3, factor=1.1, resample=0.2),
}


@functools.cache
def searched():
    """Rules by which all members move."""
    with pytest.warns(UserWarning, match="gamma: two steps by its factor cross"):
        return PBT(
            NEAR_ONE | RECIPE,
            size=MEMBERS,
            movers=Everyone(),
            readiness=Readiness(min_episodes=0.0),
        )


def test_survivors_may_explore():
    """As an option: all numbers of a generation move, and no weights but copies'."""
    after, generation = evolve(searched(), plain_members())
    assert generation.explored.all()
    before = plain_members().runs.learner
    rate = after.runs.learner.config.optimizer.learning_rate
    assert (rate != before.config.optimizer.learning_rate).all()
    kept = np.flatnonzero(~generation.copied)
    chex.assert_trees_all_equal(
        one(before.params, kept), one(after.runs.learner.params, kept)
    )


@functools.cache
def explored():
    """Numbers `[G, P]` before and after generations in which all members move."""
    pbt = searched()
    members = initial(dataclasses.replace(PLAIN, pbt=pbt))
    before, after = [], []
    for seed in range(107):
        members = rated(members, np.random.default_rng(seed).permutation(MEMBERS))
        numbers = pbt.space.read(members.runs.learner.config)
        members, generation = evolve(pbt, members, seed)
        assert generation.explored.all()
        before.append(tree.take(numbers, generation.parent))
        after.append(generation.numbers)
    return [jax.tree.map(lambda *x: np.stack(x), *each) for each in (before, after)]


@pytest.mark.parametrize("path", NEAR_ONE)
def test_numbers_near_one_are_searched_between_their_ends(path):
    """Many of them, in all parts of the range on its own scale, and none stays."""
    range_, found = NEAR_ONE[path], explored()[1][path]
    low, high = np.float32(range_.ends)
    assert ((found >= low) & (found <= high)).all()
    assert len(np.unique(found)) > 100
    at_end = (found == low) | (found == high)
    assert at_end.mean() < 0.3
    assert not at_end[-8:].all(axis=0).any()
    scale = np.log if path == "gae_lambda" else np.asarray
    parts = scale(1 - found.astype(np.float64))
    ends = scale(1 - np.array(range_.ends))
    share = np.histogram(parts, 5, (ends.min(), ends.max()))[0] / parts.size
    assert share.min() > 0.05


@pytest.mark.parametrize("path", RECIPE)
def test_the_recipe_s_numbers_move_by_their_factors(path):
    """v · f or v / f, clipped; the others were drawn anew, a quarter or a fifth."""
    range_, (before, after) = RECIPE[path], (each[path] for each in explored())
    moves = [before * range_.factor, before / range_.factor]
    near = [np.isclose(after, np.clip(move, *range_.ends), 1e-5) for move in moves]
    assert abs(1 - np.mean(near[0] | near[1]) - range_.resample) < 0.05
    inside = (before > range_.low * 1.2) & (before < range_.high / 1.2)
    assert abs(np.mean(near[0][inside]) - np.mean(near[1][inside])) < 0.1


def test_a_number_that_is_not_searched_stays_its_members_own():
    """P9: also the learning rate, of which a warning tells at construction."""
    space = {"terms.surrogate.clip_eps": Uniform(0.05, 0.3)}
    with pytest.warns(UserWarning, match="without optimizer.learning_rate"):
        config = small(pbt=PBT(space, size=MEMBERS))
    rates = np.float32([1e-4, 2e-4, 3e-4, 4e-4, 5e-4, 6e-4])
    members, _ = advance(population.with_numbers(initial(PLAIN), {RATE: rates}))
    after, generation = evolve(config.pbt, rated(members, np.arange(MEMBERS)))
    assert generation.copied.any()
    _, metrics = advance(after, updates=1)
    chex.assert_trees_all_equal(metrics["train/learning_rate"][0], rates)


@component
class Nobody(Selector):
    def __call__(self, fitness, ready, keys):
        return jnp.arange(fitness.size)


@component
class All(Movers):
    def __call__(self, copied, proceed):
        return proceed


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"selector": Nobody()}, r"Nobody: expected pbt\.Selection\(parent, copied\)"),
        ({"movers": All()}, r"All: expected the shape \(5,\), bool per member"),
    ],
)
def test_rules_are_asked_for_something_of_each_member(rule, said):
    config = small(pbt=PBT({RATE: SPACE[RATE]}, size=5, **rule))
    members = jax.eval_shape(initial, config)
    keys = jax.random.split(jax.random.key(0), 5)
    with pytest.raises(Misfit, match=f"^{said}"):
        jax.eval_shape(population.evolve, config.pbt, members, keys)
