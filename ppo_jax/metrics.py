"""Every number that a run logs: what it is, and what a phase of updates says of it.

`python -m ppo_jax.metrics` prints the table as `docs/metrics.md`.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

VANISHING = 1e-8
"""A gradient of a smaller norm teaches nothing, and is no divisor."""


class Reduction(NamedTuple):
    """One number of the values `[n]` that the updates of a phase gave."""

    text: str
    of: Callable[..., float]


def _known(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, np.float64)
    return values[~np.isnan(values)]


def _mean(values: np.ndarray) -> float:
    known = _known(values)
    return float(known.mean()) if known.size else math.nan


def _largest(values: np.ndarray) -> float:
    known = _known(values)
    return float(known.max()) if known.size else math.nan


def _total(values: np.ndarray) -> float:
    return float(_known(values).sum())


def _quotient(total: np.ndarray, count: np.ndarray) -> float:
    return _total(total) / _total(count) if _total(count) else math.nan


def _deviation(squares: np.ndarray, total: np.ndarray, count: np.ndarray) -> float:
    mean = _quotient(total, count)
    return math.sqrt(max(_quotient(squares, count) - mean**2, 0.0))


def _any(count: np.ndarray) -> float:
    return float(_total(count) > 0)


def _product(each: np.ndarray, count: np.ndarray) -> float:
    return _total(np.asarray(each, np.float64) * np.asarray(count, np.float64))


def _steps_with(each: np.ndarray, count: np.ndarray) -> float:
    return _product(np.asarray(each) > 0, count)


def _ratio(above: np.ndarray, below: np.ndarray) -> float:
    dividend, divisor = _mean(above), _mean(below)
    return dividend / divisor if min(dividend, divisor) > VANISHING else math.nan


MEAN = Reduction("mean", _mean)
SUM = Reduction("sum", _total)
LARGEST = Reduction("largest", _largest)
QUOTIENT = Reduction("sum / number", _quotient)
DEVIATION = Reduction("deviation of all", _deviation)
ANY = Reduction("1 or 0", _any)
RATIO = Reduction("ratio of means", _ratio)
PRODUCT = Reduction("sum over steps", _product)
STEPS_WITH = Reduction("steps with any", _steps_with)
HOST = Reduction("once", _mean)


class Metric(NamedTuple):
    """A row: what a metric is."""

    name: str
    """With a `*` for what varies: a group, a layer, a critic."""
    unit: str
    meaning: str
    reduction: Reduction = MEAN
    sources: tuple[str, ...] = ()
    """What it is computed from; by default, from what has its name."""
    needs: str = ""
    """What an experiment needs to have it; nothing: every run has it."""
    null: str = ""
    """When it is unavailable, NaN or null; nothing: never."""


NO_STEP = "no optimiser step was taken"
NO_WEIGHT = "no step of the rollout has weight"
NO_EPISODE = "no episode ended"
NO_COST = "no finite cost"
PAID = ("episodes/return_sum", "episodes/count")
SQUARES = "episodes/return_square_sum"
LIVED = ("episodes/length_sum", "episodes/count")
COSTS = ("costs/sum", "costs/count")
NORM = "gradient"
EVALUATED = "an evaluation in this phase"

ROLLOUT = (
    Metric(
        *("rollout/ep_rew_mean", "reward", "Return of the episodes that ended."),
        *(QUOTIENT, PAID),
        null=NO_EPISODE,
    ),
    Metric(
        *("rollout/ep_rew_std", "reward", "Deviation of those returns."),
        *(DEVIATION, (SQUARES, *PAID)),
        null=NO_EPISODE,
    ),
    Metric(
        *("rollout/ep_len_mean", "steps", "Length of the episodes that ended."),
        *(QUOTIENT, LIVED),
        null=NO_EPISODE,
    ),
    Metric(
        *("rollout/episodes", "episodes", "Episodes that ended with a finite return."),
        *(SUM, ("episodes/count",)),
    ),
    Metric(
        *("rollout/cost_mean", "cost", "Mean of the finite costs of steps."),
        *(QUOTIENT, COSTS),
        null=NO_COST,
    ),
    Metric(
        *("rollout/cost_median", "cost", "Mean over updates of the costs' median."),
        *(MEAN, ("costs/median",)),
        null=NO_COST,
    ),
    Metric(
        *("rollout/cost_invalid", "steps", "Steps whose cost is not finite."),
        *(SUM, ("costs/invalid",)),
    ),
    Metric(
        *("rollout/cost_available", "", "Whether there was a finite cost."),
        *(ANY, ("costs/count",)),
    ),
)
POLICY = (
    Metric(
        *("train/policy_loss", "", "Clipped surrogate; below 0 is better than before."),
        needs="`Surrogate`",
        null=NO_STEP,
    ),
    Metric(
        *("train/clip_fraction", "share", "Examples whose ratio left the clip range."),
        needs="`Surrogate`",
        null=NO_STEP,
    ),
    Metric(
        *("train/clip_range", "", "ε of the surrogate in force."),
        needs="`Surrogate`",
        null=NO_STEP,
    ),
    Metric(
        *("train/policy_entropy", "nats"),
        "Entropy of the policy; that of real actions is differential, may be negative.",
        needs="`Entropy` or `AdaptiveEntropy`",
        null=NO_STEP,
    ),
    Metric(
        *("train/ent_coef", "", "Coefficient of the entropy bonus."),
        needs="`AdaptiveEntropy`",
    ),
    Metric(
        *("train/policy_bc_loss", "", "Loss of imitation, its coefficient included."),
        needs="`AdvantageWeighted`",
        null=NO_STEP,
    ),
    Metric(
        *("train/policy_bc_vs_ppo_ratio", "share"),
        "|imitation| / (|imitation| + |surrogate|), per example at a ratio of 1.",
        needs="`AdvantageWeighted`",
        null=NO_STEP,
    ),
    Metric(
        *("train/bc_weight", "", "exp(advantage / temperature), bounded."),
        needs="`AdvantageWeighted`",
        null=NO_STEP,
    ),
    Metric(
        *("train/imitation_loss", "", "−ln π of demonstrations, with its coefficient."),
        needs="`Imitation`",
        null=NO_STEP,
    ),
    Metric(
        *("train/approx_kl", "nats", "KL(π_old ‖ π_new), estimator k3."),
        null=NO_STEP,
    ),
    Metric(
        *("train/approx_kl_k1", "nats", "The same by k1, the mean of −ln ratio."),
        null=NO_STEP,
    ),
    Metric(
        *("train/target_kl", "nats", "Divergence that a step should not exceed."),
        needs="`early_stop`",
    ),
    Metric(
        *("train/kl_over_target", "", "`train/approx_kl` / `train/target_kl`."),
        *(RATIO, ("train/approx_kl", "train/target_kl")),
        needs="`early_stop`",
        null=f"{NO_STEP}, or the divergence is below {VANISHING}",
    ),
    Metric(
        *("train/kl_early_stop", "share", "Updates that were ended early."),
        needs="`early_stop`",
    ),
    Metric(
        *("train/kl_penalty_beta", "", "Coefficient of the penalty on the divergence."),
        needs="`KlPenalty`",
    ),
    Metric(
        *("train/ratio_mean", "", "π_new(a) / π_old(a), clamped; near 1."),
        null=NO_STEP,
    ),
    Metric(
        *("train/ratio_var", "", "Mean square of that ratio − 1."),
        null=NO_STEP,
    ),
    Metric(
        *("train/log_ratio_max_abs", "nats", "Largest |ln ratio| of an update."),
        LARGEST,
        null=NO_STEP,
    ),
    Metric(
        *("train/log_ratio_extreme_fraction", "share", "Examples with |ln ratio| > 10"),
        null=NO_STEP,
    ),
    Metric(
        *("train/log_ratio_clamp_frac", "share", "Examples with |ln ratio| > 20"),
        null=NO_STEP,
    ),
    Metric(
        *("train/advantages_mean_raw", "reward", "Mean advantage before it is scaled."),
        null=NO_WEIGHT,
    ),
    Metric(
        *("train/advantages_std_raw", "reward", "Deviation of those advantages."),
        null=NO_WEIGHT,
    ),
    Metric(
        *("train/advantages_norm_mean", "", "Mean of the scaled advantages; 0."),
        needs="`standardization`",
        null=NO_WEIGHT,
    ),
    Metric(
        *("train/advantages_norm_std", "", "Their deviation; 1, or 0 without signal."),
        needs="`standardization`",
        null=NO_WEIGHT,
    ),
    Metric(
        *("train/advantages_norm_max_abs", "", "The largest of their sizes."),
        LARGEST,
        needs="`standardization`",
        null=NO_WEIGHT,
    ),
    Metric(
        *("train/advantages_zero_std", "share"),
        "Steps in groups whose advantages do not vary beyond rounding; set to 0.",
        needs="`standardization`",
        null=NO_WEIGHT,
    ),
    Metric(
        *("train/gae_clip_count", "steps", "Errors and advantages clipped to ±10⁶."),
        SUM,
    ),
)
VALUE = (
    Metric(
        *("train/value_loss", "", "Loss of the critics, their mean, clipping included"),
        needs="`Value`",
        null=NO_STEP,
    ),
    Metric(
        *("train/vf_coef", "", "Coefficient of the value loss in force."),
        needs="`Value`",
        null=NO_STEP,
    ),
    Metric(
        *("train/value_clip_fraction", "share", "Predictions that clipping held back."),
        needs="`Value` with `clip_eps`",
        null=NO_STEP,
    ),
    Metric(
        *("train/value_pred_mean", "reward", "Mean value when acting."),
        null=NO_WEIGHT,
    ),
    Metric(
        *("train/target_return_mean", "reward", "Mean λ-return."),
        null=NO_WEIGHT,
    ),
    Metric(
        *("train/explained_variance", "", "1 − Var[target − value] / Var[target]."),
        null="targets do not vary",
    ),
    Metric(
        *("train/explained_variance_holdout", ""),
        "The same over environments that nothing is learned from.",
        needs="`holdout_envs`",
        null="targets do not vary",
    ),
    Metric(
        *("train/explained_variance_after", ""),
        "`train/explained_variance` once the critics have learned from those targets.",
        needs="`appraisal`",
        null="targets do not vary",
    ),
    Metric(
        *("train/explained_variance_holdout_after", ""),
        "The same over environments that nothing is learned from.",
        needs="`appraisal` and `holdout_envs`",
        null="targets do not vary",
    ),
    Metric(
        *("train/ev/mean_grouped_weighted", ""),
        "`train/explained_variance` of each group, averaged by their weight.",
        needs="`appraisal`",
        null="targets vary in no group",
    ),
    Metric(
        *("train/ev/mean_grouped_unweighted", "", "Plain mean over the groups."),
        needs="`appraisal`",
        null="targets vary in no group",
    ),
    Metric(
        *("train/ev/median_grouped", "", "Their median."),
        needs="`appraisal`",
        null="targets vary in no group",
    ),
    Metric(
        *("train/ev/mean_grouped_weighted_after", ""),
        "The mean by weight once the critics have learned from those targets.",
        needs="`appraisal`",
        null="targets vary in no group",
    ),
    Metric(
        *("train/ev/mean_grouped_unweighted_after", "", "Plain mean, likewise."),
        needs="`appraisal`",
        null="targets vary in no group",
    ),
    Metric(
        *("train/ev/median_grouped_after", "", "Median, likewise."),
        needs="`appraisal`",
        null="targets vary in no group",
    ),
    Metric(
        *("train/return_scale_mean", "reward", "Mean of the return scale; 0 without."),
    ),
    Metric(
        *("train/return_scale_std", "reward", "Unit of the return scale; 1 without."),
    ),
    Metric(
        *("train/value_target_below_frac", "share", "Targets below the lowest atom."),
        needs="`Categorical` critics",
        null=NO_WEIGHT,
    ),
    Metric(
        *("train/value_target_above_frac", "share", "Targets above the highest atom."),
        needs="`Categorical` critics",
        null=NO_WEIGHT,
    ),
)
TAIL = "`CVaR` or `CVaRConstraint`"
RISK = (
    Metric(
        *("train/cvar_empirical", "reward", "Mean of the worst share α of outcomes."),
        needs=TAIL,
    ),
    Metric(
        *("train/cvar_var", "reward", "The best of them: value at risk."), needs=TAIL
    ),
    Metric(*("train/cvar_tail_size", "samples", "How many they are."), needs=TAIL),
    Metric(
        *("train/cvar_coef", "", "Weight of the tail against the mean."), needs=TAIL
    ),
    Metric(
        *("train/cvar_loss", "", "Surrogate of the tail, before its weight."),
        needs=TAIL,
        null=NO_STEP,
    ),
    Metric(
        *("train/cvar_lambda", "", "Multiplier of the constraint."),
        needs="`CVaRConstraint`",
    ),
    Metric(
        *("train/cvar_gap", "", "(limit − CVaR) / deviation of advantages."),
        needs="`CVaRConstraint`",
    ),
    Metric(
        *("train/cvar_violation", "reward", "max(0, limit − CVaR)."),
        needs="`CVaRConstraint`",
    ),
    Metric(
        *("train/cvar_predicted", "reward", "CVaR that the critic predicts."),
        needs="`PredictedCVaR`",
        null=NO_STEP,
    ),
)
ATTACKED, SMOOTHED = "`adversary`", "`RobustKL`"
TAKEN = "train/n_minibatches_done"
ADVERSARY = (
    Metric(
        *("sa_ppo/num_adversarial", "examples", "Attacked ones of an optimiser step."),
        needs=ATTACKED,
        null=NO_STEP,
    ),
    Metric(
        *("sa_ppo/num_clean", "examples", "Those that were not attacked."),
        needs=ATTACKED,
        null=NO_STEP,
    ),
    Metric(
        *("sa_ppo/adversarial_samples", "examples", "Attacked ones, each time again."),
        *(PRODUCT, ("sa_ppo/num_adversarial", TAKEN)),
        needs=ATTACKED,
    ),
    Metric(
        *("sa_ppo/clean_samples", "examples", "Others, each time again."),
        *(PRODUCT, ("sa_ppo/num_clean", TAKEN)),
        needs=ATTACKED,
    ),
    Metric(
        *("sa_ppo/attack_count", "steps", "Optimiser steps that saw an attack."),
        *(STEPS_WITH, ("sa_ppo/num_adversarial", TAKEN)),
        needs=ATTACKED,
    ),
    Metric(
        *("sa_ppo/adversarial_ratio", "share", "Attacked examples, by their weight."),
        needs=ATTACKED,
        null=NO_STEP,
    ),
    Metric(
        *("sa_ppo/current_epsilon", "observation", "ε in force."),
        needs=ATTACKED,
        null=NO_STEP,
    ),
    Metric(
        *("sa_ppo/avg_perturbation_norm", "observation"),
        "Size of a perturbation, in the attack's norm; 0 without attacked examples.",
        needs=ATTACKED,
        null=NO_STEP,
    ),
    Metric(
        *("sa_ppo/boundary_fraction", "share"),
        "Components of attacked observations that moved by ε.",
        needs=ATTACKED,
        null=NO_STEP,
    ),
    Metric(
        *("sa_ppo/attack_success", "", "By how much an attack raised its target."),
        needs=ATTACKED,
        null=NO_STEP,
    ),
    Metric(
        *("sa_ppo/kl_divergence", "nats"),
        "KL(π(·|s) ‖ π(·|ŝ)) in closed form, mean over attacked examples.",
        needs=SMOOTHED,
        null=NO_STEP,
    ),
    Metric(
        *("sa_ppo/robust_kl_penalty", "", "Its share of the loss."),
        needs=SMOOTHED,
        null=NO_STEP,
    ),
)
STEPS = (
    Metric(*("train/loss", "", "The whole objective."), null=NO_STEP),
    Metric("train/learning_rate", "", "Step size of the optimiser."),
    Metric("train/n_minibatches_done", "steps", "Optimiser steps of an update."),
    Metric("train/n_epochs_completed", "epochs", "Epochs with a step, of an update."),
    Metric(
        *("train/grad_norm_pre_clip", NORM, "Global norm of the raw gradients."),
        null=NO_STEP,
    ),
    Metric(
        *("train/grad_norm_post_clip", NORM, "That norm once scaled and clipped."),
        null=NO_STEP,
    ),
    Metric(
        *("train/grad_norm/actor_mlp", NORM, "Of the actor's torso, raw."),
        null=NO_STEP,
    ),
    Metric(
        *("train/grad_norm/actor_lstm", NORM, "Of the actor's LSTM or GRU."),
        needs="a memory",
        null=NO_STEP,
    ),
    Metric(
        *("train/grad_norm/policy_head", NORM, "Of the policy's last layer."),
        null=NO_STEP,
    ),
    Metric(
        *("train/grad_norm/log_std", NORM, "Of the deviations of real actions."),
        needs="real actions",
        null=NO_STEP,
    ),
    Metric(
        *("train/grad_norm/critic_mlp", NORM, "Of the critics' torsos."),
        null=NO_STEP,
    ),
    Metric(
        *("train/grad_norm/critic_lstm", NORM, "Of the critics' LSTM or GRU."),
        needs="a memory",
        null=NO_STEP,
    ),
    Metric(
        *("train/grad_norm/head*", NORM),
        "Of critic 1, 2, …: all that is its own, but for its torso. Groups are "
        "disjoint: their squares add up to that of `train/grad_norm_pre_clip`.",
        null=NO_STEP,
    ),
    Metric(
        *("train/grad_norm/other", NORM, "Of parameters that fit no group."),
        needs="a network of your own",
        null=NO_STEP,
    ),
    Metric(
        *("train/critic*_grad_norm", NORM),
        "Of critic 1, 2, …: all that is its own, torso included.",
        null=NO_STEP,
    ),
    Metric(
        *("train/critics_grad_ratio", ""),
        "`train/critic1_grad_norm` / `train/critic2_grad_norm`.",
        *(RATIO, ("train/critic1_grad_norm", "train/critic2_grad_norm")),
        needs="two critics",
        null=f"{NO_STEP}, or a norm is below {VANISHING}",
    ),
)
MEMORY = (
    Metric(
        *("lstm/*_norm", "", "Norm of a layer's carry, mean over environments."),
        needs="a memory",
    ),
    Metric(*("lstm/*_mean", "", "Mean of its components."), needs="a memory"),
    Metric(*("lstm/*_std", "", "Deviation of its components."), needs="a memory"),
)
SEEN = "`obs_clip`"
OBSERVATIONS = (
    Metric(
        *("debug/vecnormalize_mean_drift", "deviations"),
        "Change of the observations' means in an update, mean of the sizes.",
        needs=SEEN,
    ),
    Metric(
        *("debug/vecnormalize_std_drift", "deviations"),
        "Change of their deviations.",
        needs=SEEN,
    ),
)
SCALED, GATED = "`vgs`", "an optimiser with utilities"
OPTIMIZER = (
    Metric(
        *("train/vgs_scaling_factor_applied", "", "Factor of the last step."),
        needs=SCALED,
    ),
    Metric(*("vgs/scaling_factor", "", "Factor of the next step."), needs=SCALED),
    Metric(
        *("vgs/normalized_variance", "", "Variance over squared mean, all leaves."),
        needs=SCALED,
    ),
    Metric(
        *("vgs/stochastic_var_*", "", "Percentiles and mean of it over leaves."),
        needs=SCALED,
    ),
    Metric(*("vgs/capped", "share", "Updates with the variance capped."), needs=SCALED),
    Metric(*("vgs/warmup_active", "share", "Updates not scaled yet."), needs=SCALED),
    Metric(
        *("vgs/skipped_leaves", "leaves", "Statistics that were not finite."),
        needs=SCALED,
    ),
    Metric(
        *("vgs/step_count", "steps", "Steps that the statistics saw.", LARGEST),
        needs=SCALED,
    ),
    Metric(*("upgd/utility_*", "", "Least, greatest and range."), needs=GATED),
    Metric(*("upgd/gate_mean", "", "Mean gate; a gate of 1 is open."), needs=GATED),
    Metric(*("upgd/gate_std", "", "Deviation of the gates."), needs=GATED),
    Metric(
        *("upgd/gate_saturated_frac", "share", "Weights within 1 % of the extremes."),
        needs=GATED,
    ),
    Metric(*("upgd/noise_std_mean", "", "Deviation of the noise."), needs=GATED),
    Metric(
        *("upgd/noise_to_signal", "", "Norm of the noise over the direction's."),
        needs=GATED,
    ),
    Metric(*("upgd/update_norm", "", "Norm of the last update."), needs=GATED),
)
ERRORS = (
    Metric(
        *("error/quarantined_steps", "steps", "Environment steps not finite."),
        SUM,
    ),
    Metric(
        *("error/skipped_steps", "steps", "Optimiser steps not taken for an error."),
        SUM,
    ),
    Metric("error/nonfinite_loss", "steps", "Those with such a loss.", SUM),
    Metric("error/nonfinite_grad", "steps", "Those with such gradients.", SUM),
    Metric("error/log_ratio_nan_count", "examples", "Whose ln ratio is NaN.", SUM),
    Metric("error/log_ratio_inf_count", "examples", "Whose ln ratio is ±∞.", SUM),
    Metric(
        *("error/failure_streak", "updates", "In a row, without one step for an error"),
        LARGEST,
    ),
    Metric("warn/*", "", "1 while an alert is active; see monitoring.", LARGEST),
)
HOSTED = (
    Metric("eval/mean_reward", "reward", "Mean return.", HOST, needs=EVALUATED),
    Metric("eval/std_reward", "reward", "Deviation of returns.", HOST, needs=EVALUATED),
    Metric("eval/median_reward", "reward", "Their median.", HOST, needs=EVALUATED),
    Metric("eval/q25_reward", "reward", "Lower quartile.", HOST, needs=EVALUATED),
    Metric("eval/q75_reward", "reward", "Upper quartile.", HOST, needs=EVALUATED),
    Metric(
        *("eval/cvar_5_reward", "reward", "Mean of the worst 5 %.", HOST),
        needs=EVALUATED,
    ),
    Metric("eval/episodes", "episodes", "How many.", HOST, needs=EVALUATED),
    Metric(
        *("eval/unfinished_episodes", "episodes", "Given up at their limit.", HOST),
        needs=EVALUATED,
    ),
    Metric("time/fps", "steps / s", "Environment steps per second.", HOST),
    Metric("time/iterations", "updates", "Updates done.", HOST),
    Metric("time/total_timesteps", "steps", "Environment steps done.", HOST),
    Metric("time/time_elapsed", "s", "Since the run began.", HOST),
)
EVALUATIONS = tuple(row.name for row in HOSTED if row.name.endswith("_reward"))
"""What an evaluation says of the returns of its episodes."""

NOBODY = "it is so for all members"
SEARCHED = "`pbt`, in a generation"
MANY = "more than one member"
POPULATION = (
    Metric("q25/*", "", "Lower quartile over members.", HOST, needs=MANY, null=NOBODY),
    Metric("q75/*", "", "Upper quartile over members.", HOST, needs=MANY, null=NOBODY),
    Metric(
        *("best/*", "", "That of the fittest member.", HOST),
        needs=f"{MANY}, after an evaluation",
        null="it is so for that member",
    ),
    Metric(
        *("each/*", "", "That of every member, by its number.", HOST),
        needs=f"{MANY}, {EVALUATED}",
        null="its parameters are not finite",
    ),
    Metric("pbt/population_size", "members", "How many.", HOST, needs=SEARCHED),
    Metric("pbt/ready_members", "members", "Who may take part.", HOST, needs=SEARCHED),
    Metric(
        *("pbt/mean_performance", "", "Mean finite fitness; 0: there is none.", HOST),
        needs=SEARCHED,
    ),
    Metric("pbt/std_performance", "", "Its deviation.", HOST, needs=SEARCHED),
    Metric("pbt/min_performance", "", "The least.", HOST, needs=SEARCHED),
    Metric("pbt/max_performance", "", "The greatest.", HOST, needs=SEARCHED),
    Metric(
        *("pbt/exploitation_count", "copies", "Of members, so far.", HOST),
        needs=SEARCHED,
    ),
    Metric(
        *("pbt/exploration_count", "moves", "Of members' numbers, so far.", HOST),
        needs=SEARCHED,
    ),
    Metric(
        *("pbt/failed_ready_checks", "rounds", "In a row, with too few ready.", HOST),
        needs=SEARCHED,
    ),
    Metric(
        *("pbt/fallback_used", "", "1 if it went ahead with few ready members.", HOST),
        needs=SEARCHED,
    ),
    Metric(
        *("pbt/nonfinite_members", "members", "Broken ones, before.", HOST),
        needs=SEARCHED,
    ),
    Metric(
        *("pbt/recovered_members", "members", "Of these, healed by a copy.", HOST),
        needs=SEARCHED,
    ),
    Metric(
        *("pbt/carries_cleared", "members", "Whose memory was emptied.", HOST),
        needs=SEARCHED,
    ),
    Metric(
        *("pbt/performance/*", "", "Fitness of each member.", HOST),
        needs=SEARCHED,
        null="the member is broken",
    ),
    Metric(
        *("pbt/parent/*", "", "Whom it continues; itself, if it did not copy.", HOST),
        needs=SEARCHED,
    ),
    Metric(
        *("pbt/*", "", "Searched numbers of each member from then on.", HOST),
        needs=SEARCHED,
    ),
)
SECTIONS = {
    "Rollouts": ROLLOUT,
    "Policy": POLICY,
    "Value": VALUE,
    "Risk": RISK,
    "Adversary": ADVERSARY,
    "Steps and gradients": STEPS,
    "Memory": MEMORY,
    "Observations": OBSERVATIONS,
    "Optimiser": OPTIMIZER,
    "Errors and alerts": ERRORS,
    "Evaluation and time": HOSTED,
    "Populations": POPULATION,
}
METRICS = tuple(row for rows in SECTIONS.values() for row in rows)


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


def row_of(name: str) -> Metric | None:
    """The row of a metric, if it has one."""
    return next((row for row in METRICS if match(row.name, name) is not None), None)


def summarize(history: dict[str, np.ndarray]) -> dict[str, float]:
    """What a phase says, a number per metric.

    Args:
        history: What every update of the phase said, `[n]` each.

    Returns:
        The metrics of the table that follow from it. What the table does not know, such
        as a metric of a term of your own, is averaged.
    """
    used = {source for row in METRICS for source in row.sources}
    said = {}
    for name, values in history.items():
        row = row_of(name)
        if row is not None:
            said[name] = row.reduction.of(values)
        elif name not in used:
            said[name] = MEAN.of(values)
    for row in METRICS:
        if row.sources and history.keys() >= set(row.sources):
            said[row.name] = row.reduction.of(*(history[name] for name in row.sources))
    return said


INTRODUCTION = """\
# Metrics

What a run writes to `metrics.jsonl` and tensorboard, a row per phase of updates, by
environment steps. Generated from `ppo_jax/metrics.py`:
`python -m ppo_jax.metrics > docs/metrics.md`.

An update averages over its optimiser steps, and these over examples by their weight.
*Phase* says what becomes of its updates: those where a metric is unavailable do not
count, and if it is so in all of them, it is null in `metrics.jsonl` and missing in
tensorboard. A metric that is in no row, such as one of a term of your own, is averaged.
What the alerts `warn/*` mean is told in `monitoring.md`.
"""
HEADER = ("metric", "unit", "meaning", "phase", "only with", "unavailable when")


def document() -> str:
    """The table as Markdown."""
    parts = [INTRODUCTION]
    for title, rows in SECTIONS.items():
        cells = [
            (f"`{name}`", unit, meaning, reduction.text, needs, null)
            for name, unit, meaning, reduction, _, needs, null in rows
        ]
        parts.append(f"\n## {title}\n\n{table(HEADER, cells)}")
    return "".join(parts)


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown.

    >>> print(table(("x", "y"), [("1", "a")]), end="")
    | x | y |
    |---|---|
    | 1 | a |
    """
    lines = [[cell.replace("|", r"\|") for cell in line] for line in (header, *rows)]
    first, *rest = (f"| {' | '.join(line)} |\n" for line in lines)
    return "".join([first, "|---" * len(lines[0]) + "|\n", *rest])


if __name__ == "__main__":
    print(document(), end="")
