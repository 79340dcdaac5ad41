"""What a sweep is to do: every setting with every seed, and what it is asked for."""

import dataclasses
import json
from argparse import Namespace

import optax
import pytest
from brief import experiment

from ppo_jax import PBT, LogUniform, optimizers
from ppo_jax.component import component
from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.errors import Misfit, UserError
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.sweeps import plan

CONFIG = experiment(IdenticalRewards())
RATE = "optimizer.learning_rate"


def options(**given):
    """What a command line says, with its defaults."""
    alone = {"seeds": 1, "grid": [], "random": 0, "space": [], "memory": None}
    kept = {"metric": "eval/mean_reward", "sizes": [], "values": None}
    return Namespace(**alone | kept | given)


def planned(config=CONFIG, **given):
    return plan.plan(config, {"LogUniform": LogUniform}, options(**given))


def test_every_setting_has_every_seed():
    """Counted from the seed of the experiment; each with its numbers."""
    config = dataclasses.replace(CONFIG, seed=5)
    found = planned(config, seeds=3, grid=["gamma=0.5,0.25"])
    assert found.settings == [{"gamma": 0.5}, {"gamma": 0.25}]
    (group,) = found.groups
    said = [(member.setting, member.seed, member.config.gamma) for member in group]
    assert said == [(i, 5 + j, (0.5, 0.25)[i]) for i in range(2) for j in range(3)]


def test_seeds_that_there_are_not_are_refused():
    """The last one is 2³² − 1."""
    config = dataclasses.replace(CONFIG, seed=2**32 - 2)
    assert [member.seed for member in planned(config, seeds=2).members][-1] == 2**32 - 1
    with pytest.raises(UserError, match=r"--seeds: 3 seeds from 4294967294 on reach"):
        planned(config, seeds=3)


def test_a_program_per_structure():
    """A number that is absent is another structure, two numbers are not."""
    grid = ["num_epochs=1,2", "obs_clip=None,5.0,10.0", "gamma=0.9,0.99"]
    found = planned(grid=grid)
    assert len(found.settings) == 12
    assert [len(group) for group in found.groups] == [2, 4, 2, 4]


def test_without_a_grid_the_experiment_itself_is_trained():
    found = planned(seeds=2)
    assert found.settings == [{}]
    assert [member.config for member in found.groups[0]] == [CONFIG] * 2


def test_single_runs_are_drawn_from_the_space_of_a_population():
    """Nobody copies anybody in a sweep."""
    pbt = PBT({RATE: LogUniform(1e-4, 1e-2)})
    found = planned(dataclasses.replace(CONFIG, pbt=pbt), random=4, seeds=2)
    rates = [setting[RATE] for setting in found.settings]
    assert len({*rates}) == 4 and all(1e-4 <= rate <= 1e-2 for rate in rates)
    (group,) = found.groups
    assert len(group) == 8
    for member in group:
        assert member.config.pbt is None
        assert member.config.optimizer.learning_rate == rates[member.setting]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"grid": ["gama=0.5"]}, "closest is 'gamma'"),
        ({"grid": ["gamma=0.5,2.0"]}, "gamma"),
        ({"random": 2}, "--random and --space: one needs the other"),
        ({"space": ["gamma=0.5,0.9"]}, "--random and --space: one needs the other"),
    ],
)
def test_settings_that_cannot_be_are_said(given, said):
    with pytest.raises(ExperimentError, match=said):
        planned(**given)


@component
class Fussy(IdenticalRewards):
    """An environment that one of its settings breaks."""

    column: bool = False

    def observe(self, state):
        obs = super().observe(state)
        return [obs] if self.column else obs

    def transition(self, key, state, action):
        timestep, state = super().transition(key, state, action)
        reward = timestep.reward[None] if self.column else timestep.reward
        return timestep._replace(reward=reward), state


@pytest.mark.parametrize(
    "given", ['pbt=PBT({"gamma": LogUniform(0.5, 0.9)}, size=4)', "pbt.size=4,8"]
)
def test_populations_are_not_swept(given):
    """Members of theirs would be taken for runs of the sweep."""
    names = {"PBT": PBT, "LogUniform": LogUniform}
    with pytest.raises(UserError, match="pbt: expected no population, as a sweep"):
        plan.plan(CONFIG, names, options(grid=[given]))


def test_an_environment_is_tried_with_every_structure():
    """Before anything is compiled."""
    config = experiment(Fussy())
    assert len(planned(config, grid=["env.column=False"]).groups) == 1
    with pytest.raises(Misfit, match="reward"):
        planned(config, grid=["env.column=False,True"])


def test_what_was_asked_for_is_remembered(tmp_path):
    """Whole, as JSON that one can read; nothing else of a command line is."""
    asked = {
        "seeds": 3,
        "grid": ["gamma=0.5,0.9"],
        "random": 2,
        "space": [f"{RATE}=LogUniform(1e-4, 1e-2)"],
        "metric": "eval/q25_reward",
        "memory": 7.0,
        "sizes": [4, 6],
        "values": [{"gamma": {"kind": "number", "value": "0.5"}}],
    }
    plan.remember(tmp_path, plan.asked(options(**asked, quiet=True)))
    assert json.loads((tmp_path / "sweep.json").read_text()) == asked
    assert plan.recall(tmp_path) == asked


def test_a_sweep_from_before_memory_was_remembered_was_asked_for_none(tmp_path):
    """Nor had it kept values."""
    (tmp_path / "sweep.json").write_text('{"seeds": 3}')
    assert plan.recall(tmp_path) == {"memory": None, "values": None, "seeds": 3}


def test_the_values_of_settings_are_those_of_their_experiments():
    """Of the command line alone: an integer that a number takes is a number."""
    found = planned(seeds=2, grid=["gamma=0.5,1", "num_epochs=2"])
    epochs = {"kind": "structure", "value": "2"}
    assert found.values == [
        {"gamma": {"kind": "number", "value": value}, "num_epochs": epochs}
        for value in ("0.5", "1.0")
    ]


def test_a_directory_without_a_sweep_is_said(tmp_path):
    with pytest.raises(ExperimentError, match="no run to be found there"):
        plan.recall(tmp_path)


def test_experiments_of_python_share_a_setting_if_they_differ_in_their_seeds():
    """In the order in which they are given; a setting is all that differs anywhere."""
    fields = [(0.5, None, 3), (0.9, 5.0, 0), (0.5, None, 1), (0.5, 5.0, 3)]
    configs = [
        dataclasses.replace(CONFIG, gamma=gamma, obs_clip=clip, seed=seed)
        for gamma, clip, seed in fields
    ]
    found = plan.of(configs)
    assert found.settings == [
        {"gamma": gamma, "obs_clip": clip}
        for gamma, clip in ((0.5, None), (0.9, 5.0), (0.5, 5.0))
    ]
    assert plan.runs(found) == [[0, 3], [1, 0], [0, 1], [2, 3]]
    assert [member.alone for member in found.members] == configs
    assert [len(group) for group in found.groups] == [2, 2]
    assert plan.of(configs[:1]).settings == [{}]


def market(fee):
    """A class of the same name as the others, each with its own reward."""

    @component
    class Market(IdenticalRewards):
        def transition(self, key, state, action):
            timestep, state = super().transition(key, state, action)
            return timestep._replace(reward=timestep.reward - fee), state

    return experiment(Market())


def by(make):
    return experiment(IdenticalRewards(), optimizer=optimizers.Optax(make=make))


@pytest.mark.parametrize(
    "pair",
    [
        (market(1.0), market(2.0)),
        (by(lambda rate: optax.adam(rate)), by(lambda rate: optax.sgd(rate))),
    ],
)
def test_experiments_that_differ_in_what_no_field_says_are_called_alike(pair):
    """So a directory cannot tell them apart; those that share it can be kept."""
    configs = [*pair, dataclasses.replace(pair[0], seed=1)]
    found = plan.of(configs)
    assert found.settings == [{}] and len({*found.members}) == 3
    assert [member.alone for member in found.members] == configs
    with pytest.raises(UserError, match=r"configs\[0\] and configs\[1\] differ in wha"):
        plan.require_told_apart(found)
    plan.require_told_apart(plan.of(configs[::2]))
