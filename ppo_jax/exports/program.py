"""A step of a policy as a program: StableHLO, for batches of any size."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from ppo_jax.errors import UserError
from ppo_jax.exports import runner
from ppo_jax.policy import Policy, State

PLATFORMS = ("cpu", "cuda", "tpu")
PROGRAM = "policy.stablehlo"


def serialized(policy: Policy) -> bytes:
    """Returns the program `(carry, obs, reset[, mask]) -> (actions, carry)`.

    `load` reads it. Carry and observation are tuples of their leaves. Actions are the
    most likely ones. Where the environment forbids actions there is a mask.

    Raises:
        UserError: If flatbuffers is missing.
    """
    structure = jax.tree.structure(policy.init(1).carry)

    def step(carry, obs, reset, *mask):
        state = State(jax.tree.unflatten(structure, carry), jnp.zeros_like(reset))
        obs = jax.tree.unflatten(policy.obs_structure, obs)
        action, state = policy.act(
            state, obs, reset=reset, mask=mask[0] if mask else None
        )
        return action, tuple(jax.tree.leaves(state.carry))

    program = jax.export.export(jax.jit(step), platforms=PLATFORMS)
    exported = program(*_arguments(policy))
    try:
        return bytes(exported.serialize())
    except ImportError as error:
        hint = "pip install 'ppo_jax[export]', or take the format numpy"
        raise UserError(f"flatbuffers is missing: {hint}") from error


def load(folder: str | Path) -> Callable[..., Any]:
    """Returns the program of an export, which can be compiled into others.

    Raises:
        ExportError: If there is no such program, or it was changed.
    """
    runner.read(folder, (PROGRAM,))
    data = (Path(folder) / PROGRAM).read_bytes()
    return jax.export.deserialize(bytearray(data)).call


def _arguments(policy: Policy) -> list[Any]:
    """Returns the shapes of all arguments, for n episodes."""
    (n,) = jax.export.symbolic_shape("n")

    def batch(spec):
        return jax.ShapeDtypeStruct((n, *spec.shape), spec.dtype)

    one = jax.tree.leaves(policy.init(1).carry)
    carry = (jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in one)
    reset = jax.ShapeDtypeStruct((), bool)
    masks = [policy.mask_spec] if policy.masked else []
    trees = tuple(carry), policy.obs_leaves, reset, *masks
    return [jax.tree.map(batch, tree) for tree in trees]
