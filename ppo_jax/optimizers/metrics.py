"""Metrics of optimisers."""

from functools import partial

from ppo_jax.metrics.reductions import LARGEST
from ppo_jax.metrics.rows import rows

scaled = partial(rows, needs="`vgs`")
gated = partial(rows, needs="an optimiser with utilities")

OPTIMIZER = (
    *scaled("""
        train/vgs_scaling_factor_applied: Factor of the last step.
        vgs/scaling_factor: Factor of the next step.
        vgs/normalized_variance: Variance over squared mean, all leaves.
        vgs/stochastic_var_*: Percentiles and mean of it over leaves.
        vgs/capped [share]: Updates with the variance capped.
        vgs/warmup_active [share]: Updates not scaled yet.
        vgs/skipped_leaves [leaves]: Statistics that were not finite, of finite
            gradients.
    """),
    *scaled("vgs/step_count [steps]: Steps that the statistics saw.", LARGEST),
    *gated("""
        upgd/utility_*: Least, greatest and range.
        upgd/gate_mean: Mean gate; a gate of 1 is open.
        upgd/gate_std: Deviation of the gates.
        upgd/gate_saturated_frac [share]: Weights within 1 % of the extremes.
        upgd/noise_std_mean: Deviation of the noise.
        upgd/noise_to_signal: Norm of the noise over the direction's.
        upgd/update_norm: Norm of the last update, before rate and decay.
    """),
)
