"""What a network is made of: components, of which `network.build` makes functions."""

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
    """

    torso: Torso = Mlp()
    memory: Memory | None = None
    head: Head = GaussianHead()
    critic_hidden: tuple[int, ...] = ()
    shared: bool = False
