"""Fields of components by path, numbers and structure alike."""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from ppo_jax.component import children, descendants, numbers, require
from ppo_jax.component.former import resolved
from ppo_jax.component.suggestion import of_absent, unknown

T = TypeVar("T")


def paths(tree: Any) -> list[str]:
    """Returns the paths of all fields of a component, outer ones first.

    >>> from ppo_jax.schedules import Linear, Warmup
    >>> paths(Warmup(then=Linear()))
    ['fraction', 'then', 'then.final']
    """
    return [*descendants(children(tree))]


def replace(tree: T, values: Mapping[str, Any], prefix: str = "") -> T:
    """Returns the component with other values of some fields, checked as a whole.

    Args:
        tree: A component, or a tuple of components.
        values: New values by path. A component is replaced before its fields are.
        prefix: The beginning of paths in messages.

    Raises:
        KeyError: If a field does not exist; the message names the closest one, or the
            absent part that it is of.
        ValueError: For an impossible number or combination.
        TypeError: For a value of another type.

    >>> from ppo_jax.schedules import Linear, Warmup
    >>> replace(Warmup(), {"fraction": 0.5, "then": Linear(), "then.final": 0.25})
    Warmup(fraction=0.5, then=Linear(final=0.25))
    """
    known, inner = children(tree), collections.defaultdict(dict)
    for path, value in values.items():
        head, _, rest = resolved(tree, path).partition(".")
        if tree is None:
            raise KeyError(of_absent(prefix + path, prefix[:-1]))
        if head not in known:
            there = [prefix + known for known in paths(tree)]
            raise KeyError(unknown("field", prefix + path, there))
        inner[head][rest] = value
    changed = {}
    for head, below in inner.items():
        value = below.pop("", known[head])
        changed[head] = replace(value, below, f"{prefix}{head}.") if below else value
    if isinstance(tree, tuple):
        return tuple((known | changed).values())  # pyright: ignore
    return dataclasses.replace(tree, **changed)  # pyright: ignore


def require_single(tree: Any, expected: str, prefix: str = "") -> None:
    """Checks that each number of a component is one, and not an array of several.

    Args:
        tree: A component.
        expected: What is expected in the place of several, in words.
        prefix: The beginning of paths in messages.

    Raises:
        Misfit: If a number is an array of several.
    """
    for path, number in numbers(tree).items():
        require(np.ndim(number) == 0, f"{prefix}{path}", number, expected)
