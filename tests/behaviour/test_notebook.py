"""The notebook does what it says, from the first cell to the last."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "experiments" / "notebook.ipynb"
ELSEWHERE = """
import sys

for name in ("jax", "flax", "ppo_jax"):
    sys.modules[name] = None  # An import of it is an error.
sys.path.append("policy")

import gymnasium
import numpy as np
from policy import Policy

policy, env = Policy("policy"), gymnasium.make("CartPole-v1")


def play(seed):
    (obs, _), state, total, ended = env.reset(seed=seed), policy.init(1), 0.0, False
    while not ended:
        action, state = policy.act(state, obs[None])
        obs, reward, terminated, truncated, _ = env.step(int(action[0]))
        total, ended = total + reward, terminated or truncated
    return total


print([play(seed) for seed in range(10)])
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The notebook with what its cells gave, and the folder where it ran."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(PATH, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    return notebook, folder


@pytest.mark.slow
@pytest.mark.brief
@pytest.mark.filterwarnings("ignore")  # Of Jupyter's own.
def test_the_agent_of_the_notebook_balances_in_gymnasium(executed):
    notebook, _ = executed
    (returns,) = (cell.outputs for cell in notebook.cells if "play(" in cell.source)
    played = ast.literal_eval(returns[-1].data["text/plain"])
    assert len(played) == 10 and min(played) >= 475


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_the_notebook_exports_balances_without_jax(executed):
    """In a process that finds NumPy and gymnasium, but neither JAX nor this package."""
    _, folder = executed
    words = [sys.executable, "-I", "-c", ELSEWHERE]
    said = subprocess.check_output(words, text=True, timeout=120, cwd=folder)
    played = ast.literal_eval(said)
    assert len(played) == 10 and min(played) >= 475
