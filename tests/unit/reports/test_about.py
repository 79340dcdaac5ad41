"""What was run and how it ended, of configs that experiments really have."""

import dataclasses
import json

import pytest
from reported import row, said, written

from ppo_jax import Config, critics, networks, optimizers
from ppo_jax.host.run_dir.description import describe
from ppo_jax.host.run_dir.ending import recorded
from ppo_jax.host.run_dir.presence import alone
from ppo_jax.reports import records
from ppo_jax.reports.about import commands, lead, overview, section

CONFIG = Config(
    "CartPole-v1",
    num_envs=20,
    num_steps=5,
    total_timesteps=20 * 5 * 10,
    network=networks.ActorCritic(memory=networks.Lstm(size=16)),
    critic=critics.Quantile(num_quantiles=8),
    optimizer=optimizers.Adam(learning_rate=2e-3),
    standardization=None,
)


def run(path, *rows, config=CONFIG):
    written(path, rows)
    (path / "config.json").write_text(json.dumps(describe(config)))
    (path / "experiment.py").touch()
    newest = int(rows[-1]["time/iterations"])
    (path / "checkpoints" / str(newest)).mkdir(parents=True)
    return records.read(path)


def test_differences_are_those_from_the_defaults(tmp_path):
    """Of a part of another kind, those from its own defaults."""
    table, _, _, _ = section(run(tmp_path, row(1))).parts
    rows = [[said(cell) for cell in line] for line in table.iter("tr")]
    assert rows[0] == ["field", "here", "default"]
    shown = {field: (here, default) for field, here, default in rows[1:]}
    assert shown["num_envs"] == ("20", "4") and "num_epochs" not in shown
    assert shown["optimizer.learning_rate"] == ("0.002", "0.00025")
    assert shown["network.memory.type"] == ("Lstm", "None")
    assert shown["network.memory.size"][0] == "16"
    assert shown["critic.type"] == ("Quantile", "Scalar")
    assert shown["critic.num_quantiles"] == ("8", "32") and "critic.kappa" not in shown
    assert shown["standardization"] == ("None", "OverAll")
    assert not {"optimizer.type", "type", "terms", "critic.clip"} & shown.keys()


def test_the_defaults_differ_in_nothing():
    """But for the environment, which has none."""
    from ppo_jax.host.run_dir.description import defaults

    described = describe(Config("CartPole-v1"))
    differing = {
        k for k, v in described.items() if defaults(described).get(k) != v["value"]
    }
    assert all(path.startswith("env.") for path in differing), differing


@pytest.mark.parametrize(
    ("updates", "expected"), [(10, "finished"), (4, "interrupted")]
)
def test_how_it_ended(tmp_path, updates, expected):
    found = run(tmp_path, row(updates))
    assert found.state == expected
    again = any("--resume" in line for line in commands(found))
    assert again == (expected != "finished")
    for state in ("stopped", "failed"):
        with recorded(tmp_path) as said:
            said.became(state)
        found = records.read(tmp_path)
        assert found.state == state
        assert any("train" in line and "--resume" in line for line in commands(found))
    with alone(tmp_path):
        found = records.read(tmp_path)
        assert found.state == "running"
        assert not any("--resume" in line for line in commands(found))


def test_it_goes_on_as_it_began(tmp_path):
    """A replay with its schedule."""
    found = run(tmp_path, row(4))
    (tmp_path / "schedule.json").write_text("[]")
    again = f"python -m ppo_jax.replay {tmp_path} --to {tmp_path} --resume"
    assert commands(found)[0] == again


def test_the_tail_of_a_population_is_told_to_be_the_median_members(tmp_path):
    """Other charts are of the fittest."""
    tails = {"eval__cvar_5_reward": 3.0, "best__eval__cvar_5_reward": 9.0}
    each = {f"each__eval__mean_reward__{i}": 1.0 for i in range(3)}
    found = run(tmp_path, row(10, eval__mean_reward=1.0, **tails, **each))
    assert "tail 3 worst 5 % of the median member; quartiles" in said(overview(found))


def test_what_no_command_can_load_is_not_evaluated(tmp_path):
    """An experiment with parts that are in no file."""
    found = run(tmp_path, row(10))
    assert len(commands(found)) == 3
    (tmp_path / "experiment.py").unlink()
    assert commands(found) == [f"python -m ppo_jax.report {tmp_path} OTHER_RUN_DIR"]


def test_no_command_is_told_that_a_batch_does_not_take(tmp_path):
    """Its agents are in no directory of their own."""
    (tmp_path / "config.json").write_text(json.dumps(describe(CONFIG)))
    each = {f"each__eval__mean_reward__{i}": 1.0 for i in range(3)}
    place = tmp_path / "batches" / "001"
    found = records.read(written(place, [row(10, eval__mean_reward=1.0, **each)]))
    assert commands(found)[-1:] == [
        f"python -m ppo_jax.report {place} OTHER_RUN_DIR",
    ]
    assert not any(x in y for x in ("evaluate", "robust") for y in commands(found))
    assert lead(found) == "an experiment, 3 runs of a batch."


def test_the_figures_that_one_looks_for_first(tmp_path):
    rows = [row(1, eval__mean_reward=9.5), row(10, eval__mean_reward=7.25)]
    found = run(tmp_path, *rows)
    text = said(overview(found))
    assert "evaluation 7.25 best 9.5" in text and "alerts 0 that were active" in text
    assert "state finished 1,000 steps" in text and "1 s of it compiling" in text
    assert "CartPole" in lead(found) and "a memory (Lstm), seed 0" in lead(found)


def test_paths_are_quoted_for_a_shell(tmp_path):
    found = run(tmp_path / "a b; rm", row(1))
    assert f"python -m ppo_jax.evaluate '{tmp_path}/a b; rm'" in commands(found)


def test_a_value_that_is_long_is_cut(tmp_path):
    config = dataclasses.replace(
        CONFIG, network=networks.ActorCritic(networks.Mlp(hidden=(8,) * 900))
    )
    text = said(section(run(tmp_path, row(1), config=config)).parts[0])
    assert "(8, 8," in text and len(text) < 3000
