"""Optimisers as components, so that all their numbers may be traced."""

from ppo_jax.optimizers.kl_adaptive import KlAdaptive
from ppo_jax.optimizers.optimizer import Adam, AdamW, Decayed, Optax, Optimizer, Sgd
from ppo_jax.optimizers.upgd import UPGD, UPGDW, AdaptiveUPGD, Gated
from ppo_jax.optimizers.vgs import VGS
