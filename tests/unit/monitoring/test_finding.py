"""All runs below a folder are found, and nothing outside of it."""

import os

import pytest
from shelf import row, run

from ppo_jax.errors import UserError
from ppo_jax.monitoring.finding import find, size


def test_runs_are_found_however_deep(tmp_path):
    """A sweep with its batches, a replay in a run, a log without an experiment."""
    places = ["a", "b/c/d", "a/replay", "sweep", "sweep/batches/001", "imported"]
    places += ["checkpoints/of/mine", "former"]
    for place in places:
        run(tmp_path / place, [row(10)], saved=[1])
    for inside in ("checkpoints", "imported", "former"):
        run(tmp_path / "a" / inside / "x")
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "metrics.jsonl").touch()
    (tmp_path / "empty" / "checkpoints").mkdir(parents=True)
    found = {str(path.relative_to(tmp_path)) for path in find(tmp_path)}
    assert found == {*places, "alone"}
    assert [*find(tmp_path / "b" / "c" / "d")] == [tmp_path / "b" / "c" / "d"]


def test_links_are_not_followed(tmp_path):
    run(tmp_path / "outside" / "x")
    root = tmp_path / "root"
    run(root / "mine")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "circle").symlink_to(root)
    assert [*find(root)] == [root / "mine"]


def test_a_folder_that_is_none_is_said(tmp_path):
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        with pytest.raises(UserError, match=f"{name}: no run to be found there"):
            list(find(tmp_path / name))


def test_a_size_is_that_of_all_files(tmp_path):
    run_dir = run(tmp_path / "x", saved=[1])
    before = size(run_dir)
    (run_dir / "checkpoints" / "1" / "data").write_bytes(bytes(1000))
    os.symlink("/usr/bin/env", run_dir / "link")
    assert size(run_dir) == before + 1000 + len("/usr/bin/env")
