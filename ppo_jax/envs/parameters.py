"""Parameters of environments that other packages define.

Their names are known only when an environment is made, so each environment has a class
of parameters of its own. Floats are numbers: traced, and different from member to
member.
"""

import copyreg
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from ppo_jax.component import children, component

USABLE = (bool, int, float, str)
"""Types of parameters that can be set."""


class _Class(type):
    """Metaclass of classes of parameters, so that the classes can be pickled too."""


@component
class Parameters(metaclass=_Class):
    """Parameters of an environment that are set; None: the environment's own value.

    Parameters are equal if they are made of the same names and values, and can be
    pickled.
    """

    def __repr__(self) -> str:
        return repr(given(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self).__name__, _types(type(self)), given(self))


def given(params: Parameters | Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters that are set, by name; a group of them is a dict."""
    named = params if isinstance(params, Mapping) else children(params)
    plain = {
        name: given(value) if isinstance(value, Mapping | Parameters) else value
        for name, value in named.items()
    }
    return {
        name: value
        for name, value in plain.items()
        if value is not None and not (isinstance(value, dict) and not value)
    }


def types_of(values: Any) -> dict[str, type]:
    """Returns the types of a dataclass instance's values, by field."""
    names = [field.name for field in dataclasses.fields(values)]
    return {name: type(getattr(values, name)) for name in names}


def structure(
    params: Parameters | Mapping[str, Any], prefix: str = ""
) -> tuple[tuple[str, Any], ...]:
    """Returns the static parameters, by path: set parameters that are no floats.

    Programs are compiled for these.

    >>> structure({"length": 9, "scale": 0.5, "map": None, "noise": {"on": True}})
    (('length', 9), ('noise.on', True))
    """
    found = []
    for name, value in given(params).items():
        if isinstance(value, dict):
            found += structure(value, f"{prefix}{name}.")
        elif isinstance(value, int | str):
            found.append((f"{prefix}{name}", value))
    return tuple(found)


def kind(name: str, types: Mapping[str, Any]) -> type[Parameters]:
    """Returns the class of an environment's parameters.

    Args:
        name: Name of the environment.
        types: Types of parameters, by name; a mapping for a group of them. Parameters
            that are no bool, int, float or str, such as arrays, cannot be set.

    >>> kind("Moon", {"gravity": float, "map": tuple})(gravity=2)
    {'gravity': 2.0}
    >>> kind("Moon", {"scales": {"energy": float}})(scales={"energy": 2})
    {'scales': {'energy': 2.0}}
    """
    groups = {
        field: kind(field, of) for field, of in types.items() if isinstance(of, Mapping)
    }
    usable = {
        field: groups.get(field, of)
        for field, of in types.items()
        if field in groups or of in USABLE
    }
    return _kind(name, tuple(usable.items()))


@functools.cache
def _kind(name: str, types: tuple[tuple[str, type], ...]) -> type[Parameters]:
    groups = {field: of for field, of in types if issubclass(of, Parameters)}
    hints = {field: of if field in groups else of | None for field, of in types}
    shown = {"__annotations__": hints, "__repr__": Parameters.__repr__}
    fields = {field: _group(of) for field, of in groups.items()}
    return component(type(name, (Parameters,), dict.fromkeys(hints) | fields | shown))


def _group(kind: type[Parameters]) -> Any:
    """Returns a field that holds parameters, and takes them by name."""
    metadata = {"converter": lambda values: kind(**given(values))}
    return dataclasses.field(default=kind(), metadata=metadata)


def _types(kind: type[Parameters]) -> dict[str, Any]:
    """Returns the types that a class of parameters was made of."""
    return {
        field: _types(hint) if isinstance(hint, type) else hint.__args__[0]
        for field, hint in kind.__annotations__.items()
    }


def _again(
    name: str, types: Mapping[str, Any], values: Mapping[str, Any]
) -> Parameters:
    return kind(name, types)(**values)


def _pickled(of: Any) -> Any:
    """Reduces a class of parameters to the arguments that it was made of."""
    if of is Parameters:
        return of.__name__
    return kind, (of.__name__, _types(of))


copyreg.pickle(_Class, _pickled)
