"""Populations side by side wait, evolve and go on each by itself."""

import dataclasses
import shutil

import chex
import jax
import numpy as np
import pytest
from traders import PAIRS, planned, tiny

from ppo_jax import pbt
from ppo_jax.backtests import evolving
from ppo_jax.backtests.evolving import KEPT, Evolution
from ppo_jax.errors import Misfit
from ppo_jax.host.run_dir import files
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.ppo import population as populations
from ppo_jax.sweeps import cohorts

PATIENT = pbt.Readiness(min_episodes=0.0, share=1.0)
"""Nothing happens to a population before all of its members can take part."""
FITNESS = {2: [1.0, 2.0, 5.0, -np.inf], 4: [4.0, 3.0, 5.0, -np.inf]}
"""By update; a member of the second population is broken, and healed while it waits."""


@pytest.fixture(scope="module")
def config():
    return tiny(pbt=dataclasses.replace(PAIRS, readiness=PATIENT))


@pytest.fixture(scope="module")
def begun(config):
    """Two populations of two, before their first update."""
    members = planned(config).groups[0][:2]
    assert [member.seed for member in members] == [0, 1]
    return cohorts.begin(members)()


class Told:
    """Says how fit members are, as a selection does."""

    def __call__(self, population, done):
        self.fitness = np.array(FITNESS.get(done))
        return population


def evolved(config, home, population, updates):
    """The members after so many updates each, as another process sees them."""
    home.mkdir(exist_ok=True)
    evolution = Evolution(config, [0, 1], Told(), home)
    for update in updates:
        population = evolution(population, update)
    return population


def test_a_population_that_waits_keeps_no_other_from_evolving(config, begun, tmp_path):
    after = evolved(config, tmp_path, begun, (0, 2, 4))
    _, first, second = files.rows(tmp_path / KEPT)
    assert first["parent"] == [1, 1, 2, 2] and second["parent"] == [0, 0, 2, 2]
    assert first["waited"] == [0, 1] and second["waited"] == [0, 2]
    before, params = (jax.device_get(x.runs.learner.params) for x in (begun, after))
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(params), strict=True):
        np.testing.assert_array_equal(new, old[[1, 1, 2, 2]])
    moved = after.runs.learner.config.optimizer.learning_rate
    assert np.array_equal(moved, second["numbers"]["optimizer.learning_rate"])


def test_what_comes_after_a_checkpoint_is_repeated(config, begun, tmp_path):
    """By another process, which finds in the file what there was."""
    whole = evolved(config, tmp_path, begun, (0, 2, 4))
    text = (tmp_path / KEPT).read_text()
    saved = evolved(config, tmp_path / "other", begun, (0, 2))
    (tmp_path / "again").mkdir()
    shutil.copy(tmp_path / KEPT, tmp_path / "again")
    chex.assert_trees_all_equal(
        evolved(config, tmp_path / "again", saved, (4,)).runs.learner.params,
        whole.runs.learner.params,
    )
    assert (tmp_path / "again" / KEPT).read_text() == text


def test_there_is_no_generation_between_two_nor_at_the_end(config, begun, tmp_path):
    assert evolved(config, tmp_path, begun, (0, 3, 6)) is begun
    assert len(files.rows(tmp_path / KEPT)) == 1


def test_generations_that_were_deleted_are_missed(config, begun, tmp_path):
    saved = evolved(config, tmp_path, begun, (0, 2))
    (tmp_path / KEPT).unlink()
    with pytest.raises(ExperimentError, match=f"{KEPT}: is missing"):
        evolved(config, tmp_path, saved, (3,))  # At once, not at the next generation.


LINES = "{}", '{"update": 2}', '{"update": 2, "waited": [0]}', '{"waited": [0, 0]}'


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_is_no_generation_is_said(config, begun, tmp_path, line):
    (tmp_path / KEPT).write_text(f"{line}\n")
    with pytest.raises(ExperimentError, match=f"{KEPT}: line 1 is no generation"):
        evolved(config, tmp_path, begun, (4,))


def test_a_parent_is_of_the_same_population(config, begun, tmp_path, monkeypatch):
    generation = populations.Generation(np.int32([[0, 1], [2, 1]]), *[None] * 6)
    monkeypatch.setattr(evolving, "_evolve", lambda *_: (None, generation))
    with pytest.raises(Misfit, match=r"^Truncation: expected parents from 0 to 1, got"):
        evolved(config, tmp_path, begun, (0, 2))
