"""What is restored has the structure that was saved, or nothing is."""

import contextlib
import dataclasses
import functools
import gc
import json
import threading

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import fit, networks, terms
from ppo_jax.config import Config
from ppo_jax.envs.probes import Accumulator
from ppo_jax.host.loop import training
from ppo_jax.host.run_dir.checkpoint import Checkpointer, CheckpointError
from ppo_jax.host.run_dir.lineage import Family


def experiment(**changes):
    fields = {
        "env": Accumulator(),
        "num_envs": 2,
        "num_steps": 4,
        "num_minibatches": 1,
        "network": networks.ActorCritic(torso=networks.Mlp(hidden=(4,)), shared=True),
        "terms": (terms.Surrogate(),),
        "obs_clip": 10.0,
        "total_timesteps": 8 * 4,
        "phase_updates": 1,
        "eval_phases": 1,
        "eval_episodes": 2,
    }
    return Config(**fields | changes)


def params_of(population):
    return population.runs.learner.params


def with_params(population, params):
    learner = dataclasses.replace(population.runs.learner, params=params)
    return population.replace(runs=population.runs.replace(learner=learner))


def without_a_leaf(population):
    params = params_of(population)
    actor = {k: v for k, v in params["actor"].items() if k != "head"}
    return with_params(population, params | {"actor": actor})


def with_a_leaf_more(population):
    params = params_of(population)
    actor = params["actor"] | {"another": jnp.zeros(3)}
    return with_params(population, params | {"actor": actor})


def of_another_shape(population):
    params = params_of(population)
    head = params["actor"]["head"] | {"bias": jnp.zeros((1, 5))}
    actor = params["actor"] | {"head": head}
    return with_params(population, params | {"actor": actor})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("change", [without_a_leaf, with_a_leaf_more, of_another_shape])
def test_another_structure_is_not_restored(tmp_path, change):
    """PROP-18.2: a leaf that is missing, one too many, one of another shape."""
    population = training.start(experiment())
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(1, population, 0.0, {"update": 1})
    checkpoints.close()
    checkpoints = Checkpointer(tmp_path)
    try:
        assert not checkpoints.empty
        with pytest.raises(CheckpointError, match="its leaves are not those"):
            checkpoints.restore(change(population))
        _, restored, _ = checkpoints.restore(population)
    finally:
        checkpoints.close()
        gc.collect()  # Coroutines that orbax leaves behind when a restore fails.
    for old, new in zip(
        jax.tree.leaves(params_of(population)),
        jax.tree.leaves(params_of(restored)),
        strict=True,
    ):
        chex.assert_trees_all_equal(old, new)


def trained(run_dir, config):
    fit(config, run_dir)
    checkpoints = Checkpointer(run_dir)
    _, population, _ = checkpoints.restore(training.start(config))
    checkpoints.close()
    return population.runs


def test_evaluation_changes_nothing(tmp_path):
    """PROP-3.3: moments, parameters and keys are those of a run without it."""
    often = trained(tmp_path / "often", experiment(eval_phases=1))
    once = trained(tmp_path / "once", experiment(eval_phases=4))
    assert often.learner.obs_moments.count == 8 * 4
    for a, b in zip(
        jax.tree.leaves((often.learner, often.actor)),
        jax.tree.leaves((once.learner, once.actor)),
        strict=True,
    ):
        chex.assert_trees_all_equal(a, b)
    one, other = (jax.random.key_data(runs.key) for runs in (often, once))
    chex.assert_trees_all_equal(one, other)


def test_a_checkpoint_knows_nothing_of_later_phases(tmp_path):
    """PROP-18.1: what a run goes on to remember while it is still being saved."""
    population, lines, streaks = training.start(experiment()), [], {"warn/x": [0]}
    checkpoints = Checkpointer(tmp_path)
    for update in (1, 2):
        lines.append(update)
        streaks["warn/x"] = [update]
        meta = {"lineage": lines, "streaks": streaks}
        checkpoints.save(update, population, 0.0, meta)
    lines.append(3)
    streaks["warn/x"] = [3]
    checkpoints.close()
    checkpoints = Checkpointer(tmp_path)
    for update in (1, 2):
        _, _, meta = checkpoints.restore(population, asked=update)
        assert meta["lineage"] == [1, 2][:update]
        assert meta["streaks"] == {"warn/x": [update]}
    checkpoints.close()


def test_damaged_generations_make_a_checkpoint_a_damaged_one(tmp_path, capsys):
    """A letter changed on disk; the run goes on from the one before."""
    population, family = training.start(experiment()), Family([{"parent": [0, 1]}])
    with contextlib.closing(Checkpointer(tmp_path)) as checkpoints:
        for update in (1, 2):
            checkpoints.save(update, population, 0.0, {"lineage": family.packed})
            family.append({"parent": [1, 1]})
    newest = tmp_path / "checkpoints" / "2" / "meta" / "metadata"
    meta = json.loads(newest.read_text())
    letters = [*meta["lineage"]]
    letters[40] = "B" if letters[40] == "A" else "A"
    meta["lineage"] = "".join(letters)
    newest.write_text(json.dumps(meta))
    with contextlib.closing(Checkpointer(tmp_path)) as checkpoints:
        update, _, found = checkpoints.restore(population)
    assert (update, found["lineage"]) == (1, [{"parent": [0, 1]}])
    assert "checkpoint 2 cannot be read" in capsys.readouterr().out


@functools.partial(jax.jit, donate_argnums=0)
def poisoned(population):
    """Other numbers in the same memory."""
    return with_params(
        population, jax.tree.map(lambda x: x - 7.0, params_of(population))
    )


def test_a_checkpoint_is_of_before_the_memory_is_given_away(tmp_path):
    """PROP-18.1: what is trained on while it is saved writes over what is saved."""
    population = training.start(experiment())
    before = jax.device_get(jax.tree.map(jnp.copy, params_of(population)))
    checkpoints = Checkpointer(tmp_path)
    for update in range(2):
        checkpoints.save(update, population, 0.0, {})
        population = poisoned(population)
    checkpoints.close()
    checkpoints = Checkpointer(tmp_path)
    for update in range(2):
        _, restored, _ = checkpoints.restore(population, asked=update)
        wanted = jax.tree.map(lambda x, n=update: x - 7.0 * n, before)
        chex.assert_trees_all_close(params_of(restored), wanted, atol=1e-5, rtol=0)
    checkpoints.close()


def test_runs_of_several_threads_are_saved_at_once(tmp_path):
    def train(run_dir, updates=4):
        with contextlib.closing(Checkpointer(run_dir)) as checkpoints:
            for update in range(updates):
                checkpoints.save(update, {"x": np.zeros(4)}, 0.0, {})
        whole.append(run_dir)

    whole, places = [], [tmp_path / str(number) for number in range(4)]
    threads = [threading.Thread(target=train, args=(x,), daemon=True) for x in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(whole) == places
