"""The tables of metrics and alerts, against what runs really say."""

import contextlib
import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from brief import experiment, signs

from ppo_jax import adversaries, fit, networks, optimizers, terms
from ppo_jax.controllers import ClipGate, ClosedForm, EntropySchedule, KlStop, Plateau
from ppo_jax.critics import Categorical, PerQuantile, Quantile
from ppo_jax.envs.pool import ResetPool
from ppo_jax.envs.probes import Costs, Target
from ppo_jax.host.metrics import alerts, catalogue
from ppo_jax.host.metrics.alerts import ALERTS
from ppo_jax.host.metrics.catalogue import METRICS, Metric, match, row_of, summarize
from ppo_jax.metrics import Reduction
from ppo_jax.metrics.explained import Appraisal
from ppo_jax.metrics.rows import NO_STEP, NO_WEIGHT
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.pbt import PBT
from ppo_jax.pbt.ranges import LogUniform

DOCS = Path(__file__).parents[4] / "docs"
NAN = math.nan
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
    pbt=PBT({"optimizer.learning_rate": LogUniform(1e-4, 1e-2)}, size=5, interval=2),
)
ATOMS = experiment(
    ResetPool(Costs(), 2),
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
    optimizer=optimizers.AdaptiveUPGD(
        1e-3, sampler=signs, vgs=optimizers.VGS(warmup_steps=2)
    ),
)
EVERYTHING = {"twins": TWINS, "atoms": ATOMS}


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """Rows and output of runs that have all there is."""
    found = {}
    for name, config in EVERYTHING.items():
        run_dir, said = tmp_path_factory.mktemp(name), io.StringIO()
        with contextlib.redirect_stdout(said):
            assert fit(config, run_dir).ending == "finished"
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
    assert all(row["warn/cvar_tail_samples_low"] == 5 for row in rows)
    assert said.count("warn/cvar_tail_samples_low: train/cvar_tail_size = 7 in") == 1
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
    for row in rows["twins"]:
        told = {name: value for name, value in row.items() if "pbt/" in name}
        assert None not in told.values()
        for i in range(5):
            assert 1e-4 <= told[f"pbt/optimizer.learning_rate/{i}"] <= 1e-2
    evaluated = [row for row in rows["twins"] if "eval/mean_reward" in row]
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
    module = {"metrics.md": "host.metrics.catalogue", "monitoring.md": "alerts"}[file]
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
        "episodes/return_square_sum": [2.0, 0.0, 8.0],
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
        "rollout/ep_rew_std": np.std([1, 3, 4, 8]),
        "mine/of_a_user": 1.5,
    }


def test_the_metrics_of_members_are_those_of_each_alone():
    """Also by a reduction of a user's, which takes vectors."""
    spread = Reduction("spread", lambda x: float(np.ptp(x)))
    own = (Metric("mine/spread", "1", "Of all.", spread, ("mine/x",)),)
    names = ["train/approx_kl", "train/log_ratio_max_abs", "warn/empty_epoch"]
    names += ["episodes/count", "episodes/return_sum", "episodes/return_square_sum"]
    names += ["mine/x", "mine/of_a_user"]
    rng = np.random.default_rng(0)
    history = {name: rng.random((12, 5), np.float32) for name in names}
    history["train/approx_kl"][:, 1] = history["mine/of_a_user"][::3] = NAN
    together = summarize(history, own)
    for member in range(5):
        alone = summarize({k: x[:, member] for k, x in history.items()}, own)
        assert alone.keys() == together.keys() > {"rollout/ep_rew_std", "mine/spread"}
        for name, value in alone.items():
            np.testing.assert_array_equal(together[name][member], value)


def test_a_violation_is_how_far_an_estimate_falls_short():
    """PROP-13.11: limit −.01; in the mean over updates, an excess makes up nothing."""
    for estimates, violation in (([-0.02], 0.01), ([-0.005], 0), ([-0.02, 0.5], 0.005)):
        limits = np.full(len(estimates), -0.01)
        history = {"train/cvar_limit": limits, "train/cvar_estimate": estimates}
        said = summarize({name: np.array(x) for name, x in history.items()})
        assert said["train/cvar_violation"] == pytest.approx(violation, abs=1e-12)
