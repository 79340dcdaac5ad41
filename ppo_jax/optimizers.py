"""Optimisers as components, so that all their numbers may be traced.

A component builds a chain without a learning rate: clip, then direction. Whoever
applies the updates multiplies by `learning_rate`, which can therefore change at any
step and keep the moments.
"""

import optax

from ppo_jax.component import component, require_range
from ppo_jax.schedules import Linear, Schedule
from ppo_jax.types import Array


@component
class Optimizer:
    """A chain of gradient transformations and its learning rate.

    Attributes:
        learning_rate: Step size at a schedule of 1, ≥ 0.
        max_grad_norm: Bound on the global norm of the gradients, > 0; None: no bound.
        schedule: Factor of the learning rate as a function of progress.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    learning_rate: float = 2.5e-4
    max_grad_norm: float | None = 0.5
    schedule: Schedule = Linear()

    def validate(self) -> None:
        """Raises a `ValueError` for a number out of its range."""
        require_range(self, "learning_rate", "a number ≥ 0", lambda x: x >= 0)
        # A negative bound would turn the gradients around.
        expected = "a number > 0, or None for no bound"
        require_range(self, "max_grad_norm", expected, lambda x: x > 0)

    def direction(self) -> optax.GradientTransformation:
        """The transformation from clipped gradients to unscaled updates."""
        raise NotImplementedError

    def transformation(self) -> optax.GradientTransformationExtraArgs:
        """The chain that turns gradients into updates, but for −learning rate."""
        links = [self.direction()]
        if self.max_grad_norm is not None:
            links.insert(0, optax.clip_by_global_norm(self.max_grad_norm))
        return optax.with_extra_args_support(optax.chain(*links))

    def step_size(self, progress: Array) -> Array:
        """The learning rate in force at `progress` in [0, 1]."""
        return self.learning_rate * self.schedule(progress)


@component
class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with the ε of CleanRL and purejaxrl."""

    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-5

    def direction(self) -> optax.GradientTransformation:
        return optax.scale_by_adam(b1=self.b1, b2=self.b2, eps=self.eps)


@component
class Sgd(Optimizer):
    """Stochastic gradient descent."""

    def direction(self) -> optax.GradientTransformation:
        return optax.identity()
