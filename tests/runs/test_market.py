"""Prices of a file in whole runs: what is wrong is told, and what changed as well."""

import json
import shlex

import pytest
from price_files import BROKEN, GOOD, text
from runs import session

EXPERIMENT = """
import pathlib

from ppo_jax import Config, networks, optimizers, terms
from ppo_jax.envs.trading import Features, PriceFile, Trading, repairs

config = Config(
    env=Trading(
        PriceFile("{path}"),
        window=8,
        features=Features(horizons=(1, 5), volatility=5, drawdown=5),
    ),
    num_envs=4,
    num_steps=8,
    num_minibatches=2,
    total_timesteps=32 * 2,
    phase_updates=1,
    eval_phases=1,
    eval_episodes=4,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(4,)), shared=True),
    optimizer=optimizers.Sgd(),
    terms=(terms.Surrogate(),),
)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("market")
    (place / "good.csv").write_text(GOOD)
    for name, (content, _) in BROKEN.items():
        (place / f"{name}.csv").write_text(content)
    (place / "good.py").write_text(EXPERIMENT.format(path="good.csv"))
    (place / "split.py").write_text(EXPERIMENT.format(path="split.csv"))
    return place


@pytest.fixture(scope="module")
def told(place):
    """What commands say, of each broken file and of more."""
    lines = {
        name: f"train good.py --run-dir run_{name} --env.prices.path {name}.csv"
        for name in BROKEN
    }
    lines |= {
        "in the file": "train split.py --run-dir run_there",
        "window": "train good.py --run-dir run_window --env.window 200",
        "fold": "train good.py --run-dir run_fold --env.first 3",
        "choices": "train good.py --run-dir run_choices --env.positions 0 3",
        "repair": "train good.py --run-dir run_repair --env.prices.repairs sort",
    }
    resumed = "--run-dir run --resume --total-timesteps 96"
    lines |= {
        "begun": "train good.py --run-dir run",
        "resumed": f"train run/experiment.py {resumed}",
    }
    answers = session(map(shlex.split, lines.values()), place)
    return dict(zip(lines, answers, strict=True))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_told_on_the_command_line(told, name):
    """Line, column and repair; no run is begun, and nothing comes raw."""
    status, said = told[name]
    assert status == 2 and "Traceback" not in said, said
    for part in BROKEN[name][1]:
        assert part in " ".join(said.split()), said


def test_an_experiment_with_a_broken_file_shows_its_line(told, place):
    status, said = told["in the file"]
    assert status == 2 and "Traceback" not in said
    assert "split.csv, line 60, column 'open': split jumped to about 0.5" in said
    assert 'split.py", line' in said and 'PriceFile("split.csv")' in said
    assert not list(place.glob("run_*"))  # Nor is a run begun by any other.


def test_what_does_not_go_together_is_told(told):
    said = {name: told[name] for name in ("window", "fold", "choices", "repair")}
    assert [status for status, _ in said.values()] == [2, 2, 2, 2]
    assert not any("Traceback" in text for _, text in said.values())
    assert "expected more than 205 bars" in said["window"][1]
    assert "100 of PriceFile(path='good.csv'" in said["window"][1]
    assert "Trading.first: expected 5 to 91" in said["fold"][1]
    assert "Trading.positions: expected distinct numbers" in said["choices"][1]


def test_a_run_goes_on_with_the_prices_that_it_began_with(told, place):
    """And with no others, wherever they differ; whoever plays them says so."""
    assert [told[name][0] for name in ("begun", "resumed")] == [0, 0], told["resumed"]
    stored = json.loads((place / "run" / "config.json").read_text())["env.prices"]
    assert stored["kind"] == "structure"
    assert "path='good.csv'" in stored["value"] and "sha256='" in stored["value"]
    (place / "good.csv").write_text(text(GOOD.splitlines()[:-1]))
    words = "train run/experiment.py --run-dir run --resume --total-timesteps 128"
    lines = [words.split(), ["evaluate", "run", "--episodes", 4]]
    refused, played = session(lines, place)
    (place / "good.csv").write_text(GOOD)
    status, said = played
    changed = f"env.prices: {stored['value']} -> PriceFile(path='good.csv'"
    assert status == 0 and said.startswith(
        f"warning: run: the experiment is not as it was trained: {changed}"
    )
    status, said = refused
    assert status == 2 and "Traceback" not in said
    said = " ".join(said.split())
    assert "the experiment is not the one of this run" in said
    assert changed in said
