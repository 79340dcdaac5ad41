"""What acting, steps and faults of an agent say."""

import functools

from ppo_jax.metrics.reductions import (
    ANY,
    DEVIATION,
    LARGEST,
    MEAN,
    QUOTIENT,
    RATIO,
    SUM,
    VANISHING,
    Metric,
)
from ppo_jax.metrics.rows import NO_STEP, stepped

NO_EPISODE = "no episode ended"
NO_COST = "no finite cost"
PAID = ("episodes/return_sum", "episodes/count")
SQUARES = "episodes/return_square_sum"
LIVED = ("episodes/length_sum", "episodes/count")
COSTS = ("costs/sum", "costs/count")
NORM = "gradient"
SEEN = "`obs_clip`"
ended = functools.partial(Metric, null=NO_EPISODE)
remembered = functools.partial(Metric, needs="a memory")

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
