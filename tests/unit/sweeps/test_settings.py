"""Settings from texts: grids, draws, and what is said of wrong ones."""

import dataclasses
import json

import jax
import numpy as np
import optax
import pytest
from scipy import stats

from ppo_jax import Config, LogUniform, networks, optimizers
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.pbt.ranges import Uniform
from ppo_jax.sweeps import settings

CARTPOLE = Config("CartPole-v1")
NAMES = {
    "networks": networks,
    "optimizers": optimizers,
    "LogUniform": LogUniform,
    "np": np,
}


def test_a_grid_has_all_combinations_in_order():
    texts = ["optimizer.learning_rate=1e-4,3e-4", "num_epochs=2,4,8"]
    found = settings.grid(texts, {})
    assert [tuple(setting.values()) for setting in found] == [
        *((1e-4, 2), (1e-4, 4), (1e-4, 8)),
        *((3e-4, 2), (3e-4, 4), (3e-4, 8)),
    ]
    assert settings.grid([], {}) == [{}]


def test_values_are_python():
    """Numbers, texts, tuples and components."""
    texts = [
        "network.torso.hidden=(8,),(8, 8)",
        "network.torso.activation='relu'",
        "network.memory=None,networks.Lstm(size=4)",
        "optimizer=optimizers.UPGD(sigma=0.5)",
    ]
    found = [settings.apply(CARTPOLE, each) for each in settings.grid(texts, NAMES)]
    assert [config.network.torso.hidden for config in found] == [(8,)] * 2 + [
        (8, 8)
    ] * 2
    assert found[1].network.memory == networks.Lstm(size=4)
    assert all(config.optimizer == optimizers.UPGD(sigma=0.5) for config in found)


def test_numbers_of_numpy_are_told_as_those_of_python():
    found = settings.grid(["num_epochs=*np.arange(2, 4)"], NAMES)
    assert [*map(settings.label, found)] == ["num_epochs=2", "num_epochs=3"]
    assert json.dumps([*map(settings.plain, found)]) == json.dumps(found)


def test_draws_follow_their_ranges():
    texts = ["optimizer.learning_rate=LogUniform(1e-5, 1e-2)", "num_epochs=2,4"]
    found = settings.ranges(texts, NAMES)
    drawn = settings.draw(found, 400, jax.random.key(0))
    rates = np.log10([setting["optimizer.learning_rate"] for setting in drawn])
    assert stats.kstest(rates, stats.uniform(-5, 3).cdf).pvalue > 0.01
    epochs = [setting["num_epochs"] for setting in drawn]
    assert 150 < epochs.count(2) < 250 and set(epochs) == {2, 4}
    assert drawn == settings.draw(found, 400, jax.random.key(0))
    assert len({*rates}) == 400


def test_settings_are_told_as_json():
    setting = {"gamma": 0.5, "obs_clip": None, "optimizer": optimizers.Adam()}
    told = settings.plain(setting)
    assert told["gamma"] == 0.5 and told["obs_clip"] is None
    assert told["optimizer"] == repr(optimizers.Adam())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gamma", "'gamma': expected PATH=VALUE"),
        ("gamma=", "expected PATH=VALUE"),
        ("gamma=high", "name 'high' is not defined"),
        ("gamma=1,,2", "no list of Python values"),
        ("gamma=LogUniform(0.1, 1.0)", "give it to --space"),
        ("gamma=LogUniform(1.0, 0.1)", "low < high"),
        ("gama=0.5", "closest is 'gamma'"),
        ("seed=1,2", "give --seeds"),
        ("gamma=0.5,2.0", r"gamma=2: .*\(0, 1\], got 2.0"),
        ("gamma='high'", "expected float"),
        ("gamma=0.5,0.9,0.50", "gamma: 0.5 is given twice"),
        ("gamma=np.array([0.5, 0.9])", "gamma: expected one number; .* got array"),
    ],
)
def test_a_wrong_grid_is_said(text, said):
    with pytest.raises(ExperimentError, match=said):
        for setting in settings.grid([text], NAMES):
            settings.apply(CARTPOLE, setting)


def test_a_wrong_space_is_said():
    with pytest.raises(ExperimentError, match="one range, or a list"):
        settings.ranges(["gamma=0.5,LogUniform(0.1, 1.0)"], NAMES)
    with pytest.raises(ExperimentError, match="given twice"):
        settings.ranges(["gamma=0.5", "gamma=0.6"], NAMES)
    with pytest.raises(ExperimentError, match=r"\(0, 1\], got 1.1"):
        settings.require_in(CARTPOLE, {"gamma": (Uniform(0.9, 1.1),)})
    with pytest.raises(ExperimentError, match="'gamma'"):
        settings.require_in(CARTPOLE, {"gama": (0.5,)})
    single = dataclasses.replace(CARTPOLE, gamma=0.5)
    settings.require_in(single, {"gamma": (Uniform(0.9, 1.0),)})


def described(texts, names=NAMES):
    """The values of a grid, as they come back from a file."""
    found = settings.grid(texts, names)
    configs = {i: settings.apply(CARTPOLE, each) for i, each in enumerate(found)}
    return json.loads(json.dumps(settings.described(found, configs)))


GRID = ["gamma=slow,0.5", "network.memory=None,networks.Lstm(size=size)"]


def test_settings_whose_names_have_other_values_are_refused(tmp_path):
    """Each is named, with what it was and what it is; also inside of a component."""
    names = NAMES | {"slow": 0.25, "size": 4}
    kept = described(GRID, names)
    settings.require_same(tmp_path, kept, described(GRID, names))
    settings.require_same(tmp_path, None, described(GRID, names))
    with pytest.raises(ExperimentError) as caught:
        other = described(GRID, names | {"slow": 0.75, "size": 8})
        settings.require_same(tmp_path, kept, other)
    assert str(caught.value).splitlines() == [
        f"{tmp_path}: names in --grid or --space have got other values:",
        "  setting 0: gamma: 0.25 -> 0.75",
        "  setting 1: gamma: 0.25 -> 0.75",
        "  setting 1: network.memory.size: 4 -> 8",
        "  setting 3: network.memory.size: 4 -> 8",
    ]


def test_more_settings_than_there_were_are_refused(tmp_path):
    kept = described(["gamma=0.5,0.25"])
    with pytest.raises(ExperimentError, match=r"expected 2 settings, got 1$"):
        settings.require_same(tmp_path, kept, described(["gamma=0.5"]))


def test_numbers_may_be_rounded_otherwise(tmp_path):
    """As on another device; functions are the same in every process."""
    texts = ["gamma=rate", "optimizer=optimizers.Optax(make=make)"]
    kept = described(texts, NAMES | {"rate": 0.5, "make": lambda rate: optax.sgd(rate)})
    now = NAMES | {"rate": 0.500001, "make": lambda rate: optax.sgd(rate)}
    settings.require_same(tmp_path, kept, described(texts, now))
    with pytest.raises(ExperimentError, match=r"gamma: 0\.5 -> 0\.5001"):
        settings.require_same(tmp_path, kept, described(texts, now | {"rate": 0.5001}))
