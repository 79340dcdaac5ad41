"""Explained variances of critics that have learned from the returns."""

import jax.numpy as jnp

from ppo_jax import returns
from ppo_jax.component import component
from ppo_jax.component.bounds import Natural
from ppo_jax.ppo import diagnostics
from ppo_jax.ppo.diagnostics import average
from ppo_jax.types import Array, Metrics


@component
class Appraisal:
    """An evaluation of the critics after each update, also by groups.

    It costs a pass of the critics over the rollout in every update, and changes no
    training. Differences between groups can raise the explained variance of all steps
    even if nothing is explained within groups. So explained variances of groups are
    averaged as well.

    Attributes:
        num_groups: Groups that environments report, 0 … num_groups − 1. Steps without
            a group count as a group of their environment.

    Raises:
        ValueError: At construction, for a negative number of groups.
    """

    num_groups: Natural = 0

    def __call__(
        self,
        target: Array,
        before: Array,
        after: Array,
        weight: Array,
        held_out: Array | None,
        group: Array,
    ) -> Metrics:
        """Returns metrics `[]`.

        Args:
            target: λ-returns `[T, B]`.
            before: Values that acting was based on `[T, B]`.
            after: Values of the same observations after the update `[T, B]`.
            weight: Weights of the steps that were learned from `[T, B]`.
            held_out: Weights of the steps that are held out `[T, B]`, if any are.
            group: The group of each step, int32 `[T, B]`.
        """
        index = returns.group_index(group, self.num_groups)
        count = self.num_groups + group.shape[1]
        metrics = diagnostics.explained(target, after, weight, held_out, "_after")
        for name, value in (("", before), ("_after", after)):
            each, mass = returns.explained_variance_by_group(
                target, value, weight, index, count
            )
            mass = jnp.where(jnp.isnan(each), 0.0, mass)
            metrics |= {
                f"train/ev/mean_grouped_weighted{name}": average(each, mass),
                f"train/ev/mean_grouped_unweighted{name}": average(each, mass > 0),
                f"train/ev/median_grouped{name}": jnp.nanmedian(each),
            }
        return metrics
