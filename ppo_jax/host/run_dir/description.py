"""An experiment in words: the kind and the value of every field, by path."""

import dataclasses
import functools
import importlib
import re
import sys
from typing import Any

from ppo_jax.component import children, former, is_component

Description = dict[str, dict[str, str]]
"""Kind (number, host or structure) and value of every field, by path."""
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Pattern of the address in the `repr` of a value, which differs between processes."""
_OFF = {"None", "False"}
"""Values of a field that mean the same as its absence."""


def describe(config: Any, prefix: str = "") -> Description:
    """Describes every field of an experiment; of a tuple of components, also its order.

    >>> from ppo_jax import Config
    >>> describe(Config("CartPole-v1"))["optimizer.learning_rate"]
    {'kind': 'number', 'value': '0.00025'}
    """
    fields, hosts = {}, set()
    if is_component(config):
        fields[prefix + "type"] = _structure(type(config).__name__)
        hosts = {x.name for x in dataclasses.fields(config) if "host" in x.metadata}
    else:
        fields[prefix.removesuffix(".")] = _structure(", ".join(children(config)))
    for name, value in children(config).items():
        if name in hosts and _are_components(value):
            # No program and no checkpoint contains these components.
            below = describe(value, f"{prefix}{name}.") if value else {}
            fields |= {path: x | {"kind": "host"} for path, x in below.items()}
        elif is_component(value) or children(value):
            fields |= describe(value, f"{prefix}{name}.")
        else:
            number = "number" if isinstance(value, float) else "structure"
            kind = "host" if name in hosts else number
            fields[prefix + name] = {"kind": kind, "value": _shown(value)}
    return fields


def _are_components(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(is_component, value))


def is_field(found: Any) -> bool:
    """Returns whether a value from JSON is that of a field of a description.

    >>> is_field({"kind": "number", "value": "0.5"}), is_field({"value": 0.5})
    (True, False)
    """
    parts = [found.get(x) for x in ("kind", "value")] if isinstance(found, dict) else []
    return bool(parts) and all(isinstance(part, str) for part in parts)


def as_now(description: Description) -> Description:
    """Returns the description of an earlier version as this version would give it.

    >>> kinds = {"terms.0.type": _structure("Kl"), "terms.1.type": _structure("Value")}
    >>> list(as_now(kinds))
    ['terms.kl.type', 'terms.value.type', 'terms']
    """
    classes = _classes(description)
    orders, added = former.orders(classes), former.added_to(classes)
    tuples = {path: _structure(", ".join(names)) for path, names in orders.items()}
    others = {path: _structure(value) for path, value in added.items()}
    known = others | description | tuples
    return former.translated(known, former_names(description))


def former_names(description: Description) -> former.Names:
    """Maps former names of tuples' items in a description to their present names."""
    return former.names_by(_classes(description))


def differences(old: dict, new: dict) -> dict[str, str]:
    """Returns the fields that differ between two descriptions; an absent field is off.

    >>> from ppo_jax import Config
    >>> cartpole = Config("CartPole-v1")
    >>> other = dataclasses.replace(cartpole, gamma=0.9)
    >>> differences(describe(cartpole), describe(other))
    {'gamma': '0.99 -> 0.9'}
    >>> differences({}, {"limit": {"kind": "host", "value": "None"}})
    {}
    >>> differences({}, {"drawn": {"kind": "host", "value": "False"}})
    {}
    >>> differences({}, {"drawn": {"kind": "host", "value": "True"}})
    {'drawn': 'None -> True'}
    """
    both = {name: (_value(old, name), _value(new, name)) for name in old.keys() | new}
    return {
        name: f"{before} -> {after}"
        for name, (before, after) in sorted(both.items())
        if old.get(name) != new.get(name) and not {before, after} <= _OFF
    }


def _value(description: dict, name: str) -> str:
    return description.get(name, {}).get("value", "None")


def defaults(description: Description) -> dict[str, str]:
    """Returns the default values of fields, by path; users' own components have none.

    >>> from ppo_jax import Config
    >>> expected = defaults(describe(Config("CartPole-v1", num_envs=8)))
    >>> expected["num_envs"], expected["optimizer.type"]
    ('4', 'Adam')
    """
    known = {cls.__name__: cls for cls in _offered()}
    root = description.get("type", {}).get("value", "")
    found = {"type": root} | _defaults_of(known.get(root), "")
    parts = sorted(_classes(description).items(), key=lambda item: item[0].count("."))
    for path, name in parts:
        usual = found.get(f"{path}.type")
        if usual != name:
            found = {k: v for k, v in found.items() if not k.startswith(f"{path}.")}
            found |= _defaults_of(known.get(name), f"{path}.")
            found |= {f"{path}.type": usual} if usual else {}
    return found


def _defaults_of(cls: type | None, before: str) -> dict[str, str]:
    """Returns the defaults of a component's own fields, by path."""
    found = {}
    for field in dataclasses.fields(cls) if cls is not None else ():
        path, default = before + field.name, field.default
        if is_component(default) or children(default):
            inner = describe(default, f"{path}.")
            found |= {name: inner[name]["value"] for name in inner}
        elif default is not dataclasses.MISSING:
            found[path] = _shown(default)
    return found


def _offered() -> list[type]:
    """Returns the classes of components that this package exports."""
    package = importlib.import_module("ppo_jax")
    offered = [getattr(package, name) for name in package.__all__]
    offered += [each for room in offered for each in vars(room).values()]
    return [each for each in offered if isinstance(each, type) and is_component(each)]


def _shown(value: Any) -> str:
    """Formats a value as text that is the same in every process.

    >>> _shown(({"x": frozenset("ba")}, functools.partial(sorted, key=_structure)))
    "({'x': frozenset({'a', 'b'})}, partial('<built-in function sorted>', (), {'key': \
ppo_jax.host.run_dir.description._structure}))"
    """
    if isinstance(value, functools.partial):
        given = f"{_shown(value.args)}, {_shown(value.keywords)}"
        return f"partial({_shown(value.func)!r}, {given})"
    if type(value) is dict:
        items = [f"{_shown(key)}: {_shown(each)}" for key, each in value.items()]
        return f"{{{', '.join(items)}}}"
    if type(value) is tuple:
        return f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
    if type(value) is list:
        return f"[{', '.join(map(_shown, value))}]"
    if type(value) is frozenset and value:
        return f"frozenset({{{', '.join(sorted(map(_shown, value)))}}})"
    text = repr(value)
    home, name = (getattr(value, x, None) for x in ("__module__", "__qualname__"))
    if home and name and ADDRESS.search(text):
        return f"{_home(home)}.{name}"
    return ADDRESS.sub("", text)


def _home(module: str) -> str:
    """Returns the name by which users import a module, wherever its file is.

    >>> _home("ppo_jax.attacks.opponents"), _home("ppo_jax.transforms.vgs")
    ('ppo_jax.opponents', 'ppo_jax.transforms.vgs')
    """
    package, _, name = module.partition(".")[0], *module.rpartition(".")[1:]
    if package not in sys.modules:
        return module
    offered = vars(sys.modules[package]).get(name)
    is_offered = getattr(offered, "__name__", None) == module
    return f"{package}.{name}" if is_offered else module


def _structure(value: str) -> dict[str, str]:
    return {"kind": "structure", "value": value}


def _classes(description: Description) -> dict[str, str]:
    """Returns the names of the classes of all components of a description, by path."""
    return {
        path.removesuffix(".type"): field["value"]
        for path, field in description.items()
        if path.endswith(".type")
    }
