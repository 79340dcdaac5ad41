"""The arrays of a policy by name, and the network that the runner builds of them."""

from types import NoneType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import networks
from ppo_jax.arrays.tree import by_path
from ppo_jax.envs.env import Box
from ppo_jax.errors import UserError
from ppo_jax.networks.heads import LocationHead
from ppo_jax.normalization.observations import EPS
from ppo_jax.policy import Policy

TORSOS = (networks.Mlp, networks.Cnn)
CELLS = {
    NoneType: None,
    networks.Lstm: "lstm",
    networks.Gru: "gru",
    networks.MinGru: "min_gru",
}
HEADS = (
    networks.GaussianHead,
    networks.SquashedHead,
    networks.TanhHead,
    networks.SigmoidHead,
)


def arrays(policy: Policy) -> dict[str, np.ndarray]:
    """Returns parameters by path, and the arrays of the normaliser and the head.

    The i-th leaf of an observation has `mean.i` and `deviation.i`. Real actions have
    `low`, `high` and, if it depends on no observation, `scale`.
    """
    found = by_path({"params": policy.params})
    if policy.obs_clip is not None:
        moments = policy.obs_moments
        found |= {f"mean.{i}": x for i, x in enumerate(jax.tree.leaves(moments.mean))}
        for i, var in enumerate(jax.tree.leaves(moments.var)):
            found[f"deviation.{i}"] = jnp.sqrt(var + EPS)
    space, head = policy.action_space, policy.architecture.head
    if isinstance(space, Box):
        limits = {"low": space.low, "high": space.high}
        found |= {name: np.asarray(x, np.float32) for name, x in limits.items()}
        if isinstance(head, LocationHead):
            found["scale"] = head.deviation(policy.params["log_std"])
    return {name: np.asarray(x) for name, x in found.items()}


def network(policy: Policy) -> dict[str, Any]:
    """Describes the network that the runner builds of the arrays.

    Raises:
        UserError: If the runner does not know a part of the network, or its precision.
    """
    parts = policy.architecture
    if parts.compute_dtype != "float32":
        raise UserError(
            f"NumPy computes in float32, not in {parts.compute_dtype}; "
            "the format stablehlo takes any"
        )
    torso = _known("torso", parts.torso, TORSOS)
    memory = _known("memory", parts.memory, tuple(CELLS))
    head = _known("head", parts.head, HEADS)
    return {
        "activation": torso.activation,
        "convolutions": len(getattr(torso, "channels", ())),
        "dense": len(torso.hidden),
        "memory": CELLS[type(memory)],
        "steepness": getattr(head.kind, "steepness", None),
    }


def _known(name: str, part: Any, known: tuple[type, ...]) -> Any:
    """Returns a part of a network; raises a `UserError` if the runner lacks it."""
    if type(part) not in known:
        names = ", ".join(kind.__name__ for kind in known if kind is not NoneType)
        raise UserError(
            f"NumPy knows no {name} {type(part).__name__}, only {names}; "
            "the format stablehlo takes any"
        )
    return part
