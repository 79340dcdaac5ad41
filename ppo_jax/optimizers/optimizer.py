"""The base of all optimisers, and optimisers of optax.

A component builds a chain without a learning rate: variance scaling, clip, direction,
decoupled weight decay. `update` multiplies the chain's result by −`learning_rate`,
which can therefore change at any step without a change of the moments.

The bases of an optimiser name the links of its direction from the last to the first:
`UPGDW(Decayed, Gated, Adam)` gates Adam's direction, and adds a decay to the result.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from ppo_jax.arrays import tree
from ppo_jax.component import component
from ppo_jax.component.bounds import Decay, FiniteNonNegative, Positive
from ppo_jax.errors import Misfit, kind, pair, require_shape
from ppo_jax.optimizers.kl_adaptive import KlAdaptive
from ppo_jax.optimizers.vgs import VGS
from ppo_jax.schedules import Linear, Progress, Schedule, factor
from ppo_jax.transforms.kl_adaptive import ScaleByKlState
from ppo_jax.transforms.vgs import ScaleByVarianceState
from ppo_jax.types import Array, Key, Metrics, PyTree

Make = Callable[[float], optax.GradientTransformation]
"""Function from a learning rate to an optimiser, such as `optax.lion`."""


@component
class Optimizer:
    """A chain of gradient transformations and its learning rate.

    An optimiser of your own overrides `direction`; its fields that are floats may be
    searched.

    Attributes:
        learning_rate: Step size at a schedule of 1, finite and ≥ 0.
        max_grad_norm: Bound on the global norm of the gradients, > 0; None: no bound.
        schedule: Factor of the learning rate as a function of the share of updates that
            are done, i / N, so that the last update does not have a rate of 0.
        vgs: Scaling of gradients before they are clipped; None: not scaled.
        kl_adaptive: Factor of the learning rate that follows the policy's divergence;
            None: the schedule alone sets the rate.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    learning_rate: FiniteNonNegative[float] = 2.5e-4
    max_grad_norm: Positive[float | None] = 0.5
    schedule: Schedule = Linear()
    vgs: VGS | None = None
    kl_adaptive: KlAdaptive | None = None

    @property
    def elementwise(self) -> bool:
        """Whether a step stays the same if parameters are packed into other arrays."""
        return type(self) in _ELEMENTWISE and self.vgs is None

    @property
    def reads_old_policy(self) -> bool:
        """Whether the learning rate follows what needs the policy that acted."""
        adaptive = self.kl_adaptive
        return adaptive is not None and adaptive.divergence.reads_old_policy

    def check(self, config: Any) -> None:
        """Raises a `ValueError` for an experiment that it does not suit."""
        if self.kl_adaptive is not None:
            self.kl_adaptive.check(config)

    def direction(self) -> optax.GradientTransformation:
        """Returns the transformation of clipped gradients to updates.

        It leaves out the factor −learning rate. By default it changes nothing.
        """
        return optax.identity()

    def transformation(self) -> optax.GradientTransformationExtraArgs:
        """Returns the chain of `update`, without the last factor, −learning rate."""
        return optax.chain(*self._links())

    def init(self, params: PyTree) -> PyTree:
        """Returns the state of the chain before its first step."""
        return self.transformation().init(params)

    def update(
        self,
        gradients: PyTree,
        opt_state: PyTree,
        params: PyTree,
        key: Key,
        progress: Progress,
        metrics: Metrics | None = None,
    ) -> tuple[PyTree, PyTree, Array]:
        """Computes a step.

        Args:
            gradients: The gradients of a minibatch.
            opt_state: The chain's state.
            params: The parameters.
            key: Key of noise.
            progress: Progress of training.
            metrics: Means over the minibatch, `[]` each; only `kl_adaptive` reads one.

        Returns:
            The numbers to add to the parameters; the chain's state afterwards; and the
            global norm `[]` of the scaled and clipped gradients, which are the input of
            the chain's last link. The norm is NaN if the numbers to add are not finite.

        Raises:
            Misfit: If the direction returns anything but updates like the gradients,
                and a state like the old one.
            ValueError: If `kl_adaptive` does not find its metric.
        """
        given, updates, states = gradients, gradients, []
        name = f"{type(self).__name__}.direction"
        extra = {"key": key}
        if self.kl_adaptive is not None:
            extra["kl"] = self.kl_adaptive.measured(metrics or {})
        for link, old in zip(self._links(), opt_state, strict=True):
            given = updates
            after = link.update(given, old, params, **extra)
            updates, new = pair(name, after, "an update to (updates, state)")
            tree.require_same(f"{name}: updates", updates, given)
            tree.require_same(f"{name}: state", new, old)
            states.append(new)
        rate = self.step_size(progress)
        updates = jax.tree.map(lambda u: -rate * u, updates)
        # Elementwise optimisers make finite directions of finite gradients.
        ok = jnp.isfinite(rate) & (self.elementwise or tree.all_finite(updates))
        return updates, tuple(states), jnp.where(ok, optax.tree.norm(given), jnp.nan)

    def _links(self) -> tuple[optax.GradientTransformationExtraArgs, ...]:
        """Returns the links of the chain: scaling and clip, if any, and direction.

        What follows the direction is part of its link.
        """
        links: list[optax.GradientTransformation] = []
        if self.vgs is not None:
            links.append(self.vgs.transformation())
        if self.max_grad_norm is not None:
            links.append(optax.clip_by_global_norm(self.max_grad_norm))
        last = _require(f"{type(self).__name__}.direction", self.direction())
        if self.kl_adaptive is not None:
            last = optax.chain(last, self.kl_adaptive.transformation())
        links.append(last)
        return tuple(optax.with_extra_args_support(link) for link in links)

    def step_size(self, progress: Progress) -> Array:
        """Returns the learning rate that the schedule sets."""
        return self.learning_rate * factor(self.schedule, progress.done)

    def rate_metrics(self, opt_state: PyTree, progress: Progress) -> Metrics:
        """Returns the rate of the last step, and whether a floor holds its schedule."""
        held, name = self.schedule.held(progress.done), type(self.schedule).__name__
        shape = jnp.shape(progress.done)
        require_shape(f"{name}.held", held, shape, "whether a floor holds, bool", "b")
        rate = self.step_size(progress)
        if self.kl_adaptive is not None:
            rate *= find_state(opt_state, ScaleByKlState).scale
        return {
            "train/learning_rate": rate,
            "train/learning_rate_held": held.astype(jnp.float32),
        }

    def metrics(self, opt_state: PyTree) -> Metrics:
        """Returns metrics `[]` of the chain's states, always with the same names."""
        if self.vgs is None:
            return {}
        return self.vgs.metrics(find_state(opt_state, ScaleByVarianceState))


@component
class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with the ε of CleanRL and purejaxrl.

    Attributes:
        b1: Decay of the mean of gradients, in [0, 1).
        b2: Decay of the mean of squares, in [0, 1).
        eps: Guard of the denominator, > 0.
    """

    b1: Decay[float] = 0.9
    b2: Decay[float] = 0.999
    eps: Positive[float] = 1e-5

    def direction(self) -> optax.GradientTransformation:
        return optax.scale_by_adam(b1=self.b1, b2=self.b2, eps=self.eps)


@component
class Sgd(Optimizer):
    """Stochastic gradient descent."""


@component
class Optax(Optimizer):
    """Any optimiser of optax; only numbers of `Optimizer` itself can be searched.

    Attributes:
        make: Function from a learning rate to the optimiser, such as `optax.lion`, a
            lambda or a `functools.partial`.

    >>> optimizer = Optax(0.5, make=lambda rate: optax.lion(rate, b1=0.95))
    >>> params = jnp.zeros(2)
    >>> updates, _, _ = optimizer.update(
    ...     jnp.array([3.0, -0.1]),
    ...     optimizer.init(params),
    ...     params,
    ...     jax.random.key(0),
    ...     Progress.at(0.5),
    ... )
    >>> updates.tolist()  # Half of the rate is left by the schedule.
    [-0.25, 0.25]
    """

    make: Make = dataclasses.field(kw_only=True)

    def direction(self) -> optax.GradientTransformation:
        made = _require(f"{type(self).__name__}.make", self.make(1.0))
        return optax.chain(made, optax.scale(-1.0))


def not_of_optax(given: Any) -> Any:
    """Returns an optimiser, or any other value, as it is.

    Raises:
        TypeError: For an optimiser of optax, or a function that makes one.
    """
    makes = callable(given) and not isinstance(given, type | Optimizer)
    if makes or isinstance(given, optax.GradientTransformation):
        raise TypeError(
            "Config.optimizer: expected Optimizer, got what is optax's; give "
            "Optax(learning_rate, make=optax.lion)"
        )
    return given


@component
class Decayed(Optimizer):
    """Decoupled weight decay of another direction (Loshchilov and Hutter, 2019).

    Attributes:
        weight_decay: λ ≥ 0: weights shrink by 1 − learning rate · λ per step.
    """

    weight_decay: FiniteNonNegative[float] = 0.01

    def direction(self) -> optax.GradientTransformation:
        decay = optax.add_decayed_weights(self.weight_decay)
        return optax.chain(super().direction(), decay)


@component
class AdamW(Decayed, Adam):
    """Adam with decoupled weight decay."""


_ELEMENTWISE = (Sgd, Adam, AdamW)
"""Optimisers with elementwise steps; their subclasses may treat arrays as a whole."""


def _require(name: str, given: Any) -> optax.GradientTransformation:
    """Returns what a method made, if it is a gradient transformation.

    Raises:
        Misfit: If it is none.
    """
    if not all(callable(getattr(given, each, None)) for each in ("init", "update")):
        expected = "a gradient transformation of optax, such as optax.lion(1.0)"
        raise Misfit(f"{name}: expected {expected}, got {kind(given)}")
    return given


def find_state(opt_state: PyTree, kind: type) -> PyTree:
    """Finds the state of one kind, wherever it is in a chain."""
    states = jax.tree.leaves(opt_state, is_leaf=lambda node: isinstance(node, kind))
    return next(state for state in states if isinstance(state, kind))
