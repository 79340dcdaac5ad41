"""Statistics, utilities, moments and noise go on with a run that is resumed."""

import functools
import json
import shutil

import jax
import numpy as np
import pytest
from runs import EXPERIMENT, assert_same, called, rows, saved

from ppo_jax.component import numbers
from ppo_jax.host.loop import training
from ppo_jax.host.run_dir import experiment
from ppo_jax.host.run_dir.checkpoint import Checkpointer
from ppo_jax.transforms.upgd import GateByUtilityState
from ppo_jax.transforms.vgs import ScaleByVarianceState

NOISY = (
    EXPERIMENT.format(memory="")
    + """
import dataclasses
from ppo_jax import optimizers, schedules
from ppo_jax.transforms import noise, vgs

optimizer = optimizers.AdaptiveUPGD(
    learning_rate=1e-3,
    sigma=0.1,
    noise_scale=noise.gradient_norm,
    noise_beta=0.9,
    schedule=schedules.Constant(),
    vgs=optimizers.VGS(warmup_steps=4),
)
config = dataclasses.replace(config, optimizer=optimizer)
"""
)

NOW = ScaleByVarianceState.VERSION
STEPS = 4  # Of the optimiser in an update.


def budget(updates):
    return ("--total-timesteps", 32 * updates)


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """A run of four updates."""
    home = tmp_path_factory.mktemp("half")
    (home / "noisy.py").write_text(NOISY)
    done = called("train", home / "noisy.py", "--run-dir", home / "run", *budget(4))
    assert done.returncode == 0, done.stderr
    return home / "run"


@pytest.fixture
def run_dir(half, tmp_path):
    return shutil.copytree(half, tmp_path / "run")


def resume(run_dir, updates=8):
    path = run_dir / "experiment.py"
    return called("train", path, "--run-dir", run_dir, "--resume", *budget(updates))


def restored(run_dir, make=training.start, template=None):
    """Statistics and utilities of a run, and what is known about its checkpoint."""
    config = experiment.load(
        run_dir / "experiment.py", experiment.stored_overrides(run_dir)
    )
    checkpoints = Checkpointer(run_dir)
    read = checkpoints.read
    if template is not None:
        read = functools.partial(checkpoints.restore, template(config))
    _, population, meta = read(make=lambda: make(config))
    checkpoints.close()
    kinds = (ScaleByVarianceState, GateByUtilityState)
    nodes = jax.tree.leaves(
        population.runs.learner.opt_state, is_leaf=lambda node: isinstance(node, kinds)
    )
    scaling, gate = (node for node in nodes if isinstance(node, kinds))
    return scaling, gate, meta, config


def written_by(run_dir, version):
    """Makes all checkpoints those of another version."""
    for update in saved(run_dir):
        file = run_dir / "checkpoints" / str(update) / "meta" / "metadata"
        meta = json.loads(file.read_text())
        assert meta["versions"] == {"ScaleByVarianceState": NOW}
        meta["versions"] = {"ScaleByVarianceState": version}
        file.write_text(json.dumps(meta))


def test_a_checkpoint_holds_states_versions_and_configuration(half):
    """V4, U6: steps, statistics, utilities, moments, units of noise; every number."""
    scaling, gate, meta, config = restored(half)
    assert scaling.count == gate.count == gate.inner.count == 4 * STEPS
    leaves = [
        *scaling.mean["critic"]["heads"]["head"].values(),
        *scaling.variance["critic"]["heads"]["head"].values(),
        *gate.utility["actor"]["head"].values(),
        *gate.noise.unit["actor"]["head"].values(),
        *gate.inner.mu["actor"]["head"].values(),
        *gate.inner.nu["actor"]["head"].values(),
    ]
    assert all(np.asarray(leaf).any() for leaf in leaves)
    logits = [*scaling.mean["actor"]["head"].values()]
    assert not any(np.asarray(leaf).any() for leaf in logits)  # Their gradients cancel.
    described = meta["config"]
    for path, number in numbers(config).items():
        assert described[path] == {"kind": "number", "value": repr(float(number))}
    assert described["optimizer.vgs.warmup_steps"]["value"] == "4"
    assert described["optimizer.vgs.statistic"]["value"].endswith("layer_mean")


def test_half_a_run_and_then_the_rest(run_dir, tmp_path):
    """R-A7, V4, V7, U6, modules 1.7.11, 2.8.15: as if never interrupted."""
    whole = tmp_path / "whole"
    done = called("train", run_dir / "experiment.py", "--run-dir", whole, *budget(8))
    assert done.returncode == 0, done.stderr
    assert resume(run_dir).returncode == 0
    assert_same(whole, run_dir)
    assert rows(run_dir)[-1]["upgd/noise_std_mean"] > 0


def test_statistics_of_an_older_version_begin_anew(run_dir):
    """V6, modules 1.7.11: their count too, with a warning; the rest goes on."""
    written_by(run_dir, NOW - 1)
    with pytest.warns(UserWarning, match="its statistics begin anew"):
        scaling, gate, _, _ = restored(run_dir)
    assert scaling.count == 0 and gate.count == 4 * STEPS
    for statistics in (scaling.mean, scaling.variance, scaling.weight):
        assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(statistics))
    done = resume(run_dir)
    assert done.returncode == 0, done.stderr
    assert "ScaleByVarianceState is of version" in done.stderr
    assert "Traceback" not in done.stderr
    assert rows(run_dir)[-1]["vgs/step_count"] == 4 * STEPS
    scaling, gate, _, _ = restored(run_dir)
    assert (scaling.count, gate.count) == (4 * STEPS, 8 * STEPS)


@pytest.mark.parametrize("template", [None, training.start])
def test_what_begins_anew_is_as_fresh_members_have_it(run_dir, template):
    """V6: also if that is not 0, nor what a template has."""

    def make(config):
        fresh = training.start(config)
        learner = fresh.runs.learner
        later = jax.tree.map(lambda x: x + 1, learner.opt_state)
        learner = learner.replace(opt_state=later)
        return fresh.replace(runs=fresh.runs.replace(learner=learner))

    written_by(run_dir, NOW - 1)
    with pytest.warns(UserWarning, match="its statistics begin anew"):
        scaling, gate, *_ = restored(run_dir, make, template)
    assert scaling.count == 1 and gate.count == 4 * STEPS


def test_statistics_of_a_newer_version_are_an_error(run_dir):
    """V6."""
    written_by(run_dir, NOW + 1)
    done = resume(run_dir)
    assert done.returncode == 2
    assert f"version {NOW + 1}, and this ppo_jax knows" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_statistic_is_another_experiment(run_dir):
    """V4, V6: what the statistics are of is configuration, and has to be the same."""
    path = run_dir / "experiment.py"
    other = "VGS(statistic=vgs.second_moment, "
    path.write_text(path.read_text().replace("VGS(", other))
    done = resume(run_dir)
    assert done.returncode == 2
    assert "optimizer.vgs.statistic" in done.stderr
    assert "Traceback" not in done.stderr
