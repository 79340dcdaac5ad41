"""The tables of metrics and alerts, against what runs really say."""

import contextlib
import dataclasses
import io
import json
import math
import re
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from runs import rows as logged

from ppo_jax import adversaries, networks, optimizers, terms, tree
from ppo_jax.component import component, program, replace_at
from ppo_jax.config import Config
from ppo_jax.controllers import ClipGate, ClosedForm, EntropySchedule, KlStop, Plateau
from ppo_jax.critics import Categorical, PerQuantile, Quantile
from ppo_jax.envs.faults import Faulty
from ppo_jax.envs.probes import Costs, IdenticalRewards, Target
from ppo_jax.envs.probes.bandits import OneStep
from ppo_jax.host import alerts, catalogue, training
from ppo_jax.host.alarms import Alarms
from ppo_jax.host.alerts import ALERTS
from ppo_jax.host.catalogue import METRICS, Metric, match, row_of, summarize
from ppo_jax.metrics.explained import Appraisal
from ppo_jax.metrics.rows import NO_STEP, NO_WEIGHT
from ppo_jax.normalization.advantages import OverAll
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.pbt import PBT
from ppo_jax.pbt.ranges import LogUniform, Uniform
from ppo_jax.ppo import diagnostics, learner, population, rollout
from ppo_jax.schedules import Bounded, Progress
from ppo_jax.state import Batch

DOCS = Path(__file__).parents[3] / "docs"
MLP = networks.ActorCritic(torso=networks.Mlp(hidden=(8,)))
NAN = math.nan


def experiment(env, **changes):
    fields = {
        "env": env,
        "num_envs": 8,
        "num_steps": 8,
        "num_epochs": 2,
        "num_minibatches": 2,
        "network": MLP,
        "total_timesteps": 64 * 6,
        "phase_updates": 2,
        "eval_phases": 2,
        "eval_episodes": 4,
    }
    return Config(**fields | changes)


TWINS = experiment(
    Target(),
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=(8,)), memory=networks.Gru(size=4, layers=2)
    ),
    chunk_length=4,
    critic=Quantile(8, clip=PerQuantile()),
    num_critics=2,
    terms=(
        terms.Surrogate(),
        terms.Value(clip_eps=0.2, gate=ClipGate(warmup_updates=1.0)),
        terms.Entropy(),
        terms.CVaRConstraint(alpha=0.1),
    ),
    early_stop=KlStop(target=0.05),
    return_scale=ReturnNormalization(min_returns=0),
    optimizer=optimizers.AdaptiveUPGD(1e-3, vgs=optimizers.VGS(warmup_steps=2)),
)
ATOMS = experiment(
    Costs(),
    obs_clip=10.0,
    holdout_envs=2,
    appraisal=Appraisal(),
    num_envs=10,
    total_timesteps=80 * 6,
    critic=Categorical(5, 0.0, 8.0),
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.AdaptiveEntropy(EntropySchedule(plateau=Plateau(window=2))),
        terms.KlPenalty(divergence=ClosedForm()),
        terms.AdvantageWeighted(),
        terms.CVaR(alpha=0.5),
        terms.PredictedCVaR(),
        terms.Imitation(terms.Demonstrations(np.zeros((2, 1)), [0, 1])),
        terms.RobustKL(),
    ),
    adversary=adversaries.Mixed(),
)


MEMBERS = experiment(
    Target(),
    pbt=PBT({"optimizer.learning_rate": LogUniform(1e-4, 1e-2)}, size=5, interval=2),
)
EVERYTHING = {"twins": TWINS, "atoms": ATOMS, "members": MEMBERS}


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """Rows and output of runs that have all there is."""
    found = {}
    for name, config in EVERYTHING.items():
        run_dir, said = tmp_path_factory.mktemp(name), io.StringIO()
        with contextlib.redirect_stdout(said):
            assert training.train(config, run_dir, resume=False) == "finished"
        lines = (run_dir / "metrics.jsonl").read_text().splitlines()
        found[name] = [json.loads(line) for line in lines], said.getvalue()
    return found


@pytest.fixture
def rows(lived):
    """The rows of those runs."""
    return {name: rows for name, (rows, _) in lived.items()}


def test_the_console_says_once_that_an_alert_begins(lived):
    rows, said = lived["twins"]
    assert len(rows) == 3
    assert all(row["warn/cvar_tail_samples_low"] == 1 for row in rows)
    assert said.count("warn/cvar_tail_samples_low: train/cvar_tail_size = 7,") == 1
    begun = {line.split(":")[0] for line in said.splitlines() if "warn/" in line}
    assert begun == {k for row in rows for k, v in row.items() if "warn/" in k and v}


def test_runs_log_what_is_documented_and_nothing_else(rows):
    """R-B6, R-C7, R-E11, R-C1: every row of the table, and every name has a row."""
    names = {name for run in rows.values() for row in run for name in row} - {"step"}
    assert {name for name in names if row_of(name) is None} == set()
    silent = {
        row.name
        for row in METRICS
        if all(match(row.name, name) is None for name in names)
    }
    assert silent == {"train/grad_norm/other"}
    for run in rows.values():
        always = {row.name for row in METRICS if not row.needs and "*" not in row.name}
        assert all(always <= row.keys() for row in run)
    assert {
        f"lstm/{owner}_layer{layer}_{what}"
        for owner in ("actor", "critic")
        for layer in (0, 1)
        for what in ("norm", "mean", "std")
    } <= rows["twins"][0].keys()


def test_what_a_run_logs_is_finite_unless_the_table_says_so(rows):
    """R-B6, R-E11: a run that takes steps has every number of them."""
    allowed = {NO_STEP, NO_WEIGHT, ""}
    for run in rows.values():
        for row in run:
            null = {
                re.sub("^(q25|q75|best|each)/", "", name)
                for name, value in row.items()
                if value is None
            }
            assert {row_of(name).null for name in null}.isdisjoint(allowed), null


def test_what_a_population_logs_is_finite(rows):
    """P10: in every generation, with the numbers of all members."""
    for row in rows["members"]:
        told = {name: value for name, value in row.items() if "pbt/" in name}
        assert None not in told.values()
        for i in range(5):
            assert 1e-4 <= told[f"pbt/optimizer.learning_rate/{i}"] <= 1e-2
    evaluated = [row for row in rows["members"] if "eval/mean_reward" in row]
    assert evaluated
    for row in evaluated:
        each = [row[f"each/eval/mean_reward/{i}"] for i in range(5)]
        assert np.median(each) == pytest.approx(row["eval/mean_reward"])
        assert max(each) == row["best/eval/mean_reward"]


def test_every_alert_is_looked_at_in_a_run(rows):
    """R-C7: on names that exist."""
    seen = {name for run in rows.values() for row in run for name in row}
    for alert in ALERTS:
        assert any(match(alert.name, name) is not None for name in seen), alert.name
    assert all(row_of(alert.metric.replace("*", "1")) for alert in ALERTS)


@pytest.mark.parametrize(
    ("file", "text"),
    [("metrics.md", catalogue.document()), ("monitoring.md", alerts.document())],
)
def test_the_documents_are_what_the_tables_say(file, text):
    module = {"metrics.md": "host.catalogue", "monitoring.md": "alerts"}[file]
    written = (DOCS / file).read_text()
    assert written == text, f"python -m ppo_jax.{module} > docs/{file}"
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in rows}
    assert len(widths) == 1


def test_names_are_matched_to_one_row():
    assert match("a/*_norm", "a/layer0_norm") == "layer0"
    assert match("a/*_norm", "a/_norm") is match("a/x", "a/y") is None
    names = [row.name.replace("*", "1") for row in METRICS]
    assert len(set(names)) == len(names)
    assert all(row_of(row.name.replace("*", "1")) is row for row in METRICS)
    assert all(isinstance(row, Metric) for row in METRICS)


def test_a_phase_is_summed_up_by_the_table():
    """Means skip what is unavailable; counts are added, streaks are not."""
    history = {
        "train/approx_kl": [1.0, NAN, 3.0],
        "train/kl_over_target": [2.0, NAN, 6.0],
        "train/explained_variance": [NAN, NAN, NAN],
        "train/log_ratio_max_abs": [1.0, 7.0, NAN],
        "train/gae_clip_count": [1, 0, 2],
        "error/skipped_steps": [0, 4, 0],
        "error/failure_streak": [0, 2, 1],
        "warn/empty_epoch": [0.0, 1.0, 0.0],
        "train/critic1_grad_norm": [2.0, NAN, 4.0],
        "train/critic2_grad_norm": [0.5, NAN, 1.5],
        "episodes/count": [2, 0, 2],
        "episodes/return_sum": [4.0, 0.0, 12.0],
        "episodes/return_square_sum": [10.0, 0.0, 80.0],
        "mine/of_a_user": [1.0, NAN, 2.0],
    }
    said = summarize({name: np.array(x) for name, x in history.items()})
    assert np.isnan(said.pop("train/explained_variance"))
    assert said == {
        "train/approx_kl": 2.0,
        "train/kl_over_target": 4.0,
        "train/log_ratio_max_abs": 7.0,
        "train/gae_clip_count": 3.0,
        "error/skipped_steps": 4.0,
        "error/failure_streak": 2.0,
        "warn/empty_epoch": 1.0,
        "train/critic1_grad_norm": 3.0,
        "train/critic2_grad_norm": 1.0,
        "train/critics_grad_ratio": 3.0,
        "rollout/episodes": 4.0,
        "rollout/ep_rew_mean": 4.0,
        "rollout/ep_rew_std": math.sqrt(90 / 4 - 16),
        "mine/of_a_user": 1.5,
    }


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


def test_a_violation_is_how_far_an_estimate_falls_short():
    """PROP-13.11: limit −.01; in the mean over updates, an excess makes up nothing."""
    for estimates, violation in (([-0.02], 0.01), ([-0.005], 0), ([-0.02, 0.5], 0.005)):
        limits = np.full(len(estimates), -0.01)
        history = {"train/cvar_limit": limits, "train/cvar_estimate": estimates}
        said = summarize({name: np.array(x) for name, x in history.items()})
        assert said["train/cvar_violation"] == pytest.approx(violation, abs=1e-12)


LOW, EXPLAINED = "warn/explained_variance_low", "train/explained_variance"
VARIATION = "train/target_return_variation"


def explaining(value, variation=1.0):
    """What a member says whose critic explains so much."""
    return {EXPLAINED: value, VARIATION: variation}


def test_an_alert_waits_its_phases_and_is_said_once():
    """PROP-14.4: what is unavailable changes no count."""
    values = [0.2, 0.2, NAN, 0.2, 0.1, NAN, 0.3, 0.2, 0.2, 0.2]
    alarms, found = Alarms(), []
    for value in values:
        flags, lines = alarms.check([explaining(value)])
        found.append((flags[LOW], len(lines)))
    ended = [(0, 0)] * 3
    assert found == [(0, 0)] * 3 + [(1, 1), (1, 0), (1, 0), *ended, (1, 0)]


def test_nothing_is_to_be_explained_where_returns_hardly_vary():
    """Such phases end a streak; what is unavailable does not."""
    rows = [(0.2, 0.5), (0.2, 0.5), (NAN, NAN), (-9.0, 0.01), (-9.0, 0.0)]
    rows += [(0.2, 0.011)] * 3
    alarms = Alarms()
    found = [alarms.check([explaining(*row)])[0][LOW] for row in rows]
    assert found == [0] * 7 + [1]


def test_members_wait_and_begin_by_themselves():
    """One low now and then, one for good, one never, one a phase later."""
    phases = np.array([[0.2] * 4, [0.5, 0.2, 0.2, 0.2], [0.9] * 4, [NAN, 0.1, 0, -1]])
    phases[0, 1] = 0.4
    alarms, found = Alarms(), []
    for values in np.concatenate([phases, phases[:, -1:]], axis=1).T:
        flags, lines = alarms.check([explaining(float(x)) for x in values])
        found.append((flags[LOW], lines))
    assert [flag for flag, _ in found] == [0, 0, 0, 2, 3]
    assert [len(lines) for _, lines in found] == [0, 0, 0, 1, 1]
    said = "warn/explained_variance_low: train/explained_variance = "
    assert found[3][1][0].startswith(f"{said}-1 to 0.2 in members 1, 3 of 4, healthy:")
    assert found[4][1][0].startswith(f"{said}0.2 in member 0 of 4, healthy:")


def test_a_run_that_resumes_goes_on_counting():
    """With the streaks as JSON, a resumed run says what one that never stopped says."""
    values = [0.2, NAN, 0.2, 0.2, 0.2]
    rows = [[explaining(value), explaining(0.9)] for value in values]
    for end in range(len(rows)):
        whole = Alarms()
        for row in rows[:end]:
            whole.check(row)
        resumed = Alarms(json.loads(json.dumps(whole.streaks)))
        for row in rows[end:]:
            assert whole.check(row) == resumed.check(row)
    assert whole.streaks == {f"{LOW} < 0.3, 3 phases in a row": [4, 0]}


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


# Alerts of real updates.


@component
class Plain(OneStep):
    """Pays what is seen, with noise, and hides a share of the steps."""

    noise: float = 0.1
    hidden: float = 0.0

    def draw(self, key):
        return jax.random.uniform(key, (1,), minval=-1.0)

    def observe(self, state):
        return state

    def pay(self, key, state, action):
        return state[0] + self.noise * jax.random.normal(key)

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
        terms.CVaR(alpha=0.5, coef=0.0),
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
    ("warn/explained_variance_low", {"env.env.noise": 100.0}, same),
    (OUTLIERS, {"critic.v_min": -0.5}, same),
    (OUTLIERS, {"critic.v_max": 0.5}, same),
    (IMBALANCE, {}, steep(critic=0)),
    (IMBALANCE, {}, steep(critic=1)),
    ("warn/critic1_vanishing_gradients", {"terms.value.coef": 0.0}, same),
    ("warn/critic2_vanishing_gradients", {"terms.value.coef": 0.0}, same),
    ("warn/cvar_tail_samples_low", {"terms.cvar.alpha": 0.05}, same),
    ("warn/optimizer_lr_floor_hit", {"optimizer.schedule.floor": 1.5}, same),
]


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
    said = phases(numbers, change, count=3 if "explained" in name else 1)
    assert said[-1][name] == 1


@component
class Even(Plain):
    """Pays about as much for everything."""

    def pay(self, key, state, action):
        return 1.0 + 1e-3 * super().pay(key, state, action)


def test_a_critic_of_even_returns_has_nothing_to_explain(tmp_path):
    """R-C7: it explains less than nothing, and the log says so, without an alert."""
    config = dataclasses.replace(
        HEALTHY,
        env=Even(),
        phase_updates=1,
        total_timesteps=4 * HEALTHY.steps_per_update,
    )
    training.train(config, tmp_path, resume=False)
    said = logged(tmp_path)
    assert len(said) == 4
    assert all(row[EXPLAINED] < 0 and row[VARIATION] < 0.01 for row in said)
    assert not any(row[LOW] for row in said)


def test_an_alert_of_few_members_is_no_less_an_alert(tmp_path, capsys):
    """R-C7: three of eight members are ill; medians would hide it, and did."""
    ill = jnp.isin(jnp.arange(8), jnp.array([1, 4, 6]))
    config = dataclasses.replace(
        HEALTHY,
        pbt=PBT({"optimizer.learning_rate": Uniform(1e-3, 2e-2)}, size=8, interval=4),
        phase_updates=4,
        total_timesteps=4 * HEALTHY.steps_per_update,
        eval_episodes=2,
    )

    def begin(config):
        members = training.start(config)
        learner = members.runs.learner
        params = tree.where(ill, certain(learner.params), learner.params)
        coef = jnp.where(ill, 0.0, 1.0)
        config = replace_at(learner.config, "terms.value.coef", coef)
        learner = learner.replace(params=params, config=config)
        return members.replace(runs=members.runs.replace(learner=learner))

    training.train(config, tmp_path, resume=False, begin=begin)
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


# Numbers against others.


def norm(*trees):
    leaves = [np.asarray(x, np.float64) for x in jax.tree.leaves(trees)]
    return np.sqrt(sum(np.sum(x**2) for x in leaves))


def one_update(bound, network):
    """How parameters moved in one step of length one along the gradient."""
    sgd = optimizers.Sgd(learning_rate=1.0, max_grad_norm=bound)
    config = experiment(
        Target(),
        num_epochs=1,
        num_minibatches=1,
        network=network,
        critic=Quantile(4),
        num_critics=2,
        optimizer=sgd,
    )
    members = population.init(config, jax.random.split(jax.random.key(0), 1))
    before = jax.tree.map(lambda x: np.asarray(x[0]), members.runs.learner.params)
    members, said = population.advance(members, Progress.at([0.0]), jnp.int32(1))
    run = jax.tree.map(lambda x: np.asarray(x[0]), members.runs.replace(key=()))
    moved = jax.tree.map(np.subtract, run.learner.params, before)
    return moved, {name: float(x[0, 0]) for name, x in said.items()}, run.actor.carry


GRU = networks.Gru(size=4, layers=2)


@pytest.mark.parametrize(
    ("memory", "shared"), [(None, False), (GRU, False), (GRU, True)]
)
def test_norms_of_gradients_are_those_of_the_step(memory, shared):
    """PROP-16.1, PROP-16.2, PROP-16.4, R-B6, R-C7, R-D7, PROP-11.6, X1, X10.

    Groups, critics, carries.
    """
    torso = networks.Mlp(hidden=(8,))
    network = networks.ActorCritic(
        torso=torso, memory=memory, critic_hidden=(4,), shared=shared
    )
    moved, said, carry = one_update(1e6, network)
    actor, critic = moved["actor"], moved["critic"]
    each = [jax.tree.map(lambda x, i=i: x[i], critic["heads"]) for i in (0, 1)]
    without = [{k: v for k, v in own.items() if k != "torso"} for own in each]
    trunk = critic.get("trunk", {})
    torsos = (trunk.get("torso", ()), [own.get("torso", ()) for own in each])
    expected = {
        "grad_norm/actor_mlp": norm(actor["trunk"]["torso"]),
        "grad_norm/policy_head": norm(actor["head"]),
        "grad_norm/log_std": norm(actor["log_std"]),
        "grad_norm/head1": norm(without[0]),
        "grad_norm/head2": norm(without[1]),
    }
    if not shared:
        expected["grad_norm/critic_mlp"] = norm(torsos)
    if memory is not None:
        expected["grad_norm/actor_lstm"] = norm(actor["trunk"]["memory"])
    if "memory" in trunk:
        expected["grad_norm/critic_lstm"] = norm(trunk["memory"])
    groups = {k.removeprefix("train/") for k in said if "/grad_norm/" in k}
    assert groups == expected.keys()
    expected |= {
        "critic1_grad_norm": norm(each[0]),
        "critic2_grad_norm": norm(each[1]),
        "grad_norm_pre_clip": norm(moved),
        "grad_norm_post_clip": norm(moved),
    }
    for name, value in expected.items():
        chex.assert_trees_all_close(said[f"train/{name}"], value, rtol=1e-3)
    total = np.sqrt(sum(said[f"train/{name}"] ** 2 for name in groups))
    chex.assert_trees_all_close(total, said["train/grad_norm_pre_clip"], rtol=1e-5)
    assert said["train/critic1_grad_norm"] != said["train/critic2_grad_norm"]
    assert_carries(said, carry)
    bounded, said, _ = one_update(0.125, network)
    chex.assert_trees_all_close(norm(bounded), 0.125, rtol=1e-3)
    chex.assert_trees_all_close(said["train/grad_norm_post_clip"], 0.125, rtol=1e-6)


def test_parameters_of_no_group_are_the_others():
    """PROP-16.1: nothing is left out."""
    said = diagnostics.gradient_norms({"mine": jnp.array([3.0, 4.0])})
    assert said == {"train/grad_norm/other": 5.0, "train/grad_norm_pre_clip": 5.0}


def assert_carries(said, carry):
    found = {name for name in said if name.startswith("lstm/")}
    assert len(found) == 6 * sum(layers != () for layers in dict(carry).values())
    for owner, layers in dict(carry).items():
        for i, x in enumerate(layers):
            name, x = f"lstm/{owner}_layer{i}", np.asarray(x, np.float64)
            lengths = np.sqrt((x**2).sum(axis=-1))
            chex.assert_trees_all_close(said[f"{name}_norm"], lengths.mean(), rtol=1e-5)
            chex.assert_trees_all_close(
                said[f"{name}_mean"], x.mean(), rtol=0, atol=1e-6
            )
            chex.assert_trees_all_close(said[f"{name}_std"], x.std(), rtol=1e-5)
            assert said[f"{name}_std"] > 0


def test_both_halves_of_an_lstm_are_its_carry():
    """R-B6, X10: cell and output together."""
    cell, hidden = np.array([[3.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 4.0], [0, 1]])
    said = diagnostics.carry_metrics({"actor": ((jnp.array(cell), jnp.array(hidden)),)})
    assert said["lstm/actor_layer0_norm"] == 3.0
    assert said["lstm/actor_layer0_mean"] == 1.0
    assert diagnostics.carry_metrics(()) == {}


def test_the_largest_log_ratio_of_an_update(monkeypatch):
    """R-E6, R-E11: of all minibatches and parts of them; the mean of the others."""
    unroll = rollout.unroll

    def shifted(*args):
        actor, steps, carries = unroll(*args)
        log_prob = steps.log_prob.at[2, 3].add(7.0)
        return actor, steps._replace(log_prob=log_prob), carries

    monkeypatch.setattr(rollout, "unroll", shifted)
    config = experiment(
        IdenticalRewards(), num_microbatches=2, optimizer=optimizers.Sgd(0.0)
    )
    run = jax.jit(learner.init)(program(config), jax.random.key(0))
    _, said = jax.jit(lambda run: learner.iteration(run, Progress.at(0.0)))(run)
    chex.assert_trees_all_close(said["train/log_ratio_max_abs"], 7.0, rtol=1e-5)
    rest = (1 - math.exp(-7)) ** 2 / 64
    chex.assert_trees_all_close(said["train/ratio_var"], rest, rtol=1e-5)


def test_statistics_of_scaled_advantages():
    """R-E11: weighted; what has no weight may be anything."""
    advantage = jnp.array([[1.0, -4.0], [3.0, NAN]])
    weight = jnp.array([[1.0, 0.5], [0.5, 0.0]])
    flat = jnp.array([[False, True], [False, True]])
    said = diagnostics.scaled_metrics(advantage, flat, weight)
    mean = (1 - 2 + 1.5) / 2
    spread = ((1 - mean) ** 2 + 0.5 * (4 + mean) ** 2 + 0.5 * (3 - mean) ** 2) / 2
    chex.assert_trees_all_close(said["train/advantages_norm_mean"], mean, rtol=1e-7)
    chex.assert_trees_all_close(
        said["train/advantages_norm_std"], spread**0.5, rtol=1e-7
    )
    assert said["train/advantages_norm_max_abs"] == 4
    assert said["train/advantages_zero_std"] == 0.25
    nothing = diagnostics.scaled_metrics(advantage, flat, jnp.zeros((2, 2)))
    assert all(np.isnan(value) for value in nothing.values())


def test_targets_outside_of_the_support_are_counted():
    """By the kind of critic that has one."""
    target = jnp.array([-1.1, -1.0, 0.0, 2.0, 2.1, 5.0])
    said = Categorical(3, -1.0, 2.0).target_metrics(target)
    assert said["train/value_target_below_frac"].tolist() == [1, 0, 0, 0, 0, 0]
    assert said["train/value_target_above_frac"].tolist() == [0, 0, 0, 0, 1, 1]
    assert Quantile(3).target_metrics(target) == {}


def test_the_share_of_imitation_by_hand():
    """R-E7: 2 of 2 + 3, and 0 of 0."""
    term = terms.AdvantageWeighted(coef=1.0, temperature=1e9)
    out = terms.Forward(None, None, jnp.zeros(2))
    batch = Batch(**dict.fromkeys(Batch._fields))._replace(
        advantage=jnp.array([-3.0, 0.0]), log_prob=jnp.array([-2.0, 0.0])
    )
    _, said = term(out, batch, terms.Context((), (), jnp.zeros(()), None))
    share = said["train/policy_bc_vs_ppo_ratio"]
    chex.assert_trees_all_close(share, np.array([0.4, 0.0]), rtol=1e-6)
