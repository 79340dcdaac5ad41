"""Rows and names of the metrics that parts of an experiment bring along."""

from typing import Any

from ppo_jax.component.coercion import fits
from ppo_jax.component.definition import descendants
from ppo_jax.errors import Misfit
from ppo_jax.metrics.reductions import Metric
from ppo_jax.types import Metrics

RESERVED = (
    *("best/", "costs/", "each/", "episodes/", "error/", "eval/"),
    *("pbt/", "q25/", "q75/", "rollout/", "time/", "warn/"),
)
"""Beginnings of the names of what is measured whatever the parts are."""
SHARED = ("rollout/reused_starts",)
"""Names that begin so and are of a part, `ResetPool`."""


def rows_of(experiment: Any) -> tuple[Metric, ...]:
    """Returns the rows in `says` of all parts of an experiment, each once.

    Raises:
        Misfit: If a part says anything but rows.
    """
    parts = map(type, descendants({"": experiment}).values())
    return tuple(dict.fromkeys(row for part in parts for row in _said_by(part)))


def _said_by(part: type) -> tuple[Metric, ...]:
    says = getattr(part, "says", ())
    if says != () and not fits(tuple[Metric, ...], says):
        expected = "a tuple of rows such as Metric('mine/size', 'm', 'Of the car.')"
        raise Misfit(f"{part.__name__}.says: expected {expected}, got {says!r:.100}")
    return says


def named(part: str, metrics: Metrics) -> Metrics:
    """Returns the metrics of a part, if it may name them so.

    Raises:
        Misfit: If a name is no text, or one of what is measured anyway.

    >>> named("Mine", {"eval/mean_reward": 1.0})
    Traceback (most recent call last):
    ppo_jax.errors.Misfit: Mine: expected metrics with names such as 'mine/size', but \
not 'step' nor with a beginning of best/, costs/, each/, episodes/, error/, eval/, \
pbt/, q25/, q75/, rollout/, time/, warn/, got 'eval/mean_reward'
    """
    for name in metrics:
        if not isinstance(name, str) or _is_taken(name):
            raise Misfit(
                f"{part}: expected metrics with names such as 'mine/size', but not "
                f"'step' nor with a beginning of {', '.join(RESERVED)}, got {name!r}"
            )
    return metrics


def _is_taken(name: str) -> bool:
    return name == "step" or (name.startswith(RESERVED) and name not in SHARED)
