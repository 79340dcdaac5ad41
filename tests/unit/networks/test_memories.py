"""Memories over time."""

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from built import build, drawn

from ppo_jax import networks
from ppo_jax.arrays import tree


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "memory", [networks.Lstm(size=4, layers=2), networks.Gru(4), networks.MinGru(4, 2)]
)
def test_a_sequence_equals_its_steps(memory, shared):
    """PROP-21.4: over time at once, or step by step; a reset clears the carry."""
    network = build(memory=memory, shared=shared)
    params, start = drawn(network), network.initial_carry(2)

    @jax.jit
    def said(carry, obs, reset):
        out = network.apply(params, carry, obs, reset)
        return out.carry, out.value.mean()

    obs = np.float32(np.random.default_rng(1).normal(size=(6, 2, 3)))
    reset, never = np.zeros((2, 6, 2), bool)
    reset[3, 0] = True
    _, whole = jax.device_get(said(start, obs, reset))
    carry, values = start, []
    for t in range(6):
        carry, value = said(carry, obs[t : t + 1], reset[t : t + 1])
        values.append(np.asarray(value)[0])
    chex.assert_trees_all_close(whole, np.stack(values), rtol=0, atol=1e-6)
    _, fresh = jax.device_get(said(start, np.roll(obs, -3, axis=0), never))
    chex.assert_trees_all_close(whole[3:, 0], fresh[:3, 0], rtol=0, atol=1e-6)
    assert np.abs(whole[3:, 1] - fresh[:3, 1]).max() > 1e-3


class Alone(nn.Module):
    """A memory without anything around it."""

    memory: networks.Memory

    @nn.compact
    def __call__(self, carry, x, reset):
        return self.memory(carry, x, reset)


def test_gates_of_the_inputs_by_hand():
    """Feng et al. (2024), section 3.1.3: two layers, a step at a time, in float64."""
    memory, rng = networks.MinGru(size=3, layers=2), np.random.default_rng(0)
    x, before = rng.normal(size=(5, 2, 4)), rng.normal(size=(2, 2, 3))
    reset = np.zeros((5, 2), bool)
    reset[0, 1] = reset[3, 0] = True
    carry = tuple((np.float32(h),) for h in before)
    alone, given = Alone(memory), (carry, np.float32(x), reset)
    shapes = jax.eval_shape(alone.init, jax.random.key(0), *given)["params"]
    params = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), shapes)
    said = jax.jit(alone.apply)({"params": jax.tree.map(np.float32, params)}, *given)
    expected, last = x, []
    for (name, layer), h in zip(sorted(params.items()), before, strict=True):
        steps = []
        for features, begins in zip(expected, reset, strict=True):
            h = np.where(begins[:, None], 0.0, h)
            gate, new = np.split(
                features @ layer["inputs"]["kernel"] + layer["inputs"]["bias"], 2, -1
            )
            z = 1 / (1 + np.exp(-gate))
            h = (1 - z) * h + z * new
            steps.append(h)
        expected = np.stack(steps)
        last.append((h,))
        assert name == f"layer_{len(last) - 1}"
    chex.assert_trees_all_close(said, (tuple(last), expected), rtol=1e-5, atol=1e-5)


def test_gates_of_the_inputs_begin_with_time_scales(key):
    """Of zeros, units forget shares of 1/2 to 1/256, each half of the one before."""
    alone, before = Alone(networks.MinGru(size=8)), np.ones((1, 8), np.float32)
    given = ((before,),), np.zeros((3, 1, 4), np.float32), np.zeros((3, 1), bool)
    _, states = jax.jit(lambda key: alone.init_with_output(key, *given)[0])(key)
    forgotten = 1 - states[:, 0] / np.stack([before[0], *states[:-1, 0]])
    expected = 2.0 ** -np.arange(1, 8.5)
    chex.assert_trees_all_close(forgotten, np.stack([expected] * 3), rtol=1e-4)


def test_every_gate_begins_with_an_orthogonal_matrix_of_its_own(key):
    params = jax.jit(build(memory=networks.Gru(4), shared=True).init)(key)
    (kernel,) = (
        np.asarray(x) for path, x in tree.by_path(params).items() if "recurrent" in path
    )
    gates = np.split(kernel, 3, axis=1)
    for gate in gates:
        chex.assert_trees_all_close(gate.T @ gate, np.eye(4), rtol=0, atol=1e-6)
    assert (gates[0] != gates[1]).any() and (gates[1] != gates[2]).any()


@pytest.mark.parametrize(
    ("memory", "states"),
    [(networks.Lstm(4, layers=3), 2), (networks.Gru(4), 1), (networks.MinGru(4, 2), 1)],
)
def test_a_memory_of_nothing_is_zero(memory, states):
    """A tuple of layers, leaves `[B, size]`."""
    carry = memory.initial_carry(5)
    zeros = ((jnp.zeros((5, 4)),) * states,) * memory.layers
    chex.assert_trees_all_equal(carry, zeros)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (
            lambda: networks.Lstm(size=0),
            ValueError,
            r"Lstm\.size: expected at least 1",
        ),
        (
            lambda: networks.Gru(layers=0),
            ValueError,
            r"Gru\.layers: expected at least 1",
        ),
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
