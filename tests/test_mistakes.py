"""What an experiment says wrongly is told by the command, and without a traceback."""

import json
import subprocess
import sys

import pytest
from runs import ENVIRONMENT, EXPERIMENT, command

from ppo_jax import experiment as experiments

BEGINNING = (
    EXPERIMENT.format(memory="")
    + """
import dataclasses
import numpy as np
from ppo_jax import PBT, LogUniform, Uniform, envs, pbt, terms
from ppo_jax.component import component

@component
class OwnTorso(networks.Mlp):
    def __call__(self, obs):
        return obs["seen"]

@component
class OwnHead(networks.SquashedHead):
    pass

def changed(**fields):
    return dataclasses.replace(config, **fields)

def seen_by(torso, env):
    return changed(env=env, network=networks.ActorCritic(torso))

def searching(path, **fields):
    return changed(pbt=PBT({path: Uniform(0.2, 0.8)}, size=4), **fields)

"""
)
WRITTEN = {
    "changed(terms=())": ["Config.terms: expected a term to learn from"],
    "seen_by(networks.Cnn(channels=(8,) * 6), 'Breakout-MinAtar')": [
        "Cnn.channels: expected at most 4 layers for grids of 10×10",
        "got (8, 8, 8, 8, 8, 8)",
    ],
    "seen_by(networks.Cnn(), 'CartPole-v1')": ["[H, W, features], got [(4,)]"],
    "seen_by(OwnTorso(), 'CartPole-v1')": [
        "ActorCritic.torso: expected Mlp or Cnn itself",
        "OwnTorso",
    ],
    "changed(network=networks.ActorCritic(head=OwnHead()))": ["ActorCritic.head"],
    "Config('CartPole-v1', learning_rate=1e-3)": ["'optimizer.learning_rate'"],
    "Config('CartPole-v1', num_enves=8)": ["closest is 'num_envs'"],
    "Config('CartPole-v1', terms=(terms.Entropy(coeff=1),))": ["closest is 'coef'"],
    "Config('HalfCheetah-v4')": ["there are: CartPole-v1, ", "Freeway-MinAtar"],
    "Config('MNISTBandit-bsuite')": [
        "MNISTBandit-bsuite",
        "needs the network to download",
    ],
    "Config(envs.Gymnax('CartPole-v1', params={'gravty': 9}))": ["'gravity'"],
    "Config(envs.Gymnax('CartPole-v1', params={'gravity': 'low'}))": [
        "CartPole-v1.gravity: expected float | None, got 'low'"
    ],
    "Config(envs.Gymnax('Pendulum-v1', params={'max_torque': 4.0}))": [
        "Gymnax.params: expected numbers that leave the actions Box(low=(-2.0,)"
    ],
    "changed(total_timesteps=1.5)": ["Config.total_timesteps: expected int, got 1.5"],
    "changed(gamma=np.float32(2.0))": ["Config.gamma", "got 2.0"],
    "searching('num_epochs')": ["num_epochs is structure, which cannot", "sweep"],
    "searching('obs_clip')": ["obs_clip is absent"],
    "searching('gama', num_minibatches=7)": ["closest is 'gamma'"],
    "changed(pbt=PBT({}, size=3))": ["PBT.selector.ratio: expected at least 1 / size"],
}
OPTIONS = {
    "--learning-rate=1e-3": ["--optimizer.learning-rate"],
    "--num-enves=8": ["--num-envs"],
    "--total-timesteps=1.5": ["--total-timesteps", "'1.5' is no whole number"],
    "--total-timesteps=many": ["--total-timesteps", "'many' is no whole number"],
}
SILLY = {
    "Config('HalfCheetah-v4')": "closest",
    "searching('gama', num_minibatches=7)": "Config.num_minibatches",
}
SESSION = """
import contextlib, io, json, sys, traceback
from ppo_jax.train import main

told = []
for arguments in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        with contextlib.redirect_stderr(text):
            try:
                status = main(arguments)
            except SystemExit as exit:
                status = exit.code
            except Exception:
                status = traceback.print_exc()
    told.append((status, text.getvalue()))
print(json.dumps(told))
"""
OFFLINE = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The exit status and the text of every mistake, from one process."""
    home, right = tmp_path_factory.mktemp("mistakes"), "right.py"
    texts = [*(f"config = {line}\n" for line in WRITTEN), ""]
    paths = [home / f"{i}.py" for i in range(len(WRITTEN))] + [home / right]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(BEGINNING + text)
    asked = [[str(path)] for path in paths[:-1]]
    asked += [[str(home / right), *option.split("=")] for option in OPTIONS]
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        input=json.dumps(asked),
        env=ENVIRONMENT | OFFLINE,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return dict(zip([*WRITTEN, *OPTIONS], json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("mistake", [*WRITTEN, *OPTIONS])
def test_a_mistake_is_told(told, mistake):
    status, text = told[mistake]
    assert status == 2, text
    assert "Traceback" not in text
    for part in (WRITTEN | OPTIONS)[mistake]:
        assert part in text
    if mistake in SILLY:
        assert SILLY[mistake] not in text


ODD = """
config = changed(
    terms=(terms.Value(), terms.Value()),
    pbt=PBT(
        {
            "optimizer.learning_rate": LogUniform(1e-4, 1e-2),
            "gamma": Uniform(0.9, 0.999),
        },
        size=4,
        interval=8,
    ),
)
"""


def test_what_is_odd_is_told_in_a_line_and_trains(tmp_path):
    """A population of four too, with no choice of its own but size and interval."""
    path, run_dir = tmp_path / "experiment.py", tmp_path / "run"
    path.write_text(BEGINNING + ODD)
    done = command("train", path, "--run-dir", run_dir)
    assert done.returncode == 0, done.stderr
    expected = (
        "PBT.space: gamma: two steps by its factor cross Uniform(",
        "Config.terms: none says what the policy should do, only Value",
        "Config.terms: 2 of Value add up",
    )
    lines = done.stderr.splitlines()
    assert len(lines) == len(expected), done.stderr
    for line, beginning in zip(lines, expected, strict=True):
        assert line.startswith(f"warning: {beginning}")
    rows = [json.loads(x) for x in (run_dir / "lineage.jsonl").read_text().splitlines()]
    assert [sum(row["copied"]) for row in rows[1:]] == [1, 1, 1]


FREELY = """
config = changed(
    num_envs=np.int64(4),
    num_steps=np.array(8),
    total_timesteps=7.68e2,
    gamma=np.float32(0.5),
    gae_lambda=1,
    terms=[terms.Surrogate(), terms.Value()],
    network=networks.ActorCritic(networks.Mlp(hidden=[8, np.int32(4), 2.0])),
)
"""


def test_what_loses_nothing_is_taken(tmp_path):
    """From Python and from the command line: whole floats, lists, scalars of NumPy."""
    path, run_dir = tmp_path / "experiment.py", tmp_path / "run"
    path.write_text(BEGINNING + FREELY)
    options = ("--num-epochs", "1e0", "--total-timesteps", "6.4e1", "--seed", "3.0")
    done = command("train", path, "--run-dir", run_dir, *options)
    assert done.returncode == 0, done.stderr
    told = experiments.stored(run_dir, "config.json")
    whole = dict(num_envs=4, num_steps=8, num_epochs=1, total_timesteps=64, seed=3)
    assert {name: told[name]["value"] for name in whole} == {
        name: str(value) for name, value in whole.items()
    }
    assert told["gamma"] == {"kind": "number", "value": "0.5"}
    assert told["gae_lambda"] == {"kind": "number", "value": "1.0"}
    assert told["network.torso.hidden"]["value"] == "(8, 4, 2)"
    assert told["terms.1.type"]["value"] == "Value"
