"""How a run begins; whole runs are in `tests/runs`."""

from types import SimpleNamespace

import chex
import numpy as np
import pytest
from brief import experiment

from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.errors import Misfit
from ppo_jax.host.loop import training
from ppo_jax.pbt import PBT
from ppo_jax.pbt.ranges import LogUniform, Uniform
from ppo_jax.ppo.population import Generation

SPACE = {"optimizer.learning_rate": LogUniform(1e-4, 1e-2), "gamma": Uniform(0.5, 1.0)}


def searching(size=4, interval=5, **changes):
    changes["pbt"] = PBT(SPACE, size=size, interval=interval)
    return experiment(IdenticalRewards(), **changes)


def test_members_begin_with_numbers_of_their_own():
    """Drawn from their ranges; the same for the same seed, and others for another."""
    config = searching(seed=3)
    begun = training.start(config)
    chex.assert_tree_shape_prefix(begun.runs, (4,))
    assert np.isnan(begun.fitness).all() and begun.waited == 0
    numbers = config.pbt.space.read(begun.runs.learner.config)
    for path, range_ in config.pbt.space.ranges:
        drawn, (low, high) = numbers[path], range_.ends
        assert len(np.unique(drawn)) == 4
        assert ((drawn >= np.float32(low)) & (drawn <= np.float32(high))).all()
    chex.assert_trees_all_equal(training.start(config), begun)
    other = training.start(searching(seed=4)).runs.learner.config
    assert (config.pbt.space.read(other)["gamma"] != numbers["gamma"]).all()


def test_a_single_run_is_a_population_of_one():
    begun = training.start(experiment(IdenticalRewards()))
    chex.assert_shape(begun.fitness, (1,))
    assert begun.runs.learner.config.gamma.tolist() == [np.float32(0.99)]


def test_a_run_ends_where_a_parent_is_no_member():
    """Whose lineage is then not written."""
    generation = Generation(np.int32([0, 1, 2, 4]), *[None] * 6)
    layout = SimpleNamespace(evolve=lambda *_: (None, generation), fetch=lambda x: x)
    with pytest.raises(Misfit, match=r"^Truncation: expected parents from 0 to 3, got"):
        training._evolve(searching(), layout, None, 5, None)
