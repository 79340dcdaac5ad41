"""Checks that an environment keeps its promises."""

from ppo_jax.envs.check.check import check, check_types
