"""The commands, as a user runs them: exit status, messages, what is left on disk."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

EXPERIMENT = """
from ppo_jax import Config, networks
from ppo_jax.envs.probes import TimeLimitChain

config = Config(
    env=TimeLimitChain(limit=5),
    num_envs=4,
    num_steps=8,
    num_minibatches=2,
    num_epochs=2,
    total_timesteps=32 * 24,
    phase_updates=2,
    eval_phases=1,
    eval_episodes=4,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(8,)){memory}),
)
"""
MEMORIES = {"mlp": "", "lstm": ", memory=networks.Lstm(size=8)"}
CACHE = Path(__file__).parent.parent / ".cache" / "jax"


def command(name, *args, timeout=180, **options):
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(CACHE),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    return subprocess.run(
        [sys.executable, "-m", f"ppo_jax.{name}", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        check=False,
        **options,
    )


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "experiment.py"
    path.write_text(EXPERIMENT.format(memory=""))
    return path


def rows(run_dir):
    """The metrics of a run, but for what a clock says."""
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    drop = "time/"
    return [
        {k: v for k, v in json.loads(line).items() if not k.startswith(drop)}
        for line in lines
    ]


def leaves(run_dir):
    """Every leaf of a run's newest checkpoint."""
    import jax

    from ppo_jax import experiment, training
    from ppo_jax.checkpoint import Checkpointer

    config = experiment.load(
        run_dir / "experiment.py", experiment.stored_overrides(run_dir)
    )
    checkpoints = Checkpointer(run_dir)
    update, population, _ = checkpoints.restore(training.start(config))
    checkpoints.close()
    keys = population.runs.key
    runs = population.runs.replace(key=jax.random.key_data(keys))
    return update, [np.asarray(leaf) for leaf in jax.tree.leaves(runs)]


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_killed_run_resumes_bit_exactly(tmp_path, memory):
    """PROP-18.1: killed by SIGKILL and resumed equals never stopped."""
    path = tmp_path / "experiment.py"
    path.write_text(EXPERIMENT.format(memory=MEMORIES[memory]))
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert command("train", path, "--run-dir", whole).returncode == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "ppo_jax.train", str(path), "--run-dir", str(broken)],
        env=os.environ | {"JAX_COMPILATION_CACHE_DIR": str(CACHE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.time() + 120
    while not any(p.name.isdigit() for p in (broken / "checkpoints").glob("*")):
        assert time.time() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    resumed = command("train", path, "--run-dir", broken, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    (updates, expected), (also, found) = leaves(whole), leaves(broken)
    assert updates == also == 24
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)
    assert rows(whole) == rows(broken)


def test_evaluate_writes_its_figures(tmp_path, experiment):
    run_dir, figures = tmp_path / "run", tmp_path / "figures.json"
    assert command("train", experiment, "--run-dir", run_dir).returncode == 0
    done = command("evaluate", run_dir, "--episodes", 3, "--json", figures)
    assert done.returncode == 0, done.stderr
    assert json.loads(figures.read_text()) == {
        **dict.fromkeys(("mean", "median", "q25", "q75", "cvar_5"), 5.0),
        "std": 0.0,
        "episodes": 3,
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--optimizer.lerning-rate", "1"], "--optimizer.learning-rate"),
        (["--num-envs", "many"], "--num-envs"),
        (["--gamma", "2"], "(0, 1], got 2.0"),
        (["--num-minibatches", "5"], "Config.num_minibatches"),
        (["--chunk-length", "3"], "Config.chunk_length"),
        (["--optimizer.max-grad-norm", "-1"], "max_grad_norm"),
        (["--resume"], "--run-dir"),
        (["--resume", "--run-dir", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_said_without_a_traceback(experiment, options, said):
    done = command("train", experiment, *options)
    assert done.returncode == 2
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_another_structure_cannot_resume(tmp_path, experiment):
    run_dir = tmp_path / "run"
    assert command("train", experiment, "--run-dir", run_dir).returncode == 0
    done = command(
        "train", experiment, "--run-dir", run_dir, "--resume", "--num-envs", 8
    )
    assert done.returncode == 2
    assert "num_envs: 4 -> 8" in done.stderr
    again = command("train", experiment, "--run-dir", run_dir)
    assert again.returncode == 2 and "--resume" in again.stderr
