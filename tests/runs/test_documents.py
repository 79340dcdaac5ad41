"""The code of documents makes experiments that can be trained."""

import re
from pathlib import Path

import chex
import jax
import pytest

from ppo_jax import Config
from ppo_jax.component import as_arrays, program
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress

ROOT = Path(__file__).parents[2]
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
    for block in re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.S):
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
