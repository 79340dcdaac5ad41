"""Metrics of an agent's acting, optimiser steps and faults."""

from functools import partial

from ppo_jax.metrics.reductions import (
    ANY,
    DEVIATION,
    LARGEST,
    MEAN,
    QUOTIENT,
    RATIO,
    SUM,
    VANISHING,
)
from ppo_jax.metrics.rows import NO_STEP, rows, stepped

PAID = ("episodes/return_sum", "episodes/count")
SQUARES = "episodes/return_square_sum"
LIVED = ("episodes/length_sum", "episodes/count")
COSTS = ("costs/sum", "costs/count")
NORMS = ("train/critic1_grad_norm", "train/critic2_grad_norm")
ended = partial(rows, null="no episode ended")
paid = partial(rows, null="no finite cost")
remembered = partial(rows, needs="a memory")
observed = partial(rows, needs="`obs_clip`")
counted = partial(rows, reduction=SUM)
peaked = partial(rows, reduction=LARGEST)

ROLLOUT = (
    *ended(
        "rollout/ep_rew_mean [reward]: Return of the episodes that ended.",
        QUOTIENT,
        *PAID,
    ),
    *ended(
        "rollout/ep_rew_std [reward]: Deviation of those returns.",
        DEVIATION,
        SQUARES,
        *PAID,
    ),
    *ended(
        "rollout/ep_len_mean [steps]: Length of the episodes that ended.",
        QUOTIENT,
        *LIVED,
    ),
    *rows(
        "rollout/episodes [episodes]: Episodes that ended with a finite return.",
        SUM,
        "episodes/count",
    ),
    *counted(
        "rollout/reused_starts [episodes] with `ResetPool`: Episodes that began where "
        "another of the rollout had, in the same environment; without those of "
        "environments that broke."
    ),
    *paid(
        "rollout/cost_mean [cost]: Mean of the finite costs of steps.", QUOTIENT, *COSTS
    ),
    *paid(
        "rollout/cost_median [cost]: Mean over updates of the costs' median.",
        MEAN,
        "costs/median",
    ),
    *rows(
        "rollout/cost_invalid [steps]: Steps whose cost alone is not finite.",
        SUM,
        "costs/invalid",
    ),
    *rows(
        "rollout/cost_available: Whether there was a finite cost.", ANY, "costs/count"
    ),
)
STEPS = (
    *stepped("train/loss: The whole objective."),
    *rows("""
        train/learning_rate: Step size of the last optimiser step.
        train/learning_rate_held [share]: Updates in which a floor kept its schedule
            from falling further.
        train/n_minibatches_done [steps]: Optimiser steps of an update.
        train/n_epochs_completed [epochs]: Epochs with a step, of an update.
    """),
    *stepped("""
        train/grad_norm_pre_clip [gradient]: Global norm of the raw gradients.
        train/grad_norm_post_clip [gradient]: That norm once scaled and clipped.
        train/grad_norm/actor_mlp [gradient]: Of the actor's torso, raw.
        train/grad_norm/actor_lstm [gradient] with a memory: Of the actor's memory.
        train/grad_norm/policy_head [gradient]: Of the policy's last layer.
        train/grad_norm/log_std [gradient] with real actions: Of the deviations of real
            actions.
        train/grad_norm/critic_mlp [gradient] with critics with a trunk of their own:
            Of the critics' torsos.
        train/grad_norm/critic_lstm [gradient] with a memory, and critics with a trunk
            of their own: Of the critics' memory.
        train/grad_norm/head* [gradient]: Of critic 1, 2, …: all that is its own, but
            for its torso. Groups are disjoint: their squares add up to that of
            `train/grad_norm_pre_clip`.
        train/grad_norm/other [gradient] with a network or a head of your own: Of
            parameters that fit no group, such as those that a head says in `free`.
        train/critic*_grad_norm [gradient]: Of critic 1, 2, …: all that is its own,
            torso included.
    """),
    *rows(
        f"train/critics_grad_ratio with two critics: `{NORMS[0]}` / `{NORMS[1]}`.",
        RATIO,
        *NORMS,
        null=f"{NO_STEP}, or a norm is below {VANISHING}",
    ),
)
MEMORY = remembered("""
    lstm/*_norm: Norm of a layer's carry, mean over environments.
    lstm/*_mean: Mean of its components.
    lstm/*_std: Deviation of its components.
""")
OBSERVATIONS = observed("""
    debug/vecnormalize_mean_drift [deviations]: Change of the observations' means in an
        update, mean of the sizes.
    debug/vecnormalize_std_drift [deviations]: Change of their deviations.
""")
ERRORS = (
    *counted("""
        error/quarantined_steps [steps]: Environment steps not finite.
        error/skipped_steps [steps]: Optimiser steps not taken for an error.
        error/nonfinite_loss [steps]: Those with such a loss.
        error/nonfinite_grad [steps]: Those with such gradients.
        error/log_ratio_nan_count [examples]: Whose ln ratio is NaN.
        error/log_ratio_inf_count [examples]: Whose ln ratio is ±∞.
    """),
    *peaked("""
        error/failure_streak [updates]: In a row, without one step for an error or a
            valid rollout.
        warn/* [members]: For which an alert is active; see monitoring.
    """),
)
