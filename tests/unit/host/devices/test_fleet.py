"""Simulators that draw show the episodes that evaluations play."""

import itertools

import gyms
import jax
import numpy as np
import pytest

from ppo_jax import Config, envs
from ppo_jax.errors import UserError
from ppo_jax.host.devices import fleet, streams
from ppo_jax.host.devices.simulation import Simulation
from ppo_jax.ppo import population as populations
from ppo_jax.ppo.episodes import Game


def agents(name):
    """A single one, as members have it: leaves `[1, ...]`."""
    config = Config(envs.Gymnasium(name), num_envs=2, num_steps=4)
    return populations.init(config, streams.members(0, 1)).runs.learner


def alone(learners):
    return jax.tree.map(lambda x: x[0], learners)


def test_the_episodes_are_those_of_an_evaluation():
    """Step by step: what it began with, and what is counted after it."""
    key, who = jax.random.key(3), agents("Shown-v0")
    layout = Simulation()
    returns, ended = layout.run_episodes(who, key, 3, True)
    layout.close()
    found = itertools.islice(fleet.scenes(Game(alone(who), 3), key), gyms.LIMIT)
    over = np.zeros(3, bool)
    for time, (pictures, score) in enumerate(found):
        shades = np.array([picture[0, 0, 0] for picture in pictures])
        assert (shades[~over] == 8 * time).all()
        over = score.ended
        if over.all():
            break
    np.testing.assert_array_equal(score.total, returns[0])
    np.testing.assert_array_equal(score.ended, ended[0])


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(UserError, match="argument 'render_mode'"):
        next(fleet.scenes(Game(alone(agents("Walk-v0")), 1), jax.random.key(0)))
