"""Linear recurrences over time, h_t = a_t h_{t−1} + b_t, elementwise.

Nothing but a multiplication and an addition is left to do step by step. A CPU takes
them one after the other; on other platforms all T steps are ready after log₂ T rounds.
"""

import jax
import jax.numpy as jnp

from ppo_jax.arrays import platforms
from ppo_jax.types import Array


@jax.custom_vjp
def over_time(kept: Array, added: Array, carry: Array) -> tuple[Array, Array]:
    """Runs a linear recurrence over a sequence.

    The gradient is a recurrence of its own, from the last step to the first:
    λ_t = ∂h_t + a_{t+1} λ_{t+1}, with ∂b_t = λ_t and ∂a_t = λ_t h_{t−1}.

    A share of 0 forgets whatever was there, even NaN.

    Args:
        kept: Shares a of the state before that are kept, `[T, ...]`.
        added: What is added, b, `[T, ...]`.
        carry: The state before the first step, `[...]`.

    Returns:
        The state after the last step, and all states h, `[T, ...]`.

    References:
        Martin and Cundy, `Parallelizing Linear Recurrent Neural Nets Over Sequence
        Length <https://arxiv.org/abs/1709.04057>`_, 2018.

    >>> halves, ones = jnp.full((3, 1), 0.5), jnp.ones((3, 1))
    >>> over_time(halves, ones, jnp.array([2.0]))[1].ravel().tolist()
    [2.0, 2.0, 2.0]
    """
    return _forward(kept, added, carry)[0]


def _forward(kept, added, carry):
    states = _states(kept, added, carry)
    before = jnp.concatenate([carry[None], states[:-1]])
    return (states[-1], states), (kept, before)


def _backward(saved, gradients):
    kept, before = saved
    d_last, d_states = gradients
    later = jnp.concatenate([kept[1:], jnp.ones_like(kept[:1])])
    d_added = _states(later[::-1], d_states[::-1], d_last)[::-1]
    return d_added * before, d_added, kept[0] * d_added[0]


over_time.defvjp(_forward, _backward)


def _states(kept: Array, added: Array, carry: Array) -> Array:
    """Returns the states after all steps, `[T, ...]`."""
    return platforms.by_platform(
        kept, added, carry, cpu=_one_by_one, default=_all_at_once
    )


def _one_by_one(kept: Array, added: Array, carry: Array) -> Array:
    def step(state, now):
        state = _moved(state, *now)
        return state, state

    return jax.lax.scan(step, carry, (kept, added))[1]


def _all_at_once(kept: Array, added: Array, carry: Array) -> Array:
    def joined(first, second):
        kept, added = second
        return _moved(first[0], kept, 0.0), _moved(first[1], kept, added)

    return _moved(carry[None], *jax.lax.associative_scan(joined, (kept, added)))


def _moved(state: Array, kept: Array, added: Array | float) -> Array:
    return jnp.where(kept == 0, added, kept * state + added)
