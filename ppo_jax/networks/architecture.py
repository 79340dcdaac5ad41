"""The components of a network, of which `network.build` makes functions."""

from typing import Literal

from ppo_jax.component import component
from ppo_jax.component.bounds import Count
from ppo_jax.networks.heads import GaussianHead, Head
from ppo_jax.networks.memories import Memory
from ppo_jax.networks.torsos import Mlp, Torso


@component
class ActorCritic:
    """The architecture of an actor and its critics.

    Attributes:
        torso: Layers that turn the observation into features.
        memory: Memory after the torso, which lasts for an episode; None: feed-forward.
        head: Policy head, which gives the distribution of actions.
        critic_hidden: Sizes of each critic's dense layers after the memory.
        shared: Whether critics read the features of the actor's torso and memory, so
            that there is one of each; the loss of the critics moves them as well.
        compute_dtype: Type that hidden layers compute in, `bfloat16` on a GPU or TPU.
            Parameters, carries, the last layers and all that follows are float32.
    """

    torso: Torso = Mlp()
    memory: Memory | None = None
    head: Head = GaussianHead()
    critic_hidden: tuple[Count, ...] = ()
    shared: bool = False
    compute_dtype: Literal["float32", "bfloat16"] = "float32"
