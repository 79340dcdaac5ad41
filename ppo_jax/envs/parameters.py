"""Parameters of environments that somebody else wrote.

Which ones there are is known when an environment is made, so each has a class of its
own. Floats are numbers: traced, and different from member to member.
"""

import functools
from collections.abc import Mapping
from typing import Any

from ppo_jax.component import children, component


@component
class Parameters:
    """Parameters of an environment that are set; None: as it has them.

    They are equal to those made of the same names, and can be pickled.
    """

    def __repr__(self) -> str:
        return repr(given(self))

    def __reduce__(self) -> tuple[Any, ...]:
        name, types = type(self).__name__, type(self).__annotations__
        types = {field: hint.__args__[0] for field, hint in types.items()}
        return _again, (name, types, given(self))


def given(params: Parameters | Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that are set, by name."""
    named = params if isinstance(params, Mapping) else children(params)
    return {name: value for name, value in named.items() if value is not None}


def kind(name: str, types: Mapping[str, type]) -> type[Parameters]:
    """The class of an environment's parameters.

    Args:
        name: The environment's.
        types: Of parameters, by name; those that are no bool, int or float, such as
            arrays, cannot be set.

    >>> kind("Moon", {"gravity": float, "map": tuple})(gravity=2)
    {'gravity': 2.0}
    """
    usable = {field: of for field, of in types.items() if of in (bool, int, float)}
    return _kind(name, tuple(usable.items()))


@functools.cache
def _kind(name: str, types: tuple[tuple[str, type], ...]) -> type[Parameters]:
    hints = {field: of | None for field, of in types}
    shown = {"__annotations__": hints, "__repr__": Parameters.__repr__}
    return component(type(name, (Parameters,), dict.fromkeys(hints) | shown))


def _again(
    name: str, types: Mapping[str, type], values: Mapping[str, Any]
) -> Parameters:
    return kind(name, types)(**values)
