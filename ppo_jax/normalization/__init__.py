"""Observations, returns and advantages in units that networks learn from."""

from ppo_jax.normalization.advantages import OverAll, PerEnv, PerGroup, Standardization
from ppo_jax.normalization.return_scale import ReturnNormalization
