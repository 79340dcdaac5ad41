"""What stands for an environment on the host where a program is traced."""

import gyms
import jax

from ppo_jax import envs
from ppo_jax.envs.outline import Outline


def test_it_is_an_environment_like_any_other():
    """Types, limits and resets hold, where no limit is known too."""
    of = envs.make("gymnasium/CliffWalking-v1")
    outline = Outline(of)
    assert outline.action_space == of.action_space
    assert outline.max_episode_steps is None
    envs.check(outline, steps=256)


def test_it_forbids_nothing_where_others_do():
    """Of the same shape, as programs are traced with it."""
    outline = Outline(envs.make(gyms.TAXI))
    _, state = outline.reset(jax.random.key(0))
    assert outline.action_mask(state).tolist() == [True] * 6
    envs.check(outline, steps=256)
