"""Kinds of critic, one interface: what a head's numbers say about the return."""

from ppo_jax.critics.categorical import Categorical
from ppo_jax.critics.clipping import Clip, MeanAndVariance, MeanOnly, PerQuantile
from ppo_jax.critics.critic import Critic, ValueDist, pessimistic, pessimistic_cvar
from ppo_jax.critics.quantile import LinearTail, Quantile, StepTail, Tail
from ppo_jax.critics.scalar import Scalar
