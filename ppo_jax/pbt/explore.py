"""Rules by which the numbers of members move within their ranges."""

import functools

import jax
import jax.numpy as jnp

from ppo_jax.component import component, concrete
from ppo_jax.errors import missing, require_shape
from ppo_jax.pbt.ranges import Range
from ppo_jax.pbt.space import Space
from ppo_jax.types import Array, Key


@component
class Explorer:
    """A rule by which one number of one member moves."""

    def __call__(self, range_: Range, value: Array, key: Key) -> Array:
        """Returns the next number, in the range, float32 `[]`."""
        raise missing(self, "__call__")


@component
class Perturb(Explorer):
    """Moves a number to one of its two neighbours, both equally likely."""

    def __call__(self, range_: Range, value: Array, key: Key) -> Array:
        return range_.perturb(value, jax.random.bernoulli(key))


@component
class Resample(Explorer):
    """Draws a number again from its range."""

    def __call__(self, range_: Range, value: Array, key: Key) -> Array:
        return range_.sample(key)


@component
class PerturbOrResample(Explorer):
    """Draws a number again with the probability `resample`, otherwise perturbs it."""

    def __call__(self, range_: Range, value: Array, key: Key) -> Array:
        key_rule, key_number = jax.random.split(key)
        anew = jax.random.bernoulli(key_rule, range_.resample)
        drawn = Resample()(range_, value, key_number)
        return jnp.where(anew, drawn, Perturb()(range_, value, key_number))


@component
class Movers:
    """A rule for the members whose numbers move."""

    def __call__(self, copied: Array, proceed: Array) -> Array:
        """Returns whether each member's numbers move, bool `[P]`.

        Args:
            copied: Whether each member copied another one, bool `[P]`.
            proceed: Whether there was a selection of all members, bool `[]`; otherwise
                only broken members may have copied.
        """
        raise missing(self, "__call__")


@component
class Copiers(Movers):
    """Members that copied, as in the paper: the best members stay as they are."""

    def __call__(self, copied: Array, proceed: Array) -> Array:
        return copied


@component
class Everyone(Movers):
    """Every member of a generation, the best ones included."""

    def __call__(self, copied: Array, proceed: Array) -> Array:
        return copied | proceed


def moving(movers: Movers, copied: Array, proceed: Array) -> Array:
    """Returns whether each member's numbers move; arguments as of the rule's call.

    Raises:
        Misfit: If the rule returns anything but a flag per member.
    """
    moves, name = movers(copied, proceed), type(movers).__name__
    require_shape(name, moves, copied.shape, "bool per member", "b")
    return moves


def explore(
    explorer: Explorer, space: Space, values: dict[str, Array], moves: Array, keys: Key
) -> dict[str, Array]:
    """Moves numbers of a population, each with a key of its own.

    Args:
        explorer: The rule.
        space: The numbers that move.
        values: Numbers of every member after it copied, `[P]` each.
        moves: Whether each member's numbers move, bool `[P]`.
        keys: One key per member, `[P]`.

    Returns:
        Numbers in their ranges, float32 `[P]` each; unchanged for the other members.

    Raises:
        Misfit: If the rule returns anything but a number.

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
        rule = jax.vmap(functools.partial(_moved, explorer, range_))
        moved[path] = jnp.where(moves, rule(values[path], each[:, i]), values[path])
    return moved


def _moved(explorer: Explorer, range_: Range, value: Array, key: Key) -> Array:
    found = explorer(range_, value, key)
    if not concrete(found):
        require_shape(type(explorer).__name__, found, (), "the next number")
    return found
