"""How a run begins; whole runs are in `tests/runs`."""

import chex
import numpy as np
from brief import experiment

from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.host.loop import training
from ppo_jax.pbt import PBT
from ppo_jax.pbt.ranges import LogUniform, Uniform

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
