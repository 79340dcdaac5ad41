"""Inputs and outputs of an exported policy, as JSON."""

import math
from typing import Any

import jax
import numpy as np

from ppo_jax.envs.env import ActionSpace, Box, MultiDiscrete
from ppo_jax.policy import Policy

LARGEST = float(np.finfo(np.float32).max)
"""The bound of observations that are normalised and have none: JSON has no infinity."""


def describe(policy: Policy) -> dict[str, Any]:
    """Describes observations, actions, masks, normaliser and carry; shapes lack n."""
    bound, masks = policy.obs_clip, policy.mask_spec
    return {
        "observation": leaves(policy.obs_spec),
        "action": _actions(policy.action_space),
        "mask": None if masks is None else _array(masks) | {"used": policy.masked},
        "normaliser": None if bound is None else min(float(bound), LARGEST),
        "carry": leaves(_of_one(policy.init(1).carry)),
    }


def leaves(tree: Any) -> list[dict[str, Any]]:
    """Describes the leaves of a tree of shapes, with their paths in it.

    >>> leaves({"x": (jax.ShapeDtypeStruct((3,), "int32"),)})
    [{'path': ['x', 0], 'shape': [3], 'dtype': 'int32'}]
    """
    return [
        {"path": [*map(_key, path)]} | _array(leaf)
        for path, leaf in jax.tree.leaves_with_path(tree)
    ]


def _array(spec: Any) -> dict[str, Any]:
    return {"shape": [*spec.shape], "dtype": str(spec.dtype)}


def _key(entry: Any) -> str | int:
    """Returns a step of a path: the name of a field, a key or an index."""
    names = ("name", "key", "idx")
    return next(getattr(entry, name) for name in names if hasattr(entry, name))


def _actions(space: ActionSpace) -> dict[str, Any]:
    kind = type(space).__name__
    if isinstance(space, Box):
        shape, limits = [len(space.low)], {"low": space.low, "high": space.high}
        bounds = {name: [*map(_finite, limit)] for name, limit in limits.items()}
        return {"kind": kind, "shape": shape, "dtype": "float32"} | bounds
    choices = [*space.nvec]
    shape = [len(choices)] if isinstance(space, MultiDiscrete) else []
    return {"kind": kind, "shape": shape, "dtype": "int32", "choices": choices}


def _finite(number: float) -> float | None:
    """Returns a bound, or None if it is infinite: JSON has no infinity."""
    return float(number) if math.isfinite(number) else None


def _of_one(carry: Any) -> Any:
    """Returns the shapes of the carry of one episode."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), carry)
