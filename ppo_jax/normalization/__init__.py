"""Observations, returns and advantages in units that suit the learning of networks."""

from ppo_jax.normalization.advantages import OverAll, PerEnv, PerGroup, Standardization
from ppo_jax.normalization.return_scale import ReturnNormalization
