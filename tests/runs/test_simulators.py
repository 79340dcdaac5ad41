"""Whole runs in simulators on the host: commands, resumes, mistakes, and their ends."""

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import chex
import gyms
import pytest
from runs import ALIKE, arguments, leaves, rows, saved, wait_for_checkpoint

import ppo_jax
from ppo_jax.__main__ import main
from ppo_jax.host.run_dir import experiment, files

EXPERIMENT = """
import gyms
from ppo_jax import PBT, Config, LogUniform, envs, networks, optimizers, terms

config = Config(
    env=envs.Gymnasium("Walk-v0", params={"fault": 0.0}),
    num_envs=4,
    num_steps=8,
    num_minibatches=2,
    num_epochs=2,
    total_timesteps=32 * 8,
    phase_updates=2,
    eval_phases=1,
    eval_episodes=4,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(8,)), shared=True),
    optimizer=optimizers.Sgd(),
    terms=(terms.Surrogate(),),
)
"""
POPULATION = """
import dataclasses
from ppo_jax.pbt import Maximize

space = {"optimizer.learning_rate": LogUniform(1e-4, 1e-2)}
rules = PBT(space, size=4, interval=2, fitness=Maximize("train/learning_rate"))
config = dataclasses.replace(config, pbt=rules)
"""
LONG = ("--total-timesteps", str(32 * 100_000))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("experiments") / "walk.py"
    found.write_text(EXPERIMENT)
    return found


@pytest.fixture(scope="module")
def finished(path):
    """A run of half the budget."""
    run_dir = path.parent / "finished"
    given = ("--run-dir", run_dir, "--total-timesteps", 32 * 4)
    assert said(None, "train", path, *given, "--quiet")[0] == 0
    return run_dir


def said(capsys, *words):
    """The exit status of a command, and what it prints."""
    try:
        status = main([*map(str, words)])
    except SystemExit as exit:
        status = exit.code
    out = "" if capsys is None else "".join(capsys.readouterr())
    assert "Traceback" not in out
    assert not workers_of(os.getpid())
    return status, out


def workers_of(number):
    """The processes of simulators that a process has begun."""
    words = ["ps", "-o", "pid=,args=", "--ppid", str(number)]
    found = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return [int(x.split()[0]) for x in found.splitlines() if "worker.py" in x]


def test_a_run_goes_on_with_new_episodes(path, finished, tmp_path, capsys):
    """What it goes on with is what it had; twice resumed, it ends the same twice."""
    _, before = leaves(finished)
    ends = []
    for name in ("one", "other"):
        run_dir = shutil.copytree(finished, tmp_path / name)
        more = ("--run-dir", run_dir, "--resume", "--total-timesteps", 32 * 8)
        status, text = said(capsys, "train", path, *more)
        assert status == 0 and "resuming after update 4 of 8" in text
        assert "the simulators begin new episodes" in text
        assert rows(run_dir)[:2] == rows(finished)
        ends.append(leaves(run_dir))
    assert ends[0][0] == ends[1][0] == 8
    chex.assert_trees_all_equal(*(arrays for _, arrays in ends))
    assert any((x != y).any() for x, y in zip(before, ends[0][1], strict=True))


def test_a_run_of_python_is_one_of_the_command(finished):
    """And its agent plays the same episodes again."""
    loaded = ppo_jax.load(finished)
    trained = ppo_jax.fit(loaded.config, quiet=True)
    assert trained.ending == "finished" and not workers_of(os.getpid())
    chex.assert_trees_all_equal(trained.params, loaded.params)
    assert trained.evaluate(4) == loaded.evaluate(4)


def test_commands_do_what_they_do_of_any_run(path, finished, tmp_path, capsys):
    figures = tmp_path / "figures.json"
    for words in (
        ("evaluate", finished, "--episodes", 4, "--json", figures),
        ("export", finished, "--format", "numpy", "--out", tmp_path / "policy"),
        ("report", finished),
        ("runs", path.parent),
        ("train", path, "--warm-start", finished, "--run-dir", tmp_path / "warm"),
    ):
        status, text = said(capsys, *words)
        assert status == 0, text
    assert json.loads(figures.read_text())["random"]


@pytest.mark.slow
def test_commands_that_compile_more_do_so_too(path, finished, tmp_path, capsys):
    many, run_dir = tmp_path / "many.py", tmp_path / "run"
    many.write_text(EXPERIMENT + POPULATION)
    attacked = ("robustness", finished, "--eps", 0.1, "--episodes", 2)
    for words in (
        (*attacked, "--out", tmp_path / "harm"),
        ("sweep", path, "--seeds", 2, "--run-dir", tmp_path / "sweep"),
        ("selfcheck", path),
        ("train", many, "--run-dir", run_dir),
        ("replay", run_dir, "--to", tmp_path / "one"),
    ):
        status, text = said(capsys, *words)
        assert status == 0, text


DOORS = """
import dataclasses
import gymnasium
import numpy as np

class Doors(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    action_space = gymnasium.spaces.MultiDiscrete([3, 2])

    def __init__(self, fault: float = 0.0):
        self.said = {1: {}, 2: {"action_mask": (np.zeros(3), np.zeros(2))}}.get(fault)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return self.seen()

    def seen(self):
        draw = self.np_random.permutation
        self.open = draw([1, 0, 0]), draw([1, 0])
        return np.ones(1), {"action_mask": self.open}

    def step(self, action):
        if not all(own[i] for own, i in zip(self.open, action)):
            raise RuntimeError("a door was shut")
        obs, info = self.seen()
        info = info if self.said is None else self.said
        return obs, 1.0, False, False, info | {"cost": 0.5}

gymnasium.register("Doors-v0", entry_point=Doors, max_episode_steps=5)
env = envs.Gymnasium("Doors-v0", params={"fault": 0.0})
config = dataclasses.replace(config, env=env)
"""
SAYS_NOTHING, FORBIDS_ALL = 1, 2


@pytest.fixture(scope="module")
def doors(path):
    """The file of a population, and a run of half its budget."""
    file, run_dir = path.parent / "doors.py", path.parent / "doors"
    file.write_text(EXPERIMENT + DOORS + POPULATION)
    half = ("--run-dir", run_dir, "--total-timesteps", 32 * 4)
    assert said(None, "train", file, *half)[0] == 0
    return file, run_dir


def test_a_population_is_trained(doors):
    lines = files.rows(doors[1] / "lineage.jsonl")
    assert len(lines) > 2 and any(any(x.get("copied", ())) for x in lines)


def test_a_door_that_is_shut_is_never_tried(doors, tmp_path, capsys):
    """Of two parts of an action, and by no command; else all of them would fail."""
    file, run_dir = doors[0], shutil.copytree(doors[1], tmp_path / "run")
    for words in (
        ("train", file, "--run-dir", run_dir, "--resume"),
        ("evaluate", run_dir, "--episodes", 4, "--sample"),
        ("selfcheck", file),
        ("export", run_dir, "--format", "numpy", "--out", tmp_path / "policy"),
    ):
        status, text = said(capsys, *words)
        assert status == 0, text
    last = rows(run_dir)[-1]
    assert last["rollout/cost_mean"] == 0.5 and last["eval/mean_reward"] == 5.0
    assert ppo_jax.load(run_dir).policy.mask_spec.shape == (5,)


def test_what_is_forbidden_is_found_by_itself(path, tmp_path, capsys):
    taxi = ("--env", gyms.TAXI, "--run-dir", tmp_path)
    status, text = said(capsys, "train", path, *taxi)
    assert status == 0, text
    assert ppo_jax.load(tmp_path).policy.mask_spec.shape == (6,)


FAULTY = {
    gyms.RAISES: "gymnasium/Walk-v0: RuntimeError: the floor is wet\n  File ",
    gyms.DIES: "gymnasium/Walk-v0: a process of simulators ended by signal 6",
    gyms.GROWS: "gymnasium/Walk-v0: ValueError: observation: expected the shape (2,)",
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_simulator_that_breaks_ends_the_run_which_can_go_on(
    path, finished, tmp_path, capsys, fault
):
    run_dir = shutil.copytree(finished, tmp_path / "run")
    more = ("--run-dir", run_dir, "--resume", "--total-timesteps", 32 * 8)
    broken = (*more, "--env.params.fault", float(fault))
    status, text = said(capsys, "train", path, *broken)
    assert (
        status == 3 and f"error: {FAULTY[fault]}"[-30:] in text and "--resume" in text
    )
    assert saved(run_dir) == [2, 4]
    assert json.loads((run_dir / "ending.json").read_text())["state"] == "failed"
    again = (*more, "--env.params.fault", 0.0, "--quiet")
    assert said(capsys, "train", path, *again)[0] == 0


@pytest.mark.parametrize("fault", [gyms.NAN_REWARD, gyms.NAN_OBS])
def test_what_is_not_finite_is_said(path, tmp_path, capsys, fault):
    """Where nothing is left to learn from for long, the run ends."""
    ill = ("--env.params.fault", float(fault), "--max-failures", 2)
    status, text = said(capsys, "train", path, *ill, "--run-dir", tmp_path)
    assert status == 3 and "warn/quarantined_steps: error/quarantined_steps = " in text


@pytest.mark.parametrize("fault", [SAYS_NOTHING, FORBIDS_ALL])
def test_a_mask_that_is_none_ends_the_run(doors, tmp_path, capsys, fault):
    faulty = ("--env.params.fault", float(fault), "--run-dir", tmp_path)
    status, text = said(capsys, "train", doors[0], *faulty)
    assert status == 3
    assert "gymnasium/Doors-v0: ValueError: info['action_mask']: " in text


MISTAKES = {
    ("--env.id", "Wolk-v0"): "is called 'Wolk-v0'; the closest is 'Walk-v0'",
    ("--env.id", "Whole-v0"): "expected real actions in a Box; whole ones are a Multi",
    ("--env.id", "absent:Mine-v0"): "No module named 'absent'",
    ("--env.params.fault", "much"): "--env.params.fault",
    ("--env.params.fauld", "1.0"): "--env.params.fault",
    ("--env.params.max-episode-steps", "0"): "max_episode_steps` to be positive",
    ("--devices-per-member", "2"): "devices_per_member = 2: expected 1 or None",
}
FILES = {
    "env='gymnasiun/CartPole-v1'": "the closest is 'gymnasium'",
    "env='gymnasium/CartPol-v1'": "the closest is 'CartPole-v1'",
    "env=envs.TimeLimit('gymnasium/CartPole-v1', 5)": "that programs step",
    "env=envs.ResetPool(config.env, 2)": "that programs step",
    "env=envs.Gymnasium('Walk-v0', {'fauld': 1.0})": "the closest is 'fault'",
    "env=envs.Gymnasium('LunarLander-v3')": "Box2D is not installed",
    "env=envs.Gymnasium": "a class has to be called: Gymnasium",
    "stop_at={'eval/mean_rewar': 1.0}": "the closest is 'eval/mean_reward'",
}


def test_mistakes_are_told(path, tmp_path, capsys):
    """And nothing is left behind."""
    for words, expected in MISTAKES.items():
        status, text = said(capsys, "train", path, "--run-dir", tmp_path / "x", *words)
        assert status == 2 and expected in " ".join(text.replace("│", " ").split()), (
            text
        )
    for number, (changed, expected) in enumerate(FILES.items()):
        file = tmp_path / f"experiment{number}.py"
        file.write_text(
            f"{EXPERIMENT}\nimport dataclasses\n"
            f"config = dataclasses.replace(config, {changed})\n"
        )
        status, text = said(capsys, "train", file, "--run-dir", tmp_path / "x")
        assert status == 2 and expected in text, text


def process(*words):
    """A command, in a group of its own as a shell would begin it."""
    places = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        arguments(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ALIKE | {"PYTHONPATH": places},
        start_new_session=True,
    )


def gone(workers):
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{number}") for number in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_signal_to_all_saves_and_leaves_no_process(path, tmp_path):
    """As Ctrl-C in a terminal, which the simulators hear too."""
    run_dir = tmp_path / "run"
    train = process("train", path, "--run-dir", run_dir, "--no-report", *LONG)
    wait_for_checkpoint(train, run_dir)
    workers = workers_of(train.pid)
    assert workers
    os.killpg(train.pid, signal.SIGINT)
    output, _ = train.communicate(timeout=120)
    assert train.returncode == 130, output
    assert "--resume" in output and "Traceback" not in output
    gone(workers)


def test_what_cannot_draw_is_said(finished, capsys):
    """A walk takes no `render_mode`."""
    pytest.importorskip("PIL")
    status, text = said(capsys, "watch", finished)
    assert status == 2 and "error: cannot be drawn: gymnasium/Walk-v0: " in text
    assert "argument 'render_mode'" in text and not (finished / "watch.gif").exists()


@pytest.mark.slow
def test_an_agent_of_cartpole_is_watched(path, tmp_path, capsys):
    """It returns what the same episodes of `evaluate` do."""
    pytest.importorskip("pygame")
    image = pytest.importorskip("PIL.Image")
    file, run_dir = tmp_path / "cart.py", tmp_path / "run"
    file.write_text(
        EXPERIMENT.replace('Walk-v0", params={"fault": 0.0}', 'CartPole-v1"')
    )
    assert said(capsys, "train", file, "--run-dir", run_dir)[0] == 0
    status, text = said(capsys, "watch", run_dir, "--episodes", 2)
    lengths = [int(x) for x in re.findall(r"return (\d+) after", text)]
    assert status == 0 and len(lengths) == 2
    _, text = said(capsys, "evaluate", run_dir, "--episodes", 2)
    assert f"mean  {sum(lengths) / 2:g}\n" in text
    with image.open(run_dir / "watch.gif") as picture:
        assert picture.n_frames == max(lengths)


@pytest.mark.slow
def test_cartpole_is_balanced_on_the_host():
    """As on the device, with the numbers that balance it there."""
    config = experiment.load(Path(__file__).parents[2] / "experiments/cartpole.py", [])
    env, goal = "gymnasium/CartPole-v1", {"eval/mean_reward": 475.0}
    config = dataclasses.replace(config, env=env, stop_at=goal, eval_episodes=32)
    trained = ppo_jax.fit(config, quiet=True)
    assert trained.evaluate(64, seed=7)["mean"] >= 475, trained.rows[-1]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_a_run_leaves_no_process(path, tmp_path, number):
    run_dir = tmp_path / "run"
    train = process("train", path, "--run-dir", run_dir, "--no-report", *LONG)
    wait_for_checkpoint(train, run_dir)
    workers = workers_of(train.pid)
    assert workers
    train.send_signal(number)
    output, _ = train.communicate(timeout=120)
    assert train.returncode in (130, -signal.SIGKILL), output
    gone(workers)


@pytest.mark.slow
def test_a_simulator_that_hangs_ends_with_the_run(path, tmp_path):
    hanging = ("--env.params.fault", float(gyms.HANGS), "--stall-seconds", "5")
    train = process("train", path, "--run-dir", tmp_path / "run", *hanging)
    deadline = time.monotonic() + 120
    while not (workers := workers_of(train.pid)):
        assert time.monotonic() < deadline and train.poll() is None
        time.sleep(0.05)
    output, _ = train.communicate(timeout=600)
    assert train.returncode == 4 and "nothing has come back" in output
    gone(workers)
