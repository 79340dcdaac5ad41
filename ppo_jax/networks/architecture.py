"""What a network is made of: components, of which `network.build` makes functions."""

from typing import Literal

from ppo_jax.component import component
from ppo_jax.networks.heads import GaussianHead, Head
from ppo_jax.networks.memories import Memory
from ppo_jax.networks.torsos import Mlp, Torso


@component
class ActorCritic:
    """An architecture.

    Attributes:
        torso: Features of the observation.
        memory: What comes after the torso and lasts for an episode; None: feed-forward.
        head: Policy head: what actions are drawn from.
        critic_hidden: Dense layers of each critic after the memory.
        shared: Whether critics read the features of the actor's torso and memory, so
            that there is one of each; their loss moves them as well.
        compute_dtype: What hidden layers compute in, `bfloat16` on a GPU or TPU.
            Parameters, carries, the last layers and all that follows are float32.
    """

    torso: Torso = Mlp()
    memory: Memory | None = None
    head: Head = GaussianHead()
    critic_hidden: tuple[int, ...] = ()
    shared: bool = False
    compute_dtype: Literal["float32", "bfloat16"] = "float32"
