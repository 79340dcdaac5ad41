"""Worst-case observations in an ε-ball around the true ones.

An attack raises a loss per sample by moving the observations, and knows nothing about
networks: policy loss, value loss, divergence from the clean policy or a critic's
prediction come as closures `objective(obs) -> [...]` over parameters, actions and
carries. The axes of the closure's result are the batch axes of every observation leaf.
Float leaves are attacked, others are left alone; ε is in units of the observations as
given, so they should be normalised.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.arrays import counting, tree
from ppo_jax.attacks.norms import Delta, LInf, Norm
from ppo_jax.component import component, concrete, require, require_range
from ppo_jax.component.bounds import (
    Count,
    FiniteNonNegative,
    FinitePositive,
    Number,
    Share,
)
from ppo_jax.errors import Misfit, kind, missing, require_shape
from ppo_jax.schedules import Constant, Schedule, factor
from ppo_jax.types import Array, Key, PyTree

Objective = Callable[[PyTree], Array]
"""A function from observations to one number per sample `[...]`."""
FLAT = (
    "has no gradient at the true observation, where {attack} begins; Pgd with a "
    "`start` > 0 does not"
)
"""Warning about an attack that cannot raise its harm."""


class Problem(NamedTuple):
    """The task of an attack."""

    objective: Objective
    """The objective to raise, one number per sample `[...]`."""
    floats: list[Array]
    """The float leaves of the observations, `[..., ...]`."""
    axes: int
    """Number of batch axes."""
    observe: Callable[[Delta], PyTree]
    """A function from a perturbation to the observations with it added."""

    def require(self, name: str, delta: Delta) -> None:
        """Raises a `Misfit` unless there is a perturbation for each float leaf."""
        count = len(self.floats)
        if not isinstance(delta, list | tuple) or len(delta) != count:
            expected = f"a list of {count}, an array for each float leaf"
            raise Misfit(f"{name}: expected {expected}, got {kind(delta)}")
        for each, x in zip(delta, self.floats, strict=True):
            require_shape(name, each, x.shape, "that of the observations")

    def zero(self) -> Delta:
        """Returns a perturbation of zeros."""
        return [jnp.zeros(x.shape) for x in self.floats]

    def gradient(self, delta: Delta) -> Delta:
        """Returns the gradient of each sample's objective; 0 where it is not finite.

        Raises:
            Misfit: If the objective is no float, and has none.
        """

        def total(delta: Delta) -> Array:
            harm = self.objective(self.observe(delta))
            if not jnp.issubdtype(harm.dtype, jnp.floating):
                expected = "floats, as this attack follows their gradient"
                raise Misfit(f"harm: expected {expected}, got {kind(harm)}")
            return harm.sum()  # Gradients of a mean would shrink with the batch.

        raw = jax.grad(total)(delta)
        return [jnp.where(jnp.isfinite(x), x, 0.0) for x in raw]


@component
class Attack:
    """A way to perturb observations.

    Attributes:
        eps: Radius ε ≥ 0 of the ball, finite.
        norm: Norm that gives the ball its shape.
        low: Least value of an observation; None: unbounded. A clean observation that
            is lower itself may stay, so that the ball is kept.
        high: Largest value of an observation, likewise.
        schedule: Factor of ε as a function of progress.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    eps: FiniteNonNegative[float] = 0.075
    norm: Norm = LInf()
    low: Number[float | None] = None
    high: Number[float | None] = None
    schedule: Schedule = Constant()

    @property
    def begins_true(self) -> bool:
        """Whether the attack takes its first gradient at the true observation."""
        return False

    def validate(self) -> None:
        """Raises a `ValueError` for bounds out of order."""
        if concrete(self.low):
            above = f"a number > low = {self.low}"
            require_range(self, "high", above, lambda high: high > self.low)

    def at(self, progress: ArrayLike) -> Self:
        """Returns the attack with the ε in force at this progress in [0, 1]."""
        eps = self.eps * factor(self.schedule, progress)
        return dataclasses.replace(self, eps=eps, schedule=Constant())

    def __call__(self, objective: Objective, obs: PyTree, key: Key) -> PyTree:
        """Perturbs observations.

        Args:
            objective: The function to raise, from observations to one number per
                sample `[...]`.
            obs: True observations, leaves `[..., ...]`.
            key: Key of the attack's random numbers.

        Returns:
            Observations of the same structure without gradient, in the ε-ball around
            the true ones; exactly the true ones where ε is 0.

        Raises:
            Misfit: If `perturbation` returns anything but arrays of their shapes.
        """
        problem = _problem(objective, obs)
        delta = self.perturbation(problem, key)
        problem.require(f"{type(self).__name__}.perturbation", delta)
        return jax.lax.stop_gradient(problem.observe(delta))

    def perturbation(self, problem: Problem, key: Key) -> Delta:
        """Returns the perturbation to add, within the ball and the bounds."""
        raise missing(self, "perturbation")

    def bounded(self, delta: Delta, problem: Problem) -> Delta:
        """Returns the perturbation, cut so that observations keep to the bounds."""
        pairs = zip(delta, problem.floats, strict=True)
        return [self._bounded(d, x.astype(jnp.float32)) for d, x in pairs]

    def _bounded(self, delta: Array, clean: Array) -> Array:
        if self.low is not None:
            delta = jnp.maximum(delta, jnp.minimum(self.low - clean, 0.0))
        if self.high is not None:
            delta = jnp.minimum(delta, jnp.maximum(self.high - clean, 0.0))
        return delta


@component
class Noise(Attack):
    """A random perturbation, the baseline of other attacks.

    >>> obs = Noise(eps=0.5)(lambda obs: obs.sum(axis=-1), jnp.ones((4, 2)),
    ...                      jax.random.key(0))
    >>> bool((jnp.abs(obs - 1) <= 0.5).all())
    True
    """

    def perturbation(self, problem: Problem, key: Key) -> Delta:
        delta = self.norm.sample(key, problem.floats, problem.axes)
        return self.bounded([self.eps * x for x in delta], problem)


@component
class Fgsm(Attack):
    """A single step to the border of the ball along the steepest direction.

    References:
        Goodfellow et al., `Explaining and Harnessing Adversarial Examples
        <https://arxiv.org/abs/1412.6572>`_, 2015.

    >>> obs = jnp.array([[1.0, -1.0], [0.0, 2.0]])
    >>> Fgsm(eps=0.5)(lambda obs: (obs**2).sum(axis=-1), obs, jax.random.key(0))
    Array([[ 1.5, -1.5],
           [ 0. ,  2.5]], dtype=float32)
    """

    @property
    def begins_true(self) -> bool:
        return True

    def perturbation(self, problem: Problem, key: Key) -> Delta:
        gradient = problem.gradient(problem.zero())
        steepest = self.norm.steepest(gradient, problem.axes)
        return self.bounded([self.eps * x for x in steepest], problem)


@component
class Pgd(Attack):
    """Projected gradient ascent: steps along the steepest direction, kept in the ball.

    Attributes:
        steps: Number of gradient steps.
        step_size: Length of a step, in units of ε.
        start: Radius in [0, 1] of the random start, in units of ε; 0: the clean
            observation, where a divergence from the clean policy has no gradient.
        restarts: Number of random starts; each sample keeps the best result.

    References:
        Madry et al., `Towards Deep Learning Models Resistant to Adversarial Attacks
        <https://arxiv.org/abs/1706.06083>`_, 2018.

    >>> from ppo_jax.attacks.norms import L2
    >>> obs = jnp.array([[1.0, -1.0], [0.0, 2.0]])
    >>> pgd = Pgd(eps=0.5, norm=L2(), steps=8, start=0.0)
    >>> worst = pgd(lambda obs: obs @ jnp.array([3.0, 4.0]), obs, jax.random.key(0))
    >>> print((worst - obs).round(3)[0])
    [0.3 0.4]
    """

    steps: Count = 3
    step_size: FinitePositive[float] = 0.4
    start: Share[float] = 1.0
    restarts: Count = 1

    @property
    def begins_true(self) -> bool:
        return concrete(self.start) and self.start == 0

    def perturbation(self, problem: Problem, key: Key) -> Delta:
        if self.restarts == 1:
            return self._climb(problem, key)

        def attempt(best, key):
            delta = self._climb(problem, key)
            reached = problem.objective(problem.observe(delta))
            reached = jnp.where(jnp.isnan(reached), -jnp.inf, reached)
            return tree.where(reached >= best[1], (delta, reached), best), None

        batch = problem.floats[0].shape[: problem.axes]
        none = (problem.zero(), jnp.full(batch, -jnp.inf))
        keys = jax.random.split(key, self.restarts)
        (delta, _), _ = jax.lax.scan(attempt, none, keys)
        return delta

    def _climb(self, problem: Problem, key: Key) -> Delta:
        def step(_, delta):
            steepest = self.norm.steepest(problem.gradient(delta), problem.axes)
            length = self.step_size * self.eps
            moved = [d + length * s for d, s in zip(delta, steepest, strict=True)]
            projected = self.norm.project(moved, self.eps, problem.axes)
            return self.bounded(projected, problem)

        radius = self.start * self.eps
        sample = self.norm.sample(key, problem.floats, problem.axes)
        first = self.bounded([radius * x for x in sample], problem)
        return jax.lax.fori_loop(0, self.steps, step, first)


def first_share(share: ArrayLike, count: int) -> Array:
    """Returns a mask of the first `share` of `count` places, rounded down, bool.

    >>> first_share(0.5, 5).tolist()
    [True, True, False, False, False]
    """
    return jnp.arange(count) < counting.share_of(count, share)


def _problem(objective: Objective, obs: PyTree) -> Problem:
    leaves, structure = jax.tree.flatten(jax.lax.stop_gradient(obs))
    attacked = [jnp.issubdtype(x.dtype, jnp.floating) for x in leaves]
    floats = [x for x, is_float in zip(leaves, attacked, strict=True) if is_float]
    require(len(floats) > 0, "obs", structure, "at least one float leaf")

    def observe(delta: Delta) -> PyTree:
        deltas = iter(delta)
        moved = [
            (x + next(deltas)).astype(x.dtype) if is_float else x
            for x, is_float in zip(leaves, attacked, strict=True)
        ]
        return jax.tree.unflatten(structure, moved)

    axes = jax.eval_shape(objective, obs).ndim
    return Problem(objective, floats, axes, observe)
