"""What is a sign of trouble in the metrics of a run, and what to do about it.

Alerts are looked at on the host, after every phase; they never steer training.
The command `alerts` prints the table, or what there is to know of one.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from ppo_jax.component import suggestion
from ppo_jax.errors import UserError
from ppo_jax.host import tables
from ppo_jax.losses import MIN_TAIL
from ppo_jax.metrics.reductions import VANISHING
from ppo_jax.metrics.rows import match


class Alert(NamedTuple):
    """A row: which values of a metric are a sign of trouble."""

    name: str
    """With the metric's `*`, if it has one."""
    metric: str
    healthy: str
    causes: str
    remedy: str
    above: float = -math.inf
    """It is active while the metric is above this and"""
    below: float = math.inf
    """below this."""
    phases: int = 1
    """For how many phases in a row."""
    where: tuple[str, float] | None = None
    """Another metric, and what it has to be above for this one to mean anything."""

    def concerns(self, member: Mapping[str, float], metric: str) -> bool:
        """Whether what a member says of the metric is within the limits."""
        if self.where is not None and not member[self.where[0]] > self.where[1]:
            return False
        return self.above < member[metric] < self.below

    @property
    def limits(self) -> str:
        """What the metric passes while it is active, and for how long."""
        limits = [f"> {self.above:g}"] if self.above > -math.inf else []
        limits += [f"< {self.below:g}"] if self.below < math.inf else []
        lasts = f", {self.phases} phases in a row" if self.phases > 1 else ""
        return " and ".join(limits) + lasts

    @property
    def when(self) -> str:
        """When it is active, in words."""
        if self.where is None:
            return self.limits
        return f"{self.limits}, where `{self.where[0]}` > {self.where[1]:g}"


ALERTS = (
    Alert(
        "warn/empty_epoch",
        "warn/empty_epoch",
        healthy="0",
        causes="No step of a rollout had weight: all masked, held out or quarantined.",
        remedy="Look at the weights that the environment reports and at "
        "`error/quarantined_steps`. Nothing was learned from that rollout.",
        above=0,
    ),
    Alert(
        "warn/skipped_steps",
        "error/skipped_steps",
        healthy="0",
        causes="Losses, gradients or log-ratios that are not finite; `error/*` says "
        "which.",
        remedy="Lower the learning rate, bound the gradients, normalise observations "
        "and returns.",
        above=0,
    ),
    Alert(
        "warn/quarantined_steps",
        "error/quarantined_steps",
        healthy="0",
        causes="The environment gave observations, rewards or states that are not "
        "finite, or the network did.",
        remedy="Run `ppo_jax.envs.check` on the environment.",
        above=0,
    ),
    Alert(
        "warn/log_ratio_clamp",
        "train/log_ratio_clamp_frac",
        healthy="below 0.001",
        causes="The policy moved so far in an update that ratios are meaningless.",
        remedy="Lower the learning rate or the number of epochs; use `early_stop`.",
        above=0.01,
    ),
    Alert(
        "warn/log_ratio_severe_instability",
        "train/log_ratio_max_abs",
        healthy="below 5, mostly below 1",
        causes="As above, for single examples: actions that became 20 000 times more "
        "or less likely.",
        remedy="As above; keep the deviations of real actions from collapsing.",
        above=10,
    ),
    Alert(
        "warn/kl_over_target",
        "train/kl_over_target",
        healthy="0.2 to 1.5",
        causes="Steps are too large for the target: the update is stopped too late.",
        remedy="Lower the learning rate, or the `absolute` of `early_stop`.",
        above=2,
    ),
    Alert(
        "warn/entropy_collapse",
        "train/policy_entropy",
        healthy="above 0.01, falling slowly; below 0 for real actions only, of which "
        "it says nothing",
        causes="The policy has become deterministic and does not explore any more.",
        remedy="Raise the coefficient of the entropy, or use `AdaptiveEntropy`. At the "
        "end of training of a solved task it is no fault.",
        above=-1e-6,
        below=0.01,
    ),
    Alert(
        "warn/bc_dominates",
        "train/policy_bc_vs_ppo_ratio",
        healthy="below 0.5",
        causes="Imitation outweighs the surrogate: the policy repeats itself.",
        remedy="Lower `AdvantageWeighted.coef` or let its schedule decay.",
        above=0.8,
    ),
    Alert(
        "warn/normalization_mean_nonzero",
        "train/advantages_norm_mean",
        healthy="−10⁻⁵ to 10⁻⁵",
        causes="The standardisation does not centre what is learned from.",
        remedy="Check a standardisation of your own, and its weights.",
        above=0.1,
    ),
    Alert(
        "warn/normalization_mean_nonzero",
        "train/advantages_norm_mean",
        healthy="−10⁻⁵ to 10⁻⁵",
        causes="As above.",
        remedy="As above.",
        below=-0.1,
    ),
    Alert(
        "warn/advantages_norm_extreme",
        "train/advantages_norm_max_abs",
        healthy="3 to 20",
        causes="A few rewards are far larger than all others and set the scale.",
        remedy="Clip or transform rewards; look for a broken environment.",
        above=100,
    ),
    Alert(
        "warn/explained_variance_low",
        "train/explained_variance",
        healthy="0.5 to 1 once training is under way",
        causes="The critic explains little of the returns: too small, too slow, "
        "without what it needs to see, or returns are mostly noise.",
        remedy="Raise the critic's capacity or learning rate, add a memory, normalise "
        "returns, raise `gae_lambda` last. Early in training it is no fault.",
        below=0.3,
        phases=3,
        where=("train/target_return_variation", 0.01),
    ),
    Alert(
        "warn/value_target_raw_outlier_frac",
        "train/value_target_below_frac",
        healthy="0",
        causes="Returns are lower than the lowest atom, which stands for all of them.",
        remedy="Lower `Categorical.v_min`, or scale rewards.",
        above=0.01,
    ),
    Alert(
        "warn/value_target_raw_outlier_frac",
        "train/value_target_above_frac",
        healthy="0",
        causes="Returns are higher than the highest atom.",
        remedy="Raise `Categorical.v_max`, or scale rewards.",
        above=0.01,
    ),
    Alert(
        "warn/twin_critics_gradient_imbalance",
        "train/critics_grad_ratio",
        healthy="0.2 to 5",
        causes="The first of two critics dominates what the gradient bound leaves.",
        remedy="Look whether one of them diverges (`train/critic*_grad_norm`); lower "
        "the learning rate, clip values.",
        above=100,
    ),
    Alert(
        "warn/twin_critics_gradient_imbalance",
        "train/critics_grad_ratio",
        healthy="0.2 to 5",
        causes="The second of two critics dominates.",
        remedy="As above.",
        below=0.01,
    ),
    Alert(
        "warn/critic*_vanishing_gradients",
        "train/critic*_grad_norm",
        healthy="above 10⁻⁵",
        causes="That critic learns nothing: its loss is flat, has no weight, or is 0.",
        remedy="Look at `train/vf_coef`, at dead activations, and at targets outside "
        "of the support of atoms.",
        below=VANISHING,
    ),
    Alert(
        "warn/optimizer_lr_floor_hit",
        "train/learning_rate_held",
        healthy="0, unless the floor is meant to end the schedule",
        causes="The schedule of the learning rate would go below its floor.",
        remedy="Lower `Bounded.floor`, or let the schedule end higher.",
        above=0,
    ),
    Alert(
        "warn/cvar_tail_samples_low",
        "train/cvar_tail_size",
        healthy="at least 30",
        causes="Too few samples of the worst share α: their mean is mostly noise.",
        remedy="Raise `num_envs · num_steps`, or α.",
        below=MIN_TAIL,
    ),
)


INTRODUCTION = """\
# Monitoring

Signs of trouble, looked for in every member after every phase of updates. The console
says so when an alert first begins for a member; while it lasts, `warn/*` in the log is
1, or the number of members concerned. Alerts never steer training. What there is to
know of one is printed by `python -m ppo_jax.alerts warn/NAME`.
Generated: `python -m ppo_jax.alerts > docs/monitoring.md`.
"""
HEADER = ("metric", "active when", "healthy", "likely causes", "what to do")


def document() -> str:
    """The table as Markdown, a section per alert."""
    parts = [INTRODUCTION]
    for name in dict.fromkeys(alert.name for alert in ALERTS):
        cells = [
            (f"`{row.metric}`", row.when, row.healthy, row.causes, row.remedy)
            for row in ALERTS
            if row.name == name
        ]
        parts.append(f"\n## `{name}`\n\n{tables.markdown(HEADER, cells)}")
    return "".join(parts)


def page(name: str) -> str:
    """What there is to know of an alert, a paragraph for each of its limits.

    Args:
        name: As it is logged, such as `warn/critic1_vanishing_gradients`.

    Raises:
        UserError: If there is no such alert.
    """
    rows = [row for row in ALERTS if match(row.name, name) is not None]
    if not rows:
        known = dict.fromkeys(row.name for row in ALERTS)
        raise UserError(suggestion.unknown("alert", name, known))
    return "\n".join(
        f"{name}: {row.metric} {row.when}; healthy: {row.healthy}\n"
        f"  {row.causes}\n  {row.remedy}\n"
        for row in rows
    )
