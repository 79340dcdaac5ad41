"""Metrics of updates, and their reductions over a phase."""

from ppo_jax.metrics.reductions import LARGEST, MEAN, QUOTIENT, SUM, Metric, Reduction
from ppo_jax.metrics.sink import Beginning, Sink
