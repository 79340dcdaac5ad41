"""Rows of the metrics that parts of an experiment bring along."""

from typing import Any

from ppo_jax.component.definition import descendants
from ppo_jax.metrics.reductions import Metric


def rows_of(experiment: Any) -> tuple[Metric, ...]:
    """Returns the rows in `says` of all parts of an experiment, each once."""
    parts = descendants({"": experiment}).values()
    declared = (row for part in parts for row in getattr(type(part), "says", ()))
    return tuple(dict.fromkeys(declared))
