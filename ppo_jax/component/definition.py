"""The one rule of configuration: a float is a number, everything else is structure.

A *component* is a frozen dataclass and a pytree. Its `float` fields and its fields
that hold components are data: they may be traced, mapped over a population and
changed during a run. All other fields are static: they are part of the tree's
structure, for which a program is compiled.
"""

import copy
import dataclasses
import functools
import types
import typing
import warnings
from collections import ChainMap
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
from jax.lax import convert_element_type

from ppo_jax.component.bounds import bounds
from ppo_jax.component.coercion import coerced, fits
from ppo_jax.component.declaration import require_no_method, require_typed
from ppo_jax.component.former import resolved
from ppo_jax.component.names import (
    children,
    descendants,
    is_component,
    joined,
    nested,
)
from ppo_jax.component.suggestion import uncalled, unknown, unknown_field
from ppo_jax.errors import Misfit
from ppo_jax.types import PyTree

T = TypeVar("T")


def host(*, default: Any, converter: Callable[[Any], Any] = lambda given: given) -> Any:
    """Declares a field for the host alone: budgets, intervals, paths, search ranges.

    It is static, whatever its type, and `program` blanks it, so that it never causes a
    compilation. Its values go through `converter`.
    """
    metadata = {"host": True, "converter": converter}
    return dataclasses.field(default=default, metadata=metadata)


def converted(
    converter: Callable[[Any], Any], *, default: Any = dataclasses.MISSING
) -> Any:
    """Declares a field whose values go through `converter`."""
    return dataclasses.field(default=default, metadata={"converter": converter})


@dataclass_transform(
    frozen_default=True, field_specifiers=(dataclasses.field, host, converted)
)
def component(cls: type[T]) -> type[T]:
    """Makes a class a frozen dataclass and a pytree whose floats are its data.

    Arguments are checked when a component is constructed, and not when JAX rebuilds
    one from traced leaves. The type of a number gives its bounds (`bounds`), `validate`
    checks conditions on several fields, and `advise` returns warnings about values
    that are possible but odd. A subclass of a component is decorated too.

    Raises:
        TypeError: At construction, if there is no such field, if a value does not have
            its field's type, or if the class is an undecorated subclass of a component;
            at decoration, if the class has one of the methods in `INSTEAD`, or another
            value of an inherited field without its type.

    Warns:
        UserWarning: At construction, for each line that `advise` returns.

    >>> @component
    ... class Clip:
    ...     eps: float = 0.2
    ...     passes: int = 4
    >>> jax.tree.leaves(Clip())
    [0.2]
    >>> Clip(passes="4")
    Traceback (most recent call last):
    TypeError: Clip.passes: expected int, got '4' (str)
    """
    require_no_method(cls)
    kind: Any = cls
    kind.__post_init__ = _check
    if not hasattr(kind, "validate"):  # Whatever a subclass overrides can be called.
        kind.validate = lambda self: None
    dataclasses.dataclass(frozen=True)(kind)  # Changes the class in place.
    require_typed(kind)
    kind.__init__ = _constructor(kind.__init__)
    hints = kind.__component_hints__ = typing.get_type_hints(kind)
    inherited = (vars(base).get("__component_bounds__", {}) for base in kind.__mro__)
    kind.__component_bounds__ = dict(ChainMap(*inherited)) | bounds(kind)
    fields = dataclasses.fields(kind)
    data = [f.name for f in fields if not _is_host(f) and _is_data(hints[f.name])]
    static = [field.name for field in fields if field.name not in data]

    def flatten(node):
        keys = [(jax.tree_util.GetAttrKey(name), getattr(node, name)) for name in data]
        return keys, tuple(getattr(node, name) for name in static)

    def unflatten(metadata, leaves):
        node = object.__new__(cls)
        for name, value in zip(data + static, (*leaves, *metadata), strict=True):
            object.__setattr__(node, name, value)
        return node

    jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
    return cls


def concrete(value: Any) -> bool:
    """Returns whether a number is known now, so that its range can be checked."""
    return isinstance(value, float | int)


def require(ok: bool, field: str, value: Any, expected: str) -> None:
    """Raises a `Misfit`, which is a `ValueError`, that names the field, unless `ok`."""
    if not ok:
        raise Misfit(f"{field}: expected {expected}, got {value!r}")


def require_field(owner: Any, field: str, ok: bool, expected: str) -> None:
    """Raises a `ValueError` that names the field of a component, unless `ok`."""
    require(ok, f"{type(owner).__name__}.{field}", getattr(owner, field), expected)


def require_range(owner: Any, field: str, expected: str, test: Any) -> None:
    """Checks a number of a component, or each of several; see `require_number`."""
    name = f"{type(owner).__name__}.{field}"
    require_number(name, getattr(owner, field), expected, test)


def require_number(name: str, value: Any, expected: str, test: Any) -> None:
    """Checks a number, an array that is one, or several, unless traced or absent."""
    for each in value if isinstance(value, tuple) else (value,):
        number = coerced(float, each)
        if concrete(number):
            require(bool(test(number)), name, value, expected)


def numbers(tree: PyTree) -> dict[str, Any]:
    """Returns a component's numbers by path, for example `optimizer.learning_rate`.

    >>> @component
    ... class Clip:
    ...     eps: float = 0.2
    >>> @component
    ... class Loss:
    ...     clip: Clip = Clip()
    >>> numbers(Loss())
    {'clip.eps': 0.2}
    """
    return {joined(tree, keys): leaf for keys, leaf in jax.tree.leaves_with_path(tree)}


def replace_at(tree: T, path: str, value: Any) -> T:
    """Returns the component with another number at `path`; its range is not checked.

    Raises:
        KeyError: If no number has that path; the message names the closest one, or what
            changes a field that is no number.
        ValueError: If the value is no number.
    """
    known, path = numbers(tree), resolved(tree, path)
    fields = children(tree)
    if path not in known and path in descendants(fields):
        remedy = f"dataclasses.replace(…, {nested(fields, path)})"
        raise KeyError(f"{path} is no number, but structure or absent; use {remedy}")
    if path not in known:
        raise KeyError(unknown("number", path, known))
    number = concrete(coerced(float, value)) or hasattr(value, "dtype")
    require(number, path, value, "a number")
    leaves = known | {path: value}
    return jax.tree.unflatten(jax.tree.structure(tree), leaves.values())


def checked(tree: T) -> T:
    """Checks the ranges of all numbers of a component, and returns it.

    Raises:
        ValueError: For an impossible number.
    """
    for part in reversed(descendants({"": tree}).values()):
        if is_component(part):
            _require_possible(part)
    return tree


def as_arrays(tree: T) -> T:
    """Returns the component with strong float32 arrays for numbers, for programs.

    Weak types would be a second signature, and so a second compilation.
    """
    strong = jnp.dtype("float32")
    return jax.tree.map(lambda x: convert_element_type(jnp.asarray(x), strong), tree)


def program(tree: T, *kept: str) -> T:
    """Returns the component with defaults in all host fields, at any depth.

    Ranges are not checked again: the defaults need not fit the other fields. Fields
    whose names are in `kept` stay, but for the host fields in their values.

    >>> @component
    ... class Search:
    ...     interval: int = host(default=10)
    ...     size: int = 4
    >>> program(Search(interval=3, size=8))
    Search(interval=10, size=8)
    >>> program(Search(interval=3, size=8), "interval")
    Search(interval=3, size=8)
    """

    def blank(node):
        if not is_component(node):
            return node
        blanked = copy.copy(node)
        for field in dataclasses.fields(node):
            if _is_host(field) and field.name not in kept:
                object.__setattr__(blanked, field.name, field.default)
            elif _is_data(node.__component_hints__[field.name]):
                value = getattr(node, field.name)
                value = jax.tree.map(blank, value, is_leaf=is_component)
                object.__setattr__(blanked, field.name, value)
        return blanked

    return jax.tree.map(blank, tree, is_leaf=is_component)


def _is_host(field: dataclasses.Field) -> bool:
    return field.metadata.get("host", False)


def _is_data(hint: Any) -> bool:
    """Returns whether values of this annotation are pytree data."""
    if isinstance(hint, type) and not typing.get_args(hint):
        return hint is float or is_component(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType, tuple):
        return any(_is_data(arg) for arg in typing.get_args(hint))
    return False


def _constructor(init: Callable[..., None]) -> Callable[..., None]:
    """Wraps a constructor: errors about an unknown field name the closest one."""

    @functools.wraps(init)
    def construct(self: Any, *args: Any, **given: Any) -> None:
        name = type(self).__name__
        if not is_component(self):
            message = "a subclass of a component needs @component as well"
            raise TypeError(f"{name}: {message}")
        known = {
            field.name: given.get(field.name, field.default)
            for field in dataclasses.fields(self)
        }
        for field in given.keys() - known.keys():
            raise TypeError(f"{name}: {unknown_field(field, known)}")
        init(self, *args, **given)

    return construct


def _check(self: Any) -> None:
    """Checks types field by field, then ranges, and warns of odd values."""
    for field in dataclasses.fields(self):
        convert = field.metadata.get("converter", lambda value: value)
        value = convert(getattr(self, field.name))
        hint = self.__component_hints__[field.name]
        object.__setattr__(self, field.name, typed(self, field.name, hint, value))
    _require_possible(self)
    for advice in getattr(self, "advise", tuple)():
        # It points at the caller of `construct` and the dataclass's own __init__.
        warnings.warn(advice, stacklevel=4)


def _require_possible(self: Any) -> None:
    """Checks the bounds of a component's numbers, then calls its `validate`."""
    for field, bound in self.__component_bounds__.items():
        require_range(self, field, *bound)
    self.validate()


def typed(owner: Any, name: str, hint: Any, given: Any) -> Any:
    """Converts the value of a field, and checks that it has the annotated type."""
    value = coerced(hint, given)
    if not fits(hint, value):
        expected = hint.__name__ if isinstance(hint, type) else str(hint)
        raise TypeError(
            f"{type(owner).__name__}.{name}: expected {expected}, "
            f"got {given!r} ({type(given).__name__}){uncalled(given)}"
        )
    return value
