"""Who is compared: runs of one experiment with other seeds are one contender."""

import dataclasses
import json

import numpy as np
import pytest
from reported import row, written

from ppo_jax import Config
from ppo_jax.errors import UserError
from ppo_jax.host.run_dir.description import describe
from ppo_jax.reports import records
from ppo_jax.reports.contenders import gather, is_sweep, of_runs

CONFIG = Config("CartPole-v1")


def run(path, score=1.0, **fields):
    written(path, [row(1, eval__mean_reward=score)])
    described = describe(dataclasses.replace(CONFIG, **fields))
    (path / "config.json").write_text(json.dumps(described))
    return path


def test_seeds_are_runs_of_one_contender(tmp_path):
    """What differs between contenders names them; a seed twice is another one."""
    paths = [
        run(tmp_path / "a", 1.0),
        run(tmp_path / "b", 2.0, gamma=0.5),
        run(tmp_path / "c", 3.0, seed=1),
        run(tmp_path / "d", 4.0, gamma=0.5, seed=2),
        run(tmp_path / "e", 5.0),
    ]
    found = of_runs([records.read(path) for path in paths])
    columns = {each.name: each.column[:, 0].tolist() for each in found}
    assert columns == {"gamma=0.99": [1, 3], "gamma=0.5": [2, 4], str(paths[-1]): [5]}


def test_no_two_contenders_have_one_name(tmp_path):
    """Two seeds are there twice, and differ from another experiment alike."""
    given = {"a": 0, "b": 1, "c": 0, "d": 1}
    paths = [run(tmp_path / name, seed=seed) for name, seed in given.items()]
    paths += [run(tmp_path / f"{seed}", seed=seed, gamma=0.5) for seed in range(2)]
    found = of_runs([records.read(path) for path in paths])
    names = [f"{paths[0]} and 1 more", f"{paths[2]} and 1 more", "gamma=0.5"]
    assert [each.name for each in found] == names


def test_a_run_that_was_not_evaluated_has_no_score(tmp_path):
    """It is not the worst; whoever has no such run comes last."""
    paths = [run(tmp_path / "a", gamma=0.5), run(tmp_path / "b"), run(tmp_path / "c")]
    written(paths[0], [row(1)])
    paths.append(run(tmp_path / "d", 3.0, seed=1))
    written(paths[1], [row(1)])
    found, _, _ = gather(paths)
    columns = {each.name: each.column[:, 0].tolist() for each in found}
    assert columns == {"gamma=0.99": [3], str(paths[2]): [1], str(paths[0]): []}
    assert [*columns][-1] == str(paths[0])


def test_who_follows_a_schedule_is_no_seed_of_who_does_not(tmp_path):
    """Nor of another schedule, though both have the same experiment."""
    paths = [run(tmp_path / f"{seed}", seed=seed) for seed in range(5)]
    for path, last in zip(paths[1:4], (0.75, 0.75, 0.875), strict=True):
        schedule = [[0, {"gamma": 0.5}], [8, {"gamma": last}]]
        (path / "schedule.json").write_text(json.dumps(schedule))
    found = [records.read(path) for path in paths]
    assert {each.name: len(each.trials) for each in of_runs(found)} == {
        "gamma=0.99": 2,
        "gamma=0.5, 0.75 after 8": 2,
        str(paths[3]): 1,
    }


def swept(path, **change):
    results = {
        "metric": "eval/mean_reward",
        "settings": [{"gamma": 0.9}, {"gamma": 0.99}, {"gamma": 1.0}],
        "runs": [
            {
                "setting": setting,
                "seed": seed,
                "steps": [8, 16],
                "evaluations": {"eval/mean_reward": [0.0, last]},
            }
            for setting, seed, last in ((0, 0, 1.0), (0, 1, None), (1, 0, 3.0))
        ],
    }
    path.mkdir()
    (path / "results.json").write_text(json.dumps(results | change))
    return path


def test_a_sweep_has_a_contender_per_setting(tmp_path):
    """That has runs; a last value that was not finite stays one."""
    found, runs, metric = gather([swept(tmp_path / "s")])
    assert runs == [] and metric == "eval/mean_reward"
    assert [each.name for each in found] == ["gamma=0.9", "gamma=0.99"]
    assert str(found[0].column[:, 0].tolist()) == "[1.0, nan]"


def test_sweeps_and_runs_beside_each_other(tmp_path):
    paths = [swept(tmp_path / "s"), run(tmp_path / "a")]
    found, runs, _ = gather(paths)
    names = [each.name for each in found]
    assert names == [f"{paths[0]}: gamma=0.9", f"{paths[0]}: gamma=0.99", str(paths[1])]
    assert len(runs) == 1 and not is_sweep(paths[1])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"metric": "eval/median_reward"}, "is no result of a sweep: KeyError"),
        ({"runs": 3}, "is no result of a sweep: TypeError"),
        ({"settings": []}, "is no result of a sweep: IndexError"),
        ({"settings": [3]}, "is no result of a sweep: AttributeError"),
    ],
    ids=str,
)
def test_a_damaged_sweep_is_told(tmp_path, change, text):
    with pytest.raises(UserError, match=text):
        gather([swept(tmp_path / "s", **change)])


@pytest.mark.parametrize("made", [run, swept])
def test_the_same_one_twice_is_told(tmp_path, made):
    path = made(tmp_path / "a")
    with pytest.raises(UserError, match="a: is given twice"):
        gather([path, path.parent / "." / "a" / ".." / "a"])


def test_a_run_of_a_sweep_that_failed_has_no_last_score(tmp_path):
    """Though it was evaluated, as it was before."""
    path = swept(tmp_path / "s")
    results = json.loads((path / "results.json").read_text())
    results["runs"][0]["ending"] = "failed"
    (path / "results.json").write_text(json.dumps(results))
    found, _, _ = gather([path])
    last = [trial.last for each in found for trial in each.trials]
    np.testing.assert_array_equal(last, [np.nan, np.nan, 3])
    assert found[0].trials[0].scores.tolist() == [0, 1]
