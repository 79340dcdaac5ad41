"""Predictions of critics for all steps of a rollout at once."""

from typing import Any

import jax

from ppo_jax.arrays import counting, tree
from ppo_jax.arrays.devices import FEWEST_STEPS
from ppo_jax.arrays.platforms import by_platform
from ppo_jax.critics import ValueDist
from ppo_jax.state import Learner
from ppo_jax.types import Array, Carry, PyTree


def independent(config: Any) -> bool:
    """Returns whether critics need an observation and nothing else.

    If so, they take no part in the steps of a rollout, which wait for each other.
    """
    return config.network.memory is None and not config.network.shared


def predict(learner: Learner, carry: Carry, obs: PyTree, reset: Array) -> ValueDist:
    """Returns the critics' predictions for steps `[T, B, ...]`.

    Args:
        learner: The learner whose critics predict.
        carry: Carry before the first step, `[B, ...]`.
        obs: Observations as the network sees them.
        reset: Whether the carry is cleared before a step.
    """
    config = learner.config
    network = config.build()

    def together(obs, reset):
        return network.apply(learner.params, carry, obs, reset).value.outputs

    def in_parts(*rows):
        cut = jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), rows)
        return tree.merge_leading(jax.lax.map(lambda rows: together(*rows), cut))

    parts = _num_parts(*reset.shape) if independent(config) else 1
    outputs = (
        together(obs, reset)
        if parts == 1
        else by_platform(obs, reset, cpu=in_parts, default=together)
    )
    return ValueDist(outputs, config.critic)


def _num_parts(length: int, num_envs: int) -> int:
    """Returns the largest number of equal parts with `FEWEST_STEPS` or more each."""
    most = length * num_envs // FEWEST_STEPS
    return max([n for n in counting.divisors(length) if n <= most], default=1)
