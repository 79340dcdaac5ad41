"""What optimisers say."""

import functools

from ppo_jax.metrics.reductions import LARGEST, Metric

scaled = functools.partial(Metric, needs="`vgs`")
gated = functools.partial(Metric, needs="an optimiser with utilities")

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
