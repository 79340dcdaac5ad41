"""Search spaces: ranges of numbers, named by their paths in a component.

A space consists of plain, hashable descriptions, which only the host reads. The
functions that apply them to numbers are functions of arrays.
"""

import dataclasses
from collections.abc import Mapping
from typing import TypeVar

import jax

from ppo_jax.component import children, descendants, numbers, replace_at, require
from ppo_jax.component.former import resolved
from ppo_jax.component.suggestion import of_absent, unknown
from ppo_jax.pbt.ranges import Range
from ppo_jax.types import Array, Key

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Space:
    """Ranges of numbers, by their paths in a component.

    >>> from ppo_jax.pbt.ranges import LogUniform
    >>> space = Space.of({"optimizer.learning_rate": LogUniform(1e-5, 5e-4)})
    >>> space.paths
    ('optimizer.learning_rate',)
    """

    ranges: tuple[tuple[str, Range], ...] = ()

    @classmethod
    def of(cls, ranges: "Mapping[str, Range] | Space") -> "Space":
        """Makes a space from ranges by path; a space is returned unchanged."""
        if isinstance(ranges, Space):
            return ranges
        require(isinstance(ranges, Mapping), "PBT.space", ranges, "ranges by path")
        for path, given in ranges.items():
            name, example = f"PBT.space: {path}", "a range such as Uniform(0.1, 0.9)"
            require(isinstance(given, Range), name, given, example)
        return cls(tuple(ranges.items()))

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the numbers that are searched."""
        return tuple(path for path, _ in self.ranges)

    def named_in(self, tree: object) -> "Space":
        """Returns the same space with former paths translated, where they are accepted.

        Raises:
            KeyError: If a path is a former one that is not accepted; the message has
                the present path.
        """
        ranges = ((resolved(tree, path), range_) for path, range_ in self.ranges)
        return Space(tuple(ranges))

    def require_in(self, tree: object) -> None:
        """Checks that a component has a number at every path.

        Raises:
            KeyError: If there is no number at one of the paths; the message names the
                closest path, or the reason why there is no number.
        """
        known, fields = numbers(tree), descendants(children(tree))
        for path in self.named_in(tree).paths:
            if path in known:
                continue
            part, _, _ = path.rpartition(".")
            if part in fields and fields[part] is None:
                raise KeyError(of_absent(path, part))
            if path not in fields:
                raise KeyError(unknown("number", path, known))
            raise KeyError(f"{path} is {_unsearchable(path, fields[path])}")

    def sample(self, key: Key) -> dict[str, Array]:
        """Draws a number for every path, each from a key of its own, float32 `[]`."""
        keys = jax.random.split(key, len(self.ranges))
        drawn = zip(self.ranges, keys, strict=True)
        return {path: range_.sample(key) for (path, range_), key in drawn}

    def read(self, tree: object) -> dict[str, Array]:
        """Returns the searched numbers of a component, by path."""
        known = numbers(tree)
        return {path: known[path] for path in self.paths}

    def write(self, tree: T, values: Mapping[str, Array]) -> T:
        """Returns the same component with other values of the searched numbers."""
        for path in self.paths:
            tree = replace_at(tree, path, values[path])
        return tree


def _unsearchable(path: str, value: object) -> str:
    """Returns why a field that is no number cannot be searched, and what helps."""
    if path.partition(".")[0] == "pbt":
        return "of the search itself: give it in `Config.pbt`"
    if value is None:
        return "absent: give it a number from which a search can begin"
    return "structure, which cannot be searched; use `ppo_jax.sweep`"
