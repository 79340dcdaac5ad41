"""Thresholds of alerts, and alerts of real updates, each by its cause."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brief import experiment
from runs import rows as logged

from ppo_jax import networks, optimizers, terms
from ppo_jax.arrays import tree
from ppo_jax.component import component, replace_at
from ppo_jax.controllers import KlStop
from ppo_jax.critics import Categorical
from ppo_jax.envs.faults import Faulty
from ppo_jax.envs.probes.bandits import OneStep
from ppo_jax.host.loop import training
from ppo_jax.host.metrics.alarms import Alarms
from ppo_jax.host.metrics.alerts import ALERTS, advised, page
from ppo_jax.host.metrics.catalogue import match, row_of, summarize
from ppo_jax.host.process.console import Console
from ppo_jax.host.run_dir.recording import Folder
from ppo_jax.metrics.rows import NO_STEP, NO_WEIGHT
from ppo_jax.normalization.advantages import OverAll
from ppo_jax.pbt import PBT
from ppo_jax.pbt.ranges import Uniform
from ppo_jax.ppo import population
from ppo_jax.schedules import Bounded, Progress

NAN = math.nan


@pytest.mark.parametrize(
    ("norms", "ratio", "flags"),
    [
        ((1.0, 0.0099), 1 / 0.0099, (1, 0, 0)),
        ((1.0, 0.0101), 1 / 0.0101, (0, 0, 0)),
        ((0.0099, 1.0), 0.0099, (1, 0, 0)),
        ((0.0101, 1.0), 0.0101, (0, 0, 0)),
        ((1.0, 0.0), NAN, (0, 0, 1)),
        ((0.0, 0.0), NAN, (0, 1, 1)),
    ],
)
def test_thresholds_of_twin_critics(norms, ratio, flags):
    """PROP-11.4, R-C7, X1."""
    first, second = norms
    history = {"train/critic1_grad_norm": [first], "train/critic2_grad_norm": [second]}
    said = summarize({name: np.array(x) for name, x in history.items()})
    chex.assert_trees_all_close(said["train/critics_grad_ratio"], ratio, rtol=1e-7)
    names = (
        "warn/twin_critics_gradient_imbalance",
        "warn/critic1_vanishing_gradients",
        "warn/critic2_vanishing_gradients",
    )
    found, lines = Alarms().check([said])
    assert tuple(found[name] for name in names) == flags
    assert [line.split(":")[0] for line in lines] == [
        name for name, flag in zip(names, flags, strict=True) if flag
    ]


LOW, EXPLAINED = "warn/explained_variance_low", "train/explained_variance"
VARIATION = "train/target_return_variation"


@pytest.mark.parametrize(
    ("name", "metric", "silent", "loud"),
    [
        ("warn/log_ratio_clamp", "train/log_ratio_clamp_frac", 0.01, 0.0101),
        ("warn/entropy_collapse", "train/policy_entropy", 0.01, 0.0099),
        ("warn/entropy_collapse", "train/policy_entropy", -0.5, 0.0),
        ("warn/bc_dominates", "train/policy_bc_vs_ppo_ratio", 0.8, 0.801),
        ("warn/cvar_tail_samples_low", "train/cvar_tail_size", 10, 9),
        ("warn/advantages_norm_extreme", "train/advantages_norm_max_abs", 100, 101),
        ("warn/log_ratio_severe_instability", "train/log_ratio_max_abs", 10, 10.1),
        ("warn/normalization_mean_nonzero", "train/advantages_norm_mean", 0.1, -0.11),
    ],
)
def test_thresholds_are_strict(name, metric, silent, loud):
    """R-E6, R-E7."""
    assert Alarms().check([{metric: silent}])[0] == {name: 0.0}
    assert Alarms().check([{metric: loud}])[0] == {name: 1.0}


@component
class Plain(OneStep):
    """Pays what is seen, with noise, and hides a share of the steps."""

    noise: float = 0.1
    hidden: float = 0.0
    scale: float = 1.0
    level: float = 0.0

    def draw(self, key):
        return jax.random.uniform(key, (1,), minval=-1.0)

    def observe(self, state):
        return state

    def pay(self, key, state, action):
        paid = state[0] + self.noise * jax.random.normal(key)
        return self.level + self.scale * paid

    def transition(self, key, state, action):
        timestep, after = super().transition(key, state, action)
        hidden = jax.random.uniform(key) < self.hidden
        return timestep._replace(weight=jnp.where(hidden, 0.0, 1.0)), after


@component
class Askew(OverAll):
    """Standardised, then moved and stretched."""

    shift: float = 0.0
    factor: float = 1.0

    def __call__(self, advantage, weight, group):
        advantage, zero = super().__call__(advantage, weight, group)
        return self.factor * advantage + self.shift, zero


HEALTHY = experiment(
    Faulty(Plain(), reward=NAN, rate=0.0),
    critic=Categorical(11, -2.0, 2.0),
    num_critics=2,
    standardization=Askew(),
    terms=(
        terms.Surrogate(),
        terms.Value(1.0),
        terms.Entropy(),
        terms.AdvantageWeighted(0.01),
        terms.CVaRConstraint(alpha=0.5, limit=-1e6, learning_rate=1e6),
    ),
    early_stop=KlStop(1.0, share=None, absolute=None),
    optimizer=optimizers.Adam(learning_rate=1e-2, schedule=Bounded(cap=2.0)),
)


def same(params):
    return params


def certain(params):
    """A policy that always takes the first of two actions."""
    head = params["actor"]["head"]
    bias = head["bias"] + jnp.array([[30.0, -30.0]])
    return params | {"actor": params["actor"] | {"head": head | {"bias": bias}}}


def steep(critic):
    """A critic whose head has enormous weights."""

    def change(params):
        heads = params["critic"]["heads"]
        kernel = heads["head"]["kernel"].at[:, critic].multiply(1e5)
        heads = heads | {"head": heads["head"] | {"kernel": kernel}}
        return params | {"critic": params["critic"] | {"heads": heads}}

    return change


OUTLIERS = "warn/value_target_raw_outlier_frac"
IMBALANCE = "warn/twin_critics_gradient_imbalance"
CAUSES = [
    ("warn/empty_epoch", {"env.env.hidden": 1.0}, same),
    ("warn/quarantined_steps", {"env.rate": 1.0}, same),
    ("warn/skipped_steps", {"optimizer.learning_rate": 1e38}, same),
    ("warn/log_ratio_clamp", {"optimizer.learning_rate": 100.0}, same),
    ("warn/log_ratio_severe_instability", {"optimizer.learning_rate": 100.0}, same),
    ("warn/kl_over_target", {"early_stop.target": 1e-5}, same),
    ("warn/entropy_collapse", {}, certain),
    ("warn/bc_dominates", {"terms.advantage_weighted.coef": 100.0}, same),
    ("warn/normalization_mean_nonzero", {"standardization.shift": 0.2}, same),
    ("warn/normalization_mean_nonzero", {"standardization.shift": -0.2}, same),
    ("warn/advantages_norm_extreme", {"standardization.factor": 100.0}, same),
    ("warn/gae_clipped", {"env.env.level": 1e7}, same),
    ("warn/explained_variance_low", {"env.env.noise": 100.0}, same),
    (OUTLIERS, {"critic.v_min": -0.5}, same),
    (OUTLIERS, {"critic.v_max": 0.5}, same),
    (IMBALANCE, {}, steep(critic=0)),
    (IMBALANCE, {}, steep(critic=1)),
    ("warn/critic1_vanishing_gradients", {"terms.value.coef": 0.0}, same),
    ("warn/critic2_vanishing_gradients", {"terms.value.coef": 0.0}, same),
    ("warn/cvar_tail_samples_low", {"terms.cvar_constraint.alpha": 0.05}, same),
    ("warn/cvar_limit_missed", {"terms.cvar_constraint.limit": 1e6}, same),
    ("warn/optimizer_lr_floor_hit", {"optimizer.schedule.floor": 1.5}, same),
]


LASTING = {"warn/explained_variance_low": 3, "warn/cvar_limit_missed": 2}
"""Phases until they begin; of all others one."""


def phases(numbers, change, count, length=4):
    """What the phases of a run say, with the flags of their alerts."""
    config = HEALTHY
    for path, number in numbers.items():
        config = replace_at(config, path, number)
    members = population.init(config, jax.random.split(jax.random.key(0), 1))
    lived = members.runs.learner
    lived = lived.replace(params=change(lived.params))
    members = members.replace(runs=members.runs.replace(learner=lived))
    alarms, said = Alarms(), []
    for _ in range(count):
        members, history = population.advance(
            members, Progress.at(np.zeros(length)), jnp.int32(length)
        )
        said.append(summarize({k: np.asarray(x)[:, 0] for k, x in history.items()}))
        said[-1] |= alarms.check([said[-1]])[0]
    return said


def test_no_alert_in_a_healthy_run():
    """R-C7, R-E6, R-E7: twelve phases that learn."""
    said = phases({}, same, count=12)
    assert said[-1]["train/explained_variance"] > 0.5
    names = {match(alert.name, name) for alert in ALERTS for name in said[0]}
    assert {None, "", "1", "2"} == names
    active = [name for row in said for name in row if "warn/" in name and row[name]]
    assert not active


@pytest.mark.parametrize(("name", "numbers", "change"), CAUSES)
def test_an_alert_has_its_cause(name, numbers, change):
    """R-A17, R-C7, R-E6, R-E7, X1, PROP-17.2: it begins with it, in a real run."""
    said = phases(numbers, change, LASTING.get(name, 1))
    assert said[-1][name] == 1


def test_a_critic_of_even_returns_has_nothing_to_explain():
    """R-C7: it explains less than nothing, and says so without an alert."""
    said = phases({"env.env.level": 1.0, "env.env.scale": 1e-3}, same, count=4)
    assert all(row[EXPLAINED] < 0 and row[VARIATION] < 0.01 for row in said)
    assert not any(row[LOW] for row in said)


def test_an_alert_of_few_members_is_no_less_an_alert(tmp_path, capsys):
    """R-C7: three of eight members are ill; medians would hide it, and did."""
    ill = jnp.isin(jnp.arange(8), jnp.array([1, 4, 6]))
    config = experiment(
        Plain(),
        network=networks.ActorCritic(torso=networks.Mlp(hidden=())),
        num_critics=2,
        optimizer=optimizers.Adam(learning_rate=1e-2),
        pbt=PBT({"optimizer.learning_rate": Uniform(1e-3, 2e-2)}, size=8, interval=4),
        phase_updates=4,
        total_timesteps=4 * HEALTHY.steps_per_update,
        eval_episodes=2,
    )

    def begin(config, seed):
        members = training.start(config, seed)
        learner = members.runs.learner
        params = tree.where(ill, certain(learner.params), learner.params)
        coef = jnp.where(ill, 0.0, 1.0)
        config = replace_at(learner.config, "terms.value.coef", coef)
        learner = learner.replace(params=params, config=config)
        return members.replace(runs=members.runs.replace(learner=learner))

    training.train(config, Folder(tmp_path), Console(), begin=begin)
    names = ("entropy_collapse", "critic1_vanishing_gradients")
    said, lines = logged(tmp_path), capsys.readouterr().out.splitlines()
    for name in (f"warn/{name}" for name in names):
        assert [row[name] for row in said] == [3.0] * len(said)
        (line,) = [line for line in lines if line.startswith(name)]
        assert "in members 1, 4, 6 of 8, healthy: " in line
    assert all(row["warn/critic2_vanishing_gradients"] == 3 for row in said)
    assert all(row["warn/skipped_steps"] == 0 for row in said)


def test_every_alert_has_a_cause():
    assert {alert.name.replace("*", "1") for alert in ALERTS} <= {
        name for name, _, _ in CAUSES
    }


def test_every_alert_is_told_in_its_own_words():
    """No row refers to one that may not be there."""
    for alert in ALERTS:
        name = alert.name.replace("*", "1")
        assert alert.metric in {row.metric for row in advised(name)}
        assert alert.when in page(name) and "As above" not in page(name)
    assert advised("warn/empty_epoch")[0] == ALERTS[0]


def test_what_did_not_happen_is_unavailable():
    """R-A17, PROP-14.6: without a step, means over steps are not 0."""
    (said,) = phases({"env.env.hidden": 1.0}, same, count=1)
    null = {name for name, value in said.items() if math.isnan(value)}
    needs = {NO_STEP, NO_WEIGHT}
    expected = {name for name in said if row_of(name) and row_of(name).null in needs}
    assert expected <= null
    assert {"train/approx_kl", "train/loss", "train/advantages_mean_raw"} <= expected
    assert said["train/n_minibatches_done"] == said["error/failure_streak"] == 0
    (said,) = phases({"env.env.hidden": 0.0}, same, count=1)
    assert not {name for name, value in said.items() if math.isnan(value)} & expected
