"""Whole episodes of an agent whose every observation an opponent may change.

The opponent knows the agent, its memory included, and attacks each observation as it
comes. The agent acts on what it is shown, and that is what its memory keeps. An attack
is measured against what the agent would do had it always seen the truth: it must not
undo the harm that a memory already holds.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax import losses
from ppo_jax.attacks import Attack, Fgsm, Noise, Pgd
from ppo_jax.critics import pessimistic
from ppo_jax.episodes import Answer, Answers, run_episodes
from ppo_jax.state import Learner
from ppo_jax.types import Array, Key, PyTree


class Opponent(NamedTuple):
    """How an opponent attacks, and what for."""

    attack: Attack
    harm: Callable[[Answer, Answer], Array]
    """What it raises, per episode `[n]`, given what the agent says of the observations
    shown to it and what it would say had it only seen true ones."""


def nothing(seen: Answer, honest: Answer) -> Array:
    """No harm is meant."""
    return jnp.zeros_like(pessimistic(seen.value))


def low_value(seen: Answer, honest: Answer) -> Array:
    """What the critics fear (Pattanaik et al., 2018)."""
    return -pessimistic(seen.value)


def divergence(seen: Answer, honest: Answer) -> Array:
    """Maximal action difference: KL(π(·|s) ‖ π(·|ŝ)) (Zhang et al., 2020)."""
    return losses.policy_smoothness_loss(honest.policy, seen.policy)


def misled(seen: Answer, honest: Answer) -> Array:
    """How far other actions are ahead at ŝ of the one that is the most likely at s."""
    return -seen.policy.margin(honest.policy.mode())


OPPONENTS = {
    "random": Opponent(Noise(), nothing),
    "FGSM": Opponent(Fgsm(), misled),
    "critic": Opponent(Pgd(steps=20, step_size=0.1), low_value),
    "MAD": Opponent(Pgd(steps=20, step_size=0.1), divergence),
    "PGD": Opponent(Pgd(steps=20, step_size=0.1, restarts=5), misled),
}
"""From the mildest to the strongest, which keeps the worst of five climbs."""


def returns_against(
    opponent: Opponent,
    learner: Learner,
    eps: ArrayLike,
    key: Key,
    num_episodes: int,
    deterministic: bool = True,
) -> tuple[Array, Array]:
    """Plays one episode in each of `num_episodes` environments, under attack.

    Args:
        opponent: Who attacks.
        learner: One member; its statistics are frozen.
        eps: Radius ≥ 0 of the ball around the observations as the network sees them,
            normalised if the learner normalises; may be traced.
        key: The same key gives the same starts, whoever attacks.
        num_episodes: How many episodes.
        deterministic: Whether the most likely action is taken instead of a sample.

    Returns:
        Returns of the episodes `[num_episodes]`, and whether each came to its end.
    """
    attack = dataclasses.replace(opponent.attack, eps=jnp.asarray(eps, jnp.float32))

    def show(answers: Answers, honest: Answer, obs: PyTree, key: Key) -> PyTree:
        return attack(lambda shown: opponent.harm(answers(shown), honest), obs, key)

    return run_episodes(learner, key, num_episodes, deterministic, show)
