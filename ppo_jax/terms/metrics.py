"""What terms say, and what is learned from."""

import functools

from ppo_jax.metrics.reductions import LARGEST, SHORTFALL, SUM, Metric
from ppo_jax.metrics.rows import NO_STEP, stepped, weighed

TAIL = "`CVaR` or `CVaRConstraint`"
standardized = functools.partial(weighed, needs="`standardization`")
grouped = functools.partial(
    Metric, needs="`appraisal`", null="targets vary in no group"
)
stopping = functools.partial(Metric, needs="`KlStop`")
penalized = functools.partial(Metric, needs="`KlPenalty`")
awaited = functools.partial(Metric, needs="`AdaptiveEntropy` with a `Plateau`")
gated_clip = functools.partial(Metric, needs="`Value` with a `ClipGate`")
surrogate = functools.partial(stepped, needs="`Surrogate`")
imitated = functools.partial(stepped, needs="`AdvantageWeighted`")
of_tail = functools.partial(Metric, needs=TAIL)
constrained = functools.partial(Metric, needs="`CVaRConstraint`")

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
