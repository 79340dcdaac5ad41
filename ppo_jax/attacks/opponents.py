"""Opponents change what an agent sees while it acts, one observation after the other.

An opponent knows the agent, its memory included, and attacks each observation as it
comes. The agent acts on what it is shown, and that is what its memory keeps.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Self

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax import losses
from ppo_jax.attacks.perturbations import FLAT, Attack, Fgsm, Noise, Pgd, first_share
from ppo_jax.component import component
from ppo_jax.component.bounds import Share
from ppo_jax.critics import pessimistic
from ppo_jax.networks import Output
from ppo_jax.types import Array, Key, PyTree

Answers = Callable[[PyTree], Output]
"""What an agent says of observations `[B, ...]`, with the memory that it has."""
Harm = Callable[[Output, Output], Array]
"""What an opponent raises `[B]`, given what the agent says of the observations shown to
it and what it says if it is honest with it."""


def nothing(seen: Output, honest: Output) -> Array:
    """No harm is meant."""
    return jnp.zeros_like(pessimistic(seen.value))


def low_value(seen: Output, honest: Output) -> Array:
    """What the critics fear (Pattanaik et al., 2018)."""
    return -pessimistic(seen.value)


def divergence(seen: Output, honest: Output) -> Array:
    """Maximal action difference: KL(π(·|s) ‖ π(·|ŝ)) (Zhang et al., 2020)."""
    return losses.policy_smoothness_loss(honest.policy, seen.policy)


def misled(seen: Output, honest: Output) -> Array:
    """How far other actions are ahead at ŝ of the one that is the most likely at s."""
    return -seen.policy.margin(honest.policy.mode())


@component
class Opponent:
    """Who attacks what an agent sees.

    Attributes:
        attack: How observations are perturbed, as the network sees them: normalised, if
            there is an `obs_clip`. Its schedule follows the progress of training.
        harm: What it raises.
        share: Share in [0, 1] of the environments of training in which it plays, the
            first ones, rounded down. The statistics of observations are those of the
            others, if any of them is learned from.

    Raises:
        ValueError: At construction, for a share that is not possible.

    Warns:
        UserWarning: At construction, for a harm without a gradient where the attack
            begins.
    """

    attack: Attack = Fgsm()
    harm: Harm = low_value
    share: Share[float] = 1.0

    def advise(self) -> Iterator[str]:
        """Says where an attack finds no way up."""
        if self.harm is divergence and self.attack.begins_true:
            yield f"Opponent.attack: {FLAT.format(attack=type(self.attack).__name__)}"

    def of_radius(self, eps: ArrayLike) -> Self:
        """The same opponent, whose attacks have another radius; may be traced."""
        attack = dataclasses.replace(self.attack, eps=jnp.asarray(eps, jnp.float32))
        return dataclasses.replace(self, attack=attack)

    def show(self, answers: Answers, honest: Output, obs: PyTree, key: Key) -> PyTree:
        """What the agent sees in place of observations `[B, ...]`.

        Args:
            answers: The agent.
            honest: What it says if it is honest with it. An attack must not undo the
                harm that a memory already holds.
            obs: What there is to see.
            key: For what is random.
        """
        return self.attack(lambda shown: self.harm(answers(shown), honest), obs, key)

    def plays(self, num_envs: int) -> Array:
        """In which environments of training it plays, bool `[B]`."""
        return first_share(self.share, num_envs)


OPPONENTS = {
    "random": Opponent(Noise(), nothing),
    "FGSM": Opponent(Fgsm(), misled),
    "critic": Opponent(Pgd(steps=20, step_size=0.1), low_value),
    "MAD": Opponent(Pgd(steps=20, step_size=0.1), divergence),
    "PGD": Opponent(Pgd(steps=20, step_size=0.1, restarts=5), misled),
}
"""From the mildest to the strongest, which keeps the worst of five climbs."""
