"""What a network is made of: components, of which `network.build` makes functions."""

from typing import ClassVar, Literal

import jax

from ppo_jax.component import component, require, require_range
from ppo_jax.networks import recurrence
from ppo_jax.networks.recurrence import Cell
from ppo_jax.types import PyTree

Activation = Literal["tanh", "relu", "leaky_relu", "elu", "gelu", "silu"]


def _require_sizes(name: str, sizes: tuple[int, ...]) -> None:
    require(all(size >= 1 for size in sizes), name, sizes, "sizes of at least 1")


@component
class Torso:
    """Turns an observation into features; ends in dense layers."""

    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "tanh"

    def validate(self) -> None:
        """Raises a `ValueError` for a layer without units."""
        _require_sizes(f"{type(self).__name__}.hidden", self.hidden)

    def require_fit(self, obs_spec: PyTree) -> None:
        """Raises a `ValueError` for observations of which nothing would be seen."""


@component
class Mlp(Torso):
    """Dense layers over the flattened observation."""


@component
class Cnn(Torso):
    """3×3 convolutions over grids `[H, W, features]`, then dense layers."""

    hidden: tuple[int, ...] = (128,)
    activation: Activation = "relu"
    channels: tuple[int, ...] = (16,)

    def validate(self) -> None:
        """Raises a `ValueError` for a layer without units."""
        _require_sizes("Cnn.channels", self.channels)
        _require_sizes("Cnn.hidden", self.hidden)

    def require_fit(self, obs_spec: PyTree) -> None:
        shapes = [x.shape for x in jax.tree.leaves(obs_spec)]
        grids = [shape for shape in shapes if len(shape) == 3]
        expected = "observations with grids [H, W, features]"
        require(bool(grids), "Cnn", shapes, expected)
        for height, width, _ in grids:
            most = (min(height, width) - 1) // 2
            expected = (
                f"at most {most} layers for grids of {height}×{width}, each of which "
                "takes 2 off height and width"
            )
            require(len(self.channels) <= most, "Cnn.channels", self.channels, expected)


@component
class Memory:
    """Recurrent layers between the torso and the heads."""

    size: int = 64
    layers: int = 1
    cell: ClassVar[Cell]

    def validate(self) -> None:
        """Raises a `ValueError` for a memory without units."""
        _require_sizes(f"{type(self).__name__}.size", (self.size,))
        _require_sizes(f"{type(self).__name__}.layers", (self.layers,))


@component
class Lstm(Memory):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997)."""

    cell = recurrence.LSTM


@component
class Gru(Memory):
    """Gated recurrent units (Cho et al., 2014)."""

    cell = recurrence.GRU


@component
class GaussianHead:
    """For real actions: a Gaussian with a state-independent deviation, then a clip.

    Attributes:
        init_std: Deviation at the start, > 0.
    """

    init_std: float = 1.0

    def validate(self) -> None:
        """Raises a `ValueError` for a deviation out of range."""
        require_range(self, "init_std", "a number > 0", lambda std: std > 0)


@component
class SquashedHead:
    """For actions within bounds; σ = min_std + (max_std − min_std) · sigmoid(ρ).

    Attributes:
        min_std: Least deviation before squashing, > 0.
        max_std: Largest, more than `min_std`.
    """

    min_std: float = 0.2
    max_std: float = 1.5

    def validate(self) -> None:
        """Raises a `ValueError` for deviations that are not ordered."""
        require_range(self, "min_std", "a number > 0", lambda std: std > 0)
        if isinstance(self.min_std, float):
            expected = f"more than min_std = {self.min_std}"
            require_range(self, "max_std", expected, lambda std: std > self.min_std)


@component
class TanhHead(SquashedHead):
    """A Gaussian squashed by tanh into the bounds of the actions."""


@component
class SigmoidHead(SquashedHead):
    """A Gaussian squashed by a sigmoid into the bounds of the actions."""


TORSOS = (Mlp, Cnn)


HEADS = (GaussianHead, TanhHead, SigmoidHead)


@component
class ActorCritic:
    """An architecture.

    Attributes:
        torso: Features of the observation.
        memory: Recurrent layers after the torso; None: feed-forward.
        head: Policy head for real actions; discrete ones are categorical.
        critic_hidden: Dense layers of each critic after the memory.
        shared: Whether critics read the features of the actor's torso and memory, so
            that there is one of each; their loss moves them as well.
    """

    torso: Torso = Mlp()
    memory: Memory | None = None
    head: GaussianHead | TanhHead | SigmoidHead = GaussianHead()
    critic_hidden: tuple[int, ...] = ()
    shared: bool = False

    def validate(self) -> None:
        """Raises a `ValueError` for parts of one's own, which are not built."""
        for name, kinds in (("torso", TORSOS), ("head", HEADS)):
            part = getattr(self, name)
            known = " or ".join(kind.__name__ for kind in kinds)
            expected = f"{known} itself, because no other {name} can be built"
            require(type(part) in kinds, f"ActorCritic.{name}", part, expected)
