"""The commands, as a user runs them: exit status, messages, what is left on disk."""

import json
import re
from pathlib import Path

import pytest
import zygote
from runs import ENVIRONMENT, EXPERIMENT, called, command, rows

from ppo_jax.__main__ import COMMANDS
from ppo_jax.host.process.exits import Exit

DOCUMENT = Path(__file__).parents[2] / "docs" / "commands.md"

ENDLESS = """
from ppo_jax.component import component

@component
class GivenUp(TimeLimitChain):
    @property
    def max_episode_steps(self):
        return 3

config = dataclasses.replace(config, env=GivenUp(limit=5))
"""


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A finished run."""
    home = tmp_path_factory.mktemp("commands")
    path = home / "experiment.py"
    path.write_text(EXPERIMENT.format(memory=""))
    done = called("train", path, "--run-dir", home / "run")
    assert done.returncode == 0, done.stderr
    return home / "run"


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "experiment.py"
    path.write_text(EXPERIMENT.format(memory=""))
    return path


def test_a_platform_that_is_not_there_is_said(run_dir, experiment):
    """Whatever a command begins with; there is no GPU that could be seen."""
    hidden = {"JAX_PLATFORMS": "cuda", "CUDA_VISIBLE_DEVICES": ""}
    lines = (
        ("train", experiment),
        ("sweep", experiment),
        ("selfcheck", experiment),
        *((name, run_dir) for name in ("evaluate", "export", "robustness", "replay")),
    )
    for words in lines:
        done = command(*words, environment=ENVIRONMENT | hidden)
        assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
        assert done.stderr.startswith("error: JAX_PLATFORMS=cuda: "), done.stderr


def test_evaluate_writes_its_figures(tmp_path, run_dir):
    figures = tmp_path / "figures.json"
    done = called("evaluate", run_dir, "--episodes", 3, "--json", figures)
    assert done.returncode == 0, done.stderr
    assert json.loads(figures.read_text()) == {
        **dict.fromkeys(("mean", "median", "q25", "q75", "cvar_5"), 5.0),
        "std": 0.0,
        "episodes": 3,
        "unfinished": 0,
        "random": True,
        "deterministic": True,
        "seed": 0,
        "fields": "",
        "checkpoint": 24,
        "steps": 768,
        "member": 0,
    }
    assert "did not end" not in done.stdout


def test_evaluate_says_which_episodes_did_not_end(tmp_path):
    path = tmp_path / "experiment.py"
    path.write_text("import dataclasses\n" + EXPERIMENT.format(memory="") + ENDLESS)
    run_dir = tmp_path / "run"
    assert called("train", path, "--run-dir", run_dir).returncode == 0
    assert rows(run_dir)[-1]["eval/unfinished_episodes"] == 4
    done = called("evaluate", run_dir, "--episodes", 2)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 episodes did not end within 3 steps" in done.stdout


def test_a_single_run_has_no_lineage(run_dir):
    assert not (run_dir / "lineage.jsonl").exists()
    row = rows(run_dir)[-1]
    assert not [name for name in row if name.startswith(("pbt/", "best/", "q25/"))]


def test_metrics_have_the_tags_that_users_know(run_dir):
    row = json.loads((run_dir / "metrics.jsonl").read_text().splitlines()[-1])
    assert row["step"] == row["time/total_timesteps"] == 32 * 24
    assert row["time/iterations"] == 24
    assert row["time/time_elapsed"] > 0 and row["time/fps"] > 0
    assert row["rollout/ep_rew_mean"] == row["rollout/ep_len_mean"] == 5.0
    assert row["eval/mean_reward"] == 5.0 and row["eval/episodes"] == 4
    for name in (
        *("approx_kl", "clip_fraction", "explained_variance", "learning_rate"),
        *("policy_loss", "value_loss", "policy_entropy"),
    ):
        assert f"train/{name}" in row


def test_every_exit_status_is_in_the_document():
    _, _, table = DOCUMENT.read_text().partition("| exit status |")
    statuses = re.findall(r"^\| (\d+) \|", table.partition("\n\n")[0], re.MULTILINE)
    assert [*map(int, statuses)] == sorted({1, *Exit})


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_starts_by_itself(name):
    """What another one imports, it has to import; then it says what it always says."""
    started = command(name, "nowhere", imported=zygote.PACKAGE)
    done = called(name, "nowhere")
    assert started.returncode == done.returncode == 2
    assert started.stderr and (started.stdout, started.stderr) == (
        done.stdout,
        done.stderr,
    )
