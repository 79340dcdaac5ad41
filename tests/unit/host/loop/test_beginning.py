"""What a run begins with, or goes on with."""

import dataclasses

import chex
import jax
import numpy as np
import pytest
from brief import experiment

from ppo_jax.component.paths import replace
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.host.devices.mesh import on_one_device
from ppo_jax.host.loop import beginning, training
from ppo_jax.host.process.console import NORMAL, QUIET, Console
from ppo_jax.host.run_dir.description import describe
from ppo_jax.host.run_dir.recording import Memory
from ppo_jax.pbt import PBT
from ppo_jax.pbt.ranges import Uniform
from ppo_jax.sweeps import cohorts


class Kept(Memory):
    """A record that has a checkpoint."""

    resumes = True

    def __init__(self, saved):
        self._saved = saved

    def restore(self, template, make):
        return self._saved


def fail(config, seed):
    pytest.fail("members were made")


def test_only_what_is_searched_has_a_lineage():
    space = {"optimizer.learning_rate": Uniform(0.1, 0.2)}
    config = experiment(TimeLimitChain(limit=5), pbt=PBT(space, size=4))
    population = training.start(config)
    (line,) = beginning.lineage_of(config, population)
    rates = population.runs.learner.config.optimizer.learning_rate
    np.testing.assert_array_equal(line["numbers"]["optimizer.learning_rate"], rates)
    alone = experiment(TimeLimitChain(limit=5))
    assert beginning.lineage_of(alone, training.start(alone)) == []


def test_a_run_goes_on_with_numbers_that_are_given_anew():
    """Those that are as they were stay those of the checkpoint."""
    before = experiment(TimeLimitChain(limit=5), gamma=0.9, gae_lambda=0.5)
    population = jax.tree.map(lambda x: x, training.start(before))
    saved = 3, population, {"config": describe(before), "lineage": [], "streaks": {}}
    now = dataclasses.replace(before, gamma=0.7)
    blank, layout = training.start(now), on_one_device()
    begun = beginning.begun(now, layout, blank, Kept(saved), Console(QUIET), fail)
    assert begun.done == 3
    numbers = begun.population.runs.learner.config
    np.testing.assert_allclose(numbers.gamma, [0.7])
    np.testing.assert_allclose(numbers.gae_lambda, [0.5])
    fresh = beginning.begun(now, layout, blank, Memory(), Console(QUIET), fail)
    assert fresh.done == 0 and fresh.population is blank


def test_without_a_checkpoint_members_are_made_after_all(capsys):
    config = experiment(TimeLimitChain(limit=5))
    blank, record = training.start(config, seed=1), Kept(None)
    begun = beginning.begun(
        config, on_one_device(), blank, record, Console(NORMAL), training.start
    )
    chex.assert_trees_all_equal(begun.population, training.start(config))
    assert begun.done == 0
    assert "before its first checkpoint; starting again" in capsys.readouterr().out


def test_members_go_on_with_the_numbers_that_they_search(capsys):
    """Another one of the experiment leaves theirs alone; what is shared changes."""
    space = {"optimizer.learning_rate": Uniform(0.1, 0.2)}
    before = experiment(TimeLimitChain(limit=5), pbt=PBT(space, size=4), gamma=0.9)
    population = training.start(before)
    saved = 3, population, {"config": describe(before), "lineage": [], "streaks": {}}
    now = replace(before, {"optimizer.learning_rate": 0.15, "gamma": 0.7})
    begun = beginning.begun(
        now, on_one_device(), population, Kept(saved), Console(NORMAL), fail
    )
    own, then = (x.runs.learner.config for x in (population, begun.population))
    rates, kept = own.optimizer.learning_rate, then.optimizer.learning_rate
    np.testing.assert_array_equal(kept, rates)
    np.testing.assert_allclose(then.gamma, 4 * [0.7])
    assert "-> 0.15; members keep their own\n" in capsys.readouterr().out


def test_members_of_several_experiments_go_on_with_the_numbers_in_which_they_differ(
    capsys,
):
    """The run's own number is that of its first member; what is shared changes."""
    before = experiment(TimeLimitChain(limit=5), gamma=0.9, gae_lambda=0.5)
    later = dataclasses.replace(before, gamma=0.8)
    both = [cohorts.Member(i, 0, config) for i, config in enumerate((before, later))]
    population = cohorts.begin(both)()
    saved = 3, population, {"config": describe(before), "lineage": [], "streaks": {}}
    now = dataclasses.replace(before, gamma=0.7, gae_lambda=0.25)
    begun = beginning.begun(
        now, on_one_device(), population, Kept(saved), Console(NORMAL), fail
    )
    numbers = begun.population.runs.learner.config
    np.testing.assert_allclose(numbers.gamma, [0.9, 0.8])
    np.testing.assert_allclose(numbers.gae_lambda, [0.25, 0.25])
    said = capsys.readouterr().out
    assert "gamma: 0.9 -> 0.7; members keep their own\n" in said
    assert "gae_lambda: 0.5 -> 0.25\n" in said
