"""The experiments reach what their docstrings say, over seeds in one program."""

import dataclasses
import functools
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brought import each, needs_more, or_skip

from ppo_jax import adversaries, controllers, critics, fit, networks, optimizers, terms
from ppo_jax.attacks import targets
from ppo_jax.component import is_component
from ppo_jax.host.run_dir import experiment, files
from ppo_jax.ppo import episodes, population
from ppo_jax.schedules import Progress

FOLDER = Path(__file__).parents[2] / "experiments"
NEEDS = {"halfcheetah": "mujoco"}
"""Packages that experiments need beside those of all tests."""
LACKING = {name for name, package in NEEDS.items() if find_spec(package) is None}
PATHS = sorted(x for x in FOLDER.glob("*.py") if x.stem not in {"by_hand", *LACKING})
"""But for the one that is no experiment: a loop of one's own."""
PLAIN = [path for path in PATHS if not needs_more(path)]
"""Those that need nothing more than this package does."""
HEAVY = ("original", "pbt_breakout", "pbt_sa", "sa_memory")
"""Those that take longest to compile."""
TINY = {
    "num-envs": 4,
    "num-steps": 16,
    "num-epochs": 1,
    "num-minibatches": 2,
    "chunk-length": 4,
    "total-timesteps": 256,
    "phase-updates": 2,
    "eval-episodes": 2,
}


def load(name, *options):
    """An experiment, if what it is made of is installed."""
    with or_skip():
        return experiment.load(FOLDER / f"{name}.py", [*options])


def train(config, seeds):
    """Members after the whole budget, and returns of episodes `[updates, seeds]`."""
    updates = config.num_updates
    members = population.init(config, jax.random.split(jax.random.key(0), seeds))
    progress = Progress.of(np.arange(updates), updates)
    members, history = population.advance(members, progress, jnp.int32(updates))
    total, count = (
        np.asarray(history[f"episodes/{name}"]) for name in ("return_sum", "count")
    )
    return members, total / np.maximum(count, 1)


def evaluate(members):
    """Mean return of 128 fresh deterministic episodes of each member."""
    run = functools.partial(episodes.run_episodes, num_episodes=128)
    returns, ended = jax.jit(jax.vmap(run, (0, None)))(
        members.runs.learner, jax.random.key(1)
    )
    assert ended.all()
    return np.asarray(returns).mean(axis=1)


@pytest.mark.parametrize("path", each(PATHS))
def test_every_experiment_loads_and_says_what_to_expect(path):
    config = load(path.stem)
    assert config.num_updates > 0
    assert "Expect" in path.read_text().split('"""')[1]


def kinds(value):
    """The classes of all components in a value."""
    if is_component(type(value)):
        yield type(value)
        value = vars(value)
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple):
        for part in value:
            yield from kinds(part)


def offered(*packages):
    """The components that packages offer, but for those that others are made of."""
    found = {
        value
        for package in packages
        for name, value in vars(package).items()
        if is_component(value) and value.__module__.startswith(package.__name__)
        if not name.startswith("_")
    }
    return {x for x in found if not any(issubclass(y, x) for y in found - {x})}


IN_NO_EXPERIMENT = {
    # Other choices for a field of what is in one.
    adversaries.LowValue,
    adversaries.ValueLoss,
    controllers.ClosedForm,
    controllers.Ema,
    controllers.K1,
    critics.LinearTail,
    critics.MeanAndVariance,
    terms.Costs,
    terms.Predicted,
    # Schedules alone set the rates of all.
    optimizers.KlAdaptive,
    # `plasticity` compares optimisers without weight decay.
    optimizers.AdamW,
    optimizers.UPGDW,
    # The factor of the recipe is 1: nothing.
    controllers.PoorValueScale,
    # A penalty that does not adapt; of a coefficient of 0 it only measures.
    terms.Kl,
    # A policy learns nothing from it.
    terms.PredictedCVaR,
    # What it imitates is a user's.
    terms.Imitation,
    # What it steps by is a user's.
    optimizers.Optax,
}


@pytest.fixture(autouse=True)
def beside(monkeypatch):
    """Experiments may import others that lie beside them."""
    monkeypatch.syspath_prepend(FOLDER)


def test_all_that_an_agent_learns_by_is_in_some_experiment():
    known = offered(adversaries, targets, controllers, critics, optimizers, terms)
    used = set(kinds(tuple(runpy.run_path(str(path)) for path in PLAIN)))
    assert known - used == IN_NO_EXPERIMENT


def last_row(config, run_dir):
    """The metrics of the last phase of a run."""
    assert fit(config, run_dir).ending == "finished"
    return files.rows(run_dir / "metrics.jsonl")[-1]


def tiny(path):
    """An experiment as the command line shrinks it."""
    options = [f"--{name}={size}" for name, size in TINY.items()]
    options.append("--network.torso.hidden")  # No layers.
    if load(path.stem).pbt is not None:
        options.append("--pbt.interval=2")
    return load(path.stem, *options)


@pytest.mark.parametrize("path", each(PATHS, slow=HEAVY))
def test_every_experiment_runs(path, tmp_path):
    """A few updates to the end of the budget, in which nothing breaks."""
    config = tiny(path)
    row = last_row(config, tmp_path)
    assert row["step"] == config.total_timesteps
    assert row["train/n_minibatches_done"] > 0
    assert np.isfinite([row["train/loss"], row["eval/mean_reward"]]).all()
    assert not [name for name, x in row.items() if name.startswith("error/") and x]
    if config.pbt is not None:
        check_what_is_said_of_generations(config, row, tmp_path)
    if config.adversary is not None:
        check_what_is_said_of_attacks(row)


def check_what_is_said_of_generations(config, row, run_dir):
    """Every member's numbers stay in their ranges."""
    assert row["pbt/population_size"] == config.pbt.size == 8
    assert len(files.rows(run_dir / "lineage.jsonl")) == 3
    for path, range_ in config.pbt.space.ranges:
        low, high = range_.ends
        for member in range(8):
            assert low <= row[f"pbt/{path}/{member}"] <= high * (1 + 1e-6)


def check_what_is_said_of_attacks(row):
    told = {k: v for k, v in row.items() if k.startswith("sa_ppo/")}
    assert len(told) == 12 and None not in told.values()
    assert told["sa_ppo/num_adversarial"] > 0 and told["sa_ppo/kl_divergence"] > 0


@pytest.fixture
def script():
    """What `sa_gain.py` defines."""
    return runpy.run_path(str(FOLDER / "sa_gain.py"))


@pytest.mark.parametrize(
    "kind",
    [
        adversaries.Mixed,
        pytest.param(adversaries.Regularizer, marks=pytest.mark.slow),
    ],
)
def test_what_training_under_attack_is_worth(script, kind):
    """Half of the agents are plain: those of an experiment without an adversary."""
    config = dataclasses.replace(
        load("sa_memory"),
        adversary=kind(ratio=0.5, max_percent=50),
        num_envs=4,
        num_steps=4,
        num_minibatches=1,
        total_timesteps=32,
        network=networks.ActorCritic(networks.Mlp(hidden=())),
    )
    numbers = script["both"](config, 3).runs.learner.config
    np.testing.assert_array_equal(numbers.adversary.ratio, [0, 0, 0, 0.5, 0.5, 0.5])
    learners, _ = script["train"](config, 3)
    plain = dataclasses.replace(config, adversary=None, terms=config.terms[:-1])
    alone, _ = train(plain, seeds=3)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a[:3], b, atol=1e-5),
        *(learners.params, alone.runs.learner.params),
    )
    found = script["play"](
        learners, script["OPPONENTS"]["FGSM"], 0.5, jax.random.key(0)
    )
    assert found.shape == (2, 3)


def test_one_seed_is_not_a_number_of_seeds(script):
    """`--seed` is a field of the experiment, whose agents are others."""
    argv = [str(FOLDER / "sa_cartpole.py"), "--seed", "7", "--eps", "1.25"]
    options, config = script["parse_arguments"](argv)
    assert (options.seeds, config.seed) == (8, 7)


def test_verdicts_by_hand(script):
    found = {
        "none": np.array([[9.0, 11.0], [10.0, 9.0]]),
        "the worst of them": np.array([[5.0, 5.0], [8.0, 7.0]]),
    }
    said = script["verdict"](found, chance=0.0)
    assert said["plain loses"] == pytest.approx(0.5)
    assert said["robust loses"] == pytest.approx(0.2)
    assert said["gain"] == pytest.approx(0.3)  # Of 0.2 and 0.4.
    assert said["± of the gain"] == pytest.approx(1.96 * 0.1)
    assert said["clean difference"] == pytest.approx(-0.05)
    assert list(script["table"](found))[2] == "| none | 10 ± 2 | 9.5 ± 0.98 |"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "eps"), [("sa_memory", 1.0), ("sa_cartpole", 1.25)])
def test_agents_that_trained_under_attack_hold(script, name, eps):
    """Half of what plain agents lose to the worst of their opponents, or less."""
    learners, untrained = script["train"](load(name), 8)
    found, chance = script["attacked"](learners, untrained, eps)
    said = script["verdict"](found, chance)
    plain = {opponent: returns[0].mean() for opponent, returns in found.items()}
    assert max(plain["FGSM"], plain["PGD"]) < plain["random"]
    assert said["plain loses"] >= 0.3
    assert said["robust loses"] <= 0.5 * said["plain loses"]
    assert said["gain"] > said["± of the gain"]
    assert abs(said["clean difference"]) <= 0.05


@pytest.mark.slow
def test_a_population_finds_the_numbers_of_pendulum(tmp_path):
    assert last_row(load("pbt_pendulum"), tmp_path)["eval/mean_reward"] >= -250


@pytest.mark.slow
def test_the_original_recipe_swings_up(tmp_path):
    assert last_row(load("original"), tmp_path)["eval/mean_reward"] >= -400


@pytest.mark.slow
def test_a_population_learns_breakout(tmp_path):
    row = last_row(load("pbt_breakout"), tmp_path)
    assert row["eval/mean_reward"] >= 24


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cartpole", "c51_cartpole", "awr_cartpole"])
def test_cartpole_is_solved_by_every_seed(name):
    members, _ = train(load(name), seeds=8)
    assert evaluate(members).min() >= 475


@pytest.mark.slow
def test_pendulum_swings_up():
    members, _ = train(load("pendulum"), seeds=8)
    assert evaluate(members).mean() >= -250


@pytest.mark.slow
@pytest.mark.parametrize("memory", [networks.Lstm(size=64), networks.Gru(size=64)])
def test_a_memory_recalls_the_cue(memory):
    config = load("memory")
    network = dataclasses.replace(config.network, memory=memory)
    members, _ = train(dataclasses.replace(config, network=network), seeds=8)
    assert evaluate(members).min() >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("name", "solved"), [("cartpole", 475), ("memory", 0.95)])
def test_short_floats_learn_as_well(name, solved):
    """All seeds in the end; on the way a 20th less than long ones at most, at 95 %."""
    config, areas = load(name), {}
    for dtype in ("float32", "bfloat16"):
        network = dataclasses.replace(config.network, compute_dtype=dtype)
        members, returns = train(dataclasses.replace(config, network=network), seeds=8)
        assert evaluate(members).min() >= solved
        # An update in which no episode ended has a return of 0.
        areas[dtype] = np.array([seed[seed > 0].mean() for seed in returns.T])
    long, short = areas.values()
    half = 1.96 * np.sqrt((long.var(ddof=1) + short.var(ddof=1)) / 8)
    assert short.mean() - long.mean() - half >= -0.05 * long.mean()


@pytest.mark.slow
def test_nobody_recalls_the_cue_without_a_memory():
    config = load("memory")
    network = dataclasses.replace(config.network, memory=None)
    members, _ = train(dataclasses.replace(config, network=network), seeds=8)
    # 8 · 128 fair coins: a standard deviation of 0.016.
    assert abs(evaluate(members).mean() - 0.5) < 0.06


@pytest.mark.slow
def test_breakout_is_learned_by_every_seed():
    _, returns = train(load("breakout"), seeds=4)
    last = len(returns) // 20
    assert returns[-last:].mean(axis=0).min() >= 24


@pytest.mark.slow
@pytest.mark.brief
def test_caution_buys_a_better_tail():
    """The mean falls and the realised CVaR rises with its weight."""
    script = runpy.run_path(str(FOLDER / "risk_frontier.py"))
    weights = script["WEIGHTS"]
    mean, cvar = script["frontier"](script["train"](weights, seeds=8))
    assert script["spearman"](weights, cvar.mean(axis=1)) >= 0.9
    assert script["spearman"](weights, mean.mean(axis=1)) <= -0.9
    half = script["half_width"](cvar)
    assert cvar[0].mean() + half[0] < cvar[-1].mean() - half[-1]
    # By hand: the best wager of weight w, for deviations of 0.5 a.
    tail = 0.5 * 2.0627
    weights = np.array(weights)
    wager = 1 - weights * tail / (2 * (1 + weights))
    np.testing.assert_allclose(mean.mean(axis=1), 2 * wager - wager**2, atol=0.05)


@pytest.mark.slow
def test_plasticity_leaves_a_table_and_a_plot(tmp_path):
    """As a user runs it, with a few seeds of two optimisers."""
    pytest.importorskip("matplotlib")
    options = ["--seeds", "4", "--tasks", "2", "--changes", "2"]
    options += ["--only", "Adam", "UPGD + VGS", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, FOLDER / "plasticity.py", *options],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "table.md").read_text()
    assert table == done.stdout
    rows = [line.split("|")[1:-1] for line in table.splitlines()[2:]]
    assert [row[0].strip() for row in rows] == ["Adam", "UPGD + VGS"]
    for _, *cells in rows:
        for cell in cells:
            said, _ = cell.split("(")  # The rate comes after.
            mean, half = (float(x) for x in re.findall(r"\d\.\d{3}", said))
            assert 0 < mean < 1 and 0 < half < 0.2
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_a_learning_rate_is_chosen_on_other_seeds():
    """Each of five rates by the same tuning seeds; then all seeds that are reported."""
    script = runpy.run_path(str(FOLDER / "plasticity.py"))
    optimizer, asked = script["OPTIMIZERS"]["Adam"], []

    def problem(optimizer, rate, keys, changes):
        asked.append((np.asarray(rate), np.asarray(jax.random.key_data(keys))))
        late = -np.abs(np.log(np.asarray(rate) / 0.01))
        return np.tile(late[:, None], changes) * [100.0, 1.0]  # The late half counts.

    best, curves = script["trial"](problem, optimizer, seeds=7, changes=2)
    (tuned, tuning), (rates, testing) = asked
    assert best == np.float32(0.01) and curves.shape == (7, 2)
    np.testing.assert_array_equal(
        tuned, np.repeat(np.float32(script["RATES"]), script["TUNING_SEEDS"])
    )
    for group in tuning.reshape(5, 4, -1):
        np.testing.assert_array_equal(group, tuning[:4])
    assert (rates == best).all()
    assert len(np.unique(np.concatenate([tuning[:4], testing]), axis=0)) == 11
