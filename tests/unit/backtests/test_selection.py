"""Checkpoints are chosen by validation alone, member by member."""

import dataclasses

import jax
import numpy as np
import pytest
from traders import PAIRS, planned, tiny

from ppo_jax.backtests import playing
from ppo_jax.backtests.selection import KEPT, Selection
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.ppo import population
from ppo_jax.sweeps import cohorts

TRIPLES = dataclasses.replace(PAIRS, size=3)


@pytest.fixture(scope="module")
def plan():
    return planned(tiny())


@pytest.fixture(scope="module")
def batch(plan):
    return plan.groups[0][:3]


@pytest.fixture(scope="module")
def stages(batch):
    """The same members with three sets of parameters, by updates."""
    members = cohorts.begin(batch)()
    keys = jax.random.split(jax.random.key(1), (3, 3))
    return {
        2 * (i + 1): dataclasses.replace(
            members,
            runs=dataclasses.replace(
                members.runs,
                learner=members.runs.learner.replace(
                    params=population.init(batch[0].config, key).runs.learner.params
                ),
            ),
        )
        for i, key in enumerate(keys)
    }


@pytest.fixture(scope="module")
def selected(plan, batch, stages, tmp_path_factory):
    home = tmp_path_factory.mktemp("selection")
    spans = [plan.folds[0].validation] * 3
    selection = Selection(batch[0].config, spans, home)
    for done, members in stages.items():
        assert selection(members, done) is members
    return selection, spans, home


def test_each_member_is_what_it_was_at_its_best(batch, stages, selected):
    selection, spans, _ = selected
    config = batch[0].config
    scores = np.array(
        [
            playing.play(
                playing.through(config, members.runs.learner, spans), spans[0].bars
            ).track.growth.sum(axis=1)
            for members in stages.values()
        ]
    )
    np.testing.assert_array_equal(selection.updates, 2 + 2 * scores.argmax(axis=0))
    np.testing.assert_allclose(selection.scores, scores.max(axis=0), rtol=1e-5)
    assert len(set(selection.updates.tolist())) > 1
    found = selection.of(stages[2]).learners
    for member, update in enumerate(selection.updates):
        wanted = stages[int(update)].runs.learner.params
        for a, b in zip(
            jax.tree.leaves(found.params), jax.tree.leaves(wanted), strict=True
        ):
            np.testing.assert_array_equal(a[member], b[member])


def test_an_agent_is_the_best_of_its_population(
    plan, batch, stages, selected, tmp_path
):
    """Its parameters are those of then, and so are the numbers that were searched."""
    alone, _, _ = selected
    searched = dataclasses.replace(batch[0].config, pbt=TRIPLES)
    selection = Selection(searched, [plan.folds[0].validation], tmp_path)
    for done, members in stages.items():
        rates = {"optimizer.learning_rate": [done * (i + 1) * 1e-3 for i in range(3)]}
        selection(population.with_numbers(members, jax.tree.map(np.array, rates)), done)
    best = int(alone.scores.argmax())
    update = int(alone.updates[best])
    found = selection.of(stages[2])
    assert found.scores == alone.scores[best] and found.updates == update
    wanted = stages[update].runs.learner.params
    for a, b in zip(
        jax.tree.leaves(found.learners.params), jax.tree.leaves(wanted), strict=True
    ):
        np.testing.assert_array_equal(a[0], b[best])
    rate = found.learners.config.optimizer.learning_rate
    np.testing.assert_allclose(rate, [update * (best + 1) * 1e-3], rtol=1e-6)


@pytest.mark.parametrize(
    ("phases", "looks"), [(1, [4, 7, 11, 14]), (2, [7, 14]), (4, [7, 14])]
)
def test_it_looks_with_every_evaluation_and_before_every_generation(
    plan, batch, stages, tmp_path, monkeypatch, phases, looks
):
    """After phases of four updates, and of the three that are left of an interval."""
    given = batch[0].config
    config = dataclasses.replace(
        given,
        total_timesteps=14 * given.num_envs * given.num_steps,
        pbt=dataclasses.replace(TRIPLES, interval=7),
        phase_updates=4,
        eval_phases=phases,
    )
    seen = []
    monkeypatch.setattr(Selection, "look", lambda self, _, done: seen.append(done))
    monkeypatch.setattr(Selection, "_require_kept", lambda *_: None)
    selection = Selection(config, [plan.folds[0].validation], tmp_path)
    for done in (0, 4, 7, 11, 14):
        selection(stages[2], done)
    assert seen == looks


def test_what_was_selected_is_kept(batch, stages, selected):
    selection, spans, home = selected
    again = Selection(batch[0].config, spans, home)
    again(stages[4], 4)  # Seen before: nothing gets better by that.
    np.testing.assert_array_equal(again.updates, selection.updates)
    for a, b in zip(
        jax.tree.leaves(again.of(stages[2])),
        jax.tree.leaves(selection.of(stages[2])),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_what_was_selected_and_is_damaged_is_said(batch, selected, tmp_path):
    """As nobody could tell how good members were before."""
    selection, spans, home = selected
    data = (home / KEPT).read_bytes()
    for damaged in (b"", data[: len(data) // 2], bytes(range(200)), b"[1]\n"):
        (tmp_path / KEPT).write_bytes(damaged)
        with pytest.raises(ExperimentError, match=f"{KEPT}: cannot be read"):
            Selection(batch[0].config, spans, tmp_path)
    np.savez(tmp_path / KEPT, scores=selection.scores)
    with pytest.raises(ExperimentError, match=f"{KEPT}: is no selection"):
        Selection(batch[0].config, spans, tmp_path)


@pytest.mark.parametrize(("phases", "first"), [(1, 2), (2, 4)])
def test_what_was_selected_and_deleted_is_missed(
    batch, stages, selected, tmp_path, monkeypatch, phases, first
):
    """By whoever goes on after the first look; not by who begins, or looks first."""
    _, spans, _ = selected
    config = dataclasses.replace(batch[0].config, eval_phases=phases)
    with pytest.raises(ExperimentError, match=f"{KEPT}: is missing"):
        Selection(config, spans, tmp_path).look(stages[2], first + 1)
    with monkeypatch.context() as soon:
        soon.setattr(Selection, "look", None)
        with pytest.raises(ExperimentError, match=f"{KEPT}: is missing"):
            Selection(config, spans, tmp_path)(stages[2], first + 1)
    monkeypatch.setattr(playing, "play", None)
    with pytest.raises(TypeError):  # It looks.
        Selection(config, spans, tmp_path).look(stages[2], first)


def test_what_is_broken_is_never_the_best(plan, batch, stages, tmp_path):
    selection = Selection(batch[0].config, [plan.folds[0].validation] * 3, tmp_path)
    good = stages[2].runs.learner
    broken = good.replace(params=jax.tree.map(lambda x: x * np.nan, good.params))
    runs = dataclasses.replace(stages[2].runs, learner=broken)
    selection(dataclasses.replace(stages[2], runs=runs), 2)
    selection(stages[2], 4)
    assert selection.updates.tolist() == [4, 4, 4]
    assert np.isfinite(selection.scores).all()
