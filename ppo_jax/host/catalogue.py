"""Every number that a run logs: what it is, and what a phase of updates says of it.

`python -m ppo_jax.host.catalogue` prints the table as `docs/metrics.md`.
"""

import functools

import numpy as np

from ppo_jax.host import tables
from ppo_jax.metrics.reductions import (
    ANY,
    DEVIATION,
    HOST,
    LARGEST,
    MEAN,
    PRODUCT,
    QUOTIENT,
    RATIO,
    SHORTFALL,
    STEPS_WITH,
    SUM,
    VANISHING,
    Metric,
)

NO_STEP = "no optimiser step was taken"
NO_WEIGHT = "no step of the rollout has weight"
NO_EPISODE = "no episode ended"
NO_COST = "no finite cost"
PAID = ("episodes/return_sum", "episodes/count")
SQUARES = "episodes/return_square_sum"
LIVED = ("episodes/length_sum", "episodes/count")
COSTS = ("costs/sum", "costs/count")
NORM = "gradient"
TAIL = "`CVaR` or `CVaRConstraint`"
ATTACKED, SMOOTHED = "`adversary`", "`RobustKL`"
TAKEN = "train/n_minibatches_done"
SEEN = "`obs_clip`"
EVALUATED = "an evaluation in this phase"
NOBODY = "it is so for all members"
SEARCHED = "`pbt`, in a generation"
MANY = "more than one member"

# Rows that have their condition in common.
ended = functools.partial(Metric, null=NO_EPISODE)
weighed = functools.partial(Metric, null=NO_WEIGHT)
standardized = functools.partial(weighed, needs="`standardization`")
grouped = functools.partial(
    Metric, needs="`appraisal`", null="targets vary in no group"
)
stepped = functools.partial(Metric, null=NO_STEP)
stopping = functools.partial(Metric, needs="`KlStop`")
penalized = functools.partial(Metric, needs="`KlPenalty`")
awaited = functools.partial(Metric, needs="`AdaptiveEntropy` with a `Plateau`")
gated_clip = functools.partial(Metric, needs="`Value` with a `ClipGate`")
surrogate = functools.partial(stepped, needs="`Surrogate`")
imitated = functools.partial(stepped, needs="`AdvantageWeighted`")
attacked = functools.partial(stepped, needs=ATTACKED)
of_tail = functools.partial(Metric, needs=TAIL)
constrained = functools.partial(Metric, needs="`CVaRConstraint`")
remembered = functools.partial(Metric, needs="a memory")
scaled = functools.partial(Metric, needs="`vgs`")
gated = functools.partial(Metric, needs="an optimiser with utilities")
host = functools.partial(Metric, reduction=HOST)
evaluated = functools.partial(host, needs=EVALUATED)
searched = functools.partial(host, needs=SEARCHED)

ROLLOUT = (
    ended(
        *("rollout/ep_rew_mean", "reward", "Return of the episodes that ended."),
        *(QUOTIENT, PAID),
    ),
    ended(
        *("rollout/ep_rew_std", "reward", "Deviation of those returns."),
        *(DEVIATION, (SQUARES, *PAID)),
    ),
    ended(
        *("rollout/ep_len_mean", "steps", "Length of the episodes that ended."),
        *(QUOTIENT, LIVED),
    ),
    Metric(
        *("rollout/episodes", "episodes"),
        *("Episodes that ended with a finite return.", SUM, ("episodes/count",)),
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
    surrogate(
        *("train/policy_loss", ""),
        "Clipped surrogate; below 0 is better than before.",
    ),
    surrogate(
        *("train/clip_fraction", "share"),
        "Examples whose ratio left the clip range.",
    ),
    surrogate("train/clip_range", "", "ε of the surrogate in force."),
    stepped(
        *("train/policy_entropy", "nats"),
        "Entropy of the policy; that of real actions is differential, may be negative.",
        needs="`Entropy` or `AdaptiveEntropy`",
    ),
    Metric(
        *("train/ent_coef", "", "Coefficient of the entropy bonus."),
        needs="`AdaptiveEntropy`",
    ),
    awaited(
        *("train/policy_entropy_slope", "nats / update"),
        "Slope of the line through the last entropies.",
        null="fewer updates than the window",
    ),
    awaited("train/entropy_plateau", "share", "Updates since the decay began."),
    awaited(
        *("train/entropy_decay_start_update", "updates"),
        "Updates that were done when the decay began.",
        null="it has not begun",
    ),
    imitated(
        *("train/policy_bc_loss", ""),
        "Loss of imitation, its coefficient included.",
    ),
    imitated(
        *("train/policy_bc_vs_ppo_ratio", "share"),
        "|imitation| / (|imitation| + |surrogate|), per example at a ratio of 1.",
    ),
    imitated("train/bc_weight", "", "exp(advantage / temperature), bounded."),
    stepped(
        *("train/imitation_loss", ""),
        "−ln π of demonstrations, with its coefficient.",
        needs="`Imitation`",
    ),
    stepped("train/approx_kl", "nats", "KL(π_old ‖ π_new), estimator k3."),
    stepped("train/approx_kl_k1", "nats", "The same by k1, the mean of −ln ratio."),
    stepped("train/kl", "nats", "The same in closed form.", needs="`ClosedForm`"),
    stopping("train/target_kl", "nats", "Divergence that a step should not exceed."),
    stopping(
        *("train/kl_over_target", ""),
        "Mean divergence of the steps / `train/target_kl`.",
        null=NO_STEP,
    ),
    stopping("train/kl_early_stop", "share", "Updates that were ended early."),
    stopping(
        *("train/kl_stop_reason/*", "share"),
        "Updates that were ended by this rule of `KlStop`.",
    ),
    stopping(
        *("train/kl_epoch_factor", "share"),
        "Epochs of an update that are run, if it is not ended early.",
    ),
    penalized(
        *("train/kl_penalty_beta", ""),
        "Coefficient of the penalty on the divergence.",
    ),
    penalized(
        *("train/kl_penalty_error", "nats"),
        "Divergence of the update before − target.",
    ),
    penalized("train/kl_penalty_pid_p", "", "What it moved the coefficient by."),
    penalized("train/kl_penalty_pid_i", "", "What the sum of errors moved it by."),
    penalized("train/kl_penalty_pid_d", "", "What the error's change moved it by."),
    stepped("train/ratio_mean", "", "π_new(a) / π_old(a), clamped; near 1."),
    stepped("train/ratio_var", "", "Mean square of that ratio − 1."),
    stepped(
        *("train/log_ratio_max_abs", "nats", "Largest |ln ratio| of an update."),
        LARGEST,
    ),
    stepped(
        *("train/log_ratio_extreme_fraction", "share"),
        "Examples with |ln ratio| > 10",
    ),
    stepped("train/log_ratio_clamp_frac", "share", "Examples with |ln ratio| > 20"),
    weighed(
        *("train/advantages_mean_raw", "reward"),
        "Mean advantage before it is scaled.",
    ),
    weighed("train/advantages_std_raw", "reward", "Deviation of those advantages."),
    standardized("train/advantages_norm_mean", "", "Mean of the scaled advantages; 0."),
    standardized(
        *("train/advantages_norm_std", ""),
        "Their deviation; 1, or 0 without signal.",
    ),
    standardized(
        *("train/advantages_norm_max_abs", "", "The largest of their sizes."),
        LARGEST,
    ),
    standardized(
        *("train/advantages_zero_std", "share"),
        "Steps in groups whose advantages do not vary beyond rounding; set to 0.",
    ),
    Metric(
        *("train/gae_clip_count", "steps", "Errors and advantages clipped to ±10⁶."),
        SUM,
    ),
)
VALUE = (
    stepped(
        *("train/value_loss", ""),
        "Loss of the critics, their mean, clipping included",
        needs="`Value`",
    ),
    stepped(
        *("train/vf_coef", "", "Coefficient of the value loss in force."),
        needs="`Value`",
    ),
    stepped(
        *("train/value_clip_fraction", "share"),
        "Predictions that clipping held back.",
        needs="`Value` with `clip_eps`",
    ),
    gated_clip("train/vf_clip_active", "share", "Updates with clipping."),
    gated_clip("train/vf_clip_warmup_active", "share", "Those in the warm-up."),
    gated_clip(
        *("train/vf_clip_ev_gate_active", "share"),
        "Those whose critic explained too little.",
    ),
    gated_clip(
        *("train/vf_clip_last_ev", ""),
        "Explained variance that the gate looked at.",
        null="none was finite yet",
    ),
    stepped(
        *("train/twin_critics/critic_*_loss", ""),
        "Loss of critic 1, 2, …, clipping included.",
        needs="`Value`, and more than one critic",
    ),
    weighed("train/value_pred_mean", "reward", "Mean value when acting."),
    weighed("train/target_return_mean", "reward", "Mean λ-return."),
    weighed(
        *("train/target_return_variation", ""),
        "Deviation of the λ-returns / the size of their mean.",
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
    grouped(
        *("train/ev/mean_grouped_weighted", ""),
        "`train/explained_variance` of each group, averaged by their weight.",
    ),
    grouped("train/ev/mean_grouped_unweighted", "", "Plain mean over the groups."),
    grouped("train/ev/median_grouped", "", "Their median."),
    grouped(
        *("train/ev/mean_grouped_weighted_after", ""),
        "The mean by weight once the critics have learned from those targets.",
    ),
    grouped("train/ev/mean_grouped_unweighted_after", "", "Plain mean, likewise."),
    grouped("train/ev/median_grouped_after", "", "Median, likewise."),
    Metric("train/return_scale_mean", "reward", "Mean of the return scale; 0 without."),
    Metric("train/return_scale_std", "reward", "Unit of the return scale; 1 without."),
    weighed(
        *("train/value_target_below_frac", "share", "Targets below the lowest atom."),
        needs="`Categorical` critics",
    ),
    weighed(
        *("train/value_target_above_frac", "share"),
        "Targets above the highest atom.",
        needs="`Categorical` critics",
    ),
)
RISK = (
    of_tail("train/cvar_empirical", "reward", "Mean of the worst share α of outcomes."),
    of_tail("train/cvar_var", "reward", "The best of them: value at risk."),
    of_tail("train/cvar_tail_size", "samples", "How many they are."),
    of_tail("train/cvar_coef", "", "Weight of the tail against the mean."),
    stepped(
        *("train/cvar_loss", "", "Surrogate of the tail, before its weight."),
        needs=TAIL,
    ),
    constrained("train/cvar_lambda", "", "Multiplier of the constraint."),
    constrained("train/cvar_gap", "", "(limit − CVaR) / deviation of advantages."),
    constrained("train/cvar_limit", "reward", "Least CVaR that is accepted."),
    constrained(
        *("train/cvar_estimate", "reward"),
        "CVaR that is held against it: of the tail, or predicted.",
    ),
    constrained(
        *("train/cvar_violation", "reward", "max(0, limit − CVaR)."),
        *(SHORTFALL, ("train/cvar_limit", "train/cvar_estimate")),
    ),
    stepped(
        *("train/cvar_predicted", "reward", "CVaR that the critic predicts."),
        needs="`PredictedCVaR`",
    ),
)
ADVERSARY = (
    attacked(
        *("sa_ppo/num_adversarial", "examples"),
        "Attacked ones of an optimiser step.",
    ),
    attacked("sa_ppo/num_clean", "examples", "Those that were not attacked."),
    Metric(
        *("sa_ppo/adversarial_samples", "examples"),
        *(
            "Attacked ones, each time again.",
            PRODUCT,
            ("sa_ppo/num_adversarial", TAKEN),
        ),
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
    attacked(
        *("sa_ppo/adversarial_ratio", "share"),
        "Attacked examples, by their weight.",
    ),
    attacked("sa_ppo/current_epsilon", "observation", "ε in force."),
    attacked(
        *("sa_ppo/avg_perturbation_norm", "observation"),
        "Size of a perturbation, in the attack's norm; 0 without attacked examples.",
    ),
    attacked(
        *("sa_ppo/boundary_fraction", "share"),
        "Components of attacked observations that moved by ε.",
    ),
    attacked("sa_ppo/attack_success", "", "By how much an attack raised its target."),
    stepped(
        *("sa_ppo/kl_divergence", "nats"),
        "KL(π(·|s) ‖ π(·|ŝ)) in closed form, mean over attacked examples.",
        needs=SMOOTHED,
    ),
    stepped("sa_ppo/robust_kl_penalty", "", "Its share of the loss.", needs=SMOOTHED),
)
STEPS = (
    stepped("train/loss", "", "The whole objective."),
    Metric("train/learning_rate", "", "Step size of the optimiser."),
    Metric(
        *("train/learning_rate_held", "share"),
        "Updates in which a floor kept its schedule from falling further.",
    ),
    Metric("train/n_minibatches_done", "steps", "Optimiser steps of an update."),
    Metric("train/n_epochs_completed", "epochs", "Epochs with a step, of an update."),
    stepped("train/grad_norm_pre_clip", NORM, "Global norm of the raw gradients."),
    stepped("train/grad_norm_post_clip", NORM, "That norm once scaled and clipped."),
    stepped("train/grad_norm/actor_mlp", NORM, "Of the actor's torso, raw."),
    stepped(
        *("train/grad_norm/actor_lstm", NORM, "Of the actor's LSTM or GRU."),
        needs="a memory",
    ),
    stepped("train/grad_norm/policy_head", NORM, "Of the policy's last layer."),
    stepped(
        *("train/grad_norm/log_std", NORM, "Of the deviations of real actions."),
        needs="real actions",
    ),
    stepped(
        *("train/grad_norm/critic_mlp", NORM, "Of the critics' torsos."),
        needs="critics with a trunk of their own",
    ),
    stepped(
        *("train/grad_norm/critic_lstm", NORM, "Of the critics' LSTM or GRU."),
        needs="a memory, and critics with a trunk of their own",
    ),
    stepped(
        *("train/grad_norm/head*", NORM),
        "Of critic 1, 2, …: all that is its own, but for its torso. Groups are "
        "disjoint: their squares add up to that of `train/grad_norm_pre_clip`.",
    ),
    stepped(
        *("train/grad_norm/other", NORM, "Of parameters that fit no group."),
        needs="a network of your own",
    ),
    stepped(
        *("train/critic*_grad_norm", NORM),
        "Of critic 1, 2, …: all that is its own, torso included.",
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
    remembered("lstm/*_norm", "", "Norm of a layer's carry, mean over environments."),
    remembered("lstm/*_mean", "", "Mean of its components."),
    remembered("lstm/*_std", "", "Deviation of its components."),
)
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
OPTIMIZER = (
    scaled("train/vgs_scaling_factor_applied", "", "Factor of the last step."),
    scaled("vgs/scaling_factor", "", "Factor of the next step."),
    scaled("vgs/normalized_variance", "", "Variance over squared mean, all leaves."),
    scaled("vgs/stochastic_var_*", "", "Percentiles and mean of it over leaves."),
    scaled("vgs/capped", "share", "Updates with the variance capped."),
    scaled("vgs/warmup_active", "share", "Updates not scaled yet."),
    scaled("vgs/skipped_leaves", "leaves", "Statistics that were not finite."),
    scaled("vgs/step_count", "steps", "Steps that the statistics saw.", LARGEST),
    gated("upgd/utility_*", "", "Least, greatest and range."),
    gated("upgd/gate_mean", "", "Mean gate; a gate of 1 is open."),
    gated("upgd/gate_std", "", "Deviation of the gates."),
    gated("upgd/gate_saturated_frac", "share", "Weights within 1 % of the extremes."),
    gated("upgd/noise_std_mean", "", "Deviation of the noise."),
    gated("upgd/noise_to_signal", "", "Norm of the noise over the direction's."),
    gated("upgd/update_norm", "", "Norm of the last update."),
)
ERRORS = (
    Metric("error/quarantined_steps", "steps", "Environment steps not finite.", SUM),
    Metric(
        *("error/skipped_steps", "steps", "Optimiser steps not taken for an error."),
        SUM,
    ),
    Metric("error/nonfinite_loss", "steps", "Those with such a loss.", SUM),
    Metric("error/nonfinite_grad", "steps", "Those with such gradients.", SUM),
    Metric("error/log_ratio_nan_count", "examples", "Whose ln ratio is NaN.", SUM),
    Metric("error/log_ratio_inf_count", "examples", "Whose ln ratio is ±∞.", SUM),
    Metric(
        *("error/failure_streak", "updates"),
        *("In a row, without one step for an error or a valid rollout.", LARGEST),
    ),
    Metric(
        *("warn/*", "members", "For which an alert is active; see monitoring."),
        LARGEST,
    ),
)
HOSTED = (
    evaluated("eval/mean_reward", "reward", "Mean return."),
    evaluated("eval/std_reward", "reward", "Deviation of returns."),
    evaluated("eval/median_reward", "reward", "Their median."),
    evaluated("eval/q25_reward", "reward", "Lower quartile."),
    evaluated("eval/q75_reward", "reward", "Upper quartile."),
    evaluated("eval/cvar_5_reward", "reward", "Mean of the worst 5 %."),
    evaluated("eval/episodes", "episodes", "How many."),
    evaluated("eval/unfinished_episodes", "episodes", "Given up at their limit."),
    host("time/fps", "steps / s", "Environment steps per second, once compiled."),
    host("time/compiling", "s", "Until the programs of the phase were compiled."),
    host("time/iterations", "updates", "Updates done."),
    host("time/total_timesteps", "steps", "Environment steps done."),
    host("time/time_elapsed", "s", "Since the run began."),
)
EVALUATIONS = tuple(row.name for row in HOSTED if row.name.endswith("_reward"))
"""What an evaluation says of the returns of its episodes."""
POPULATION = (
    host("q25/*", "", "Lower quartile over members.", needs=MANY, null=NOBODY),
    host("q75/*", "", "Upper quartile over members.", needs=MANY, null=NOBODY),
    host(
        *("best/*", "", "That of the fittest member."),
        needs=f"{MANY}, after an evaluation",
        null="it is so for that member",
    ),
    host(
        *("each/*", "", "That of every member, by its number."),
        needs=f"{MANY}, {EVALUATED}",
        null="its parameters are not finite",
    ),
    host(
        *("pbt/fittest", "", "The fittest member at the last evaluation."),
        needs=f"{MANY}, after an evaluation",
    ),
    searched("pbt/population_size", "members", "How many."),
    searched("pbt/ready_members", "members", "Who may take part."),
    searched("pbt/mean_performance", "", "Mean finite fitness; 0: there is none."),
    searched("pbt/std_performance", "", "Its deviation."),
    searched("pbt/min_performance", "", "The least."),
    searched("pbt/max_performance", "", "The greatest."),
    searched("pbt/exploitation_count", "copies", "Of members, so far."),
    searched("pbt/exploration_count", "moves", "Of members' numbers, so far."),
    searched("pbt/failed_ready_checks", "rounds", "In a row, with too few ready."),
    searched("pbt/fallback_used", "", "1 if it went ahead with few ready members."),
    searched("pbt/nonfinite_members", "members", "Broken ones, before."),
    searched("pbt/recovered_members", "members", "Of these, healed by a copy."),
    searched("pbt/carries_cleared", "members", "Whose memory was emptied."),
    searched(
        *("pbt/performance/*", "", "Fitness of each member."),
        null="the member is broken",
    ),
    searched("pbt/parent/*", "", "Whom it continues; itself, if it did not copy."),
    searched("pbt/*", "", "Searched numbers of each member from then on."),
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


def row_of(name: str, rows: tuple[Metric, ...] = METRICS) -> Metric | None:
    """The row of a metric, if it has one."""
    return next((row for row in rows if match(row.name, name) is not None), None)


def summarize(
    history: dict[str, np.ndarray], own: tuple[Metric, ...] = ()
) -> dict[str, float]:
    """What a phase says, a number per metric.

    Args:
        history: What every update of the phase said, `[n]` each.
        own: Rows that the experiment adds to the table.

    Returns:
        The metrics of all rows that follow from it. What is in no row is averaged.
    """
    rows = METRICS + own
    used = {source for row in rows for source in row.sources}
    said = {}
    for name, values in history.items():
        row = row_of(name, rows)
        if row is not None:
            said[name] = row.reduction.of(values)
        elif name not in used:
            said[name] = MEAN.of(values)
    for row in rows:
        if row.sources and history.keys() >= set(row.sources):
            said[row.name] = row.reduction.of(*(history[name] for name in row.sources))
    return said


INTRODUCTION = """\
# Metrics

What a run writes to `metrics.jsonl` and tensorboard, a row per phase of updates, by
environment steps. Generated from
[`ppo_jax/host/catalogue.py`](../ppo_jax/host/catalogue.py):
`python -m ppo_jax.host.catalogue > docs/metrics.md`.

An update averages over its optimiser steps, and these over examples by their weight.
*Phase* says what becomes of its updates: those where a metric is unavailable do not
count, and if it is so in all of them, it is null in `metrics.jsonl` and missing in
tensorboard. A part of your own says in `says` what its metrics are, in rows such as
these ([`Metric`](../ppo_jax/metrics/reductions.py)); what is in no row is averaged.
What the alerts `warn/*` mean is told in [`monitoring.md`](monitoring.md).
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
        parts.append(f"\n## {title}\n\n{tables.markdown(HEADER, cells)}")
    return "".join(parts)


if __name__ == "__main__":
    print(document(), end="")
