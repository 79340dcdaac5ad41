"""What a user adds beside an experiment needs no special place in this package.

`outside/toys` is a user's package; what it holds trains, is tuned, saved, resumed and
evaluated by the commands as if it were of this one.
"""

import fnmatch
import json
import re
import shutil
from pathlib import Path

import pytest
from runs import ALIKE, assert_same, called, command, rows, saved, session

TOYS = Path(__file__).parent / "outside" / "toys"
LENGTH, STEPS = 4, 4 * 8
MINE = """
import functools

import optax
from toys import learning, others, parts, worlds

from ppo_jax import PBT, Config, LogUniform, Uniform
from ppo_jax import networks, opponents, optimizers, pbt, terms

SIZES = dict(
    env=worlds.Aim(),
    num_envs=4,
    num_steps=8,
    num_minibatches=2,
    num_microbatches=2,
    num_epochs=2,
    chunk_length=4,
    total_timesteps=32 * 12,
    phase_updates=2,
    eval_phases=1,
    eval_episodes=4,
    holdout_envs=1,
    standardization=learning.Ranks(),
    critic=learning.Huber(delta=0.5),
    terms=(terms.Surrogate(), terms.Value(), learning.Near()),
    obs_clip=10.0,
    opponent=opponents.Opponent(others.Upwards(), others.far_away, share=0.5),
)
"""
SINGLE = """
config = Config(
    network=networks.ActorCritic(parts.Leaky(), parts.Trace(), parts.Doubtful()),
    optimizer=optimizers.Optax(make=functools.partial(optax.lion, b1=0.95)),
    adversary=others.Watchful(others.Upwards()),
    **SIZES,
)
"""
POPULATION = """
config = Config(
    network=networks.ActorCritic(parts.Leaky(), parts.Minimal(size=4), parts.Habit()),
    optimizer=learning.Signs(learning_rate=1e-3),
    pbt=PBT(
        {
            "optimizer.learning_rate": LogUniform(1e-4, 1e-2),
            "optimizer.decay": Uniform(0.5, 0.99),
            "network.torso.slope": Uniform(0.0, 0.5),
            "critic.delta": Uniform(0.1, 2.0),
        },
        size=3,
        interval=4,
        selector=others.Everybody(),
        fitness=pbt.Maximize("toys/reward_mean"),
    ),
    **SIZES | dict(env=worlds.Levers()),
)
"""
TEXTS = {"single": SINGLE, "population": POPULATION}


def written(home, kind):
    """An experiment, and the user's package beside it."""
    shutil.copytree(TOYS, home / "toys")
    path = home / "mine.py"
    path.write_text(MINE + TEXTS[kind])
    return path


@pytest.fixture(scope="module", params=TEXTS)
def run_dir(request, tmp_path_factory):
    """A run with parts of its own, which then are nowhere but in the run."""
    home = tmp_path_factory.mktemp(request.param)
    path = written(home, request.param)
    done = command("train", path, "--run-dir", home / "run", cwd="/", environment=ALIKE)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    path.unlink()
    shutil.rmtree(home / "toys")
    return home / "run"


def test_parts_of_a_user_train_as_those_of_this_package(run_dir):
    """Every update takes all its steps, and its row has every number."""
    written = rows(run_dir)
    assert [row["step"] for row in written] == [STEPS * n for n in range(2, 13, 2)]
    for row in written:
        assert row["train/n_minibatches_done"] == 2 * 2
        assert row["error/skipped_steps"] == 0
        assert None not in [value for name, value in row.items() if "toys/" in name]


def test_a_metric_of_a_user_is_what_it_says(run_dir):
    """Largest of all examples, summed, a quotient; and averaged, if it says nothing."""
    for row in rows(run_dir):
        assert row["toys/extent"] == row["train/log_ratio_max_abs"]
        assert -1.001 < row["toys/nearness"] <= -1
        assert row["toys/steps"] == 2 * STEPS * 3 / 4  # But for those held out.
        expected = row["rollout/ep_rew_mean"] / LENGTH
        assert row["toys/reward_mean"] == pytest.approx(expected, rel=1e-5)
        assert "toys/reward_sum" not in row and "toys/reward_count" not in row
        done = row["step"] // STEPS
        assert row["toys/seen"] == (done - 1 + done - 2) / 2


def test_a_run_tells_what_a_user_s_metrics_are(run_dir):
    """With all others that it has; of what no part says, there is the name."""
    text = (run_dir / "metrics.md").read_text()
    for line in (
        "| `toys/extent` | nats | \\|ln ratio\\|. | largest |  |  |",
        "| `toys/steps` | steps | Learned from. | sum |  |  |",
        "| `toys/reward_mean` | reward | Mean of all steps. | sum / number |  |  |",
        "| `toys/seen` |  |  | mean |  |  |",
    ):
        assert f"{line}\n" in text
    told = re.findall(r"^\| `(.*?)` \|", text, re.MULTILINE)
    said = {name for row in rows(run_dir) for name in row} - {"step"}
    for name in said:
        assert any(fnmatch.fnmatchcase(name, pattern) for pattern in told), name
    for pattern in told:
        clock = pattern.startswith("time/")
        assert clock or fnmatch.filter(said, pattern), pattern


@pytest.mark.parametrize("run_dir", ["single"], indirect=True)
def test_a_metric_of_whoever_a_user_learns_against_is_the_largest_too(run_dir):
    """Of all examples and steps, as a term's: what says it does not matter."""
    for row in rows(run_dir):
        assert 0 < row["sa_ppo/adversarial_ratio"] < 1
        assert row["toys/led_astray"] == row["train/log_ratio_max_abs"]


@pytest.mark.parametrize("run_dir", ["population"], indirect=True)
def test_a_user_s_numbers_are_searched_by_a_user_s_rule(run_dir):
    """Whoever is not the fittest continues the fittest, and explores from there."""
    lines = (run_dir / "lineage.jsonl").read_text().splitlines()
    first, *generations = map(json.loads, lines)
    for generation in generations:
        best = generation["fitness"].index(max(generation["fitness"]))
        assert generation["parent"] == [best] * 3
        assert generation["copied"] == [member != best for member in range(3)]
    for path in ("optimizer.decay", "network.torso.slope", "critic.delta"):
        assert len(set(first["numbers"][path])) == 3
        assert generations[-1]["numbers"][path] != first["numbers"][path]


@pytest.fixture(scope="module")
def later(run_dir):
    """What another process says that goes on from an earlier checkpoint, and evaluates.

    It has nothing that the run was made from.
    """
    cut = shutil.copytree(run_dir, run_dir.parent / "cut")
    shutil.rmtree(cut / "checkpoints" / str(saved(cut)[-1]))
    (cut / "metrics.md").unlink()
    options = ("--episodes", 4, "--json", run_dir.parent / "said.json")
    lines = [
        ("train", cut / "experiment.py", "--run-dir", cut, "--resume"),
        ("evaluate", run_dir, *options),
    ]
    return session(lines, cwd="/")


def test_a_run_of_a_user_s_parts_goes_on_bit_by_bit(run_dir, later):
    """From an earlier checkpoint, without what it was made from."""
    cut = run_dir.parent / "cut"
    status, text = later[0]
    assert status == 0, text
    assert "resuming after update 10 of 12" in text
    assert_same(run_dir, cut)
    assert (cut / "metrics.md").read_text() == (run_dir / "metrics.md").read_text()


def test_a_run_of_a_user_s_parts_is_evaluated(run_dir, later):
    """The same episodes as at its end."""
    status, text = later[1]
    assert status == 0, text
    prefix = "best/" if "each/eval/mean_reward/0" in rows(run_dir)[-1] else ""
    expected = rows(run_dir)[-1][f"{prefix}eval/mean_reward"]
    told = json.loads((run_dir.parent / "said.json").read_text())
    assert told["mean"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("run_dir", ["population"], indirect=True)
def test_a_user_s_head_is_for_discrete_actions_too(run_dir):
    """It learns parameters of a name of its own, and knows which choices are legal."""
    meta = run_dir / "checkpoints" / str(saved(run_dir)[-1]) / "meta" / "metadata"
    names = " ".join(json.loads(meta.read_text())["leaves"])
    assert ".actor.habit" in names and "log_std" not in names
    for row in rows(run_dir):
        assert row["train/grad_norm/other"] > 0
        assert row["error/quarantined_steps"] == 0


MISFITS = {
    'env="Breakout-MinAtar"': "Leaky: expected observations [n], got (10, 10, 4)",
    "env=worlds.Levers()": "Config.network.head: expected a head for "
    "MultiDiscrete(nvec=(2, 3)), not for Box alone, got Doubtful(least=0.1)",
    "network=networks.ActorCritic(head=parts.Habit())": "Config.network.head: expected "
    "a head for Box(low=(-1.0, -1.0), high=(1.0, 1.0)), not for Discrete or "
    "MultiDiscrete alone, got Habit(temperature=2.0)",
}


@pytest.mark.parametrize("change", MISFITS)
def test_a_user_s_part_refuses_what_it_does_not_fit(change, tmp_path):
    """At once, in its own words, and nothing is made."""
    path = written(tmp_path, "single")
    changed = f"\nconfig = dataclasses.replace(config, {change})\n"
    path.write_text(f"import dataclasses\n{path.read_text()}{changed}")
    done = called("train", path, "--run-dir", tmp_path / "run")
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"error: {path}: {MISFITS[change]}")
    assert "Traceback" not in done.stderr and "site-packages" not in done.stderr
    assert not (tmp_path / "run").exists()


FORGETS = "jnp.where(reset[:, None], 0.0, trace)"


@pytest.mark.parametrize("memory", [FORGETS, "trace"])
def test_selfcheck_knows_whether_a_user_s_memory_forgets(memory, tmp_path):
    """At the beginning of an episode, as its contract says."""
    path, parts = written(tmp_path, "single"), tmp_path / "toys" / "parts.py"
    parts.write_text(parts.read_text().replace(FORGETS, memory))
    done = called("selfcheck", path)
    assert done.returncode == (0 if memory == FORGETS else 1), done.stderr
    broken = "NOT SO: what an episode shows changes nothing in the next"
    assert (broken in done.stdout) == (memory != FORGETS)
