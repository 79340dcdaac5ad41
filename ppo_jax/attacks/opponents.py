"""Opponents change an agent's observations while it acts, one after the other.

An opponent knows the agent, its memory included, and attacks each observation as it
comes. The agent acts on the observations it is shown, and its memory keeps those.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Self

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax import losses
from ppo_jax.attacks.perturbations import FLAT, Attack, Fgsm, Noise, Pgd, first_share
from ppo_jax.component import component
from ppo_jax.component.bounds import Share
from ppo_jax.critics import pessimistic
from ppo_jax.envs.env import Box
from ppo_jax.errors import require_shape
from ppo_jax.networks import Output
from ppo_jax.networks.heads import LocationHead
from ppo_jax.types import Array, Key, PyTree

Answers = Callable[[PyTree], Output]
"""A function from observations `[B, ...]` to the agent's outputs for them, given the
agent's present memory."""
Harm = Callable[[Output, Output], Array]
"""A function from the agent's outputs for the observations it is shown, and from its
outputs for the true ones, to the harm `[B]` that an opponent raises."""


def nothing(seen: Output, honest: Output) -> Array:
    """Returns 0: the opponent has nothing to raise."""
    return jnp.zeros_like(pessimistic(seen.value))


def low_value(seen: Output, honest: Output) -> Array:
    """Returns minus the value that the critics predict (Pattanaik et al., 2018)."""
    return -pessimistic(seen.value)


def divergence(seen: Output, honest: Output) -> Array:
    """Returns KL(π(·|s) ‖ π(·|ŝ)): maximal action difference (Zhang et al., 2020)."""
    return losses.policy_smoothness_loss(honest.policy, seen.policy)


def misled(seen: Output, honest: Output) -> Array:
    """Returns the lead at ŝ of other actions over the most likely action at s."""
    return -seen.policy.margin(honest.policy.mode())


@component
class Opponent:
    """An attacker of the observations that an agent acts on.

    Attributes:
        attack: The way observations are perturbed, as the network sees them:
            normalised, if there is an `obs_clip`. Its schedule follows the progress of
            training.
        harm: The harm that the attack raises.
        share: Share in [0, 1] of the environments of training in which it plays, the
            first ones, rounded down. The statistics of observations come from the
            other environments, if any of those is learned from.

    Raises:
        ValueError: At construction, for a share that is not possible.

    Warns:
        UserWarning: At construction, for a harm without a gradient where the attack
            begins; at that of an experiment, for one whose actions give it none.
    """

    attack: Attack = Fgsm()
    harm: Harm = low_value
    share: Share[float] = 1.0

    def advise(self) -> Iterator[str]:
        """Yields a warning if the harm has no gradient where the attack begins."""
        if self.harm is divergence and self.attack.begins_true:
            yield f"Opponent.attack: a divergence {self._flat}"

    def doubts(self, config: Any) -> Iterator[str]:
        """Yields a warning if an experiment's actions have no next best one.

        Their density is greatest at the action that is taken, and flat there.
        """
        real = isinstance(config.env.action_space, Box)
        real &= isinstance(config.network.head, LocationHead)
        if real and self.harm is misled and self.attack.begins_true:
            yield f"Opponent.attack: the lead of a real action {self._flat}"

    @property
    def _flat(self) -> str:
        return FLAT.format(attack=type(self.attack).__name__)

    def of_radius(self, eps: ArrayLike) -> Self:
        """Returns the same opponent with another radius, which may be traced."""
        attack = dataclasses.replace(self.attack, eps=jnp.asarray(eps, jnp.float32))
        return dataclasses.replace(self, attack=attack)

    def show(self, answers: Answers, honest: Output, obs: PyTree, key: Key) -> PyTree:
        """Returns the observations that the agent sees in place of true ones.

        Args:
            answers: The agent.
            honest: The agent's outputs for the true observations. An attack must not
                undo the harm that a memory already holds.
            obs: The true observations, leaves `[B, ...]`.
            key: Key of the attack's random numbers.

        Raises:
            Misfit: If the harm is anything but a number per environment.
        """
        name, shape = f"{type(self).__name__}.harm", jax.tree.leaves(obs)[0].shape[:1]

        def raised(shown: PyTree) -> Array:
            harm = self.harm(answers(shown), honest)
            require_shape(name, harm, shape, "a number per environment")
            return harm

        return self.attack(raised, obs, key)

    def plays(self, num_envs: int) -> Array:
        """Returns whether it plays in each environment of training, bool `[B]`."""
        return first_share(self.share, num_envs)


OPPONENTS = {
    "random": Opponent(Noise(), nothing),
    "FGSM": Opponent(Fgsm(), misled),
    "critic": Opponent(Pgd(steps=20, step_size=0.1), low_value),
    "MAD": Opponent(Pgd(steps=20, step_size=0.1), divergence),
    "PGD": Opponent(Pgd(steps=20, step_size=0.1, restarts=5), misled),
}
"""Opponents from the mildest to the strongest, which keeps the worst of five climbs."""
