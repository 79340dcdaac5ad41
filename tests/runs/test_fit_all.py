"""Sweeps from Python: what the command leaves, found again by whoever asks."""

import dataclasses
import json
import re
import shutil
import signal
import time

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from runs import rows

from ppo_jax import PBT, Uniform, fit_all, load, load_all, sweep
from ppo_jax.component import component
from ppo_jax.envs.env import Discrete, Env, outcome
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.errors import UserError
from ppo_jax.host.run_dir import source
from ppo_jax.metrics import Sink
from ppo_jax.optimizers import Optax
from ppo_jax.sweeps import cohorts

SCORE = "eval/mean_reward"
FILE = """
from brief import experiment
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.networks import ActorCritic, Mlp
from ppo_jax.optimizers import Adam
from ppo_jax.schedules import Constant
from ppo_jax.terms import Surrogate

config = experiment(
    TimeLimitChain(limit=5),
    optimizer=Adam(schedule=Constant()),
    terms=(Surrogate(),),
    network=ActorCritic(Mlp(hidden=())),
    eval_phases=1,
    total_timesteps=128,
)
"""
exec(FILE, defined := {})
FIRST = defined["config"]
CONFIGS = [
    dataclasses.replace(FIRST, gamma=gamma, seed=seed)
    for gamma, seed in ((0.9, 1), (0.5, 0), (0.9, 0), (0.5, 1))
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A sweep in a directory, and what it returned."""
    run_dir = tmp_path_factory.mktemp("all") / "sweep"
    return run_dir, fit_all(CONFIGS, run_dir, quiet=True)


@pytest.fixture(scope="module")
def commanded(tmp_path_factory):
    """The same by the command."""
    home = tmp_path_factory.mktemp("command")
    (home / "x.py").write_text(FILE)
    line = [str(home / "x.py"), "--run-dir", str(home / "sweep"), "--seeds", "2"]
    assert sweep.main([*line, "--grid", "gamma=0.9,0.5", "--quiet"]) == 0
    return home / "sweep"


def same(found, expected):
    assert [x.config for x in found] == [x.config for x in expected]
    assert [x.update for x in found] == [x.update for x in expected]
    assert [x.ending for x in found] == [x.ending for x in expected]
    for one, other in zip(found, expected, strict=True):
        both = [jax.tree.leaves(x.population.runs.learner) for x in (one, other)]
        chex.assert_trees_all_equal(*both)
        chex.assert_trees_all_equal(one.curves[SCORE], other.curves[SCORE])


@component
class Ill(Env):
    """Has rewards that are no numbers for 16 of its steps, from `begin` on."""

    begin: float = 0.0

    @property
    def action_space(self):
        return Discrete(2)

    def reset(self, key):
        return jnp.ones(1), jnp.int32(0)

    def restart(self, key, state):
        return jnp.ones(1), state

    def transition(self, key, state, action):
        ill = (state >= self.begin) & (state < self.begin + 16)
        reward = jnp.where(ill, jnp.nan, 1.0)
        return outcome(jnp.ones(1), reward, terminated=state % 4 == 3), state + 1


def test_each_agent_of_a_program_ends_as_it_does(tmp_path):
    """One is ill in the first half, one in the second: never all, so all go on.

    The latter took no finite step for longer than a run may that is alone, to its end.
    """
    config = dataclasses.replace(
        FIRST, num_envs=2, num_steps=4, total_timesteps=64, max_failures=3
    )
    config = dataclasses.replace(config, phase_updates=config.num_updates)
    configs = [dataclasses.replace(config, env=Ill(begin)) for begin in (0.0, 16.0)]
    found = fit_all(configs, tmp_path / "sweep", quiet=True)
    assert [x.ending for x in found] == ["finished", "failed"]
    assert [x.update for x in found] == [8, 8]
    same(found, fit_all(configs, quiet=True))
    results = json.loads((tmp_path / "sweep" / "results.json").read_text())
    assert [x["ending"] for x in results["runs"]] == [x.ending for x in found]


def names(run_dir):
    """Files of a directory; what differs from time to time is left out."""
    found = {str(path.relative_to(run_dir)) for path in run_dir.rglob("*")}
    return {re.sub(r"(tfevents\.|checkpoints/\d+/).*", r"\1", name) for name in found}


def test_what_is_kept_is_what_was_in_memory(kept):
    """In the order of the experiments, and found again in a directory."""
    run_dir, found = kept
    assert [x.config for x in found] == CONFIGS
    assert [x.ending for x in found] == ["finished"] * 4
    same(found, fit_all(CONFIGS, quiet=True))
    same(load_all(run_dir), found)
    same(load_all(run_dir, CONFIGS), found)
    assert found[1].curves[SCORE].steps.tolist() == [128]


def test_the_directory_is_that_of_the_command(kept, commanded):
    """All files of it, but that it was asked for otherwise."""
    assert names(kept[0]) == names(commanded)
    found, expected = (
        json.loads((x / "results.json").read_text()) for x in (kept[0], commanded)
    )
    assert found["settings"] == expected["settings"] == [{"gamma": 0.9}, {"gamma": 0.5}]
    scored = {(x["setting"], x["seed"]): x["evaluations"] for x in expected["runs"]}
    for run in found["runs"]:
        ran = scored[run["setting"], run["seed"]]
        assert run["evaluations"][SCORE] == ran[SCORE] == [5.0]
    assert [row["setting"] for row in found["table"]] == found["settings"]
    assert len(rows(kept[0] / "batches" / "001")) == 1


def test_a_sweep_of_the_command_is_found(kept, commanded):
    """All seeds of a setting, then of the next."""
    found = load_all(commanded)
    said = [(x.config.gamma, x.config.seed) for x in found]
    assert said == [(0.9, 0), (0.9, 1), (0.5, 0), (0.5, 1)]
    known = {(x.config.gamma, x.config.seed): x for x in kept[1]}
    for one in found:
        other = known.pop((one.config.gamma, one.config.seed))
        chex.assert_trees_all_close(one.params, other.params, atol=1e-5)
        assert one.evaluate(3)["mean"] == 5.0 and one.ending == "finished"


def test_each_has_what_was_logged_of_it(kept, tmp_path):
    run_dir = shutil.copytree(kept[0], tmp_path / "sweep")
    path = run_dir / "batches" / "001" / "metrics.jsonl"
    (row,) = (json.loads(line) for line in path.read_text().splitlines())
    row |= {f"each/{SCORE}/{i}": float(i) for i in range(4)}
    path.write_text(json.dumps(row) + "\n")
    found = [one.curves[SCORE].values.tolist() for one in load_all(run_dir)]
    assert found == [[0.0], [1.0], [2.0], [3.0]]


def test_what_is_trained_is_not_trained_again(kept):
    """Nor is a directory taken for another sweep."""
    run_dir, found = kept
    before = (run_dir / "batches" / "001" / "metrics.jsonl").read_bytes()
    same(fit_all(CONFIGS, run_dir, resume=True, quiet=True), found)
    assert (run_dir / "batches" / "001" / "metrics.jsonl").read_bytes() == before


def test_what_is_in_no_file_is_found_with_its_experiments(kept, tmp_path):
    @component
    class Here(TimeLimitChain):
        pass

    texts = source.texts_of_all([dataclasses.replace(FIRST, env=Here())], [[0, 0]])
    assert list(texts) == ["made_in_python.txt"]
    run_dir = shutil.copytree(kept[0], tmp_path / "sweep")
    (run_dir / "experiment.py").rename(run_dir / "made_in_python.txt")
    (run_dir / "made_in_python.txt").write_bytes(*texts.values())
    same(load_all(run_dir, CONFIGS), kept[1])
    with pytest.raises(UserError, match="is in no file that can be imported"):
        load_all(run_dir)


UNLIKE = [
    dataclasses.replace(FIRST, optimizer=Optax(1e-2, make=make))
    for make in (lambda rate: optax.sgd(rate), lambda rate: optax.sgd(-rate))
]
POPULATION = dataclasses.replace(
    FIRST, pbt=PBT({"optimizer.learning_rate": Uniform(1e-4, 1e-2)}, 4, interval=1)
)
WRONG = {
    r"configs\[0\]: expected a Config, got 3": lambda x: fit_all([3], x),
    r"not inside jit or vmap; .*: ppo_jax\.fit_all\(configs\)": lambda x: jax.jit(
        lambda gamma: fit_all([FIRST, dataclasses.replace(FIRST, gamma=gamma)])
    )(0.5),
    r"configs\[1\].pbt: expected None": lambda x: fit_all([FIRST, POPULATION], x),
    "configs: expected one at least": lambda x: fit_all([], x / "new"),
    "run_dir: expected a path, got 3": lambda x: fit_all(CONFIGS, 3),
    "run_dir: expected a path to resume": lambda x: fit_all(CONFIGS, resume=True),
    "holds a run already; give --resume": lambda x: fit_all(CONFIGS, x),
    "nowhere: no run to be found": lambda x: fit_all(
        CONFIGS, x / "nowhere", resume=True
    ),
    "its runs are others than those": lambda x: fit_all(CONFIGS[:2], x, resume=True),
    "its settings are others": lambda x: load_all(
        x, [dataclasses.replace(y, gamma=y.gamma / 2) for y in CONFIGS]
    ),
    r"another one:\n  gae_lambda: 0.95 -> 0.25\Z": lambda x: fit_all(
        [dataclasses.replace(y, gae_lambda=0.25) for y in CONFIGS], x, resume=True
    ),
    r"another one:\n  total_timesteps: 128 -> 256\Z": lambda x: load_all(
        x, [dataclasses.replace(y, total_timesteps=256) for y in CONFIGS]
    ),
    "001: is a batch of .*, which holds a sweep; ppo_jax.load_all finds": (
        lambda x: load_all(x / "batches" / "001")
    ),
    "holds a sweep; ppo_jax.load_all finds": lambda x: load(x),
    "stop_at: no metric is called 'eval/mean'": lambda x: fit_all(
        [*CONFIGS, dataclasses.replace(FIRST, stop_at={"eval/mean": 1.0})], x / "new"
    ),
    r"configs\[0\] and configs\[1\] differ in what no": lambda x: fit_all(
        UNLIKE, x / "new"
    ),
}


@pytest.mark.parametrize("said", WRONG)
def test_what_cannot_be_is_said(said, kept):
    before = sorted(kept[0].rglob("*"))
    with pytest.raises(UserError, match=said):
        WRONG[said](kept[0])
    assert sorted(kept[0].rglob("*")) == before


def test_the_command_says_who_goes_on_with_it(kept, capsys):
    line = [str(kept[0] / "experiment.py"), "--run-dir", str(kept[0]), "--resume"]
    assert sweep.main(line) == 2
    said = capsys.readouterr().err
    assert "a sweep of Python, which goes on there: ppo_jax.fit_all(configs, " in said


def test_a_batch_that_is_missing_is_said(kept, tmp_path):
    home = kept[0] / "batches" / "001" / "scores.json"
    text = home.read_text()
    home.unlink()
    try:
        with pytest.raises(UserError, match="is not finished; resume the sweep first"):
            load_all(kept[0])
    finally:
        home.write_text(text)
    assert np.isfinite(json.loads(text)[0]["evaluations"][SCORE]).all()


def test_goals_that_no_row_reaches_are_not_in_the_way_of_what_there_is(kept):
    """Of a sweep that has begun with them."""
    configs = [dataclasses.replace(x, stop_at={"eval/mean": 1.0}) for x in CONFIGS]
    for found in (
        load_all(kept[0], configs),
        fit_all(configs, kept[0], resume=True, quiet=True),
    ):
        assert [x.ending for x in found] == ["finished"] * 4


def test_what_is_called_alike_is_not_taken_for_one_another():
    """Each has learned by its own rule, of which only a function tells."""
    found = fit_all(UNLIKE, quiet=True)
    assert [one.config for one in found] == UNLIKE
    params = [jax.tree.leaves(one.params) for one in found]
    assert any((x != y).any() for x, y in zip(*params, strict=True))


@component
class Interrupting(Sink):
    """Interrupts the first run that says anything."""

    def write(self, step, metrics):
        HEARD.append(step)
        if len(HEARD) == 1:
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.5)  # It is a listener in a thread that hears it.


HEARD = []


def test_an_interrupt_ends_all_programs():
    """Also of those that are kept in memory alone."""
    longer = {"total_timesteps": 384, "sinks": (Interrupting(),)}
    configs = [dataclasses.replace(x, **longer) for x in UNLIKE]
    with pytest.raises(KeyboardInterrupt):
        fit_all(configs, quiet=True)
    assert HEARD == [128, 256]


def test_killed_while_it_compiles_a_sweep_goes_on(kept, tmp_path, monkeypatch):
    """Its directory says that it is one, of which nothing is finished."""
    run_dir = tmp_path / "sweep"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(cohorts, "memory", ended)
        fit_all(CONFIGS, run_dir, quiet=True)
    with pytest.raises(UserError, match="sweep: is not finished; resume the sweep fir"):
        load_all(run_dir)
    same(fit_all(CONFIGS, run_dir, resume=True, quiet=True), kept[1])


def ended(members):
    raise KeyboardInterrupt
