"""Every suite by an id on the command line, and what is wrong with an id."""

from importlib.util import find_spec

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


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("suites")
    (place / "the.py").write_text(EXPERIMENT)
    (place / "hidden.py").write_text(HIDDEN + EXPERIMENT)
    return place


@pytest.fixture(scope="module")
def told(place):
    """What is said of ids, by one process, which imports each suite but once."""
    lines = {env_id: train("the.py", env_id) for env_id in MISTAKES}
    lines |= {env_id: train("the.py", env_id, *into(env_id)) for env_id in BROUGHT}
    answers = session(lines.values(), place, timeout=500)
    return dict(zip(lines, answers, strict=True))


def train(path, env_id, *options):
    return ["train", path, "--env", env_id, *options]


def into(env_id):
    return "--run-dir", env_id.replace("/", "_"), "--no-report"


def assert_trained(place, env_id):
    row = rows(place / into(env_id)[1])[-1]
    assert row["error/quarantined_steps"] == 0


@pytest.mark.parametrize("env_id", BROUGHT)
def test_an_environment_of_a_suite_is_trained_in(place, told, env_id):
    if find_spec(BROUGHT[env_id]) is None:
        pytest.skip(f"{BROUGHT[env_id]} is not installed")
    status, text = told[env_id]
    assert status == 0, text
    assert_trained(place, env_id)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("env_id", OTHERS)
def test_an_environment_of_a_large_suite_is_trained_in(place, env_id):
    pytest.importorskip(OTHERS[env_id])
    done = command(*train("the.py", env_id, *into(env_id)), cwd=place, timeout=500)
    assert done.returncode == 0, done.stderr
    assert_trained(place, env_id)


def assert_refused(status, text):
    assert status == 2 and text.startswith("error: ") and "Traceback" not in text


def test_an_id_that_is_none_is_told(place, told):
    """With the closest one, or what there is; nothing is downloaded."""
    for env_id, expected in MISTAKES.items():
        status, text = told[env_id]
        assert_refused(status, text)
        assert expected in text, env_id
    assert not (place / "runs").exists()


def test_what_to_install_is_told(place):
    answers = session([train("hidden.py", env_id) for env_id in EXTRAS], place)
    for extra, (status, text) in zip(EXTRAS.values(), answers, strict=True):
        assert_refused(status, text)
        assert f"which is not installed: pip install 'ppo_jax[{extra}]'" in text
