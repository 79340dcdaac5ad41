"""Recurrent layers against flax's cells, stepped and differentiated plainly."""

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.arrays import platforms
from ppo_jax.networks import recurrence

STEPS, BATCH, SIZE, FEATURES = 11, 3, 4, 5
RESET = np.zeros((STEPS, BATCH), bool)
RESET[0, 0] = RESET[4, 0] = RESET[4, 2] = True


def lstm_of(kernel, weights):
    """Parameters of flax's LSTM: gates i, f, g, o."""
    parts = zip("ifgo", np.split(kernel, 4, 1), np.split(weights, 4, 1), strict=True)
    params = {}
    for gate, recurrent, inputs in parts:
        params[f"h{gate}"] = {"kernel": recurrent, "bias": np.zeros(SIZE)}
        params[f"i{gate}"] = {"kernel": inputs}
    return params


def gru_of(kernel, weights):
    """Parameters of flax's GRU: gates r, z, n."""
    parts = zip("rzn", np.split(kernel, 3, 1), np.split(weights, 3, 1), strict=True)
    params = {}
    for gate, recurrent, inputs in parts:
        params[f"h{gate}"] = {"kernel": recurrent}
        params[f"i{gate}"] = {"kernel": inputs, "bias": np.zeros(SIZE)}
    params["hn"]["bias"] = np.zeros(SIZE)
    return params


KINDS = [
    pytest.param(recurrence.LSTM, nn.OptimizedLSTMCell(SIZE), lstm_of, id="lstm"),
    pytest.param(recurrence.GRU, nn.GRUCell(SIZE), gru_of, id="gru"),
]


def stepped(cell, params, carry, x):
    """What flax's cell says, step after step."""
    outputs = []
    for t in range(STEPS):
        carry = [jnp.where(RESET[t][:, None], 0.0, part) for part in carry]
        state = carry[0] if len(carry) == 1 else tuple(carry)
        state, output = cell.apply({"params": params}, state, x[t])
        carry = [state] if len(carry) == 1 else list(state)
        outputs.append(output)
    return tuple(carry), jnp.stack(outputs)


@pytest.mark.parametrize("on_cpu", [True, False], ids=["cpu", "gpu"])
@pytest.mark.parametrize(("cell", "flax_cell", "params_of"), KINDS)
def test_values_and_gradients_are_those_of_plain_steps(
    cell, flax_cell, params_of, on_cpu, monkeypatch
):
    """R-B5, PROP-21.4: of kernel, weights, carry and inputs; resets in mid-sequence.

    In the way of a GPU eight steps are compiled together, and three are left.
    """
    monkeypatch.setattr(platforms, "_is_cpu", lambda: on_cpu)
    rng = np.random.default_rng(0)

    def normal(*shape):
        return np.asarray(0.5 * rng.normal(size=shape), np.float32)

    kernel, weights = (normal(n, cell.gates * SIZE) for n in (SIZE, FEATURES))
    carry = tuple(normal(BATCH, SIZE) for _ in range(cell.states))
    x = normal(STEPS, BATCH, FEATURES)
    at_end, outputs = normal(BATCH, SIZE), normal(STEPS, BATCH, SIZE)

    def weighed(last, out):
        """Sums in which every output and every part of the last carry counts."""
        return sum((at_end * part).sum() for part in last) + (outputs * out).sum()

    def ours(kernel, weights, carry, x):
        return weighed(*recurrence.over_time(cell, kernel, carry, x @ weights, RESET))

    def plain(params, carry, x):
        return weighed(*stepped(flax_cell, params, carry, x))

    params = params_of(kernel, weights)
    slopes = jax.jit(jax.value_and_grad(ours, (0, 1, 2, 3)))
    value, (d_kernel, d_weights, *rest) = slopes(kernel, weights, carry, x)
    slopes = jax.jit(jax.value_and_grad(plain, (0, 1, 2)))
    expected, (d_params, *others) = slopes(params, carry, x)
    chex.assert_trees_all_close(value, expected, rtol=1e-5)
    close = {"rtol": 1e-4, "atol": 1e-5}
    chex.assert_trees_all_close(rest, others, **close)
    for name, part in params_of(np.asarray(d_kernel), np.asarray(d_weights)).items():
        chex.assert_trees_all_close(part["kernel"], d_params[name]["kernel"], **close)


def test_members_have_kernels_of_their_own():
    """Under `vmap`, values and gradients are those of one after the other."""
    rng = np.random.default_rng(0)
    kernels = np.float32(rng.normal(size=(2, SIZE, 3 * SIZE)))
    inputs = np.float32(rng.normal(size=(STEPS, BATCH, 3 * SIZE)))

    def total(kernel):
        carry = (jnp.ones((BATCH, SIZE)),)
        _, out = recurrence.over_time(recurrence.GRU, kernel, carry, inputs, RESET)
        return (out**2).sum()

    slopes = jax.value_and_grad(total)
    together, one = jax.jit(jax.vmap(slopes))(kernels), jax.jit(slopes)
    stacked = jax.tree.map(lambda *x: np.stack(x), *map(one, kernels))
    chex.assert_trees_all_close(together, stacked, rtol=1e-5, atol=1e-5)


def test_a_memory_keeps_small_changes_whatever_its_products_are():
    """2⁻¹⁰ is added 64 times to 1, of which bfloat16 would keep nothing."""
    counter = recurrence.Cell(
        lambda carry, x, recurrent: (carry[0] + x + recurrent,), gates=1, states=1
    )
    kernel = jnp.zeros((SIZE, SIZE), jnp.bfloat16)
    inputs = jnp.full((64, 1, SIZE), 2.0**-10, jnp.bfloat16)
    carry, reset = (jnp.ones((1, SIZE)),), np.zeros((64, 1), bool)
    (last,), outputs = recurrence.over_time(counter, kernel, carry, inputs, reset)
    chex.assert_type([last, outputs], jnp.float32)
    chex.assert_trees_all_equal(last, np.full((1, SIZE), 1 + 2.0**-4, np.float32))


@pytest.mark.parametrize(("cell", "flax_cell", "params_of"), KINDS)
def test_short_products_have_gradients_of_their_type(cell, flax_cell, params_of):
    """Near those of long ones: relative errors are of the order of 2⁻⁸."""
    rng = np.random.default_rng(0)

    def normal(*shape):
        return np.asarray(0.5 * rng.normal(size=shape), jnp.bfloat16)

    kernel, inputs = (
        normal(SIZE, cell.gates * SIZE),
        normal(STEPS, BATCH, cell.gates * SIZE),
    )
    carry = tuple(normal(BATCH, SIZE).astype(np.float32) for _ in range(cell.states))

    def total(kernel, carry, inputs):
        _, out = recurrence.over_time(cell, kernel, carry, inputs, RESET)
        return (out**2).sum()

    slopes = jax.jit(jax.grad(total, (0, 1, 2)))
    short = slopes(kernel, carry, inputs)
    long = slopes(kernel.astype(np.float32), carry, inputs.astype(np.float32))
    chex.assert_trees_all_equal_dtypes(short, (kernel, carry, inputs))
    for ours, theirs in zip(*map(jax.tree.leaves, (short, long)), strict=True):
        error = np.abs(np.float64(ours) - np.float64(theirs)).max()
        assert error <= 0.02 * np.abs(theirs).max()
