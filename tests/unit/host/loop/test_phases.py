"""How long phases are, and that it does not matter in how many calls they are done."""

import dataclasses
import itertools
import math

import chex
import jax
import pytest
from brief import experiment

from ppo_jax import Config, networks, optimizers, schedules, terms
from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.host.devices import mesh
from ppo_jax.host.loop import phases, training
from ppo_jax.pbt import PBT
from ppo_jax.pbt.ranges import LogUniform


def searching(interval, **changes):
    changes["pbt"] = PBT(
        {"optimizer.learning_rate": LogUniform(1e-4, 1e-2)}, size=4, interval=interval
    )
    return experiment(IdenticalRewards(), **changes)


@pytest.mark.parametrize(
    ("updates", "wished", "interval", "length"),
    [
        (6, 2, None, 2),
        (6, 0, None, 1),
        (450, 0, None, 4),
        (6, 100, None, 100),
        (6, 4, 6, 3),
        (7, 4, 7, 4),
        (10, 4, 10, 4),
        (6, 9, 6, 6),
        (1200, 0, 8, 8),
        (110_000, 0, 1009, 253),
        (110_000, 0, 514, 172),
        (25_700, 0, None, 256),
        (1_000_000, 0, None, 256),
        (1_000_000, 300, None, 300),
    ],
)
def test_a_phase_is_as_long_as_wished_or_divides_the_interval(
    updates, wished, interval, length
):
    """By default 1 % of the run, or 256; as few of them as go fill an interval."""
    fields = {"total_timesteps": 64 * updates, "phase_updates": wished}
    config = (
        experiment(IdenticalRewards(), **fields)
        if interval is None
        else searching(interval=interval, **fields)
    )
    assert phases.length(config) == length


@pytest.mark.parametrize("interval", [1, 2, 7, 10, 13, 24])
@pytest.mark.parametrize("wished", [1, 3, 7, 10, 40])
def test_an_interval_ends_a_phase(wished, interval):
    """Of as few phases as can be, none is longer than wished, one at most shorter."""
    fields = {"total_timesteps": 64 * interval, "phase_updates": wished}
    config = searching(interval=interval, **fields)
    rhythm = phases.Rhythm.of(config)
    ends = [0]
    while ends[-1] < 3 * interval:
        ends.append(rhythm.end(ends[-1]))
    lengths = [late - early for early, late in itertools.pairwise(ends)]
    fewest = math.ceil(interval / wished)
    assert lengths[:fewest] * 3 == lengths and sum(lengths[:fewest]) == interval
    assert {*lengths[: fewest - 1]} <= {max(lengths)} and max(lengths) <= wished
    assert [rhythm.count(done) for done in ends] == [*range(len(ends))]
    # What goes on in the middle of a phase ends it where it would have ended.
    begun = ends[:-1]
    for done in range(3 * interval):
        assert rhythm.end(done) == ends[sum(x <= done for x in begun)]
    # An experiment without the population has its phases, if told its interval.
    alone = experiment(IdenticalRewards(), phase_updates=rhythm.length)
    assert phases.Rhythm.of(alone, interval) == rhythm


@pytest.mark.parametrize(
    ("num_envs", "members", "updates"),
    [(64, 1, 32), (64, 3, 10), (1, 1, 100), (2048, 1, 4), (2048, 4, 4)],
)
def test_a_call_on_cpus_learns_from_a_bounded_number_of_steps(
    num_envs, members, updates
):
    """Of 2²⁰, or four updates: 4 epochs of 128 steps of 64 environments are a 32nd."""
    config = Config("CartPole-v1", num_envs=num_envs, phase_updates=100)
    assert phases.at_once(config, members) == updates
    one = dataclasses.replace(config, phase_updates=1)
    assert phases.at_once(one, members) == 1


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_a_call_elsewhere_is_a_phase(platform, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    config = Config("CartPole-v1", num_envs=2048, phase_updates=100)
    assert phases.at_once(config, 8) == 100


@pytest.mark.parametrize(
    ("wished", "members", "updates"),
    [(1, 1, 256), (256, 1, 256), (257, 1, 512), (1, 3, 128), (9, 64, 16), (1, 300, 1)],
)
def test_short_calls_have_the_same_room(wished, members, updates, monkeypatch):
    """A power of two, and 256 of all members at least, or nearly as many."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    config = Config("CartPole-v1", phase_updates=wished)
    assert phases.room(config, members) == updates


def test_a_phase_is_the_same_in_one_call_and_in_some(monkeypatch):
    """To the bit, though numbers follow schedules; the last call is a short one.

    Nor does it matter for how many updates a call has room.
    """
    config = searching(
        interval=7,
        phase_updates=7,
        total_timesteps=64 * 14,
        network=networks.ActorCritic(torso=networks.Mlp(hidden=())),
        optimizer=optimizers.Adam(schedule=schedules.Linear()),
        terms=(terms.Surrogate(),),
    )

    layout = mesh.layout_of(config, 4)
    begin = layout.making(training.start, config)

    def trained(most, room):
        monkeypatch.setattr(phases, "ROOM", 4 * room)
        learned = 4 * config.steps_per_update * config.num_epochs
        monkeypatch.setattr(phases, "STEPS_OF_A_CALL", {"cpu": most * learned})
        monkeypatch.setattr(phases, "UPDATES_OF_A_CALL", 1)
        assert phases.at_once(config, 4) == most
        assert phases.room(config, 4) == room
        return phases.advance(config, layout, begin(), 3, 10)

    members, history = trained(most=7, room=32)
    chex.assert_tree_shape_prefix(history, (7, 4))
    again = trained(most=3, room=4)
    chex.assert_trees_all_equal(again, (members, history))
