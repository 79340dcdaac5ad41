"""Distributions of discrete actions, and of several discrete actions at once."""

from typing import Self

import chex
import jax
import jax.numpy as jnp
from flax import struct

from ppo_jax.envs.env import Discrete, MultiDiscrete
from ppo_jax.losses.clipping import at_least
from ppo_jax.networks.distributions.distribution import float32
from ppo_jax.types import Array, Key

_MASKED_LOGIT = -1e9  # Its probability underflows to 0, yet 0 · logit is 0.


def mask_logits(logits: Array, mask: Array) -> Array:
    """Makes actions impossible: probability 0, no part in entropy or KL, no gradient.

    Args:
        logits: Logits `[..., n]`.
        mask: True for legal actions `[..., n]`, at least one per row.

    Returns:
        Logits for `Categorical` or `MultiCategorical`, float32 `[..., n]`.

    Raises:
        AssertionError: If the shapes differ, or the mask is not boolean.

    References:
        Huang and Ontañón, `A Closer Look at Invalid Action Masking in Policy Gradient
        Algorithms <https://arxiv.org/abs/2006.14171>`_, 2020.

    >>> policy = Categorical(mask_logits(jnp.zeros(3), jnp.array([True, False, True])))
    >>> policy.mode().item(), jnp.exp(policy.log_prob(jnp.array(1))).item()
    (0, 0.0)
    >>> f"{policy.entropy():.4f}"  # ln 2
    '0.6931'
    """
    chex.assert_equal_shape([logits, mask])
    chex.assert_type(mask, bool)
    return jnp.where(mask, float32(logits), _MASKED_LOGIT)


def categorical(
    logits: Array, space: Discrete | MultiDiscrete, mask: Array | None = None
) -> "Categorical | MultiCategorical":
    """Returns a distribution over a discrete space; components are independent.

    Args:
        logits: Logits of all components, one after the other, `[..., n]`.
        space: The space to choose from.
        mask: True for legal choices `[..., n]`; None: all are legal.

    >>> policy = categorical(jnp.zeros(5), MultiDiscrete((2, 3)))
    >>> [logits.size for logits in policy.logits]
    [2, 3]
    """
    if mask is not None:
        logits = mask_logits(logits, mask)
    if isinstance(space, Discrete):
        return Categorical(logits)
    ends = [sum(space.nvec[: i + 1]) for i in range(len(space.nvec) - 1)]
    return MultiCategorical(tuple(jnp.split(logits, ends, axis=-1)))


@struct.dataclass
class Categorical:
    """A distribution over n actions; a sample is an int32 `[...]`.

    Attributes:
        logits: Unnormalised log-probabilities `[..., n]`, −∞ for impossible actions;
            see `mask_logits`.

    A number that names no action has log-probability −∞.

    >>> policy = Categorical(jnp.log(jnp.array([0.2, 0.8, 0.0])))
    >>> policy.mode().item(), f"{policy.log_prob(jnp.array(0)):.4f}"
    (1, '-1.6094')
    >>> f"{policy.entropy():.4f}", policy.log_prob(jnp.array(3)).item()
    ('0.5004', -inf)
    """

    logits: Array

    def sample(self, key: Key) -> Array:
        return jax.random.categorical(key, float32(self.logits)).astype(jnp.int32)

    def mode(self) -> Array:
        return jnp.argmax(self.logits, axis=-1).astype(jnp.int32)

    def log_prob(self, raw: Array) -> Array:
        chex.assert_shape(raw, self.logits.shape[:-1])
        chex.assert_type(raw, int)
        # A gather would be differentiated into a scatter, which CPUs do row by row.
        actions = self.logits.shape[-1]
        taken = jax.nn.one_hot(raw, actions, dtype=bool)
        other = jnp.where((raw >= 0) & (raw < actions), 0.0, -jnp.inf)[..., None]
        return jnp.sum(jnp.where(taken, self._log_probs(), other), axis=-1)

    def entropy(self) -> Array:
        log_p = self._log_probs()
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)

    def kl(self, other: Self) -> Array:
        chex.assert_trees_all_equal_shapes(self, other)
        log_p, log_q = self._log_probs(), other._log_probs()
        return jnp.sum(jnp.exp(log_p) * (log_p - log_q), axis=-1)

    def margin(self, raw: Array) -> Array:
        logits = float32(self.logits)
        taken = jax.nn.one_hot(raw, logits.shape[-1], dtype=bool)
        own = jnp.sum(jnp.where(taken, logits, 0.0), axis=-1)
        rival = jnp.max(jnp.where(taken, _MASKED_LOGIT, logits), axis=-1)
        # A lead over nothing would be so large that those beside it have no digits.
        return jnp.where(rival > _MASKED_LOGIT, own - rival, 0.0)

    def to_action(self, raw: Array) -> Array:
        return raw

    def to_raw(self, action: Array) -> Array:
        return action

    def _log_probs(self) -> Array:
        return jax.nn.log_softmax(at_least(float32(self.logits), _MASKED_LOGIT))


@struct.dataclass
class MultiCategorical:
    """A distribution of A independent choices among n₁ … n_A actions, int32 `[..., A]`.

    Attributes:
        logits: Logits `[..., nᵢ]`, one array per component; see `mask_logits`.

    >>> policy = MultiCategorical((jnp.zeros(2), jnp.zeros(4)))
    >>> f"{policy.log_prob(jnp.array([1, 3])):.4f}"  # −ln 8
    '-2.0794'
    """

    logits: tuple[Array, ...]

    def sample(self, key: Key) -> Array:
        keys = jax.random.split(key, len(self.logits))
        return jnp.stack([*map(Categorical.sample, self._each(), keys)], axis=-1)

    def mode(self) -> Array:
        return jnp.stack([one.mode() for one in self._each()], axis=-1)

    def log_prob(self, raw: Array) -> Array:
        chex.assert_axis_dimension(raw, -1, len(self.logits))
        parts = [one.log_prob(raw[..., i]) for i, one in enumerate(self._each())]
        return jnp.stack(parts).sum(axis=0)

    def entropy(self) -> Array:
        return jnp.stack([one.entropy() for one in self._each()]).sum(axis=0)

    def kl(self, other: Self) -> Array:
        chex.assert_trees_all_equal_shapes(self, other)
        parts = [*map(Categorical.kl, self._each(), other._each())]
        return jnp.stack(parts).sum(axis=0)

    def margin(self, raw: Array) -> Array:
        """Returns the sum of the components' margins."""
        parts = [one.margin(raw[..., i]) for i, one in enumerate(self._each())]
        return jnp.stack(parts).sum(axis=0)

    def to_action(self, raw: Array) -> Array:
        return raw

    def to_raw(self, action: Array) -> Array:
        return action

    def _each(self) -> list[Categorical]:
        return [Categorical(logits) for logits in self.logits]
