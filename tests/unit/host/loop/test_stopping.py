"""When a run stops, of rows given by hand; whole runs are in tests/runs/test_fit.py."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from brief import experiment

from ppo_jax import PBT, Uniform
from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.host.loop.stopping import Stop, deaf, require_known
from ppo_jax.host.run_dir.experiment import ExperimentError

CONFIG = experiment(IdenticalRewards())
SPACE = {"optimizer.learning_rate": Uniform(1e-4, 1e-2)}


class Silent:
    """Stands in for a console."""

    def note(self, text):
        pass


class Heard(list):
    """Stands in for a console, and keeps what it notes."""

    note = list.append


def row(**metrics):
    return {"step": 64, "time/time_elapsed": 5.0} | metrics


@pytest.mark.parametrize(
    ("bounds", "metrics", "ending"),
    [
        ({}, {"x": 9.0}, ""),
        ({"stop_at": {"x": 2}}, {"x": 2.0}, "stopped"),
        ({"stop_at": {"x": 2}}, {"x": 1.99}, ""),
        ({"stop_at": {"x": 2}}, {"x": None}, ""),
        ({"stop_at": {"x": 2}}, {}, ""),
        ({"stop_at": {"x": 2, "y": -1}}, {"x": 3.0, "y": -2.0}, ""),
        ({"stop_at": {"x": 2, "y": -1}}, {"x": 3.0, "y": -0.5}, "stopped"),
        ({"stop_at": {}}, {"x": 3.0}, ""),
        ({"max_seconds": 5.0}, {}, "stopped"),
        ({"max_seconds": 5.5}, {}, ""),
        ({"max_seconds": 5.5, "stop_at": {"x": 2}}, {"x": 2.0}, "stopped"),
    ],
)
def test_bounds_by_hand(bounds, metrics, ending):
    """At the end of a phase, and of what a run that resumes has said last."""
    config = dataclasses.replace(CONFIG, **bounds)
    stop = Stop(config, deaf, Silent())
    assert stop.after(row(**metrics)) == stop.before(row(**metrics)) == ending
    assert stop.before({}) == ""


def test_only_true_stops_and_it_is_said():
    for said, ending in (
        (True, "stopped"),
        (np.True_, "stopped"),
        (jnp.array(True), "stopped"),
        (jnp.array(False), ""),
        (np.array([True]), ""),
        ([True, [True]], ""),
        (None, ""),
        (False, ""),
        (1, ""),
        ("x", ""),
    ):
        notes = Heard()
        stop = Stop(CONFIG, lambda step, metrics, said=said: said, notes)
        assert stop.after(row()) == ending
        ends = ["the callback returned True, which ends the run"]
        assert notes == (ends if ending else [])


def test_a_callback_cannot_change_a_row():
    given = row(x=1.0)
    Stop(CONFIG, lambda step, metrics: metrics.clear(), Silent()).after(given)
    assert given == row(x=1.0)


MEMBERS = dataclasses.replace(CONFIG, pbt=PBT(SPACE, size=4))


def known(config):
    """Asks of a run by itself."""
    require_known(config, config.num_members)


@pytest.mark.parametrize(
    ("config", "name", "closest"),
    [
        (CONFIG, "eval/mean_rewrad", "eval/mean_reward"),
        (CONFIG, "best/eval/mean_reward", "eval/mean_reward"),
        (CONFIG, "policy_loss", "train/policy_loss"),
        (MEMBERS, "best/eval/mean_rewrd", "best/eval/mean_reward"),
    ],
)
def test_a_metric_that_a_run_does_not_have_is_said(config, name, closest):
    with pytest.raises(ExperimentError) as caught:
        known(dataclasses.replace(config, stop_at={name: 1.0}))
    said = f"Config.stop_at: no metric is called {name!r}; the closest is {closest!r}"
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("train/kl", "`ClosedForm`"),
        ("sa_ppo/robust_kl_penalty", "`RobustKL`"),
        ("pbt/fittest", "more than one member, after an evaluation"),
    ],
)
def test_a_metric_that_comes_with_a_part_is_said_to(name, part):
    with pytest.raises(ExperimentError, match=f"{name} is measured only with {part}"):
        known(dataclasses.replace(CONFIG, stop_at={name: 1.0}))


def test_metrics_that_a_run_has_are_known():
    """Those of evaluations, of losses and of the clock."""
    names = ("eval/mean_reward", "train/policy_loss", "time/fps", "rollout/ep_rew_mean")
    for config in (CONFIG, MEMBERS):
        known(dataclasses.replace(config, stop_at=dict.fromkeys(names, 1.0)))
    bests = {"best/eval/mean_reward": 1.0, "each/eval/mean_reward/3": 1.0}
    known(dataclasses.replace(MEMBERS, stop_at=bests))
    require_known(dataclasses.replace(CONFIG, stop_at=bests), 4)
