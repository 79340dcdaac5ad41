"""The interface of action distributions."""

from collections.abc import Sequence
from typing import Protocol, Self

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.types import Array, Key

Bounds = ArrayLike | Sequence[float]


class Distribution(Protocol):
    """The interface of action distributions; a policy network returns one."""

    def sample(self, key: Key) -> Array:
        """Draws a raw action."""
        ...

    def mode(self) -> Array:
        """Returns the raw action to take without exploration."""
        ...

    def log_prob(self, raw: Array) -> Array:
        """Returns the log-probability or log-density of `raw`'s action, `[...]`."""
        ...

    def entropy(self) -> Array:
        """Returns the entropy of the action, summed over its components, `[...]`."""
        ...

    def kl(self, other: Self) -> Array:
        """Returns KL(self ‖ other), exact, summed over components, `[...]`."""
        ...

    def margin(self, raw: Array) -> Array:
        """Returns the action's lead over the next best action, in nats, `[...]`.

        For real actions, of which none is the next best, it is the log-density, and 0
        for an action that is the only one. Unlike a probability near 1, it has a
        gradient however sure the policy is (Carlini & Wagner, 2017).
        """
        ...

    def to_action(self, raw: Array) -> Array:
        """Returns the action that the environment gets for a raw one."""
        ...

    def to_raw(self, action: Array) -> Array:
        """Returns a raw action that leads to the action that the environment got."""
        ...


def float32(x: ArrayLike) -> Array:
    """Converts to float32, the precision of all maths here."""
    return jnp.asarray(x, jnp.float32)
