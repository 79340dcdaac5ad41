"""Shared aliases and the shape alphabet.

Arrays are time-major. Letters name axes, always in the order `[P, T, B, C, N]`:

====  =======================================================
P     population members
T     time steps of a rollout (L: steps of a chunk of it)
B     parallel environments (b: chunks of a minibatch)
C     critics
N     numbers that describe one value (quantiles, atoms, …)
A     components of an action
====  =======================================================
"""

from typing import Any

import jax

Array = jax.Array
Key = jax.Array
"""A typed key, made by `jax.random.key`."""

PyTree = Any
Params = Any
"""Network parameters: nested dictionaries of arrays."""

Carry = Any
"""Recurrent state, every leaf `[B, ...]`; `()` for a feed-forward network."""

Metrics = dict[str, Array]
