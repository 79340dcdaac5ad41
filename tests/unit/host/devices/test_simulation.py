"""Members whose environments are stepped on the host learn as those in one program."""

import dataclasses
from contextlib import closing

import chex
import gyms
import jax
import numpy as np
import pytest
import twins

from ppo_jax import Config, envs, networks, opponents, optimizers, terms
from ppo_jax.host.devices import mesh, simulation, streams
from ppo_jax.host.process.distributed import JobError
from ppo_jax.ppo import population as populations
from ppo_jax.schedules import Progress

SIMPLE = Config(
    envs.Gymnasium("Walk-v0"),
    num_envs=4,
    num_steps=8,
    num_minibatches=2,
    num_epochs=2,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(8,)), shared=True),
    optimizer=optimizers.Sgd(),
    terms=(terms.Surrogate(), terms.Value()),
    total_timesteps=32 * 8,
    eval_episodes=3,
)
CONFIG = dataclasses.replace(
    SIMPLE,
    env=envs.Gymnasium("Fenced-v0", params={"fault": 0.0, "bonus": 0.0}),
    chunk_length=4,
    obs_clip=5.0,
    opponent=opponents.Opponent(share=0.5),
    network=dataclasses.replace(SIMPLE.network, memory=networks.Gru(size=4)),
)
"""What is forbidden, costs, a memory in chunks, statistics and an opponent."""
SIZE, UPDATES = 2, 2
PROGRESS = Progress.of(np.arange(UPDATES), 8)
TWINS = [(CONFIG, twins.OursFenced()), (SIMPLE, twins.Ours())]


def members(config, **numbers):
    found = populations.init(config, streams.members(0, SIZE))
    return populations.with_numbers(
        found, {f"env.params.{name}": value for name, value in numbers.items()}
    )


def advanced(layout, population, count):
    """As a run goes on: members lie where the layout has them."""
    return layout.advance(layout.place(population), PROGRESS, np.int32(count))


def learned(population, layout=None):
    """What becomes of members in two updates: learners, actors, counters, metrics."""
    config = population.runs.learner.config
    with closing(layout or simulation.layout_of(config, SIZE)) as layout:
        population, history = layout.fetch(advanced(layout, population, UPDATES))
    runs = population.runs
    actor = dataclasses.replace(runs.actor, env_state=())
    learner = dataclasses.replace(runs.learner, config=None)
    return learner, actor, runs.counters, history.unpack()


@pytest.fixture(scope="module")
def hosts():
    """A layout whose programs are made once; who closes it ends its simulators."""
    return simulation.layout_of(CONFIG, SIZE)


@pytest.fixture(scope="module")
def plain(hosts):
    """What becomes of members in whose simulators there is nothing odd."""
    return learned(members(CONFIG), hosts)


@pytest.mark.parametrize(("config", "twin"), TWINS)
def test_what_is_learned_is_what_one_program_learns(plain, config, twin):
    """Members, truncations and two rollouts in a row."""
    host = plain if config == CONFIG else learned(members(config))
    device = learned(members(dataclasses.replace(config, env=twin)))
    chex.assert_trees_all_close(host, device, rtol=2e-4, atol=2e-6)
    _, _, counters, metrics = host
    assert (metrics["episodes/count"] > 0).all() and (counters.quarantined == 0).all()
    assert (metrics["costs/sum"] > 0).all() == (config == CONFIG)


@pytest.mark.parametrize(("config", "twin"), TWINS)
def test_what_is_played_is_what_one_program_plays(config, twin):
    learners, ours = (
        members(dataclasses.replace(config, env=env)).runs.learner
        for env in (config.env, twin)
    )
    key, one = streams.evaluation(0, 1), mesh.on_one_device()
    with closing(simulation.on_one_device(config)) as layout:
        for how in ((3, False), (3, True)):
            host = layout.run_episodes(learners, key, *how)
            device = jax.device_get(one.run_episodes(ours, key, *how))
            chex.assert_trees_all_close(host, device, rtol=1e-6)


def test_the_same_key_is_the_same_run(plain, hosts):
    chex.assert_trees_all_equal(plain, learned(members(CONFIG), hosts))


def test_members_have_simulators_with_the_numbers_that_they_have(plain, hosts):
    mixed = learned(members(CONFIG, bonus=np.array([0.0, 64.0])), hosts)
    usual, own = (x[-1]["episodes/return_sum"] for x in (plain, mixed))
    chex.assert_trees_all_equal(own[:, 0], usual[:, 0])
    assert (own[:, 1] > 64).all()


def test_numbers_that_change_are_those_of_the_next_steps(hosts):
    """As after a generation: other simulators, in which episodes begin anew."""
    with closing(hosts) as layout:
        population, _ = advanced(layout, members(CONFIG), 1)
        changed = populations.with_numbers(population, {"env.params.bonus": 64.0})
        population, metrics = advanced(layout, changed, 1)
        count = metrics["episodes/count"]
        assert (metrics["episodes/return_sum"] > 60 * count).all() and count.all()
        lengths = metrics["episodes/length_sum"]
        assert (lengths <= gyms.LIMIT * count).all()
        assert (metrics["episodes/return_sum"] < 68 * lengths).all()


@pytest.mark.parametrize("fault", [gyms.NAN_REWARD, gyms.NAN_OBS])
def test_what_is_not_finite_is_quarantined_and_starts_anew(plain, hosts, fault):
    """One member is ill, the other does not know. Its observations are finite
    again after the rollout; its faults last for as long as the simulators do."""
    ill = learned(members(CONFIG, fault=np.array([0.0, fault])), hosts)
    healthy, broken = (jax.tree.map(lambda x: x[0], x[:3]) for x in (plain, ill))
    chex.assert_trees_all_equal(healthy, broken)
    assert ill[2].quarantined[0] == 0 < ill[2].quarantined[1]
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(ill[0].params))


def test_one_device_of_one_process_has_them():
    shared = dataclasses.replace(CONFIG, devices_per_member=2)
    with pytest.raises(JobError, match=r"devices_per_member = 2: expected 1 or None"):
        simulation.layout_of(shared, SIZE)
