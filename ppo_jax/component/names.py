"""Names of the parts of a component: fields by name, items of tuples by kind."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

import jax

WORD = re.compile(r"([A-Z][a-z0-9]{2,})|_")


def is_component(value: Any) -> bool:
    """Returns whether a value or a class is a component."""
    cls = value if isinstance(value, type) else type(value)
    return "__component_hints__" in cls.__dict__


def snake_case(name: str) -> str:
    """Returns the name of a class as a part of a path.

    A word is a capital letter with at least two small ones or digits after it; all that
    is between words is one abbreviation.

    >>> [snake_case(name) for name in ("Entropy", "AdaptiveEntropy", "KlPenalty")]
    ['entropy', 'adaptive_entropy', 'kl_penalty']
    >>> [snake_case(name) for name in ("CVaR", "CVaRConstraint", "PredictedCVaR")]
    ['cvar', 'cvar_constraint', 'predicted_cvar']
    >>> [snake_case(name) for name in ("RobustKL", "VGS", "K3", "Conv2d")]
    ['robust_kl', 'vgs', 'k3', 'conv2d']
    """
    return "_".join(filter(None, WORD.split(name))).lower()


def kinds(classes: Iterable[str]) -> list[str]:
    """Returns the names of the items of a tuple, from those of their classes.

    >>> kinds(["Surrogate", "Entropy", "Entropy", "Entropy"])
    ['surrogate', 'entropy', 'entropy_2', 'entropy_3']
    """
    names = []
    for kind in map(snake_case, classes):
        name, count = kind, 1
        while name in names:
            count += 1
            name = f"{kind}_{count}"
        names.append(name)
    return names


def children(node: Any) -> dict[str, Any]:
    """Returns fields of a component, or items of a tuple with components, by name."""
    if is_component(node):
        fields = dataclasses.fields(node)
        return {field.name: getattr(node, field.name) for field in fields}
    if isinstance(node, tuple) and any(map(is_component, node)):
        return dict(zip(kinds(type(item).__name__ for item in node), node, strict=True))
    return {}


def descendants(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns values, and all fields of components among them, by path, outer first."""
    found = {}
    for name, value in values.items():
        found[prefix + name] = value
        found |= descendants(children(value), f"{prefix}{name}.")
    return found


def nested(values: Mapping[str, Any], path: str) -> str:
    """Returns how Python gives a value of a path among the fields of a component.

    >>> from ppo_jax.schedules import Linear, Warmup
    >>> nested({"schedule": Warmup(then=Linear())}, "schedule.then.final")
    'schedule=Warmup(then=Linear(final=…))'
    """
    name, _, rest = path.partition(".")
    return f"{name}={_holding(values[name], rest)}"


def _holding(node: Any, path: str) -> str:
    if not path:
        return "…"
    if isinstance(node, tuple):
        item, _, rest = path.partition(".")
        return f"(…, {_holding(children(node)[item], rest)})"
    return f"{type(node).__name__}({nested(children(node), path)})"


def joined(tree: Any, keys: Iterable[Any]) -> str:
    """Returns the path of a leaf, from the keys by which JAX finds it."""
    names = []
    for key in keys:
        below = children(tree)
        name = jax.tree_util.keystr((key,), simple=True)
        if below and isinstance(key, jax.tree_util.SequenceKey):
            name = [*below][key.idx]
        names.append(name)
        tree = below.get(name)
    return ".".join(names)
