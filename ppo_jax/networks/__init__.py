"""Networks: torsos, memories, policy heads and value heads."""

from ppo_jax.networks.architecture import ActorCritic
from ppo_jax.networks.heads import (
    GaussianHead,
    Head,
    SigmoidHead,
    SquashedHead,
    TanhHead,
)
from ppo_jax.networks.layers import Activation
from ppo_jax.networks.memories import Gru, Layered, Lstm, Memory, MinGru, Recurrent
from ppo_jax.networks.network import Network, Output, act, build, map_value_heads
from ppo_jax.networks.recurrence import Cell
from ppo_jax.networks.torsos import Cnn, Mlp, Torso
