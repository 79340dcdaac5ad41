"""What `evaluate` plays, and that it says so: which checkpoint, actions and seed."""

import json
import shutil

import pytest
from runs import EXPERIMENT, called, rows

SIGNS = EXPERIMENT.format(memory="").replace(
    "limit=5)", "limit=5, negative=0.5)"
)  # Returns are 5 or -5, whatever the actions.
SAME = (
    EXPERIMENT.format(memory="")
    + """
import dataclasses
import jax.numpy as jnp
from ppo_jax import envs
from ppo_jax.component import component

@component
class Same(envs.Env):
    action_space = envs.Discrete(2)
    max_episode_steps = 4

    def reset(self, key):
        return jnp.zeros(1), jnp.int32(0)

    def transition(self, key, state, action):
        state = state + 1
        return envs.outcome(jnp.zeros(1), action, truncated=state >= 4), state

config = dataclasses.replace(
    config, env=Same(), total_timesteps=32, eval_sample=True
)
"""
)


def trained(home, text):
    (home / "experiment.py").write_text(text)
    done = called("train", home / "experiment.py", "--run-dir", home / "run")
    assert done.returncode == 0, done.stderr
    return home / "run"


@pytest.fixture(scope="module")
def signs(tmp_path_factory):
    """A run in whose episodes chance alone decides."""
    home = tmp_path_factory.mktemp("signs")
    return trained(home, SIGNS.replace("eval_episodes=4", "eval_episodes=16"))


@pytest.fixture(scope="module")
def same(tmp_path_factory):
    """A run in whose episodes nothing but actions makes a difference; it samples."""
    return trained(tmp_path_factory.mktemp("same"), SAME)


def evaluated(tmp_path, run_dir, *options):
    """What it printed, and its figures."""
    path = tmp_path / "figures.json"
    done = called("evaluate", run_dir, "--json", path, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(path.read_text())


@pytest.mark.parametrize(
    ("name", "option", "file"),
    [
        ("evaluate", "--json", "results.json"),
        ("evaluate", "--json", "schedule.json"),
        ("report", "--out", "metrics.jsonl"),
    ],
)
def test_no_file_of_the_run_itself_is_written_over(signs, name, option, file):
    """A file of such a name would end its life as a run."""
    before = sorted((x, x.read_bytes()) for x in signs.iterdir() if x.is_file())
    done = called(name, signs, option, signs / file)
    assert done.returncode == 2 and done.stdout == ""
    said = f"error: {signs / file}: is of the run itself; give another name\n"
    assert done.stderr == said
    assert sorted((x, x.read_bytes()) for x in signs.iterdir() if x.is_file()) == before


@pytest.mark.parametrize("update", [None, 20])
def test_it_plays_the_episodes_that_training_has_logged(tmp_path, signs, update):
    options = ("--checkpoint", update) if update else ()
    update = update or 24
    text, said = evaluated(tmp_path, signs, "--episodes", 16, *options)
    assert f"checkpoint {update}, {update * 32} steps; most likely actions, " in text
    expected = {"checkpoint": update, "steps": update * 32, "deterministic": True}
    assert said.items() >= (expected | {"seed": 0, "random": True}).items()
    (row,) = (row for row in rows(signs) if row["step"] == update * 32)
    for name in ("mean", "std", "median", "q25", "q75", "cvar_5"):
        assert said[name] == pytest.approx(row[f"eval/{name}_reward"], rel=1e-6)


def test_another_seed_plays_other_episodes(tmp_path, signs):
    (_, one), (text, other), (_, again) = (
        evaluated(tmp_path, signs, "--episodes", 64, "--seed", seed)
        for seed in (1, 2, 1)
    )
    assert "seed 2" in text and (one["seed"], other["seed"]) == (1, 2)
    assert one == again and one["mean"] != other["mean"]


def test_checkpoints_that_there_are_not(signs):
    done = called("evaluate", signs, "--checkpoint", 7)
    assert done.returncode == 2 and done.stdout == ""
    assert "no checkpoint 7; there are: " in done.stderr
    assert done.stderr.endswith("20, 24\n") and "Traceback" not in done.stderr


def test_an_older_checkpoint_that_stands_in_is_named(tmp_path, signs):
    run_dir = shutil.copytree(signs, tmp_path / "run")
    (run_dir / "checkpoints" / "24" / "population" / "manifest.ocdbt").unlink()
    text, said = evaluated(tmp_path, run_dir, "--episodes", 2)
    assert "checkpoint 24 cannot be read" in text
    assert "checkpoint 20, 640 steps" in text
    assert (said["checkpoint"], said["steps"]) == (20, 640)
    done = called("evaluate", run_dir, "--checkpoint", 24)
    assert done.returncode == 2 and "no checkpoint can be restored" in done.stderr


def test_episodes_without_chance_are_said_to_be_one(tmp_path, same):
    remark = "nothing is random here: all 64 episodes are the same"
    text, said = evaluated(tmp_path, same, "--episodes", 64, "--no-sample")
    assert remark in text and not said["random"] and said["std"] == 0
    assert "most likely actions" in text and said["deterministic"]
    text, said = evaluated(tmp_path, same, "--episodes", 64, "--sample")
    assert remark not in text and said["random"] and said["std"] > 0
    assert "sampled actions" in text and not said["deterministic"]


def test_it_samples_where_evaluations_of_the_run_do(tmp_path, same):
    text, said = evaluated(tmp_path, same, "--episodes", 4)
    assert "sampled actions" in text and not said["deterministic"]
    assert said["mean"] == pytest.approx(rows(same)[-1]["eval/mean_reward"])


ELSEWHERE = ("--env.negative=0", "--env.reward", 3, "--env.limit", 4)


def test_it_plays_another_environment_on_request(tmp_path, signs):
    """Four rewards of 3, whatever the actions; it says what is not as in training."""
    text, said = evaluated(tmp_path, signs, "--episodes", 8, *ELSEWHERE)
    for line in ("negative: 0.5 -> 0.0", "reward: 1.0 -> 3.0", "limit: 5 -> 4"):
        assert f"env.{line}\n" in text
    assert (said["mean"], said["std"], said["unfinished"]) == (12, 0, 0)
    assert said["fields"] == " ".join(map(str, ELSEWHERE))


def test_what_is_no_field_of_the_environment_is_refused(signs):
    for words, message in (
        (("--env.limt", 4), "--env.limit"),
        (("--env.limit", -4), "TimeLimitChain.limit: expected at least 1, got -4"),
        (("--gamma", 0.5), "error: no option is called '--gamma'"),
        (("--env", "CartPole-v1"), "error: env: expected the observations of training"),
        (("--envs", "CartPole-v1"), "error: no option is called '--envs'"),
    ):
        done = called("evaluate", signs, *words)
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert message in done.stderr, done.stderr
    done = called("evaluate", "--env.limit", 4, signs)
    assert done.returncode == 2 and "--env.limit: expected EXPERIMENT" in done.stderr


def test_numbers_that_are_not_asked_for_are_those_of_the_checkpoint(tmp_path, signs):
    """Also of one from before the run went on with others."""
    run_dir = shutil.copytree(signs, tmp_path / "run")
    longer = ("--env.reward", 2, "--env.negative", 0, "--total-timesteps", 32 * 28)
    words = (run_dir / "experiment.py", "--run-dir", run_dir, "--resume", *longer)
    assert called("train", *words).returncode == 0
    for update, mean in ((24, 3), (28, 6)):
        options = ("--checkpoint", update, "--env.limit", 3, "--env.negative=0")
        _, said = evaluated(tmp_path, run_dir, "--episodes", 4, *options)
        assert said["mean"] == mean
