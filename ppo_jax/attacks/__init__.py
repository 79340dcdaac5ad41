"""Attacks on an agent's observations: in training, in rollouts, and afterwards."""

from ppo_jax.attacks.norms import L2, LInf, Norm
from ppo_jax.attacks.perturbations import Attack, Fgsm, Noise, Pgd
