"""What the class of a component may say, and what it would say in vain."""

import dataclasses
import inspect

INSTEAD = {
    "__init__": "declare its fields, with a type each,",
    "__post_init__": "call it `validate`",
}
"""Methods that a component cannot have, and what does their work."""


def require_no_method(cls: type) -> None:
    """Raises a `TypeError` if a class has one of the methods in `INSTEAD`."""
    for name in INSTEAD.keys() & cls.__dict__.keys():
        raise TypeError(f"{cls.__name__}: {INSTEAD[name]} instead of {name}")


def require_typed(cls: type) -> None:
    """Raises a `TypeError` if a dataclass gives a field of its base without a type.

    Such a value is no default: every instance has the one of the base.
    """
    for field in dataclasses.fields(cls):
        said = inspect.getattr_static(cls, field.name, dataclasses.MISSING)
        if said is not field.default:
            raise TypeError(
                f"{cls.__name__}.{field.name}: expected its type as well, "
                f"`{field.name}: … = …`, got {said!r} alone, which no instance has"
            )
