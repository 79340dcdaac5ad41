"""Signs of trouble in the metrics of a run, with their causes and remedies.

The host checks alerts after every phase; they never steer training.
The command `alerts` prints the table, or all about one alert.
"""

import operator
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple

from ppo_jax.component import suggestion
from ppo_jax.errors import UserError
from ppo_jax.host.process import tables
from ppo_jax.losses import MIN_TAIL
from ppo_jax.metrics.reductions import VANISHING
from ppo_jax.metrics.rows import match


class Limit(NamedTuple):
    """A number that a metric passes while an alert is active."""

    metric: str
    """The metric, if it is another than the alert's own; otherwise empty."""
    passes: Callable[[float, float], bool]
    number: float


class Alert(NamedTuple):
    """A row of the table: values of a metric that are a sign of trouble."""

    name: str
    """Name of the alert, with the metric's `*` if that has one."""
    metric: str
    when: str
    """Condition under which the alert is active, in words."""
    healthy: str
    causes: str
    remedy: str
    limits: tuple[Limit, ...]
    """Limits of the alert, which is active while a member passes all of them."""
    phases: int
    """Number of phases in a row, with all limits passed, after which it is active."""

    def concerns(self, member: Mapping[str, float], metric: str) -> bool:
        """Returns whether the metrics of a member pass all limits of the alert."""
        return all(
            limit.passes(member[limit.metric or metric], limit.number)
            for limit in self.limits
        )


LIMIT = re.compile(r"(?:`(\S+)` )?([<>]) ([^\s,]+)")
PASSES = {"<": operator.lt, ">": operator.gt}
PHASES = re.compile(r"(\d+) phases in a row")
ABOVE = "As above"
"""Words by which a row refers to the row before it."""


def _alert(text: str) -> Alert:
    """Parses a row from its text, of the form of `page`.

    A line that is indented more deeply continues the one above.
    """
    head, causes, remedy = re.sub(r"\n {4}", " ", text).split("\n  ")
    active, healthy = head.split("; healthy: ")
    name, metric, when = active.replace(": ", " ", 1).split(" ", maxsplit=2)
    limits = tuple(
        Limit(other, PASSES[sign], float(number))
        for other, sign, number in LIMIT.findall(when)
    )
    phases = max(map(int, PHASES.findall(when)), default=1)
    return Alert(name, metric, when, healthy, causes, remedy, limits, phases)


TABLE = f"""\
warn/empty_epoch: warn/empty_epoch > 0; healthy: 0
  No step of a rollout had weight: all masked, held out or quarantined.
  Look at the weights that the environment reports and at `error/quarantined_steps`.
    Nothing was learned from that rollout.
warn/skipped_steps: error/skipped_steps > 0; healthy: 0
  Losses, gradients or log-ratios that are not finite; `error/*` says which.
  Lower the learning rate, bound the gradients, normalise observations and returns.
warn/quarantined_steps: error/quarantined_steps > 0; healthy: 0
  The environment gave observations, rewards, weights or states that are not finite,
    or the network did.
  Run `ppo_jax.envs.check` on the environment.
warn/log_ratio_clamp: train/log_ratio_clamp_frac > 0.01; healthy: below 0.001
  The policy moved so far in an update that ratios are meaningless.
  Lower the learning rate or the number of epochs; use `early_stop`.
warn/log_ratio_severe_instability: train/log_ratio_max_abs > 10;
    healthy: below 5, mostly below 1
  As above, for single examples: actions that became 20 000 times more or less likely.
  As above; keep the deviations of real actions from collapsing.
warn/kl_over_target: train/kl_over_target > 2; healthy: 0.2 to 1.5
  Steps are too large for the target: the update is stopped too late.
  Lower the learning rate, or the `absolute` of `early_stop`.
warn/entropy_collapse: train/policy_entropy > -1e-06 and < 0.01;
    healthy: above 0.01, falling slowly; below 0 for real actions only, of which it says
    nothing
  The policy has become deterministic and does not explore any more.
  Raise the coefficient of the entropy, or use `AdaptiveEntropy`. At the end of training
    of a solved task it is no fault.
warn/bc_dominates: train/policy_bc_vs_ppo_ratio > 0.8; healthy: below 0.5
  Imitation outweighs the surrogate: the policy repeats itself.
  Lower `AdvantageWeighted.coef` or let its schedule decay.
warn/normalization_mean_nonzero: train/advantages_norm_mean > 0.1;
    healthy: −10⁻⁵ to 10⁻⁵
  The standardisation does not centre what is learned from.
  Check a standardisation of your own, and its weights.
warn/normalization_mean_nonzero: train/advantages_norm_mean < -0.1;
    healthy: −10⁻⁵ to 10⁻⁵
  As above.
  As above.
warn/advantages_norm_extreme: train/advantages_norm_max_abs > 100; healthy: 3 to 20
  A few rewards are far larger than all others and set the scale. It takes more than
    10⁴ steps to see: of n that are scaled together, none is beyond √n.
  Clip or transform rewards; look for a broken environment.
warn/gae_clipped: train/gae_clip_count > 0; healthy: 0
  Rewards or values are so large that errors or advantages were clipped to ±10⁶ rewards:
    what is learned is biased.
  Scale rewards down; look whether the critics diverge (`train/value_pred_mean`).
warn/explained_variance_low: train/explained_variance < 0.3, 3 phases in a row,
    where `train/target_return_variation` > 0.01;
    healthy: 0.5 to 1 once training is under way
  The critic explains little of the returns: too small, too slow, without what it needs
    to see, or returns are mostly noise.
  Raise the critic's capacity or learning rate, add a memory, normalise returns, raise
    `gae_lambda` last. Early in training it is no fault.
warn/value_target_raw_outlier_frac: train/value_target_below_frac > 0.01; healthy: 0
  Returns are lower than the lowest atom, which stands for all of them.
  Lower `Categorical.v_min`, or scale rewards.
warn/value_target_raw_outlier_frac: train/value_target_above_frac > 0.01; healthy: 0
  Returns are higher than the highest atom.
  Raise `Categorical.v_max`, or scale rewards.
warn/twin_critics_gradient_imbalance: train/critics_grad_ratio > 100; healthy: 0.2 to 5
  The first of two critics dominates what the gradient bound leaves.
  Look whether one of them diverges (`train/critic*_grad_norm`); lower the learning
    rate, clip values.
warn/twin_critics_gradient_imbalance: train/critics_grad_ratio < 0.01; healthy: 0.2 to 5
  The second of two critics dominates.
  As above.
warn/critic*_vanishing_gradients: train/critic*_grad_norm < {VANISHING:g};
    healthy: above 10⁻⁵
  That critic learns nothing: its loss is flat, has no weight, or is 0.
  Look at `train/vf_coef`, at dead activations, and at targets outside of the support of
    atoms.
warn/optimizer_lr_floor_hit: train/learning_rate_held > 0;
    healthy: 0, unless the floor is meant to end the schedule
  The schedule of the learning rate would go below its floor.
  Lower `Bounded.floor`, or let the schedule end higher.
warn/cvar_tail_samples_low: train/cvar_tail_size < {MIN_TAIL}; healthy: at least 30
  Too few samples of the worst share α: their mean is mostly noise.
  Raise `num_envs · num_steps`, or α.
warn/cvar_limit_missed: train/cvar_violation > 0,
    where `train/cvar_lambda_share` > 0.999; healthy: 0
  The multiplier of a constraint is as large as it may be, and the limit is missed all
    the same: it weighs too little beside rewards, or nobody can keep it.
  Raise `CVaRConstraint.max_dual`, which is in rewards for a unit of the quantity, or
    lower the limit.
"""
ALERTS = tuple(map(_alert, re.split(r"\n(?! )", TABLE.strip())))


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
    """Returns the table as Markdown, a section per alert."""
    parts = [INTRODUCTION]
    for name in dict.fromkeys(alert.name for alert in ALERTS):
        cells = [
            (f"`{row.metric}`", row.when, row.healthy, row.causes, row.remedy)
            for row in ALERTS
            if row.name == name
        ]
        parts.append(f"\n## `{name}`\n\n{tables.markdown(HEADER, cells)}")
    return "".join(parts)


def advised(name: str) -> list[Alert]:
    """Returns the rows of an alert; references to the row before are written out.

    Args:
        name: Name of the alert in the log, such as `warn/critic1_vanishing_gradients`.

    >>> [row.remedy for row in advised("warn/log_ratio_severe_instability")]
    ['Lower the learning rate or the number of epochs; use `early_stop`; keep the \
deviations of real actions from collapsing.']
    """
    return [
        row._replace(
            causes=row.causes.replace(ABOVE, before.causes.removesuffix("."), 1),
            remedy=row.remedy.replace(ABOVE, before.remedy.removesuffix("."), 1),
        )
        for before, row in pairwise(ALERTS[:1] + ALERTS)
        if match(row.name, name) is not None
    ]


def page(name: str) -> str:
    """Returns all about an alert, a paragraph for each of its rows.

    Raises:
        UserError: If there is no such alert.
    """
    rows = advised(name)
    if not rows:
        known = dict.fromkeys(row.name for row in ALERTS)
        raise UserError(suggestion.unknown("alert", name, known))
    return "\n".join(
        f"{name}: {row.metric} {row.when}; healthy: {row.healthy}\n"
        f"  {row.causes}\n  {row.remedy}\n"
        for row in rows
    )
