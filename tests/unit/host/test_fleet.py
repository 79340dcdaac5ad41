"""Simulators that draw show the episodes that evaluations play."""

import itertools

import gymnasium
import gyms
import jax
import numpy as np
import pytest

from ppo_jax import Config, envs
from ppo_jax.errors import UserError
from ppo_jax.host import fleet, streams
from ppo_jax.host.simulation import Simulation
from ppo_jax.ppo import population as populations
from ppo_jax.ppo.episodes import Game


class Shown(gyms.Walk):
    """A walk whose pictures say where it is, and when."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode

    def reset(self, seed=None, options=None):
        _, info = super().reset(seed=seed)
        self.at = np.float32(self.np_random.uniform(-1, 1))
        return self.seen(), info

    def render(self):
        return np.full((1, 1, 3), 8 * self.time, np.uint8)


gymnasium.register("Shown-v0", entry_point=Shown, max_episode_steps=gyms.LIMIT)


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
