"""What a run begins with, or goes on with."""

import dataclasses

import jax
import numpy as np
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


class Kept(Memory):
    """A record that has a checkpoint."""

    resumes = True

    def __init__(self, saved):
        self._saved = saved

    def restore(self, template):
        return self._saved


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
    begun = beginning.begun(
        now, on_one_device(), training.start(now), Kept(saved), Console(QUIET)
    )
    assert begun.done == 3
    numbers = begun.population.runs.learner.config
    np.testing.assert_allclose(numbers.gamma, [0.7])
    np.testing.assert_allclose(numbers.gae_lambda, [0.5])
    fresh = beginning.begun(
        now, on_one_device(), training.start(now), Memory(), Console(QUIET)
    )
    assert fresh.done == 0


def test_members_go_on_with_the_numbers_that_they_search(capsys):
    """Another one of the experiment leaves theirs alone; what is shared changes."""
    space = {"optimizer.learning_rate": Uniform(0.1, 0.2)}
    before = experiment(TimeLimitChain(limit=5), pbt=PBT(space, size=4), gamma=0.9)
    population = training.start(before)
    saved = 3, population, {"config": describe(before), "lineage": [], "streaks": {}}
    now = replace(before, {"optimizer.learning_rate": 0.15, "gamma": 0.7})
    begun = beginning.begun(
        now, on_one_device(), population, Kept(saved), Console(NORMAL)
    )
    own, then = (x.runs.learner.config for x in (population, begun.population))
    rates, kept = own.optimizer.learning_rate, then.optimizer.learning_rate
    np.testing.assert_array_equal(kept, rates)
    np.testing.assert_allclose(then.gamma, 4 * [0.7])
    assert "-> 0.15; members keep their own\n" in capsys.readouterr().out
