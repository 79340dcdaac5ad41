"""Fields of components by path, numbers and structure alike."""

import collections
import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from ppo_jax.component import is_component

T = TypeVar("T")


def paths(tree: Any, prefix: str = "") -> list[str]:
    """The paths of all fields of a component, outer ones first.

    >>> from ppo_jax.schedules import Linear, Warmup
    >>> paths(Warmup(then=Linear()))
    ['fraction', 'then', 'then.final']
    """
    found = []
    for name, value in _parts(tree).items():
        found += [prefix + name, *paths(value, f"{prefix}{name}.")]
    return found


def replace(tree: T, values: Mapping[str, Any], prefix: str = "") -> T:
    """The same component with other values of some fields, checked as a whole.

    Args:
        tree: A component, or a tuple of components.
        values: New values by path. A component is replaced before its fields are.
        prefix: What paths begin with in messages.

    Raises:
        KeyError: If there is no such field; the message names the closest one.
        ValueError: For an impossible number or combination.
        TypeError: For a value of another type.

    >>> from ppo_jax.schedules import Linear, Warmup
    >>> replace(Warmup(), {"fraction": 0.5, "then": Linear(), "then.final": 0.25})
    Warmup(fraction=0.5, then=Linear(final=0.25))
    """
    known, inner = _parts(tree), collections.defaultdict(dict)
    for path, value in values.items():
        head, _, rest = path.partition(".")
        if head not in known:
            _unknown(tree, prefix, path)
        inner[head][rest] = value
    changed = {}
    for head, below in inner.items():
        value = below.pop("", known[head])
        changed[head] = replace(value, below, f"{prefix}{head}.") if below else value
    if isinstance(tree, tuple):
        return tuple((known | changed).values())  # pyright: ignore
    return dataclasses.replace(tree, **changed)  # pyright: ignore


def _parts(node: Any) -> dict[str, Any]:
    """The fields of a component, or the items of a tuple that has any, by name."""
    if is_component(node):
        fields = dataclasses.fields(node)
        return {field.name: getattr(node, field.name) for field in fields}
    if isinstance(node, tuple) and any(map(is_component, node)):
        return {str(i): item for i, item in enumerate(node)}
    return {}


def _unknown(tree: Any, prefix: str, path: str) -> None:
    close = difflib.get_close_matches(path, paths(tree), n=1, cutoff=0.0)
    hint = f"; the closest is {prefix + close[0]!r}" if close else ""
    raise KeyError(f"no field is called {prefix + path!r}{hint}")
