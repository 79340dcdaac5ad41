"""Losses for policies that should ignore small changes of their observations."""

from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp

from ppo_jax.types import Array


class Divergent(Protocol):
    """An action distribution with an exact divergence."""

    def kl(self, other: Any) -> Array:
        """Returns KL(self ‖ other), `[...]`."""
        ...


D = TypeVar("D", bound=Divergent)


def policy_smoothness_loss(clean: D, perturbed: D) -> Array:
    """Returns the change of a policy with its observation, KL(π(·|s) ‖ π(·|ŝ)).

    The clean side is a constant. The loss pulls the policy at ŝ towards the policy at
    s, which the surrogate already trains. The divergence is in closed form, so it is
    exact and never negative.

    Args:
        clean: Policy at the true observations s; no gradient flows into it.
        perturbed: Policy at the perturbed observations ŝ, for the same rows.

    Returns:
        Loss per example, float32 `[...]`.

    References:
        Zhang et al., `Robust Deep Reinforcement Learning against Adversarial
        Perturbations on State Observations <https://arxiv.org/abs/2003.08938>`_, 2020.
    """
    return jnp.maximum(jax.lax.stop_gradient(clean).kl(perturbed), 0.0)
