"""What only the host reads: each field changes a run as it says."""

import dataclasses

import jax.numpy as jnp
import pytest

from ppo_jax import PBT, fit, metrics, networks, terms
from ppo_jax.component import component
from ppo_jax.config import Config
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.host.loop import training


@component
class Chosen(TimeLimitChain):
    """Pays what was done."""

    def transition(self, key, state, action):
        timestep, state = super().transition(key, state, action)
        reward = action.astype(jnp.float32)
        return timestep._replace(reward=reward), state


BASE = {
    "env": Chosen(limit=5),
    "num_envs": 4,
    "num_steps": 8,
    "num_epochs": 1,
    "num_minibatches": 1,
    "network": networks.ActorCritic(torso=networks.Mlp(hidden=(4,))),
    "total_timesteps": 32 * 8,
    "phase_updates": 2,
    "eval_phases": 2,
    "eval_episodes": 4,
}
NEVER = terms.Surrogate(), terms.Value(3e38), terms.Entropy()
"""No step is ever finite: gradients are infinite."""


def rows(**changes):
    """The rows of a whole run, and how it ended."""
    trained = fit(Config(**BASE | changes))
    return trained.rows, trained.ending


def told(rows, name):
    return [row[name] for row in rows if name in row]


def evaluated(rows):
    return [row["time/iterations"] for row in rows if "eval/mean_reward" in row]


@pytest.mark.parametrize(
    ("changes", "iterations", "evaluations", "count"),
    [
        ({}, [2, 4, 6, 8], [4, 8], 4),
        ({"total_timesteps": 32 * 5}, [2, 4, 5], [4, 5], 4),
        ({"phase_updates": 4}, [4, 8], [8], 4),
        ({"phase_updates": 0}, [1, 2, 3, 4, 5, 6, 7, 8], [2, 4, 6, 8], 4),
        ({"eval_phases": 1}, [2, 4, 6, 8], [2, 4, 6, 8], 4),
        ({"eval_episodes": 3}, [2, 4, 6, 8], [4, 8], 3),
    ],
)
def test_budget_and_intervals(changes, iterations, evaluations, count):
    """PROP-0: total_timesteps, phase_updates, eval_phases, eval_episodes."""
    said, ending = rows(**changes)
    assert ending == "finished"
    assert told(said, "time/iterations") == iterations
    assert evaluated(said) == evaluations
    assert set(told(said, "eval/episodes")) == {count}


@pytest.mark.parametrize("sample", [False, True])
def test_an_evaluation_samples_if_one_says_so(sample):
    """PROP-0: eval_sample; only then do episodes without chance differ."""
    said, _ = rows(eval_sample=sample)
    assert all((std > 0) == sample for std in told(said, "eval/std_reward"))


def test_a_seed_is_another_run():
    """PROP-0: and the same one is the same run."""
    losses = [told(rows(seed=seed)[0], "train/loss") for seed in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize(("most", "last"), [(1, 2), (2, 2), (3, 4), (99, 8)])
def test_a_run_that_fails_too_often_ends(most, last, capsys):
    """PROP-0: max_failures updates in a row of which no step was finite; it is said."""
    said, ending = rows(max_failures=most, terms=NEVER)
    assert ending == ("failed" if most < 99 else "finished")
    assert told(said, "time/iterations")[-1] == last
    assert told(said, "error/failure_streak")[-1] == last
    text = f"failed: {most} updates in a row had no finite step"
    assert (text in capsys.readouterr().out) == (most < 99)


def test_what_failed_at_its_very_end_has_not_finished(tmp_path):
    """PROP-0: nothing is left to be done of it, and it says so whenever it goes on."""
    config = Config(**BASE | {"max_failures": 8, "terms": NEVER})
    first = fit(config, tmp_path / "run", quiet=True)
    again = fit(config, tmp_path / "run", resume=True, quiet=True)
    assert first.update == again.update == 8
    assert first.ending == again.ending == "failed"
    patient = dataclasses.replace(config, max_failures=9)
    later = fit(patient, tmp_path / "run", resume=True, quiet=True)
    assert later.ending == "finished"


def test_a_watchdog_waits_as_long_as_one_says(monkeypatch):
    """PROP-0: stall_seconds; that it ends what never comes back is tested elsewhere."""
    waited, watchdog = [], training.Watchdog

    def recorded(seconds, *args):
        waited.append(seconds)
        return watchdog(seconds, *args)

    monkeypatch.setattr(training, "Watchdog", recorded)
    rows(stall_seconds=77, total_timesteps=32)
    assert waited == [77]


@pytest.mark.parametrize("devices", [1, 2])
def test_an_agent_has_as_many_devices_as_one_says(monkeypatch, devices):
    """PROP-0: devices_per_member; what they do with it is tested elsewhere."""
    given, ready = [], training.ready

    def recorded(config, *args):
        given.append(config.devices_per_member)
        return ready(dataclasses.replace(config, devices_per_member=1), *args)

    monkeypatch.setattr(training, "ready", recorded)
    rows(devices_per_member=devices, total_timesteps=32)
    assert given == [devices]


@component
class Told(metrics.Sink):
    """Keeps what it is told."""

    rows: list = dataclasses.field(default_factory=list, hash=False)

    def write(self, step, metrics):
        self.rows.append(step)


def test_a_sink_is_told_every_row():
    """PROP-0: sinks; what else they hear is tested elsewhere."""
    told = Told()
    said, _ = rows(sinks=(told,), total_timesteps=64)
    assert told.rows == [row["step"] for row in said]


def test_every_host_field_is_known_here():
    """PROP-0: whoever adds one says what it does, here or among runs that need it."""
    fields = {
        f"{cls.__name__}.{field.name}"
        for cls in (Config, PBT)
        for field in dataclasses.fields(cls)
        if field.metadata.get("host")
    }
    assert fields == {
        *("Config.pbt", "Config.seed", "Config.total_timesteps"),
        *("Config.phase_updates", "Config.eval_phases", "Config.eval_episodes"),
        *(
            "Config.eval_sample",
            "Config.max_failures",
            "Config.stall_seconds",
            "PBT.interval",
        ),
        *("Config.devices_per_member", "Config.stop_at", "Config.max_seconds"),
        "Config.sinks",
    }
