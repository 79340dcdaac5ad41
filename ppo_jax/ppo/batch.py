"""Turns a rollout into a batch: targets, scaled advantages, chunks of steps."""

from typing import Any

import jax
import jax.numpy as jnp

from ppo_jax import returns
from ppo_jax.arrays import tree
from ppo_jax.metrics.own import named
from ppo_jax.normalization import return_scale
from ppo_jax.normalization.advantages import standardized
from ppo_jax.normalization.return_scale import ReturnScale
from ppo_jax.ppo import diagnostics
from ppo_jax.state import Batch, Learner, Trajectory
from ppo_jax.terms import RolloutTargets
from ppo_jax.terms.term import prepared_by
from ppo_jax.types import Array, Carry, Key, Metrics, PyTree

TERMS = 2**31
"""Sets the keys of terms apart from those that an update splits the same key into."""


def assemble(
    learner: Learner, key: Key, steps: Trajectory, carries: Carry
) -> tuple[Batch, RolloutTargets, Metrics, list[Metrics]]:
    """Makes the batch of a rollout, and everything that needs the whole rollout.

    Returns:
        The batch, the targets that terms prepare from, all metrics, and the metrics of
        each term.
    """
    config, scale = learner.config, learner.return_scale
    weight = jnp.where(sources(config)[None], steps.weight, 0.0)
    advantage, clipped = advantages(config, steps, scale)
    target = advantage + scale.decode(steps.value)
    metrics = diagnostics.target_metrics(
        steps.value, advantage, target, weight, held_out(config, steps, weight), scale
    )
    normalized, unit = advantage, jnp.ones(())
    if config.standardization is not None:
        normalized, flat = standardized(
            config.standardization, advantage, weight, steps.group
        )
        metrics |= diagnostics.scaled_metrics(normalized, flat, weight)
        std = metrics["train/advantages_std_raw"]
        still = (flat | (weight == 0)).all() | (std == 0)
        unit = jnp.where(still, jnp.inf, std)
    discount = config.gamma * (steps.valid & ~steps.last)
    targets = RolloutTargets(
        steps.reward, target, weight, unit, steps.cost, discount, key
    )
    prepared, own_metrics = [], []
    for i, memory in enumerate(learner.memories):
        own_key = jax.random.fold_in(key, TERMS + i)
        shown = targets._replace(key=own_key)
        examples, own = prepared_by(config.terms[i], memory, shown)
        prepared.append(examples)
        own_metrics.append(own)
        metrics |= own
    metrics["train/gae_clip_count"] = clipped.sum()
    steps = steps._replace(weight=weight)
    target = scale.encode(target)
    own = named("Config.critic.target_metrics", config.critic.target_metrics(target))
    metrics |= {name: diagnostics.average(each, weight) for name, each in own.items()}
    batch = chunks(config, steps, normalized, target, carries, tuple(prepared))
    return batch, targets, metrics, own_metrics


def sources(config: Any) -> Array:
    """Returns True `[B]` for environments that are learned from."""
    return jnp.arange(config.num_envs) < config.num_envs - config.holdout_envs


def advantages(
    config: Any, steps: Trajectory, scale: ReturnScale | None = None
) -> tuple[Array, Array]:
    """Returns generalised advantages `[T, B]`, and where they had to be clipped.

    Advantages are in units of rewards. A quarantined step has advantage 0 and stops the
    trace: the step before it is valued by the critic alone.
    """
    scale = return_scale.identity() if scale is None else scale
    value, next_value = scale.decode(steps.value), scale.decode(steps.next_value)
    r_t = jnp.where(steps.valid, steps.reward, value)
    discount = config.gamma * (steps.valid & ~steps.terminated)
    trace = config.gamma * config.gae_lambda * (steps.valid & ~steps.last)
    return returns.gae(r_t, discount, trace, value, next_value)


def chunks(
    config: Any,
    steps: Trajectory,
    advantage: Array,
    target: Array,
    carries: Carry,
    prepared: tuple[PyTree, ...] | None = None,
) -> Batch:
    """Cuts a rollout into chunks `[K, L, ...]` with carries `[K, ...]`."""

    def cut(x):
        x = x.reshape(-1, config.chunk, *x.shape[1:])
        return x.swapaxes(1, 2).reshape(-1, config.chunk, *x.shape[3:])

    rows = Batch(
        obs=steps.obs,
        reset=steps.reset,
        action=steps.action,
        log_prob=steps.log_prob,
        action_mask=steps.action_mask,
        advantage=advantage,
        target=target,
        weight=steps.weight,
        old_value=steps.old_value,
        old_policy=steps.old_policy,
        prepared=((),) * len(config.terms) if prepared is None else prepared,
        carry=(),
    )
    return jax.tree.map(cut, rows)._replace(carry=tree.merge_leading(carries))


def held_out(config: Any, steps: Trajectory, weight: Array) -> Array | None:
    """Returns the weights `[T, B]` of held-out environments, or None without any."""
    return steps.weight - weight if config.holdout_envs else None
