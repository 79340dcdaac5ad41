"""Search spaces: ranges of numbers, named by their paths in a component.

A space is what only the host reads: plain, hashable descriptions. What they do to
numbers are functions of arrays.
"""

import dataclasses
from collections.abc import Mapping
from typing import TypeVar

import jax

from ppo_jax.component import children, descendants, numbers, replace_at, require
from ppo_jax.component.former import resolved
from ppo_jax.component.suggestion import unknown
from ppo_jax.pbt.ranges import Range
from ppo_jax.types import Array, Key

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Space:
    """Ranges by path.

    >>> from ppo_jax.pbt.ranges import LogUniform
    >>> space = Space.of({"optimizer.learning_rate": LogUniform(1e-5, 5e-4)})
    >>> space.paths
    ('optimizer.learning_rate',)
    """

    ranges: tuple[tuple[str, Range], ...] = ()

    @classmethod
    def of(cls, ranges: "Mapping[str, Range] | Space") -> "Space":
        """A space from a dictionary; a space is one already."""
        if isinstance(ranges, Space):
            return ranges
        require(isinstance(ranges, Mapping), "PBT.space", ranges, "ranges by path")
        for path, given in ranges.items():
            name, example = f"PBT.space: {path}", "a range such as Uniform(0.1, 0.9)"
            require(isinstance(given, Range), name, given, example)
        return cls(tuple(ranges.items()))

    @property
    def paths(self) -> tuple[str, ...]:
        """The numbers that are searched."""
        return tuple(path for path, _ in self.ranges)

    def named_in(self, tree: object) -> "Space":
        """The same space; former paths in it are those of now, if they are understood.

        Raises:
            KeyError: If they are not; the message says what they are now.
        """
        ranges = ((resolved(tree, path), range_) for path, range_ in self.ranges)
        return Space(tuple(ranges))

    def require_in(self, tree: object) -> None:
        """Checks the paths.

        Raises:
            KeyError: If a component has no number at one of them; the message names
                the closest, or says why there is none.
        """
        known, fields = numbers(tree), descendants(children(tree))
        for path in self.named_in(tree).paths:
            if path in known:
                continue
            if path not in fields:
                raise KeyError(unknown("number", path, known))
            absent = "absent: give it a number from which a search can begin"
            structure = "structure, which cannot be searched; use `ppo_jax.sweep`"
            raise KeyError(f"{path} is {absent if fields[path] is None else structure}")

    def sample(self, key: Key) -> dict[str, Array]:
        """A number for every path, each from a key of its own, float32 `[]`."""
        keys = jax.random.split(key, len(self.ranges))
        drawn = zip(self.ranges, keys, strict=True)
        return {path: range_.sample(key) for (path, range_), key in drawn}

    def read(self, tree: object) -> dict[str, Array]:
        """The searched numbers of a component."""
        known = numbers(tree)
        return {path: known[path] for path in self.paths}

    def write(self, tree: T, values: Mapping[str, Array]) -> T:
        """The same component with other numbers."""
        for path in self.paths:
            tree = replace_at(tree, path, values[path])
        return tree
