"""Metrics of terms, and of the batch that they learn from."""

from functools import partial

from ppo_jax.metrics.reductions import LARGEST, SHORTFALL, SUM
from ppo_jax.metrics.rows import NO_STEP, rows, stepped, weighed

PLATEAU = "`AdaptiveEntropy` with a `Plateau`"
TAIL = "`CVaR` or `CVaRConstraint`"
UNKNOWN = "there was no outcome, or no step that predicts one"
surrogate = partial(stepped, needs="`Surrogate`")
sloped = partial(rows, needs=PLATEAU, null="fewer updates than the window")
decaying = partial(rows, needs=PLATEAU, null="it has not begun")
imitated = partial(stepped, needs="`AdvantageWeighted`")
stopping = partial(rows, needs="`KlStop`")
penalized = partial(rows, needs="`KlPenalty`")
standardized = partial(weighed, needs="`standardization`")
gated_clip = partial(rows, needs="`Value` with a `ClipGate`")
explained = partial(rows, null="targets do not vary")
grouped = partial(rows, needs="`appraisal`", null="targets vary in no group")
of_tail = partial(rows, needs=TAIL)
constrained = partial(rows, needs="`CVaRConstraint`")

POLICY = (
    *surrogate("""
        train/policy_loss: Clipped surrogate; below 0 is better than before.
        train/clip_fraction [share]: Examples whose ratio left the clip range.
        train/clip_range: ε of the surrogate in force.
    """),
    *stepped("""
        train/policy_entropy [nats] with `Entropy` or `AdaptiveEntropy`: Entropy of the
            policy; that of real actions is differential, may be negative.
    """),
    *rows("train/ent_coef with `AdaptiveEntropy`: Coefficient of the entropy bonus."),
    *sloped("""
        train/policy_entropy_slope [nats / update]: Slope of the line through the last
            entropies.
    """),
    *rows(
        "train/entropy_plateau [share]: Updates since the decay began.", needs=PLATEAU
    ),
    *decaying("""
        train/entropy_decay_start_update [updates]: Updates that were done when the
            decay began.
    """),
    *imitated("""
        train/policy_bc_loss: Loss of imitation, its coefficient included.
        train/policy_bc_vs_ppo_ratio [share]: |imitation| / (|imitation| + |surrogate|),
            per example at a ratio of 1.
        train/bc_weight: exp(advantage / temperature), bounded.
    """),
    *stepped("""
        train/imitation_loss with `Imitation`: −ln π of demonstrations, with its
            coefficient.
        train/approx_kl [nats]: KL(π_old ‖ π_new), estimator k3.
        train/approx_kl_k1 [nats]: The same by k1, the mean of −ln ratio.
        train/kl [nats] with `ClosedForm`: The same in closed form.
    """),
    *stopping("train/target_kl [nats]: Divergence that a step should not exceed."),
    *stopping(
        "train/kl_over_target: Mean divergence of the steps / `train/target_kl`.",
        null=NO_STEP,
    ),
    *stopping("""
        train/kl_early_stop [share]: Updates that a rule ended, be it at their last
            step.
        train/kl_stop_reason/* [share]: Updates that were ended by this rule of
            `KlStop`.
        train/kl_epoch_factor [share]: Epochs of an update that are run, before their
            number is rounded, if it is not ended early.
    """),
    *penalized("""
        train/kl_penalty_beta: Coefficient of the penalty on the divergence.
        train/kl_penalty_error [nats]: Divergence of the update before − target; 0 in
            the first.
        train/kl_penalty_pid_p: What it moved the coefficient by.
        train/kl_penalty_pid_i: What the sum of errors moved it by.
        train/kl_penalty_pid_d: What the error's change moved it by.
    """),
    *stepped("""
        train/ratio_mean: π_new(a) / π_old(a), clamped; near 1.
        train/ratio_var: Mean square of that ratio − 1.
    """),
    *stepped(
        "train/log_ratio_max_abs [nats]: Largest |ln ratio| of an update.", LARGEST
    ),
    *stepped("""
        train/log_ratio_extreme_fraction [share]: Examples with |ln ratio| > 10
        train/log_ratio_clamp_frac [share]: Examples with |ln ratio| > 20
    """),
    *weighed("""
        train/advantages_mean_raw [reward]: Mean advantage before it is scaled.
        train/advantages_std_raw [reward]: Deviation of those advantages.
    """),
    *standardized("""
        train/advantages_norm_mean: Mean of the scaled advantages; 0.
        train/advantages_norm_std: Their root mean square around it: √(1 − 1/n) of n
            that are scaled together, less where groups have no signal.
    """),
    *standardized(
        "train/advantages_norm_max_abs: The largest of their sizes.", LARGEST
    ),
    *standardized("""
        train/advantages_zero_std [share]: Steps in groups whose advantages do not vary
            beyond rounding; set to 0.
    """),
    *rows(
        "train/gae_clip_count [steps]: Errors and advantages clipped to ±10⁶, also of "
        "steps that are not learned from.",
        SUM,
    ),
)
VALUE = (
    *stepped("""
        train/value_loss with `Value`: Loss of the critics, their mean, clipping
            included
        train/vf_coef with `Value`: Coefficient of the value loss in force.
        train/value_clip_fraction [share] with `Value` with `clip_eps`: Predictions that
            clipping held back.
    """),
    *gated_clip("""
        train/vf_clip_active [share]: Updates with clipping.
        train/vf_clip_warmup_active [share]: Those in the warm-up.
        train/vf_clip_ev_gate_active [share]: Those whose critic explained too little.
    """),
    *gated_clip(
        "train/vf_clip_last_ev: Explained variance that the gate looked at.",
        null="none was finite yet",
    ),
    *stepped("""
        train/twin_critics/critic_*_loss with `Value`, and more than one critic: Loss of
            critic 1, 2, …, clipping included.
    """),
    *weighed("""
        train/value_pred_mean [reward]: Mean value when acting.
        train/target_return_mean [reward]: Mean λ-return.
        train/target_return_variation: Deviation of the λ-returns / the size of their
            mean.
    """),
    *explained("""
        train/explained_variance: 1 − Var[target − value] / Var[target].
        train/explained_variance_holdout with `holdout_envs`: The same over environments
            that nothing is learned from.
        train/explained_variance_after with `appraisal`: `train/explained_variance` once
            the critics have learned from those targets.
        train/explained_variance_holdout_after with `appraisal` and `holdout_envs`: The
            same over environments that nothing is learned from.
    """),
    *grouped("""
        train/ev/mean_grouped_weighted: `train/explained_variance` of each group,
            averaged by their weight.
        train/ev/mean_grouped_unweighted: Plain mean over the groups.
        train/ev/median_grouped: Their median.
        train/ev/mean_grouped_weighted_after: The mean by weight once the critics have
            learned from those targets.
        train/ev/mean_grouped_unweighted_after: Plain mean, likewise.
        train/ev/median_grouped_after: Median, likewise.
    """),
    *rows("""
        train/return_scale_mean [reward]: Mean of the return scale; 0 without.
        train/return_scale_std [reward]: Unit of the return scale; 1 without.
    """),
    *weighed("""
        train/value_target_below_frac [share] with `Categorical` critics: Targets below
            the lowest atom.
        train/value_target_above_frac [share] with `Categorical` critics: Targets above
            the highest atom.
    """),
)
RISK = (
    *of_tail(
        """
        train/cvar_empirical [outcome]: Mean of the worst share α of outcomes.
        train/cvar_var [outcome]: The best of them: value at risk.
    """,
        null=UNKNOWN,
    ),
    *of_tail("""
        train/cvar_tail_size [samples]: How many they are.
        train/cvar_coef: Weight of the tail against the mean.
    """),
    *stepped("train/cvar_loss: Surrogate of the tail, before its weight.", needs=TAIL),
    *constrained("""
        train/cvar_lambda: Multiplier of the constraint.
        train/cvar_lambda_share [share]: Of the largest that it may be, `max_dual`.
        train/cvar_limit [outcome]: Least CVaR that is accepted.
    """),
    *constrained(
        """
        train/cvar_gap: (limit − CVaR) / deviation of advantages; 0 of no outcome.
        train/cvar_estimate [outcome]: CVaR that is held against it: of the tail, or
            predicted.
        """,
        null=UNKNOWN,
    ),
    *constrained(
        "train/cvar_violation [outcome]: max(0, limit − CVaR).",
        SHORTFALL,
        "train/cvar_limit",
        "train/cvar_estimate",
        null=UNKNOWN,
    ),
    *stepped("""
        train/cvar_predicted [reward] with `PredictedCVaR`: CVaR that the critic
            predicts.
    """),
)
