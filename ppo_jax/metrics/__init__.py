"""Numbers of updates, and what becomes of them over a phase."""

from ppo_jax.metrics.reductions import LARGEST, MEAN, QUOTIENT, SUM, Metric, Reduction
from ppo_jax.metrics.sink import Beginning, Sink
