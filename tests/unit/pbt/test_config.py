"""The rules of a population: what is refused, what is advised against, and fitness."""

import warnings

import pytest

from ppo_jax.config import Config
from ppo_jax.pbt import PBT, Maximize, Minimize, Readiness
from ppo_jax.pbt.config import Fitness
from ppo_jax.pbt.ranges import LogUniform, Uniform


def cartpole(space, **rules):
    return Config("CartPole-v1", pbt=PBT(space, **rules))


def test_a_searched_learning_rate_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cartpole({"optimizer.learning_rate": LogUniform(1e-3, 1e-1)})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: cartpole({"optimizer.learnin_rate": Uniform(0.0, 1.0)}),
            "closest is 'optimizer.learning_rate'",
        ),
        (
            lambda: cartpole({"gamma": Uniform(0.5, 1.1)}),
            r"gamma: expected a number in \(0, 1\], got 1.1",
        ),
        (lambda: PBT({}, size=1), "PBT.size"),
        (lambda: PBT({}, interval=0), "PBT.interval"),
        (lambda: PBT({}, size=3), r"PBT.selector.ratio: .* 1 / 3"),
        (lambda: Readiness(min_episodes=-1.0), "min_episodes"),
    ],
)
def test_impossible_rules_are_errors(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_range_that_is_hardly_wider_than_its_factor_is_advised_against():
    with pytest.warns(UserWarning, match=r"PBT\.space: gamma: two steps by its factor"):
        PBT({"gamma": Uniform(0.9, 0.999)})


@pytest.mark.parametrize(
    ("fitness", "want"),
    [
        (Maximize(), 3.0),
        (Minimize(), -3.0),
        (Maximize("eval/cvar_5_reward"), -1.5),
        (Minimize("eval/cvar_5_reward"), 1.5),
    ],
)
def test_fitness_is_a_metric_or_what_is_opposite_to_it(fitness, want):
    metrics = {"eval/mean_reward": 3.0, "eval/cvar_5_reward": -1.5}
    assert fitness(metrics) == want


def test_a_metric_that_there_is_not_is_told_by_the_closest_one():
    said = r"Minimize\.metric: no metric is called 'eval/mean'; the closest is 'eval/me"
    with pytest.raises(ValueError, match=said):
        Minimize("eval/mean")({"eval/mean_reward": 3.0, "train/loss": 1.0})
    with pytest.raises(NotImplementedError, match=r"Fitness\.score: missing"):
        Fitness()({"eval/mean_reward": 3.0})
