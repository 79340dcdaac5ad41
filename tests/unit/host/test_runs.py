"""Runs on disk: which member is meant, and how far it was."""

from types import SimpleNamespace

import chex
import numpy as np
import pytest
from brief import experiment

from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.host import runs, script, training
from ppo_jax.host.checkpoint import Checkpointer
from ppo_jax.host.description import describe
from ppo_jax.host.experiment import ExperimentError, store

TEXT = """
from brief import experiment
from ppo_jax.envs.probes import IdenticalRewards

config = experiment(IdenticalRewards())
"""
CONFIG = experiment(IdenticalRewards())


def restored(fitness):
    population = SimpleNamespace(fitness=np.asarray(fitness, np.float32))
    return runs.Restored(CONFIG, 3, population, [], {})


@pytest.mark.parametrize(
    ("fitness", "asked", "chosen"),
    [
        ([1.0, 3.0, 2.0], None, 1),
        ([np.inf, np.nan, 2.0], None, 2),
        ([np.nan, np.nan], None, 0),
        ([1.0, 3.0, 2.0], 0, 0),
        ([1.0, 3.0, 2.0], 2, 2),
    ],
)
def test_the_fittest_plays_unless_another_is_asked_for(fitness, asked, chosen):
    assert runs.choose(restored(fitness), asked) == chosen


@pytest.mark.parametrize("asked", [-1, 2])
def test_a_member_that_there_is_not_is_said(asked):
    with pytest.raises(ExperimentError, match=f"expected 0 to 1, got {asked}"):
        runs.choose(restored([1.0, 2.0]), asked)


def test_steps_are_those_of_each_member():
    assert restored([1.0]).steps == 3 * 64


def test_a_run_is_restored_with_its_experiment_and_its_generations(tmp_path):
    store(tmp_path, {script.KEPT: TEXT}, ["--seed", "5"], CONFIG)
    population = training.start(CONFIG)
    lineage = [{"numbers": {"terms.0.clip_eps": 1.0}}]
    description = describe(CONFIG) | {"terms.0.type": {"value": "Surrogate"}}
    checkpoints = Checkpointer(tmp_path)
    meta = {"config": description, "lineage": lineage}
    checkpoints.save(4, population, 0.0, meta)
    checkpoints.close()
    found = runs.restore(tmp_path, "ppo_jax.evaluate")
    assert (found.update, found.config.seed, found.steps) == (4, 5, 4 * 64)
    assert found.lineage == [{"numbers": {"terms.surrogate.clip_eps": 1.0}}]
    chex.assert_trees_all_equal(
        found.population.runs.learner.params, population.runs.learner.params
    )
