"""What the runner needs of a policy: arrays by name, and how they go together."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import networks
from ppo_jax.envs.env import Box
from ppo_jax.errors import UserError
from ppo_jax.networks.heads import LocationHead
from ppo_jax.normalization.observations import EPS
from ppo_jax.policy import Policy

TORSOS = (networks.Mlp, networks.Cnn)
CELLS = {networks.Lstm: "lstm", networks.Gru: "gru"}
HEADS = (
    networks.GaussianHead,
    networks.SquashedHead,
    networks.TanhHead,
    networks.SigmoidHead,
)


def arrays(policy: Policy) -> dict[str, np.ndarray]:
    """Parameters by path, and of what the normaliser and the head are made.

    Of the i-th leaf of an observation there are `mean.i` and `deviation.i`; of real
    actions `low`, `high` and, if it depends on no observation, their `scale`.
    """
    found = {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf
        for path, leaf in jax.tree.leaves_with_path({"params": policy.params})
    }
    if policy.obs_clip is not None:
        moments = policy.obs_moments
        found |= {f"mean.{i}": x for i, x in enumerate(jax.tree.leaves(moments.mean))}
        for i, var in enumerate(jax.tree.leaves(moments.var)):
            found[f"deviation.{i}"] = jnp.sqrt(var + EPS)
    space, head = policy.action_space, policy.architecture.head
    if isinstance(space, Box):
        found |= {"low": np.float32(space.low), "high": np.float32(space.high)}
        if isinstance(head, LocationHead):
            found["scale"] = head.deviation(policy.params["log_std"])
    return {name: np.asarray(x) for name, x in found.items()}


def network(policy: Policy) -> dict[str, Any]:
    """How the runner is to put the arrays together.

    Raises:
        UserError: If it does not know a part of the network.
    """
    parts = policy.architecture
    memory, head = parts.memory, parts.head
    _require_known("torso", parts.torso, TORSOS)
    _require_known("head", head, HEADS)
    if memory is not None:
        _require_known("memory", memory, tuple(CELLS))
    return {
        "activation": parts.torso.activation,
        "convolutions": len(getattr(parts.torso, "channels", ())),
        "dense": len(parts.torso.hidden),
        "memory": None if memory is None else CELLS[type(memory)],
        "steepness": getattr(head.kind, "steepness", None),
    }


def _require_known(name: str, part: Any, known: tuple[type, ...]) -> None:
    """Raises a `UserError` for a part of one's own."""
    if type(part) not in known:
        names = ", ".join(kind.__name__ for kind in known)
        raise UserError(
            f"--format: NumPy knows no {name} {type(part).__name__}, only {names}; "
            "stablehlo takes any"
        )
