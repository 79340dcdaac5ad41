"""Memories over time."""

import chex
import jax
import jax.numpy as jnp
import pytest
from built import build

from ppo_jax import networks


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("memory", [networks.Lstm(size=4, layers=2), networks.Gru(4)])
def test_a_sequence_equals_its_steps(memory, shared):
    """PROP-21.4: over time at once, or step by step; a reset clears the carry."""
    network = build(memory=memory, shared=shared)
    params = jax.jit(network.init)(jax.random.key(0))
    obs = jax.random.normal(jax.random.key(1), (6, 2, 3))
    reset = jnp.zeros((6, 2), bool).at[3, 0].set(True)
    whole = network.apply(params, network.initial_carry(2), obs, reset)
    carry, values = network.initial_carry(2), []
    for t in range(6):
        out = network.apply(params, carry, obs[t : t + 1], reset[t : t + 1])
        carry, values = out.carry, [*values, out.value.mean()[0]]
    chex.assert_trees_all_close(
        whole.value.mean(), jnp.stack(values), rtol=0, atol=1e-6
    )
    fresh = network.apply(params, network.initial_carry(2), obs[3:], reset[3:])
    got, expected = whole.value.mean()[3:, 0], fresh.value.mean()[:, 0]
    chex.assert_trees_all_close(got, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("memory", "states"), [(networks.Lstm(4, layers=3), 2), (networks.Gru(4), 1)]
)
def test_a_memory_of_nothing_is_zero(memory, states):
    """A tuple of layers, leaves `[B, size]`."""
    carry = memory.initial_carry(5)
    zeros = ((jnp.zeros((5, 4)),) * states,) * memory.layers
    chex.assert_trees_all_equal(carry, zeros)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: networks.Lstm(size=0), ValueError, r"Lstm\.size: expected sizes"),
        (lambda: networks.Gru(layers=0), ValueError, r"Gru\.layers: expected sizes"),
        (networks.Recurrent, ValueError, r"Recurrent\.cell: expected a Cell"),
        (
            lambda: networks.Memory().initial_carry(1),
            NotImplementedError,
            r"Memory\.initial_carry: missing",
        ),
    ],
)
def test_a_memory_of_no_kind_or_size_is_an_error(make, error, said):
    with pytest.raises(error, match=said):
        make()
