"""What stands for an environment on the host where a program is traced."""

from ppo_jax import envs
from ppo_jax.envs.outline import Outline


def test_it_is_an_environment_like_any_other():
    """Types, limits and resets hold, where no limit is known too."""
    of = envs.make("gymnasium/CliffWalking-v1")
    outline = Outline(of)
    assert outline.action_space == of.action_space
    assert outline.max_episode_steps is None
    envs.check(outline, steps=256)
