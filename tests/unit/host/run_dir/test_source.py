"""Experiments of Python as files: what they make is the same, or why there is none."""

import dataclasses
import functools
import http
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ppo_jax import PBT, Choice, Config, LogUniform, envs, optimizers, terms
from ppo_jax.component import component
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.host.run_dir import experiment, source
from ppo_jax.host.run_dir.description import describe

EXPERIMENTS = Path(__file__).parents[4] / "experiments"
CARTPOLE = Config("CartPole-v1")


class Shown(int):
    """Python shows it as nothing that makes it."""

    def __repr__(self):
        return "<Shown>"


@component
class Walk(TimeLimitChain):
    pace: Any = None


def changed(**fields):
    return dataclasses.replace(CARTPOLE, **fields)


OTHERS = {
    "limit": changed(env=envs.TimeLimit("CartPole-v1", 9), seed=3, gamma=0.1 + 0.2),
    "params": changed(env=envs.Gymnax("Pendulum-v1", params={"g": 1.0})),
    "lion": changed(optimizer=optimizers.Optax(make=optax.lion)),
    "partial": changed(
        optimizer=optimizers.Optax(make=functools.partial(optax.lion, b1=0.5))
    ),
    "numpy": changed(
        max_seconds=np.float32(1.5),
        pbt=PBT(
            {
                "gamma": Choice(1 - np.logspace(-3, -1, 4)),
                "optimizer.learning_rate": LogUniform(np.float64(1e-5), jnp.array(0.5)),
            },
            size=4,
        ),
    ),
    "enumeration": changed(
        optimizer=optimizers.Optax(
            make=functools.partial(optax.lion, mu_dtype=http.HTTPStatus.OK)
        )
    ),
    "bounds": changed(stop_at={"eval/mean_reward": 475}, max_seconds=1.5),
}
EXAMPLES = ("original", "pbt_pendulum", "sa_memory")


@pytest.mark.parametrize("name", [*OTHERS, *EXAMPLES])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_file_makes_the_same_experiment(name, tmp_path):
    """Loaded as commands do it; all fields are in it."""
    example = EXPERIMENTS / f"{name}.py"
    config = experiment.load(example, []) if name in EXAMPLES else OTHERS[name]
    (text,) = source.texts(config).values()
    path = tmp_path / "experiment.py"
    path.write_bytes(text)
    again = experiment.load(path, [])
    assert describe(again) == describe(config)
    assert again == config or name in (
        "partial",
        "enumeration",
    )  # Which are never equal.
    assert b"num_minibatches=" in text


@component
class Local(TimeLimitChain):
    """Of this module."""


def own(monkeypatch, module):
    monkeypatch.setattr(Local, "__module__", module)
    return changed(env=Local(limit=3))


def test_modules_of_the_user_are_kept_beside_it(monkeypatch, tmp_path):
    """As what an experiment's file imports from its folder."""
    (tmp_path / "worlds.py").write_text("class Local: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import worlds

    worlds.Local = Local
    try:
        texts = source.texts(own(monkeypatch, "worlds"))
    finally:
        del sys.modules["worlds"]
    assert [*texts] == ["experiment.py", "imported/worlds.py"]
    assert b"env=worlds.Local(" in texts["experiment.py"]


DATA = terms.Demonstrations(np.zeros((2, 4)), [0, 1])
NOWHERE = {
    "is no value that a file can give": changed(
        terms=(*CARTPOLE.terms, terms.Imitation(DATA))
    ),
    "Shown": changed(env=Walk(pace=Shown(3))),
    "<lambda> of": changed(
        optimizer=optimizers.Optax(make=lambda learning_rate: optax.sgd(learning_rate))
    ),
}


def reason(config):
    """Why there is no file."""
    ((name, text),) = source.texts(config).items()
    assert name == "made_in_python.txt"
    return text.decode()


def test_what_no_file_can_give_is_said(monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "Local", Local, raising=False)
    for module in ("__main__", "<run_path>"):
        said = f"Local of {module} is in no file that can be imported"
        assert said in reason(own(monkeypatch, module))
    for said, config in NOWHERE.items():
        assert said in reason(config)
