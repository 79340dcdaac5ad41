"""Every suite by an id on the command line, and what is wrong with an id."""

import pytest
from runs import command, rows, session

EXPERIMENT = """
from ppo_jax import Config, networks, optimizers, terms

config = Config(
    "CartPole-v1",
    num_envs=2,
    num_steps=4,
    num_minibatches=1,
    num_epochs=1,
    total_timesteps=16,
    eval_episodes=1,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(4,))),
    optimizer=optimizers.Sgd(),
    terms=(terms.Surrogate(),),
)
"""
BROUGHT = {
    "gymnax/Acrobot-v1": "gymnax",
    "gymnasium/Blackjack-v1": "gymnasium",
    "jumanji/Knapsack-v1": "jumanji",
    "xminigrid/MiniGrid-Empty-5x5": "xminigrid",
}
"""Which package has an environment, of suites that tests bring along,"""
OTHERS = {
    "brax/fast": "brax",
    "brax/swimmer": "brax",
    "craftax/Craftax-Classic-Symbolic-v1": "craftax",
    "gymnasium/InvertedPendulum-v5": "mujoco",
    "playground/PendulumSwingup": "mujoco_playground",
}
"""and of all others."""


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "the.py"
    found.write_text(EXPERIMENT)
    return found


def trained(path, env_id, package):
    """Whether an experiment is trained in another environment than its own."""
    pytest.importorskip(package)
    run_dir = path.parent / "run"
    options = ("--env", env_id, "--run-dir", run_dir, "--no-report")
    done = command("train", path, *options, timeout=500)
    assert done.returncode == 0, done.stderr
    assert rows(run_dir)[-1]["error/quarantined_steps"] == 0


@pytest.mark.parametrize("env_id", BROUGHT)
def test_an_environment_of_a_suite_is_trained_in(path, env_id):
    trained(path, env_id, BROUGHT[env_id])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("env_id", OTHERS)
def test_an_environment_of_a_large_suite_is_trained_in(path, env_id):
    trained(path, env_id, OTHERS[env_id])


MISTAKES = {
    "gym/CartPole-v1": "no suite is called 'gym'; the closest is 'gymnax'",
    "Jumanji/Snake-v1": "no suite is called 'Jumanji'; the closest is 'jumanji'",
    "mujoco/ant": "there are: gymnax, brax, playground, craftax, jumanji, xminigrid",
    "/CartPole-v1": "no suite is called ''",
    "": "no environment of gymnax is called ''",
    "Snake-v1": "those of other suites begin with theirs, as brax/ant does",
    "jumanji": "those of other suites begin with theirs",
    "jumanji/": "no environment of Jumanji is called ''; there are: BinPack-v2",
    "jumanji/snake-v1": "is called 'snake-v1'; the closest is 'Snake-v1'",
    "jumanji/Snake": "is called 'Snake'; the closest is 'Snake-v1'",
    "xminigrid/minigrid-doorkey-8x8": "the closest is 'MiniGrid-DoorKey-8x8'",
    "gymnasium/cartpole-v1": "the closest is 'CartPole-v1'; yours gets an id with",
    "gymnax/cartpole-v1": "the closest is 'CartPole-v1'",
    "jumanji/Sokoban-v0": "does not have to download its levels, got 'Sokoban-v0'",
    "xminigrid/XLand-MiniGrid-R1-9x9": "would have to be downloaded, got 'XLand",
    "gymnax/MNISTBandit-bsuite": "needs the network to download what it is made of",
    "jumanji/MultiCVRP-v0": "expected real ones, or so many of a kind, got Bounded",
    "gymnasium/absent:Mine-v0": "No module named 'absent'",
}
HIDDEN = """
import sys
sys.modules |= dict.fromkeys(
    ("brax", "craftax", "jumanji", "mujoco", "mujoco_playground", "xminigrid")
)
"""
EXTRAS = {
    "brax/ant": "brax",
    "craftax/Craftax-Symbolic-v1": "craftax",
    "gymnasium/HalfCheetah-v5": "mujoco",
    "jumanji/Snake-v1": "jumanji",
    "playground/CheetahRun": "playground",
    "xminigrid/MiniGrid-Empty-5x5": "xminigrid",
}


def told(path, ids):
    """What is said of ids, none of which can be used."""
    lines = [["train", path, "--env", env_id] for env_id in ids]
    for status, text in session(lines, path.parent):
        assert status == 2 and text.startswith("error: ") and "Traceback" not in text
        yield text


def test_an_id_that_is_none_is_told(path):
    """With the closest one, or what there is; nothing is downloaded."""
    for (env_id, expected), text in zip(
        MISTAKES.items(), told(path, MISTAKES), strict=True
    ):
        assert expected in text, env_id
    assert not (path.parent / "runs").exists()


def test_what_to_install_is_told(path):
    path.write_text(HIDDEN + EXPERIMENT)
    for extra, text in zip(EXTRAS.values(), told(path, EXTRAS), strict=True):
        assert f"which is not installed: pip install 'ppo_jax[{extra}]'" in text
