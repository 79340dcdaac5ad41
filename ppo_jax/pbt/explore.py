"""How the numbers of members move within their ranges."""

import jax
import jax.numpy as jnp

from ppo_jax.component import component
from ppo_jax.errors import missing
from ppo_jax.pbt.ranges import Range
from ppo_jax.pbt.space import Space
from ppo_jax.types import Array, Key


@component
class Explorer:
    """A rule by which one number of one member moves."""

    def __call__(self, range_: Range, value: Array, key: Key) -> Array:
        """The next number, in the range, float32 `[]`."""
        raise missing(self, "__call__")


@component
class Perturb(Explorer):
    """To one of the two neighbours, both as likely."""

    def __call__(self, range_: Range, value: Array, key: Key) -> Array:
        return range_.perturb(value, jax.random.bernoulli(key))


@component
class Resample(Explorer):
    """Drawn anew."""

    def __call__(self, range_: Range, value: Array, key: Key) -> Array:
        return range_.sample(key)


@component
class PerturbOrResample(Explorer):
    """Drawn anew with the probability that the range names, otherwise perturbed."""

    def __call__(self, range_: Range, value: Array, key: Key) -> Array:
        key_rule, key_number = jax.random.split(key)
        anew = jax.random.bernoulli(key_rule, range_.resample)
        drawn = Resample()(range_, value, key_number)
        return jnp.where(anew, drawn, Perturb()(range_, value, key_number))


@component
class Movers:
    """A rule about whose numbers move."""

    def __call__(self, copied: Array, proceed: Array) -> Array:
        """Who explores, bool `[P]`.

        Args:
            copied: Who copied another member, bool `[P]`.
            proceed: Whether there was a selection of all, bool `[]`; else the broken
                ones alone may have copied.
        """
        raise missing(self, "__call__")


@component
class Copiers(Movers):
    """Those who copied, as in the paper: the best members stay as they are."""

    def __call__(self, copied: Array, proceed: Array) -> Array:
        return copied


@component
class Everyone(Movers):
    """All members of a generation, the best ones included."""

    def __call__(self, copied: Array, proceed: Array) -> Array:
        return copied | proceed


def explore(
    explorer: Explorer, space: Space, values: dict[str, Array], moves: Array, keys: Key
) -> dict[str, Array]:
    """Moves numbers of a population, every one with a key of its own.

    Args:
        explorer: The rule.
        space: The numbers that move.
        values: Those of every member, after it copied; `[P]` each.
        moves: Whose numbers move, bool `[P]`.
        keys: One per member `[P]`.

    Returns:
        Numbers in their ranges, float32 `[P]` each; those of other members unchanged.

    References:
        Jaderberg et al., `Population Based Training of Neural Networks
        <https://arxiv.org/abs/1711.09846>`_, 2017.

    >>> from ppo_jax.pbt.ranges import Choice
    >>> space = Space.of({"surrogate.clip_eps": Choice((0.125, 0.25))})
    >>> values = {"surrogate.clip_eps": jnp.array([0.25, 0.25])}
    >>> keys = jax.random.split(jax.random.key(0))
    >>> moved = explore(Resample(), space, values, jnp.array([True, False]), keys)
    >>> float(moved["surrogate.clip_eps"][1])
    0.25
    """
    each = jax.vmap(lambda key: jax.random.split(key, len(space.ranges)))(keys)
    moved = {}
    for i, (path, range_) in enumerate(space.ranges):
        rule = jax.vmap(lambda value, key, r=range_: explorer(r, value, key))
        moved[path] = jnp.where(moves, rule(values[path], each[:, i]), values[path])
    return moved
