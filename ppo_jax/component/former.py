"""Names as earlier versions wrote them.

Items of tuples had an index: `terms.2.coef` is now `terms.entropy.coef`. Other
names are in `RENAMED`. A former name from a user is an error that gives the present
one; those in the files of a run are translated. Fields that files lack are in `ADDED`.
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
"""Former names of items of tuples, and their present names."""
RENAMED = {"Rollout": "RolloutTargets"}
"""Former names in modules, and the present names."""
ADDED = {
    "ActorCritic": {"actor_obs": "()", "critic_obs": "()", "compute_dtype": "'float32'"}
}
"""Fields that components lacked, and the values that held without them."""
_UNDERSTOOD = ContextVar("understood", default=False)


def names_in(tree: Any, before: str = "", now: str = "") -> dict[str, str]:
    """Returns former and present paths of the items of all tuples of a component."""
    found = {}
    for index, (name, part) in enumerate(children(tree).items()):
        item = isinstance(tree, tuple)
        former, present = before + (str(index) if item else name), now + name
        found |= {former: present} if item else {}
        found |= names_in(part, f"{former}.", f"{present}.")
    return found


def names_by(classes: Mapping[str, str]) -> dict[str, str]:
    """Returns the same as `names_in`, from the classes of a component's parts by path.

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
    """Returns the paths of tuples, outer ones first, and the names of their items.

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
    """Returns the fields that were added, given the classes of a component's parts.

    >>> list(added_to({"critic": "Scalar", "network": "ActorCritic"}).items())[:2]
    [('network.actor_obs', '()'), ('network.critic_obs', '()')]
    """
    return {
        f"{path}.{field}": value
        for path, kind in classes.items()
        for field, value in ADDED.get(kind, {}).items()
    }


def translated(value: Any, names: Names) -> Any:
    """Replaces former paths by present ones in a text, or in a value from JSON.

    >>> translated({"pbt/terms.2.coef/0": ["--terms.2.coef", 0.5]}, {"terms.2": "a.b"})
    {'pbt/a.b.coef/0': ['--a.b.coef', 0.5]}
    """
    if not names:
        return value
    if isinstance(value, dict):
        return {translated(k, names): translated(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [translated(each, names) for each in value]
    if not isinstance(value, str):
        return value
    longest_first = sorted(names, key=len, reverse=True)
    either = "|".join(map(re.escape, longest_first)).replace("_", "[-_]")
    paths = rf"(?<![\w.])(?<!\w-)(?:{either})(?!\w)"
    return re.sub(paths, lambda found: names[found[0].replace("-", "_")], value)


def resolved(tree: Any, path: str) -> str:
    """Returns a path in a component, translated where former ones are understood.

    Raises:
        KeyError: If it is a former one elsewhere; the message gives the present path.
    """
    now = translated(path, names_in(tree))
    if now == path or _UNDERSTOOD.get():
        return now
    raise KeyError(moved(path, now))


def moved(path: str, now: str) -> str:
    """Returns the message that gives the present path for a former one.

    >>> moved("terms.2.coef", "terms.entropy.coef")
    'terms.2.coef: terms are addressed by their kind; this one is terms.entropy.coef'
    """
    pairs = zip(path.split("."), now.split("."), strict=True)
    same = [before == after for before, after in pairs]
    owner = ".".join(path.split(".")[: same.index(False)]).lstrip("-") or "items"
    return f"{path}: {owner} are addressed by their kind; this one is {now}"


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """Accepts former names in its block, as the file of a run may have them."""
    with contextlib.ExitStack() as stack:
        stack.callback(_UNDERSTOOD.reset, _UNDERSTOOD.set(True))
        for module, former, now in _renamed():
            vars(module)[former] = now
            stack.callback(vars(module).pop, former)
        yield


def _renamed() -> list[tuple[ModuleType, str, Any]]:
    """Returns modules of this package, former names in them, and their objects."""
    package = __name__.partition(".")[0]
    return [
        (module, former, vars(module)[now])
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == package
        for former, now in RENAMED.items()
        if now in vars(module) and former not in vars(module)
    ]
