"""What every action distribution offers."""

from collections.abc import Sequence
from typing import Protocol, Self

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.types import Array, Key

Bounds = ArrayLike | Sequence[float]


class Distribution(Protocol):
    """What every action distribution offers; a policy network returns one."""

    def sample(self, key: Key) -> Array:
        """A raw action."""
        ...

    def mode(self) -> Array:
        """The raw action to take without exploration."""
        ...

    def log_prob(self, raw: Array) -> Array:
        """Log-probability (density) of the action that `raw` stands for, `[...]`."""
        ...

    def entropy(self) -> Array:
        """Entropy of the action, summed over its components, `[...]`."""
        ...

    def kl(self, other: Self) -> Array:
        """KL(self ‖ other), exact, summed over components, `[...]`."""
        ...

    def margin(self, raw: Array) -> Array:
        """How far the action is ahead of any other, in nats, `[...]`.

        The log-density where no other is next to it. Unlike a probability near 1, it
        has a gradient however sure the policy is (Carlini & Wagner, 2017).
        """
        ...

    def to_action(self, raw: Array) -> Array:
        """What the environment gets."""
        ...

    def to_raw(self, action: Array) -> Array:
        """A raw action that leads to what the environment got."""
        ...


def float32(x: ArrayLike) -> Array:
    """In the precision of all maths here."""
    return jnp.asarray(x, jnp.float32)
