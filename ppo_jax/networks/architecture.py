"""The components of a network, of which `network.build` makes functions."""

from collections.abc import Mapping
from typing import Any, Literal

from ppo_jax.component import component, require_field
from ppo_jax.component.bounds import Count
from ppo_jax.component.suggestion import unknown
from ppo_jax.networks.heads import GaussianHead, Head
from ppo_jax.networks.memories import Memory
from ppo_jax.networks.torsos import Mlp, Torso
from ppo_jax.types import PyTree


@component
class ActorCritic:
    """The architecture of an actor and its critics.

    Critics may read more than the actor, as in Pinto et al., `Asymmetric Actor Critic
    for Image-Based Robot Learning <https://arxiv.org/abs/1710.06542>`_, 2018.

    Attributes:
        torso: Layers that turn the observation into features.
        memory: Memory after the torso, which lasts for an episode; None: feed-forward.
        head: Policy head, which gives the distribution of actions.
        critic_hidden: Sizes of each critic's dense layers after the memory.
        shared: Whether critics read the features of the actor's torso and memory, so
            that there is one of each; the loss of the critics moves them as well.
        actor_obs: Names of the observations that the actor reads, of a dictionary;
            `()`: all. A policy acts on these alone, wherever there is nothing else.
        critic_obs: Names of those that critics read, such as what a simulator knows
            and no robot does; `()`: all.
        compute_dtype: Type that hidden layers compute in, `bfloat16` on a GPU or TPU.
            Parameters, carries, the last layers and all that follows are float32.
    """

    torso: Torso = Mlp()
    memory: Memory | None = None
    head: Head = GaussianHead()
    critic_hidden: tuple[Count, ...] = ()
    shared: bool = False
    actor_obs: tuple[str, ...] = ()
    critic_obs: tuple[str, ...] = ()
    compute_dtype: Literal["float32", "bfloat16"] = "float32"

    def of_actor(self, obs: PyTree) -> PyTree:
        """Returns the part of an observation that the actor reads."""
        return _those(obs, self.actor_obs)

    def with_actor(self, obs: PyTree, part: PyTree) -> PyTree:
        """Returns an observation of which the actor reads another part."""
        return {**obs, **part} if self.actor_obs else part

    def of_critics(self, obs: PyTree) -> PyTree:
        """Returns the part of an observation that critics read."""
        return _those(obs, self.critic_obs)

    def read(self, obs: PyTree) -> tuple[PyTree, PyTree]:
        """Returns the parts of an observation that torsos of actor and critics read."""
        return self.of_actor(obs), () if self.shared else self.of_critics(obs)

    def check(self, config: Any) -> None:
        """Checks that the network fits an experiment, when that is constructed.

        Raises:
            ValueError: If it reads what the environment does not show, or a part of it
                does not fit.
        """
        alike = not (self.shared and self.critic_obs)
        expected = "() where critics share the actor's features"
        require_field(self, "critic_obs", alike, expected)
        for field in ("actor_obs", "critic_obs"):
            if names := getattr(self, field):
                _require_shown(field, names, config.obs_spec())
        self.torso.check(config)
        self.head.check(config)


def _those(obs: PyTree, names: tuple[str, ...]) -> PyTree:
    return {name: obs[name] for name in names} if names else obs


def _require_shown(field: str, names: tuple[str, ...], shown: PyTree) -> None:
    """Raises a `ValueError` for names that an environment's observations lack."""
    named = isinstance(shown, Mapping)
    for name in names:
        if not named or name not in shown:
            message = unknown("observation", name, shown if named else ())
            hint = "" if named else "; only those in a dictionary have names"
            raise ValueError(f"ActorCritic.{field}: {message}{hint}")
