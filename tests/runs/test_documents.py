"""The code of documents makes experiments that can be trained."""

import random
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import chex
import jax
import pytest

import ppo_jax
from ppo_jax import Config
from ppo_jax.component import as_arrays, program
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress
from ppo_jax.sweeps import plan

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.S)
DOCUMENTS = {
    "README.md": 1,
    "docs/extending.md": 4,
    "docs/risk.md": 2,
    "docs/switching.md": 2,
}
"""How many experiments each of them makes, and does not train itself."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_experiments_of_a_document_can_be_trained(name):
    """An iteration of each is traced, of which no shape or type is wrong."""
    made, names = [], {"__name__": "document"}
    for block in BLOCK.findall((ROOT / name).read_text()):
        if "fit(" in block:
            continue
        exec(block, names)
        made.append(names["config"])
    assert len(made) == DOCUMENTS[name] and len({id(x) for x in made}) == len(made)
    for config in made:
        assert isinstance(config, Config)
        run = jax.eval_shape(
            learner.init, as_arrays(program(config)), jax.random.key(0)
        )
        after, metrics = jax.eval_shape(learner.iteration, run, Progress.at(0.0))
        chex.assert_trees_all_equal_shapes_and_dtypes(after, run)
        assert metrics["train/value_loss"].shape == ()


def test_learning_rates_are_those_of_others():
    """That of stable-baselines3 stays as it is, CleanRL's falls to 0."""
    names, ends = {}, []
    for block in BLOCK.findall((ROOT / "docs/switching.md").read_text()):
        exec(block, names)
        ends.append(float(names["config"].optimizer.schedule(1.0)))
    assert ends == [1.0, 0.0]


class Study:
    """Stands in for a study of Optuna, with the same names and arguments."""

    def __init__(self):
        self.told = {}

    def ask(self):
        def suggest_float(name, low, high, *, log=False):
            return random.uniform(low, high)

        return SimpleNamespace(suggest_float=suggest_float)

    def tell(self, trial, value):
        self.told[id(trial)] = trial, value


def test_trials_of_a_search_are_asked_for_in_one_program(monkeypatch):
    """And each trial is told the score of its own agent."""
    study, batches = Study(), []

    def fit_all(configs):
        batches.append(plan.of(configs).groups)
        return [SimpleNamespace(evaluate=lambda c=c: {"mean": c}) for c in configs]

    optuna = SimpleNamespace(create_study=lambda direction: study)
    monkeypatch.setitem(sys.modules, "optuna", optuna)
    monkeypatch.setattr(ppo_jax, "fit_all", fit_all)
    blocks = BLOCK.findall((ROOT / "docs" / "populations.md").read_text())
    (search,) = (block for block in blocks if "optuna" in block)
    exec(search, {})
    assert [len(group) for groups in batches for group in groups] == [8] * 4
    assert len({value.gamma for _, value in study.told.values()}) == 32
