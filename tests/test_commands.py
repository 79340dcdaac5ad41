"""The commands, as a user runs them: exit status, messages, what is left on disk."""

import json
import shutil

import pytest
from runs import EXPERIMENT, command, rows

from ppo_jax import experiment as experiments

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
    done = command("train", path, "--run-dir", home / "run")
    assert done.returncode == 0, done.stderr
    return home / "run"


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "experiment.py"
    path.write_text(EXPERIMENT.format(memory=""))
    return path


def test_evaluate_writes_its_figures(tmp_path, run_dir):
    figures = tmp_path / "figures.json"
    done = command("evaluate", run_dir, "--episodes", 3, "--json", figures)
    assert done.returncode == 0, done.stderr
    assert json.loads(figures.read_text()) == {
        **dict.fromkeys(("mean", "median", "q25", "q75", "cvar_5"), 5.0),
        "std": 0.0,
        "episodes": 3,
        "unfinished": 0,
        "random": True,
        "deterministic": True,
        "seed": 0,
        "checkpoint": 24,
        "steps": 768,
        "member": 0,
    }
    assert "did not end" not in done.stdout


def test_evaluate_says_which_episodes_did_not_end(tmp_path):
    path = tmp_path / "experiment.py"
    path.write_text("import dataclasses\n" + EXPERIMENT.format(memory="") + ENDLESS)
    run_dir = tmp_path / "run"
    assert command("train", path, "--run-dir", run_dir).returncode == 0
    assert rows(run_dir)[-1]["eval/unfinished_episodes"] == 4
    done = command("evaluate", run_dir, "--episodes", 2)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 episodes did not end within 3 steps" in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nowhere"], "nowhere: no run"),
        (["{home}"], "no run"),
        (["{run}", "--episodes", "0"], "at least 1, got 0"),
        (["{run}", "--episodes", "many"], "--episodes"),
        (["{run}", "--json", "{run}/no/such/file"], "no/such/file"),
    ],
)
def test_evaluate_refuses_what_it_cannot_do(run_dir, options, said):
    known = {"run": run_dir, "home": run_dir.parent}
    done = command("evaluate", *(option.format(**known) for option in options))
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--optimizer.lerning-rate", "1"], "--optimizer.learning-rate"),
        (["--num-envs", "many"], "--num-envs"),
        (["--gamma", "2"], "(0, 1], got 2.0"),
        (["--num-minibatches", "5"], "Config.num_minibatches"),
        (["--chunk-length", "3"], "Config.chunk_length"),
        (["--devices-per-member", "3"], "Config.devices_per_member"),
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


FORESEEN = """
import dataclasses
from ppo_jax import critics, terms

constraint = terms.CVaRConstraint(quantity={quantity}, estimate=terms.Predicted())
objective = (*config.terms, *[constraint] * {count})
config = dataclasses.replace(config, critic={critic}, terms=objective)
"""


@pytest.mark.parametrize(
    ("quantity", "critic", "count", "said"),
    [
        (
            "terms.Returns()",
            "critics.Scalar()",
            1,
            "Config.critic: expected a Quantile",
        ),
        (
            *("terms.Rewards()", "critics.Quantile(4)", 1),
            "CVaRConstraint.quantity: expected Returns(), which critics predict",
        ),
        ("terms.Returns()", "critics.Quantile(4)", 2, "Config.terms: expected at most"),
    ],
    ids=["a mean", "rewards", "twice"],
)
def test_what_no_critic_predicts_is_no_constraint(
    tmp_path, quantity, critic, count, said
):
    """R-E1: nor is what cannot be told apart."""
    text = FORESEEN.format(quantity=quantity, critic=critic, count=count)
    path = tmp_path / "experiment.py"
    path.write_text(EXPERIMENT.format(memory="") + text)
    done = command("train", path, "--run-dir", tmp_path / "run")
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_another_structure_cannot_resume(run_dir):
    path = run_dir / "experiment.py"
    for option, said in (
        (("--num-envs", 8), "num_envs: 4 -> 8"),
        (("--obs-clip", 10.0), "obs_clip: None -> 10.0"),
    ):
        done = command("train", path, "--run-dir", run_dir, "--resume", *option)
        assert done.returncode == 2
        assert said in done.stderr and "Traceback" not in done.stderr
    again = command("train", path, "--run-dir", run_dir)
    assert again.returncode == 2 and "--resume" in again.stderr


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("train {experiment}", "--run-dir"),
        ("sweep {experiment}", "--run-dir"),
        ("replay {run_dir}", "--to"),
        ("evaluate {run_dir}", "--json"),
        ("robustness {run_dir}", "--out"),
        ("report {run_dir}", "--out"),
    ],
)
def test_what_cannot_be_written_is_said_at_once(experiment, run_dir, name, option):
    """Before anything is played, compiled or made."""
    name, path = name.format(experiment=experiment, run_dir=run_dir).split()
    out = experiment / "below" / "a.file"
    done = command(name, path, option, out)
    assert done.returncode == 2 and done.stdout == ""
    assert str(out) in done.stderr and "Not a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_is_no_file_to_write(run_dir):
    done = command("evaluate", run_dir, "--json", run_dir)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == f"error: {run_dir}: cannot be written: Is a directory\n"


@pytest.mark.parametrize("name", ["config.json", "overrides.json"])
def test_a_run_directory_that_cannot_be_read(tmp_path, run_dir, name):
    damaged = shutil.copytree(run_dir, tmp_path / "run")
    (damaged / name).write_text("{")
    with pytest.raises(experiments.ExperimentError, match=name):
        experiments.stored_overrides(damaged)
        config = experiments.load(run_dir / "experiment.py", [])
        experiments.require_same_structure(damaged, config)
