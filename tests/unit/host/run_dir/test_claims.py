"""Where a run may begin, and where one may go on."""

import json
import re

import pytest
from reported import named

from ppo_jax import Config
from ppo_jax.host.run_dir import claims, experiment, storing
from ppo_jax.host.run_dir.experiment import ExperimentError

TEXT = b"from ppo_jax import Config\n\nconfig = Config('CartPole-v1')\n"
CONFIG = Config("CartPole-v1")
BOTH = (claims.require_new, claims.require_whole)


@pytest.fixture
def run_dir(tmp_path):
    """A run that has not said anything yet."""
    storing.store(tmp_path / "run", {"experiment.py": TEXT}, [], CONFIG)
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("saved", "taken"),
    [
        ("checkpoints/5", True),
        ("batches/0/checkpoints/5", True),
        ("batches/0/scores.json", True),
        ("batches/0/selected.npz", True),
        ("batches/0/tracks.npz", True),
        ("batches/0/metrics.jsonl", False),
        ("checkpoints/5.part", False),
        ("checkpoints/002", False),
        ("checkpoints/²", False),
        ("checkpoints", False),
    ],
)
def test_a_directory_with_anything_to_go_on_with_is_not_new(run_dir, saved, taken):
    """A checkpoint, or what a batch has come to."""
    (run_dir / saved).mkdir(parents=True)
    if taken:
        with pytest.raises(ExperimentError, match="holds a run already; give --resume"):
            claims.require_new(run_dir)
    else:
        claims.require_new(run_dir)


def test_what_has_lost_its_beginning_does_not_go_on(run_dir):
    """Until it is begun again, or saved after all."""
    claims.require_begun(run_dir)
    texts = {experiment.UNSAVED: b"", "experiment.py": TEXT}
    storing.store(run_dir, texts, [], CONFIG)
    with pytest.raises(ExperimentError, match="before what it begins with was sav"):
        claims.require_begun(run_dir)
    storing.store(run_dir, {"experiment.py": TEXT}, [], CONFIG)
    claims.require_begun(run_dir)
    storing.store(run_dir, texts, [], CONFIG)
    (run_dir / "checkpoints" / "0").mkdir(parents=True)
    claims.require_begun(run_dir)


WRITERS = re.compile("`(train|fit|fit_all|sweep|walkforward|replay)[` ]")
REPLACED = {
    name.removesuffix("/*").replace("*", "1")
    for title in ("A run", "A sweep", "A walk-forward")
    for name, by in named(title).items()
    if WRITERS.match(by)
    if "/" not in name.removesuffix("/*")
} - {".lock", "replay"}
"""Files in the directory itself, of the document."""


@pytest.mark.parametrize("name", sorted(REPLACED))
def test_files_that_are_of_no_run_are_not_replaced(tmp_path, name):
    """As those of a project, where the current folder is given."""
    (tmp_path / "README.md").touch()
    claims.require_new(tmp_path)
    (tmp_path / name).write_text("{}")
    with pytest.raises(ExperimentError, match=f"holds {name}, which a run would repl"):
        claims.require_new(tmp_path)
    (tmp_path / "overrides.json").write_text("[]")
    claims.require_new(tmp_path)


@pytest.fixture
def logged(run_dir):
    """A run that has said something."""
    lines = [json.dumps({"step": step}) + "\n" for step in (8, 16)]
    (run_dir / "metrics.jsonl").write_text("".join(lines))
    return run_dir


@pytest.mark.parametrize("require", BOTH)
def test_a_log_whose_checkpoints_are_gone_is_not_begun_anew(logged, require):
    """However it ended, or however little it had said."""
    with pytest.raises(ExperimentError, match="the log reaches step 16, but no check"):
        require(logged)
    (logged / "metrics.jsonl").unlink()
    require(logged)


@pytest.mark.parametrize("require", BOTH)
def test_a_file_is_no_checkpoint(logged, require):
    (logged / "checkpoints").mkdir()
    (logged / "checkpoints" / "5").touch()
    with pytest.raises(ExperimentError, match="the log reaches step 16, but no check"):
        require(logged)


@pytest.mark.parametrize("require", BOTH)
def test_a_log_of_before_the_first_checkpoint_is_begun_anew(logged, require):
    """Until there is one; from then on it counts if that is gone."""
    for _ in range(2):
        claims.note_unsaved(logged)
        claims.note_saved(logged)
        require(logged)
    (logged / "checkpoints" / "5").mkdir()
    claims.note_saved(logged)
    claims.note_unsaved(logged)
    (logged / "checkpoints" / "5").rmdir()
    with pytest.raises(ExperimentError, match="the log reaches step 16, but no check"):
        require(logged)


@pytest.mark.parametrize("require", BOTH)
def test_checkpoints_on_a_disk_that_is_not_there_are_said(run_dir, require, tmp_path):
    (run_dir / "checkpoints").symlink_to(tmp_path / "scratch")
    with pytest.raises(ExperimentError, match=r"leads to .*scratch, which is gone"):
        require(run_dir)
    (tmp_path / "scratch").mkdir()
    require(run_dir)
