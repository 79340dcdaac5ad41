"""The term that critics learn from."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from ppo_jax.arrays import counting
from ppo_jax.component import component, require, require_field
from ppo_jax.component.bounds import FiniteNonNegative, Positive
from ppo_jax.controllers import ClipGate, Known, PoorValueScale
from ppo_jax.critics import ValueDist
from ppo_jax.state import Batch
from ppo_jax.terms.term import Context, Forward, Loss, Prepared, RolloutTargets, Term
from ppo_jax.types import Array, Metrics

ROUNDING = 1e-5
"""Relative rounding error between two computations of the same loss."""


class _Memory(NamedTuple):
    updates: Array
    explained_variance: Known


@component
class Value(Term):
    """Regression of every critic to the λ-returns, averaged over critics.

    With a clip range, a prediction gains nothing by leaving it: per critic and example
    the loss is max(loss(v), loss(clip(v, v_old ± ε))). The critic's `clip` decides how
    a prediction is clipped. Targets are never clipped.

    Attributes:
        coef: Coefficient of the loss.
        clip_eps: ε > 0, in units of the return scale; None: no clipping.
        gate: When predictions are clipped; None: always, if there is a range.
        poor: A smaller coefficient while the critic explains little; None: never.

    Raises:
        ValueError: At construction, for a number out of its range, or for a gate
            without a range.
    """

    coef: FiniteNonNegative[float] = 0.5
    clip_eps: Positive[float | None] = None
    gate: ClipGate | None = None
    poor: PoorValueScale | None = None
    guides = False

    def validate(self) -> None:
        """Raises a `ValueError` for a gate without a clip range."""
        clips = self.gate is None or self.clip_eps is not None
        require_field(self, "gate", clips, "None without a clip_eps")

    @property
    def clips(self) -> bool:
        return self.clip_eps is not None

    def check(self, config: Any) -> None:
        expected = "a way of clipping, because a Value term has a clip_eps"
        possible = config.critic.clip is not None or not self.clips
        require(possible, "Config.critic.clip", None, expected)

    def init(self) -> _Memory:
        return _Memory(jnp.zeros((), jnp.int32), Known.init())

    def prepare(self, memory: _Memory, rollout: RolloutTargets) -> Prepared:
        return (), {} if self.gate is None else self.gate.metrics(*memory)

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        updates, explained_variance = context.memory
        loss, metrics = out.value.loss(batch.target), {}
        if self.clip_eps is not None:
            old = ValueDist(batch.old_value, out.value.critic)
            clipped = out.value.clip(old, self.clip_eps).loss(batch.target)
            bound = clipped > loss
            if self.gate is not None:
                bound &= self.gate(updates, explained_variance)
            felt = bound & (clipped - loss > ROUNDING * jnp.abs(loss))
            loss = jnp.where(bound, clipped, loss)
            fraction = felt.astype(jnp.float32).mean(axis=-1)
            metrics["train/value_clip_fraction"] = fraction
        metrics |= _of_each_critic(loss)
        loss, coef = loss.mean(axis=-1), jnp.asarray(self.coef, jnp.float32)
        if self.poor is not None:
            coef = self.poor(coef, explained_variance)
        metrics |= {
            "train/value_loss": loss,
            "train/vf_coef": jnp.broadcast_to(coef, loss.shape),
        }
        return coef * loss, metrics

    def update(self, memory: _Memory, metrics: Metrics) -> _Memory:
        explained = metrics["train/explained_variance"]
        updates = counting.add(memory.updates)
        return _Memory(updates, memory.explained_variance.update(explained))


def _of_each_critic(loss: Array) -> Metrics:
    """Returns a metric per critic of losses `[..., C]`; none for a single critic."""
    count = loss.shape[-1]
    if count == 1:
        return {}
    names = (f"train/twin_critics/critic_{i}_loss" for i in range(1, count + 1))
    return dict(zip(names, jnp.moveaxis(loss, -1, 0), strict=True))
