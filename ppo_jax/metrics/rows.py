"""Rows of the table of metrics, as a text says them."""

import inspect
import re
from functools import partial

from ppo_jax.metrics.reductions import MEAN, Metric, Reduction

NO_STEP = "no optimiser step was taken"
NO_WEIGHT = "no step of the rollout has weight"


def rows(
    text: str,
    reduction: Reduction = MEAN,
    *sources: str,
    needs: str = "",
    null: str = "",
) -> tuple[Metric, ...]:
    """Rows that have the rest in common, from `name [unit] with needs: meaning`.

    A line each; one that is deeper continues the one above.

    >>> for row in rows('''
    ...     train/kl [nats] with `ClosedForm`: Divergence of the policy
    ...         from the one that acted.
    ...     train/ratio: Near 1.
    ... '''):
    ...     print(row.name, row.unit, row.needs, row.meaning, sep=", ")
    train/kl, nats, `ClosedForm`, Divergence of the policy from the one that acted.
    train/ratio, , , Near 1.
    """
    found = []
    for line in re.sub(r"\n +", " ", inspect.cleandoc(text)).splitlines():
        head, meaning = line.split(": ", maxsplit=1)
        head, _, own = head.partition(" with ")
        name, _, unit = head.partition(" ")
        row = Metric(name, unit.strip("[]"), meaning, reduction, sources)
        found.append(row._replace(needs=own or needs, null=null))
    return tuple(found)


weighed = partial(rows, null=NO_WEIGHT)
stepped = partial(rows, null=NO_STEP)


def match(pattern: str, name: str) -> str | None:
    """What the `*` of a pattern stands for in a name; None: it does not fit.

    >>> match("train/critic*_grad_norm", "train/critic2_grad_norm")
    '2'
    """
    head, star, tail = pattern.partition("*")
    if not star:
        return "" if name == pattern else None
    fits = name.startswith(head) and name.endswith(tail)
    if not fits or len(name) <= len(head) + len(tail):
        return None
    return name[len(head) : len(name) - len(tail)]
