"""Rows of the table of metrics, parsed from text."""

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
    """Parses rows of the form `name [unit] with needs: meaning`.

    Each line is a row; a deeper line continues the one above. The other arguments are
    common to all rows.

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
    """Returns the part of a name that the `*` of a pattern fits; None: it does not.

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
