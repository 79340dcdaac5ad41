"""Members grouped into programs, and each as if it were trained alone."""

import dataclasses

import chex
import jax
import pytest
from brief import experiment
from runs import ENVIRONMENT, python

from ppo_jax import PBT, LogUniform, Uniform, envs
from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.host.devices import mesh
from ppo_jax.host.loop import training
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.sweeps import cohorts
from ppo_jax.sweeps.cohorts import Member

CONFIG = experiment(IdenticalRewards())
MEMBERS = [
    Member(0, 5, CONFIG),
    Member(1, 6, dataclasses.replace(CONFIG, gamma=0.5)),
    Member(2, 5, dataclasses.replace(CONFIG, gamma=0.25)),
]


def test_members_of_one_structure_share_a_program():
    """In the order in which they come; other numbers are no other structure."""
    other = Member(3, 5, dataclasses.replace(CONFIG, num_epochs=3))
    found = cohorts.group([other, *MEMBERS])
    assert [[member.setting for member in each] for each in found] == [[3], [0, 1, 2]]


@pytest.mark.parametrize(
    ("count", "size", "want"),
    [
        (4, 2, [[0, 1], [2, 3]]),
        (5, 3, [[0, 1, 2], [3, 4, 4]]),
        (1, 3, [[0, 0, 0]]),
        (3, 5, [[0, 1, 2, 2, 2]]),
    ],
)
def test_batches_are_of_one_size(count, size, want):
    assert cohorts.split(list(range(count)), size) == want


@pytest.mark.parametrize(
    ("room", "count", "size", "asked"),
    [
        (100, 8, 8, [8]),
        (79, 8, 4, [8, 4]),
        (30, 8, 3, [8, 3]),
        (30, 7, 3, [7, 3]),
        (25, 5, 2, [5, 2]),
        (9, 8, 1, [8, 1]),
    ],
)
def test_as_many_go_together_as_there_is_room_for(
    room, count, size, asked, monkeypatch
):
    """Of ten bytes each; batches are as equal as they can be, and one is the least."""
    sizes = []

    def memory(members):
        sizes.append(len(members))
        return 10 * len(members)

    monkeypatch.setattr(cohorts, "memory", memory)
    found = cohorts.largest_batch([MEMBERS[0]] * count, room)
    assert found == (size, 10 * size) and sizes == asked


@pytest.mark.parametrize(
    ("changes", "sizes"),
    [
        ("", [1, 2, 3, 4, 6, 6, 8, 8, 9, 12]),
        ("num_envs=64", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),  # Cores share a member.
        ("stop_at={'eval/mean_reward': 1}", [*range(1, 11)]),
    ],
)
def test_members_are_repeated_where_devices_would_be_idle(changes, sizes):
    """Four: of five members one device would have all, of nine three have three."""
    code = f"""
from ppo_jax import Config
from ppo_jax.sweeps import cohorts
config = Config("CartPole-v1", {changes})
print([cohorts.even(config, count) for count in range(1, 11)])
"""
    environment = ENVIRONMENT | {"JAX_NUM_CPU_DEVICES": "4"}
    assert python(code, environment) == str(sizes)


def test_what_a_compiler_refuses_is_split(monkeypatch):
    """As a program of twice the room; a single member's is refused for good."""
    sizes = []

    def memory(members):
        sizes.append(len(members))
        if len(members) > limit:
            raise jax.errors.JaxRuntimeError(said)
        return 10 * len(members)

    monkeypatch.setattr(cohorts, "memory", memory)
    said, limit = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm", 3
    assert cohorts.largest_batch([MEMBERS[0]] * 8, 1000) == (2, 20)
    assert sizes == [8, 4, 2]
    limit = 0
    with pytest.raises(jax.errors.JaxRuntimeError, match="hbm"):
        cohorts.largest_batch([MEMBERS[0]] * 8, 1000)
    said, limit = "INTERNAL: something else", 3
    with pytest.raises(jax.errors.JaxRuntimeError, match="else"):
        cohorts.largest_batch([MEMBERS[0]] * 8, 1000)


def test_each_begins_as_if_it_were_trained_alone():
    begun = cohorts.begin(MEMBERS)()
    chex.assert_shape(begun.fitness, (3,))
    for i, member in enumerate(MEMBERS):
        alone = training.start(dataclasses.replace(member.config, seed=member.seed))
        one = jax.tree.map(lambda x, i=i: x[i : i + 1], begun.runs)
        chex.assert_trees_all_equal(one, alone.runs)


def test_other_numbers_and_seeds_are_made_by_the_same_program():
    """Which the next sweep finds, by the name of what makes them."""
    others = [
        Member(9, x.seed + 1, dataclasses.replace(x.config, gamma=0.75))
        for x in MEMBERS
    ]
    layout = mesh.layout_of(CONFIG, 3)
    made = [layout.making(cohorts.begin(each), CONFIG) for each in (MEMBERS, others)]
    first, second = (making.lower().as_text() for making in made)
    assert first == second and made[0].name == made[1].name != ""


def test_a_metric_to_stop_at_is_one_of_the_row_that_members_share():
    """Of several there is the best one too; that of one is its own."""
    goals = {"best/eval/mean_reward": 1.0}
    config = dataclasses.replace(CONFIG, stop_at=goals)
    cohorts.require_known([[Member(0, seed, config) for seed in (0, 1)]])
    with pytest.raises(ExperimentError, match="stop_at: no metric is called 'best/eva"):
        cohorts.require_known([[Member(0, 0, CONFIG)] * 2, [Member(1, 0, config)]])


def test_the_memory_of_populations_is_that_of_all_their_members(monkeypatch):
    """Also if they search for numbers of a simulator, which their programs lack."""
    walk = envs.Gymnasium("gyms:Walk-v0", params={"bonus": 0.0})
    space = {
        "env.params.bonus": Uniform(0.5, 1.0),
        "optimizer.learning_rate": LogUniform(1e-4, 1e-2),
    }
    config = experiment(walk, pbt=PBT(space, size=4, interval=6), phase_updates=5)
    found = []

    class Planned(Exception):
        pass

    def needed(config, layout, shapes):
        found.extend((config, shapes))
        raise Planned

    monkeypatch.setattr(cohorts.readiness, "needed", needed)
    with pytest.raises(Planned):
        cohorts.memory([Member(0, seed, config) for seed in range(2)])
    planned, shapes = found
    assert planned.pbt is None and planned.phase_updates == 3
    chex.assert_tree_shape_prefix(shapes.runs, (8,))
