"""Rows of the table of metrics that have their condition in common."""

import functools

from ppo_jax.metrics.reductions import HOST, Metric

NO_STEP = "no optimiser step was taken"
NO_WEIGHT = "no step of the rollout has weight"
weighed = functools.partial(Metric, null=NO_WEIGHT)
stepped = functools.partial(Metric, null=NO_STEP)
host = functools.partial(Metric, reduction=HOST)


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
