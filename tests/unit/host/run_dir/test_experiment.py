"""What a run directory holds, and whether a config is the one of it."""

import dataclasses
import json

import pytest

from ppo_jax import Config, terms
from ppo_jax.errors import UserError
from ppo_jax.host.run_dir import experiment, script, storing
from ppo_jax.host.run_dir.experiment import ExperimentError

TEXT = "from ppo_jax import Config\n\nconfig = Config('CartPole-v1', gamma=0.5)\n"
CONFIG = Config("CartPole-v1", gamma=0.5)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(TEXT)
    return path


@pytest.fixture
def run_dir(path, tmp_path):
    options = ["--gamma", "0.25"]
    config = experiment.load(path, options)
    storing.store(tmp_path / "run", script.texts(path), options, config)
    return tmp_path / "run"


def test_an_experiment_is_a_file_and_options(path):
    assert experiment.load(path, []) == CONFIG
    changed = experiment.load(path, ["--seed", "3"])
    assert changed == dataclasses.replace(CONFIG, seed=3)


def test_names_of_the_file_and_of_this_package_may_be_used(path):
    path.write_text(TEXT + "terms = 3\nmine = 4\n")
    _, names = experiment.load_with_names(path, [], "ppo_jax.sweep")
    assert names["Config"] is Config and (names["terms"], names["mine"]) == (3, 4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "expected a Config named `config`, got none"),
        ("config = 3\n", "expected a Config named `config`, got a int"),
        (TEXT.replace("config =", "mine ="), "got one named `mine`"),
        (
            "from ppo_jax import Config as config\n",
            r"got a type; a class has to be called: Config\(…\)",
        ),
        (
            TEXT.replace("0.5", "__import__('numpy').array([0.5, 0.9])"),
            r"gamma: expected one number; .* got array\(\[0.5, 0.9\]\)",
        ),
    ],
)
def test_a_file_without_one_config_is_said(path, text, said):
    path.write_text(text)
    with pytest.raises(UserError, match=said):
        experiment.load(path, [])


def test_a_run_directory_stands_alone(run_dir, path):
    """The file, the options and a description of what came of them."""
    assert {file.name for file in run_dir.iterdir()} == {
        *("experiment.py", "overrides.json", "config.json")
    }
    assert (run_dir / "experiment.py").read_text() == TEXT
    options = experiment.stored_overrides(run_dir)
    assert options == ["--gamma", "0.25"]
    path.unlink()
    again = experiment.load(run_dir / "experiment.py", options)
    assert again == dataclasses.replace(CONFIG, gamma=0.25)
    experiment.require_same(run_dir, again)
    assert experiment.stored_names(run_dir) == {}


@pytest.mark.parametrize("options", ["[1]", '["--seed", 1]', "[null]", "[[]]"])
def test_options_that_are_no_texts_are_said(run_dir, options):
    (run_dir / "overrides.json").write_text(options)
    with pytest.raises(ExperimentError, match=r"overrides.json: expected a list of t"):
        experiment.stored_overrides(run_dir)
    assert not experiment.is_kept(run_dir)


def test_a_run_has_a_directory_of_its_own(path, tmp_path, monkeypatch):
    """Also beside others that begin in the same second, as in a loop of a shell."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiment.time, "strftime", lambda _: "now")
    config = dataclasses.replace(CONFIG, seed=7)
    found = [str(experiment.place(path, config)) for _ in range(3)]
    assert found == [f"runs/mine__7__now{suffix}" for suffix in ("", "-2", "-3")]
    assert all(not [*(tmp_path / place).iterdir()] for place in found)


def test_where_no_directory_can_be_made_is_said(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").symlink_to("nowhere")
    with pytest.raises(ExperimentError, match="no run can be kept there"):
        experiment.place(path, CONFIG)


def test_numbers_and_budgets_may_change_and_structure_may_not(run_dir):
    stored = dataclasses.replace(CONFIG, gamma=0.25)
    other = dataclasses.replace(stored, gamma=0.75, total_timesteps=10**6, seed=3)
    experiment.require_same_structure(run_dir, other)
    with pytest.raises(ExperimentError) as caught:
        experiment.require_same(run_dir, other)
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == [
        "gamma: 0.25 -> 0.75",
        "seed: 0 -> 3",
        "total_timesteps: 500000 -> 1000000",
    ]
    fewer = (terms.Surrogate(), terms.Value())
    other = dataclasses.replace(other, num_epochs=8, terms=fewer)
    with pytest.raises(ExperimentError, match="numbers and budgets only") as caught:
        experiment.require_same_structure(run_dir, other)
    assert [line.split(":")[0].strip() for line in str(caught.value).splitlines()] == [
        *(str(run_dir), "num_epochs", "terms", "terms.entropy.type")
    ]


def test_where_no_run_is_those_beside_and_below_are_named(run_dir, tmp_path):
    below = f"{tmp_path}: no run to be found there; below it there are: run"
    with pytest.raises(ExperimentError, match=f"{below}$"):
        experiment.stored_overrides(tmp_path)
    beside = f"runn: no run to be found there; the closest is {run_dir}"
    with pytest.raises(ExperimentError, match=f"{beside}$"):
        experiment.stored_overrides(tmp_path / "runn")


def test_a_run_of_another_command_is_not_denied(run_dir):
    said = r"run: holds a run of another command, without sweep\.json"
    with pytest.raises(ExperimentError, match=said):
        experiment.stored(run_dir, "sweep.json")


def test_a_batch_is_said_to_be_one(tmp_path):
    batch = tmp_path / "batches" / "001"
    batch.mkdir(parents=True)
    (tmp_path / "sweep.json").write_text("{}")
    said = f"{batch}: is a batch of {tmp_path}, which holds a sweep; ppo_jax.load_all"
    with pytest.raises(ExperimentError, match=said):
        experiment.stored_overrides(batch)


def test_the_closest_file_of_an_experiment_is_named(path):
    said = f"min.py: no such experiment file; the closest is {path}$"
    with pytest.raises(ExperimentError, match=said):
        experiment.load(path.with_name("min.py"), [])


def test_what_cannot_be_read_is_said(run_dir, tmp_path):
    with pytest.raises(ExperimentError, match="nowhere: no run to be found there"):
        experiment.stored_overrides(tmp_path / "nowhere")
    with pytest.raises(ExperimentError, match="no run to be found"):
        experiment.stored_overrides(tmp_path / "mine.py")
    (run_dir / "overrides.json").write_text("{")
    with pytest.raises(ExperimentError, match=r"overrides\.json: cannot be read: "):
        experiment.stored_overrides(run_dir)
    (run_dir / "overrides.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(ExperimentError, match=r"expected a list, got \{'a': 1\}"):
        experiment.stored_overrides(run_dir)
