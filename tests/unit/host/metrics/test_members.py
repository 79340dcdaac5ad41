"""One row for a population, and what a generation did, by hand."""

import dataclasses

import numpy as np
from brief import experiment

from ppo_jax import PBT, LogUniform, Uniform, envs
from ppo_jax.host.metrics.members import (
    fittest,
    generation_metrics,
    over_members,
    said_by_each,
)
from ppo_jax.ppo.population import Generation

NAN = float("nan")


def test_a_member_says_what_it_says_whatever_is_searched_in_a_simulator():
    """Programs are traced with what has none of its numbers."""
    walk = envs.Gymnasium("gyms:Walk-v0", params={"bonus": 0.0})
    single = experiment(walk, phase_updates=3)
    space = {
        "env.params.bonus": Uniform(0.5, 1.0),
        "optimizer.learning_rate": LogUniform(1e-4, 1e-2),
    }
    searching = dataclasses.replace(single, pbt=PBT(space, size=4, interval=6))
    assert "train/value_loss" in said_by_each(searching)


def test_a_row_has_medians_quartiles_and_the_fittest():
    members = [{"x": x, "error/y": y} for x, y in ((4, 0), (1, 3), (NAN, 0), (2, 1))]
    row = over_members(members, np.array([1.0, 2.0, NAN, 0.0]))
    expected = {"x": 2, "q25/x": 1.5, "q75/x": 3, "best/x": 1, "error/y": 3}
    assert row == expected | {"best/error/y": 3, "pbt/fittest": 1}


def test_an_evaluation_is_told_of_every_member():
    members = [{"eval/mean_reward": x, "eval/episodes": 4} for x in (3.0, 5.0, 4.0)]
    row = over_members(members, np.array([1.0, 2.0, 0.0]))
    each = {f"each/eval/mean_reward/{i}": x for i, x in enumerate((3.0, 5.0, 4.0))}
    assert {name: x for name, x in row.items() if name.startswith("each/")} == each


def test_before_the_first_evaluation_nobody_is_the_fittest():
    row = over_members([{"x": 1.0}, {"x": 2.0}], np.array([NAN, NAN]))
    assert row == {"x": 1.5, "q25/x": 1.25, "q75/x": 1.75}
    assert fittest(np.array([NAN, np.inf])) is None


def test_a_metric_that_no_member_has_is_no_number():
    row = over_members([{"x": NAN}, {"x": NAN}], np.array([0.0, 1.0]))
    assert row.keys() == {"x", "q25/x", "q75/x", "best/x", "pbt/fittest"}
    assert all(np.isnan(row[name]) for name in ("x", "q25/x", "q75/x", "best/x"))


def test_the_row_of_a_single_run_is_its_own():
    assert over_members([{"x": 1.0}], np.array([5.0])) == {"x": 1.0}


def generation(fitness, parent):
    parent = np.array(parent)
    copied = parent != np.arange(parent.size)
    ready = np.isfinite(fitness)
    numbers = {"gamma": np.linspace(0.0, 1.0, parent.size)}
    return Generation(parent, copied, copied, ready, fitness, numbers, np.array(True))


def test_what_a_generation_did():
    """P4, P10: the deviation is that of the population, without the broken ones."""
    metrics = generation_metrics(
        generation(np.array([1.0, NAN, 3.0, NAN]), [2, 2, 2, 3])
    )
    expected = {
        **{"population_size": 4, "ready_members": 2, "mean_performance": 2},
        **{"std_performance": 1, "min_performance": 1, "max_performance": 3},
        **{"fallback_used": 1, "nonfinite_members": 2, "recovered_members": 1},
        **{"carries_cleared": 2, "parent/0": 2, "parent/3": 3, "performance/2": 3},
        "gamma/3": 1,
    }
    for name, value in expected.items():
        assert metrics[f"pbt/{name}"] == value, name


def test_performance_is_zero_while_nobody_has_any():
    metrics = generation_metrics(generation(np.full(2, NAN), [0, 1]))
    for name in ("mean", "std", "min", "max"):
        assert metrics[f"pbt/{name}_performance"] == 0
