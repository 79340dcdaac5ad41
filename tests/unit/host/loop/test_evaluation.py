"""What an evaluation says of members whose returns are known."""

import dataclasses
from types import SimpleNamespace
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import Config
from ppo_jax.host.devices import streams
from ppo_jax.host.loop import evaluation
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.pbt import PBT, Minimize
from ppo_jax.pbt.ranges import LogUniform
from ppo_jax.state import Population

RETURNS = np.array([[1.0, 3.0, 5.0, 7.0], [2.0, 2.0, 2.0, -6.0]])
ENDED = np.array([[True, True, True, True], [True, False, True, False]])
CONFIG = Config("CartPole-v1", eval_episodes=4, seed=3)
RUNS = SimpleNamespace(learner="learners")


class Known(NamedTuple):
    """A layout on which episodes have known returns."""

    asked: list

    def run_episodes(self, *asked):
        self.asked.append(asked)
        return RETURNS, ENDED

    def fetch(self, tree):
        return tree

    def put(self, values):
        return jnp.asarray(values)


def population(fitness):
    return Population(RUNS, jnp.asarray(fitness, jnp.float32), jnp.int32(0))


def rated(config):
    layout, members = Known([]), [{"train/loss": 1.0}, {"train/loss": 2.0}]
    before = population([np.nan, np.nan])
    after = evaluation.rate(config, layout, before, 8, members)
    return after, members, layout.asked


def test_members_are_told_apart_and_rated():
    after, members, _ = rated(CONFIG)
    chex.assert_trees_all_equal(after.fitness, np.float32([4.0, 0.0]))
    assert after.runs is RUNS
    for said, total, unfinished in zip(members, RETURNS, (0, 2), strict=True):
        assert said["eval/mean_reward"] == pytest.approx(total.mean())
        assert said["eval/std_reward"] == pytest.approx(total.std(ddof=1))
        assert said["eval/episodes"] == 4
        assert said["eval/unfinished_episodes"] == unfinished
    assert members[0]["train/loss"] == 1.0


def test_episodes_have_keys_that_training_never_sees():
    """By the seed and the updates done; the most likely actions are taken."""
    _, _, ((learners, key, count, deterministic),) = rated(CONFIG)
    assert (learners, count, deterministic) == ("learners", 4, True)
    used = jax.random.key_data(key)
    chex.assert_trees_all_equal(used, jax.random.key_data(streams.evaluation(3, 8)))
    for other in (streams.evaluation(4, 8), streams.members(3)[0]):
        assert (used != jax.random.key_data(other)).any()


def searched(fitness):
    space = {"optimizer.learning_rate": LogUniform(1e-4, 1e-2)}
    return dataclasses.replace(CONFIG, pbt=PBT(space, size=4, fitness=fitness))


def test_fitness_is_what_the_population_selects_for():
    after, _, _ = rated(searched(Minimize("eval/std_reward")))
    chex.assert_trees_all_close(after.fitness, -RETURNS.std(axis=1, ddof=1), rtol=1e-6)
    with pytest.raises(ExperimentError, match=r"Config\.pbt\.fitness: Minimize\.metri"):
        rated(searched(Minimize("eval/mean")))


def test_what_a_population_selects_by_is_said_by_its_members():
    """Of evaluations or of training, but not of the clock, of alerts or of a row."""
    evaluation.require_fitness(CONFIG)
    for name in ("eval/unfinished_episodes", "train/policy_loss"):
        evaluation.require_fitness(searched(Minimize(name)))
    wrong = ("eval/mean_rewrd", "time/fps", "warn/skipped_steps", "q25/train/loss")
    for name in wrong:
        with pytest.raises(ExperimentError) as caught:
            evaluation.require_fitness(searched(Minimize(name)))
        said = f"Config.pbt.fitness: Minimize.metric: no metric is called {name!r}; the"
        assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("fitness", "best"),
    [
        ([1.0, 3.0, 2.0], 3.0),
        ([np.nan, -2.0, np.inf], -2.0),
        ([np.nan, np.inf, -np.inf], -np.inf),
    ],
)
def test_the_best_is_finite_if_any_is(fitness, best):
    members = population(fitness)
    assert evaluation.best(members) == best
    chex.assert_trees_all_equal(
        evaluation.fitness_of(members), np.asarray(fitness, np.float32)
    )
