"""Kinds of critic with one interface: each reads a head's numbers as a return."""

from ppo_jax.critics.categorical import Categorical
from ppo_jax.critics.clipping import Clip, MeanAndVariance, MeanOnly, PerQuantile
from ppo_jax.critics.critic import Critic, ValueDist, pessimistic, pessimistic_cvar
from ppo_jax.critics.quantile import LinearTail, Quantile, StepTail, Tail
from ppo_jax.critics.scalar import Scalar
