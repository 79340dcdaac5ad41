"""Directories of many runs are known by what is left there by those that make them."""

import pytest

from ppo_jax.backtests import plan as walks
from ppo_jax.backtests import selection, walking
from ppo_jax.host.run_dir import batched
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.sweeps import batches, plan, scores


def test_files_have_the_names_that_they_are_written_by():
    assert batched.OF_BATCHES == {plan.KEPT: "sweep", walks.KEPT: "walkforward"}
    assert batched.KEPT == (scores.BATCH, selection.KEPT, walking.KEPT)


@pytest.mark.parametrize(
    ("kept", "kind", "said"),
    [
        ("sweep.json", "sweep", "a sweep; ppo_jax.load_all finds its runs"),
        ("walk.json", "walkforward", "a walk-forward; its backtest.html says"),
    ],
)
def test_a_directory_of_many_runs_is_none_of_one(tmp_path, kept, kind, said):
    (tmp_path / kept).touch()
    assert batched.kind_of(tmp_path) == kind
    with pytest.raises(ExperimentError, match=f"{tmp_path}: holds {said}"):
        batched.require_single(tmp_path)
    (tmp_path / kept).unlink()
    assert batched.kind_of(tmp_path) is None
    batched.require_single(tmp_path)


@pytest.mark.parametrize("name", batched.KEPT)
def test_what_a_batch_has_come_to_is_seen(tmp_path, name):
    (home,) = batches.split([["a run"]], [1], tmp_path)
    home.mkdir(parents=True)
    (home / "metrics.jsonl").touch()
    assert not batched.has_results(tmp_path)
    (home / name).touch()
    assert batched.has_results(tmp_path)
