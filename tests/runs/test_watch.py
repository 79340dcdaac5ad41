"""A video of a run's agent, as a user makes one."""

import functools
import re

import numpy as np
import pytest
from brief import experiment

from ppo_jax import evaluate, load, watch
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.errors import UserError
from ppo_jax.host.agents.trained import Trained
from ppo_jax.host.loop import training

Image = pytest.importorskip("PIL.Image")


def saved(home, env):
    """The run of an agent that has learned nothing, and soon lets a pole fall."""
    config = experiment(env, seed=4)
    return Trained(config, training.start(config), update=2).save(home / "run")


@pytest.fixture(scope="module")
def cart(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("cart"), "CartPole-v1")


def test_a_gif_shows_the_episodes_of_an_evaluation(cart, capsys):
    """With the same seed: their returns, and a frame for each step of the longest."""
    lines = ["--episodes", "3", "--seed", "5"]
    assert watch.main([str(cart), *lines]) == 0
    said = capsys.readouterr().out
    assert "checkpoint 2, 128 steps; most likely actions, seed 5" in said
    found = re.findall(r"episode \d: return (\d+) after (\d+) steps\n", said)
    returns, lengths = np.array(found, int).T
    assert (returns == lengths).all()  # A cart is paid 1 for each.
    assert evaluate.main([str(cart), *lines]) == 0
    (mean,) = re.findall(r"mean  (\S+)\n", capsys.readouterr().out)
    assert float(mean) == pytest.approx(returns.mean(), rel=1e-5)
    with Image.open(cart / "watch.gif") as picture:
        assert picture.n_frames == lengths.max()
        assert picture.size == (640, 2 * (picture.height // 2))
        assert picture.info["duration"] == 50


def test_options_are_heard(cart, tmp_path, capsys):
    out = tmp_path / "x.gif"
    line = [str(cart), "--episodes", "1", "--steps", "4", "--fps", "10", "--sample"]
    assert watch.main([*line, "--checkpoint", "2", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "sampled actions" in said and str(out) in said
    assert "episode 1: return 4 after 4 steps, where it was left: --steps" in said
    with Image.open(out) as picture:
        assert (picture.n_frames, picture.info["duration"]) == (4, 100)


WRONG = {
    "nowhere": "nowhere: no run to be found there",
    "RUN --episodes 0": "--episodes: expected at least 1, got 0",
    "RUN --seed -1": "--seed: expected 0 to 2³² − 1, got -1",
    "RUN --steps 0": "--steps: expected at least 1, got 0",
    "RUN --fps 0": "--fps: expected 1 to 50, got 0",
    "RUN --out x.avi": "x.avi: expected a name that ends in .gif or .mp4",
    "RUN --out nowhere/x.gif": "nowhere/x.gif: cannot be written: No such file",
    "RUN --checkpoint 7": "no checkpoint 7; there are: 2",
    "RUN --member 1": "--member: expected 0 to 0, got 1",
    "RUN --episods 1": "'--episods'; the closest is '--episodes'",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_cannot_be_is_said(cart, line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(cart.rglob("*"))
    assert watch.main(line.replace("RUN", str(cart)).split()) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and WRONG[line] in said.err
    assert sorted(cart.rglob("*")) == before and not [*tmp_path.iterdir()]


def test_what_cannot_be_said_in_python_is_said(cart):
    agent = load(cart)
    asked = {
        "episodes: expected at least 1, got 0": functools.partial(
            agent.watch, "x.gif", 0
        ),
        "steps: expected at least 1": functools.partial(agent.watch, "x.gif", steps=0),
        "fps: expected a whole number": functools.partial(agent.watch, "x.gif", fps=99),
        "x.avi: expected a name that ends": functools.partial(agent.watch, "x.avi"),
    }
    for said, ask in asked.items():
        with pytest.raises((UserError, ValueError), match=said):
            ask()


def test_an_environment_without_pictures_is_said(tmp_path, capsys):
    """And what to do about it."""
    run_dir = saved(tmp_path, TimeLimitChain())
    assert watch.main([str(run_dir)]) == 2
    said = "error: TimeLimitChain.render: missing; an environment is drawn by one of i"
    assert capsys.readouterr().err.startswith(said)
    assert not (run_dir / "watch.gif").exists()
