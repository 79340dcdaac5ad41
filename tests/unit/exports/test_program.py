"""StableHLO of networks that nobody else knows, and without what writes it."""

import dataclasses
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agents import Sights, agent

from ppo_jax import Policy, networks
from ppo_jax.component import component
from ppo_jax.errors import UserError
from ppo_jax.exports import arrays, program, runner
from ppo_jax.exports import folder as folders
from ppo_jax.networks.recurrence import Cell


@component
class Turned(networks.Torso):
    """A torso of one's own, with a number."""

    slope: float = 0.1

    def __call__(self, obs):
        return nn.LayerNorm()(self.slope * nn.Dense(4)(obs))


@component
class Fading(networks.Recurrent):
    cell = Cell(
        lambda carry, x, recurrent: (0.9 * carry[0] + jnp.tanh(x + recurrent),),
        gates=1,
        states=1,
    )


POLICY = Policy.of(
    agent(Sights(), network=networks.ActorCritic(Turned(), Fading(size=3)))
)


def test_networks_of_ones_own_are_exported(tmp_path):
    pytest.importorskip("flatbuffers")
    folders.write(tmp_path, POLICY, "stablehlo", {})
    call, act, state = program.load(str(tmp_path)), jax.jit(POLICY.act), POLICY.init(2)
    obs = np.random.default_rng(0).normal(size=(9, 2, 3)).astype(np.float32)
    carry = state.carry[0]
    for now in obs:
        action, state = act(state, now)
        found, carry = call(carry, (now,), np.zeros(2, bool))
        np.testing.assert_array_equal(found, action)
        np.testing.assert_allclose(carry, state.carry[0], rtol=0, atol=1e-5)
    short = dataclasses.replace(POLICY.architecture, compute_dtype="bfloat16")
    with pytest.raises(UserError, match=r"^NumPy computes in float32, not"):
        arrays.network(dataclasses.replace(POLICY, architecture=short))
    with pytest.raises(UserError, match=r"^NumPy knows no torso Turned"):
        folders.write(tmp_path, POLICY, "all", {})
    assert (tmp_path / program.PROGRAM).exists()  # What was there is there.


def test_a_program_that_was_changed_is_not_loaded(tmp_path):
    pytest.importorskip("flatbuffers")
    folders.write(tmp_path, POLICY, "stablehlo", {})
    (tmp_path / program.PROGRAM).write_bytes(b"other")
    with pytest.raises(runner.ExportError, match="was changed since it was exported"):
        program.load(tmp_path)


def test_without_flatbuffers_it_is_said_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    for name in [*sys.modules]:
        if name.startswith("jax._src.export.serialization"):
            monkeypatch.delitem(sys.modules, name)
    said = r"pip install 'ppo_jax\[export\]', or take the format numpy"
    with pytest.raises(UserError, match=said):
        folders.write(tmp_path, POLICY, "stablehlo", {})
    assert not any(tmp_path.iterdir())
