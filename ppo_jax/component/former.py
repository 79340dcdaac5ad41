"""Names as versions before this one wrote them.

Items of tuples had an index: what was `terms.2.coef` is `terms.entropy.coef`. Other
names are in `RENAMED`. Whoever still writes the former is told the latter; what is kept
of a run is translated. What that could not say yet is in `ADDED`.
"""

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from ppo_jax.component.names import children, kinds

Names = Mapping[str, str]
"""How items of tuples were called, and how they are."""
RENAMED = {"Rollout": "RolloutTargets"}
"""What modules called otherwise."""
ADDED = {"ActorCritic": {"compute_dtype": "'float32'"}}
"""Fields of components that there were not, and what was so without them."""
_UNDERSTOOD = ContextVar("understood", default=False)


def names_in(tree: Any, before: str = "", now: str = "") -> dict[str, str]:
    """What the items of all tuples of a component were called, and are."""
    found = {}
    for index, (name, part) in enumerate(children(tree).items()):
        item = isinstance(tree, tuple)
        former, present = before + (str(index) if item else name), now + name
        found |= {former: present} if item else {}
        found |= names_in(part, f"{former}.", f"{present}.")
    return found


def names_by(classes: Mapping[str, str]) -> dict[str, str]:
    """The same of a component that is known by the classes of its parts, by path.

    >>> classes = {"terms.0": "Value", "terms.1": "CVaR", "terms.1.parts.0": "Kl"}
    >>> [*names_by(classes).values()]
    ['terms.value', 'terms.cvar', 'terms.cvar.parts.kl']
    """
    found = {}
    for owner, items in orders(classes).items():
        within = translated(owner, found)
        found |= {f"{owner}.{i}": f"{within}.{name}" for i, name in enumerate(items)}
    return found


def orders(classes: Mapping[str, str]) -> dict[str, list[str]]:
    """Paths of tuples, outer ones first, and what their items are called.

    >>> orders({"critic": "Scalar", "terms.0": "Value", "terms.1": "Kl"})
    {'terms': ['value', 'kl']}
    """
    items: dict[str, list[str]] = {}
    for path in sorted(classes, key=lambda path: (path.count("."), len(path), path)):
        owner, _, index = path.rpartition(".")
        if index.isdigit():
            items.setdefault(owner, []).append(classes[path])
    return {owner: kinds(each) for owner, each in items.items()}


def added_to(classes: Mapping[str, str]) -> dict[str, str]:
    """What a component does not say that is known by the classes of its parts, by path.

    >>> added_to({"critic": "Scalar", "network": "ActorCritic"})
    {'network.compute_dtype': "'float32'"}
    """
    return {
        f"{path}.{field}": value
        for path, kind in classes.items()
        for field, value in ADDED.get(kind, {}).items()
    }


def translated(value: Any, names: Names) -> Any:
    """A text, or a value from JSON, with former paths in it written as they are now.

    >>> translated({"pbt/terms.2.coef/0": ["--terms.2.coef", 0.5]}, {"terms.2": "a.b"})
    {'pbt/a.b.coef/0': ['--a.b.coef', 0.5]}
    """
    if isinstance(value, dict):
        return {translated(k, names): translated(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [translated(each, names) for each in value]
    if not (names and isinstance(value, str)):
        return value
    longest_first = sorted(names, key=len, reverse=True)
    either = "|".join(map(re.escape, longest_first)).replace("_", "[-_]")
    paths = rf"(?<![\w.])(?<!\w-)(?:{either})(?!\w)"
    return re.sub(paths, lambda found: names[found[0].replace("-", "_")], value)


def resolved(tree: Any, path: str) -> str:
    """A path in a component, translated where former ones are understood.

    Raises:
        KeyError: If it is a former one elsewhere; the message says what it is now.
    """
    now = translated(path, names_in(tree))
    if now == path or _UNDERSTOOD.get():
        return now
    raise KeyError(moved(path, now))


def moved(path: str, now: str) -> str:
    """Says what a former path is now.

    >>> moved("terms.2.coef", "terms.entropy.coef")
    'terms.2.coef: terms are addressed by their kind; this one is terms.entropy.coef'
    """
    pairs = zip(path.split("."), now.split("."), strict=True)
    same = [before == after for before, after in pairs]
    owner = ".".join(path.split(".")[: same.index(False)]).lstrip("-") or "items"
    return f"{path}: {owner} are addressed by their kind; this one is {now}"


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """Former names are understood meanwhile: the file of a run may have them."""
    with contextlib.ExitStack() as stack:
        stack.callback(_UNDERSTOOD.reset, _UNDERSTOOD.set(True))
        for module, former, now in _renamed():
            vars(module)[former] = now
            stack.callback(vars(module).pop, former)
        yield


def _renamed() -> list[tuple[ModuleType, str, Any]]:
    """What modules of this package called otherwise, and what it is."""
    package = __name__.partition(".")[0]
    return [
        (module, former, vars(module)[now])
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == package
        for former, now in RENAMED.items()
        if now in vars(module) and former not in vars(module)
    ]
