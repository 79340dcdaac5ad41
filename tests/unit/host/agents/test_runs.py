"""Runs on disk: which member is meant, and how far it was."""

import dataclasses
import json
from types import SimpleNamespace

import chex
import jax
import numpy as np
import pytest
from brief import experiment

from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.host.agents import runs
from ppo_jax.host.loop import training
from ppo_jax.host.run_dir import script
from ppo_jax.host.run_dir.checkpoint import Checkpointer, CheckpointError
from ppo_jax.host.run_dir.description import describe
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.host.run_dir.storing import store

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


@pytest.mark.parametrize(
    ("fitness", "asked", "said"),
    [
        (
            [np.nan, np.inf],
            None,
            "no member has a finite evaluation; it is member 0 of 2",
        ),
        ([np.nan, np.inf], 1, ""),
        ([np.nan, 1.0], None, ""),
        ([np.nan], None, ""),
    ],
)
def test_nobody_is_the_fittest_without_an_evaluation(fitness, asked, said, capsys):
    runs.choose(restored(fitness), asked)
    assert capsys.readouterr().err == (f"warning: {said}\n" if said else "")


@pytest.mark.parametrize("asked", [-1, 2])
def test_a_member_that_there_is_not_is_said(asked):
    with pytest.raises(ExperimentError, match=f"expected 0 to 1, got {asked}"):
        runs.choose(restored([1.0, 2.0]), asked)


def test_steps_are_those_of_each_member():
    assert restored([1.0]).steps == 3 * 64


def test_a_directory_of_many_runs_is_said_and_left_as_it_is(tmp_path):
    """Nor is anything written where nothing was saved."""
    store(tmp_path, {script.KEPT: TEXT.encode()}, [], CONFIG)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(CheckpointError, match="no checkpoint was saved"):
        runs.restore(tmp_path, "ppo_jax.evaluate")
    assert sorted(tmp_path.iterdir()) == before
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(ExperimentError, match=r"holds a sweep; ppo_jax\.load_all"):
        runs.restore(tmp_path, "ppo_jax.evaluate")


def test_another_structure_than_that_of_training_is_warned_of(tmp_path, capsys):
    """In one line; numbers and budgets are as they are given."""
    store(
        tmp_path,
        {script.KEPT: TEXT.encode()},
        [],
        dataclasses.replace(CONFIG, num_epochs=3),
    )
    described = json.loads((tmp_path / "config.json").read_text())
    described["gamma"]["value"] = "0.5"
    (tmp_path / "config.json").write_text(json.dumps(described))
    checkpoints = Checkpointer(tmp_path)
    meta = {"config": described, "lineage": []}
    checkpoints.save(4, training.start(CONFIG), 0.0, meta)
    checkpoints.close()
    assert runs.restore(tmp_path, "ppo_jax.evaluate").config == CONFIG
    said = "the experiment is not as it was trained: num_epochs: 3 -> 2"
    assert capsys.readouterr().err == f"warning: {tmp_path}: {said}\n"


def test_a_run_is_restored_with_its_experiment_and_its_generations(tmp_path, capsys):
    store(tmp_path, {script.KEPT: TEXT.encode()}, ["--seed", "5"], CONFIG)
    population = training.start(CONFIG)
    lineage = [{"numbers": {"terms.0.clip_eps": 1.0}}]
    description = describe(CONFIG) | {"terms.0.type": {"value": "Surrogate"}}
    checkpoints = Checkpointer(tmp_path)
    meta = {"config": description, "lineage": lineage}
    checkpoints.save(4, population, 0.0, meta)
    checkpoints.close()
    found = runs.restore(tmp_path, "ppo_jax.evaluate")
    learner = found.population.runs.learner  # A device may be too small for all.
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(learner))
    assert (found.update, found.config.seed, found.steps) == (4, 5, 4 * 64)
    assert found.lineage == [{"numbers": {"terms.surrogate.clip_eps": 1.0}}]
    chex.assert_trees_all_equal(
        found.population.runs.learner.params, population.runs.learner.params
    )
    assert capsys.readouterr().err == ""
