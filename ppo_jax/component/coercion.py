"""Conversion of values to the types of fields, where nothing of them is lost."""

import types
import typing
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import typeguard
from jax.core import Tracer


def coerced(hint: Any, value: Any) -> Any:
    """Converts a value to an annotated type, if nothing is lost; otherwise returns it.

    Whole numbers become floats, floats without a fraction become integers, lists become
    tuples, and arrays without axes become numbers.

    >>> coerced(int, 1e6), coerced(int, 1.5), coerced(tuple[float, ...], [1, 2])
    (1000000, 1.5, (1.0, 2.0))
    """
    return _mapped(_as_scalar, hint, value)


def unwrapped(value: Any) -> Any:
    """Returns the number of Python that an array without axes holds; else the value.

    >>> unwrapped(np.int64(4)), unwrapped(jnp.array(0.5)), unwrapped((1, 2))
    (4, 0.5, (1, 2))
    """
    array = isinstance(value, np.generic | np.ndarray | jax.Array)
    if not array or isinstance(value, Tracer) or value.ndim or _is_key(value):
        return value
    return value.item()


def fits(hint: Any, value: Any) -> bool:
    """Returns whether a value has an annotated type.

    An array is a float, because floats may be traced; a truth value is no number.

    >>> fits(tuple[int, ...], (1, 2)), fits(tuple[int, ...], (1, 2.5)), fits(int, True)
    (True, False, False)
    """
    every = typeguard.CollectionCheckStrategy.ALL_ITEMS
    stand_in = _mapped(_stand_in, hint, value)
    try:
        typeguard.check_type(stand_in, hint, collection_check_strategy=every)
    except typeguard.TypeCheckError:
        return False
    return True


def _mapped(change: Callable[[type, Any], Any], hint: Any, value: Any) -> Any:
    """Changes every scalar in a value, given the type that it is to have."""
    parts = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        if type(value) in parts:
            return value
        others = (_mapped(change, part, value) for part in parts)
        return next((other for other in others if other is not value), value)
    if typing.get_origin(hint) is tuple and type(value) in (list, tuple):
        each = parts[:1] * len(value) if parts[1:] == (...,) else parts
        if len(each) != len(value):
            return tuple(value)
        return tuple(_mapped(change, *pair) for pair in zip(each, value, strict=True))
    return change(hint, value) if hint in (bool, int, float) else value


def _as_scalar(kind: type, value: Any) -> Any:
    value = unwrapped(value)
    if kind is float and type(value) is int:
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _stand_in(kind: type, value: Any) -> Any:
    """Returns the value that is checked in the place of a scalar."""
    if kind is float and hasattr(value, "dtype") and not _is_key(value):
        return 0.0
    return ... if kind is not bool and isinstance(value, bool) else value


def _is_key(array: Any) -> bool:
    """Returns whether an array holds keys of random numbers, which are no numbers."""
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
