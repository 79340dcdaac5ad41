"""How words of the command line are read as values of fields, and what is told."""

import contextlib
import typing
from types import NoneType, UnionType

from tyro import constructors

from ppo_jax.component import children
from ppo_jax.component.coercion import coerced
from ppo_jax.terms import Demonstrations

RULES = constructors.ConstructorRegistry()
"""Rules by which tyro reads what it would read otherwise, or tell otherwise."""


@RULES.struct_rule
def _tuples(
    info: constructors.StructTypeInfo,
) -> constructors.StructConstructorSpec | None:
    """Names items of tuples of components as their paths do."""
    if not (isinstance(info.default, tuple) and children(info.default)):
        return None
    return constructors.StructConstructorSpec(
        instantiate=lambda **items: tuple(items.values()),
        fields=tuple(
            constructors.StructFieldSpec(name, type(item), item)
            for name, item in children(info.default).items()
        ),
    )


@RULES.primitive_rule
def _numbers(
    info: constructors.PrimitiveTypeInfo,
) -> constructors.PrimitiveConstructorSpec | None:
    """Reads numbers, and None where there may be none."""
    union = typing.get_origin(info.type) in (typing.Union, UnionType)
    given = typing.get_args(info.type) if union else (info.type,)
    optional = NoneType in given
    kind, *others = [each for each in given if each is not NoneType] or [None]
    if others or kind not in (int, float):
        return None
    expected = ("a whole number" if kind is int else "a number") + " or None" * optional

    def read(args: list[str]) -> int | float | None:
        if optional and args[0] == "None":
            return None
        return _number(args[0], kind, expected)

    return constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="{None}|" * optional + kind.__name__.upper(),
        instance_from_str=read,
        is_instance=lambda value: isinstance(value, int | float | None),
        str_from_instance=lambda value: [str(value)],
    )


@RULES.primitive_rule
def _sizes(
    info: constructors.PrimitiveTypeInfo,
) -> constructors.PrimitiveConstructorSpec | None:
    """Reads any number of whole numbers."""
    kind, *more = typing.get_args(info.type) or (None,)
    if more != [...] or getattr(kind, "__origin__", kind) is not int:
        return None

    def read(args: list[str]) -> tuple[int | float, ...]:
        return tuple(_number(word, int, "whole numbers") for word in args)

    return constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar="[INT [INT ...]]",
        instance_from_str=read,
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda value: [*map(str, value)],
    )


@RULES.primitive_rule
def _goals(
    info: constructors.PrimitiveTypeInfo,
) -> constructors.PrimitiveConstructorSpec | None:
    """Reads a name and a number in turn, or None."""
    if info.type != tuple[tuple[str, float], ...] | None:
        return None

    def read(args: list[str]) -> tuple[tuple[str, int | float], ...] | None:
        if args == ["None"]:
            return None
        names, bounds = args[::2], args[1::2]
        if len(names) != len(bounds):
            raise ValueError(f"expected a number after each metric, got {args}")
        expected = "a number after each metric"
        numbers = [_number(word, float, expected) for word in bounds]
        return tuple(zip(names, numbers, strict=True))

    return constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar="{None}|{[STR FLOAT [STR FLOAT ...]]}",
        instance_from_str=read,
        is_instance=lambda value: value is None or isinstance(value, tuple),
        str_from_instance=lambda value: (
            [str(x) for pair in value or () for x in pair] or ["None"]
        ),
    )


@RULES.primitive_rule
def _arrays(
    info: constructors.PrimitiveTypeInfo,
) -> constructors.PrimitiveConstructorSpec | None:
    """Refuses arrays on the command line: only the experiment's file can give them."""
    if not (isinstance(info.type, type) and issubclass(info.type, Demonstrations)):
        return None

    def refuse(args: list[str]) -> Demonstrations:
        raise ValueError(f"arrays are given in the experiment's file, not as {args}")

    return constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="{fixed}",
        instance_from_str=refuse,
        is_instance=lambda value: isinstance(value, Demonstrations),
        str_from_instance=lambda value: [repr(value)],
    )


def _number(word: str, kind: type[int] | type[float], expected: str) -> int | float:
    """Returns the number of a word; whole ones may be written with an exponent: 1e6.

    Raises:
        ValueError: If it is none.
    """
    for read in (int, float):
        with contextlib.suppress(ValueError, OverflowError):
            value = coerced(kind, read(word))
            if isinstance(value, kind):
                return value
    raise ValueError(f"expected {expected}, got {word!r}")
