"""Selection over a population `[P]`: rules for copies, and for the time to select.

A greater fitness is better. A member whose fitness is not finite is broken: it is never
a parent, and is healed by a copy whenever there is a parent. A member that is not ready
is left alone. A member whose fitness is not known yet is not ready, whatever finite
number stands for its fitness.
"""

import math
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays import counting
from ppo_jax.component import component
from ppo_jax.component.bounds import (
    Bound,
    FiniteAtLeastOne,
    FiniteNonNegative,
    PositiveShare,
)
from ppo_jax.errors import Misfit, kind, missing, require_shape
from ppo_jax.types import Array, Key

AtMostHalf = Annotated[float, Bound("a number in (0, 0.5]", lambda x: 0 < x <= 0.5)]
Members = Annotated[float, Bound("a number ≥ 2", lambda x: 2 <= x < math.inf)]


class Selection(NamedTuple):
    """The parent of every member."""

    parent: Array
    """Index of the member that each one continues, int32 `[P]`; its own, unless it
    copies."""
    copied: Array
    """Whether the member copies its parent, bool `[P]`."""


class Ranking(NamedTuple):
    """Ready members from best to worst; lots decide between equals."""

    order: Array
    """Members by rank, `[P]`; the first `ready` of them are the ready ones."""
    rank: Array
    """Rank of every member, 0 the best, `[P]`."""
    ready: Array
    """Whether each member is ranked, bool `[P]`."""
    broken: Array
    """Whether each member lacks a finite fitness, bool `[P]`."""


def ranking(fitness: Array, ready: Array, keys: Key) -> Ranking:
    """Ranks the members that are ready and whose fitness is finite.

    Args:
        fitness: Fitness of the members, `[P]`.
        ready: Whether each member may be ranked, bool `[P]`.
        keys: One key per member `[P]`, from which its lot is drawn.

    >>> keys = jax.random.split(jax.random.key(0), 4)
    >>> fitness = jnp.array([1.0, jnp.nan, 3.0, 2.0])
    >>> ranking(fitness, jnp.ones(4, bool), keys).order.tolist()
    [2, 3, 0, 1]
    """
    finite = jnp.isfinite(fitness)
    ready = ready & finite
    lots = jax.vmap(lambda key: jax.random.bits(jax.random.fold_in(key, 1)))(keys)
    order = jnp.lexsort((lots, jnp.where(ready, -fitness, jnp.inf)))
    return Ranking(order, jnp.argsort(order), ready, ~finite)


@component
class Selector:
    """A rule of selection."""

    def __call__(self, fitness: Array, ready: Array, keys: Key) -> Selection:
        """Returns the parent of every member, and whether it is copied.

        A run ends with an error once somebody copies a parent that is no member.

        Args:
            fitness: Fitness of the members, `[P]`; greater is better. It is 0 where it
                is not known yet, and NaN for broken members.
            ready: Whether each member may be a parent, bool `[P]`.
            keys: One key per member `[P]`, so that the order of members means nothing.
        """
        raise missing(self, "__call__")


def selected(selector: Selector, fitness: Array, ready: Array, keys: Key) -> Selection:
    """Returns the selection of a rule; arguments as of its call.

    Raises:
        Misfit: If it is anything but a `Selection`, with a parent and a flag for each.
    """
    name, shape = type(selector).__name__, ready.shape
    found = selector(fitness, ready, keys)
    if not isinstance(found, Selection):
        expected = "pbt.Selection(parent, copied)"
        raise Misfit(f"{name}: expected {expected}, got {kind(found)}")
    require_shape(f"{name}: parent", found.parent, shape, "int32 per member", "iu")
    require_shape(f"{name}: copied", found.copied, shape, "bool per member", "b")
    return found


def require_members(selector: Selector, parent: np.ndarray) -> None:
    """Checks parents `[..., P]` on the host: programs cannot raise errors.

    Raises:
        Misfit: If a parent is no member.

    >>> require_members(Truncation(), np.array([0, 2]))
    Traceback (most recent call last):
    ppo_jax.errors.Misfit: Truncation: expected parents from 0 to 1, got [0, 2]
    """
    last = parent.shape[-1] - 1
    if ((parent < 0) | (parent > last)).any():
        expected, name = f"parents from 0 to {last}", type(selector).__name__
        raise Misfit(f"{name}: expected {expected}, got {parent.tolist()}")


@component
class Truncation(Selector):
    """The worst members copy random ones of the best.

    Of n members that are ready or broken, the ⌊n · ratio⌋ worst copy, at least one of
    two, and as many of the best are parents. Broken members are the worst, and all of
    them copy. Of the others, one that is as good as the parent that it draws does not.

    Attributes:
        ratio: Share in (0, 0.5] of the population at either end. The paper has 0.2, of
            which four members would leave nobody.

    References:
        Jaderberg et al., `Population Based Training of Neural Networks
        <https://arxiv.org/abs/1711.09846>`_, 2017.

    >>> fitness = jnp.array([1.0, 4.0, 2.0, 3.0])
    >>> keys = jax.random.split(jax.random.key(0), 4)
    >>> selection = Truncation(ratio=0.25)(fitness, jnp.ones(4, bool), keys)
    >>> selection.parent.tolist(), selection.copied.tolist()
    ([1, 1, 2, 3], [True, False, False, False])
    """

    ratio: AtMostHalf = 0.25

    def __call__(self, fitness: Array, ready: Array, keys: Key) -> Selection:
        order, rank, ready, broken = ranking(fitness, ready, keys)
        ranked = ready.sum()
        taking_part = ranked + broken.sum()
        share = counting.share_of(taking_part, self.ratio).astype(jnp.int32)
        share = jnp.maximum(share, taking_part >= 2)
        worst = jnp.maximum(share - broken.sum(), 0)
        best = jnp.clip(share, 1, ranked)
        drawn = jax.vmap(lambda key: jax.random.randint(key, (), 0, best))(keys)
        parent = order[drawn]
        better = fitness[parent] > fitness
        copies = broken | (ready & (rank >= ranked - worst) & better)
        return _selection(copies & (ranked > 0), parent)


@component
class BinaryTournament(Selector):
    """Every member meets a random other member, and copies it if it is better.

    A broken member always copies the member that it meets.

    References:
        Jaderberg et al., `Population Based Training of Neural Networks
        <https://arxiv.org/abs/1711.09846>`_, 2017.

    >>> fitness, keys = jnp.array([1.0, 2.0]), jax.random.split(jax.random.key(0), 2)
    >>> selection = BinaryTournament()(fitness, jnp.ones(2, bool), keys)
    >>> selection.parent.tolist(), selection.copied.tolist()
    ([1, 1], [True, False])
    """

    def __call__(self, fitness: Array, ready: Array, keys: Key) -> Selection:
        order, _, ready, broken = ranking(fitness, ready, keys)
        others = ready.sum() - ready
        drawn = jax.vmap(lambda key, n: jax.random.randint(key, (), 0, n))(keys, others)
        # A drawn rank from a member's own on stands for a worse one: it copies nobody.
        opponent = order[drawn]
        better = ready & (fitness[opponent] > fitness)
        return _selection((broken | better) & (others > 0), opponent)


def _selection(copied: Array, parent: Array) -> Selection:
    own = jnp.arange(copied.shape[0])
    return Selection(jnp.where(copied, parent, own).astype(jnp.int32), copied)


def only_if(proceed: Array, selection: Selection) -> Selection:
    """Returns the selection, limited to members that `proceed`, bool `[]` or `[P]`."""
    return _selection(selection.copied & proceed, selection.parent)


class Round(NamedTuple):
    """The decision about a selection in this round."""

    proceed: Array
    """Whether there is a selection, bool `[]`."""
    fallback: Array
    """Whether there is one only because the population waited too long, bool `[]`."""
    waited: Array
    """Rounds in a row without a selection, int32 `[]`."""


@component
class Readiness:
    """Conditions for a member to be ready, and for the population to select.

    Attributes:
        min_episodes: Episodes that must end in a ready member since it last copied.
        share: Share in (0, 1] of the population that must be ready; one at the least.
        min_ready: Ready members that suffice after waiting.
        max_wait: Rounds in a row without a selection, after which `min_ready` suffice.

    >>> ready = jnp.array([True, True, False, False])
    >>> check = Readiness(share=0.75)(ready, waited=jnp.array(9))
    >>> bool(check.proceed), bool(check.fallback), int(check.waited)
    (True, True, 0)
    """

    min_episodes: FiniteNonNegative[float] = 1.0
    share: PositiveShare[float] = 0.8
    min_ready: Members = 2.0
    max_wait: FiniteAtLeastOne[float] = 10.0

    def members(self, episodes: Array, fitness: Array) -> Array:
        """Returns whether each member is ready, bool `[P]`.

        Args:
            episodes: Episodes that ended since the member last copied, int32 `[P]`.
            fitness: Fitness of the members, `[P]`; greater is better. A member whose
                fitness is not finite is never ready.
        """
        return (episodes >= self.min_episodes) & jnp.isfinite(fitness)

    def __call__(self, ready: Array, waited: Array) -> Round:
        """Decides whether there is a selection in this round.

        Args:
            ready: Whether each member may take part, bool `[P]`.
            waited: Rounds in a row without a selection before this one, int32 `[]`.
        """
        count = ready.sum()
        enough = count >= jnp.maximum(counting.share_of(ready.size, self.share), 1)
        waited = jnp.where(enough, 0, counting.add(waited))
        fallback = (waited >= self.max_wait) & (count >= self.min_ready)
        waited = jnp.where(fallback, 0, waited)
        return Round(enough | fallback, fallback, waited)
