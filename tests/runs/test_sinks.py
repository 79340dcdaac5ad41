"""Sinks as a user has them: in the experiment's file, in every run of it."""

import json
import re
import shlex
from pathlib import Path

import pytest
from runs import ENVIRONMENT, EXPERIMENT, command, rows, session

from ppo_jax import Config, metrics
from ppo_jax.component import children as names_of
from ppo_jax.component import component

DOCS = Path(__file__).parents[2] / "docs" / "sinks.md"
TOLD = """
import dataclasses
import json
from ppo_jax import metrics
from ppo_jax.component import component


@component
class Kept(metrics.Sink):
    path: str = "told.jsonl"

    def begin(self, run):
        begun = {"name": run.name, "begins at": run.step, "seed": run.config["seed"]}
        self.tell(begun | {"id": run.id})

    def write(self, step, metrics):
        self.tell({"step": step} | metrics)

    def tell(self, told):
        with open(self.path, "a") as file:
            file.write(json.dumps(told) + "\\n")


@component
class Cut(metrics.Sink):
    after: int = 64

    def write(self, step, metrics):
        if step > self.after:
            raise TimeoutError("nobody answers")


plain = dataclasses.replace(config, phase_updates=2, total_timesteps=32 * 8)
config = dataclasses.replace(plain, sinks=(Cut(), Kept()))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("sinks")
    text = EXPERIMENT.format(memory="") + TOLD
    (home / "mine.py").write_text(text)
    (home / "plain.py").write_text(text + "config = plain\n")
    return home


@pytest.fixture(scope="module")
def told(home):
    """A run with sinks that goes on without one of them, and one without any."""
    lines = (
        "train mine.py --run-dir run --total-timesteps 128 --quiet",
        "train plain.py --run-dir run --resume --total-timesteps 192",
        "train mine.py --run-dir run --resume --total-timesteps 256 --quiet "
        "--sinks.cut.after 1000 --sinks.kept.path again.jsonl",
        "train plain.py --run-dir plain --total-timesteps 128 --quiet",
        "train mine.py --run-dir other/run --total-timesteps 64 --quiet "
        "--sinks.kept.path other.jsonl",
        "train mine.py --sinks.kept.paht x",
    )
    found = session(map(shlex.split, lines), home)
    names = ("first", "none", "again", "plain", "other", "wrong")
    return dict(zip(names, found, strict=True))


def heard(home, name):
    """What a sink heard, from the beginning on."""
    lines = (home / f"{name}.jsonl").read_text().splitlines()
    return [*map(json.loads, lines)]


def test_a_sink_hears_what_is_logged(told, home):
    """From the first row; where the run goes on, from that with which it was saved."""
    assert told["first"][0] == told["again"][0] == 0
    logged = rows(home / "run")
    for name, step, shown in (("told", 0, logged[:2]), ("again", 192, logged[2:])):
        begun, *lines = heard(home, name)
        del begun["id"]
        assert begun == {"name": "run", "begins at": step, "seed": "0"}
        for row, line in zip(shown, lines, strict=True):
            known = {k: v for k, v in row.items() if v is not None}
            assert {k: v for k, v in line.items() if not k.startswith("time/")} == known


def test_a_run_is_known_by_an_id_of_its_own(told, home):
    """When it goes on, also after a life without sinks; not by what its folder is."""
    first, again, other = (heard(home, name)[0] for name in ("told", "again", "other"))
    assert first["id"] == again["id"] != other["id"]
    assert first["name"] == other["name"] == "run"


def test_a_sink_that_raises_costs_a_line(told, home):
    """Not the run, nor a number of it."""
    assert told["first"][1] == (
        "warning: the sink Cut is left out from here: TimeoutError: nobody answers\n"
    )
    assert "left out" not in told["again"][1]
    assert rows(home / "run")[:2] == rows(home / "plain")


def test_a_run_goes_on_without_its_sinks(told):
    """And says what is another."""
    status, text = told["none"]
    assert status == 0
    assert "resuming with another sinks: cut, kept -> None" in text


def test_a_field_of_a_sink_is_an_option(told):
    status, text = told["wrong"]
    assert status == 2 and "--sinks.kept.path" in text


def blocks():
    """The code of the document."""
    return re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)


def test_sinks_of_the_document_are_sinks():
    """Of which an experiment can have all, without what they tell being installed."""
    names = {"__name__": "document", "metrics": metrics, "component": component}
    for block in blocks():
        exec(block, names)
    kinds = [x for x in names.values() if isinstance(x, type) and x is not Config]
    assert [kind.__name__ for kind in kinds] == [
        "Webhook",
        "Wandb",
        "Mlflow",
        "Trackio",
    ]
    config = Config("CartPole-v1", sinks=[kind() for kind in kinds])
    assert [*names_of(config.sinks)] == ["webhook", "wandb", "mlflow", "trackio"]


RECIPE = """
import dataclasses
from ppo_jax import metrics
from ppo_jax.component import component

{recipe}
config = dataclasses.replace(config, sinks=({name}(),), total_timesteps=64)
"""


@pytest.mark.parametrize("name", ["wandb", "mlflow", "trackio"])
@pytest.mark.slow
def test_a_recipe_works_as_the_document_has_it(name, tmp_path):
    """Where that service is installed: nothing is sent."""
    pytest.importorskip(name)
    (recipe,) = (text for text in blocks() if f"import {name}\n" in text)
    text = EXPERIMENT.format(memory="")
    text += RECIPE.format(recipe=recipe, name=name.title())
    (tmp_path / "mine.py").write_text(text)
    here = {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/x.db"}
    here |= {"WANDB_MODE": "offline", "TRACKIO_DIR": str(tmp_path)}
    lines = (
        ("--run-dir", "x"),
        ("--run-dir", "x", "--resume", "--total-timesteps", 128),
    )
    for line in lines:
        done = command(
            "train", "mine.py", *line, cwd=tmp_path, environment=ENVIRONMENT | here
        )
        assert done.returncode == 0, done.stderr
        assert "is left out" not in done.stdout + done.stderr
