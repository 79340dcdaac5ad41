"""Networks: torsos, memories, policy heads and value heads."""

from ppo_jax.networks.architecture import (
    Activation,
    ActorCritic,
    Cnn,
    GaussianHead,
    Gru,
    Lstm,
    Memory,
    Mlp,
    SigmoidHead,
    SquashedHead,
    TanhHead,
    Torso,
)
from ppo_jax.networks.network import Network, Output, build, map_value_heads

__all__ = [
    "Activation",
    "ActorCritic",
    "Cnn",
    "GaussianHead",
    "Gru",
    "Lstm",
    "Memory",
    "Mlp",
    "Network",
    "Output",
    "SigmoidHead",
    "SquashedHead",
    "TanhHead",
    "Torso",
    "build",
    "map_value_heads",
]
